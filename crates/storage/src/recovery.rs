//! The way from a directory to a running engine.
//!
//! 1. The data directories are locked: a second process is refused. So is a configuration under
//!    which the tables of the local system keyspaces would be looked for where they are not.
//! 2. The built-in tables are opened, and of the commit log only what belongs to the schema tables
//!    is replayed.
//! 3. The schema is read from them; its tables are opened. The log of this process begins behind
//!    every segment that their SSTables name.
//! 4. The rest of the log is replayed ([`replayer`]), without what SSTables hold already (their
//!    statistics say so) and what was truncated since. What was replayed is in memtables, as if it
//!    had just been written; its segments stay until those are flushed. Where it is more than
//!    memtables may hold, tables are flushed in between.
//! 5. All tables are open, and background tasks start.
//!
//! A start that may not write does the same, but leaves transactions and segments as they are and
//! keeps in memory what was replayed.

mod left_out;
mod replayer;
mod round;
mod table_replay;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use env::{Env, Lock, Part};
use schema::system::is_system_keyspace;
use schema::{Schema, TableId, TableMetadata};

use crate::caches::Caches;
use crate::commitlog::{CommitLog, LogError};
use crate::engine::{Engine, Parts};
use crate::error::StorageError;
use crate::log_intervals::Interval;
use crate::memory::MemtableMemory;
use crate::options::{DiskFailurePolicy, EngineOptions};
use crate::restore_point::{self, RestoreFilter};
use crate::shards::Shards;
use crate::table::TableStore;
use crate::truncation_records::{Truncation, is_replayed_first};
use crate::{drops, files, layout, log_intervals, opening, schema_tables, truncation_records};

/// The file whose lock says that a process uses the directory.
const LOCK_FILE: &str = "helenus.lock";

/// Number of tables that one thread opens before it takes more.
const TABLES_A_PART: usize = 16;

type Tables = BTreeMap<TableId, Arc<TableStore>>;

/// A table, and the result of opening it; None: it was not opened yet.
type Opening<'a> = (&'a Arc<TableMetadata>, Option<Result<Arc<TableStore>, StorageError>>);

/// Counts of a start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Recovered {
    /// Records replayed from the commit log.
    pub records: u64,
    /// Records that were not replayed: those of tables that do not exist any more, and those that
    /// are in SSTables already.
    pub skipped: u64,
    /// SSTables opened.
    pub sstables: usize,
}

struct Recovery<'a> {
    env: &'a Env,
    options: &'a EngineOptions,
    cache: Arc<Caches>,
    memory: Arc<MemtableMemory>,
    tables: Tables,
    /// For each table the record of its truncation: the log has nothing for it up to there.
    truncated: BTreeMap<TableId, Truncation>,
    /// For each table, left out or not, the intervals of the log whose records its SSTables have.
    persisted: BTreeMap<TableId, Vec<Interval>>,
    /// Tables whose schema cannot be read, each with the reason; empty where the start goes on
    /// without what the log has of them.
    left_out: BTreeMap<TableId, String>,
    filter: RestoreFilter,
    shards: Shards,
    /// The greatest timestamp in the log's records of the first tables; None: there are none.
    replayed_timestamp: Option<i64>,
    recovered: Recovered,
}

/// Opens the engine on its directories, which are made if they are not there.
pub fn open(env: &Env, options: EngineOptions) -> Result<(Arc<Engine>, Recovered), StorageError> {
    let env = &if options.read_only { env::read_only(env) } else { env.clone() };
    let locks = lock(env, &options)?;
    let built_in = schema::system::schema();
    if !options.read_only {
        check_system_tables(env, &options, &built_in)?;
    }
    let opened = match options.read_only {
        true => CommitLog::open_read_only(env, &options.commitlog_directory, options.commitlog.clone()),
        false => CommitLog::open(env, &options.commitlog_directory, options.commitlog.clone()),
    };
    let (log, mut replay) = opened.map_err(at_start)?;
    let cache = Arc::new(Caches::new(&options));
    let memory = Arc::new(MemtableMemory::new(options.memtable_bytes));
    let mut recovery = Recovery {
        env,
        options: &options,
        cache: Arc::clone(&cache),
        memory: Arc::clone(&memory),
        tables: Tables::new(),
        truncated: BTreeMap::new(),
        persisted: BTreeMap::new(),
        left_out: BTreeMap::new(),
        filter: RestoreFilter::of(env, &options),
        shards: Shards::at_least(options.shards),
        replayed_timestamp: None,
        recovered: Recovered::default(),
    };
    recovery.open_tables(&built_in)?;
    recovery.note_persisted()?;
    // what a restore knows before the log is replayed
    let known = if recovery.filter.restores() { recovery.truncations()? } else { BTreeMap::new() };
    recovery.replay_first(&log, &mut replay, &built_in)?;
    recovery.read_truncations(known)?;
    let schema = recovery.load_schema(&built_in)?;
    recovery.open_tables(&schema)?;
    let host_id = recovery.note_persisted()?;
    if !options.read_only {
        log.begin(recovery.last_segment_named()).map_err(at_start)?;
    }
    let last_timestamp = recovery.last_timestamp();
    let tables = std::mem::take(&mut recovery.tables);
    let (of_engine, options_of_engine) = (tables.clone(), options.clone());
    let engine = Engine::assemble(Parts {
        env: env.clone(),
        options: options_of_engine,
        log,
        caches: cache,
        memory,
        schema,
        tables: of_engine,
        locks,
    });
    host_id.into_iter().for_each(|host_id| engine.set_host_id(host_id));
    engine.keep_timestamps_after(last_timestamp.unwrap_or(0));
    recovery.tables = tables;
    recovery.note_truncations();
    recovery.replay_rest(&engine, replay)?;
    engine.log.finish_replay()?;
    if recovery.filter.is_set() {
        recovery.filter.tell_end();
        restore_point::settle(&engine)?;
    }
    crate::index::built::note(&engine)?;
    let recovered = recovery.recovered;
    if !options.read_only {
        engine.start();
        drops::note_left_behind(&engine);
    }
    crate::schema_change::store_missing(&engine)?;
    Ok((engine, recovered))
}

/// The error for a failure of the log at the start.
fn at_start(error: LogError) -> StorageError {
    match error {
        // nobody waits for room: the start ends
        LogError::NoSpace { .. } | LogError::NoDescriptors { .. } => StorageError::Refused { why: error.to_string() },
        error => error.into(),
    }
}

/// Takes the locks of all directories with SSTables, which are made if they are not there.
/// Otherwise two nodes that share a directory, or a node and a tool that writes, would remove each
/// other's files. Empty: nothing is written.
fn lock(env: &Env, options: &EngineOptions) -> Result<Vec<Box<dyn Lock>>, StorageError> {
    if options.read_only {
        return Ok(Vec::new());
    }
    let mut directories: Vec<&PathBuf> = options.data_directories.iter().collect();
    directories.extend(options.system_directory.as_ref().filter(|system| !options.data_directories.contains(system)));
    for directory in &directories {
        env.disk.create_dir_all(directory).map_err(|error| StorageError::io(directory, &error))?;
    }
    let lock = |directory: &PathBuf| {
        env.disk.lock_file(&directory.join(LOCK_FILE)).map_err(|error| match error.kind() {
            std::io::ErrorKind::WouldBlock => StorageError::Locked { path: directory.clone() },
            _ => StorageError::io(directory, &error),
        })
    };
    directories.into_iter().map(lock).collect()
}

/// Refuses a start if SSTables of the local system keyspaces lie in a data directory in which
/// these options do not look for them. Without them the node would begin as a new one, without
/// tables, and would throw away the commit log of the old one.
fn check_system_tables(env: &Env, options: &EngineOptions, built_in: &Schema) -> Result<(), StorageError> {
    for table in built_in.keyspaces.values().flat_map(|keyspace| keyspace.tables.values()) {
        for directory in layout::former_directories(options, table) {
            if files::has_sstables(env, &directory)? {
                let why = format!(
                    "{} has SSTables of {}.{}, which this configuration looks for in {} only. Configure the directories as they were \
                     (local_system_data_file_directory, the order of data_file_directories), or move there, without replacing a file, \
                     what the directories of the tables of system and system_schema hold in other data directories, all but those of \
                     {}, as Cassandra does at its start. With --read-only they are read where they are",
                    directory.display(),
                    table.keyspace,
                    table.name,
                    layout::system_directory(options).display(),
                    layout::SPLIT_SYSTEM_TABLES.join(", "),
                );
                return Err(StorageError::Refused { why });
            }
        }
    }
    Ok(())
}

impl Recovery<'_> {
    /// Opens the stored tables of a schema that are not open yet, side by side: with thousands of
    /// them their directories and the files of their SSTables are what a start takes.
    fn open_tables(&mut self, schema: &Schema) -> Result<(), StorageError> {
        let stored = schema.keyspaces.values().filter(|keyspace| !keyspace.is_virtual);
        let tables = stored.flat_map(|keyspace| keyspace.tables.values());
        let mut opening: Vec<Opening<'_>> =
            tables.filter(|table| !self.tables.contains_key(&table.id)).map(|table| (table, None)).collect();
        let (env, options, cache, memory) = (self.env, self.options, &self.cache, &self.memory);
        let open = |opening: &mut [Opening<'_>]| {
            for (table, opened) in opening {
                *opened = Some(opening::open_table(env, options, cache, memory, table));
            }
        };
        let parts = opening.chunks_mut(TABLES_A_PART).map(|part| Box::new(move || open(part)) as Part<'_>).collect();
        env.tasks.run_in_parallel("open", parts);
        for (table, opened) in opening {
            let store = opened.expect("every part has ended")?;
            self.recovered.sstables += store.view().sstables.len();
            self.tables.insert(table.id, store);
        }
        Ok(())
    }

    fn local(&self) -> Option<&Arc<TableStore>> {
        self.tables.values().find(|store| truncation_records::is_system_local(&store.table()))
    }

    /// The truncations that `system.local` has now, without those after a point that is restored.
    fn truncations(&self) -> Result<BTreeMap<TableId, Truncation>, StorageError> {
        let Some(local) = self.local() else { return Ok(BTreeMap::new()) };
        let mut truncations = truncation_records::read(local, self.env.clock.now_seconds())?;
        truncations.retain(|_, truncation| self.filter.keeps_truncation(truncation));
        Ok(truncations)
    }

    /// Notes the truncations that count. `known` is what SSTables say of them, where a point is
    /// restored; else empty.
    fn read_truncations(&mut self, known: BTreeMap<TableId, Truncation>) -> Result<(), StorageError> {
        let mut truncations = self.truncations()?;
        truncations.retain(|id, truncation| self.filter.counts_truncation(truncation, known.get(id)));
        for (id, truncation) in known {
            truncations.entry(id).or_insert(truncation);
        }
        self.truncated = truncations;
        Ok(())
    }

    /// Gives tables the records of their truncations.
    fn note_truncations(&self) {
        for (id, store) in &self.tables {
            *store.truncation.lock().expect("no panic inside") = self.truncated.get(id).copied();
        }
    }

    /// Notes the intervals of the log that SSTables have, once the host id is known. Gives the
    /// host id, if there is one.
    fn note_persisted(&mut self) -> Result<Option<[u8; 16]>, StorageError> {
        let now = self.env.clock.now_seconds();
        let host_id = self.local().map(|local| truncation_records::host_id(local, now)).transpose()?.flatten();
        let of = |store: &Arc<TableStore>| log_intervals::persisted(&store.view().sstables, host_id);
        self.persisted = self.tables.iter().map(|(id, store)| (*id, of(store))).collect();
        let left_out = self.left_out.keys().copied().collect();
        self.persisted.extend(left_out::persisted(self.env, self.options, &left_out, host_id)?);
        Ok(host_id)
    }

    /// The greatest id of a segment that SSTables and truncation records name; 0: they name none.
    /// The commit log of this process begins behind it.
    fn last_segment_named(&self) -> u64 {
        let of_sstables = self.persisted.values().flatten().filter_map(|(_, to)| u64::try_from(to.segment).ok());
        let of_truncations = self.truncated.values().map(|truncation| truncation.position.segment);
        // a number that no segment can have is damage, and holds no record
        of_sstables.chain(of_truncations).filter(|id| *id < i64::MAX as u64).max().unwrap_or(0)
    }

    /// The greatest timestamp of the rows that the engine itself writes (schema, truncations);
    /// None: there are no rows yet. New rows must have later timestamps even if the clock was set
    /// back while no process ran. Otherwise an earlier DROP would win over an ADD that follows it,
    /// and truncated rows would be replayed.
    fn last_timestamp(&self) -> Option<i64> {
        let first = self.tables.values().filter(|store| is_replayed_first(&store.table()));
        let views: Vec<_> = first.map(|store| store.view()).collect();
        let sstables = views.iter().flat_map(|view| &view.sstables);
        let of_sstables = sstables.map(|sstable| sstable.statistics().stats.max_timestamp);
        // statistics say i64::MAX where an SSTable has no timestamp at all
        of_sstables.filter(|timestamp| *timestamp < i64::MAX).chain(self.replayed_timestamp).max()
    }

    /// The stored schema; where there is none, the one that came with the options. Notes which
    /// tables are left out.
    fn load_schema(&mut self, built_in: &Schema) -> Result<Schema, StorageError> {
        let now = self.env.clock.now_seconds();
        let stored = schema_tables::read(built_in, &|table| self.tables.get(&table.id).cloned(), now)?;
        let loaded = schema_tables::load(&stored, now);
        if !self.options.read_only && self.options.disk_failure_policy != DiskFailurePolicy::Ignore {
            self.left_out = loaded.left_out;
        }
        let is_of_users = |schema: &Schema| schema.keyspaces.keys().any(|name| !is_system_keyspace(name));
        match &self.options.offered_schema {
            Some(_) if is_of_users(&loaded.schema) => {
                tracing::warn!("the directory has a schema of its own (system_schema): schema.cql files are not used");
                Ok(loaded.schema)
            }
            Some(offered) => Ok(offered.clone()),
            None => Ok(loaded.schema),
        }
    }
}
