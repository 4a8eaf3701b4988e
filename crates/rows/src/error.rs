//! Why a read could not go on.

use std::fmt;
use std::path::PathBuf;

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
    TooManyTombstones {
        /// Keyspace and table.
        table: String,
        /// How many were passed.
        tombstones: u64,
        /// Live rows seen.
        live_rows: u64,
    },
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
            Self::TooManyTombstones { table, tombstones, live_rows } => write!(
                f,
                "scanned over {tombstones} tombstones for {live_rows} live rows in {table}: query aborted (tombstone_failure_threshold)"
            ),
            Self::IndexNotAvailable { name } => write!(f, "The secondary index '{name}' is not yet available"),
            Self::TimedOut => write!(f, "the read took longer than its timeout"),
            Self::Stopped => write!(f, "the node is shutting down"),
        }
    }
}

impl std::error::Error for ReadError {}
