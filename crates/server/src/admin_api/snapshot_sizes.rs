//! Sizes of the tables' snapshots, as the figures of tables tell them.
//!
//! To know them the directories of all snapshots are listed and each file is looked up, which
//! takes seconds where there are many, and hangs with a disk that stalls. `/metrics` asks every
//! few seconds. So the sizes are remembered for [`VALID`], and while one call reads them again,
//! the others are told those that are known: otherwise the calls of a scraper would take all
//! threads for calls of operators while a disk stalls, and probes would not be answered.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use env::Instant;
use schema::TableId;

/// For how long sizes are told without a look at the disk.
const VALID: Duration = Duration::from_secs(60);

/// Bytes that only snapshots keep, by table.
pub(super) type Sizes = BTreeMap<TableId, u64>;

/// The sizes that were read last.
#[derive(Default)]
pub(super) struct SnapshotSizes(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// The sizes; None: they were not read yet.
    sizes: Option<Sizes>,
    /// When a call began to read the sizes; None: they are out of date.
    read_at: Option<Instant>,
    /// Whether a call reads them now.
    is_being_read: bool,
    /// How often an operator has changed snapshots since the start.
    changes: u64,
}

impl SnapshotSizes {
    /// The sizes. Reads them if those that are known are too old and no other call reads them, or
    /// if none are known.
    pub(super) fn get(&self, now: Instant, read: impl FnOnce() -> Sizes) -> Sizes {
        let mut known = self.known();
        let is_recent = known.read_at.is_some_and(|at| now.since(at) < VALID);
        if let Some(sizes) = known.sizes.as_ref().filter(|_| is_recent || known.is_being_read) {
            return sizes.clone();
        }
        known.is_being_read = true;
        let changes = known.changes;
        drop(known);
        let reading = Reading(self);
        let sizes = read();
        let mut known = self.known();
        known.sizes = Some(sizes.clone());
        // what has changed meanwhile may be missing
        known.read_at = (known.changes == changes).then_some(now);
        drop(known);
        drop(reading);
        sizes
    }

    /// An operator has taken or cleared snapshots: the next call reads the sizes again.
    pub(super) fn forget(&self) {
        let mut known = self.known();
        known.read_at = None;
        known.changes += 1;
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The turn of a call that reads the sizes; ends when dropped, after a panic too.
struct Reading<'a>(&'a SnapshotSizes);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.known().is_being_read = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(0).plus(Duration::from_secs(seconds))
    }

    fn sizes(bytes: u64) -> Sizes {
        [(TableId([1; 16]), bytes)].into()
    }

    #[test]
    fn the_disk_is_looked_at_once_a_minute() {
        let known = SnapshotSizes::default();
        assert_eq!(known.get(at(0), || sizes(1)), sizes(1));
        assert_eq!(known.get(at(59), || unreachable!("they are recent")), sizes(1));
        assert_eq!(known.get(at(60), || sizes(2)), sizes(2));
        known.forget();
        assert_eq!(known.get(at(61), || sizes(3)), sizes(3), "an operator sees what he has done");
    }

    /// A disk stalls: one call waits for it, and the others do not.
    #[test]
    fn one_call_reads_and_the_others_are_told_what_is_known() {
        let known = SnapshotSizes::default();
        known.get(at(0), || sizes(1));
        let read = || {
            assert_eq!(known.get(at(100), || unreachable!("another call reads")), sizes(1));
            known.forget();
            sizes(2)
        };
        assert_eq!(known.get(at(90), read), sizes(2));
        assert_eq!(known.get(at(101), || sizes(3)), sizes(3), "snapshots were changed during the read");
    }
}
