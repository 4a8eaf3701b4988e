//! Why a request could not be decoded: each becomes a PROTOCOL error whose text is its `Display`.
//!
//! The texts follow Cassandra's where it has one. An error that leaves the meaning of the rest of the connection in doubt
//! is fatal: the server answers and closes. A body whose end is known and whose content is merely refused is not.

use std::fmt;

/// What part of which message failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The body ends before the named element does.
    Truncated(&'static str),
    /// A negative length where none is allowed.
    Length(i32),
    /// Text that is not UTF-8.
    NotUtf8,
    /// A consistency code that does not exist.
    Consistency(u16),
    /// A timestamp of `i64::MIN`, which stands for "none".
    Timestamp,
    /// A BATCH type other than logged, unlogged, counter.
    BatchType(u8),
    /// A BATCH element that is neither text nor an id.
    BatchKind(u8),
    /// Named values in a BATCH.
    BatchNames,
    /// REGISTER for an event that does not exist.
    EventType(String),
    /// REGISTER for an event that this version does not have.
    EventVersion(&'static str, u8),
    /// A custom payload below version 4.
    PayloadVersion,
    /// An opcode that does not exist.
    Opcode(u8),
    /// A response where a request belongs.
    Direction(u8),
    /// Compressed data that does not decompress.
    Compression(&'static str),
    /// A header or payload checksum that does not match.
    Checksum {
        /// `header` or `payload`.
        part: &'static str,
        /// What the segment says.
        expected: u32,
        /// What was computed.
        found: u32,
    },
    /// Segments that cannot follow each other.
    Segment(&'static str),
    /// A version that is not spoken, or not allowed at this point; the text is the answer.
    Version(String),
}

impl DecodeError {
    /// Whether the connection cannot go on after it.
    pub fn is_fatal(&self) -> bool {
        !matches!(
            self,
            Self::Consistency(_)
                | Self::Timestamp
                | Self::BatchNames
                | Self::EventType(_)
                | Self::EventVersion(..)
                | Self::PayloadVersion
        )
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated(what) => write!(f, "Not enough bytes to read {what}"),
            Self::Length(length) => write!(f, "Invalid length {length}"),
            Self::NotUtf8 => f.write_str("Cannot decode string as UTF8"),
            Self::Consistency(code) => write!(f, "Unknown code {code} for a consistency level"),
            Self::Timestamp => {
                write!(f, "Out of bound timestamp, must be in [{}, {}] (got {})", i64::MIN + 1, i64::MAX, i64::MIN)
            }
            Self::BatchType(kind) => write!(f, "Invalid BATCH message type {kind}"),
            Self::BatchKind(kind) => {
                write!(f, "Invalid query kind in BATCH messages. Must be 0 or 1 but got {kind}")
            }
            Self::BatchNames => f.write_str("Values in BATCH messages cannot be named"),
            Self::EventType(name) => write!(f, "Invalid value '{name}' for Type"),
            Self::EventVersion(name, version) => {
                write!(f, "Event {name} not valid for protocol version {version}/v{version}")
            }
            Self::PayloadVersion => {
                f.write_str("Received frame with CUSTOM_PAYLOAD flag for native protocol version < 4")
            }
            Self::Opcode(opcode) => write!(f, "Unknown opcode {opcode}"),
            Self::Direction(opcode) => {
                write!(f, "Wrong protocol direction (expected REQUEST, got RESPONSE) for opcode {opcode}")
            }
            Self::Compression(why) => f.write_str(why),
            Self::Checksum { part, expected, found } => {
                write!(f, "Invalid segment: {part} checksum {found:08x} where {expected:08x} was expected")
            }
            Self::Segment(why) => write!(f, "Invalid segment: {why}"),
            Self::Version(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for DecodeError {}
