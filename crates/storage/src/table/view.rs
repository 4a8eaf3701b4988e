//! The parts of a table at one moment: an immutable snapshot that reads take and changes replace.

use std::sync::Arc;

use rows::{PartitionRange, ReadCommand};
use schema::TableMetadata;
use sstable::SSTable;
use types::DecoratedKey;

use crate::commitlog::LogPosition;
use crate::shards::Shards;
use crate::table::indexes::IndexStore;
use crate::table::memtable::Memtable;

/// Memtables that are frozen and on their way into one SSTable, in token order.
pub struct FlushSet {
    /// The memtables, one for each shard of the table.
    pub memtables: Vec<Arc<Memtable>>,
    /// The end of the log when the set before this one was frozen. None: this is the first set of
    /// the process.
    pub after: Option<LogPosition>,
    /// The end of the log when these memtables were frozen. All shards are frozen at one place of
    /// the log ([`Memtable::freeze`]): each record of the table up to here is in this set or in
    /// one before it, each later record in the memtables that came after. A flush may begin once
    /// the log is durable up to here.
    pub up_to: LogPosition,
    /// The sets of the indexes that belong to these memtables; they are written first.
    pub indexes: Vec<(Arc<IndexStore>, Arc<FlushSet>)>,
}

impl FlushSet {
    /// The part of the log that needs no replay for the table once these memtables, and those
    /// before them, are in SSTables. None: they have no records of the log.
    pub fn log_range(&self) -> Option<(LogPosition, LogPosition)> {
        let ranges = || self.memtables.iter().filter_map(|memtable| memtable.log_range());
        let first = ranges().map(|range| range.first).min()?;
        let last = ranges().map(|range| range.last).max()?;
        assert!(last <= self.up_to, "a frozen memtable holds nothing that was logged after it was frozen");
        let from = self.after.unwrap_or(first);
        (from <= self.up_to).then_some((from, self.up_to))
    }
}

/// A table's memtables and SSTables.
pub struct View {
    /// The table as it is now.
    pub table: Arc<TableMetadata>,
    /// The memtables that take writes, one a shard.
    pub active: Vec<Arc<Memtable>>,
    /// The memtables that are being flushed, oldest first.
    pub flushing: Vec<Arc<FlushSet>>,
    /// SSTables, newest data first (by greatest timestamp).
    pub sstables: Vec<Arc<SSTable>>,
    /// Its indexes that this node keeps up.
    pub indexes: Arc<[Arc<IndexStore>]>,
}

impl View {
    /// Memtables that may have rows that a command asks for: one list, in token order, for the
    /// active ones and one for each flush.
    pub fn memtables(&self, shards: Shards, command: &ReadCommand) -> Vec<Vec<Arc<Memtable>>> {
        if self.table.local_order.is_some() {
            // they are split as those of the base: a value may be in any of them
            return self.every_memtable().map(|memtable| vec![Arc::clone(memtable)]).collect();
        }
        let touched = shards.of_range(&command.range);
        let sets = self.flushing.iter().map(|set| set.memtables.as_slice()).chain([self.active.as_slice()]);
        let point = matches!(command.range, PartitionRange::Key(_));
        sets.filter_map(|memtables| {
            let list: Vec<_> = memtables
                .get(touched.clone())
                .unwrap_or_default()
                .iter()
                .filter(|memtable| memtable.size() > 0)
                .map(Arc::clone)
                .collect();
            debug_assert!(!point || list.len() <= 1, "a partition lies in one shard");
            (!list.is_empty()).then_some(list)
        })
        .collect()
    }

    /// All memtables that are not empty, of every shard.
    pub fn every_memtable(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        let flushing = self.flushing.iter().flat_map(|set| &set.memtables);
        self.active.iter().chain(flushing).filter(|memtable| memtable.size() > 0)
    }

    /// Memtables that may hold a partition.
    pub fn memtables_of(&self, shards: Shards, key: &DecoratedKey) -> Vec<&Arc<Memtable>> {
        if self.table.local_order.is_some() {
            return self.every_memtable().collect();
        }
        let shard = shards.of(key.token);
        let flushing = self.flushing.iter().filter_map(|set| set.memtables.get(shard));
        flushing.chain(self.active.get(shard)).filter(|memtable| memtable.size() > 0).collect()
    }

    /// Bytes in memtables, those being flushed and those of indexes included.
    pub fn memtable_size(&self) -> usize {
        let flushing = self.flushing.iter().flat_map(|set| &set.memtables);
        self.active.iter().chain(flushing).map(|memtable| memtable.total_size()).sum()
    }

    /// Bytes in the memtables that take writes, those of indexes included.
    pub fn active_size(&self) -> usize {
        self.active.iter().map(|memtable| memtable.total_size()).sum()
    }

    /// An index by its name.
    pub fn index(&self, name: &str) -> Option<&Arc<IndexStore>> {
        self.indexes.iter().find(|index| index.name() == name)
    }
}
