//! The native protocol v3, v4, v5: frames, segments, requests, responses.
//!
//! Bytes become values and values become bytes. This crate has no socket, clock or task. Every
//! decoder is a function over bytes that never panics and never allocates by a length that it has
//! not checked.
//!
//! - [`frame`]: the nine-byte header, and the answer to unknown versions
//! - [`segment`]: version 5's checksummed outer layer
//! - [`compression`]: compressed bodies of versions 3 and 4
//! - [`request`], [`response`], [`error`]: the messages
//!
//! The crate knows the types of CQL, to describe columns, but no statement, table or connection.

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
pub use error::{ErrorKind, ErrorMessage};
pub use opcode::Opcode;
pub use request::{Request, RequestEnvelope};
pub use response::{Response, ResponseEnvelope, ResponseExtras};
pub use version::ProtocolVersion;
