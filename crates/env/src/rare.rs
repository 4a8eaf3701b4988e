//! Rare events: events that may happen at any time, and seldom do: a limit is reached at once, a
//! cache has forgotten an entry, a queue is full, a neighbour was quicker. None of them is a
//! fault: code has to be right whether they happen or not.
//!
//! A simulation switches some of them on by its seed ([`begin`]), and then each happens far more
//! often than by itself. (FoundationDB calls such places BUGGIFY.) The code at such a place asks
//! [`happens`], beside its own condition.
//!
//! Only builds for tests have them: those with debug assertions, and those with the feature `rare`
//! (`cargo build --profile quick -p sim --features rare`). In every other build [`happens`] is
//! false when the program is compiled, and no code of an event is compiled. A process that
//! simulates nothing has no event switched on in any build.
//!
//! Events belong to the thread that simulates: simulations on several threads do not affect each
//! other.

/// Whether this build can have rare events.
pub const ARE_COMPILED: bool = cfg!(any(debug_assertions, feature = "rare"));

/// Percentage of the events that are switched on by a seed that draws them.
pub const SWITCHED_ON_PERCENT: u64 = 25;

/// Declares the events: their names, what they are, and how often of 100 times that the place is
/// reached each happens while it is switched on.
macro_rules! events {
    ($($(#[doc = $doc:literal])+ $name:ident: $percent:literal,)+) => {
        /// A rare event. The name at the end of its description is the module that has the place.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum Rare {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Rare {
            /// All events.
            pub const ALL: &'static [Rare] = &[$(Rare::$name,)+];

            /// Whether a request may fail because of the event that would be answered otherwise.
            pub fn refuses(self) -> bool {
                matches!(self, Rare::PoolIsFull)
            }

            /// Percentage of the times that the place is reached at which the event happens.
            pub fn percent(self) -> u64 {
                match self {
                    $(Rare::$name => $percent,)+
                }
            }
        }
    };
}

events! {
    /// A write asks for a flush, whatever memory holds (`storage::write`).
    FlushNow: 2,
    /// A segment of the commit log ends, though it has room (`storage::commitlog`).
    SegmentEnds: 2,
    /// The writer of the commit log syncs, though a period or a window is not over
    /// (`storage::commitlog::writer`).
    LogSyncsNow: 20,
    /// The next segment of the commit log is not ready in time (`storage::commitlog::segments`).
    SegmentIsLate: 30,
    /// A batch of rows that a read takes from a memtable ends behind its first row
    /// (`storage::memtable::read`).
    BatchOfOne: 30,
    /// The cache of chunks has forgotten one (`storage::caches`).
    ChunkIsForgotten: 50,
    /// A compaction takes any two neighbours in age, instead of the strategy's choice
    /// (`storage::compaction::choice`).
    OddCompaction: 10,
    /// The first SSTable that a compaction writes ends behind its first partition
    /// (`storage::strategy::output`; not where its level forbids that).
    OutputEnds: 30,
    /// A read that must not wait would have to (`env::sim::disk`).
    ReadWouldBlock: 50,
    /// A read is taken for a long one (`cluster::replica::forecast`).
    ReadIsLong: 30,
    /// A read on a worker has used up its budget of rows (`cluster::replica::read`).
    BudgetIsSpent: 30,
    /// Digests of replicas are taken for different (`cluster::coordinator::distributed_read`).
    DigestsDiffer: 30,
    /// Replicas are asked for a portion of one row (`cluster::coordinator::part_read`).
    PortionOfOne: 30,
    /// One more replica is asked at once (`cluster::coordinator::distributed_read`).
    SpeculateNow: 50,
    /// A conditional statement makes way for another one that is not there
    /// (`cluster::coordinator::cas`).
    MakeWay: 20,
    /// There is no room for a hint (`hints::store`).
    HintIsRefused: 20,
    /// The record of a logged batch stays, and the batch is sent again
    /// (`cluster::coordinator::batch`).
    BatchStays: 20,
    /// A link writes one message at a time (`links::outbound`).
    LinkWritesOne: 50,
    /// The blocking pool has no room for a read (`cluster::replica::read`).
    PoolIsFull: 10,
    /// A round of gossip is left out (`membership`).
    NoGossip: 10,
    /// A socket has a single byte to read (`env::sim::network`).
    ByteByByte: 10,
    /// A file that is streamed goes in small pieces (`sending`).
    SmallPieces: 50,
    /// A tree of a repair has one leaf for each range (`cluster::repair::validation`).
    ShallowTree: 30,
}

const _: () = assert!(Rare::ALL.len() <= 64);

/// The choice of the events of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventChoice {
    /// No event.
    None,
    /// The events that the seed draws.
    Drawn,
    /// All events.
    All,
}

/// How often a place was reached while its event was switched on, and how often the event happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Figures {
    /// The event.
    pub event: Rare,
    /// How often the place was reached.
    pub reached: u64,
    /// How often the event happened.
    pub happened: u64,
}

#[cfg(any(debug_assertions, feature = "rare"))]
pub use switch::{Switched, begin, happens, stop_failures};

#[cfg(not(any(debug_assertions, feature = "rare")))]
pub use none::{Switched, begin, happens, stop_failures};

#[cfg(not(any(debug_assertions, feature = "rare")))]
mod none {
    use super::{EventChoice, Figures, Rare};

    /// The handle of switched-on events. This build has no events.
    pub struct Switched(());

    impl Switched {
        /// The figures of the events: empty in this build.
        pub fn figures(&self) -> Vec<Figures> {
            Vec::new()
        }
    }

    /// Does nothing: this build has no events.
    pub fn begin(_seed: u64, _wanted: EventChoice) -> Switched {
        Switched(())
    }

    /// Does nothing: this build has no events.
    pub fn stop_failures() {}

    /// Whether an event happens now: never in this build.
    #[inline(always)]
    pub const fn happens(_: Rare) -> bool {
        false
    }
}

#[cfg(any(debug_assertions, feature = "rare"))]
mod switch {
    use std::cell::RefCell;

    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::{Rng, SeedableRng};

    use super::{EventChoice, Figures, Rare, SWITCHED_ON_PERCENT};

    /// Number of the stream of random numbers for the events. Machines have streams with small
    /// numbers.
    const STREAM: u64 = 1 << 32;

    struct Run {
        /// The events that are switched on, a bit for each.
        on: u64,
        /// The events that may still happen, a bit for each.
        may: u64,
        random: ChaCha8Rng,
        figures: Vec<Figures>,
    }

    thread_local! {
        /// The run of this thread; None: this thread simulates nothing.
        static RUN: RefCell<Option<Run>> = const { RefCell::new(None) };
    }

    /// The handle of switched-on events. They are switched off when it is dropped.
    #[must_use = "the events are switched off when this is dropped"]
    pub struct Switched(());

    impl Switched {
        /// The events that are switched on, with their counts.
        pub fn figures(&self) -> Vec<Figures> {
            let is_on = |run: &Run, figures: &&Figures| run.on >> figures.event as u8 & 1 == 1;
            RUN.with_borrow(|run| {
                run.iter().flat_map(|run| run.figures.iter().filter(|figures| is_on(run, figures)).copied()).collect()
            })
        }
    }

    impl Drop for Switched {
        fn drop(&mut self) {
            RUN.set(None);
        }
    }

    /// Switches events on for this thread.
    pub fn begin(seed: u64, wanted: EventChoice) -> Switched {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(STREAM);
        let mut on = 0;
        for event in Rare::ALL {
            let is_drawn = random.next_u64() % 100 < SWITCHED_ON_PERCENT;
            let is_on = match wanted {
                EventChoice::None => false,
                EventChoice::Drawn => is_drawn,
                EventChoice::All => true,
            };
            on |= u64::from(is_on) << *event as u8;
        }
        let figures = Rare::ALL.iter().map(|event| Figures { event: *event, reached: 0, happened: 0 }).collect();
        RUN.set(Some(Run { on, may: on, random, figures }));
        Switched(())
    }

    /// Called when the troubles are over: no request fails because of an event any more
    /// ([`Rare::refuses`]). Otherwise a scan that asks hundreds of ranges of their replicas would
    /// hardly ever end.
    pub fn stop_failures() {
        RUN.with_borrow_mut(|run| {
            if let Some(run) = run {
                let refusing = Rare::ALL.iter().filter(|event| event.refuses());
                refusing.for_each(|event| run.may &= !(1 << *event as u8));
            }
        });
    }

    /// Whether an event happens now.
    pub fn happens(event: Rare) -> bool {
        RUN.try_with(|run| {
            let mut run = run.borrow_mut();
            let Some(run) = run.as_mut().filter(|run| run.may >> event as u8 & 1 == 1) else { return false };
            let happens = run.random.next_u64() % 100 < event.percent();
            let figures = run.figures.get_mut(event as usize).expect("each event has figures");
            figures.reached += 1;
            figures.happened += u64::from(happens);
            happens
        })
        .unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_its_events_and_a_run_without_any_has_none() {
        let drawn = |seed| {
            let switched = begin(seed, EventChoice::Drawn);
            let _ = (0..1000).filter(|_| happens(Rare::FlushNow)).count();
            switched.figures()
        };
        assert_eq!(drawn(1), drawn(1));
        let counts: Vec<usize> = (0..200).map(|seed| drawn(seed).len()).collect();
        let mean = counts.iter().sum::<usize>() as f64 / counts.len() as f64;
        let expected = Rare::ALL.len() as f64 * SWITCHED_ON_PERCENT as f64 / 100.0;
        assert!((mean - expected).abs() < expected / 5.0, "{mean}");
        assert!(!happens(Rare::FlushNow), "outside of a run");
        let all = begin(1, EventChoice::All);
        let happened = (0..1000).filter(|_| happens(Rare::LogSyncsNow)).count();
        assert!((150..250).contains(&happened), "{happened}");
        assert!((0..1000).any(|_| happens(Rare::PoolIsFull)));
        stop_failures();
        assert!(!(0..1000).any(|_| happens(Rare::PoolIsFull)), "a request fails by it");
        assert!((0..1000).any(|_| happens(Rare::LogSyncsNow)), "no request fails by it");
        assert_eq!(all.figures().len(), Rare::ALL.len(), "those that happen no more count too");
        drop(all);
        let none = begin(1, EventChoice::None);
        assert!(none.figures().is_empty() && !happens(Rare::LogSyncsNow));
    }
}
