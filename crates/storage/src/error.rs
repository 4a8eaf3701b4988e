//! Why the engine could not do what it was asked.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rows::{Corruption, ReadError};

/// Why the engine could not do what it was asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StorageError {
    /// The disk failed.
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The system's words.
        message: String,
    },
    /// The device of a file or directory is full, or has less room than a compaction may need.
    NoSpace {
        /// The file or directory.
        path: PathBuf,
        /// The system's words.
        message: String,
    },
    /// The process, or the machine, had no file descriptor left to open a file or directory. The
    /// same call succeeds when something has been closed.
    NoDescriptors {
        /// The file or directory.
        path: PathBuf,
    },
    /// Corrupt bytes in a file.
    Corrupt(Box<Corruption>),
    /// A mutation that is larger than the commit log takes.
    MutationTooLarge {
        /// Size of the mutation, bytes.
        size: usize,
        /// The limit: max_mutation_size.
        size_max: usize,
    },
    /// The commit log's buffer is full: try again when
    /// [`crate::commitlog::CommitLog::wait_for_room`] completes.
    Busy,
    /// A view was made or dropped since the changes of views that belong to a write were computed:
    /// they have to be computed again.
    ViewsChanged,
    /// A write to a table with change data capture, for which there is no space.
    CaptureFull {
        /// The directory, its bytes and its limit, as words.
        why: String,
    },
    /// Writes are refused: the commit log failed, or the node is draining.
    WritesStopped {
        /// The reason.
        why: String,
    },
    /// The node was started to read only.
    ReadOnly,
    /// There is no such table.
    UnknownTable {
        /// Keyspace and name of the table.
        table: String,
    },
    /// A table or an index cannot be made yet: the files of a dropped table with its id, or of a
    /// dropped index with its name, are not gone.
    FilesOfDropped {
        /// The table or index that is to be made, as words.
        what: String,
    },
    /// Another process uses the directory.
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// The request cannot be carried out now.
    Refused {
        /// The reason.
        why: String,
    },
}

impl StorageError {
    /// A failure of the disk at `path`.
    pub fn io(path: &Path, error: &std::io::Error) -> Self {
        let (path, message) = (path.to_owned(), error.to_string());
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::NoSpace { path, message },
            _ if env::lacks_descriptors(error) => Self::NoDescriptors { path },
            _ => Self::Io { path, message },
        }
    }
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, message } | Self::NoSpace { path, message } => {
                write!(f, "{}: {message}", path.display())
            }
            Self::NoDescriptors { path } => {
                write!(f, "no file descriptor is left to open {} (ulimit -n)", path.display())
            }
            Self::Corrupt(corruption) => corruption.fmt(f),
            Self::MutationTooLarge { size, size_max } => write!(
                f,
                "a mutation of {size} bytes is too large for the maximum size of {size_max} (max_mutation_size, half of commitlog_segment_size)"
            ),
            Self::ViewsChanged => write!(f, "the materialized views of a table have changed meanwhile"),
            Self::Busy => write!(f, "the commit log cannot take more at the moment"),
            Self::WritesStopped { why } => write!(f, "writes are refused: {why}"),
            Self::ReadOnly => f.write_str("this node only reads (--read-only): nothing can be written or changed"),
            Self::UnknownTable { table } => write!(f, "there is no table {table}"),
            Self::FilesOfDropped { what } => {
                write!(f, "{what} cannot be made now, try again: the files of the dropped one are not gone yet")
            }
            Self::Locked { path } => {
                write!(f, "{} is in use by another process; is Helenus already running on it?", path.display())
            }
            Self::CaptureFull { why } | Self::Refused { why } => f.write_str(why),
        }
    }
}

impl std::error::Error for StorageError {}

impl From<ReadError> for StorageError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Corrupt(corruption) => Self::Corrupt(corruption),
            ReadError::Io { path, message } => Self::Io { path, message },
            other => Self::Refused { why: other.to_string() },
        }
    }
}

impl From<crate::commitlog::LogError> for StorageError {
    fn from(error: crate::commitlog::LogError) -> Self {
        use crate::commitlog::LogError;
        match error {
            LogError::MutationTooLarge { size, size_max } => Self::MutationTooLarge { size, size_max },
            LogError::Busy => Self::Busy,
            LogError::CaptureFull { .. } => Self::CaptureFull { why: error.to_string() },
            LogError::Io { path, source } => Self::io(&path, &source),
            LogError::NoSpace { .. } => {
                Self::WritesStopped { why: format!("{error}; they go on by themselves when there is room") }
            }
            LogError::NoDescriptors { .. } => {
                Self::WritesStopped { why: format!("{error}; they go on by themselves when one is free") }
            }
            LogError::Stopped | LogError::WriteFailed => Self::WritesStopped { why: error.to_string() },
            LogError::Corrupt { .. } | LogError::Unsupported { .. } | LogError::NotRestored { .. } => {
                Self::Refused { why: error.to_string() }
            }
        }
    }
}

impl From<sstable::Error> for StorageError {
    fn from(error: sstable::Error) -> Self {
        match error {
            sstable::Error::Corrupt(corruption) => Self::Corrupt(corruption),
            sstable::Error::Io { path, source } => Self::io(&path, &source),
            sstable::Error::Unsupported { .. } => Self::Refused { why: error.to_string() },
        }
    }
}
