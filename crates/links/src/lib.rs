//! Links between nodes: connections, the messages that wait to be sent, and the messages that have
//! come.
//!
//! A link carries messages one way, from the node that opened it. For each peer there are up to
//! three links of this node (urgent, small, large messages), opened when their first message
//! comes, and up to three of the peer's. An answer goes on a link of the node that answers.
//!
//! - [`Links`]: starts everything; takes messages to send from any thread
//! - [`outbound`]: the queue of a link, and the task that empties it
//! - [`inbound`]: accepted connections; [`receive_memory`]: memory for messages that come in parts
//! - [`streams`]: links for streams, which the caller reads and writes
//! - [`counts`]: the counts of messages and connections
//! - [`limits`]: bounds and times; [`settings`]: those that operators set
//!
//! All links of a node live on one thread. Knows no verb: received messages are given to a
//! [`Receiver`]. `org.apache.cassandra.net.OutboundConnections`, `InboundMessageHandlers`,
//! `MessagingService`.

pub mod counts;
mod handshake;
mod inbound;
pub mod limits;
mod links;
mod outbound;
mod peer;
mod queue;
mod receive_memory;
mod settings;
mod streams;

pub use counts::{InboundCounts, MessageCount, OutboundCounts};
pub use links::Links;
pub use peer::{Distance, Encryption, LinkOptions, Peer, Receiver, Scope};
pub use queue::Refused;
pub use settings::LinkSettings;
pub use streams::StreamOpener;
pub use tls::TlsOptions;

#[cfg(test)]
mod tests;
