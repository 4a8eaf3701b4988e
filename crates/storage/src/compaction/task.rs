//! A task of the compactor: something that is done to some SSTables, a slice of work at a time. Who runs it is `crate::compactor`.

use std::sync::Arc;

use crate::commitlog::LogPosition;
use crate::engine::Engine;
use crate::error::StorageError;
use crate::requests::operations::{Item, Work};
use crate::strategy::kind::Kind;
use crate::table::TableStore;

/// What a task does.
pub trait Task: Send {
    /// Does a slice of the work; gives the bytes that count against the throughput, None at the end.
    fn advance(&mut self) -> Result<Option<u64>, StorageError>;

    /// Up to where SSTables that it replaces, and of which nothing is left, had the commit log; asked when nothing is left to advance.
    fn purged_log(&self) -> Option<LogPosition> {
        None
    }

    /// Makes what was done count.
    fn finish(self: Box<Self>, engine: &Arc<Engine>) -> Result<Outcome, StorageError>;

    /// Leaves everything as it was.
    fn abandon(self: Box<Self>);
}

/// What a task did.
#[derive(Default)]
pub struct Outcome {
    /// What it wrote, for the history; None: it wrote nothing that belongs there.
    pub written: Option<Written>,
    /// What is worth telling the operator.
    pub lines: Vec<String>,
}

/// What a task wrote.
pub struct Written {
    /// Bytes of data files.
    pub bytes: u64,
    /// How many partitions came from how many SSTables.
    pub merged: Vec<(u32, u64)>,
}

/// What is to be begun.
pub struct Start {
    /// The table.
    pub store: Arc<TableStore>,
    /// The operation that it is part of.
    pub operation: Option<u64>,
    /// How it is called.
    pub kind: Kind,
    /// What is done.
    pub work: Work,
    /// To what; marked.
    pub item: Item,
}
