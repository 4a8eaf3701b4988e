//! Truncations of a table that are under way: each has made a cut, and removes the rows that the
//! table had then. SSTables that have come into the view since must stay.
//!
//! While there is a cut no compaction of the table begins. Otherwise rows from before and after
//! the cut could come into one SSTable. A compaction that is under way only has inputs from before
//! the cut.
//!
//! Rows of another node come long after they were read there. A receiver remembers the
//! [`TruncationEpoch`] at which it was told of them, and asks what truncations have done since
//! ([`Truncations::truncation_effect`]).

use std::collections::BTreeSet;
use std::sync::Arc;

use sstable::{Descriptor, SSTable};

use super::view::FlushSet;

/// The number of the last truncation that was begun before some moment. The truncations of all
/// tables are numbered together, ascending, since the start of the process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct TruncationEpoch(pub(crate) u64);

/// The effect of the truncations that have begun after a moment on the rows of a table from before
/// it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TruncationEffect {
    /// No truncation has begun that could still remove the rows, or has removed them.
    Nothing,
    /// A truncation is under way. It may fail, and leaves the rows then.
    Begun,
    /// A truncation removes the rows, or has removed them. This stays so.
    Removed,
}

/// The cuts of a table; part of [`super::Changes`].
#[derive(Default)]
pub struct Truncations {
    truncations: Vec<NumberedTruncation>,
    /// The greatest number of a cut for which SSTables were, or are about to be, removed; 0: there
    /// is none.
    decided: u64,
}

struct NumberedTruncation {
    number: u64,
    /// The last memtables from before the cut; None: all rows were in SSTables.
    last: Option<Arc<FlushSet>>,
    /// SSTables that have no rows from before the cut.
    since: BTreeSet<Descriptor>,
}

impl Truncations {
    /// Makes a cut behind these memtables, which are frozen. The caller holds
    /// `TableStore::flushing`, so no flush of later memtables has ended, and has taken the number
    /// under that lock.
    pub fn begin(&mut self, number: u64, last: Option<Arc<FlushSet>>) {
        assert!(self.truncations.iter().all(|cut| cut.number < number), "cuts of a table are numbered in their order");
        assert!(self.decided < number, "no SSTable from before a cut is removed before the cut is made");
        self.truncations.push(NumberedTruncation { number, last, since: BTreeSet::new() });
    }

    /// Called when SSTables from before a cut are about to be removed. From now on no rows from
    /// before the cut come into the view.
    pub fn decide(&mut self, number: u64) {
        assert!(self.truncations.iter().any(|cut| cut.number == number), "what is removed is from before a cut");
        self.decided = self.decided.max(number);
    }

    /// The effect of truncations on rows from before a moment.
    pub fn truncation_effect(&self, moment: TruncationEpoch) -> TruncationEffect {
        if self.decided > moment.0 {
            return TruncationEffect::Removed;
        }
        match self.truncations.iter().any(|cut| cut.number > moment.0) {
            true => TruncationEffect::Begun,
            false => TruncationEffect::Nothing,
        }
    }

    /// Called when the truncation has ended.
    pub fn end(&mut self, number: u64) {
        let before = self.truncations.len();
        self.truncations.retain(|cut| cut.number != number);
        let was_there = self.truncations.len() + 1 == before;
        // where a panic drops the truncation, another panic would abort the process
        assert!(was_there || std::thread::panicking(), "a truncation ends once");
    }

    /// Whether no truncation is under way.
    pub fn is_empty(&self) -> bool {
        self.truncations.is_empty()
    }

    /// Whether an SSTable may hold rows from before a cut.
    pub fn is_before(&self, number: u64, sstable: &SSTable) -> bool {
        self.truncations.iter().any(|cut| cut.number == number && !cut.since.contains(sstable.descriptor()))
    }

    /// Notes SSTables that a flush has written. `flushing` are the memtables that were waiting when
    /// it ended, its own included. Flushes end in the order of the log, so the flush is of
    /// memtables from before a cut as long as the last of these are waiting.
    pub(super) fn note_flushed(&mut self, flushing: &[Arc<FlushSet>], flushed: &[Arc<SSTable>]) {
        for cut in &mut self.truncations {
            let is_before = |last: &Arc<FlushSet>| flushing.iter().any(|set| Arc::ptr_eq(set, last));
            if !cut.last.as_ref().is_some_and(is_before) {
                cut.since.extend(descriptors(flushed).cloned());
            }
        }
    }

    /// Notes SSTables of another node, whose rows are from before a moment: the truncations that
    /// have begun since remove them too.
    pub(super) fn note_received(&mut self, new: &[Arc<SSTable>], announced: TruncationEpoch) {
        for cut in self.truncations.iter_mut().filter(|cut| cut.number <= announced.0) {
            cut.since.extend(descriptors(new).cloned());
        }
    }

    /// Notes SSTables that take the place of others. No others: an operator has imported them now.
    pub(super) fn note_replaced(&mut self, old: &[Arc<SSTable>], new: &[Arc<SSTable>]) {
        for cut in &mut self.truncations {
            if descriptors(old).all(|old| cut.since.contains(old)) {
                cut.since.extend(descriptors(new).cloned());
            }
        }
    }
}

fn descriptors(sstables: &[Arc<SSTable>]) -> impl Iterator<Item = &Descriptor> {
    sstables.iter().map(|sstable| sstable.descriptor())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of truncations, and the effect on rows from before the moment 3 behind each.
    #[test]
    fn rows_from_before_a_moment_follow_the_truncations_behind_it() {
        type Step = fn(&mut Truncations);
        let steps: [(Step, TruncationEffect); 7] = [
            (|cuts| cuts.begin(2, None), TruncationEffect::Nothing),
            (|cuts| cuts.decide(2), TruncationEffect::Nothing),
            (|cuts| cuts.begin(5, None), TruncationEffect::Begun),
            (|cuts| cuts.end(5), TruncationEffect::Nothing),
            (|cuts| cuts.begin(6, None), TruncationEffect::Begun),
            (|cuts| cuts.decide(6), TruncationEffect::Removed),
            (|cuts| cuts.end(6), TruncationEffect::Removed),
        ];
        let mut cuts = Truncations::default();
        for (at, (step, expected)) in steps.into_iter().enumerate() {
            step(&mut cuts);
            assert_eq!(cuts.truncation_effect(TruncationEpoch(3)), expected, "step {at}");
        }
        assert_eq!(
            cuts.truncation_effect(TruncationEpoch(6)),
            TruncationEffect::Nothing,
            "rows from behind the last truncation"
        );
    }
}
