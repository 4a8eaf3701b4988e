//! Why a peer's stream could not be read.

use std::fmt;

use internode::InternodeError;
use rows::codec::CodecError;
use stdx::CursorError;

/// The part of a stream that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StreamingError {
    /// Bytes are missing, a length is negative, or the bytes of a text are not UTF-8.
    Bytes(CursorError),
    /// A part whose form all messages between nodes share is wrong.
    Internode(InternodeError),
    /// The named part has a value that it cannot have.
    Value {
        /// The part, in the words of the format's description.
        part: &'static str,
        /// The value.
        found: i64,
    },
    /// The named part has a text that it cannot have.
    Text {
        /// The part, in the words of the format's description.
        part: &'static str,
        /// The text.
        found: String,
    },
    /// A message is larger than messages of its kind may be.
    TooLarge {
        /// Bytes that the message has at least.
        size: usize,
        /// The limit, bytes.
        limit: usize,
    },
    /// The checksum of a chunk does not match.
    Checksum {
        /// Offset of the chunk in the sender's Data.db.
        chunk: u64,
    },
    /// A chunk or block does not decompress; the text says why.
    Decompression(String),
    /// Rows or the names of their columns are not valid.
    Rows(String),
    /// A message comes at a point of the session at which it must not.
    Sequence(&'static str),
}

impl StreamingError {
    /// Bytes, from the start of a message, without which the message cannot be read; None: the
    /// error is another one than missing bytes.
    pub fn wanted(&self) -> Option<usize> {
        match self {
            Self::Bytes(CursorError::Truncated { offset, needed })
            | Self::Internode(InternodeError::Bytes(CursorError::Truncated { offset, needed })) => {
                Some(offset.saturating_add(*needed))
            }
            _ => None,
        }
    }
}

impl fmt::Display for StreamingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(error) => error.fmt(f),
            Self::Internode(error) => error.fmt(f),
            Self::Value { part, found } => write!(f, "{part} cannot be {found}"),
            Self::Text { part, found } => write!(f, "{part} cannot be {found:?}"),
            Self::TooLarge { size, limit } => {
                write!(f, "a stream message of {size} bytes or more, the limit is {limit} bytes")
            }
            Self::Checksum { chunk } => {
                write!(f, "the chunk at offset {chunk} of the sender's file has a wrong checksum")
            }
            Self::Decompression(why) => write!(f, "streamed data does not decompress: {why}"),
            Self::Rows(why) => f.write_str(why),
            Self::Sequence(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for StreamingError {}

impl From<CursorError> for StreamingError {
    fn from(error: CursorError) -> Self {
        Self::Bytes(error)
    }
}

impl From<InternodeError> for StreamingError {
    fn from(error: InternodeError) -> Self {
        Self::Internode(error)
    }
}

impl From<CodecError> for StreamingError {
    fn from(error: CodecError) -> Self {
        Self::Rows(error.to_string())
    }
}
