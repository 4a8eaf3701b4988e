//! Why the commit log could not do what was asked.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why the log could not do what was asked.
#[derive(Clone, Debug)]
pub enum LogError {
    /// The record, or the group, is larger than a mutation may be.
    MutationTooLarge {
        /// Size of the record or group, bytes.
        size: usize,
        /// The largest size, bytes.
        size_max: usize,
    },
    /// The pending buffer is at its limit: wait for [`CommitLog::wait_for_room`].
    Busy,
    /// The log stopped after a failure; the node must be restarted.
    Stopped,
    /// The record was lost by a failed write or sync, which the failure policy ignores.
    WriteFailed,
    /// The device is full: nothing is taken until there is room. A record that was taken before is
    /// kept, and becomes durable once there is.
    NoSpace {
        /// The file or directory for which there is no room.
        path: PathBuf,
    },
    /// No file descriptor is left for the log. Records are treated as for [`LogError::NoSpace`].
    NoDescriptors {
        /// The file or directory that could not be opened.
        path: PathBuf,
    },
    /// The record is of a table with change data capture, for which there is no space.
    CaptureFull {
        /// `cdc_raw_directory`.
        directory: PathBuf,
        /// Bytes in this directory.
        size: u64,
    },
    /// A file in a restore directory that cannot be brought back.
    NotRestored {
        /// The file.
        path: PathBuf,
        /// Why it cannot be brought back.
        why: String,
    },
    /// The file system failed.
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: Arc<io::Error>,
    },
    /// A segment is damaged in a place that was acknowledged as durable.
    Corrupt {
        /// The segment's file.
        path: PathBuf,
        /// Offset at which the unreadable bytes begin.
        offset: u32,
        /// The defect of these bytes.
        reason: &'static str,
    },
    /// A segment of a version or with parameters that cannot be read.
    Unsupported {
        /// The segment's file.
        path: PathBuf,
        /// The version or the parameters.
        what: String,
    },
}

impl LogError {
    /// Makes the error of any operation except a sync: bytes that were not written for lack of
    /// room can be written later.
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> LogError {
        |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => LogError::NoSpace { path: path.to_owned() },
            _ if env::lacks_descriptors(&source) => LogError::NoDescriptors { path: path.to_owned() },
            _ => LogError::Io { path: path.to_owned(), source: Arc::new(source) },
        }
    }

    /// Whether something that others use up is lacking, room or descriptors. The log keeps what it
    /// has taken, takes no more, and tries again until it is there.
    pub fn is_shortage(&self) -> bool {
        matches!(self, LogError::NoSpace { .. } | LogError::NoDescriptors { .. })
    }

    /// Makes the error of a sync. A sync is not tried again, because a later one that succeeds
    /// would prove nothing.
    pub(super) fn sync(path: &Path) -> impl FnOnce(io::Error) -> LogError {
        |source| LogError::Io { path: path.to_owned(), source: Arc::new(source) }
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::MutationTooLarge { size, size_max } => {
                write!(f, "a mutation of {size} bytes is too large for the maximum size of {size_max}")
            }
            LogError::Busy => f.write_str("the commit log cannot keep up"),
            LogError::CaptureFull { directory, size } => write!(
                f,
                "writes to tables with cdc = true are refused: {} holds {size} bytes of captured changes, which are to be consumed and \
                 removed (cdc_total_space)",
                directory.display()
            ),
            LogError::NotRestored { path, why } => {
                write!(f, "{} cannot be restored (commitlog_archiving.properties): {why}", path.display())
            }
            LogError::Stopped => f.write_str("the commit log stopped after a disk failure"),
            LogError::WriteFailed => f.write_str("the write was lost by a failure of the commit log's disk"),
            LogError::NoSpace { path } => write!(f, "no space left on the device of {}", path.display()),
            LogError::NoDescriptors { path } => {
                write!(f, "no file descriptor is left to open {} (ulimit -n)", path.display())
            }
            LogError::Io { path, source } => write!(f, "{}: {source}", path.display()),
            LogError::Corrupt { path, offset, reason } => {
                write!(f, "{}: corrupt at offset {offset}: {reason}", path.display())
            }
            LogError::Unsupported { path, what } => {
                write!(
                    f,
                    "{}: cannot replay commit log segments with {what}; start the Cassandra that wrote it and run nodetool drain first",
                    path.display()
                )
            }
        }
    }
}

impl std::error::Error for LogError {}
