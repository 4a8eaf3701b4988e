//! What is counted of each table.

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
    /// Local read latency, microseconds.
    pub read_latency: Histogram,
    /// SSTables read for a read of one partition.
    pub sstables_per_read: Histogram,
    /// Tombstones passed by a read.
    pub tombstones_per_read: Histogram,
    /// Live rows given by a read.
    pub live_rows_per_read: Histogram,
    /// Flushes done.
    pub flushes: Counter,
    /// Bytes flushed.
    pub bytes_flushed: Counter,
    /// Bytes written by compactions.
    pub bytes_compacted: Counter,
    /// Reads for which the bloom filter passed an SSTable that had nothing.
    pub bloom_false_positives: Counter,
}
