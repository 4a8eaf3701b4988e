//! Secondary indexes of legacy kind: hidden tables that are kept up with their base table and answer reads by value.
//!
//! - [`entries`]: what a write to the base means for an index;
//! - an [`IndexStore`]: the hidden table's SSTables, a [`TableStore`] like any other (compaction, snapshots, scrub know no difference);
//! - its memtables hang on those of the base: inside the base's door a write is applied to both, they are frozen together, flushed together
//!   (the index first), and the log's records of the base are the index's ([`crate::memtable`]);
//! - [`search`]: reading the base by an index;
//! - [`build`]: making an index of what a table holds already;
//! - [`built`]: which indexes are complete, in `system."IndexInfo"`.
//!
//! docs/notes/0006-indexes.md says why so. Agrees with `org.apache.cassandra.index.internal.CassandraIndex`.

pub mod build;
pub mod built;
pub mod compacted;
pub mod entries;
pub mod search;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use env::Env;
use rows::PartitionUpdate;
use schema::TableMetadata;
use schema::index::definition::IndexDefinition;
use sstable::Version;

use crate::caches::Caches;
use crate::error::StorageError;
use crate::files;
use crate::memtable::Memtable;
use crate::options::EngineOptions;
use crate::shards::Shards;
use crate::table::TableStore;
use entries::Entry;

/// An index on this node.
pub struct IndexStore {
    /// What it is made of, by the base's present schema.
    pub definition: Arc<IndexDefinition>,
    /// The hidden table.
    pub store: Arc<TableStore>,
    /// What outlives a change of the schema.
    pub state: Arc<IndexState>,
}

/// Whether an index is complete, and what was noted about it.
#[derive(Default)]
pub struct IndexState {
    built: AtomicBool,
    /// Entries found stale and taken away.
    pub stale_removed: AtomicU64,
}

impl IndexState {
    /// Everything in the base has its entry.
    pub fn is_built(&self) -> bool {
        self.built.load(Ordering::Acquire)
    }

    /// Everything has, or does not any more.
    pub fn set_built(&self, built: bool) {
        self.built.store(built, Ordering::Release);
    }
}

impl IndexStore {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// About how many rows a value has: the measure by which one of several indexes is chosen. Agrees with
    /// `ColumnFamilyStore.getMeanRowCount`.
    pub fn mean_row_count(&self) -> u64 {
        let view = self.store.view();
        let stats = view.sstables.iter().map(|sstable| &sstable.statistics().stats);
        let (rows, partitions) =
            stats.fold((0, 0), |(rows, count), stats| (rows + stats.total_rows, count + stats.partition_sizes.count()));
        rows.checked_div(partitions).unwrap_or(0)
    }

    /// Applies entries that no write of the base brings: of a build, deletions of stale ones. `shard` is the base's. Gives the bytes by
    /// which memtables grew.
    pub fn apply(&self, shard: usize, entries: &[Entry]) -> usize {
        if entries.is_empty() {
            return 0;
        }
        loop {
            let view = self.store.view();
            let Some(memtable) = view.active.get(shard) else { return 0 };
            if let Ok(mut guard) = memtable.enter_to_write() {
                return entries.iter().map(|entry| guard.apply(&update(&self.definition, entry), None)).sum();
            }
            if self.store.is_closed() || self.store.dropped.load(Ordering::Acquire) {
                // no memtables come after those that were frozen when the index or its table went
                return 0;
            }
            // the new memtables are in the view before the old ones are frozen: the next look finds them
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

/// The definitions of a table's indexes that this node keeps up, by name.
pub fn definitions(table: &TableMetadata, version: Version) -> Vec<Arc<IndexDefinition>> {
    let compatible = version == Version::NB;
    let of = |index| IndexDefinition::of(table, index, compatible).map(Arc::new);
    table.indexes.values().filter_map(of).collect()
}

/// Opens the hidden table of an index, which lies beneath its base's directories.
fn open_one(
    env: &Env,
    options: &EngineOptions,
    cache: &Arc<Caches>,
    base: &[PathBuf],
    definition: Arc<IndexDefinition>,
) -> Result<Arc<IndexStore>, StorageError> {
    let folder = format!(".{}", definition.name);
    let directories: Vec<PathBuf> = base.iter().map(|directory| directory.join(&folder)).collect();
    let opened = files::open_all(env, &directories, &definition.table, cache, options.read_only)?;
    let shards = Shards::at_least(options.shards);
    let store = TableStore::new(
        env.clone(),
        directories,
        shards,
        Arc::clone(&definition.table),
        opened,
        Vec::new(),
        Arc::clone(cache),
    );
    crate::recovery::check_left_out(options, &store)?;
    Ok(Arc::new(IndexStore { definition, store: Arc::new(store), state: Arc::default() }))
}

/// The indexes of a table by its schema: those that are open stay open, others are opened.
pub fn open_all(
    env: &Env,
    options: &EngineOptions,
    cache: &Arc<Caches>,
    directories: &[PathBuf],
    table: &TableMetadata,
    open: &[Arc<IndexStore>],
) -> Result<Vec<Arc<IndexStore>>, StorageError> {
    if table.indexes.is_empty() {
        return Ok(Vec::new());
    }
    let known: HashMap<&str, &Arc<IndexStore>> = open.iter().map(|index| (index.name(), index)).collect();
    let mut indexes = Vec::new();
    for definition in definitions(table, options.sstable_version) {
        let same = known.get(&*definition.name).filter(|old| {
            old.definition.part == definition.part && old.definition.column.name == definition.column.name
        });
        indexes.push(match same {
            Some(old) => {
                let (store, state) = (Arc::clone(&old.store), Arc::clone(&old.state));
                Arc::new(IndexStore { definition, store, state })
            }
            None => open_one(env, options, cache, directories, definition)?,
        });
    }
    Ok(indexes)
}

/// What hangs on a memtable of the base: the memtables of its indexes, and the clock by which entries expire.
pub struct Attached {
    /// The clock.
    pub env: Env,
    /// An index and the memtable that has its entries of this shard.
    pub indexes: Vec<(Arc<IndexStore>, Arc<Memtable>)>,
}
