//! Counters of each table.

use metrics::{Counter, Histogram};

/// Counters of a table.
#[derive(Default)]
pub struct TableMetrics {
    /// Updates applied.
    pub writes: Counter,
    /// Local reads.
    pub reads: Counter,
    /// Local write latency, microseconds.
    pub write_latency: Histogram,
    /// Latency of local reads of partitions by key, microseconds.
    pub read_latency: Histogram,
    /// Latency of local reads of ranges, microseconds.
    pub range_latency: Histogram,
    /// Latency of prepares of Paxos that this node answered as a replica, microseconds.
    pub cas_prepare_latency: Histogram,
    /// Latency of proposals of Paxos that this node answered as a replica, microseconds.
    pub cas_propose_latency: Histogram,
    /// Latency of commits of Paxos that this node applied as a replica, microseconds.
    pub cas_commit_latency: Histogram,
    /// Latency of reads of partitions by key that this node coordinated among several,
    /// microseconds.
    pub coordinator_read_latency: Histogram,
    /// Reads of partitions by key that this node coordinated whose replicas gave different digests.
    pub digest_mismatches: Counter,
    /// Reads of partitions by key that this node coordinated and for which it asked one more
    /// replica, because those that it had asked took longer than `speculative_retry` lets them.
    pub speculative_retries: Counter,
    /// Number of SSTables read for a read of one partition.
    pub sstables_per_read: Histogram,
    /// Number of tombstones passed by a read.
    pub tombstones_per_read: Histogram,
    /// Reads that passed more tombstones than `tombstone_warn_threshold`.
    pub tombstone_warnings: Counter,
    /// Reads that failed for more tombstones than `tombstone_failure_threshold`.
    pub tombstone_failures: Counter,
    /// Live rows given by a read.
    pub live_rows_per_read: Histogram,
    /// Flushes done.
    pub flushes: Counter,
    /// Bytes flushed.
    pub bytes_flushed: Counter,
    /// Bytes written by compactions.
    pub bytes_compacted: Counter,
    /// Reads for which the Bloom filter passed an SSTable that did not have the key.
    pub bloom_false_positives: Counter,
    /// Reads for which the Bloom filter passed an SSTable that had the key.
    pub bloom_true_positives: Counter,
}
