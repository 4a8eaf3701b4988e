//! SSTables that may go as they are, unread: all in them has expired or is a tombstone past
//! gc_grace, and none of it deletes anything outside.
//!
//! 1. Those of the compaction of which the last may go (`max_local_deletion_time < gc_before`).
//! 2. Less those with a timestamp that is not older than all that stays: in SSTables of the
//!    compaction that do not go, in SSTables that overlap it, in memtables. What has expired in an
//!    overlapping SSTable does not count, as it needs nothing to hide it.
//!
//! Agrees with `org.apache.cassandra.db.compaction.CompactionController.getFullyExpiredSSTables`.

use super::{Candidate, State};

/// Of the SSTables of a compaction, those that may go unread; `overlapping` are the table's other
/// SSTables that overlap them.
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
/// `first_at_once`: also the first time.
pub fn now_and_then(
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
