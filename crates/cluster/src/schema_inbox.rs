//! The queue of the task that exchanges schemas ([`crate::schema_agreement`]), as state.

use std::net::SocketAddr;

use bytes::Bytes;
use internode::{Envelope, Header};
use links::Peer;
use membership::{Messenger, RequestFailure};
use tokio::sync::mpsc;

/// Most messages that may wait for the task. A further push is dropped: its sender tells another
/// version than this node has, so its schema is asked for later.
pub(crate) const WAITING_MAX: usize = 64;

/// The sender's end of the queue.
pub(crate) struct SchemaInbox {
    pub(crate) waiting: mpsc::Sender<SchemaMessage>,
}

/// A message about schemas.
pub(crate) enum SchemaMessage {
    /// SCHEMA_PUSH_REQ.
    Take(Peer, Bytes),
    /// SCHEMA_PULL_REQ.
    Give(Messenger, Peer, Header),
    /// The end of a pull of this node: the node that was asked, the version, and the answer.
    Pulled(SocketAddr, [u8; 16], Result<Envelope, RequestFailure>),
}
