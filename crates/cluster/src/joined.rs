//! The place of a node among the others, as state. The verbs are in [`crate::membership`].

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use env::Wake;
use membership::{Introduction, Membership, Messenger};

use crate::node::Node;
use crate::peers::Listener;
use crate::schema_inbox::SchemaInbox;
use crate::topology::Places;

/// The place of a node among the others; empty while it is alone.
#[derive(Default)]
pub(crate) struct Joined {
    /// Set when the node has joined, and kept when it has left.
    pub(crate) messenger: OnceLock<Messenger>,
    /// This node, for what outlives a request. Set before the messenger.
    pub(crate) this: OnceLock<Weak<Node>>,
    /// The node is a member as long as this is here.
    pub(crate) membership: Mutex<Option<Arc<Membership>>>,
    /// Wakes the task of [`crate::peers`].
    pub(crate) peers: OnceLock<Wake>,
    /// Hears what drivers are to be told of the ring.
    pub(crate) listener: OnceLock<Box<Listener>>,
    /// What this node tells of itself when gossip is begun again.
    pub(crate) introduction: OnceLock<Introduction>,
    /// Places of nodes that the snitch's file names.
    pub(crate) places: OnceLock<Places>,
    /// The way to the task that exchanges schemas. Set before the node joins.
    pub(crate) exchange: OnceLock<SchemaInbox>,
    /// Every schema that a neighbour has told of is here.
    pub(crate) is_schema_settled: AtomicBool,
}
