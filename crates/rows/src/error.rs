//! The errors of reads.

use std::fmt;
use std::path::PathBuf;

use crate::scanned_counts::ScannedCounts;

/// Bytes of a file that are not as they must be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Corruption {
    /// The file of the component.
    pub path: PathBuf,
    /// Offset in the file.
    pub offset: u64,
    /// The expectation, and the bytes that were found.
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
    /// The keyspace and the table.
    pub table: String,
    /// The last partition that was read, as text.
    pub partition: String,
    /// The partition's key, and the counts so far.
    pub scanned: ScannedCounts,
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

/// Why a read could not continue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReadError {
    /// In inline mode only: the read would wait for the disk, or has passed more rows than its
    /// budget. It has to be run again on the pool.
    WouldBlock,
    /// A file has corrupt bytes.
    Corrupt(Box<Corruption>),
    /// Bytes that another node sent as its answer are not as they must be.
    Malformed {
        /// Offset in the answer's data.
        offset: usize,
        /// The defect.
        what: String,
    },
    /// The disk reported an error.
    Io {
        /// The file.
        path: PathBuf,
        /// The error in the words of the system.
        message: String,
    },
    /// The read met more tombstones than `tombstone_failure_threshold`.
    TooManyTombstones(Box<TooManyTombstones>),
    /// The read loaded more bytes than a threshold on sizes of reads lets it.
    TooLarge {
        /// The row index of a partition is too large, not the sum of what was read.
        is_row_index: bool,
        /// Bytes until the read ended.
        bytes: u64,
    },
    /// A search would look into more SSTables than `sai_sstable_indexes_per_query_fail_threshold`
    /// lets it.
    TooManyIndexes {
        /// How many for one condition.
        number: u64,
    },
    /// The index that the read needs is not built completely, or is gone.
    IndexNotAvailable {
        /// The name of the index.
        name: String,
    },
    /// A function that the read calls fails.
    Function {
        /// The function and why, as a sentence.
        why: String,
    },
    /// The time of the request is over.
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
            Self::Malformed { offset, what } => {
                write!(f, "the answer of another node cannot be read at offset {offset}: {what}")
            }
            Self::Io { path, message } => write!(f, "{}: {message}", path.display()),
            Self::TooManyTombstones(found) => found.fmt(f),
            Self::TooLarge { is_row_index: false, bytes } => {
                write!(f, "the read loaded {bytes} bytes (local_read_size_fail_threshold)")
            }
            Self::TooLarge { is_row_index: true, bytes } => {
                write!(f, "the read loaded a row index of {bytes} bytes (row_index_read_size_fail_threshold)")
            }
            Self::TooManyIndexes { number } => {
                write!(f, "the read would search {number} indexes (sai_sstable_indexes_per_query_fail_threshold)")
            }
            Self::IndexNotAvailable { name } => write!(f, "The secondary index '{name}' is not yet available"),
            Self::Function { why } => write!(f, "{why}"),
            Self::TimedOut => write!(f, "the read took longer than its timeout"),
            Self::Stopped => write!(f, "the node is shutting down"),
        }
    }
}

impl std::error::Error for ReadError {}
