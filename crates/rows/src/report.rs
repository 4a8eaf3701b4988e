//! The report of a read for EXPLAIN: what it would do, or what it did. Plain values that the
//! storage fills and `cql` prints.
//!
//! A report has a [`CommandReport`] for each command and in it a [`SourceReport`] for each memtable
//! and SSTable of the table, whether it is read or left out. Measured values are present only if
//! the read was carried out.

use types::DecoratedKey;

use crate::dead::PassedCounts;

/// Most sources of a command that are listed; further ones are counted.
pub const SOURCES_MAX: usize = 64;

/// Most commands that are listed; further ones are counted.
pub const COMMANDS_MAX: usize = 16;

/// The report of a read.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ReadReport {
    /// The commands, at most [`COMMANDS_MAX`].
    pub commands: Vec<CommandReport>,
    /// Number of commands that are not listed.
    pub commands_left_out: u64,
    /// Whether the table is virtual: the node computes the rows when they are read.
    pub is_virtual: bool,
    /// Number of replicas that must answer.
    pub block_for: u32,
    /// The replicas of a read that other nodes have a share in, at most [`REPLICAS_MAX`]; empty:
    /// this node alone is asked. The sources are those of this node then, if it is one of them.
    pub replicas: Vec<ReplicaReport>,
    /// The measured result; None: the read was not carried out.
    pub run: Option<RunReport>,
}

/// Most replicas that are listed.
pub const REPLICAS_MAX: usize = 64;

/// The share of a replica in a read among several nodes. Of a range each stretch of tokens with
/// replicas of its own counts as a part; each partition that is named counts as one, too.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReplicaReport {
    /// The address by which the others know it.
    pub address: String,
    /// Whether the replica is this node.
    pub is_local: bool,
    /// Parts of which it gives the data.
    pub data: u64,
    /// Parts of which it gives a digest.
    pub digest: u64,
    /// Parts for which it may be asked where another replica fails, or is late.
    pub spare: u64,
    /// The measured answers; None: the read was not carried out, or it was not asked.
    pub answers: Option<AnswerFigures>,
}

/// The answers of a replica to one read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AnswerFigures {
    /// Answers that came.
    pub count: u64,
    /// Requests that failed, or were not answered in time.
    pub failed: u64,
    /// Time from a request to its answer, of the slowest, microseconds.
    pub micros_max: u64,
    /// Bytes of the data that it gave.
    pub bytes: u64,
}

/// The measured result of a whole read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RunReport {
    /// Counts of what the merged sources gave, that is, what the query had to look at.
    pub passed: PassedCounts,
    /// Time from the first look at the sources to the complete page, microseconds.
    pub micros: u64,
    /// The part of `micros` that passed until a thread of the pool was free.
    pub waited_micros: u64,
    /// Whether the read was run again on the pool, because it would have waited for the disk or
    /// passed many rows.
    pub in_background: bool,
}

/// The report of a command: a read of one partition or of a range of partitions.
#[derive(Clone, PartialEq, Debug)]
pub struct CommandReport {
    /// The index from which entries of a value are read; None: rows of the table.
    pub index: Option<String>,
    /// The partition; None: a range.
    pub key: Option<DecoratedKey>,
    /// The first and the last shard that are touched.
    pub shards: (usize, usize),
    /// Number of shards of the table.
    pub shard_count: usize,
    /// Whether sources are read newest first until the rows are complete.
    pub by_names: bool,
    /// The sources, in the order in which they are considered.
    pub sources: Vec<SourceReport>,
    /// Number of sources that are not listed.
    pub sources_left_out: u64,
}

/// The kind of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SourceKind {
    /// A memtable that takes writes.
    Memtable,
    /// A memtable that is being flushed.
    Flushing,
    /// The row cache: content of SSTables for one partition, in memory.
    RowCache,
    /// An SSTable.
    SSTable,
}

/// Whether a source is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// The source is read.
    Read,
    /// The source is read unless newer sources answer everything, which is known only when they
    /// have been read.
    Perhaps,
    /// The source is left out.
    Skip,
}

/// The report of a source.
#[derive(Clone, PartialEq, Debug)]
pub struct SourceReport {
    /// The kind.
    pub kind: SourceKind,
    /// The name: `shard 3`, `da-7-bti`.
    pub name: String,
    /// Whether it is read.
    pub decision: Decision,
    /// The reason.
    pub reason: &'static str,
    /// Bytes that it holds.
    pub bytes: u64,
    /// Blocks of the partition's row index: all, and those that can hold the wanted rows. None for
    /// reads of several partitions.
    pub blocks: Option<BlockCount>,
    /// The measured values; None: the source was not read.
    pub measured: Option<SourceFigures>,
}

/// Numbers of blocks of a partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BlockCount {
    /// All blocks.
    pub total: u64,
    /// The blocks that can hold the wanted rows, or that were read.
    pub wanted: u64,
}

/// The cost of reading a source.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SourceFigures {
    /// Counts of what came out of it.
    pub passed: PassedCounts,
    /// Blocks that were read, and all blocks of the partitions that were read.
    pub blocks: BlockCount,
    /// Chunks that were found in the cache.
    pub chunks_cached: u64,
    /// Chunks that were read from disk.
    pub chunks_read: u64,
    /// Bytes of the chunks read from disk, as they are there.
    pub bytes_read: u64,
    /// Bytes of a chunk before compression.
    pub chunk_length: u64,
    /// Keys that the filter passed and the file does not have.
    pub false_positives: u64,
    /// Time spent in the source, nanoseconds.
    pub nanos: u64,
}
