//! Secondary indexes of legacy kind: hidden tables that are kept up with their base table and answer reads by value.
//!
//! - [`crate::table::entries`]: what a write to the base means for an index;
//! - an [`IndexStore`]: the hidden table's SSTables, a [`TableStore`] like any other (compaction, snapshots, scrub know no difference);
//! - its memtables hang on those of the base: inside the base's door a write is applied to both, they are frozen together, flushed together
//!   (the index first), and the log's records of the base are the index's ([`crate::table::memtable`]);
//! - [`search`]: reading the base by an index;
//! - [`build`]: making an index of what a table holds already;
//! - [`built`]: which indexes are complete, in `system."IndexInfo"`.
//!
//! docs/notes/0006-indexes.md says why so. Agrees with `org.apache.cassandra.index.internal.CassandraIndex`.

pub mod build;
pub mod built;
pub mod compacted;
pub mod search;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use env::Env;
use schema::TableMetadata;
use schema::index::definition::IndexDefinition;
use sstable::Version;

use crate::caches::Caches;
use crate::error::StorageError;
use crate::files;
use crate::options::EngineOptions;
use crate::shards::Shards;
use crate::table::TableStore;
use crate::table::indexes::IndexStore;

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
