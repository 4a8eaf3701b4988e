//! Requests of operators to the compactor: something done to each SSTable of a table, or to all of
//! them together.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use env::Wake;
use env::sync::Mutex;
use env::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tokio::sync::oneshot;
use types::DecoratedKey;

use crate::error::StorageError;
use crate::strategy::kind::Kind;
use crate::strategy::output::Output;
use crate::table::{TableStore, UnreadableSSTable};
use crate::token_ranges::TokenRanges;
use sstable::SSTable;

/// Whether an operation is for an SSTable.
pub type Select = Box<dyn Fn(&SSTable) -> bool + Send>;

/// An operation on the SSTables of a table.
pub struct Operation {
    /// The name of the operation for operators, which also decides what gives way to it.
    pub kind: Kind,
    /// The kind of work.
    pub work: Work,
    /// Number of SSTables that are worked on at a time; 0: as many as there are compactors.
    pub jobs: usize,
    /// The SSTables that the operation is for.
    pub select: Select,
    /// Partitions whose tombstones may be purged before gc_grace has ended.
    pub graceless: Arc<BTreeSet<DecoratedKey>>,
    /// Ranges of tokens. Partitions outside of them are left out, or are an error of
    /// [`Work::Verify`]; in the table of an index the entries of such partitions are left out.
    /// None: all stay.
    pub kept: Option<Arc<TokenRanges>>,
    /// The repair session that [`Work::Anticompact`] is for; None with other work.
    pub anticompacted: Option<Arc<AnticompactedRanges>>,
}

/// The data that a repair session takes for itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AnticompactedRanges {
    /// The session.
    pub session: [u8; 16],
    /// The ranges that it repairs.
    pub ranges: TokenRanges,
}

impl Operation {
    /// An operation for all SSTables of a table.
    pub fn new(kind: Kind, work: Work, jobs: usize) -> Self {
        Self {
            kind,
            work,
            jobs,
            select: Box::new(|_| true),
            graceless: Arc::default(),
            kept: None,
            anticompacted: None,
        }
    }
}

/// The kinds of work on SSTables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// SSTables that a strategy chose are compacted.
    Chosen,
    /// All SSTables are compacted, as the strategy does it.
    Major {
        /// True: not into one great SSTable (`nodetool compact -s`).
        split: bool,
    },
    /// The named SSTables are compacted, those of each repair state together.
    Named,
    /// Each SSTable is written again with all of its content.
    Rewrite,
    /// Each SSTable is written again without the data that others delete.
    GarbageCollect {
        /// True: also without single cells that others replace.
        cells: bool,
    },
    /// The ranges of a repair session in each SSTable become SSTables of the session, the rest
    /// others.
    Anticompact,
    /// Each SSTable is read, also those that could not be opened.
    Verify(VerifyOptions),
    /// Each SSTable is written again as far as it can be read, also those that could not be
    /// opened.
    Scrub(ScrubOptions),
}

impl Work {
    /// Whether the work goes on with other SSTables after one has failed.
    pub(crate) fn goes_on(self) -> bool {
        matches!(self, Self::Verify(_))
    }

    /// Whether the work is also for SSTables that could not be opened.
    pub(crate) fn takes_left_out(self) -> bool {
        matches!(self, Self::Verify(_) | Self::Scrub(_))
    }

    /// Whether tombstones that nothing needs any more may be left out.
    pub(crate) fn purges(self) -> bool {
        matches!(self, Self::Chosen | Self::Major { .. } | Self::Named | Self::GarbageCollect { .. })
    }
}

/// How SSTables are scrubbed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScrubOptions {
    /// True: also scrub a table of counters where counters get lost.
    pub skip_corrupted: bool,
    /// True: also check the values.
    pub validate: bool,
}

/// The depth of a verification.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VerifyOptions {
    /// True: every row is read.
    pub extended: bool,
    /// True: an SSTable of another version than that of new SSTables is an error.
    pub check_version: bool,
    /// A corrupt SSTable does not count as repaired any more.
    pub mutate_repair_status: bool,
    /// True: neither digest nor rows are read.
    pub quick: bool,
}

/// SSTables that are worked on together.
#[derive(Clone, Default)]
pub struct Item {
    /// SSTables in the view; marked.
    pub sstables: Vec<Arc<SSTable>>,
    /// An SSTable that could not be opened; None: the item has none.
    pub left_out: Option<UnreadableSSTable>,
    /// The form of the output; None: each SSTable becomes one of its level.
    pub output: Option<Output>,
    /// Partitions whose tombstones may be purged before gc_grace has ended.
    pub graceless: Arc<BTreeSet<DecoratedKey>>,
    /// Ranges of tokens. Partitions outside of them are left out, or are an error of
    /// [`Work::Verify`]. None: all stay.
    pub kept: Option<Arc<TokenRanges>>,
    /// The repair session that takes its ranges; None: nothing is put apart.
    pub anticompacted: Option<Arc<AnticompactedRanges>>,
}

impl Item {
    /// An item of SSTables in the view.
    pub fn of(sstables: Vec<Arc<SSTable>>) -> Self {
        Self { sstables, ..Self::default() }
    }
}

/// How an operation ended. The codes are those of `CompactionManager.AllSSTableOpStatus`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// All was done.
    Successful = 0,
    /// The operation was given up.
    Aborted = 1,
    /// Another operation has the SSTables.
    UnableToCancel = 2,
}

/// The end of an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// How the operation ended.
    pub status: Status,
    /// Lines for the operator, oldest first.
    pub lines: Vec<String>,
}

/// The receiver of the result of an operation.
pub type Done = oneshot::Sender<Result<Ended, StorageError>>;

/// An operation that was asked for.
pub(crate) struct QueuedOperation {
    pub(crate) id: u64,
    pub(crate) store: Arc<TableStore>,
    pub(crate) operation: Operation,
    /// Items that are still to be worked on; None: no SSTable is marked yet.
    pub(crate) items: Option<VecDeque<Item>>,
    pub(crate) running: usize,
    pub(crate) failure: Option<StorageError>,
    pub(crate) lines: Vec<String>,
    pub(crate) done: Done,
}

#[derive(Default)]
pub(crate) struct Queue {
    pub(crate) operations: Vec<QueuedOperation>,
    pub(crate) last_id: u64,
}

/// Operations that were asked for, in order, and the tasks that carry them out.
#[derive(Default)]
pub struct Compactor {
    pub(crate) queue: Mutex<Queue>,
    pub(crate) wakes: Mutex<Vec<Wake>>,
    /// The task that looks for work now and then; None: not started.
    pub(crate) looking: Mutex<Option<Wake>>,
    /// How many of the tasks may have work at a time (`concurrent_compactors`).
    pub(crate) concurrency: AtomicUsize,
    /// The time until which the throughput is used up, nanoseconds of the monotonic clock. All
    /// tasks together keep to it.
    pub(crate) paced_until: AtomicU64,
    /// The number of the table behind the one that was compacted last, so that all have their
    /// turn.
    pub(crate) turn: AtomicUsize,
}

impl Compactor {
    /// How many compactions may run at a time.
    pub fn concurrency(&self) -> usize {
        self.concurrency.load(Ordering::Relaxed)
    }

    /// Makes the tasks look for work, because something has changed.
    pub fn wake(&self) {
        self.wakes.lock().expect("no panic inside").iter().for_each(Wake::wake);
    }

    /// Asks for an operation; `done` receives its result.
    pub fn request(&self, store: &Arc<TableStore>, operation: Operation, done: Done) {
        let mut queue = self.queue.lock().expect("no panic inside");
        queue.last_id += 1;
        let (id, store) = (queue.last_id, Arc::clone(store));
        let lines = Vec::new();
        queue.operations.push(QueuedOperation {
            id,
            store,
            operation,
            items: None,
            running: 0,
            failure: None,
            lines,
            done,
        });
        drop(queue);
        self.wake();
    }
}
