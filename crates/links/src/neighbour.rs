//! How this node speaks to others, who they are, and who takes what they send.

use std::net::SocketAddr;

use internode::version::VersionRange;
use internode::{Envelope, Framing, InternodeError, LinkType, MessagingVersion};

#[cfg(doc)]
use crate::limits::RESERVE_SIZE_MAX;

/// How this node speaks to others.
#[derive(Clone, Debug)]
pub struct LinkOptions {
    /// The address at which peers connect (`listen_address`, `storage_port`); port 0 takes a free
    /// one.
    pub listen: SocketAddr,
    /// The address by which peers know this node (`broadcast_address`, `storage_port`).
    pub local: SocketAddr,
    /// The version of the ring (`storage_compatibility_mode`).
    pub version: MessagingVersion,
    /// How our own links are framed (`internode_compression`).
    pub framing: Framing,
    /// Bytes that may wait on all outbound links beyond the room of each: [`RESERVE_SIZE_MAX`].
    pub reserve: usize,
}

impl LinkOptions {
    pub(crate) fn versions(&self) -> VersionRange {
        VersionRange::of_messages(self.version)
    }
}

/// The other end of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    /// Its broadcast address, from the handshake.
    pub address: SocketAddr,
    /// The version of what is sent on this link.
    pub version: MessagingVersion,
    /// The highest version that it speaks.
    pub max: i32,
}

/// Takes what comes. Called on the thread of links: it must not wait.
pub trait Receiver: Send + Sync {
    /// A link to or from a peer is open.
    fn connected(&self, _peer: &Peer) {}

    /// A message has come that is not expired. An error says that its payload cannot be read: that
    /// costs the message, and the link goes on.
    fn received(&self, from: &Peer, link: LinkType, message: Envelope) -> Result<(), InternodeError>;
}
