//! The verbs by which operators look into this node's storage and change it: behind nodetool,
//! `/metrics` and `system_views`.
//!
//! One file a family, each of functions that take a [`Node`]. They are the only way from the server
//! to the storage engine beside the verbs of coordination; the answers are plain values, or tables
//! ([`storage::TableStore`]) whose figures the caller reads. Names and checks agree with
//! Cassandra's MBeans (`StorageServiceMBean`, `CompactionManagerMBean`, `ColumnFamilyStoreMBean`).
//! Nothing here knows who asks.
//!
//! Functions that are `async` wait until the work is done; the others may wait for the disk and
//! belong on the blocking pool.

use std::fmt;

pub mod caches;
pub mod commit_log;
pub mod compaction;
pub mod gossip;
pub mod old_snapshots;
pub mod partition;
pub mod ring;
pub mod ring_snapshot;
pub mod snapshots;
pub mod sstables;
pub mod state;
pub mod tables;
pub mod views;

/// Why a verb did not do what was asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OperationError {
    /// The operator asked wrongly: no such table, no such key. Nothing was done.
    Invalid(String),
    /// The node failed to do what was asked, or to do all of it.
    Failed(String),
}

impl fmt::Display for OperationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(message) | Self::Failed(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for OperationError {}

/// The result of a verb.
pub type Result<T> = std::result::Result<T, OperationError>;

fn failed(error: impl fmt::Display) -> OperationError {
    OperationError::Failed(error.to_string())
}

fn invalid<T>(message: impl Into<String>) -> Result<T> {
    Err(OperationError::Invalid(message.into()))
}
