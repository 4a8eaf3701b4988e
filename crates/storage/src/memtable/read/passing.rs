//! Passing over the tombstones of a memtable without taking them apart, for a read that only wants their number.
//!
//! Those that were taken already are passed first. Behind them tombstones are passed where they lie, inside the door, a batch at a time:
//! rows up to the next cut that was taken, cuts up to the next row.

use std::ops::Bound::{Excluded, Included};

use bytes::Bytes;
use rows::DeletionTime;
use rows::codec::{Header, deletion_of_row};
use rows::range_tombstones::CutKey;
use types::DecoratedKey;

use super::{BATCH_ROWS, SliceCursor, turn};
use crate::memtable::Memtable;
use crate::memtable::partition::MemtablePartition;

impl SliceCursor {
    /// Passes over tombstones that stand next in the slice, at most `most`; gives how many a read would have been given.
    pub(super) fn pass_tombstones(
        &mut self,
        memtable: &Memtable,
        key: &DecoratedKey,
        deletion: &DeletionTime,
        most: u64,
    ) -> u64 {
        let passed = self.pass_taken(&memtable.header, deletion, most);
        let rows_next = self.rows.is_empty() && !self.rows_done && (self.changes_done || !self.changes.is_empty());
        let cuts_next = self.changes.is_empty() && !self.changes_done && (self.rows_done || !self.rows.is_empty());
        if passed == most || !(rows_next || cuts_next) {
            return passed;
        }
        let batch = usize::try_from(most - passed).unwrap_or(usize::MAX).min(BATCH_ROWS);
        let contents = memtable.enter();
        let Some(partition) = contents.partitions.get(key) else { return passed };
        passed
            + if rows_next {
                self.pass_rows(partition, &memtable.header, deletion, batch)
            } else {
                self.pass_cuts(partition, deletion, batch)
            }
    }

    fn pass_taken(&mut self, header: &Header, deletion: &DeletionTime, most: u64) -> u64 {
        let mut passed = 0;
        while passed < most && (!self.rows.is_empty() || !self.changes.is_empty()) {
            // an empty queue says nothing about what comes before the other
            if self.rows.is_empty() && !self.rows_done || self.changes.is_empty() && !self.changes_done {
                break;
            }
            if self.is_row_first() {
                let Some(of_row) = self.rows.front().and_then(|(_, bytes)| deletion_of_row(bytes, header)) else {
                    break;
                };
                self.rows.pop_front();
                passed += u64::from(self.shows(&of_row, deletion));
            } else if let Some(change) = self.changes.pop_front() {
                passed += u64::from(turn(&mut self.open, change.next, deletion).is_some());
            }
        }
        passed
    }

    /// A row that this deletes is not itself deleted by what is around it.
    fn shows(&self, of_row: &DeletionTime, partition: &DeletionTime) -> bool {
        of_row.supersedes(&self.open.merge(*partition))
    }

    /// Passes rows that were not taken, up to a cut that was.
    fn pass_rows(
        &mut self,
        partition: &MemtablePartition,
        header: &Header,
        deletion: &DeletionTime,
        batch: usize,
    ) -> u64 {
        let Some((mut start, mut end)) = self.rows_left() else { return 0 };
        match self.changes.front() {
            Some(change) if self.reversed => start = Excluded(&change.key),
            Some(change) => end = &change.key,
            None => {}
        }
        let (Included(first) | Excluded(first)) = start else { return 0 };
        if first >= end {
            return 0;
        }
        let range = partition.rows.range::<CutKey, _>((start, Excluded(end)));
        let (mut passed, mut last): (_, Option<&CutKey>) = (0, None);
        let mut pass = |(key, bytes)| -> bool {
            let bytes: &Bytes = bytes;
            let Some(of_row) = deletion_of_row(bytes, header) else { return false };
            passed += u64::from(self.shows(&of_row, deletion));
            last = Some(key);
            true
        };
        if self.reversed {
            let _ = range.rev().take(batch).all(&mut pass);
        } else {
            let _ = range.take(batch).all(&mut pass);
        }
        if let Some(last) = last.cloned() {
            self.rows_from = Some(last);
        }
        passed
    }

    /// Passes cuts that were not taken, up to a row that was.
    fn pass_cuts(&mut self, partition: &MemtablePartition, deletion: &DeletionTime, batch: usize) -> u64 {
        let Some(from) = &self.changes_from else { return 0 };
        let (mut start, mut end) = if self.reversed { (&self.start_key, from) } else { (from, &self.end_key) };
        match self.rows.front() {
            Some((Some(row), _)) if self.reversed => start = row,
            Some((Some(row), _)) => end = row,
            Some((None, _)) => return 0,
            None => {}
        }
        let (mut passed, mut last) = (0, None);
        for met in partition.tombstones.walk(start, end, self.reversed).take(batch) {
            passed += u64::from(turn(&mut self.open, met.next, deletion).is_some());
            last = Some(met.key);
        }
        if let Some(last) = last.cloned() {
            self.changes_from = Some(last);
        }
        passed
    }
}
