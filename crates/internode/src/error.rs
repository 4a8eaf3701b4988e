//! Why bytes of a peer could not be read.

use std::fmt;

use rows::codec::CodecError;
use schema::TableId;
use segments::SegmentError;
use stdx::CursorError;

/// Which part of what a peer sent is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InternodeError {
    /// Bytes are missing, a length is negative, or a text is no text.
    Bytes(CursorError),
    /// The named part has a value that it cannot have.
    Value {
        /// The part, in the words of the format's description.
        part: &'static str,
        /// The value.
        found: i64,
    },
    /// The handshake's first four bytes are not the protocol's.
    Magic(u32),
    /// The handshake's checksum does not match.
    Checksum {
        /// The checksum that was sent.
        expected: u32,
        /// The checksum of the bytes that came.
        found: u32,
    },
    /// A verb that 5.0 does not have. The end of such a message is known, but Cassandra gives the
    /// link up, and so do we.
    UnknownVerb(i64),
    /// A message is larger than `internode_max_message_size`.
    TooLarge {
        /// Bytes of the message, with its header.
        size: u64,
        /// The limit, bytes.
        limit: usize,
    },
    /// A frame's checksum does not match, at a place after which the link cannot go on.
    Frame(SegmentError),
    /// Frames follow each other as they cannot.
    Sequence(&'static str),
    /// A table that this node does not have.
    UnknownTable(TableId),
    /// A column that the named table does not have.
    UnknownColumn(String),
    /// Rows or their parts are not as they must be.
    Rows(CodecError),
    /// A request that this node cannot serve.
    Unsupported(&'static str),
    /// A payload ends before or after its announced size.
    Trailing {
        /// Bytes that were left.
        left: usize,
    },
}

impl fmt::Display for InternodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(error) => error.fmt(f),
            Self::Value { part, found } => write!(f, "{part} cannot be {found}"),
            Self::Magic(found) => write!(f, "a handshake cannot begin with {found:08x}"),
            Self::Checksum { expected, found } => {
                write!(f, "the handshake has checksum {found:08x} where {expected:08x} was expected")
            }
            Self::UnknownVerb(id) => write!(f, "there is no verb {id}"),
            Self::TooLarge { size, limit } => {
                write!(f, "a message of {size} bytes is larger than internode_max_message_size ({limit} bytes)")
            }
            Self::Frame(error) => error.fmt(f),
            Self::Sequence(why) => f.write_str(why),
            Self::UnknownTable(id) => write!(f, "there is no table {id}"),
            Self::UnknownColumn(name) => write!(f, "there is no column {name}"),
            Self::Rows(error) => error.fmt(f),
            Self::Unsupported(what) => write!(f, "{what} cannot be served"),
            Self::Trailing { left } => write!(f, "{left} bytes follow the end of a payload"),
        }
    }
}

impl std::error::Error for InternodeError {}

impl From<CursorError> for InternodeError {
    fn from(error: CursorError) -> Self {
        Self::Bytes(error)
    }
}

impl From<CodecError> for InternodeError {
    fn from(error: CodecError) -> Self {
        Self::Rows(error)
    }
}
