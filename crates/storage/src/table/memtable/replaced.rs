//! Notes of the rows and ranges that writes replace in a partition while reads of it go on: a read
//! that enters the door several times sees the partition as it was at its first entry.
//!
//! 1. A read that will enter again begins to watch its partition inside of the door
//!    ([`Watched::watch`]).
//! 2. A write to a watched partition notes each row as it was before, and the range tombstones once
//!    for the reads that have begun since they were noted last ([`Watched::note`]). The rows are
//!    slices of the arena: nothing is copied. A write finds no partition watched by one look at an
//!    empty list.
//! 3. A read that enters again takes what was noted since ([`Watched::since`]), and shows that
//!    instead of what is there now.
//!
//! A read that ends says nothing: the next write or the next read that watches finds the partition
//! without readers and forgets it. The number of partitions is bounded by the reads that go on at a
//! time, each of which has a thread. [`NOTES_MAX`] notes of [`NOTED_BYTES_MAX`] bytes are kept of a
//! partition; a read that was away while more were made has lost them, and watches the partition
//! anew from then on.

use std::collections::VecDeque;
use std::ops::Bound::Included;
use std::sync::Arc;

use bytes::Bytes;
use rows::range_tombstones::put_prefix_key;
use rows::{PartitionUpdate, PrefixKind, RangeTombstoneList};
use schema::TableMetadata;
use stdx::block_map::Key;
use types::DecoratedKey;

use super::partition::MemtablePartition;

/// Most notes that are kept of one partition: 300 KB, where clusterings are short. The oldest goes.
pub(super) const NOTES_MAX: usize = 4096;
/// Most bytes of the notes that are kept of one partition, without those in the arena: clusterings
/// may be long, and each copy of the deleted ranges may have [`NOTED_CUTS_MAX`] cuts.
const NOTED_BYTES_MAX: usize = 1 << 20;
/// Most cuts of range tombstones that are noted. They are copied inside of the door, which takes
/// a tenth of a millisecond for so many. Where there are more, the reads of the partition lose what
/// was noted.
const NOTED_CUTS_MAX: usize = 1024;

/// A part of a partition as it was before a write.
pub(super) enum Replaced {
    /// A row, in serial form; None: there was none.
    Row(Key, Option<Bytes>),
    /// The deleted ranges.
    Tombstones(Arc<RangeTombstoneList>),
}

impl Replaced {
    /// Bytes of the note, without those in the arena.
    pub fn size(&self) -> usize {
        let on_heap = match self {
            Self::Row(key, _) if key.spilled() => key.len(),
            Self::Row(..) => 0,
            Self::Tombstones(tombstones) => tombstones.memory_size(),
        };
        size_of::<Self>() + on_heap
    }
}

/// The partitions of a memtable that are watched by reads.
#[derive(Default)]
pub(super) struct Watched(Vec<WatchedPartition>);

/// A read that watches a partition.
pub(super) struct Watch {
    /// The number of the first note that the read has not taken.
    next: u64,
    /// Shared by the partition and the reads that watch it.
    _reads: Arc<()>,
}

struct WatchedPartition {
    key: DecoratedKey,
    /// Held by each read that watches the partition, too.
    reads: Arc<()>,
    notes: VecDeque<Replaced>,
    /// The sum of the sizes of `notes`.
    bytes: usize,
    /// The number of the first of `notes`. Numbers ascend by one.
    first: u64,
    /// The number that the next note had when the last read began to watch.
    last_watch: u64,
    /// The number of the last note of range tombstones; None: there was none.
    last_tombstones: Option<u64>,
}

impl Watched {
    /// Whether no partition is watched. A partition whose reads have ended may still count.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Begins to watch a partition: what is written from now on is noted.
    pub fn watch(&mut self, key: &DecoratedKey) -> Watch {
        self.0.retain(WatchedPartition::is_read);
        let at = self.0.iter().position(|watched| watched.key == *key).unwrap_or_else(|| {
            self.0.push(WatchedPartition::new(key.clone()));
            self.0.len() - 1
        });
        let watched = self.0.get_mut(at).expect("it was found or added");
        watched.last_watch = watched.end();
        Watch { next: watched.end(), _reads: Arc::clone(&watched.reads) }
    }

    /// Notes what an update is going to replace, if its partition is watched.
    #[cold]
    pub fn note(&mut self, update: &PartitionUpdate, table: &TableMetadata, partition: &MemtablePartition) {
        self.0.retain(WatchedPartition::is_read);
        let Some(watched) = self.0.iter_mut().find(|watched| watched.key == update.key) else { return };
        if !update.range_deletions.is_empty() {
            watched.note_tombstones(partition.tombstones());
        }
        let mut key = Vec::new();
        for row in &update.rows {
            key.clear();
            put_prefix_key(&mut key, &table.comparator, &row.clustering, PrefixKind::Clustering);
            let found = partition.rows.range(Included(key.as_slice()), Included(key.as_slice())).next();
            let before = found.map(|(_, row)| row.bytes.clone());
            watched.push(Replaced::Row(Key::from_slice(&key), before));
        }
    }

    /// Gives the notes that a read has not taken, in the order in which they were made. False: some
    /// of them are lost.
    pub fn since(&self, watch: &mut Watch, key: &DecoratedKey, take: impl FnMut(&Replaced)) -> bool {
        let Some(watched) = self.0.iter().find(|watched| watched.key == *key) else { return false };
        let Some(known) = watch.next.checked_sub(watched.first) else { return false };
        watched.notes.iter().skip(usize::try_from(known).unwrap_or(usize::MAX)).for_each(take);
        watch.next = watched.end();
        true
    }

    /// Number of notes of all partitions.
    #[cfg(test)]
    pub fn notes(&self) -> usize {
        self.0.iter().map(|watched| watched.notes.len()).sum()
    }
}

impl WatchedPartition {
    fn new(key: DecoratedKey) -> Self {
        let notes = VecDeque::new();
        Self { key, reads: Arc::default(), notes, bytes: 0, first: 0, last_watch: 0, last_tombstones: None }
    }

    /// Whether a read watches the partition.
    fn is_read(&self) -> bool {
        Arc::strong_count(&self.reads) > 1
    }

    /// The number of the next note.
    fn end(&self) -> u64 {
        self.first + self.notes.len() as u64
    }

    fn push(&mut self, replaced: Replaced) {
        self.bytes += replaced.size();
        self.notes.push_back(replaced);
        while self.notes.len() > NOTES_MAX || self.bytes > NOTED_BYTES_MAX {
            let Some(oldest) = self.notes.pop_front() else { break };
            self.bytes -= oldest.size();
            self.first += 1;
        }
    }

    fn note_tombstones(&mut self, tombstones: &RangeTombstoneList) {
        if self.last_tombstones.is_some_and(|noted| noted >= self.last_watch) {
            return;
        }
        if tombstones.cuts() > NOTED_CUTS_MAX {
            // a number is left out, so that every read finds that it has lost something
            self.first = self.end() + 1;
            self.notes.clear();
            self.bytes = 0;
            return;
        }
        self.last_tombstones = Some(self.end());
        self.push(Replaced::Tombstones(Arc::new(tombstones.clone())));
    }
}
