//! Passing over the tombstones of a memtable without taking them apart, for a read that only wants
//! their number.
//!
//! Tombstones that were taken already are passed first. Those behind them are passed in the
//! memtable itself, while the door is held, some blocks at a time: rows up to the next cut that
//! was taken, cuts up to the next row. The entries of a block that is passed whole are not looked
//! at.

use std::ops::Bound::{Excluded, Included};

use rows::codec::{Header, deletion_of_row};
use rows::range_tombstones::CutKey;
use rows::{DeletionTime, RangeTombstoneList};
use stdx::block_map::{BLOCK_MAX, Part};

use super::overlay::Overlay;
use super::{SliceCursor, Source, turn};
use crate::table::memtable::partition::{KeptRow, MemtablePartition};

/// Most rows, cuts and blocks of them that are looked at in one entry of the door.
const LOOKS_MAX: usize = 256;

impl SliceCursor {
    /// Passes at most `most` tombstones that come next in the slice; gives the number that a read
    /// would have been given.
    pub(super) fn pass_tombstones(&mut self, source: &mut Source, most: u64) -> u64 {
        let deletion = source.deletion;
        let passed = self.pass_taken(&source.memtable.header, &deletion, most);
        let rows_next = self.rows.is_empty() && !self.rows_done && (self.changes_done || !self.changes.is_empty());
        let cuts_next = self.changes.is_empty() && !self.changes_done && (self.rows_done || !self.rows.is_empty());
        if passed == most || !(rows_next || cuts_next) {
            return passed;
        }
        let mut contents = source.memtable.enter();
        source.overlay.catch_up(&mut contents, &source.key, |key| self.is_ahead(key));
        let Some(partition) = contents.partitions.get(&source.key) else { return passed };
        passed
            + if rows_next {
                self.pass_rows(partition, &source.overlay, &deletion, most - passed)
            } else {
                self.pass_cuts(source.overlay.tombstones(partition), &deletion, most - passed)
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

    /// Whether a read is given a row with this deletion: the deletions around it do not delete the
    /// row.
    fn shows(&self, of_row: &DeletionTime, partition: &DeletionTime) -> bool {
        of_row.supersedes(&self.open.merge(*partition))
    }

    /// Passes rows that were not taken, up to a cut that was, or to a row that was replaced.
    fn pass_rows(
        &mut self,
        partition: &MemtablePartition,
        overlay: &Overlay,
        deletion: &DeletionTime,
        most: u64,
    ) -> u64 {
        let Some((mut start, mut end)) = self.rows_left() else { return 0 };
        match self.changes.front() {
            Some(change) if self.reversed => start = Excluded(&*change.key),
            Some(change) => end = &*change.key,
            None => {}
        }
        let (Included(first) | Excluded(first)) = start else { return 0 };
        if first >= end {
            return 0;
        }
        let around = self.open.merge(*deletion);
        let mut pass = PassRows { overlay, around, reversed: self.reversed, most, passed: 0, looks: 0 };
        let mut parts = partition.rows.parts(start, Excluded(end));
        let mut last = None;
        while let Some(part) = if self.reversed { parts.next_back() } else { parts.next() } {
            let (edge, goes_on) = pass.part(&part);
            last = edge.or(last);
            if !goes_on {
                break;
            }
        }
        if let Some(last) = last.cloned() {
            self.rows_from = Some(last);
        }
        pass.passed
    }

    /// Passes cuts that were not taken, up to a row that was.
    fn pass_cuts(&mut self, tombstones: &RangeTombstoneList, deletion: &DeletionTime, most: u64) -> u64 {
        let Some(from) = &self.changes_from else { return 0 };
        let (mut start, mut end) = if self.reversed { (&self.start_key, from) } else { (from, &self.end_key) };
        match self.rows.front() {
            Some((Some(row), _)) if self.reversed => start = row,
            Some((Some(row), _)) => end = row,
            Some((None, _)) => return 0,
            None => {}
        }
        let limit = |most_at_once: usize| usize::try_from(most).unwrap_or(usize::MAX).min(most_at_once);
        let (mut passed, mut last) = (0, None);
        if deletion.is_live() {
            // at each something changes
            let (count, met) = tombstones.pass(start, end, self.reversed, limit(LOOKS_MAX * BLOCK_MAX));
            (passed, last) = (count as u64, met);
        } else {
            for met in tombstones.walk(start, end, self.reversed).take(limit(LOOKS_MAX)) {
                passed += u64::from(turn(&mut self.open, met.next, deletion).is_some());
                last = Some((met.key, met.next));
            }
        }
        if let Some((key, beyond)) = last {
            self.open = beyond;
            self.changes_from = Some(key.clone());
        }
        passed
    }
}

/// A pass over rows that were not taken.
struct PassRows<'o> {
    overlay: &'o Overlay,
    /// The range deletion in which the rows lie.
    around: DeletionTime,
    reversed: bool,
    most: u64,
    passed: u64,
    looks: usize,
}

impl PassRows<'_> {
    /// Passes rows side by side. Gives the key of the last, and whether those behind them may be
    /// passed.
    fn part<'a>(&mut self, part: &Part<'a, KeptRow>) -> (Option<&'a CutKey>, bool) {
        let mut rows = part.entries.iter();
        let count = rows.len();
        self.looks += 1;
        if count as u64 <= self.most - self.passed
            && part.sum.is_some_and(|sum| sum.are_tombstones_above(count, &self.around))
            && !self.has_replaced(part)
        {
            self.passed += count as u64;
            let last = if self.reversed { rows.next() } else { rows.next_back() };
            return (last.map(|(key, _)| key), self.looks < LOOKS_MAX);
        }
        let mut last = None;
        while let Some((key, row)) = if self.reversed { rows.next_back() } else { rows.next() } {
            if row.tombstone.is_live() || self.passed == self.most || self.looks >= LOOKS_MAX {
                return (last, false);
            }
            if self.overlay.has_replaced(key, key) {
                return (last, false);
            }
            self.looks += 1;
            self.passed += u64::from(row.tombstone.supersedes(&self.around));
            last = Some(key);
        }
        (last, true)
    }

    /// Whether one of the rows is not what it was at the first entry.
    fn has_replaced(&self, part: &Part<'_, KeptRow>) -> bool {
        let (Some((first, _)), Some((last, _))) = (part.entries.first(), part.entries.last()) else { return false };
        self.overlay.has_replaced(first, last)
    }
}
