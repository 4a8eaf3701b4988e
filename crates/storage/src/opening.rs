//! Opening a table and its indexes: the files in their directories become a [`TableStore`].

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use env::Env;
use schema::TableMetadata;
use schema::index::definition::IndexDefinition;
use schema::params::compaction;
use sstable::{CompressionParams, Version};

use crate::caches::Caches;
use crate::error::StorageError;
use crate::index::attached;
use crate::memory::MemtableMemory;
use crate::options::{DiskFailurePolicy, EngineOptions};
use crate::shards::Shards;
use crate::table::TableStore;
use crate::table::indexes::IndexStore;
use crate::{files, layout};

/// Opens a table: changes that a crash left half done are settled, and its SSTables are opened.
pub(crate) fn open_table(
    env: &Env,
    options: &EngineOptions,
    cache: &Arc<Caches>,
    memory: &Arc<MemtableMemory>,
    table: &Arc<TableMetadata>,
) -> Result<Arc<TableStore>, StorageError> {
    let directories = layout::table_directories(env, options, table);
    check_passed_over(env, options, table, &directories)?;
    let opened = files::open_all(env, &directories, table, cache, options.read_only)?;
    let shards = Shards::at_least(options.shards);
    let indexes = open_indexes(env, options, cache, memory, &directories, table, &[])?;
    if !options.read_only {
        attached::components::remove_unfinished(env, &directories);
    }
    opened.sstables.iter().for_each(|sstable| attached::components::open(env, cache, sstable, &indexes));
    let store = Arc::new(TableStore::new(
        env.clone(),
        directories,
        shards,
        Arc::clone(table),
        opened,
        indexes,
        Arc::clone(cache),
    ));
    check_left_out(options, &store)?;
    warn_of_unknown_classes(table);
    Ok(store)
}

/// Refuses a table with SSTables in a directory with its id beside one without the id, in which
/// alone the table is looked for. Somebody may have made that one to load files from it: the table
/// would be opened empty, and `system.local` as that of a new node. Cassandra opens it so.
fn check_passed_over(
    env: &Env,
    options: &EngineOptions,
    table: &TableMetadata,
    directories: &[PathBuf],
) -> Result<(), StorageError> {
    for directory in layout::ignored_directories(options, table, directories) {
        if files::has_sstables(env, &directory)? {
            let without_id: Vec<_> = directories.iter().map(|directory| directory.display().to_string()).collect();
            let why = format!(
                "{} has SSTables of {}.{}, which are not read where a directory without the id is there ({}): their rows would be \
                 missing. Take that one to another place, or, if it is the table's from before Cassandra 2.1, bring these SSTables \
                 there",
                directory.display(),
                table.keyspace,
                table.name,
                without_id.join(", "),
            );
            return Err(StorageError::Refused { why });
        }
    }
    Ok(())
}

/// Says which classes in the options of a table are not known here. CREATE and ALTER refuse them;
/// they come with the directory or the schema of a Cassandra that has them.
pub(crate) fn warn_of_unknown_classes(table: &TableMetadata) {
    let name = || format!("{}.{}", table.keyspace, table.name);
    if !compaction::is_known(&table.params.compaction) {
        let class = compaction::short_class(&table.params.compaction);
        tracing::error!(
            table = name(),
            class,
            "the compaction strategy of the table is not known here: nothing of it is compacted until ALTER TABLE names another one"
        );
    }
    if let Err(error) = CompressionParams::from_schema(&table.params.compression) {
        tracing::error!(
            table = name(), %error,
            "the compression of the table is not known here: new SSTables have LZ4Compressor until ALTER TABLE names another one"
        );
    }
}

/// Applies the policy for SSTables that cannot be opened: see
/// docs/notes/0005-corrupt-sstables-at-start.md.
pub(crate) fn check_left_out(options: &EngineOptions, store: &TableStore) -> Result<(), StorageError> {
    let left_out = store.left_out();
    let Some(first) = left_out.first() else { return Ok(()) };
    if options.disk_failure_policy != DiskFailurePolicy::Ignore {
        let why = format!(
            "{} SSTables of {} cannot be opened, the first: {}. Without them what they hold would be missing, and what they delete would be \
             back. Take them to another place, mend them offline (helenus sstable salvage), or start with disk_failure_policy: ignore and \
             run nodetool scrub {}",
            left_out.len(),
            store.name(),
            first.why,
            store.name().replace('.', " "),
        );
        return Err(StorageError::Refused { why });
    }
    tracing::error!(
        table = store.name(),
        count = left_out.len(),
        "the table is served without SSTables that cannot be opened, until nodetool scrub: rows are missing, deleted ones may be back"
    );
    Ok(())
}

/// The definitions of a table's indexes that this node keeps up, by name.
pub fn definitions(table: &TableMetadata, version: Version) -> Vec<Arc<IndexDefinition>> {
    let compatible = version == Version::NB;
    let of = |index| IndexDefinition::of(table, index, compatible).map(Arc::new);
    table.indexes.values().filter_map(of).collect()
}

/// The directories of the index `name`, beneath those of its base.
pub(crate) fn index_directories(base: &[PathBuf], name: &str) -> Vec<PathBuf> {
    let folder = format!(".{name}");
    base.iter().map(|directory| directory.join(&folder)).collect()
}

/// Opens the hidden table of an index, which lies beneath its base's directories.
fn open_index(
    env: &Env,
    options: &EngineOptions,
    cache: &Arc<Caches>,
    memory: &Arc<MemtableMemory>,
    base: &[PathBuf],
    definition: Arc<IndexDefinition>,
) -> Result<Arc<IndexStore>, StorageError> {
    let directories = index_directories(base, &definition.name);
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
    check_left_out(options, &store)?;
    let (store, memory) = (Arc::new(store), Arc::clone(memory));
    Ok(Arc::new(IndexStore { definition, store, state: Arc::default(), memory }))
}

/// The indexes of a table by its schema: those that are open stay open, others are opened.
pub fn open_indexes(
    env: &Env,
    options: &EngineOptions,
    cache: &Arc<Caches>,
    memory: &Arc<MemtableMemory>,
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
            old.definition.part == definition.part
                && old.definition.column.name == definition.column.name
                && old.definition.attached == definition.attached
        });
        indexes.push(match same {
            Some(old) => {
                let (store, state) = (Arc::clone(&old.store), Arc::clone(&old.state));
                Arc::new(IndexStore { definition, store, state, memory: Arc::clone(memory) })
            }
            None => open_index(env, options, cache, memory, directories, definition)?,
        });
    }
    Ok(indexes)
}
