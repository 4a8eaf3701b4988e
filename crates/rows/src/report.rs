//! What a read would take, or took: plain values between whoever reads and whoever tells a user of it (EXPLAIN).
//!
//! A report has one [`CommandReport`] for each command and, in it, one [`SourceReport`] for each memtable and SSTable of the table, whether
//! it is read or left out. What was measured is there only when the read was carried out.

use types::DecoratedKey;

use crate::dead::Passed;

/// The most sources that are told of one by one in a command; the others are counted.
pub const SOURCES_MAX: usize = 64;

/// The most commands that are told of one by one; the others are counted.
pub const COMMANDS_MAX: usize = 16;

/// A read.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ReadReport {
    /// One for each command, up to [`COMMANDS_MAX`].
    pub commands: Vec<CommandReport>,
    /// Commands that are not told of.
    pub commands_left_out: u64,
    /// The rows are made up by the node when they are asked for.
    pub is_virtual: bool,
    /// How many replicas must answer.
    pub block_for: u32,
    /// What came of it; None: it was not carried out.
    pub run: Option<RunReport>,
}

/// What came of a read as a whole.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RunReport {
    /// What the sources put together gave: what the query had to look at.
    pub passed: Passed,
    /// From the first look at the sources to the whole page.
    pub micros: u64,
    /// Of that, until a thread of the pool was free.
    pub waited_micros: u64,
    /// It would have waited for the disk, or passed many rows, and was run again in the background.
    pub in_background: bool,
}

/// A read of one partition, or of a range of them.
#[derive(Clone, PartialEq, Debug)]
pub struct CommandReport {
    /// The index whose entries of a value are read; None: rows of the table.
    pub index: Option<String>,
    /// The partition; None: a range.
    pub key: Option<DecoratedKey>,
    /// The first and the last shard it touches.
    pub shards: (usize, usize),
    /// How many shards there are.
    pub shard_count: usize,
    /// Newest sources first, until the rows are complete.
    pub by_names: bool,
    /// In the order in which they are looked at.
    pub sources: Vec<SourceReport>,
    /// Sources that are not told of.
    pub sources_left_out: u64,
}

/// What a source is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SourceKind {
    /// Takes writes.
    Memtable,
    /// Is being written to an SSTable.
    Flushing,
    /// What SSTables hold of a partition, in memory.
    RowCache,
    /// Files.
    SSTable,
}

/// What becomes of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// It is read.
    Read,
    /// It is read unless what is newer leaves nothing open: known only once that is read.
    Perhaps,
    /// It is left out.
    Skip,
}

/// A memtable or an SSTable.
#[derive(Clone, PartialEq, Debug)]
pub struct SourceReport {
    /// What it is.
    pub kind: SourceKind,
    /// `shard 3`, `da-7-bti`.
    pub name: String,
    /// What becomes of it.
    pub decision: Decision,
    /// Why.
    pub reason: &'static str,
    /// Bytes that it holds.
    pub bytes: u64,
    /// Blocks of the partition's row index, all and those that can hold what is asked for. One partition only.
    pub blocks: Option<BlockCount>,
    /// What reading it took; None: it was not read.
    pub measured: Option<SourceFigures>,
}

/// Blocks of a partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BlockCount {
    /// All.
    pub total: u64,
    /// Of these: those that can hold what is asked for, or those that were read.
    pub wanted: u64,
}

/// What reading a source took.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SourceFigures {
    /// What came out of it.
    pub passed: Passed,
    /// Blocks that were read, of those of the partitions that were read.
    pub blocks: BlockCount,
    /// Chunks that were in the cache.
    pub chunks_cached: u64,
    /// Chunks that were read from disk.
    pub chunks_read: u64,
    /// Bytes of those on disk.
    pub bytes_read: u64,
    /// Bytes of a chunk before compression.
    pub chunk_length: u64,
    /// It had the key in its filter and not in its data.
    pub false_positives: u64,
    /// Time spent in it.
    pub nanos: u64,
}
