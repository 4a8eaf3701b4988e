//! Responses: the messages to clients, one module for each family, encoded straight into the
//! connection's output buffer.
//!
//! A response is made without knowledge of the client's version and compression;
//! [`ResponseEnvelope::encode`] has both. Rows arrive as bytes in the form of the wire and are
//! copied once, into the output buffer. Native protocol specification §4.2;
//! `org.apache.cassandra.transport.messages`.

use bytes::{BufMut, Bytes, BytesMut};

use crate::compression::Compression;
use crate::error::ErrorMessage;
use crate::frame::{begin_response, finish_response, flags};
use crate::opcode::Opcode;
use crate::version::ProtocolVersion;
use crate::wire::{Text, put_bytes, put_bytes_map, put_string, put_string_list};

pub mod event;
pub mod metadata;
pub mod prepared;
pub mod rows;
pub mod type_option;

pub use event::{Event, SchemaChange, SchemaChangeKind, SchemaChangeTarget, StatusChange, TopologyChange};
pub use metadata::{ColumnSpec, ResultMetadata};
pub use prepared::Prepared;
pub use rows::Rows;

/// A message to a client.
#[derive(Clone, Debug)]
pub enum Response {
    /// ERROR: the request failed.
    Error(ErrorMessage),
    /// READY: STARTUP or REGISTER is done.
    Ready,
    /// AUTHENTICATE: the client must authenticate; the text is the class of the authenticator.
    Authenticate(String),
    /// SUPPORTED: the options of this server, in this order.
    Supported(Vec<(String, Vec<String>)>),
    /// RESULT without content.
    Void,
    /// RESULT with rows.
    Rows(Box<Rows>),
    /// RESULT: the connection's keyspace is now this one.
    SetKeyspace(String),
    /// RESULT with a prepared statement.
    Prepared(Box<Prepared>),
    /// RESULT: the schema has changed.
    SchemaChange(Box<SchemaChange>),
    /// EVENT, on stream -1.
    Event(Box<Event>),
    /// AUTH_CHALLENGE: the exchange continues with this token.
    AuthChallenge(Option<Bytes>),
    /// AUTH_SUCCESS: the exchange is complete.
    AuthSuccess(Option<Bytes>),
}

/// The codes of the kinds of RESULT.
mod result_kind {
    pub const VOID: i32 = 1;
    pub const ROWS: i32 = 2;
    pub const SET_KEYSPACE: i32 = 3;
    pub const PREPARED: i32 = 4;
    pub const SCHEMA_CHANGE: i32 = 5;
}

impl Response {
    /// The opcode of the message.
    pub fn opcode(&self) -> Opcode {
        match self {
            Self::Error(_) => Opcode::Error,
            Self::Ready => Opcode::Ready,
            Self::Authenticate(_) => Opcode::Authenticate,
            Self::Supported(_) => Opcode::Supported,
            Self::Void | Self::Rows(_) | Self::SetKeyspace(_) | Self::Prepared(_) | Self::SchemaChange(_) => {
                Opcode::Result
            }
            Self::Event(_) => Opcode::Event,
            Self::AuthChallenge(_) => Opcode::AuthChallenge,
            Self::AuthSuccess(_) => Opcode::AuthSuccess,
        }
    }

    /// Appends the body, without the parts of the envelope that precede it.
    pub fn encode(&self, out: &mut BytesMut, version: ProtocolVersion) {
        match self {
            Self::Error(error) => error.encode(out, version),
            Self::Ready => {}
            Self::Authenticate(class) => put_string(out, class),
            Self::Supported(options) => put_options(out, options),
            Self::Void => out.put_i32(result_kind::VOID),
            Self::Rows(rows) => {
                out.put_i32(result_kind::ROWS);
                rows.encode(out, version);
            }
            Self::SetKeyspace(keyspace) => {
                out.put_i32(result_kind::SET_KEYSPACE);
                put_string(out, keyspace);
            }
            Self::Prepared(prepared) => {
                out.put_i32(result_kind::PREPARED);
                prepared.encode(out, version);
            }
            Self::SchemaChange(change) => {
                out.put_i32(result_kind::SCHEMA_CHANGE);
                change.encode(out, version);
            }
            Self::Event(event) => event.encode(out, version),
            Self::AuthChallenge(token) | Self::AuthSuccess(token) => put_bytes(out, token.as_deref()),
        }
    }

    /// Estimated bytes of the body: for rows exact but for the metadata, otherwise a small number.
    pub fn size_hint(&self) -> usize {
        match self {
            Self::Rows(rows) => rows.body.len() + 256,
            _ => 64,
        }
    }
}

fn put_options(out: &mut BytesMut, options: &[(String, Vec<String>)]) {
    assert!(options.len() <= usize::from(u16::MAX), "the options of a server are few");
    out.put_u16(options.len() as u16);
    for (key, values) in options {
        put_string(out, key);
        put_string_list(out, values);
    }
}

impl From<ErrorMessage> for Response {
    fn from(error: ErrorMessage) -> Self {
        Self::Error(error)
    }
}

/// A response with the other content of its envelope.
#[derive(Clone, Debug)]
pub struct ResponseEnvelope {
    /// The stream id of the request; -1 for events.
    pub stream: i16,
    /// Parts that few responses have; None: no part is present.
    pub extras: Option<Box<ResponseExtras>>,
    /// The message.
    pub response: Response,
}

/// The parts that may precede a message, in the order of the wire.
#[derive(Clone, Debug, Default)]
pub struct ResponseExtras {
    /// The id of the trace of the request.
    pub tracing_id: Option<[u8; 16]>,
    /// Warnings, which drivers show; left out below version 4.
    pub warnings: Vec<String>,
    /// The custom payload; left out below version 4.
    pub custom_payload: Vec<(Text, Option<Bytes>)>,
}

impl ResponseEnvelope {
    /// A response without extras.
    pub fn new(stream: i16, response: impl Into<Response>) -> Self {
        Self { stream, extras: None, response: response.into() }
    }

    /// Appends header and body; the body is compressed if that is agreed and makes it smaller.
    pub fn encode(&self, out: &mut BytesMut, version: ProtocolVersion, compression: Option<Compression>) {
        let envelope_start = out.len();
        let body_start = begin_response(out, version, 0, self.stream, self.response.opcode());
        let mut flags = 0;
        if let Some(extras) = &self.extras {
            flags |= extras.encode(out, version);
        }
        self.response.encode(out, version);
        if compression.is_some_and(|compression| compression.compress_tail(out, body_start)) {
            flags |= flags::COMPRESSED;
        }
        debug_assert_eq!(out[envelope_start + 1] & flags, 0, "the flags of a response are set once");
        out[envelope_start + 1] |= flags;
        finish_response(out, body_start);
    }
}

impl ResponseEnvelope {
    /// Appends everything but the rows and returns the rows, if they have at least `size` bytes.
    /// Large pages are copied piece by piece as the client takes them, instead of all at once.
    /// `None`: nothing was appended. Never compressed.
    pub fn encode_without_rows(&self, out: &mut BytesMut, version: ProtocolVersion, size: usize) -> Option<Bytes> {
        let Response::Rows(rows) = &self.response else { return None };
        if rows.body.len() < size {
            return None;
        }
        let envelope_start = out.len();
        let body_start = begin_response(out, version, 0, self.stream, self.response.opcode());
        if let Some(extras) = &self.extras {
            let flags = extras.encode(out, version);
            out[envelope_start + 1] |= flags;
        }
        out.put_i32(result_kind::ROWS);
        rows.encode_head(out, version);
        let size = u32::try_from(out.len() - body_start + rows.body.len()).expect("responses are bounded below 2 GiB");
        out[body_start - 4..body_start].copy_from_slice(&size.to_be_bytes());
        Some(rows.body.clone())
    }
}

impl ResponseExtras {
    fn encode(&self, out: &mut BytesMut, version: ProtocolVersion) -> u8 {
        let mut flags = 0;
        if let Some(id) = &self.tracing_id {
            out.put_slice(id);
            flags |= flags::TRACING;
        }
        if version >= ProtocolVersion::V4 && !self.warnings.is_empty() {
            put_string_list(out, &self.warnings);
            flags |= flags::WARNING;
        }
        if version >= ProtocolVersion::V4 && !self.custom_payload.is_empty() {
            put_bytes_map(out, &self.custom_payload);
            flags |= flags::CUSTOM_PAYLOAD;
        }
        flags
    }
}

#[cfg(test)]
mod tests;
