//! What an operator may ask of the compactor: something done to each SSTable of a table, or to all of them together.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::oneshot;
use types::DecoratedKey;

use crate::error::StorageError;
use crate::files::SSTable;
use crate::strategy::kind::Kind;
use crate::strategy::output::Output;
use crate::table::LeftOut;

/// Which SSTables it is for.
pub type Select = Box<dyn Fn(&SSTable) -> bool + Send>;

/// Something to be done.
pub struct Operation {
    /// How it is called, and what gives way to it.
    pub kind: Kind,
    /// What is done.
    pub work: Work,
    /// SSTables at a time; 0: as many as there are compactors.
    pub jobs: usize,
    /// Which SSTables it is for.
    pub select: Select,
    /// Partitions whose tombstones may go before gc_grace has ended.
    pub graceless: Arc<BTreeSet<DecoratedKey>>,
}

impl Operation {
    /// For all SSTables.
    pub fn new(kind: Kind, work: Work, jobs: usize) -> Self {
        Self { kind, work, jobs, select: Box::new(|_| true), graceless: Arc::default() }
    }
}

/// What is done to SSTables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// What a strategy chose is compacted.
    Chosen,
    /// All are compacted, as the strategy does it.
    Major {
        /// Not into one great SSTable (`nodetool compact -s`).
        split: bool,
    },
    /// Those of one repair state are compacted together.
    Named,
    /// Each is written again with all that is in it.
    Rewrite,
    /// Each is written again without what others delete.
    GarbageCollect {
        /// Also single cells.
        cells: bool,
    },
    /// Each is read, those that could not be opened as well.
    Verify(crate::verify::Options),
    /// Each is written again as far as it can be read, those that could not be opened as well.
    Scrub(crate::scrub::Options),
}

impl Work {
    /// The failure of one SSTable does not end the others'.
    pub(super) fn goes_on(self) -> bool {
        matches!(self, Self::Verify(_))
    }

    /// It is also for SSTables that could not be opened.
    pub(super) fn takes_left_out(self) -> bool {
        matches!(self, Self::Verify(_) | Self::Scrub(_))
    }

    /// Tombstones may be left out that nothing needs any more.
    pub(super) fn purges(self) -> bool {
        matches!(self, Self::Chosen | Self::Major { .. } | Self::Named | Self::GarbageCollect { .. })
    }
}

/// SSTables that are worked on together.
#[derive(Clone, Default)]
pub struct Item {
    /// Those in the view; marked.
    pub sstables: Vec<Arc<SSTable>>,
    /// One that could not be opened.
    pub left_out: Option<LeftOut>,
    /// Into what they are compacted; None: each becomes one of its level.
    pub output: Option<Output>,
    /// Partitions whose tombstones may go before gc_grace has ended.
    pub graceless: Arc<BTreeSet<DecoratedKey>>,
}

impl Item {
    /// Of SSTables in the view.
    pub fn of(sstables: Vec<Arc<SSTable>>) -> Self {
        Self { sstables, ..Self::default() }
    }
}

/// How an operation ended. The codes are those of `CompactionManager.AllSSTableOpStatus`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// All was done.
    Successful = 0,
    /// It was given up.
    Aborted = 1,
    /// Another operation has the SSTables.
    UnableToCancel = 2,
}

/// The end of an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// How.
    pub status: Status,
    /// What is worth telling the operator, in the order in which it happened.
    pub lines: Vec<String>,
}

/// Told when an operation has ended.
pub type Done = oneshot::Sender<Result<Ended, StorageError>>;
