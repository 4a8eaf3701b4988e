//! What to read: a plain value that can be sent to another node. Agrees in content with
//! `org.apache.cassandra.db.{SinglePartitionReadCommand,PartitionRangeReadCommand}`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use schema::{ColumnId, TableMetadata};
use types::{DecoratedKey, Token};

use crate::Slices;

/// Which partitions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PartitionRange {
    /// One.
    Key(DecoratedKey),
    /// Those in a range of positions; `None` is an open end. Bounds compare by token, and by key where one is given.
    Range {
        /// Start.
        start: RingBound,
        /// End.
        end: RingBound,
    },
}

/// An end of a range of partitions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RingBound {
    /// No bound.
    Open,
    /// A token.
    Token {
        /// The token.
        token: Token,
        /// Partitions of that very token belong to the range.
        inclusive: bool,
    },
    /// A partition (paging).
    Key {
        /// Its key.
        key: DecoratedKey,
        /// It belongs to the range.
        inclusive: bool,
    },
}

impl PartitionRange {
    /// Every partition.
    pub fn all() -> Self {
        Self::Range { start: RingBound::Open, end: RingBound::Open }
    }

    /// The key lies in the range.
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

    /// The key lies before the start.
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

    /// The key lies after the end: a scan may stop.
    pub fn is_past(&self, key: &DecoratedKey) -> bool {
        match self {
            Self::Key(wanted) => key > wanted,
            Self::Range { end, .. } => self.is_after_end(key, end),
        }
    }
}

/// Which columns must be fetched. Columns that are not fetched may be left out of rows, but whether a row is live must stay right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ColumnFilter {
    /// All.
    All,
    /// These (sorted). Row liveness and deletions are always fetched.
    Some(Arc<[ColumnId]>),
}

impl ColumnFilter {
    /// The column is wanted.
    #[inline]
    pub fn includes(&self, id: ColumnId) -> bool {
        match self {
            Self::All => true,
            Self::Some(ids) => ids.binary_search(&id).is_ok(),
        }
    }
}

/// Hints of how many live rows are wanted; the reader may stop early, and may give more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataLimits {
    /// In all.
    pub rows: u32,
    /// In each partition.
    pub per_partition: u32,
}

impl DataLimits {
    /// No limit.
    pub const NONE: Self = Self { rows: u32::MAX, per_partition: u32::MAX };
}

/// A condition on rows that replicas may apply (ALLOW FILTERING). Today evaluated by the executor; sent along when there is a ring.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowFilter {
    /// Column.
    pub column: ColumnId,
    /// `=`, `<` … as CQL text.
    pub operator: &'static str,
    /// Serialized operand.
    pub value: Bytes,
}

/// A read of one table.
#[derive(Clone, PartialEq, Debug)]
pub struct ReadCommand {
    /// The table as the plan saw it.
    pub table: Arc<TableMetadata>,
    /// Which partitions.
    pub range: PartitionRange,
    /// Which rows of each.
    pub slices: Slices,
    /// Rows in reversed clustering order.
    pub reversed: bool,
    /// Which columns.
    pub columns: ColumnFilter,
    /// The clock of the request, seconds: what has expired by then is dead.
    pub now: u32,
    /// How many rows are wanted.
    pub limits: DataLimits,
    /// Only rows that one of these indexes gives: whoever reads takes the most selective. Empty: by the table itself.
    pub indexes: Vec<IndexSearch>,
}

/// A value that an index is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexSearch {
    /// The index's name.
    pub name: Arc<str>,
    /// The value, as the key of its hidden table.
    pub value: Bytes,
}

impl ReadCommand {
    /// All rows and columns of a range of partitions, as they are on disk: nothing has expired.
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
    /// On a worker: must not wait for the disk nor pass more than a budget of rows.
    Inline,
    /// In the background: may take its time.
    Background,
}

/// What a read did; counters for tracing, metrics and EXPLAIN. Shared by the sources of one read.
#[derive(Default, Debug)]
pub struct ReadStats {
    /// SSTables considered.
    pub sstables_considered: AtomicU64,
    /// SSTables read from.
    pub sstables_read: AtomicU64,
    /// SSTables that a Bloom filter let pass and that did not have the key.
    pub bloom_false_positives: AtomicU64,
    /// Chunks taken from the cache.
    pub chunks_cached: AtomicU64,
    /// Chunks read from disk.
    pub chunks_read: AtomicU64,
    /// Bytes of those on disk.
    pub bytes_read: AtomicU64,
    /// Row index blocks entered.
    pub blocks: AtomicU64,
    /// Rows passed, dead ones included.
    pub rows: AtomicU64,
    /// Tombstones passed, of every kind.
    pub tombstones: AtomicU64,
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

/// Takes the lines of a trace. Called only when tracing is on.
pub trait TraceSink: Send + Sync {
    /// A step, in words.
    fn event(&self, activity: String);
}

/// Tells a read in the background that it need not go on.
pub trait Interrupt: Send + Sync {
    /// Its time is over, or nobody waits for it any more. Asked once a chunk.
    fn is_over(&self) -> bool;
}

/// What goes along with a read and is not part of what to read.
#[derive(Clone)]
pub struct ReadContext {
    /// May it wait.
    pub mode: ReadMode,
    /// Counters.
    pub stats: Arc<ReadStats>,
    /// Where trace lines go.
    pub trace: Option<Arc<dyn TraceSink>>,
    /// Who knows when to stop; None: it reads to its end.
    pub interrupt: Option<Arc<dyn Interrupt>>,
}

impl ReadContext {
    /// A context of a mode, without trace.
    pub fn new(mode: ReadMode) -> Self {
        Self { mode, stats: Arc::new(ReadStats::default()), trace: None, interrupt: None }
    }

    /// The read need not go on.
    pub fn is_over(&self) -> bool {
        self.interrupt.as_ref().is_some_and(|interrupt| interrupt.is_over())
    }

    /// Adds a trace line; `line` is only built when tracing is on.
    pub fn trace(&self, line: impl FnOnce() -> String) {
        if let Some(sink) = &self.trace {
            sink.event(line());
        }
    }
}
