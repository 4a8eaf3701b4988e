//! From a table's state to the SSTables to compact next. A chosen SSTable is marked, so that no other compaction takes it.

use std::sync::Arc;

use rows::purge::MaxPurgeable;
use sstable::{Component, KeyHash, SSTable};

use super::Candidate;
use super::size_tiered::{self, SizeTieredOptions};
use crate::table::{Changes, TableStore};

/// What strategies see of a table's SSTables.
fn candidates(store: &TableStore, changes: &Changes, sstables: &[Arc<SSTable>], now: u32) -> Vec<Candidate> {
    let gc_before = gc_before(store, now);
    let candidate = |(index, sstable): (usize, &Arc<SSTable>)| Candidate {
        index,
        size: sstable.stored_length(),
        min_timestamp: sstable.statistics().stats.min_timestamp,
        droppable_tombstones: droppable_tombstones(sstable, gc_before),
        age: now.saturating_sub(written_at(store, changes, sstable)),
    };
    sstables.iter().enumerate().map(candidate).collect()
}

/// When an SSTable was written, seconds: noted when this process did it, else what the disk says.
fn written_at(store: &TableStore, changes: &Changes, sstable: &SSTable) -> u32 {
    let descriptor = sstable.descriptor();
    if let Some(at) = changes.written.get(&descriptor.id) {
        return *at;
    }
    let modified = store.env.disk.modified_millis(&descriptor.path(Component::Data)).unwrap_or(0);
    u32::try_from(modified / 1000).unwrap_or(0)
}

/// Compactions that the strategy would still do for a table.
pub fn pending(store: &TableStore, now: u32) -> usize {
    let changes = store.changes();
    let view = store.view();
    let options = SizeTieredOptions::from_map(&view.table.params.compaction);
    size_tiered::pending(&candidates(store, &changes, &view.sstables, now), &options)
}

/// Estimated share of a table's cells in SSTables that are droppable tombstones.
pub fn droppable_share(store: &TableStore, now: u32) -> f64 {
    let gc_before = gc_before(store, now);
    let cells = |sstable: &SSTable| {
        let histogram = &sstable.statistics().stats.cells_per_partition;
        histogram.mean() * histogram.count() as f64
    };
    let view = store.view();
    let all: f64 = view.sstables.iter().map(|sstable| cells(sstable)).sum();
    let droppable: f64 =
        view.sstables.iter().map(|sstable| droppable_tombstones(sstable, gc_before) * cells(sstable)).sum();
    if all > 0.0 { droppable / all } else { 0.0 }
}

/// Takes what the table's strategy chooses.
pub fn choose_and_mark(store: &TableStore, now: u32) -> Option<Vec<Arc<SSTable>>> {
    let mut changes = store.changes();
    let view = store.view();
    let options = SizeTieredOptions::from_map(&view.table.params.compaction);
    let free: Vec<_> = view
        .sstables
        .iter()
        .filter(|sstable| !changes.compacting.contains(&sstable.descriptor().id))
        .cloned()
        .collect();
    let mut chosen: Vec<_> = size_tiered::choose(&candidates(store, &changes, &free, now), &options)
        .into_iter()
        .filter_map(|index| free.get(index).cloned())
        .collect();
    if let [single] = chosen.as_slice()
        && !may_drop_alone(&view.sstables, single)
    {
        chosen.clear();
    }
    changes.compacting.extend(chosen.iter().map(|sstable| sstable.descriptor().id));
    (!chosen.is_empty()).then_some(chosen)
}

/// Takes all that no compaction has.
pub fn take_all(store: &TableStore) -> Vec<Arc<SSTable>> {
    let mut changes = store.changes();
    let view = store.view();
    let free: Vec<_> = view
        .sstables
        .iter()
        .filter(|sstable| !changes.compacting.contains(&sstable.descriptor().id))
        .cloned()
        .collect();
    changes.compacting.extend(free.iter().map(|sstable| sstable.descriptor().id));
    free
}

/// Gives SSTables back.
pub fn unmark(store: &TableStore, inputs: &[Arc<SSTable>]) {
    let mut changes = store.changes();
    for sstable in inputs {
        changes.compacting.remove(&sstable.descriptor().id);
    }
}

/// An SSTable alone is worth a compaction only when no other overlaps it: else its tombstones might have to stay, and it would
/// be chosen again and again.
fn may_drop_alone(all: &[Arc<SSTable>], single: &Arc<SSTable>) -> bool {
    all.iter()
        .all(|other| Arc::ptr_eq(other, single) || !other.overlaps(single.first_key().token, single.last_key().token))
}

/// Tombstones from before may go, seconds.
pub fn gc_before(store: &TableStore, now: u32) -> u32 {
    let grace = u32::try_from(store.table().params.gc_grace_seconds).unwrap_or(0);
    now.saturating_sub(grace)
}

/// Deletions of a partition may go when they are older than everything outside of the compaction that may hold the partition.
pub fn max_purgeable(store: &Arc<TableStore>, inputs: &[Arc<SSTable>]) -> MaxPurgeable {
    let store = Arc::clone(store);
    let inputs = inputs.to_vec();
    Box::new(move |key| {
        let view = store.view();
        let hash = KeyHash::of(&key.key);
        let others = view
            .sstables
            .iter()
            .filter(|sstable| !inputs.iter().any(|input| input.descriptor().id == sstable.descriptor().id));
        let in_sstables = others
            .filter(|sstable| sstable.may_contain(key, hash))
            .map(|sstable| sstable.statistics().stats.min_timestamp)
            .min();
        let shard = store.shards.of(key.token);
        let flushing = view.flushing.iter().filter_map(|set| set.memtables.get(shard));
        let in_memtables = flushing
            .chain(view.active.get(shard))
            .filter(|memtable| memtable.size() > 0)
            .map(|memtable| memtable.stats().min_timestamp())
            .min();
        in_sstables.unwrap_or(i64::MAX).min(in_memtables.unwrap_or(i64::MAX))
    })
}

/// Estimated share of an SSTable's cells that are tombstones from before `gc_before`.
fn droppable_tombstones(sstable: &SSTable, gc_before: u32) -> f64 {
    let stats = &sstable.statistics().stats;
    let cells = stats.cells_per_partition.mean() * stats.cells_per_partition.count() as f64;
    if cells > 0.0 { stats.tombstones.sum(i64::from(gc_before)) / cells } else { 0.0 }
}
