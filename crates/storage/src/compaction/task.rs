//! A task of the compactor: something that is done to some SSTables, a slice of work at a time. Who
//! runs it is `crate::compactor`.

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

    /// Bytes of its SSTables that lie behind it, for progress; None: the bytes that counted against
    /// the throughput.
    fn passed(&self) -> Option<u64> {
        None
    }

    /// Up to where SSTables that it replaces, and of which nothing is left, had the commit log;
    /// asked when nothing is left to advance.
    fn purged_log(&self) -> Option<LogPosition> {
        None
    }

    /// Makes what was done count.
    fn finish(self: Box<Self>, engine: &Arc<Engine>) -> Result<Outcome, StorageError>;

    /// Leaves everything as it was.
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
    /// How many partitions came from how many SSTables.
    pub merged: Vec<(u32, u64)>,
}

/// A task that is about to begin.
pub struct Start {
    /// The table.
    pub store: Arc<TableStore>,
    /// The operation that it is part of.
    pub operation: Option<u64>,
    /// How it is called.
    pub kind: Kind,
    /// The kind of work.
    pub work: Work,
    /// To what; marked.
    pub item: Item,
}
