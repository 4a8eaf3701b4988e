//! Why a read could not go on.

use std::fmt;
use std::path::PathBuf;

use crate::live::Scanned;

/// Bytes on disk that are not what they must be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Corruption {
    /// The component file.
    pub path: PathBuf,
    /// Where in it.
    pub offset: u64,
    /// What was expected and found.
    pub what: String,
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is corrupt at offset {}: {}", self.path.display(), self.offset, self.what)
    }
}

/// Where a read met more tombstones than `tombstone_failure_threshold`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TooManyTombstones {
    /// Keyspace and table.
    pub table: String,
    /// The last partition, in words.
    pub partition: String,
    /// Its token, and what was passed.
    pub scanned: Scanned,
    /// The threshold.
    pub limit: u64,
}

impl fmt::Display for TooManyTombstones {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, partition, scanned, limit } = self;
        write!(
            f,
            "scanned over {} tombstones for {} live rows of {table}, at last in the partition {partition} (token {}): \
             query aborted (tombstone_failure_threshold is {limit})",
            scanned.tombstones, scanned.live_rows, scanned.key.token.0
        )
    }
}

/// Why a read could not go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReadError {
    /// Inline mode only: it would wait for the disk, or has passed more than its budget. Run it again in the background.
    WouldBlock,
    /// Corrupt bytes in a file.
    Corrupt(Box<Corruption>),
    /// The disk failed.
    Io {
        /// The file.
        path: PathBuf,
        /// The system's words.
        message: String,
    },
    /// More tombstones than `tombstone_failure_threshold`.
    TooManyTombstones(Box<TooManyTombstones>),
    /// The index that the read needs is not complete, or gone.
    IndexNotAvailable {
        /// Its name.
        name: String,
    },
    /// The request's time is over.
    TimedOut,
    /// The engine is shutting down.
    Stopped,
}

impl From<Corruption> for ReadError {
    fn from(corruption: Corruption) -> Self {
        Self::Corrupt(Box::new(corruption))
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WouldBlock => write!(f, "the read would wait for the disk"),
            Self::Corrupt(corruption) => corruption.fmt(f),
            Self::Io { path, message } => write!(f, "{}: {message}", path.display()),
            Self::TooManyTombstones(found) => found.fmt(f),
            Self::IndexNotAvailable { name } => write!(f, "The secondary index '{name}' is not yet available"),
            Self::TimedOut => write!(f, "the read took longer than its timeout"),
            Self::Stopped => write!(f, "the node is shutting down"),
        }
    }
}

impl std::error::Error for ReadError {}
