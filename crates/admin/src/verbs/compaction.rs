//! Compactions: what runs and was done, and those that an operator asks for or stops.

use serde::{Deserialize, Serialize};

use super::TableSelection;

/// Asks what is compacted and what waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetCompactions {}

/// Asks for the rows of `system.compaction_history`, in any order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetCompactionHistory {}

/// Sets how many compactions may run at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SetConcurrentCompactors {
    /// How many; at least 1.
    pub count: u32,
}

/// Sets how fast compactions write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SetCompactionThroughput {
    /// Bytes a second that all compactions together may write; 0: as many as they can.
    pub bytes_per_second: u64,
}

/// Compaction: what runs and what was done.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct CompactionStats {
    /// How many compactions may run at a time.
    pub concurrent_compactors: u32,
    /// Keyspace, table and number of compactions that should run.
    pub pending: Vec<(String, String, u64)>,
    /// Compactions that ended well since the start.
    pub completed: u64,
    /// Bytes that these compactions read.
    pub bytes_compacted: u64,
    /// Compactions that were stopped or failed since the start.
    pub aborted: u64,
    /// Compactions that ran with fewer SSTables than chosen, for want of space.
    pub reduced: u64,
    /// SSTables left out for want of space.
    pub dropped_sstables: u64,
    /// Compactions that ended a second, over the last 15 minutes.
    pub fifteen_minute_rate: f64,
    /// Compactions that ended a second since the start.
    pub mean_rate: f64,
    /// Bytes a second that compactions may write; 0: as many as they can.
    pub throughput: u64,
    /// Compactions that run.
    pub running: Vec<RunningCompaction>,
}

/// A compaction that runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RunningCompaction {
    /// Id of the compaction, a UUID with dashes.
    pub id: String,
    /// Kind of work in Cassandra's word: "Compaction", "Scrub" …
    pub kind: String,
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// Bytes read so far.
    pub completed: u64,
    /// Bytes to read.
    pub total: u64,
    /// Number of SSTables that are read.
    pub sstables: u64,
}

/// A compaction that ended: a row of `system.compaction_history`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CompactionHistoryEntry {
    /// Id of the compaction, a UUID with dashes.
    pub id: String,
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// When it ended.
    pub compacted_at: i64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Bytes written.
    pub bytes_out: u64,
    /// For a number of SSTables, how many partitions were merged from so many.
    pub rows_merged: Vec<(u32, u64)>,
    /// Properties of the compaction: `compaction_type` and others.
    pub properties: Vec<(String, String)>,
}

/// Compacts SSTables.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CompactRequest {
    /// The tables; empty with [`Compact::Files`], which says the tables itself.
    pub tables: TableSelection,
    /// Which of their SSTables.
    pub what: Compact,
}

/// Which SSTables are compacted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Compact {
    /// All SSTables, as the strategy compacts all.
    All {
        /// The output is split by size.
        split: bool,
    },
    /// SSTables with tokens from the first to the last, both included.
    Tokens {
        /// The first token.
        first: String,
        /// The last token; one before the first goes around the ring.
        last: String,
    },
    /// SSTables that hold a partition; the key as CQL writes it without quotes.
    Partition(String),
    /// SSTables that hold one of these partitions, whose tombstones may be purged before
    /// gc_grace_seconds are over.
    Keys(Vec<String>),
    /// The SSTables of these data files, together.
    Files(Vec<String>),
}

impl Default for Compact {
    fn default() -> Self {
        Self::All { split: false }
    }
}

/// Asks compactions to end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum StopRequest {
    /// Compactions of a kind, by Cassandra's word for it.
    Kind(String),
    /// The compaction of an id.
    Id(String),
}
