//! A task of the compactor: work on some SSTables, done a slice at a time. `crate::compactor` runs
//! it.

use std::sync::Arc;

use crate::commitlog::LogPosition;
use crate::engine::Engine;
use crate::error::StorageError;
use crate::requests::operations::{Item, Work};
use crate::strategy::kind::Kind;
use crate::table::TableStore;

/// The steps of a task.
pub trait Task: Send {
    /// Does a slice of the work; gives the bytes that count against the throughput, None at the
    /// end.
    fn advance(&mut self) -> Result<Option<u64>, StorageError>;

    /// Bytes of its SSTables that the task has passed, for progress; None: the bytes that counted
    /// against the throughput.
    fn passed(&self) -> Option<u64> {
        None
    }

    /// The commit-log position up to which the replaced SSTables had the log, if nothing is left
    /// of them; otherwise None. Called when nothing is left to advance.
    fn purged_log(&self) -> Option<LogPosition> {
        None
    }

    /// Puts the result into the view.
    fn finish(self: Box<Self>, engine: &Arc<Engine>) -> Result<Outcome, StorageError>;

    /// Gives the work up, and leaves everything as it was.
    fn abandon(self: Box<Self>);
}

/// The result of a task.
#[derive(Default)]
pub struct Outcome {
    /// Bytes and partitions for the history; None: the task wrote nothing that belongs there.
    pub written: Option<Written>,
    /// Lines for the operator.
    pub lines: Vec<String>,
}

/// The output of a task.
pub struct Written {
    /// Bytes of data files.
    pub bytes: u64,
    /// Pairs: a number of SSTables, and the partitions that were merged from so many.
    pub merged: Vec<(u32, u64)>,
}

/// A task that is about to begin.
pub struct Start {
    /// The table.
    pub store: Arc<TableStore>,
    /// The operation that the task is part of; None: a strategy chose it.
    pub operation: Option<u64>,
    /// The name of the task for operators.
    pub kind: Kind,
    /// The kind of work.
    pub work: Work,
    /// The SSTables of the task, which are marked.
    pub item: Item,
}
