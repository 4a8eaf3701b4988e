//! The description of a read: a plain value that can be sent to another node. Agrees in content
//! with `org.apache.cassandra.db.{SinglePartitionReadCommand,PartitionRangeReadCommand}`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use schema::{ColumnId, TableMetadata};
use types::{DecoratedKey, Token};

use crate::{ColumnSelection, Slices};

/// The partitions that a read asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PartitionRange {
    /// One partition.
    Key(DecoratedKey),
    /// The partitions between two bounds. Bounds compare by token, and by key if they have one.
    Range {
        /// The start.
        start: RingBound,
        /// The end.
        end: RingBound,
    },
}

/// An end of a range of partitions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RingBound {
    /// No limit on this side.
    Open,
    /// A limit by token.
    Token {
        /// The token.
        token: Token,
        /// Whether partitions with this token belong to the range.
        inclusive: bool,
    },
    /// A limit by partition, used by paging.
    Key {
        /// The key of the partition.
        key: DecoratedKey,
        /// Whether that partition belongs to the range.
        inclusive: bool,
    },
}

impl PartitionRange {
    /// All partitions.
    pub fn all() -> Self {
        Self::Range { start: RingBound::Open, end: RingBound::Open }
    }

    /// Whether a key lies in the range.
    pub fn contains(&self, key: &DecoratedKey) -> bool {
        match self {
            Self::Key(wanted) => wanted == key,
            Self::Range { start, end } => {
                let after_start = match start {
                    RingBound::Open => true,
                    RingBound::Token { token, inclusive } => key.token > *token || (*inclusive && key.token == *token),
                    RingBound::Key { key: bound, inclusive } => key > bound || (*inclusive && key == bound),
                };
                after_start && !self.is_after_end(key, end)
            }
        }
    }

    fn is_after_end(&self, key: &DecoratedKey, end: &RingBound) -> bool {
        match end {
            RingBound::Open => false,
            RingBound::Token { token, inclusive } => key.token > *token || (!*inclusive && key.token == *token),
            RingBound::Key { key: bound, inclusive } => key > bound || (!*inclusive && key == bound),
        }
    }

    /// Whether a key lies before the start.
    pub fn is_before(&self, key: &DecoratedKey) -> bool {
        match self {
            Self::Key(wanted) => key < wanted,
            Self::Range { start, .. } => match start {
                RingBound::Open => false,
                RingBound::Token { token, inclusive } => key.token < *token || (!*inclusive && key.token == *token),
                RingBound::Key { key: bound, inclusive } => key < bound || (!*inclusive && key == bound),
            },
        }
    }

    /// Whether a key lies behind the end; a scan may then stop.
    pub fn is_past(&self, key: &DecoratedKey) -> bool {
        match self {
            Self::Key(wanted) => key > wanted,
            Self::Range { end, .. } => self.is_after_end(key, end),
        }
    }
}

/// The columns to fetch. Other columns may be missing from rows, but it must stay right whether a
/// row is live.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ColumnFilter {
    /// All columns.
    All,
    /// These columns, ascending. The liveness and the deletions of rows are always fetched.
    Some(Arc<[ColumnId]>),
    /// The fetched columns of a selection that does not query all of them. Each source leaves out
    /// the values that are not queried before sources are merged ([`crate::selection`]).
    Selected(Arc<ColumnSelection>),
}

impl ColumnFilter {
    /// Whether a column has to be fetched.
    #[inline]
    pub fn includes(&self, id: ColumnId) -> bool {
        match self {
            Self::All => true,
            Self::Some(ids) => ids.binary_search(&id).is_ok(),
            Self::Selected(selection) => selection.fetches(id),
        }
    }
}

/// How many live rows are wanted. A hint: the reader may stop after them, and may give more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataLimits {
    /// Rows in total.
    pub rows: u32,
    /// Rows of each partition.
    pub per_partition: u32,
}

impl DataLimits {
    /// No limit.
    pub const NONE: Self = Self { rows: u32::MAX, per_partition: u32::MAX };
}

/// A read of one table.
#[derive(Clone, PartialEq, Debug)]
pub struct ReadCommand {
    /// The table as it was when the statement was planned.
    pub table: Arc<TableMetadata>,
    /// The partitions.
    pub range: PartitionRange,
    /// The rows of each partition.
    pub slices: Slices,
    /// Whether rows are wanted in reversed clustering order.
    pub reversed: bool,
    /// The columns.
    pub columns: ColumnFilter,
    /// The time of the request in seconds. Cells that have expired by then are dead.
    pub now: u32,
    /// The number of rows that are wanted.
    pub limits: DataLimits,
    /// If not empty, only rows that these indexes find are wanted: of legacy indexes the reader
    /// takes the most selective, of storage-attached ones as many as pay. Empty: the table itself
    /// is read.
    pub indexes: Vec<IndexSearch>,
}

/// A value to look up in an index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexSearch {
    /// The name of the index.
    pub name: Arc<str>,
    /// How the values that are wanted compare with `value`.
    pub operator: SearchOperator,
    /// The value, as partition key of the hidden table.
    pub value: Bytes,
}

/// The comparison of a search in an index. Legacy indexes know `Eq` only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SearchOperator {
    /// The values that are equal to the given one.
    Eq,
    /// Values that are greater.
    Gt,
    /// Values that are greater or equal.
    Gte,
    /// Values that are less.
    Lt,
    /// Values that are less or equal.
    Lte,
    /// Texts that begin with the given one.
    Prefix,
    /// Texts that end with the given one.
    Suffix,
    /// Texts that have the given one in them.
    Contains,
    /// The vectors that are nearest to the given one: of as many rows as the command's limit says.
    Ann,
}

impl ReadCommand {
    /// The read of all rows and columns of a range of partitions as they are on disk; nothing
    /// counts as expired.
    pub fn whole(table: &Arc<TableMetadata>, range: PartitionRange) -> Self {
        Self {
            table: Arc::clone(table),
            range,
            slices: Slices::all(),
            reversed: false,
            columns: ColumnFilter::All,
            now: 0,
            limits: DataLimits::NONE,
            indexes: Vec::new(),
        }
    }
}

/// Whether a read may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadMode {
    /// On a worker: the read must neither wait for the disk nor pass more rows than its budget.
    Inline,
    /// On a thread of the pool: the read may take its time.
    Background,
}

/// Counters of one read for tracing, metrics and EXPLAIN, shared by its sources.
#[derive(Default, Debug)]
pub struct ReadStats {
    /// SSTables that were considered.
    pub sstables_considered: AtomicU64,
    /// SSTables that were read.
    pub sstables_read: AtomicU64,
    /// SSTables whose Bloom filter passed a key that they do not have.
    pub bloom_false_positives: AtomicU64,
    /// Chunks that were found in the cache.
    pub chunks_cached: AtomicU64,
    /// Chunks that were read from disk.
    pub chunks_read: AtomicU64,
    /// Bytes of the chunks that were read from disk, as they are there.
    pub bytes_read: AtomicU64,
    /// Row index blocks that were read.
    pub blocks: AtomicU64,
    /// Rows that were passed, dead ones included.
    pub rows: AtomicU64,
    /// Tombstones of every kind that were passed.
    pub tombstones: AtomicU64,
    /// The largest row index of a partition among the SSTables of `nb` and `oa`, bytes as
    /// [`crate::heap_size::of_row_index`] counts them; 0: there is none.
    pub row_index_size: AtomicU64,
    /// SSTables whose attached index a search looks into for one condition, where they are more
    /// than [`IndexLimits::warn`]; 0: they are not.
    pub indexes: AtomicU64,
}

impl ReadStats {
    /// Adds to a counter.
    #[inline]
    pub fn add(counter: &AtomicU64, amount: u64) {
        counter.store(counter.load(Ordering::Relaxed) + amount, Ordering::Relaxed);
    }

    /// Reads a counter.
    pub fn get(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }
}

/// Receives the lines of a trace. Called only while tracing is on.
pub trait TraceSink: Send + Sync {
    /// Records one step, described in words.
    fn event(&self, activity: String);

    /// The tracing session, so that other nodes take part in it; None: they do not.
    fn session(&self) -> Option<[u8; 16]> {
        None
    }

    /// The span that spans of other nodes are beneath, as W3C's `traceparent`; None: none is
    /// exported.
    fn traceparent(&self) -> Option<String> {
        None
    }
}

/// Tells a read on the pool to stop early.
pub trait Interrupt: Send + Sync {
    /// Whether the read's time is over or nobody waits for its result. Asked once for each chunk.
    fn is_over(&self) -> bool;
}

/// How many SSTables a search by attached indexes may look into for one condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IndexLimits {
    /// Beyond so many the number is noted in [`ReadStats::indexes`].
    pub warn: u64,
    /// Beyond so many the read ends ([`ReadError::TooManyIndexes`](crate::ReadError)).
    pub fail: u64,
}

impl IndexLimits {
    /// No limits.
    pub const NONE: Self = Self { warn: u64::MAX, fail: u64::MAX };
}

/// The circumstances of a read that are not part of its command.
#[derive(Clone)]
pub struct ReadContext {
    /// Whether it may wait.
    pub mode: ReadMode,
    /// The counters of the read.
    pub stats: Arc<ReadStats>,
    /// Receiver of trace lines; None: tracing is off.
    pub trace: Option<Arc<dyn TraceSink>>,
    /// Tells the read to stop; None: it reads to its end.
    pub interrupt: Option<Arc<dyn Interrupt>>,
    /// The limits of a search by attached indexes.
    pub index_limits: IndexLimits,
}

impl ReadContext {
    /// A context without trace, interrupt and limits.
    pub fn new(mode: ReadMode) -> Self {
        let stats = Arc::new(ReadStats::default());
        Self { mode, stats, trace: None, interrupt: None, index_limits: IndexLimits::NONE }
    }

    /// Whether the read should stop.
    pub fn is_over(&self) -> bool {
        self.interrupt.as_ref().is_some_and(|interrupt| interrupt.is_over())
    }

    /// Records a trace line. `line` is called only if tracing is on.
    pub fn trace(&self, line: impl FnOnce() -> String) {
        if let Some(sink) = &self.trace {
            sink.event(line());
        }
    }
}
