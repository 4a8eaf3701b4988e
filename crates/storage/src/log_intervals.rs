//! Intervals of the commit log. The records of a table inside them are in its SSTables and need no
//! replay.
//!
//! An SSTable's Statistics.db names the intervals that its flush covered, and the host id of the
//! node: intervals of another node are about another log. Both ends belong to an interval; the
//! position of a record is its end. Agrees with
//! `org.apache.cassandra.db.commitlog.{IntervalSet,CommitLogReplayer.persistedIntervals}`.

use std::sync::Arc;

use sstable::{CommitLogPosition, SSTable, Stats};

use crate::commitlog::LogPosition;

/// An interval, both ends included.
pub type Interval = (CommitLogPosition, CommitLogPosition);

/// The union of intervals, as intervals in order that do not touch each other.
pub fn union(mut intervals: Vec<Interval>) -> Vec<Interval> {
    intervals.retain(|(from, to)| from <= to);
    intervals.sort_unstable();
    let mut merged: Vec<Interval> = Vec::with_capacity(intervals.len());
    for (from, to) in intervals {
        match merged.last_mut() {
            Some((_, last)) if from <= *last => *last = to.max(*last),
            _ => merged.push((from, to)),
        }
    }
    assert!(merged.windows(2).all(|pair| pair[0].1 < pair[1].0), "intervals of the log ascend and are apart");
    merged
}

/// The intervals of this node's log whose records the SSTables of a table have.
pub fn persisted(sstables: &[Arc<SSTable>], host: Option<[u8; 16]>) -> Vec<Interval> {
    of(sstables.iter().map(|sstable| &sstable.statistics().stats), host)
}

/// The intervals of this node's log in the statistics of a table's SSTables.
pub fn of<'a>(stats: impl Iterator<Item = &'a Stats>, host: Option<[u8; 16]>) -> Vec<Interval> {
    let own = stats.filter(|stats| host.is_some() && stats.originating_host == host);
    union(own.flat_map(|stats| stats.commit_log_intervals.iter().copied()).collect())
}

/// The end of the last interval; None: there is none.
pub fn end(intervals: &[Interval]) -> Option<LogPosition> {
    let last = intervals.iter().map(|(_, to)| *to).max()?;
    Some(LogPosition { segment: u64::try_from(last.segment).ok()?, offset: u32::try_from(last.offset).ok()? })
}

/// Whether a record lies in one of the intervals, which are in order.
pub fn contains(intervals: &[Interval], position: LogPosition) -> bool {
    let Ok(segment) = i64::try_from(position.segment) else { return false };
    let at = CommitLogPosition { segment, offset: i32::try_from(position.offset).unwrap_or(i32::MAX) };
    let after = intervals.partition_point(|(from, _)| *from <= at);
    after.checked_sub(1).and_then(|index| intervals.get(index)).is_some_and(|(_, to)| at <= *to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(segment: i64, offset: i32) -> CommitLogPosition {
        CommitLogPosition { segment, offset }
    }

    #[test]
    fn intervals_that_touch_are_one() {
        let all = vec![(at(2, 5), at(2, 9)), (at(1, 0), at(1, 7)), (at(1, 7), at(2, 1)), (at(3, 9), at(3, 8))];
        let merged = union(all);
        assert_eq!(merged, [(at(1, 0), at(2, 1)), (at(2, 5), at(2, 9))]);
        let is_in = |segment, offset| contains(&merged, LogPosition { segment, offset });
        assert!(is_in(1, 0) && is_in(1, 9) && is_in(2, 1) && is_in(2, 5) && is_in(2, 9));
        assert!(!is_in(0, 9) && !is_in(2, 2) && !is_in(2, 10) && !is_in(9, 0));
    }
}
