//! The way from a directory to a running engine.
//!
//! 1. The data directory is locked: a second process is refused.
//! 2. The built-in tables are opened, and of the commit log only what belongs to the schema tables is replayed.
//! 3. The schema is read from them; its tables are opened.
//! 4. The rest of the log is replayed. What was replayed is in memtables, as if it had just been written; its segments stay until
//!    those are flushed.
//! 5. Tables are there, background tasks start.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use env::Env;
use rows::codec::decode_mutation;
use schema::{Schema, TableId, TableMetadata};

use crate::chunk_cache::ChunkCache;
use crate::commitlog::{CommitLog, LogPosition, Replay};
use crate::engine::{Engine, Parts};
use crate::error::StorageError;
use crate::options::EngineOptions;
use crate::shards::Shards;
use crate::table::TableStore;
use crate::{files, layout, schema_tables, truncation_records};

/// The file whose lock says that a process uses the directory.
const LOCK_FILE: &str = "helenus.lock";

type Tables = BTreeMap<TableId, Arc<TableStore>>;

/// What a start found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Recovered {
    /// Records replayed from the commit log.
    pub records: u64,
    /// Records of tables that are gone.
    pub skipped: u64,
    /// SSTables opened.
    pub sstables: usize,
}

struct Recovery<'a> {
    env: &'a Env,
    options: &'a EngineOptions,
    cache: Arc<ChunkCache>,
    tables: Tables,
    /// Up to where the log has nothing to say about a table.
    truncated: BTreeMap<TableId, LogPosition>,
    recovered: Recovered,
}

/// Opens the engine on a directory, which is made if it is not there.
pub fn open(env: &Env, options: EngineOptions) -> Result<(Arc<Engine>, Recovered), StorageError> {
    let directory = &options.data_directory;
    let io = |error: std::io::Error| StorageError::io(directory, &error);
    env.disk.create_dir_all(directory).map_err(io)?;
    let lock = match env.disk.lock_file(&directory.join(LOCK_FILE)) {
        Ok(lock) => lock,
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            return Err(StorageError::Locked { path: directory.clone() });
        }
        Err(error) => return Err(io(error)),
    };
    let (log, replay) = CommitLog::open(env, &options.commitlog_directory, options.commitlog.clone())?;
    let cache = Arc::new(ChunkCache::new(options.chunk_cache_bytes));
    let recovered = Recovered::default();
    let mut recovery = Recovery {
        env,
        options: &options,
        cache: Arc::clone(&cache),
        tables: Tables::new(),
        truncated: BTreeMap::new(),
        recovered,
    };
    let built_in = schema::system::schema();
    recovery.open_tables(&built_in)?;
    let is_first =
        |table: &TableMetadata| table.keyspace == schema_tables::KEYSPACE || truncation_records::is_here(table);
    recovery.replay(&log, replay.again(), &built_in, &is_first)?;
    recovery.read_truncations()?;
    let schema = recovery.load_schema(&built_in)?;
    recovery.open_tables(&schema)?;
    recovery.replay(&log, replay, &schema, &|table| !is_first(table))?;
    log.finish_replay();
    let Recovery { tables, recovered, .. } = recovery;
    let parts = Parts { env: env.clone(), log, chunk_cache: cache, schema, tables, lock, options: options.clone() };
    let engine = Engine::assemble(parts);
    crate::schema_change::store_built_in(&engine)?;
    Ok((engine, recovered))
}

impl Recovery<'_> {
    /// Opens the stored tables of a schema that are not open yet.
    fn open_tables(&mut self, schema: &Schema) -> Result<(), StorageError> {
        for keyspace in schema.keyspaces.values().filter(|keyspace| !keyspace.is_virtual) {
            for table in keyspace.tables.values() {
                if !self.tables.contains_key(&table.id) {
                    let store = open_table(self.env, self.options, &self.cache, table)?;
                    self.recovered.sstables += store.view().sstables.len();
                    self.tables.insert(table.id, store);
                }
            }
        }
        Ok(())
    }

    fn read_truncations(&mut self) -> Result<(), StorageError> {
        if let Some(local) = self.tables.values().find(|store| truncation_records::is_here(&store.table())) {
            self.truncated = truncation_records::read(local, self.env.clock.now_seconds())?;
        }
        Ok(())
    }

    fn load_schema(&self, built_in: &Schema) -> Result<Schema, StorageError> {
        let now = self.env.clock.now_seconds();
        schema_tables::load(built_in, &|table| self.tables.get(&table.id).cloned(), now, None)
    }

    fn replay(
        &mut self,
        log: &CommitLog,
        replay: Replay,
        schema: &Schema,
        wanted: &dyn Fn(&TableMetadata) -> bool,
    ) -> Result<(), StorageError> {
        let mut unknown = BTreeSet::new();
        for record in replay {
            let (position, record) = record?;
            self.replay_record(log, position, &record, schema, wanted, &mut unknown)?;
        }
        Ok(())
    }

    fn replay_record(
        &mut self,
        log: &CommitLog,
        position: LogPosition,
        record: &Bytes,
        schema: &Schema,
        wanted: &dyn Fn(&TableMetadata) -> bool,
        unknown: &mut BTreeSet<TableId>,
    ) -> Result<(), StorageError> {
        let table_of = |id: TableId| schema.table_by_id(id).cloned();
        let mutation = match decode_mutation(record, &table_of) {
            Ok(Some(mutation)) => mutation,
            Ok(None) => {
                self.recovered.skipped += 1;
                return Ok(());
            }
            Err(error) => {
                let why = format!("the commit log's record at {position:?} cannot be decoded: {error}");
                return Err(StorageError::Refused { why });
            }
        };
        for update in mutation.updates.iter().filter(|update| wanted(&update.table)) {
            if self.truncated.get(&update.table.id).is_some_and(|truncated| position <= *truncated) {
                self.recovered.skipped += 1;
                continue;
            }
            let Some(store) = self.tables.get(&update.table.id) else {
                unknown.insert(update.table.id);
                continue;
            };
            let shard = store.shards.of(update.key.token);
            let view = store.view();
            let mut memtable = view.active[shard].enter_to_write().expect("nothing is flushed during recovery");
            memtable.apply(update, Some(position));
            log.mark_replayed(position, &[(update.table.id, shard as u16)]);
            self.recovered.records += 1;
        }
        Ok(())
    }
}

/// Opens a table: its directory is made if it is not there, what a crash left half done is settled, its SSTables are opened.
pub(crate) fn open_table(
    env: &Env,
    options: &EngineOptions,
    cache: &Arc<ChunkCache>,
    table: &Arc<TableMetadata>,
) -> Result<Arc<TableStore>, StorageError> {
    let directory = layout::table_directory(&options.data_directory, table);
    let (sstables, last) =
        if env.disk.exists(&directory) { files::open_all(env, &directory, table, cache)? } else { (Vec::new(), 0) };
    let shards = Shards::at_least(options.shards);
    Ok(Arc::new(TableStore::new(env.clone(), directory, shards, Arc::clone(table), sstables, last)))
}

/// Makes a table's directory and those above it, durably.
pub(crate) fn make_directory(env: &Env, data_directory: &Path, directory: &Path) -> Result<(), StorageError> {
    if env.disk.exists(directory) {
        return Ok(());
    }
    let io = |error: std::io::Error| StorageError::io(directory, &error);
    env.disk.create_dir_all(directory).map_err(io)?;
    for above in directory.ancestors().skip(1).take_while(|above| above.starts_with(data_directory)) {
        env.disk.sync_dir(above).map_err(io)?;
    }
    Ok(())
}
