//! The options of links, the peers at their other ends, and the receiver of their messages.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::BytesMut;
use env::{Env, Stream};
use internode::version::VersionRange;
use internode::{Envelope, InternodeError, LinkType, MessagingVersion, Verb};
use tls::{Connector, Tls, TlsOptions};

use crate::settings::LinkSettings;

/// The options of links.
#[derive(Clone, Debug)]
pub struct LinkOptions {
    /// The address at which peers connect (`listen_address`, `storage_port`); port 0 takes a free
    /// one.
    pub listen: SocketAddr,
    /// The address by which peers know this node (`broadcast_address`, `storage_port`).
    pub local: SocketAddr,
    /// The messaging version of the ring (`storage_compatibility_mode`).
    pub version: MessagingVersion,
    /// The links that this node compresses when it opens them (`internode_compression`).
    pub compression: Scope,
    /// How links are encrypted (`server_encryption_options`); None: they are not.
    pub encryption: Option<Encryption>,
    /// Bounds and times of links.
    pub settings: LinkSettings,
}

impl LinkOptions {
    pub(crate) fn versions(&self) -> VersionRange {
        VersionRange::of_messages(self.version)
    }

    /// The range of versions that this node speaks on a link of this type.
    pub(crate) fn versions_of(&self, link: LinkType) -> VersionRange {
        match link {
            LinkType::Streaming => VersionRange::of_streams(self.version),
            LinkType::Urgent | LinkType::Small | LinkType::Large => self.versions(),
        }
    }

    /// How an attempt to open a link to a peer is encrypted; None: it is not. If encryption is
    /// optional every second attempt goes without it: the peer may not encrypt yet. `failures`:
    /// attempts that have failed since there was a link.
    pub(crate) fn encryption_to(&self, distance: Distance, failures: u32) -> Option<&Encryption> {
        let encryption = self.encryption.as_ref().filter(|encryption| encryption.scope.has(distance))?;
        (!encryption.optional || failures.is_multiple_of(2)).then_some(encryption)
    }
}

/// The links that an option is for, by the place of the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// No links.
    None,
    /// Links to nodes of other racks and data centers.
    BetweenRacks,
    /// Links to nodes of other data centers.
    BetweenDataCenters,
    /// All links.
    All,
}

impl Scope {
    /// Whether links to a peer at this distance are in the scope.
    pub fn has(self, distance: Distance) -> bool {
        match self {
            Self::None => false,
            Self::BetweenRacks => distance != Distance::SameRack,
            Self::BetweenDataCenters => distance == Distance::OtherDataCenter,
            Self::All => true,
        }
    }
}

/// The place of a peer, seen from this node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Distance {
    /// In this node's rack.
    SameRack,
    /// In another rack of this node's data center.
    OtherRack,
    /// In another data center, or unknown.
    OtherDataCenter,
}

/// How links are encrypted. A link that is encrypted begins with TLS; the handshake of links and
/// everything behind it are inside of TLS.
#[derive(Clone, Debug)]
pub struct Encryption {
    /// The links that this node encrypts when it opens them, and that must be encrypted when a peer
    /// opens them.
    pub scope: Scope,
    /// True: links may be without encryption whatever the scope says, for the time in which a ring
    /// is being changed over. A link that cannot be opened with encryption is tried without it.
    pub optional: bool,
    /// The TLS for links that peers open. It takes connections without TLS too, unless the scope
    /// has all links and they are not optional.
    pub accept: Arc<Tls>,
    /// The TLS for links that this node opens.
    pub connect: Connector,
}

impl Encryption {
    /// Reads keys and certificates. `inbound` are the options of links that peers open, `outbound`
    /// those of links that this node opens. Err: what is wrong with them.
    pub fn open(env: &Env, scope: Scope, inbound: &TlsOptions, outbound: &TlsOptions) -> Result<Self, String> {
        let optional = inbound.optional;
        let accept = TlsOptions { optional: optional || scope != Scope::All, ..inbound.clone() };
        Ok(Self { scope, optional, accept: Arc::new(Tls::open(env, &accept)?), connect: Connector::open(outbound)? })
    }

    /// Uses the keys and certificates of `other` for links that begin from now on. Scope and
    /// `optional` stay as they are.
    pub fn take_over(&self, other: &Self) {
        self.accept.take_over(&other.accept);
        self.connect.take_over(&other.connect);
    }

    /// Whether a link that a peer at this distance opens must be encrypted.
    pub(crate) fn is_required(&self, distance: Distance) -> bool {
        !self.optional && self.scope.has(distance)
    }
}

/// The other end of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    /// The peer's broadcast address, from the handshake.
    pub address: SocketAddr,
    /// The messaging version of this link.
    pub version: MessagingVersion,
    /// The highest version that the peer speaks.
    pub max: i32,
}

/// Takes received messages. Called on the thread of links, so it must not wait.
pub trait Receiver: Send + Sync {
    /// Called when a link to or from a peer is open.
    fn connected(&self, _peer: &Peer) {}

    /// The place of a peer, for compression and encryption by data center and rack.
    fn distance(&self, _peer: SocketAddr) -> Distance {
        Distance::OtherDataCenter
    }

    /// The address to which a link to a peer is opened. Called at each attempt.
    fn route(&self, peer: SocketAddr) -> SocketAddr {
        peer
    }

    /// Called when a peer has opened a link for a stream. The stream is read and written by the
    /// receiver from now on; `input` holds the bytes that have come behind the handshake. Dropping
    /// the stream closes it.
    fn stream(&self, _from: &Peer, _stream: Box<dyn Stream>, _input: BytesMut) {}

    /// Called when a message of this verb has come too late. The message is not given to the
    /// receiver.
    fn expired(&self, _verb: Verb) {}

    /// Called when a message has come in time. Err: its payload cannot be read; the message is
    /// lost, and the link goes on.
    fn received(&self, from: &Peer, link: LinkType, message: Envelope) -> Result<(), InternodeError>;
}
