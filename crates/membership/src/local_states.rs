//! The values that a node tells of itself when it appears.

use std::net::SocketAddr;

use gossip::Local;
use internode::MessagingVersion;
use internode::payload::gossip::ApplicationState;
use internode::payload::gossip::tokens::text_of;

/// The values of this node in the form of gossip.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LocalApplicationStates {
    /// The host id as text. Chosen at the first start and never changed.
    pub host_id: String,
    /// Its tokens.
    pub tokens: Vec<i64>,
    /// Name of its data center.
    pub data_center: String,
    /// Name of its rack.
    pub rack: String,
    /// The version of Cassandra that the node claims: a neighbour exchanges schemas with its own
    /// major version only.
    pub release_version: String,
    /// The address at which drivers connect (`broadcast_rpc_address`).
    pub native: SocketAddr,
    /// The address at which nodes of the same data center may connect, instead of the broadcast
    /// address; None: it is not told.
    pub internal: Option<SocketAddr>,
    /// The version of its schema as text.
    pub schema: String,
    /// The messaging version of the ring.
    pub version: MessagingVersion,
    /// The SSTable versions that the node has and reads: `big-nb`, `big-oa`, `bti-da`.
    pub sstable_versions: String,
}

impl LocalApplicationStates {
    /// The values before the node is a member, in the order of Cassandra
    /// (`StorageService.prepareToJoin`).
    pub fn set(&self, local: &mut Local) {
        use ApplicationState::{
            Dc, HostId, InternalAddressAndPort, InternalIp, NativeAddressAndPort, NetVersion, Rack, ReleaseVersion,
            RpcAddress, RpcReady, Schema, SstableVersions,
        };
        local.set(NetVersion, self.version.number().to_string());
        local.set(HostId, self.host_id.clone());
        local.set(NativeAddressAndPort, self.native.to_string());
        local.set(RpcAddress, self.native.ip().to_string());
        local.set(ReleaseVersion, self.release_version.clone());
        local.set(SstableVersions, self.sstable_versions.clone());
        local.set(Dc, self.data_center.clone());
        local.set(Rack, self.rack.clone());
        if let Some(internal) = self.internal {
            local.set(InternalAddressAndPort, internal.to_string());
            local.set(InternalIp, internal.ip().to_string());
        }
        local.set(Schema, self.schema.clone());
        local.set(RpcReady, "false");
    }

    /// The values that make the node a member: tokens first, since a status without them makes it
    /// none.
    pub fn set_normal(&self, local: &mut Local) {
        local.set(ApplicationState::Tokens, text_of(&self.tokens));
        self.set_status(local, &format!("NORMAL,{}", self.tokens.first().copied().unwrap_or_default()));
    }

    /// The values of a node that is on its way in: tokens, and a status as in [`Self::set_status`].
    pub fn set_joining(&self, local: &mut Local, status: &str) {
        local.set(ApplicationState::Tokens, text_of(&self.tokens));
        self.set_status(local, status);
    }

    /// Sets a status, under both of its names.
    pub fn set_status(&self, local: &mut Local, status: &str) {
        local.set(ApplicationState::StatusWithPort, status);
        local.set(ApplicationState::Status, without_port(status));
    }
}

/// A status as nodes before 4.0 read it: the address of a node that is replaced has no port there.
fn without_port(status: &str) -> String {
    let replaced = status.strip_prefix("BOOT_REPLACE,").and_then(|address| address.parse::<SocketAddr>().ok());
    replaced.map_or_else(|| status.to_owned(), |address| format!("BOOT_REPLACE,{}", address.ip()))
}
