//! The errors of decoding. Each becomes a PROTOCOL error whose text is its `Display`; the texts
//! follow Cassandra's where it has one.
//!
//! An error is fatal if it leaves the meaning of the rest of the connection in doubt: the server
//! answers and closes. The header of a message says where its body ends, so that the connection
//! continues behind a body that cannot be read: other requests of the client are under way on it.

use std::fmt;

/// Which part of which message could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The body ends before the named element does.
    Truncated(&'static str),
    /// A length is negative where none may be.
    Length(i32),
    /// A text is not UTF-8.
    NotUtf8,
    /// There is no consistency level of this code.
    Consistency(u16),
    /// The timestamp is `i64::MIN`, which means "none".
    Timestamp,
    /// The type of a BATCH is not logged, unlogged or counter.
    BatchType(u8),
    /// A statement of a BATCH is neither text nor id.
    BatchKind(u8),
    /// REGISTER names an event that does not exist.
    EventType(String),
    /// REGISTER names an event that this version does not have.
    EventVersion(&'static str, u8),
    /// A version below 4 has a custom payload.
    PayloadVersion,
    /// There is no such opcode.
    Opcode(u8),
    /// A client sent the opcode of a response.
    Direction(u8),
    /// Compressed data cannot be decompressed.
    Compression(&'static str),
    /// The checksum of a segment's header or payload does not match.
    Checksum {
        /// `header` or `payload`.
        part: &'static str,
        /// The checksum in the segment.
        expected: u32,
        /// The checksum of the bytes that arrived.
        found: u32,
    },
    /// Segments follow each other in an order that is not allowed.
    Segment(&'static str),
    /// The version is not supported, or not allowed at this point. The text is the answer.
    Version(String),
}

impl DecodeError {
    /// Whether the connection must be closed after this error of a message whose header is sound.
    pub fn is_fatal(&self) -> bool {
        matches!(
            self,
            Self::Opcode(_)
                | Self::Direction(_)
                | Self::Compression(_)
                | Self::Checksum { .. }
                | Self::Segment(_)
                | Self::Version(_)
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
