//! Streams of SSTables between nodes, as values and bytes: bootstrap, decommission, rebuild, move
//! and repair use them.
//!
//! A streaming link begins with the handshake of `internode` and then carries [`message`]s back to
//! back, without frames and without checksums of its own. A *control* link carries the messages of
//! a session both ways; a *file* link carries STREAM messages one way, each a [`FileHeader`] and
//! the [`data`] of a file. [`LinkReader`] takes the bytes of either link apart; a [`Session`]
//! decides what is sent and when the exchange is complete.
//!
//! Knows no socket, clock, thread or file: bytes come in from a caller, and the parts of an
//! SSTable that a caller has to read are given as places in its files. Bytes come from a peer and
//! are never trusted. Agrees with packages `org.apache.cassandra.streaming`, `…streaming.messages`
//! and `org.apache.cassandra.db.streaming`.

pub mod data;
pub mod error;
pub mod link;
pub mod message;
pub mod session;

pub use data::{DataReader, Part};
pub use error::StreamingError;
pub use link::{Incoming, LinkReader};
pub use message::content::{Chunk, Compression, Content, Manifest, Section};
pub use message::header::FileHeader;
pub use message::init::{Operation, Preview, StreamInit};
pub use message::prepare::{PrepareSyn, StreamRequest, Summary, TokenRange};
pub use message::{Message, PlanId, Received};
pub use session::{Effect, Event, OfferedFiles, ReceivedFile, Session};
