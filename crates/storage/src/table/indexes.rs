//! Indexes as part of a table's state: each is a hidden table whose memtables belong to those of
//! its base.
//!
//! This file has the parts of an index that the memtables and the view of its base need. How an
//! index is opened, built and read is in `crate::index`.

use std::sync::Arc;

use env::Env;
use env::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use rows::PartitionUpdate;
use schema::index::definition::IndexDefinition;

use super::TableStore;
use super::entries::Entry;
use super::memtable::Memtable;
use crate::memory::MemtableMemory;

/// An index on this node.
pub struct IndexStore {
    /// The definition, by the base's present schema.
    pub definition: Arc<IndexDefinition>,
    /// The hidden table.
    pub store: Arc<TableStore>,
    /// The state that outlives a change of the schema.
    pub state: Arc<IndexState>,
    /// The budget that the entries count against.
    pub memory: Arc<MemtableMemory>,
}

/// Whether an index is complete, and what was noted about it.
#[derive(Default)]
pub struct IndexState {
    built: AtomicBool,
    /// Stale entries that were found and removed.
    pub stale_removed: AtomicU64,
}

impl IndexState {
    /// Whether every row of the base has its entry.
    pub fn is_built(&self) -> bool {
        self.built.load(Ordering::Acquire)
    }

    /// Sets whether every row of the base has its entry.
    pub fn set_built(&self, built: bool) {
        self.built.store(built, Ordering::Release);
    }
}

impl IndexStore {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// Estimated number of rows of a value, by which one of several indexes is chosen. Agrees with
    /// `ColumnFamilyStore.getMeanRowCount`.
    pub fn mean_row_count(&self) -> u64 {
        let view = self.store.view();
        let stats = view.sstables.iter().map(|sstable| &sstable.statistics().stats);
        let (rows, partitions) =
            stats.fold((0, 0), |(rows, count), stats| (rows + stats.total_rows, count + stats.partition_sizes.count()));
        rows.checked_div(partitions).unwrap_or(0)
    }

    /// Applies entries that do not come from a write to the base: those of a build, and deletions
    /// of stale ones. `shard` is the base's. Gives the bytes by which memtables grew, which are
    /// counted.
    pub fn apply(&self, shard: usize, entries: &[Entry]) -> usize {
        if entries.is_empty() {
            return 0;
        }
        loop {
            let view = self.store.view();
            let Some(memtable) = view.active.get(shard) else { return 0 };
            if let Ok(mut guard) = memtable.enter_to_write() {
                let added = entries.iter().map(|entry| guard.apply(&update(&self.definition, entry), None)).sum();
                drop(guard);
                self.memory.take(added);
                return added;
            }
            if self.store.is_closed() || self.store.dropped.load(Ordering::Acquire) {
                // no memtables come after those that were frozen when the index or its table went
                return 0;
            }
            // the new memtables are in the view before the old ones are frozen: the next look finds
            // them
            std::hint::spin_loop();
        }
    }
}

/// An entry as an update of the hidden table.
pub(crate) fn update(definition: &IndexDefinition, entry: &Entry) -> PartitionUpdate {
    let mut update = PartitionUpdate::new(Arc::clone(&definition.table), entry.key.clone());
    update.rows.push(entry.row.clone());
    update
}

/// The attachments of a base's memtable: the memtables of its indexes, and the clock by which
/// entries expire.
pub struct Attached {
    /// The clock.
    pub env: Env,
    /// An index and the memtable that has its entries of this shard.
    pub indexes: Vec<(Arc<IndexStore>, Arc<Memtable>)>,
}
