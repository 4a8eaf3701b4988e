//! Kinds of writes, as timeouts and failures name them to clients.
//!
//! The only type for them in the tree. Agrees with `org.apache.cassandra.db.WriteType`.

use std::fmt;

/// The kind of a write. Drivers decide by it whether to send a write again that timed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WriteKind {
    /// Mutations of one partition.
    Simple,
    /// A logged batch of which the batch log has a record: the batch will be applied as a whole.
    Batch,
    /// An unlogged batch of several partitions.
    UnloggedBatch,
    /// Increments of counters.
    Counter,
    /// The record of a logged batch: nothing of the batch may have been applied.
    BatchLog,
    /// A conditional statement.
    Cas,
    /// A write to a materialized view.
    View,
    /// A write that was refused because the space for change data capture is used up.
    Cdc,
}

impl WriteKind {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simple => "SIMPLE",
            Self::Batch => "BATCH",
            Self::UnloggedBatch => "UNLOGGED_BATCH",
            Self::Counter => "COUNTER",
            Self::BatchLog => "BATCH_LOG",
            Self::Cas => "CAS",
            Self::View => "VIEW",
            Self::Cdc => "CDC",
        }
    }
}

impl fmt::Display for WriteKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
