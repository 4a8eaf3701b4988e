//! The tombstones of a table: where they are in each SSTable, when they may be purged, and why not
//! yet (`rows::tombstone_map`).
//!
//! The reasons that keep a tombstone are those of compaction (`compaction::purge`): other SSTables
//! that may hold the partition, memtables that have it, and with `only_purge_repaired_tombstones`
//! that its SSTable is not repaired.

use std::sync::Arc;

use rows::dead::GracePeriod;
use rows::tombstone_map::{OtherSources, TombstoneMap};
use rows::{PartitionRange, ReadCommand, ReadContext, ReadError, ReadMode};
use sstable::{KeyHash, SSTable};
use types::DecoratedKey;

use crate::compaction::purge::may_purge;
use crate::table::TableStore;
use crate::table::view::View;

/// The sources beside one SSTable. Memtables are one source: the last.
struct SourcesBeside<'a> {
    store: &'a TableStore,
    view: &'a View,
    but: &'a SSTable,
}

impl OtherSources for SourcesBeside<'_> {
    fn names(&self) -> Vec<String> {
        let sstables = self.view.sstables.iter().map(|sstable| format!("SSTable {}", sstable.descriptor().prefix()));
        sstables.chain(["a memtable".to_owned()]).collect()
    }

    fn oldest(&self, key: &DecoratedKey) -> Vec<(i64, usize)> {
        let hash = KeyHash::of(&key.key);
        let others = self.view.sstables.iter().enumerate().filter(|(_, other)| {
            other.descriptor() != self.but.descriptor() && (!other.has_tokens() || other.may_contain(key, hash))
        });
        let in_sstables = others.map(|(number, other)| (other.statistics().stats.min_timestamp, number));
        let memtables = self.view.memtables_of(self.store.shards, key).into_iter();
        let holding = memtables.filter(|memtable| memtable.contains(key));
        let in_memtables = holding.map(|memtable| (memtable.stats().min_timestamp(), self.view.sstables.len()));
        in_sstables.chain(in_memtables).collect()
    }
}

/// A text for each SSTable, with the `top` partitions that have most tombstones. Reads the whole
/// table, so it must not be called on a worker.
pub fn tombstones(store: &Arc<TableStore>, top: usize) -> Result<Vec<String>, ReadError> {
    let view = store.view();
    let table = &view.table;
    let seconds = u32::try_from(table.params.gc_grace_seconds).unwrap_or(0);
    let grace = GracePeriod { now: store.env.clock.now_seconds(), seconds };
    let mut texts = Vec::with_capacity(view.sstables.len());
    for sstable in &view.sstables {
        let command = ReadCommand::whole(sstable.table(), PartitionRange::all());
        let mut stream = sstable.read(&command, &ReadContext::new(ReadMode::Background))?;
        let others = SourcesBeside { store, view: &view, but: sstable };
        let unrepaired = !may_purge(table, std::slice::from_ref(sstable));
        let map = TombstoneMap::read(&mut stream, grace, top, &others, unrepaired)?;
        texts.push(map.text(&sstable.descriptor().prefix(), table));
    }
    Ok(texts)
}
