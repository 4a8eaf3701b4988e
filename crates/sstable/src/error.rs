//! Errors of SSTables: bytes that cannot be right, a disk that fails, a format that is not read
//! yet.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rows::codec::CodecError;
use rows::{Corruption, ReadError};
use stdx::CursorError;

/// Why an SSTable could not be opened, written or checked.
#[derive(Debug)]
pub enum Error {
    /// Bytes that cannot be right.
    Corrupt(Box<Corruption>),
    /// The disk failed.
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A version, format or compressor that this build does not read.
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The version, format or compressor that is not read.
        what: String,
    },
}

impl Error {
    /// Corruption at a place.
    pub fn corrupt(path: &Path, offset: u64, what: impl Into<String>) -> Self {
        Self::Corrupt(Box::new(Corruption { path: path.to_owned(), offset, what: what.into() }))
    }

    /// A component could not be opened or read. That it is not there, or is no file, is damage;
    /// anything else the disk's.
    pub fn open(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::NotFound => Self::corrupt(path, 0, "the file is missing"),
            io::ErrorKind::IsADirectory => Self::corrupt(path, 0, "a directory stands in the place of the file"),
            _ => Self::io(path, source),
        }
    }

    /// A failure of the disk.
    pub fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Corrupt(corruption) => corruption.fmt(f),
            Self::Io { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Unsupported { path, what } => write!(f, "{}: {what}", path.display()),
        }
    }
}

impl std::error::Error for Error {}

impl From<Corruption> for Error {
    fn from(corruption: Corruption) -> Self {
        Self::Corrupt(Box::new(corruption))
    }
}

impl From<Error> for ReadError {
    fn from(error: Error) -> Self {
        match error {
            Error::Corrupt(corruption) => Self::Corrupt(corruption),
            Error::Io { path, source } => Self::Io { path, message: source.to_string() },
            Error::Unsupported { path, what } => Self::Io { path, message: what },
        }
    }
}

/// A defect of bytes, before it is known which file they are of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Malformed {
    /// Offset in the bytes that were looked at.
    pub offset: u64,
    /// A sentence: the expected and the found.
    pub what: String,
}

impl Malformed {
    /// At an offset.
    pub fn at(offset: u64, what: impl Into<String>) -> Self {
        Self { offset, what: what.into() }
    }

    /// The damage with its offset counted from the start of the file, where the bytes that were
    /// looked at begin at `base`.
    pub fn behind(mut self, base: u64) -> Self {
        self.offset = self.offset.saturating_add(base);
        self
    }

    /// In a file; `base` is where in the file the bytes begin.
    pub fn of(self, path: &Path, base: u64) -> Corruption {
        Corruption { path: path.to_owned(), offset: base.saturating_add(self.offset), what: self.what }
    }
}

/// Why an index could not be asked: its bytes, or the reading of them.
#[derive(Clone, Debug)]
pub enum IndexError {
    /// The bytes cannot be right.
    Malformed(Malformed),
    /// They could not be read, or not without waiting.
    Read(ReadError),
}

impl IndexError {
    /// In a file.
    pub fn of(self, path: &Path) -> ReadError {
        match self {
            Self::Malformed(malformed) => malformed.of(path, 0).into(),
            Self::Read(error) => error,
        }
    }

    /// For tools that say what is wrong and go on.
    pub fn into_malformed(self) -> Malformed {
        match self {
            Self::Malformed(malformed) => malformed,
            Self::Read(error) => Malformed::at(0, error.to_string()),
        }
    }
}

impl From<Malformed> for IndexError {
    fn from(error: Malformed) -> Self {
        Self::Malformed(error)
    }
}

impl From<CursorError> for IndexError {
    fn from(error: CursorError) -> Self {
        Self::Malformed(error.into())
    }
}

impl From<ReadError> for IndexError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Corrupt(corruption) => Self::Corrupt(corruption),
            ReadError::Io { path, message } => Self::Io { path, source: io::Error::other(message) },
            other => Self::Io { path: PathBuf::new(), source: io::Error::other(other.to_string()) },
        }
    }
}

impl From<CursorError> for Malformed {
    fn from(error: CursorError) -> Self {
        let (CursorError::Truncated { offset, .. }
        | CursorError::NegativeLength { offset }
        | CursorError::NotText { offset }) = error;
        Self { offset: offset as u64, what: error.to_string() }
    }
}

impl From<CodecError> for Malformed {
    fn from(error: CodecError) -> Self {
        Self { offset: 0, what: error.to_string() }
    }
}
