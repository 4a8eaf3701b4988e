//! The options of the engine: directories, budgets, rates. Filled from cassandra.yaml by the
//! program.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use schema::{Schema, TableId};
use sstable::Version;

use crate::commitlog;
use crate::error::StorageError;
use crate::guardrails::Guards;

/// `disk_failure_policy`: what a start does with an SSTable that cannot be opened, and what follows
/// where one cannot be read or written later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DiskFailurePolicy {
    /// The start is refused. A disk that fails later ends the traffic of clients and other nodes.
    Stop,
    /// As [`Self::Stop`]; damage that is met later ends the traffic too.
    StopParanoid,
    /// The start is refused. A disk that fails later, or damage, ends the process.
    Die,
    /// The SSTable is left out. Later failures have no further consequence.
    Ignore,
}

/// Called with each failure of the disk, or damage, that the policy is about. It runs on the
/// thread that has met the failure, so it must not wait.
pub type OnDiskFailure = Arc<dyn Fn(DiskFailurePolicy, &StorageError) + Send + Sync>;

/// How SSTables that are flushed are compressed; compaction always does as the table says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlushCompression {
    /// The format is that of compressed data, but nothing is compressed.
    None,
    /// With LZ4 if the table's compressor is slow.
    Fast,
    /// As the table says.
    Table,
}

/// The directory in which the names of hot cache entries are saved, and how often.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SavedCaches {
    /// `saved_caches_directory`.
    pub directory: PathBuf,
    /// `key_cache_save_period`, for the caches of keys and of chunks; None: they are not saved by
    /// time.
    pub keys_period: Option<Duration>,
    /// `row_cache_save_period`; None: the row cache is not saved by time.
    pub rows_period: Option<Duration>,
    /// `key_cache_keys_to_save`.
    pub keys_to_save: u64,
    /// `row_cache_keys_to_save`.
    pub rows_to_save: u64,
    /// `cache_load_timeout`.
    pub load_timeout: Duration,
}

/// How much of a disk's free bytes compactions and streams may take: the rest is for the commit
/// log, for flushes and for other files on the disk. Agrees with
/// `Directories.getAvailableSpaceForCompactions`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DiskRoom {
    /// `min_free_space_per_drive`: bytes that stay free.
    pub min_free: u64,
    /// `max_space_usable_for_compactions_in_percentage`: the part, from 0 to 1, of the remaining
    /// free bytes that may be taken.
    pub usable_part: f64,
}

impl DiskRoom {
    /// Bytes that may be taken of `free` bytes.
    pub fn of(self, free: u64) -> u64 {
        (free.saturating_sub(self.min_free) as f64 * self.usable_part) as u64
    }
}

impl Default for DiskRoom {
    /// No limits: all free bytes may be taken.
    fn default() -> Self {
        Self { min_free: 0, usable_part: 1.0 }
    }
}

/// The engine's settings.
#[derive(Clone)]
pub struct EngineOptions {
    /// `data_file_directories`, at least one: keyspaces and tables lie beneath each.
    pub data_directories: Vec<PathBuf>,
    /// `local_system_data_file_directory`: where `system` and `system_schema` lie; None: in the
    /// first data directory.
    pub system_directory: Option<PathBuf>,
    /// Directories of tables whose files lie elsewhere: in snapshots and copies.
    pub places: BTreeMap<TableId, Vec<PathBuf>>,
    /// The schema, from `schema.cql` files, for a directory that has none of its own. None: there
    /// are no such files.
    pub offered_schema: Option<Schema>,
    /// The options of the commit log.
    pub commitlog: commitlog::Options,
    /// `commitlog_directory`.
    pub commitlog_directory: PathBuf,
    /// The host id, which the statistics of new SSTables name; None: not known yet.
    pub host_id: Option<[u8; 16]>,
    /// Shards of a table: a power of two.
    pub shards: usize,
    /// Bytes that all memtables together may take. At a third of it the largest table is flushed,
    /// at all of it writers wait.
    pub memtable_bytes: usize,
    /// Bytes of decompressed chunks that are kept.
    pub chunk_cache_bytes: usize,
    /// Bytes of positions of partitions that are kept (`key_cache_size`).
    pub key_cache_bytes: usize,
    /// Bytes of heads of partitions that are kept (`row_cache_size`); 0: none.
    pub row_cache_bytes: usize,
    /// Where and how often the names of hot cache entries are saved; None: they are not.
    pub saved_caches: Option<SavedCaches>,
    /// `concurrent_compactors`.
    pub concurrent_compactors: usize,
    /// `compaction_throughput`, bytes a second; 0: no limit.
    pub compaction_bytes_per_second: u64,
    /// The part of a disk that compactions and streams may take.
    pub disk_room: DiskRoom,
    /// `column_index_size`, bytes; None: the default of the format that is written.
    pub column_index_size: Option<usize>,
    /// `tombstone_failure_threshold`.
    pub tombstone_failure_threshold: u64,
    /// `tombstone_warn_threshold`.
    pub tombstone_warn_threshold: u64,
    /// Guardrails that the storage checks. They change while the node runs (`setguardrailsconfig`).
    pub guards: Arc<Guards>,
    /// `auto_snapshot`: a snapshot before a table is dropped or truncated.
    pub auto_snapshot: bool,
    /// `disk_failure_policy`.
    pub disk_failure_policy: DiskFailurePolicy,
    /// Called with failures that `disk_failure_policy` is about, while the engine is open.
    pub on_disk_failure: OnDiskFailure,
    /// True: nothing is written. The disk of `env` refuses it, records of the commit log are
    /// replayed into memory only, and requests that write are refused.
    pub read_only: bool,
    /// The version of new SSTables (`sstable.selected_format` and `storage_compatibility_mode`).
    pub sstable_version: Version,
    /// How flushes compress (`flush_compression`).
    pub flush_compression: FlushCompression,
    /// New SSTables have time-UUIDs for ids (`uuid_sstable_identifiers_enabled`).
    pub uuid_sstable_ids: bool,
}

impl EngineOptions {
    /// Options with small budgets for an engine whose files lie in `data` and `commitlog` beneath
    /// a directory.
    pub fn with_small_budgets(directory: &Path) -> Self {
        Self {
            data_directories: vec![directory.join("data")],
            system_directory: None,
            places: BTreeMap::new(),
            offered_schema: None,
            commitlog: commitlog::Options::default(),
            commitlog_directory: directory.join("commitlog"),
            host_id: None,
            shards: 4,
            memtable_bytes: 16 << 20,
            chunk_cache_bytes: 1 << 20,
            key_cache_bytes: 64 << 10,
            row_cache_bytes: 0,
            saved_caches: None,
            concurrent_compactors: 1,
            compaction_bytes_per_second: 0,
            disk_room: DiskRoom::default(),
            column_index_size: None,
            tombstone_failure_threshold: u64::MAX,
            tombstone_warn_threshold: u64::MAX,
            guards: Arc::default(),
            auto_snapshot: false,
            disk_failure_policy: DiskFailurePolicy::Stop,
            on_disk_failure: Arc::new(|_, _| {}),
            read_only: false,
            sstable_version: Version::DA,
            flush_compression: FlushCompression::Fast,
            uuid_sstable_ids: false,
        }
    }

    /// The first data directory.
    pub fn data_directory(&self) -> &Path {
        self.data_directories.first().map_or(Path::new("data"), PathBuf::as_path)
    }
}
