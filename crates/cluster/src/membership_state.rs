//! The place of a node among the others, as state. The verbs are in [`crate::membership`].

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, OnceLock};

use arc_swap::ArcSwap;
use env::Wake;
use membership::{LocalApplicationStates, Membership, Messenger};
use stdx::ByteBudget;

use crate::batch_hosts::BatchHosts;
use crate::dynamic_snitch::{DynamicSnitch, Severities};
use crate::former_owners::FormerOwners;
use crate::range_movement_state::Movements;
use crate::replacements::Replacements;
use crate::schema_inbox::SchemaInbox;

/// Bytes that writes may keep until all of their replicas have answered, where nobody has said how
/// many.
pub(crate) const UNANSWERED_MAX: usize = 256 << 20;

/// Looks up the addresses of the seeds. Blocks while name servers are asked.
#[derive(Clone)]
pub struct SeedNames(pub Arc<dyn Fn() -> Vec<SocketAddr> + Send + Sync>);

impl fmt::Debug for SeedNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SeedNames")
    }
}

/// The place of a node among the others; empty while it is alone.
#[derive(Default)]
pub(crate) struct MembershipState {
    /// Set when the node has joined, and kept when it has left.
    pub(crate) messenger: OnceLock<Messenger>,
    /// The membership of this node; None: the node is no member, or not any more.
    pub(crate) membership: Mutex<Option<Arc<Membership>>>,
    /// Wakes the task of [`crate::peers`].
    pub(crate) peers: OnceLock<Wake>,
    /// Takes the events of the ring that drivers are told.
    pub(crate) listener: OnceLock<Box<Listener>>,
    /// The values that this node tells of itself when gossip is begun again.
    pub(crate) local_states: OnceLock<LocalApplicationStates>,
    /// Places of nodes that the snitch's file names; replaced when the file changes.
    pub(crate) places: ArcSwap<NodeLocations>,
    /// The way to the task that exchanges schemas. Set before the node joins.
    pub(crate) exchange: OnceLock<SchemaInbox>,
    /// Looks up the addresses of the seeds; not set: the seeds are given as addresses.
    pub(crate) seed_names: OnceLock<SeedNames>,
    /// Members to which drivers may not connect (RPC_READY): they lead no counters.
    pub(crate) unready: ArcSwap<HashSet<SocketAddr>>,
    /// The severities that members tell of themselves (SEVERITY), without those of 0.
    pub(crate) severities: ArcSwap<Severities>,
    /// Orders replicas by their latencies; not set: `dynamic_snitch: false`, or the node is alone.
    pub(crate) dynamic_snitch: OnceLock<DynamicSnitch>,
    /// Which nodes keep the records of logged batches.
    pub(crate) batch_hosts: OnceLock<BatchHosts>,
    /// The bytes that writes keep until all of their replicas have answered. Each write counts
    /// once, however many replicas it waits for. Set before the first write that goes to others;
    /// not set: [`UNANSWERED_MAX`].
    pub(crate) unanswered: OnceLock<Arc<ByteBudget>>,
    /// Changes of the ring that this node takes part in.
    pub(crate) movements: Movements,
    /// Endpoints that have come to tokens lately.
    pub(crate) former_owners: Mutex<FormerOwners>,
    /// Nodes that have been replaced, and those that are about to be.
    pub(crate) replacements: Mutex<Replacements>,
    /// The removals of other nodes that this node follows, or has followed without having heard of
    /// their end: the address of the node and the generation in which the removal was told.
    pub(crate) followed_removals: Mutex<BTreeSet<(SocketAddr, i32)>>,
    /// Versions of schemas that members tell and that are here: this node has had each of them, or
    /// has taken it over from a neighbour.
    pub(crate) received_schemas: ArcSwap<BTreeSet<[u8; 16]>>,
}

/// The news of another node that drivers are told, by the address at which they reach it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RingEvent {
    /// The node owns tokens now, and drivers may connect.
    Joined(SocketAddr),
    /// The node owns no tokens any more.
    Left(SocketAddr),
    /// The node owns other tokens than before.
    Moved(SocketAddr),
    /// The node can be reached, and drivers may connect.
    Up(SocketAddr),
    /// The node cannot be reached, or drivers may not connect.
    Down(SocketAddr),
}

impl RingEvent {
    /// The address at which drivers reach the node.
    pub(crate) fn at(self) -> SocketAddr {
        match self {
            Self::Joined(at) | Self::Left(at) | Self::Moved(at) | Self::Up(at) | Self::Down(at) => at,
        }
    }
}

/// Hears what drivers are to be told. Called on a background thread, one event after the other.
pub type Listener = dyn Fn(RingEvent) + Send + Sync;

/// Data centers and racks of nodes that a file names. They take precedence over the places that
/// nodes tell of themselves.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeLocations {
    /// Data center and rack by the address of a node.
    pub by_address: BTreeMap<IpAddr, (String, String)>,
    /// The place of nodes that are not listed; None: the place that they tell of themselves.
    pub default: Option<(String, String)>,
}

impl NodeLocations {
    pub(crate) fn of(&self, address: IpAddr) -> Option<&(String, String)> {
        self.by_address.get(&address).or(self.default.as_ref())
    }
}
