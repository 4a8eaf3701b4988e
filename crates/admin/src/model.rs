//! What the admin API tells: plain values that travel as JSON.
//!
//! Sizes are bytes, latencies microseconds, times milliseconds since 1970, unless a name says otherwise.

use serde::{Deserialize, Serialize};

mod histogram;
mod sampling;
mod sstables;

pub use histogram::HistogramData;
#[cfg(test)]
pub(crate) use histogram::tests as histogram_tests;
pub use sampling::{SAMPLERS, Sample, SampleRequest, SamplerInfo, Samples};
pub use sstables::{
    Compact, CompactRequest, ImportRequest, SSTableOutcome, SSTableRequest, SSTableWork, SSTablesOfKey, StopRequest,
};

/// The node itself.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct NodeInfo {
    /// Host id, dashed.
    pub host_id: String,
    /// cluster_name
    pub cluster_name: String,
    /// The version of Cassandra that we answer as.
    pub release_version: String,
    /// Our own version and build.
    pub helenus_version: String,
    /// Full class name of the snitch.
    pub snitch: String,
    /// Full class name of the partitioner.
    pub partitioner: String,
    /// Data center.
    pub data_center: String,
    /// Rack.
    pub rack: String,
    /// Broadcast address.
    pub address: String,
    /// Internode port.
    pub storage_port: u16,
    /// Where clients connect.
    pub rpc_address: String,
    /// Port of the native protocol.
    pub native_port: u16,
    /// Gossip runs.
    pub gossip_active: bool,
    /// Clients can connect.
    pub native_transport_active: bool,
    /// NORMAL, DRAINED …
    pub mode: String,
    /// Schema version, dashed.
    pub schema_version: String,
    /// Bytes of live SSTables.
    pub load: u64,
    /// The same, uncompressed.
    pub uncompressed_load: u64,
    /// Seconds since 1970 when this generation began.
    pub generation: i64,
    /// Seconds since the start.
    pub uptime_seconds: u64,
    /// Resident memory.
    pub memory_used: u64,
    /// The memory budget.
    pub memory_max: u64,
    /// Errors that no request reported.
    pub exceptions: u64,
    /// The chunk cache.
    pub chunk_cache: CacheInfo,
    /// The key cache.
    pub key_cache: CacheInfo,
    /// Seconds; 0: it is not saved.
    pub key_cache_save_period: u64,
    /// The row cache.
    pub row_cache: CacheInfo,
    /// Seconds; 0: it is not saved.
    pub row_cache_save_period: u64,
    /// Share of repaired data, per cent.
    pub percent_repaired: f64,
    /// Tokens in order.
    pub tokens: Vec<i64>,
    /// COMPLETED
    pub bootstrap_state: String,
}

/// A cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CacheInfo {
    /// Entries.
    pub entries: u64,
    /// Bytes in use.
    pub size: u64,
    /// Bytes at most.
    pub capacity: u64,
    /// Lookups that found.
    pub hits: u64,
    /// Lookups.
    pub requests: u64,
}

/// A cache that can be told to forget.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum CacheKind {
    /// Where partitions are.
    Keys,
    /// Heads of partitions.
    Rows,
}

/// What is to happen to the port of the native protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum TransportChange {
    /// No client can connect; connections are closed when their requests in flight are answered.
    Close {
        /// Requests in flight are dropped, not answered.
        force: bool,
    },
    /// Clients can connect again.
    Open,
}

/// What is to be changed of the caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum CacheChange {
    /// It forgets everything.
    Invalidate(CacheKind),
    /// What they may hold; the chunks have the rest.
    Capacities {
        /// Bytes.
        keys: u64,
        /// Bytes.
        rows: u64,
    },
    /// How many keys are saved.
    KeysToSave {
        /// Of the key cache.
        keys: u64,
        /// Of the row cache.
        rows: u64,
    },
}

/// A keyspace.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeyspaceInfo {
    /// Its name.
    pub name: String,
    /// Class without package.
    pub replication_class: String,
    /// Options as pairs.
    pub replication_options: Vec<(String, String)>,
    /// Names of its tables.
    pub tables: Vec<String>,
}

/// A table's figures.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TableStats {
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// SSTables.
    pub sstable_count: u64,
    /// SSTables of an older format version.
    pub old_sstable_count: u64,
    /// Bytes of the largest SSTable.
    pub max_sstable_size: u64,
    /// Of the leveled strategy, by level: SSTables, their bytes, the most that there should be.
    pub levels: Vec<(u64, u64, u64)>,
    /// Of the time window strategy: size and unit of a window as the schema has them, and the longest time in one SSTable, milliseconds.
    pub time_window: Option<(Option<String>, Option<String>, u64)>,
    /// Bytes of live SSTables.
    pub space_used_live: u64,
    /// Bytes of all SSTables, obsolete ones that are still read included.
    pub space_used_total: u64,
    /// Bytes that only snapshots keep.
    pub space_used_by_snapshots: u64,
    /// Compressed over uncompressed; -1: nothing is compressed.
    pub compression_ratio: f64,
    /// Estimate of the partitions in SSTables and memtables.
    pub estimated_partitions: u64,
    /// Cells (operations) in memtables.
    pub memtable_cells: u64,
    /// Bytes in memtables.
    pub memtable_data_size: u64,
    /// Flushes.
    pub memtable_switch_count: u64,
    /// Memtables being flushed.
    pub pending_flushes: u64,
    /// Compactions that should run.
    pub pending_compactions: u64,
    /// Local reads.
    pub read_latency: HistogramData,
    /// Local writes.
    pub write_latency: HistogramData,
    /// Local range reads.
    pub range_latency: HistogramData,
    /// SSTables of a read.
    pub sstables_per_read: HistogramData,
    /// Live rows of a read.
    pub live_rows_per_read: HistogramData,
    /// Tombstones of a read.
    pub tombstones_per_read: HistogramData,
    /// Reads that were warned of tombstones.
    pub tombstone_warnings: u64,
    /// Reads that failed for tombstones.
    pub tombstone_failures: u64,
    /// Bytes of partitions in SSTables.
    pub partition_size: HistogramData,
    /// Cells of partitions in SSTables.
    pub cell_count: HistogramData,
    /// Share of repaired data, per cent.
    pub percent_repaired: f64,
    /// Repaired bytes, uncompressed.
    pub bytes_repaired: u64,
    /// Unrepaired bytes, uncompressed.
    pub bytes_unrepaired: u64,
    /// Bytes of pending repairs, uncompressed.
    pub bytes_pending_repair: u64,
    /// Reads that a bloom filter let pass in vain.
    pub bloom_filter_false_positives: u64,
    /// Their share of what the filters let pass.
    pub bloom_filter_false_ratio: f64,
    /// Bytes of bloom filters on disk.
    pub bloom_filter_space_used: u64,
    /// Bytes of bloom filters in memory.
    pub bloom_filter_memory: u64,
    /// Bytes of compression metadata in memory.
    pub compression_metadata_memory: u64,
    /// Smallest partition.
    pub min_partition_size: u64,
    /// Greatest partition.
    pub max_partition_size: u64,
    /// Mean partition.
    pub mean_partition_size: u64,
    /// Share of tombstones that compaction may drop.
    pub droppable_tombstone_ratio: f64,
    /// Bytes flushed since the start.
    pub bytes_flushed: u64,
    /// Bytes that compactions wrote since the start.
    pub bytes_compacted: u64,
}

/// Latencies of clients' requests.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ClientLatencies {
    /// SELECT of partitions.
    pub read: HistogramData,
    /// INSERT, UPDATE, DELETE, BATCH.
    pub write: HistogramData,
    /// SELECT of ranges.
    pub range: HistogramData,
    /// Serial reads.
    pub cas_read: HistogramData,
    /// Conditional writes.
    pub cas_write: HistogramData,
    /// View updates.
    pub view_write: HistogramData,
}

/// Compaction: what runs and what was done.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct CompactionStats {
    /// How many may run at a time.
    pub concurrent_compactors: u32,
    /// Waiting ones: keyspace, table, count.
    pub pending: Vec<(String, String, u64)>,
    /// Ended ones.
    pub completed: u64,
    /// Bytes read by them.
    pub bytes_compacted: u64,
    /// Ended before their end.
    pub aborted: u64,
    /// Run with fewer SSTables for want of space.
    pub reduced: u64,
    /// SSTables left out for want of space.
    pub dropped_sstables: u64,
    /// Ended ones a second, of the last 15 minutes.
    pub fifteen_minute_rate: f64,
    /// Ended ones a second since the start.
    pub mean_rate: f64,
    /// Bytes a second at most; 0: not throttled.
    pub throughput: u64,
    /// Those that run.
    pub running: Vec<RunningCompaction>,
}

/// A compaction that runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RunningCompaction {
    /// Names it, dashed.
    pub id: String,
    /// "Compaction" …
    pub kind: String,
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// Bytes read so far.
    pub completed: u64,
    /// Bytes to read.
    pub total: u64,
    /// How many SSTables go in.
    pub sstables: u64,
}

/// A compaction that ended: a row of `system.compaction_history`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CompactionHistoryEntry {
    /// Names it, dashed.
    pub id: String,
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// When.
    pub compacted_at: i64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Bytes written.
    pub bytes_out: u64,
    /// How many rows came from how many SSTables.
    pub rows_merged: Vec<(u32, u64)>,
    /// `compaction_type` and others.
    pub properties: Vec<(String, String)>,
}

/// A pool of work.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PoolStats {
    /// Its name.
    pub name: String,
    /// At work.
    pub active: u64,
    /// Waiting.
    pub pending: u64,
    /// Done.
    pub completed: u64,
    /// Refused entry at present.
    pub blocked: u64,
    /// Refused entry since the start.
    pub all_time_blocked: u64,
}

/// A snapshot of a table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SnapshotInfo {
    /// Its name.
    pub name: String,
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// Bytes that nothing else holds.
    pub true_size: u64,
    /// Bytes of its files.
    pub size_on_disk: u64,
    /// When it was taken; None: unknown.
    pub created_at: Option<i64>,
}

/// What a snapshot is to hold.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SnapshotRequest {
    /// Its name.
    pub name: String,
    /// Keyspaces; none: all.
    pub keyspaces: Vec<String>,
    /// Tables as (keyspace, table); none: all of the keyspaces.
    pub tables: Vec<(String, String)>,
    /// Leave memtables out.
    pub skip_flush: bool,
}

/// Which tables a verb is for.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TableSelection {
    /// Keyspaces; none: all.
    pub keyspaces: Vec<String>,
    /// Tables of the keyspaces; none: all.
    pub tables: Vec<String>,
}

/// Figures for monitoring that no verb shows.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct NodeMetrics {
    /// Connected clients.
    pub connections: u64,
    /// Connections since the start.
    pub connections_total: u64,
    /// Requests since the start, by opcode.
    pub requests: Vec<(String, u64)>,
    /// Errors answered, by name.
    pub errors: Vec<(String, u64)>,
    /// Bytes received from clients.
    pub received_bytes: u64,
    /// Bytes sent to clients.
    pub sent_bytes: u64,
    /// Prepared statements in the cache.
    pub prepared_statements: u64,
    /// Prepared statements that were evicted.
    pub prepared_statements_evicted: u64,
    /// The commit log.
    pub commitlog: CommitLogMetrics,
    /// Memory by what holds it.
    pub memory: Vec<(String, u64)>,
    /// Milliseconds of CPU used by the process.
    pub cpu_millis: u64,
}

/// How far the replay of the commit log is, at a start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReplayMetrics {
    /// The schema's records are replayed, before all others.
    pub is_schema: bool,
    /// Bytes of segments that are read.
    pub done: u64,
    /// Bytes of all segments.
    pub total: u64,
    /// Records read.
    pub records: u64,
}

/// The commit log.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CommitLogMetrics {
    /// Bytes of its segments.
    pub size: u64,
    /// Segments.
    pub segments: u64,
    /// Syncs done.
    pub syncs: u64,
    /// Records that wait for a sync.
    pub pending: u64,
    /// How long writes waited for a sync.
    pub waiting_on_commit: HistogramData,
}
