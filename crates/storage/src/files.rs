//! SSTables of a table: opening, writing and replacing them as one step. (Stand-in until crate `sstable` is in place.)

use std::sync::Arc;

use rows::codec::EncodingStats;
use rows::{PartitionHead, PartitionStream, ReadCommand, ReadContext, ReadError, Unfiltered};
use schema::TableMetadata;
use types::DecoratedKey;

use crate::commitlog::LogPosition;
use crate::engine::Engine;
use crate::error::StorageError;
use crate::table::TableStore;

pub type SSTableId = u64;
pub enum SSTable {}
pub enum SSTableWriter {}
pub enum Transaction {}
pub enum Operation {
    Flush,
    Compaction,
}

impl SSTable {
    pub fn id(&self) -> SSTableId {
        match *self {}
    }
    pub fn name(&self) -> String {
        match *self {}
    }
    pub fn file_names(&self) -> Vec<String> {
        match *self {}
    }
    pub fn data_file_name(&self) -> String {
        match *self {}
    }
    pub fn data_size(&self) -> u64 {
        match *self {}
    }
    pub fn partition_count(&self) -> u64 {
        match *self {}
    }
    pub fn min_timestamp(&self) -> i64 {
        match *self {}
    }
    pub fn max_timestamp(&self) -> i64 {
        match *self {}
    }
    pub fn encoding_stats(&self) -> EncodingStats {
        match *self {}
    }
    pub fn droppable_tombstone_ratio(&self, _gc_before: u32) -> f64 {
        match *self {}
    }
    pub fn may_contain(&self, _key: &DecoratedKey) -> bool {
        match *self {}
    }
    pub fn overlaps(&self, _other: &SSTable) -> bool {
        match *self {}
    }
    pub fn excludes(&self, _command: &ReadCommand) -> Option<&'static str> {
        match *self {}
    }
    pub fn read(
        self: &Arc<Self>,
        _command: &ReadCommand,
        _context: &ReadContext,
    ) -> Result<Box<dyn PartitionStream>, ReadError> {
        match **self {}
    }
    pub fn scan(self: &Arc<Self>) -> Result<Box<dyn PartitionStream>, ReadError> {
        match **self {}
    }
}
impl SSTableWriter {
    pub fn position(&self) -> u64 {
        match *self {}
    }
    pub fn start_partition(&mut self, _head: &PartitionHead) -> Result<(), StorageError> {
        match *self {}
    }
    pub fn append(&mut self, _unfiltered: &Unfiltered) -> Result<(), StorageError> {
        match *self {}
    }
    pub fn end_partition(&mut self) -> Result<(), StorageError> {
        match *self {}
    }
    pub fn abort(self) {
        match self {}
    }
}
impl Transaction {
    pub fn abort(self) {
        match self {}
    }
}

fn missing<T>() -> Result<T, StorageError> {
    Err(StorageError::Refused { why: "SSTables cannot be written yet".into() })
}

/// The SSTables found in a table's directory, and the greatest sequence number seen.
pub fn open_all(
    _env: &env::Env,
    _directory: &std::path::Path,
    _table: &Arc<TableMetadata>,
    _cache: &Arc<crate::chunk_cache::ChunkCache>,
) -> Result<(Vec<Arc<SSTable>>, u64), StorageError> {
    Ok((Vec::new(), 0))
}
pub fn begin(_engine: &Engine, _store: &TableStore, _operation: Operation) -> Result<Transaction, StorageError> {
    missing()
}
pub fn writer(
    _engine: &Engine,
    _store: &TableStore,
    _transaction: &mut Transaction,
    _table: &Arc<TableMetadata>,
    _stats: EncodingStats,
    _keys: usize,
    _log: Option<(LogPosition, LogPosition)>,
) -> Result<SSTableWriter, StorageError> {
    missing()
}
pub fn write_all(_writer: &mut SSTableWriter, _stream: &mut dyn PartitionStream) -> Result<(), StorageError> {
    missing()
}
/// Completes the SSTable, puts it in the place of `replaced` on disk, opens it and (for compactions) in the view. None: it would be empty.
pub fn finish(
    _engine: &Engine,
    _store: &Arc<TableStore>,
    _transaction: Transaction,
    _writer: SSTableWriter,
    _written: Result<(), StorageError>,
    _replaced: &[Arc<SSTable>],
) -> Result<Option<Arc<SSTable>>, StorageError> {
    missing()
}
pub fn remove(_engine: &Engine, store: &Arc<TableStore>, sstables: &[Arc<SSTable>]) -> Result<(), StorageError> {
    store.replace_sstables(sstables, Vec::new());
    Ok(())
}
