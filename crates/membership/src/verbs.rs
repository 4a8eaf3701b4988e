//! Messages of other nodes by their verb: the number that came in time, and that of those that
//! came too late.
//!
//! Agrees in role with `org.apache.cassandra.metrics.MessagingMetrics`.

use std::sync::atomic::{AtomicU64, Ordering};

use internode::Verb;

/// The counters of one verb.
#[derive(Default)]
struct VerbCounter {
    received: AtomicU64,
    dropped: AtomicU64,
}

/// The counters of all verbs.
pub(crate) struct VerbCounters(Vec<VerbCounter>);

/// The messages of one verb since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VerbCounts {
    /// The verb.
    pub verb: Verb,
    /// Messages that came in time.
    pub received: u64,
    /// Messages that came too late: their senders did not wait for an answer any more.
    pub dropped: u64,
}

impl Default for VerbCounters {
    fn default() -> Self {
        Self(Verb::ALL.iter().map(|_| VerbCounter::default()).collect())
    }
}

impl VerbCounters {
    /// The counters of a verb. Verbs ascend by their numbers.
    fn of(&self, verb: Verb) -> Option<&VerbCounter> {
        let position = Verb::ALL.binary_search_by_key(&verb.id(), |verb| verb.id()).ok()?;
        self.0.get(position)
    }

    /// Counts a message that has come in time.
    pub fn receive(&self, verb: Verb) {
        if let Some(counter) = self.of(verb) {
            counter.received.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a message that has come too late.
    pub fn drop(&self, verb: Verb) {
        if let Some(counter) = self.of(verb) {
            counter.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// All verbs in the order of their numbers.
    pub fn counts(&self) -> Vec<VerbCounts> {
        let counts = |(verb, counter): (&Verb, &VerbCounter)| VerbCounts {
            verb: *verb,
            received: counter.received.load(Ordering::Relaxed),
            dropped: counter.dropped.load(Ordering::Relaxed),
        };
        Verb::ALL.iter().zip(&self.0).map(counts).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verb_has_its_counters() {
        let counters = VerbCounters::default();
        for verb in Verb::ALL {
            counters.receive(*verb);
        }
        counters.drop(Verb::ReadReq);
        let counts = counters.counts();
        assert!(counts.iter().all(|of| of.received == 1), "{counts:?}");
        let dropped: Vec<Verb> = counts.iter().filter(|of| of.dropped > 0).map(|of| of.verb).collect();
        assert_eq!((dropped, counts.len()), (vec![Verb::ReadReq], Verb::ALL.len()));
    }
}
