//! SSTables that may be removed without being read: all of their data has expired or is a
//! tombstone past gc_grace, and none of it deletes data in other SSTables.
//!
//! 1. The SSTables of the compaction all of whose data may be purged (`max_local_deletion_time <
//!    gc_before`).
//! 2. Without those with a timestamp that is not older than all data that stays: in SSTables of
//!    the compaction that stay, in SSTables that overlap it, in memtables. Expired data in an
//!    overlapping SSTable does not count, as it needs nothing to hide it.
//!
//! Agrees with `org.apache.cassandra.db.compaction.CompactionController.getFullyExpiredSSTables`.

use super::{Candidate, State};

/// The SSTables of a compaction that may be removed without being read; `overlapping` are the
/// table's other SSTables that overlap them.
pub fn fully_expired(compacting: &[Candidate], overlapping: &[Candidate], state: &State<'_>) -> Vec<Candidate> {
    if !state.may_purge {
        return Vec::new();
    }
    let goes = |candidate: &&Candidate| candidate.max_local_deletion_time < state.gc_before;
    let stays = |candidate: &&Candidate| !goes(candidate);
    let staying = compacting.iter().chain(overlapping).filter(stays);
    let oldest = staying.map(|candidate| candidate.min_timestamp).min().unwrap_or(i64::MAX);
    let oldest = oldest.min(state.memtable_min_timestamp);
    compacting.iter().filter(goes).filter(|candidate| candidate.max_timestamp < oldest).copied().collect()
}

/// The expired SSTables among the free ones of a table, looked for at most every `every_millis`.
/// `first_at_once`: the first call looks at once.
pub fn find_periodically(
    state: &State<'_>,
    every_millis: u64,
    checked_at: &mut Option<u64>,
    first_at_once: bool,
) -> Vec<Candidate> {
    let since = match *checked_at {
        Some(at) => state.now_millis.saturating_sub(at),
        None if first_at_once => u64::MAX,
        None => 0,
    };
    if checked_at.is_none() || since > every_millis {
        *checked_at = Some(state.now_millis);
    }
    if since <= every_millis {
        return Vec::new();
    }
    let free = state.free();
    fully_expired(&free, &state.overlapping(&free), state)
}
