//! The SSTables of a table on disk: opened at start, written by flush and compaction, replaced as
//! one step.
//!
//! The set of files changes atomically: see `sstable::txn_log`. A new SSTable is complete and
//! synced before it is in the view; the files of a replaced one are removed when no read holds it
//! any more (the kernel keeps files that are open).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use env::Env;
use env::sync::MutexGuard;
use env::sync::atomic::Ordering;
use rows::codec::{CodecColumn, EncodingStats, Header};
use rows::{PartitionStream, ReadContext, ReadMode};
use schema::system::is_local_keyspace;
use schema::{TableKind, TableMetadata, TableParams};
use sstable::{
    CommitLogPosition, Component, CompressionParams, Compressor, Descriptor, SSTableId, SSTableWriter, Version,
    WriterOptions,
};
use types::Token;

use crate::caches::Caches;
use crate::commitlog::LogPosition;
use crate::engine::Engine;
use crate::error::StorageError;
use crate::guardrails::PartitionGuards;
use crate::inherited::Inherited;
use crate::options::FlushCompression;
pub use crate::table::OpenedSSTables;
use crate::table::{Changes, TableStore, UnreadableSSTable};

use sstable::attached::is_component as is_attached_component;

pub use sstable::SSTable;

pub use sstable::txn_log::{Operation, Transaction};

/// Bytes of a chunk in a flush that is not compressed.
const NOOP_CHUNK_LENGTH: usize = 4 << 10;

/// Opens the SSTables in a table's directories. What a crash left half done is settled first, or,
/// where nothing may be written, passed over. A damaged file set is named in the log and left out:
/// what becomes of that is the caller's matter. No file is removed that no transaction log names. A
/// disk that fails ends the start, and so does an SSTable under a name that is no more in use.
///
/// As in Cassandra an SSTable is what has a Data.db; a missing table of contents is no sign that it
/// is not whole, since its transaction log says so.
pub fn open_all(
    env: &Env,
    directories: &[PathBuf],
    table: &Arc<TableMetadata>,
    cache: &Arc<Caches>,
    read_only: bool,
) -> Result<OpenedSSTables, StorageError> {
    let hidden = if read_only {
        sstable::txn_log::obsolete_files(env, directories)?
    } else {
        for transaction in sstable::txn_log::recover(env, directories)? {
            let what = if transaction.committed { "completed" } else { "taken back" };
            tracing::info!(log = transaction.log, "a change of SSTables that was interrupted is {what}");
        }
        BTreeSet::new()
    };
    let mut opened = OpenedSSTables::default();
    for directory in directories {
        let entries = env.disk.list_dir_if_exists(directory).map_err(|error| StorageError::io(directory, &error))?;
        let entries = entries.unwrap_or_default();
        for entry in entries.into_iter().filter(|entry| !entry.is_dir) {
            let Some((descriptor, component)) = Descriptor::parse(directory, &entry.name) else {
                refuse_old_name(directory, &entry.name)?;
                continue;
            };
            if let SSTableId::Sequence(sequence) = descriptor.id {
                opened.last_sequence = opened.last_sequence.max(sequence);
            }
            if component == Some(Component::Data) && !hidden.contains(&directory.join(&entry.name)) {
                open_one(env, descriptor, table, cache, &mut opened)?;
            }
        }
    }
    Ok(opened)
}

/// Whether a directory has SSTables. One that is not there has none.
pub(crate) fn has_sstables(env: &Env, directory: &Path) -> Result<bool, StorageError> {
    let entries = env.disk.list_dir_if_exists(directory).map_err(|error| StorageError::io(directory, &error))?;
    let files = entries.unwrap_or_default().into_iter().filter(|entry| !entry.is_dir);
    let mut parsed = files.filter_map(|file| Descriptor::parse(directory, &file.name));
    Ok(parsed.any(|(_, component)| component == Some(Component::Data)))
}

/// Refuses an SSTable under a name from before Cassandra 2.2, such as `ks-table-ka-1-Data.db`:
/// without it rows would be missing, and what it deletes would be back. An SSTable that was never
/// completed has `tmp` or `tmplink` in its name, and is passed over as in Cassandra
/// (`Descriptor.isValidFile`).
fn refuse_old_name(directory: &Path, name: &str) -> Result<(), StorageError> {
    let Some(prefix) = name.strip_suffix("-Data.db") else { return Ok(()) };
    let parts: Vec<&str> = prefix.split('-').collect();
    if matches!(parts.as_slice(), [_, _, "tmp" | "tmplink", ..] | ["tmp" | "tmplink", _, _, "big"]) {
        return Ok(());
    }
    let why = format!(
        "{} has no name that an SSTable has since Cassandra 2.2: it is not read, and its rows would be missing. Have the \
         Cassandra that wrote it upgraded (nodetool upgradesstables) first, or take the file to another place",
        directory.join(name).display()
    );
    Err(StorageError::Refused { why })
}

fn open_one(
    env: &Env,
    descriptor: Descriptor,
    table: &Arc<TableMetadata>,
    cache: &Arc<Caches>,
    opened: &mut OpenedSSTables,
) -> Result<(), StorageError> {
    let cache: Arc<dyn sstable::FileCache> = Arc::clone(cache) as _;
    match SSTable::open(env, descriptor.clone(), table, cache) {
        Ok(sstable) => {
            sstable.notes().iter().for_each(|note| tracing::warn!("{note}"));
            if let Err(error) = check_columns(&sstable) {
                tracing::error!(%error, "an SSTable is not written again until the schema has its column (ALTER TABLE … ADD)");
            }
            if let Err(error) = sstable.keep_made_summary(&*env.disk) {
                tracing::debug!(%error, "the summary is made again at the next start");
            }
            opened.sstables.push(Arc::new(sstable));
        }
        // the files may be sound: to go on without them would bring back what they delete
        Err(error @ sstable::Error::Io { .. }) => return Err(error.into()),
        Err(error) => {
            tracing::error!(table = format!("{}.{}", table.keyspace, table.name), %error, "an SSTable cannot be opened");
            opened.left_out.push(UnreadableSSTable { descriptor, why: error.to_string() });
        }
    }
    Ok(())
}

/// The column of a header that its table has not and never had. Reads pass over its cells, since
/// nobody can name it; a compaction would do so for good, whereas the schema may be what is wrong:
/// rows of it were lost, or have not come yet. Cassandra does not open such an SSTable. None also
/// of the tables that this program defines: it has no use for other columns.
pub(crate) fn unknown_column<'a>(header: &'a Header, table: &TableMetadata) -> Option<&'a str> {
    let is_defined_here = is_local_keyspace(&table.keyspace) || table.kind == TableKind::Index;
    header.unknown_column().filter(|_| !is_defined_here).map(|column| column.name.as_str())
}

/// Refuses to write an SSTable again that has a column which its table has not and never had.
pub(crate) fn check_columns(sstable: &SSTable) -> Result<(), StorageError> {
    let table = sstable.table();
    check_header(sstable.header(), table, &sstable.descriptor().path(Component::Data))
}

/// As [`check_columns`], of the header in a file.
pub(crate) fn check_header(header: &Header, table: &TableMetadata, file: &Path) -> Result<(), StorageError> {
    let Some(column) = unknown_column(header, table) else { return Ok(()) };
    let (keyspace, name) = (&table.keyspace, &table.name);
    let why = format!("{} has the column {column}, which {keyspace}.{name} has not and never had", file.display());
    Err(StorageError::Refused { why })
}

/// The directory of a table that takes a new SSTable: the one with the most room.
pub fn directory_to_write<'a>(env: &Env, store: &'a TableStore) -> &'a Path {
    match store.directories.as_slice() {
        [only] => only,
        directories => {
            let room = |directory: &&PathBuf| env.disk.available_space(directory).unwrap_or(0);
            directories.iter().max_by_key(room).unwrap_or(&store.directory)
        }
    }
}

/// Begins a change. Earlier changes that could not be settled are settled first: until then their
/// files might count after a crash.
pub(crate) fn begin(engine: &Engine, store: &TableStore, operation: Operation) -> Result<Transaction, StorageError> {
    if engine.options.read_only {
        return Err(StorageError::ReadOnly);
    }
    settle_pending(store)?;
    crate::directories::make_directories(engine, store)?;
    let node_and_sequence = engine.env.random.next_u64();
    let id = types::timeuuid::from_micros(engine.env.clock.now_micros(), node_and_sequence);
    let version = version(engine);
    Ok(Transaction::begin(&engine.env, directory_to_write(&engine.env, store), operation, id, version)?)
}

/// The id of a new SSTable.
fn new_id(engine: &Engine, store: &TableStore) -> SSTableId {
    if engine.options.uuid_sstable_ids {
        let node_and_sequence = engine.env.random.next_u64();
        return SSTableId::Uuid(types::timeuuid::from_micros(engine.env.clock.now_micros(), node_and_sequence));
    }
    SSTableId::Sequence(store.next_sequence())
}

fn settle_pending(store: &TableStore) -> Result<(), StorageError> {
    let mut unsettled = store.unsettled.lock().expect("no panic inside");
    while let Some(transaction) = unsettled.failed.last_mut() {
        transaction.settle()?;
        unsettled.failed.pop();
    }
    Ok(())
}

/// Ends a change that is in the view; if that is not possible now, it is done before the next
/// change. While a snapshot of the table is being taken, replaced files stay until the snapshot
/// ends.
pub fn settle(store: &TableStore, transaction: Transaction) {
    let to_settle = store.unsettled.lock().expect("no panic inside").keep(transaction);
    let Some(mut transaction) = to_settle else { return };
    if let Err(error) = transaction.settle() {
        tracing::warn!(table = store.name(), %error, "a change of SSTables cannot be settled yet");
        store.unsettled.lock().expect("no panic inside").failed.push(transaction);
    }
}

/// Keeps the files of the SSTables that a table has, for a snapshot. While this is there, flushes
/// and compactions of the table go on and end; the files of SSTables that they replace are removed
/// when the last guard is dropped. The caller loads the view after it has the guard.
pub(crate) struct FileRetention(Arc<TableStore>);

impl FileRetention {
    /// Begins to keep the files.
    pub(crate) fn of(store: &Arc<TableStore>) -> Self {
        store.unsettled.lock().expect("no panic inside").begin_snapshot();
        Self(Arc::clone(store))
    }
}

impl Drop for FileRetention {
    fn drop(&mut self) {
        let store = &self.0;
        // after a panic under one of the locks the next start settles the changes
        let Ok(ended) = store.unsettled.lock().map(|mut unsettled| unsettled.end_snapshot()) else { return };
        if ended.is_empty() {
            return;
        }
        // `refresh` would take files that lie there without a log for new SSTables
        let Ok(alone) = store.replacing.lock() else { return };
        if is_left_to_drop(store, &alone) {
            return;
        }
        ended.into_iter().for_each(|transaction| settle(store, transaction));
    }
}

/// The facts that the writer of a new SSTable needs.
#[derive(Clone)]
pub struct NewSSTable {
    /// The operation that writes it.
    pub operation: Operation,
    /// The table's schema.
    pub table: Arc<TableMetadata>,
    /// The least timestamps and TTL, which values are encoded relative to.
    pub stats: EncodingStats,
    /// Estimated number of partitions.
    pub keys: usize,
    /// First and last position of the commit-log records in the SSTable; None: it has no new
    /// records.
    pub log_range: Option<(LogPosition, LogPosition)>,
    /// Level, repair state and log intervals that the SSTable takes over from its inputs.
    pub inherited: Inherited,
    /// Dropped columns of the table that may have cells newer than the drop. These cells stay, as
    /// in Cassandra, and are visible again when the column is added again.
    pub dropped: DroppedColumns,
}

impl NewSSTable {
    /// The header against which the rows are encoded.
    pub fn header(&self) -> Header {
        Header::for_table(&self.table, self.stats).widened(self.dropped.statics.clone(), self.dropped.regulars.clone())
    }
}

/// Dropped columns that are written all the same.
#[derive(Clone, Default)]
pub struct DroppedColumns {
    statics: Vec<CodecColumn>,
    regulars: Vec<CodecColumn>,
}

impl DroppedColumns {
    /// The dropped columns in the headers of the SSTables that are read.
    pub fn of<'a>(table: &TableMetadata, headers: impl IntoIterator<Item = &'a Header>) -> Self {
        let mut dropped = Self::default();
        for header in headers {
            let is_dropped = |column: &&CodecColumn| column.id.is_some_and(|id| table.column(id).is_none());
            dropped.statics.extend(header.statics.iter().filter(is_dropped).cloned());
            dropped.regulars.extend(header.regulars.iter().filter(is_dropped).cloned());
        }
        dropped
    }
}

/// The version of new SSTables.
pub fn version(engine: &Engine) -> Version {
    engine.options.sstable_version
}

/// A name for a new SSTable; no file has it yet.
pub fn new_descriptor(engine: &Engine, store: &TableStore, version: Version) -> Descriptor {
    loop {
        let directory = directory_to_write(&engine.env, store);
        let descriptor = Descriptor::new(directory, version, new_id(engine, store));
        // somebody may have put files there
        if !Component::ALL.into_iter().any(|component| engine.env.disk.exists(&descriptor.path(component))) {
            return descriptor;
        }
    }
}

/// A writer of one more SSTable of a change.
pub(crate) fn writer(
    engine: &Engine,
    store: &TableStore,
    transaction: &mut Transaction,
    new: &NewSSTable,
) -> Result<SSTableWriter, StorageError> {
    let table = &new.table;
    let mut options = writer_options(table, new.keys as u64)?;
    if new.operation == Operation::Flush {
        options.compression = options.compression.map(|params| flush_compression(engine, params));
        // a compaction writes it anew
        options.is_quick = engine.options.flush_compression == FlushCompression::Fast;
    }
    options.row_index_block = engine.options.column_index_size;
    options.originating_host = engine.host_id();
    options.level = new.inherited.level;
    options.repaired_at = new.inherited.repaired_at;
    options.pending_repair = new.inherited.pending_repair;
    options.is_transient = new.inherited.is_transient;
    let position = |position: LogPosition| CommitLogPosition {
        segment: i64::try_from(position.segment).unwrap_or(-1),
        offset: i32::try_from(position.offset).unwrap_or(0),
    };
    let flushed = new.log_range.map(|(first, last)| (position(first), position(last)));
    let intervals = new.inherited.log_intervals.iter().copied().chain(flushed).collect();
    options.commit_log_intervals = crate::log_intervals::union(intervals);
    let descriptor = new_descriptor(engine, store, version(engine));
    transaction.add(&descriptor)?;
    let mut writer = SSTableWriter::new(&engine.env, descriptor, Arc::clone(table), options, new.header())?;
    let collections = engine.options.guards.values().collections;
    if let Some(watch) = collections.watch(table, engine.env.clock.now_seconds()) {
        writer.watch_rows(watch);
    }
    Ok(writer)
}

/// The options of a new SSTable by its table's schema. A table whose compressor is not known here
/// gets the default one: otherwise no flush would succeed, and memtables and commit log would only
/// grow. The log names such a table when it is opened (`opening::warn_of_unknown_classes`).
fn writer_options(table: &TableMetadata, keys: u64) -> Result<WriterOptions, StorageError> {
    WriterOptions::for_table(table, keys).or_else(|why| {
        let mut with_default = TableMetadata::clone(table);
        with_default.params.compression = TableParams::default().compression;
        WriterOptions::for_table(&with_default, keys).map_err(|_| StorageError::Refused { why })
    })
}

/// The compression of a flush. A slow compressor is replaced, because a flush may not wait for it.
/// Agrees with `DataComponent.buildCompressionParams`.
fn flush_compression(engine: &Engine, params: CompressionParams) -> CompressionParams {
    match engine.options.flush_compression {
        FlushCompression::None => {
            let compressed_length_max = i32::MAX as usize;
            let (compressor, chunk_length) = (Compressor::Noop, NOOP_CHUNK_LENGTH);
            CompressionParams { compressor, options: BTreeMap::new(), chunk_length, compressed_length_max }
        }
        FlushCompression::Fast if !params.is_fast() => CompressionParams::lz4(),
        FlushCompression::Fast | FlushCompression::Table => params,
    }
}

/// A partition that is written only once there is something in it.
pub struct PendingPartition {
    head: rows::PartitionHead,
    begun: bool,
}

impl PendingPartition {
    /// A partition that begins with `head`.
    pub fn new(head: rows::PartitionHead) -> Self {
        Self { head, begun: false }
    }

    /// The key of the partition.
    pub fn key(&self) -> &[u8] {
        &self.head.key.key
    }

    /// The token of the partition.
    pub fn token(&self) -> Token {
        self.head.key.token
    }

    /// Whether the partition leaves no trace if nothing follows.
    pub fn is_empty(&self) -> bool {
        self.head.deletion.is_live() && self.head.static_row.is_none()
    }

    /// Called before something is written into the partition: begins it if it was not begun.
    pub fn begin(&mut self, writer: &mut SSTableWriter) {
        if self.begun {
            return;
        }
        self.begun = true;
        writer.start_partition(&self.head.key, self.head.deletion);
        if let Some(row) = &self.head.static_row {
            writer.static_row(row);
        }
    }

    /// Ends the partition. One without deletion, static row or rows leaves no trace.
    pub fn end(mut self, writer: &mut SSTableWriter, guards: &PartitionGuards) -> Result<(), StorageError> {
        if !self.is_empty() {
            self.begin(writer);
        }
        if self.begun {
            let written = writer.end_partition()?;
            guards.check(writer, &self.head.key.key, written);
        }
        Ok(())
    }
}

/// Takes SSTables out of the view and off the disk, all or none: those that `goes` names, and those
/// that could not be opened. The result of a compaction of them that is under way is dropped. If
/// the table was dropped nothing is done.
pub fn remove(
    engine: &Engine,
    store: &Arc<TableStore>,
    goes: impl Fn(&Changes, &SSTable) -> bool,
) -> Result<(), StorageError> {
    let alone = store.replacing.lock().expect("a panic while SSTables are replaced ends the process");
    if is_left_to_drop(store, &alone) {
        return Ok(());
    }
    let sstables: Vec<_> = {
        let changes = store.changes();
        store.view().sstables.iter().filter(|sstable| goes(&changes, sstable)).cloned().collect()
    };
    let left_out = store.left_out();
    if sstables.is_empty() && left_out.is_empty() {
        return Ok(());
    }
    let mut transaction = begin(engine, store, Operation::Write)?;
    let all = sstables.iter().map(|sstable| sstable.descriptor());
    let marked = transaction.remove_all(all.chain(left_out.iter().map(|left_out| &left_out.descriptor)));
    let committed = marked.and_then(|()| transaction.commit());
    if committed.is_ok() {
        store.replace_sstables(&sstables, Vec::new());
        left_out.iter().for_each(|left_out| store.forget_left_out(&left_out.descriptor));
    }
    settle(store, transaction);
    Ok(committed?)
}

/// Whether the files of a table or index are left to its drop, which removes them under the same
/// lock. A new table in its place may have files of the same names.
fn is_left_to_drop(store: &TableStore, _alone: &MutexGuard<'_, ()>) -> bool {
    store.dropped.load(Ordering::Acquire)
}

/// Names of the files of an SSTable, among the names in its directory.
pub(crate) fn file_names<'a>(in_directory: &'a BTreeSet<String>, sstable: &SSTable) -> Vec<&'a str> {
    let descriptor = sstable.descriptor();
    let prefix = format!("{}-", descriptor.prefix());
    let has_attached = sstable.attached().keys().is_some();
    let components: Vec<String> = Component::ALL.iter().map(|component| descriptor.file_name(*component)).collect();
    let begun = in_directory.range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded));
    let names = begun.map(String::as_str).take_while(|name| name.starts_with(&prefix));
    let is_own = |name: &&str| {
        components.iter().any(|component| component == name) || (has_attached && is_attached_component(name))
    };
    names.filter(is_own).collect()
}

/// A stream of everything in an SSTable, deleted and expired rows included.
pub fn scan(sstable: &SSTable) -> Result<Box<dyn PartitionStream>, StorageError> {
    Ok(Box::new(sstable.scan_every_row(&ReadContext::new(ReadMode::Background))?))
}
