//! Figures of the conditional statements and reads at SERIAL that this node coordinated.
//!
//! Agrees with `org.apache.cassandra.metrics.CASClientRequestMetrics` and
//! `CASClientWriteRequestMetrics`.

use std::time::Duration;

use metrics::{Counter, Histogram};

/// The figures of a node.
#[derive(Default)]
pub struct CasMetrics {
    /// Conditional writes.
    pub write: CasFigures,
    /// Reads at SERIAL and LOCAL_SERIAL.
    pub read: CasFigures,
    /// Conditional writes whose condition did not hold.
    pub conditions_not_met: Counter,
}

/// The figures of one kind of statement in a ring.
#[derive(Default)]
pub struct CasFigures {
    /// How long each statement took, microseconds.
    pub latency: Histogram,
    /// How often a statement was overtaken by another one; statements that were not are left out.
    pub contention: Histogram,
    /// Changes of other statements that were found and finished.
    pub unfinished_commits: Counter,
    /// Statements of which it is not known whether they have been decided.
    pub unknown_results: Counter,
}

impl CasFigures {
    /// Counts a statement, which has ended. `is_unknown`: it is not known whether it was decided.
    pub(crate) fn record(&self, took: Duration, contentions: u32, is_unknown: bool) {
        self.latency.record(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        if contentions > 0 {
            self.contention.record(u64::from(contentions));
        }
        if is_unknown {
            self.unknown_results.add(1);
        }
    }
}
