//! The place of a node among the others, as state. The verbs are in [`crate::membership`].

use std::sync::{Arc, Mutex, OnceLock, Weak};

use membership::{Membership, Messenger};

use crate::node::Node;

/// The place of a node among the others; empty while it is alone.
#[derive(Default)]
pub(crate) struct Joined {
    /// Set when the node has joined, and kept when it has left.
    pub(crate) messenger: OnceLock<Messenger>,
    /// This node, for what outlives a request. Set before the messenger.
    pub(crate) this: OnceLock<Weak<Node>>,
    /// The node is a member as long as this is here.
    pub(crate) membership: Mutex<Option<Arc<Membership>>>,
}
