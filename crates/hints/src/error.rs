//! Why hints cannot be written or read.

use std::fmt;
use std::io;

use stdx::CursorError;

/// Why hints cannot be written or read.
#[derive(Debug)]
pub enum HintError {
    /// The disk failed.
    Io(io::Error),
    /// The file ends within its head, or a length in the head is false.
    Bytes(CursorError),
    /// A checksum does not match; the part of the file that it covers.
    Checksum(&'static str),
    /// The file is of a kind that is not read; the name of the kind.
    Unread(String),
    /// The content contradicts itself: how, and at which offset in the plain file.
    Corrupt(String, u64),
}

impl HintError {
    /// Whether the file ends within its head: its writer was stopped before the first hint.
    pub fn is_cut_head(&self) -> bool {
        matches!(self, Self::Bytes(CursorError::Truncated { .. }))
    }
}

impl fmt::Display for HintError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Bytes(error) => write!(f, "the head of the file: {error}"),
            Self::Checksum(part) => write!(f, "the checksum of {part} does not match"),
            Self::Unread(kind) => write!(f, "{kind} cannot be read"),
            Self::Corrupt(how, at) => write!(f, "{how}, {at} bytes from the start"),
        }
    }
}

impl std::error::Error for HintError {}

impl From<io::Error> for HintError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<CursorError> for HintError {
    fn from(error: CursorError) -> Self {
        Self::Bytes(error)
    }
}
