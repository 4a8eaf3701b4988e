//! Gossip: what the node knows of each endpoint, and the switches; messages between nodes.

use serde::{Deserialize, Serialize};

/// Asks what the node knows of each endpoint by gossip.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetGossip {}

/// The facts that the node knows of an endpoint.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct GossipState {
    /// The address by which other nodes know it.
    pub address: String,
    /// Its port for other nodes.
    pub storage_port: u16,
    /// Seconds since 1970 of its start.
    pub generation: i32,
    /// The version of its last heartbeat.
    pub heartbeat: i32,
    /// The values that it tells of itself: names as in Cassandra (`STATUS_WITH_PORT`), versions,
    /// values.
    pub states: Vec<(String, i32, String)>,
    /// How suspicious its silence is; None: it is the asked node.
    pub phi: Option<f64>,
}

impl GossipState {
    /// How nodetool names the endpoint: its address, with `print_port` also its storage port.
    pub fn name(&self, print_port: bool) -> String {
        if print_port { super::ring::join(&self.address, self.storage_port) } else { self.address.clone() }
    }
}

/// Changes the node's part in gossip.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum GossipChange {
    /// Begins gossip again.
    Start,
    /// Stops gossip: other nodes take this one for down.
    Stop,
    /// Removes an endpoint that does not come back, given as address or address:port.
    Assassinate(String),
}

/// Asks for the seeds, this node left out.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetSeeds {}

/// Has the node look up the names of its seeds again, and asks for them, this node left out. None:
/// none of them has an address; the node keeps those that it knew.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ReloadSeeds {}

/// Asks what has happened to messages between nodes.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetMessages {}

/// Asks how many messages of other nodes came, by their verb.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetMessageCounts {}

/// The messages of one verb since the start.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct MessageCounts {
    /// The verb as Cassandra names it: `READ_REQ`.
    pub verb: String,
    /// Messages that came in time.
    pub received: u64,
    /// Messages that were too old when they came.
    pub dropped: u64,
}

/// Messages of one size and urgency to all other nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct MessagePool {
    /// Messages that wait to be sent.
    pub pending: u64,
    /// Messages that were sent.
    pub completed: u64,
    /// Messages that were too old, found no room, or were on their way when the link ended.
    pub dropped: u64,
}

/// The fate of messages between nodes, and the read repairs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct MessagePools {
    /// Messages above 64 KiB.
    pub large: MessagePool,
    /// All others.
    pub small: MessagePool,
    /// Gossip and what is as urgent.
    pub urgent: MessagePool,
    /// Reads whose replicas differed, counted since the start.
    #[serde(default)]
    pub read_repairs: ReadRepairCounts,
}

/// Reads of partitions that the node coordinated whose replicas gave different digests, since the
/// start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ReadRepairCounts {
    /// Reads of tables with `read_repair = 'BLOCKING'`, which told replicas what they lacked.
    pub repaired_blocking: u64,
    /// Reads of tables with `read_repair = 'NONE'`, which told nobody.
    pub reconcile_read: u64,
}
