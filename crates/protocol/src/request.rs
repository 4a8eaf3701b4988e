//! Requests: the messages of clients, one module for each opcode.
//!
//! Decoding copies nothing but small lists: texts and values share the buffer of the frame.
//! [`Request::decode`] takes the decompressed body. It checks everything that needs neither a
//! schema nor a statement. Native protocol specification §4.1.

use bytes::Bytes;

use crate::decode_error::DecodeError;
use crate::frame::{Header, flags};
use crate::opcode::Opcode;
use crate::version::ProtocolVersion;
use crate::wire::{Reader, Text};

pub mod auth_response;
pub mod batch;
pub mod execute;
pub mod parameters;
pub mod prepare;
pub mod query;
pub mod register;
pub mod startup;
pub mod values;

pub use auth_response::AuthResponse;
pub use batch::{Batch, BatchStatement};
pub use execute::Execute;
pub use parameters::QueryParameters;
pub use prepare::Prepare;
pub use query::Query;
pub use register::{EventType, Register};
pub use startup::Startup;
pub use values::{Value, Values};

/// A decoded request.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // each is documented in its module
pub enum Request {
    Startup(Startup),
    Options,
    AuthResponse(AuthResponse),
    Register(Register),
    Query(Query),
    Prepare(Prepare),
    Execute(Execute),
    Batch(Batch),
}

/// A request with the other content of its envelope.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestEnvelope {
    /// The version in the header.
    pub version: ProtocolVersion,
    /// The stream id, which the response repeats.
    pub stream: i16,
    /// Whether the client asks for a trace.
    pub tracing: bool,
    /// The custom payload (version 4 and later); empty if there is none.
    pub custom_payload: Vec<(Text, Option<Bytes>)>,
    /// The request.
    pub request: Request,
}

impl RequestEnvelope {
    /// Decodes the (decompressed) body that belongs to `header`.
    pub fn decode(header: &Header, body: &Bytes) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(body);
        let custom_payload = match header.flags & flags::CUSTOM_PAYLOAD {
            0 => Vec::new(),
            _ if header.version < ProtocolVersion::V4 => return Err(DecodeError::PayloadVersion),
            _ => reader.bytes_map("a custom payload")?,
        };
        Ok(Self {
            version: header.version,
            stream: header.stream,
            tracing: header.flags & flags::TRACING != 0,
            custom_payload,
            request: Request::decode(header.opcode, header.version, &mut reader)?,
        })
    }
}

impl Request {
    fn decode(opcode: u8, version: ProtocolVersion, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match Opcode::request(opcode)? {
            Opcode::Startup => Startup::decode(reader).map(Self::Startup),
            Opcode::Options => Ok(Self::Options),
            Opcode::AuthResponse => AuthResponse::decode(reader).map(Self::AuthResponse),
            Opcode::Register => Register::decode(reader, version).map(Self::Register),
            Opcode::Query => Query::decode(reader, version).map(Self::Query),
            Opcode::Prepare => Prepare::decode(reader, version).map(Self::Prepare),
            Opcode::Execute => Execute::decode(reader, version).map(Self::Execute),
            Opcode::Batch => Batch::decode(reader, version).map(Self::Batch),
            _ => Err(DecodeError::Direction(opcode)),
        }
    }

    /// The opcode of the request.
    pub fn opcode(&self) -> Opcode {
        match self {
            Self::Startup(_) => Opcode::Startup,
            Self::Options => Opcode::Options,
            Self::AuthResponse(_) => Opcode::AuthResponse,
            Self::Register(_) => Opcode::Register,
            Self::Query(_) => Opcode::Query,
            Self::Prepare(_) => Opcode::Prepare,
            Self::Execute(_) => Opcode::Execute,
            Self::Batch(_) => Opcode::Batch,
        }
    }
}

#[cfg(test)]
mod tests;
