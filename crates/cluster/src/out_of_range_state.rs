//! The settings and counts of requests of other nodes for tokens that this node has no copy of.
//! State only: the verbs are in [`crate::out_of_range`].

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use metrics::Counter;
use schema::Schema;

use crate::log_limiter::LogLimiter;

/// The requests that are about one token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RequestKind {
    /// A read of a partition, for which a copy has to be complete.
    Read,
    /// A mutation, an increment or a read repair. A node that is about to get the range takes them.
    Write,
    /// A prepare or a proposal of Paxos v1.
    Paxos,
}

impl RequestKind {
    pub fn place(self) -> usize {
        self as usize
    }

    /// The requests in the words of Cassandra's line.
    pub fn words(self) -> &'static str {
        match self {
            Self::Read => "read(s)",
            Self::Write => "mutation(s)",
            Self::Paxos => "Paxos operation(s)",
        }
    }
}

/// Requests for tokens of others since the start: reads, writes, requests of Paxos.
pub type OutOfRangeCounts = [u64; 3];

/// The settings, the counts and the last lines.
#[derive(Default)]
pub(crate) struct OutOfRangeRequests {
    /// `log_out_of_token_range_requests`.
    pub logs: AtomicBool,
    /// `reject_out_of_token_range_requests`.
    pub refuses: AtomicBool,
    /// All requests that were foreign, those for ranges among them.
    pub total: Counter,
    /// Counts by keyspace. Only keyspaces that exist have an entry, and that of a dropped one is
    /// removed, so their number is bounded.
    counts: Mutex<BTreeMap<String, OutOfRangeCounts>>,
    /// The last line of each kind of [`RequestKind`], of hints, and of streamed partitions.
    pub log_limiters: [LogLimiter; 5],
}

/// The place of hints in [`OutOfRangeRequests::log_limiters`].
pub(crate) const HINTS: usize = 3;
/// The place of streamed partitions in [`OutOfRangeRequests::log_limiters`].
pub(crate) const STREAMED: usize = 4;

impl OutOfRangeRequests {
    /// The counts, under their lock, which is held for bounded work only.
    pub fn counts(&self) -> MutexGuard<'_, BTreeMap<String, OutOfRangeCounts>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the counts of keyspaces that are not there any more.
    pub fn follow(&self, schema: &Schema) {
        self.counts().retain(|name, _| schema.keyspace(name).is_some());
    }

    /// Whether foreign requests are told in the log.
    pub fn logs(&self) -> bool {
        self.logs.load(Ordering::Relaxed)
    }

    /// Whether foreign requests are refused.
    pub fn refuses(&self) -> bool {
        self.refuses.load(Ordering::Relaxed)
    }
}
