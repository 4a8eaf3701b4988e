//! The data that a compaction of a table may leave out: tombstones past gc_grace of which nothing
//! outside of the compaction can be deleted.
//!
//! For each partition the smallest timestamp is taken of everything outside that may hold the
//! partition: SSTables that are not compacted, by token range and Bloom filter, and memtables that
//! have it. Tombstones that are older may go. The view is asked as it is then, so that what is
//! flushed or compacted meanwhile counts. Nothing is purged while an SSTable of the table is left
//! out. With `only_purge_repaired_tombstones` nothing is purged from SSTables that were not
//! repaired. Agrees with `org.apache.cassandra.db.compaction.CompactionController`.

use std::sync::{Arc, Weak};

use env::sync::Mutex;
use rows::purge::MaxPurgeable;
use schema::TableMetadata;
use sstable::{KeyHash, SSTable};
use types::{DecoratedKey, Token};

use super::choice::candidate;
use crate::strategy::{Candidate, State, expired, only_purges_repaired};
use crate::table::TableStore;
use crate::table::memtable::Memtable;
use crate::table::view::View;

/// The second before which tombstones must have been written to be purged.
pub fn gc_before(table: &TableMetadata, now: u32) -> u32 {
    let grace = u32::try_from(table.params.gc_grace_seconds).unwrap_or(0);
    now.saturating_sub(grace)
}

/// Whether all SSTables of a table are open. Where one is left out (`disk_failure_policy: ignore`)
/// nothing may be purged: it may hold, anywhere in the table, what a tombstone deletes, and scrub
/// or an operator may bring it back.
pub fn is_whole(store: &TableStore) -> bool {
    store.left_out().is_empty()
}

/// Whether tombstones in these SSTables may be purged at all.
pub fn may_purge(table: &TableMetadata, inputs: &[Arc<SSTable>]) -> bool {
    let is_repaired = |sstable: &Arc<SSTable>| sstable.statistics().stats.repaired_at > 0;
    !only_purges_repaired(&table.params.compaction) || inputs.iter().all(is_repaired)
}

/// Smallest timestamp in a table's memtables; `i64::MAX` if they are empty.
pub fn memtable_min_timestamp(view: &View) -> i64 {
    let filled = memtables(view).filter(|memtable| memtable.size() > 0);
    filled.map(|memtable| memtable.stats().min_timestamp()).min().unwrap_or(i64::MAX)
}

fn memtables(view: &View) -> impl Iterator<Item = &Arc<Memtable>> {
    view.active.iter().chain(view.flushing.iter().flat_map(|set| &set.memtables))
}

/// The SSTables of a compaction that only have expired data.
pub fn fully_expired(store: &TableStore, inputs: &[Arc<SSTable>]) -> Vec<Arc<SSTable>> {
    let changes = store.changes();
    let view = store.view();
    let gc_before = gc_before(&view.table, store.env.clock.now_seconds());
    let seen = |sstables: &[Arc<SSTable>]| -> Vec<Candidate> {
        let numbered = sstables.iter().enumerate();
        numbered.map(|(index, sstable)| candidate(store, &changes, index, sstable, gc_before)).collect()
    };
    let (compacting, outside) = (seen(inputs), seen(&overlapping(&view, inputs, span(inputs))));
    let state = State {
        sstables: &compacting,
        others: &outside,
        memtable_min_timestamp: memtable_min_timestamp(&view),
        gc_before,
        may_purge: is_whole(store) && may_purge(&view.table, inputs),
        now_millis: 0,
        flush_size: f64::NAN,
        dice: 0,
    };
    let expired = expired::fully_expired(&compacting, &outside, &state);
    expired.iter().filter_map(|candidate| inputs.get(candidate.index).cloned()).collect()
}

/// SSTables outside of a compaction that overlap it, as long as the view is the same.
struct Outside {
    view: Weak<View>,
    sstables: Vec<Arc<SSTable>>,
}

/// The timestamp below which deletions of a partition may be purged: that of everything outside of
/// the compaction that may hold the partition.
pub fn max_purgeable(store: &Arc<TableStore>, inputs: &[Arc<SSTable>]) -> MaxPurgeable {
    let store = Arc::clone(store);
    let inputs = inputs.to_vec();
    let span = span(&inputs);
    let outside = Mutex::new(Outside { view: Weak::new(), sstables: Vec::new() });
    Box::new(move |key| {
        let view = store.view();
        let mut outside = outside.lock().expect("no panic inside");
        if !std::ptr::eq(outside.view.as_ptr(), Arc::as_ptr(&view)) {
            *outside = Outside { view: Arc::downgrade(&view), sstables: overlapping(&view, &inputs, span) };
        }
        let hash = KeyHash::of(&key.key);
        let holding = outside.sstables.iter().filter(|sstable| sstable.may_contain(key, hash));
        let in_sstables = holding.map(|sstable| sstable.statistics().stats.min_timestamp).min();
        in_sstables.unwrap_or(i64::MAX).min(in_memtables(&store, &view, key))
    })
}

fn in_memtables(store: &TableStore, view: &View, key: &DecoratedKey) -> i64 {
    let memtables = view.memtables_of(store.shards, key).into_iter();
    let holding = memtables.filter(|memtable| memtable.contains(key));
    holding.map(|memtable| memtable.stats().min_timestamp()).min().unwrap_or(i64::MAX)
}

fn span(inputs: &[Arc<SSTable>]) -> Option<(Token, Token)> {
    let first = inputs.iter().map(|sstable| sstable.first_key().token).min()?;
    let last = inputs.iter().map(|sstable| sstable.last_key().token).max()?;
    Some((first, last))
}

/// SSTables of a view that do not belong to a compaction and overlap it. An SSTable that does not
/// tell its tokens may hold anything.
pub fn overlapping(view: &View, inputs: &[Arc<SSTable>], span: Option<(Token, Token)>) -> Vec<Arc<SSTable>> {
    let is_input = |sstable: &Arc<SSTable>| inputs.iter().any(|input| input.descriptor() == sstable.descriptor());
    let is_near = |sstable: &Arc<SSTable>| {
        !sstable.has_tokens() || span.is_some_and(|(first, last)| sstable.overlaps(first, last))
    };
    view.sstables.iter().filter(|sstable| !is_input(sstable) && is_near(sstable)).cloned().collect()
}
