//! Figures for monitoring: tables, requests, pools, the process. Read by nodetool and by
//! [`crate::prometheus`].

use serde::{Deserialize, Serialize};

use crate::histogram::HistogramData;

/// Asks for the figures of all stored tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetTables {}

/// Asks for the latencies of clients' requests since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetClientLatencies {}

/// Asks for the pools of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetPools {}

/// Asks for the figures that no verb of nodetool shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetMetrics {}

/// Figures of a table; counters and histograms since the start.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TableStats {
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// Number of SSTables.
    pub sstable_count: u64,
    /// SSTables of an older format version.
    pub old_sstable_count: u64,
    /// Bytes of the largest SSTable.
    pub max_sstable_size: u64,
    /// With LeveledCompactionStrategy for each level: number of SSTables, their bytes, the bytes
    /// that the level should have at most.
    pub levels: Vec<(u64, u64, u64)>,
    /// With TimeWindowCompactionStrategy: size and unit of a window as the schema has them, and the
    /// longest span of write timestamps in one SSTable in milliseconds.
    pub time_window: Option<(Option<String>, Option<String>, u64)>,
    /// Bytes of live SSTables.
    pub space_used_live: u64,
    /// Bytes of all SSTables, with obsolete ones that are still read.
    pub space_used_total: u64,
    /// Bytes that only snapshots keep.
    pub space_used_by_snapshots: u64,
    /// Compressed size divided by uncompressed size; -1: no SSTable is compressed.
    pub compression_ratio: f64,
    /// Estimate of the partitions in SSTables and memtables.
    pub estimated_partitions: u64,
    /// Cells (operations) in memtables.
    pub memtable_cells: u64,
    /// Bytes in memtables.
    pub memtable_data_size: u64,
    /// Flushes since the start.
    pub memtable_switch_count: u64,
    /// Sets of memtables that are being flushed.
    pub pending_flushes: u64,
    /// Compactions that should run.
    pub pending_compactions: u64,
    /// Latency of reads of partitions.
    pub read_latency: HistogramData,
    /// Latency of writes.
    pub write_latency: HistogramData,
    /// Latency of reads of ranges.
    pub range_latency: HistogramData,
    /// Latency of prepares of Paxos, as a replica.
    pub cas_prepare_latency: HistogramData,
    /// Latency of proposals of Paxos, as a replica.
    pub cas_propose_latency: HistogramData,
    /// Latency of commits of Paxos, as a replica.
    pub cas_commit_latency: HistogramData,
    /// SSTables that a read touched.
    pub sstables_per_read: HistogramData,
    /// Live rows that a read found.
    pub live_rows_per_read: HistogramData,
    /// Tombstones that a read passed.
    pub tombstones_per_read: HistogramData,
    /// Reads that passed more tombstones than `tombstone_warn_threshold`.
    pub tombstone_warnings: u64,
    /// Reads that failed because they passed more tombstones than `tombstone_failure_threshold`.
    pub tombstone_failures: u64,
    /// Reads that this node coordinated whose replicas gave different digests.
    pub digest_mismatches: u64,
    /// Reads that this node coordinated and for which it asked one more replica, because those that
    /// it had asked were slow.
    #[serde(default)]
    pub speculative_retries: u64,
    /// Sizes of the partitions in SSTables.
    pub partition_size: HistogramData,
    /// Numbers of cells of the partitions in SSTables.
    pub cell_count: HistogramData,
    /// Share of data that is repaired, per cent.
    pub percent_repaired: f64,
    /// Bytes of repaired data, uncompressed.
    pub bytes_repaired: u64,
    /// Bytes of unrepaired data, uncompressed.
    pub bytes_unrepaired: u64,
    /// Bytes of data in pending repairs, uncompressed.
    pub bytes_pending_repair: u64,
    /// Lookups that a bloom filter let pass although the SSTable did not have the partition.
    pub bloom_filter_false_positives: u64,
    /// Share of false positives among the lookups that bloom filters let pass, 0 to 1.
    pub bloom_filter_false_ratio: f64,
    /// Bytes of bloom filters on disk.
    pub bloom_filter_space_used: u64,
    /// Bytes of bloom filters in memory.
    pub bloom_filter_memory: u64,
    /// Bytes of compression metadata in memory.
    pub compression_metadata_memory: u64,
    /// Bytes of the smallest partition.
    pub min_partition_size: u64,
    /// Bytes of the largest partition.
    pub max_partition_size: u64,
    /// Mean bytes of a partition.
    pub mean_partition_size: u64,
    /// Share of tombstones that compaction may purge, 0 to 1.
    pub droppable_tombstone_ratio: f64,
    /// Bytes flushed since the start.
    pub bytes_flushed: u64,
    /// Bytes that compactions wrote since the start.
    pub bytes_compacted: u64,
}

/// Latencies of clients' requests since the start.
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
    /// Figures of conditional writes and of serial reads.
    #[serde(default)]
    pub cas: CasCounts,
}

/// Figures of conditional statements since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CasCounts {
    /// Serial reads.
    pub read: CasKindCounts,
    /// Conditional writes.
    pub write: CasKindCounts,
    /// Conditional writes whose condition did not hold.
    pub conditions_not_met: u64,
}

/// Contention and unfinished work of one kind of statement (serial read or conditional write), in a
/// ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CasKindCounts {
    /// Statements that were overtaken by others.
    pub contended: u64,
    /// How often that happened to them.
    pub contentions: u64,
    /// Changes of other statements that were found and finished.
    pub unfinished_commits: u64,
    /// Statements of which it is not known whether they have been decided.
    pub unknown_results: u64,
}

/// A pool of work.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PoolStats {
    /// Its name.
    pub name: String,
    /// Tasks at work.
    pub active: u64,
    /// Tasks that wait.
    pub pending: u64,
    /// Tasks done since the start.
    pub completed: u64,
    /// Tasks that are refused entry at present.
    pub blocked: u64,
    /// Tasks that were refused entry since the start.
    pub all_time_blocked: u64,
}

/// Figures for monitoring that no verb shows.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct NodeMetrics {
    /// Clients that are connected.
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
    /// Figures of the commit log since the start.
    pub commitlog: CommitLogMetrics,
    /// Bytes of memory by the name of what holds them.
    pub memory: Vec<(String, u64)>,
    /// Milliseconds of CPU used by the process.
    pub cpu_millis: u64,
    /// Streams of SSTables since the start.
    pub streams: StreamCounts,
    /// Requests of other nodes for tokens that this node has no copy of.
    pub foreign: ForeignRequests,
    /// Repairs since the start.
    pub repairs: RepairFigures,
    /// Hints since the start.
    #[serde(default)]
    pub hints: HintCounts,
    /// Spans of requests since the start, by what has become of them: sent, dropped, failed. Empty:
    /// they are not exported.
    #[serde(default)]
    pub spans: Vec<(String, u64)>,
}

/// Repairs that the node coordinates or takes part in, since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RepairFigures {
    /// Commands that run.
    pub running: u64,
    /// Commands that have ended well.
    pub succeeded: u64,
    /// Commands that have failed.
    pub failed: u64,
    /// Validations that have ended well.
    pub validations: u64,
    /// Validations that have failed.
    pub validations_failed: u64,
    /// Bytes that validations have read.
    pub bytes_validated: u64,
    /// Partitions that validations have hashed.
    pub partitions_validated: u64,
    /// Exchanges of this node with another one that have ended well.
    pub exchanges: u64,
    /// Exchanges that have failed.
    pub exchanges_failed: u64,
    /// Bytes of SSTables that sessions of incremental repairs have.
    pub pending_bytes: u64,
    /// Scheduled repairs that have ended well.
    pub scheduled: u64,
    /// Scheduled repairs that have failed.
    pub scheduled_failed: u64,
    /// Milliseconds for which the latencies of clients have held scheduled repairs back.
    pub held_millis: u64,
    /// Scheduled repairs that are due, at the last look.
    pub due: u64,
    /// Tables of which a range was not repaired within gc_grace, at the last look.
    pub late_tables: u64,
}

/// Hints since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct HintCounts {
    /// Mutations for which no hint was kept.
    pub not_stored: u64,
    /// Of these, mutations of nodes that had been down for longer than `max_hint_window`.
    pub past_window: u64,
    /// Hints that their nodes took.
    pub succeeded: u64,
    /// Hints that their nodes refused, or that were not sent.
    pub failed: u64,
    /// Hints that were not answered in time.
    pub timed_out: u64,
    /// Hints that were dropped because their gc_grace had passed.
    pub expired: u64,
    /// Entries of hint files that did not match their checksums.
    pub damaged: u64,
    /// Hints of other nodes for partitions that this node is no replica of.
    pub for_unowned_ranges: u64,
}

/// Streams of SSTables between nodes since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StreamCounts {
    /// Bytes that came.
    pub received_bytes: u64,
    /// Bytes that were sent.
    pub sent_bytes: u64,
    /// Sessions that run.
    pub running: u64,
    /// Sessions that have ended well.
    pub completed: u64,
    /// Sessions that have failed.
    pub failed: u64,
    /// Files that were sent again, because the link that took them was lost.
    pub resent: u64,
}

/// Requests of other nodes for tokens that this node has no copy of, since the start.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ForeignRequests {
    /// All of them, those for ranges included.
    pub total: u64,
    /// Reads, writes and requests of Paxos by keyspace.
    pub by_keyspace: Vec<(String, [u64; 3])>,
}

/// Figures of the commit log since the start.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CommitLogMetrics {
    /// Bytes of its segments.
    pub size: u64,
    /// Number of segments.
    pub segments: u64,
    /// Syncs done.
    pub syncs: u64,
    /// Records that wait for a sync.
    pub pending: u64,
    /// How long writes waited for a sync.
    pub waiting_on_commit: HistogramData,
}

/// How far the replay of the commit log is, at a start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReplayMetrics {
    /// Whether the records of the schema are replayed, which come before all others.
    pub is_schema: bool,
    /// Bytes of segments that were read so far.
    pub done: u64,
    /// Bytes of all segments.
    pub total: u64,
    /// Records that were read so far.
    pub records: u64,
}
