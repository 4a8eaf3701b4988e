//! The protocol between nodes of a Cassandra 5.0 ring, as values and bytes.
//!
//! A link carries messages one way, from the node that opened it; answers travel on a link of the
//! other node's own. From its first byte on a link is: [`handshake`], then [`segments`] with whole
//! messages or parts of one ([`frames`]), each message an [`envelope`] with a [`Verb`] and a
//! payload ([`payload`]).
//!
//! Knows no socket, clock or queue, and not what a verb does. Bytes come from a peer and are never
//! trusted: lengths are checked before anything is allocated. The layout is that of messaging
//! versions 12 and 13 (Cassandra 4.0 and 5.0); `org.apache.cassandra.net.HandshakeProtocol`,
//! `Message.Serializer`, `Verb`, and package `gms` for gossip.

pub mod address;
pub mod envelope;
pub mod error;
pub mod frames;
pub mod handshake;
pub mod integers;
pub mod payload;
pub mod text;
pub mod verb;
pub mod version;

pub use envelope::{Envelope, Flags, Header, Parameter};
pub use error::InternodeError;
pub use frames::{MessageReader, MessageWriter, Received};
pub use handshake::{Accept, Framing, Initiate, LinkType};
pub use verb::{Priority, Verb};
pub use version::MessagingVersion;
