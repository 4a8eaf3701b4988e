//! How this node speaks to others, who they are, and who takes what they send.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::BytesMut;
use env::{Env, Stream};
use internode::version::VersionRange;
use internode::{Envelope, InternodeError, LinkType, MessagingVersion, Verb};
use tls::{Connector, Tls, TlsOptions};

use crate::settings::LinkSettings;

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
    /// The links that this node compresses when it opens them (`internode_compression`).
    pub compression: Scope,
    /// How links are encrypted (`server_encryption_options`); None: they are not.
    pub encryption: Option<Encryption>,
    /// How much links may hold and how long they wait.
    pub settings: LinkSettings,
}

impl LinkOptions {
    pub(crate) fn versions(&self) -> VersionRange {
        VersionRange::of_messages(self.version)
    }

    /// The versions of a link of this type.
    pub(crate) fn versions_of(&self, link: LinkType) -> VersionRange {
        match link {
            LinkType::Streaming => VersionRange::of_streams(self.version),
            LinkType::Urgent | LinkType::Small | LinkType::Large => self.versions(),
        }
    }

    /// How an attempt to open a link to a peer is encrypted. Where encryption is optional every
    /// second attempt goes without it: the peer may not encrypt yet. `failures` attempts have
    /// failed since there was a link.
    pub(crate) fn encryption_to(&self, distance: Distance, failures: u32) -> Option<&Encryption> {
        let encryption = self.encryption.as_ref().filter(|encryption| encryption.scope.has(distance))?;
        (!encryption.optional || failures.is_multiple_of(2)).then_some(encryption)
    }
}

/// The links that something is done with, by where the peer stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// None.
    None,
    /// Links to nodes of other racks and data centers.
    BetweenRacks,
    /// Links to nodes of other data centers.
    BetweenDataCenters,
    /// All links.
    All,
}

impl Scope {
    /// Whether links to a peer at this distance are meant.
    pub fn has(self, distance: Distance) -> bool {
        match self {
            Self::None => false,
            Self::BetweenRacks => distance != Distance::SameRack,
            Self::BetweenDataCenters => distance == Distance::OtherDataCenter,
            Self::All => true,
        }
    }
}

/// Where a peer stands, seen from this node.
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
/// all that follows are inside of it.
#[derive(Clone, Debug)]
pub struct Encryption {
    /// The links that this node encrypts when it opens them, and that must be encrypted when a peer
    /// opens them.
    pub scope: Scope,
    /// Links may be without encryption whatever the scope says: for the time in which a ring is
    /// being changed over. A link that cannot be opened with encryption is tried without it.
    pub optional: bool,
    /// For links that peers open. Takes connections without TLS too, unless the scope has all links
    /// and they are not optional.
    pub accept: Arc<Tls>,
    /// For links that this node opens.
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

    /// Where a peer stands, for compression and encryption by data center and rack.
    fn distance(&self, _peer: SocketAddr) -> Distance {
        Distance::OtherDataCenter
    }

    /// The address to which a link to a peer is opened; asked at each attempt.
    fn route(&self, peer: SocketAddr) -> SocketAddr {
        peer
    }

    /// A peer has opened a link for a stream. The stream is read and written by the receiver from
    /// now on; `input` holds what has come behind the handshake. Dropping the stream closes it.
    fn stream(&self, _from: &Peer, _stream: Box<dyn Stream>, _input: BytesMut) {}

    /// A message of this verb has come and is expired. It is not given to the receiver.
    fn expired(&self, _verb: Verb) {}

    /// A message has come that is not expired. An error says that its payload cannot be read: that
    /// costs the message, and the link goes on.
    fn received(&self, from: &Peer, link: LinkType, message: Envelope) -> Result<(), InternodeError>;
}
