//! The partitions of operations: seeds, which all threads take from one source until it ends
//! (org.apache.cassandra.stress.generate.SeedManager).
//!
//! Invariant: the position of a seed in the sequence (for drawn seeds, the number of the operation)
//! determines the seed and everything random about it. So two runs of the same command line ask for
//! the same data, whichever threads do it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rand::SeedableRng;
use rand::rngs::SmallRng;

use crate::distribution::Distribution;
use crate::settings::population::Population;
use crate::value::mix;

/// A partition for an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    pub seed: u64,
    /// The number of the operation, counted from 0.
    pub number: u64,
    /// The position of the seed in the sequence of written seeds.
    pub place: u64,
    /// The part of the partition that is written, and the number of parts.
    pub part: u64,
    pub parts: u64,
}

impl Visit {
    /// The random number of the operation: the same for the same position of the sequence.
    pub fn draw(&self) -> u64 {
        mix(mix(self.place) ^ self.part)
    }
}

/// Gives out the numbers and seeds of operations.
pub struct Source {
    population: Population,
    numbers: AtomicU64,
    limit: u64,
    places: AtomicU64,
    stopped: AtomicBool,
    written: Written,
}

impl Source {
    /// Gives out `limit` numbers; None: until it is stopped.
    pub fn new(population: Population, limit: Option<u64>) -> Self {
        let zero = || AtomicU64::new(0);
        let limit = limit.unwrap_or(u64::MAX);
        let (numbers, places, written) = (zero(), zero(), Written::default());
        Self { population, numbers, limit, places, stopped: AtomicBool::new(false), written }
    }

    /// The number of the next operation; None: there is none.
    pub fn permit(&self) -> Option<u64> {
        if self.is_stopped() {
            return None;
        }
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        (number < self.limit).then_some(number)
    }

    /// The partition of an operation; None once a sequence that does not wrap has ended.
    pub fn visit(&self, number: u64, is_write: bool) -> Option<Visit> {
        let (seed, place) = match &self.population {
            Population::Sequence { first, last, wrap, lookback } => {
                let seeds = (last - first + 1) as u64;
                let place = match lookback {
                    Some(lookback) if !is_write => self.written.before(lookback, number),
                    _ => self.places.fetch_add(1, Ordering::Relaxed),
                };
                (*wrap || place < seeds).then(|| (first + (place % seeds) as i64, place))?
            }
            Population::Drawn(distribution) => {
                (distribution.draw(number, &mut SmallRng::seed_from_u64(mix(number))), number)
            }
        };
        Some(Visit { seed: seed as u64, number, place, part: 0, parts: 1 })
    }

    /// Records that a partition has been written.
    pub fn wrote(&self, visit: &Visit) {
        if matches!(self.population, Population::Sequence { lookback: Some(_), .. }) {
            self.written.add(visit.place);
        }
    }

    /// Ends the source.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether the source was stopped before its end.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// How far the sequence has been written without a gap. The operations in flight bound what waits
/// behind a gap.
#[derive(Default)]
struct Written {
    count: AtomicU64,
    behind_a_gap: Mutex<BTreeSet<u64>>,
}

impl Written {
    fn add(&self, place: u64) {
        let mut waiting = self.behind_a_gap.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.insert(place);
        let mut count = self.count.load(Ordering::Relaxed);
        while waiting.first().is_some_and(|first| *first <= count) {
            count = count.max(waiting.pop_first().map_or(0, |first| first + 1));
        }
        self.count.store(count, Ordering::Relaxed);
    }

    /// The position a number of writes ago; if there were fewer, one of those.
    fn before(&self, lookback: &Distribution, number: u64) -> u64 {
        let count = self.count.load(Ordering::Relaxed);
        let back = lookback.draw_of(mix(number)).max(0) as u64;
        match count.checked_sub(back.max(1)) {
            Some(place) => place,
            None => back % count.max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(first: i64, last: i64, wrap: bool, lookback: Option<&str>) -> Population {
        let lookback = lookback.map(|text| Distribution::parse(text).expect("a distribution"));
        Population::Sequence { first, last, wrap, lookback }
    }

    fn next(source: &Source, is_write: bool) -> Option<u64> {
        Some(source.visit(source.permit()?, is_write)?.seed)
    }

    #[test]
    fn a_sequence_ends_at_its_count_or_where_it_may_not_begin_again() {
        let all = |wrap, limit| {
            let source = Source::new(sequence(5, 7, wrap, None), limit);
            std::iter::from_fn(|| next(&source, true)).collect::<Vec<u64>>()
        };
        assert_eq!(all(true, Some(5)), [5, 6, 7, 5, 6]);
        assert_eq!(all(false, None), [5, 6, 7]);
    }

    #[test]
    fn a_drawn_seed_follows_from_the_number() {
        let all = || {
            let source = Source::new(Population::Drawn(Distribution::uniform(1, 1000)), Some(50));
            std::iter::from_fn(|| next(&source, true)).collect::<Vec<u64>>()
        };
        assert_eq!(all(), all());
    }

    #[test]
    fn a_read_looks_back_at_what_has_been_written() {
        let source = Source::new(sequence(101, 200, true, Some("FIXED(2)")), None);
        let writes: Vec<Visit> = (0..10).filter_map(|number| source.visit(number, true)).collect();
        // all but the eighth have ended, so seven stand without a gap
        writes.iter().filter(|visit| visit.seed != 108).for_each(|visit| source.wrote(visit));
        assert_eq!(next(&source, false), Some(106));
        writes.iter().filter(|visit| visit.seed == 108).for_each(|visit| source.wrote(visit));
        assert_eq!(next(&source, false), Some(109));
    }
}
