//! What the engine is told at start: places, budgets, pace. Filled from cassandra.yaml by the program.

use std::path::PathBuf;

use crate::commitlog;

/// The engine's settings.
#[derive(Clone)]
pub struct EngineOptions {
    /// `data_file_directories`: keyspaces and tables lie beneath the first.
    pub data_directory: PathBuf,
    /// Commit log.
    pub commitlog: commitlog::Options,
    /// `commitlog_directory`.
    pub commitlog_directory: PathBuf,
    /// This node, in the statistics of the SSTables that it writes.
    pub host_id: Option<[u8; 16]>,
    /// Doors of a table: a power of two.
    pub shards: usize,
    /// Bytes that all memtables together may take. At a third of it the largest is flushed, at all of it writers wait.
    pub memtable_bytes: usize,
    /// Bytes of decompressed chunks that are kept.
    pub chunk_cache_bytes: usize,
    /// `concurrent_compactors`.
    pub concurrent_compactors: usize,
    /// `compaction_throughput`, bytes a second; 0: no limit.
    pub compaction_bytes_per_second: u64,
    /// `column_index_size`, bytes; None: the default of the format that is written.
    pub column_index_size: Option<usize>,
    /// `tombstone_failure_threshold`.
    pub tombstone_failure_threshold: u64,
    /// `tombstone_warn_threshold`.
    pub tombstone_warn_threshold: u64,
    /// `auto_snapshot`: a snapshot before a table is dropped or truncated.
    pub auto_snapshot: bool,
    /// Write nothing.
    pub read_only: bool,
}
