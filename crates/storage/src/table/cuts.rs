//! Truncations of a table that are under way: each has made a cut, and takes away what the table
//! had by then. An SSTable that has come into the view since is not the truncation's to remove.
//!
//! While a cut is there no compaction of the table begins, otherwise rows from before and after the
//! cut would meet in one SSTable. One that is under way has inputs from before the cut alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use sstable::{Descriptor, SSTable};

use super::view::FlushSet;

/// The cuts of a table; part of [`super::Changes`].
#[derive(Default)]
pub struct Cuts {
    cuts: Vec<Cut>,
    /// The number of the last cut.
    last_number: u64,
}

struct Cut {
    number: u64,
    /// The last memtables from before the cut; None: all rows were in SSTables.
    last: Option<Arc<FlushSet>>,
    /// SSTables that hold nothing from before the cut.
    since: BTreeSet<Descriptor>,
}

impl Cuts {
    /// Makes a cut behind these memtables, which are frozen. Gives its number. The caller holds
    /// `TableStore::flushing`, so no flush of later memtables has ended.
    pub fn begin(&mut self, last: Option<Arc<FlushSet>>) -> u64 {
        self.last_number += 1;
        self.cuts.push(Cut { number: self.last_number, last, since: BTreeSet::new() });
        self.last_number
    }

    /// The truncation has ended.
    pub fn end(&mut self, number: u64) {
        let before = self.cuts.len();
        self.cuts.retain(|cut| cut.number != number);
        assert_eq!(self.cuts.len() + 1, before, "a truncation ends once");
    }

    /// No truncation is under way.
    pub fn is_empty(&self) -> bool {
        self.cuts.is_empty()
    }

    /// Whether an SSTable may hold rows from before a cut.
    pub fn is_before(&self, number: u64, sstable: &SSTable) -> bool {
        self.cuts.iter().any(|cut| cut.number == number && !cut.since.contains(sstable.descriptor()))
    }

    /// Notes SSTables that a flush has written. `flushing` are the memtables that were waiting when
    /// it ended, its own included. Flushes end in the order of the log, so the flush is of
    /// memtables from before a cut as long as the last of these are waiting.
    pub(super) fn note_flushed(&mut self, flushing: &[Arc<FlushSet>], flushed: &[Arc<SSTable>]) {
        for cut in &mut self.cuts {
            let is_before = |last: &Arc<FlushSet>| flushing.iter().any(|set| Arc::ptr_eq(set, last));
            if !cut.last.as_ref().is_some_and(is_before) {
                cut.since.extend(descriptors(flushed).cloned());
            }
        }
    }

    /// Notes SSTables that take the place of others; of none: they come from elsewhere.
    pub(super) fn note_replaced(&mut self, old: &[Arc<SSTable>], new: &[Arc<SSTable>]) {
        for cut in &mut self.cuts {
            if descriptors(old).all(|old| cut.since.contains(old)) {
                cut.since.extend(descriptors(new).cloned());
            }
        }
    }
}

fn descriptors(sstables: &[Arc<SSTable>]) -> impl Iterator<Item = &Descriptor> {
    sstables.iter().map(|sstable| sstable.descriptor())
}
