//! From a table's state to the SSTables to compact next. A chosen SSTable is marked, so that no other compaction takes it.

use std::sync::Arc;

use rows::purge::MaxPurgeable;
use sstable::{Component, KeyHash, SSTable};

use super::Candidate;
use super::kind::Kind;
use super::operation::{Item, Operation, Work};
use super::progress::Compactions;
use super::size_tiered::{self, SizeTieredOptions};
use super::task::Start;
use crate::inherited::by_repair_state;
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
    let groups = by_repair_state(&view.sstables);
    groups.values().map(|group| size_tiered::pending(&candidates(store, &changes, group, now), &options)).sum()
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

/// Takes what the table's strategy chooses: of SSTables of one repair state, where most is to be done.
pub fn choose_and_mark(store: &Arc<TableStore>, now: u32) -> Option<Start> {
    let mut changes = store.changes();
    let view = store.view();
    let options = SizeTieredOptions::from_map(&view.table.params.compaction);
    let mut chosen: Vec<Arc<SSTable>> = Vec::new();
    let mut most = 0;
    for group in by_repair_state(&free(&changes, &view.sstables)).into_values() {
        let candidates = candidates(store, &changes, &group, now);
        let found = choose(&candidates, &options, &group, &view.sstables);
        let to_do = size_tiered::pending(&candidates, &options).max(1);
        if !found.is_empty() && to_do > most {
            (chosen, most) = (found, to_do);
        }
    }
    if chosen.is_empty() {
        return None;
    }
    mark(&mut changes, &chosen);
    let kind = if chosen.len() == 1 { Kind::TombstoneCompaction } else { Kind::Compaction };
    Some(Start { store: Arc::clone(store), operation: None, kind, work: Work::Merge, item: Item::of(chosen) })
}

fn choose(
    candidates: &[Candidate],
    options: &SizeTieredOptions,
    group: &[Arc<SSTable>],
    all: &[Arc<SSTable>],
) -> Vec<Arc<SSTable>> {
    let chosen: Vec<_> =
        size_tiered::choose(candidates, options).into_iter().filter_map(|index| group.get(index).cloned()).collect();
    match chosen.as_slice() {
        [single] if !may_drop_alone(all, single) => Vec::new(),
        _ => chosen,
    }
}

fn free(changes: &Changes, sstables: &[Arc<SSTable>]) -> Vec<Arc<SSTable>> {
    sstables.iter().filter(|sstable| !changes.compacting.contains(&sstable.descriptor().id)).cloned().collect()
}

fn mark(changes: &mut Changes, inputs: &[Arc<SSTable>]) {
    changes.compacting.extend(inputs.iter().map(|sstable| sstable.descriptor().id));
}

/// Whether an operation may have the SSTables that it is for.
pub(super) enum Taken {
    /// It has them now: in parts that are worked on together.
    Items(Vec<Item>),
    /// Compactions that a strategy chose were asked to end.
    Wait,
    /// Something that does not give way has some of them.
    Refused,
}

/// Takes what an operation is for.
pub(super) fn take_for(store: &TableStore, operation: &Operation, compactions: &Compactions) -> Taken {
    let mut changes = store.changes();
    let view = store.view();
    if !changes.compacting.is_empty() {
        let of_table = compactions.running().into_iter().filter(|running| running.table_id == store.id);
        if of_table.into_iter().any(|running| !running.kind.is_automatic()) {
            return Taken::Refused;
        }
        compactions.stop(|running| running.table_id == store.id);
        return Taken::Wait;
    }
    let mut chosen: Vec<_> = view.sstables.iter().filter(|sstable| (operation.select)(sstable)).cloned().collect();
    match operation.kind {
        Kind::GarbageCollect => chosen.sort_by_key(|sstable| sstable.statistics().stats.max_timestamp),
        _ => chosen.sort_by_key(|sstable| std::cmp::Reverse(sstable.stored_length())),
    }
    mark(&mut changes, &chosen);
    let mut items: Vec<Item> = match operation.work {
        Work::Merge => by_repair_state(&chosen).into_values().map(Item::of).collect(),
        _ => chosen.into_iter().map(|sstable| Item::of(vec![sstable])).collect(),
    };
    if operation.work.takes_left_out() {
        let left_out = store.left_out().into_iter();
        items.extend(left_out.map(|left_out| Item { sstables: Vec::new(), left_out: Some(left_out) }));
    }
    Taken::Items(items)
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
