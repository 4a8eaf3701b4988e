//! Responses: what goes back, one module a family, encoded straight into the connection's out buffer.
//!
//! A response is made without knowing the client's version and compression; [`ResponseEnvelope::encode`] has both. Rows come
//! as bytes that are already in wire form: they are copied once, into the out buffer.
//! Native protocol specification §4.2; `org.apache.cassandra.transport.messages`.

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
    /// Something went wrong.
    Error(ErrorMessage),
    /// STARTUP or REGISTER is done.
    Ready,
    /// The client must authenticate, with this authenticator class.
    Authenticate(String),
    /// The options of this server, in this order.
    Supported(Vec<(String, Vec<String>)>),
    /// RESULT: nothing to say.
    Void,
    /// RESULT: rows.
    Rows(Box<Rows>),
    /// RESULT: the connection's keyspace is now this.
    SetKeyspace(String),
    /// RESULT: a prepared statement.
    Prepared(Box<Prepared>),
    /// RESULT: the schema has changed.
    SchemaChange(Box<SchemaChange>),
    /// Something happened; on stream −1.
    Event(Box<Event>),
    /// The exchange goes on with this token.
    AuthChallenge(Option<Bytes>),
    /// The exchange is over.
    AuthSuccess(Option<Bytes>),
}

/// RESULT's kinds.
mod result_kind {
    pub const VOID: i32 = 1;
    pub const ROWS: i32 = 2;
    pub const SET_KEYSPACE: i32 = 3;
    pub const PREPARED: i32 = 4;
    pub const SCHEMA_CHANGE: i32 = 5;
}

impl Response {
    /// The opcode it goes with.
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

    /// Appends the message (without what an envelope puts before it).
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

    /// About how many bytes it takes: exact for rows up to their metadata, small for all else.
    pub fn size_hint(&self) -> usize {
        match self {
            Self::Rows(rows) => rows.body.len() + 256,
            _ => 64,
        }
    }
}

fn put_options(out: &mut BytesMut, options: &[(String, Vec<String>)]) {
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

/// A response with what its envelope says around it.
#[derive(Clone, Debug)]
pub struct ResponseEnvelope {
    /// The request's stream; −1 for events.
    pub stream: i16,
    /// What is rarely there.
    pub extras: Option<Box<ResponseExtras>>,
    /// The message.
    pub response: Response,
}

/// What may precede a message, in the order of the wire.
#[derive(Clone, Debug, Default)]
pub struct ResponseExtras {
    /// The session under which the request was traced.
    pub tracing_id: Option<[u8; 16]>,
    /// Shown by drivers; dropped below version 4.
    pub warnings: Vec<String>,
    /// What the server sends besides; dropped below version 4.
    pub custom_payload: Vec<(Text, Option<Bytes>)>,
}

impl ResponseEnvelope {
    /// A response with nothing around it.
    pub fn new(stream: i16, response: impl Into<Response>) -> Self {
        Self { stream, extras: None, response: response.into() }
    }

    /// Appends header and body, compressed if that is chosen and helps.
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
        out[envelope_start + 1] |= flags;
        finish_response(out, body_start);
    }
}

impl ResponseEnvelope {
    /// Encodes all but the rows, where there are at least `size` bytes of them, and gives these: a page that is copied piece by piece when
    /// the client takes it need not be copied at once. `None`: nothing was encoded. Never compressed.
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
