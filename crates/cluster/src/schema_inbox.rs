//! The queue of the task that exchanges schemas ([`crate::schema_agreement`]), as state.

use std::net::SocketAddr;

use bytes::Bytes;
use internode::{Envelope, Header};
use links::Peer;
use membership::{Messenger, Unanswered};
use tokio::sync::mpsc;

/// Messages that may wait for the task. A push beyond them is dropped: its sender's version is
/// another than ours, and is asked for later.
pub(crate) const WAITING_MAX: usize = 64;

/// The way to the task.
pub(crate) struct SchemaInbox {
    pub(crate) waiting: mpsc::Sender<Asked>,
}

/// A message about schemas.
pub(crate) enum Asked {
    /// SCHEMA_PUSH_REQ.
    Take(Peer, Bytes),
    /// SCHEMA_PULL_REQ.
    Give(Messenger, Peer, Header),
    /// The end of a pull of our own: who was asked, for which version, and the answer.
    Pulled(SocketAddr, [u8; 16], Result<Envelope, Unanswered>),
}
