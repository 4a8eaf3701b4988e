//! The native protocol v3, v4, v5: frames, segments, requests, responses.
//!
//! Bytes in, values out, and back: no socket, no clock, no task. Every decoder is one function over bytes that never panics
//! and allocates nothing by a length it has not checked.
//!
//! - [`frame`]: the nine-byte header, and the answer to versions we do not speak
//! - [`segment`]: version 5's checksummed outer layer
//! - [`compression`]: compressed bodies of versions 3 and 4
//! - [`request`], [`response`], [`error`]: the messages
//!
//! Knows CQL types, to describe columns, and nothing of statements, tables or connections.

pub mod compression;
pub mod decode_error;
pub mod error;
pub mod frame;
pub mod opcode;
pub mod request;
pub mod response;
pub mod segment;
pub mod version;
pub mod wire;

pub use compression::Compression;
pub use decode_error::DecodeError;
pub use error::{ErrorKind, ErrorMessage, ReplicaFailure};
pub use opcode::Opcode;
pub use request::{Request, RequestEnvelope};
pub use response::{Response, ResponseEnvelope, ResponseExtras};
pub use version::ProtocolVersion;
