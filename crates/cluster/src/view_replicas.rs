//! Materialized views among several nodes: which replica of a view has which rows ([`pairing`]),
//! and how the changes that belong to others get there ([`remote`]).
//!
//! A replica asks these modules through the trait [`ViewRouter`], because it knows no ring.

mod pairing;
mod remote;

use std::sync::{Arc, Weak};

use storage::materialized::ViewChange;

use crate::node::Node;
use crate::replica::views::{DividedViewChanges, ViewRouter};

/// This node among the others.
pub(crate) struct ReplicaViewRouter(pub Weak<Node>);

impl ViewRouter for ReplicaViewRouter {
    fn divide(&self, changes: Vec<ViewChange>) -> DividedViewChanges {
        match self.0.upgrade().filter(|node| node.ring_peers().is_some()) {
            Some(node) if !changes.is_empty() => pairing::pair(&node, changes),
            _ => DividedViewChanges { here: changes, remote: None },
        }
    }
}

/// Has the changes of views divided among the replicas from now on.
pub(crate) fn begin(node: &Arc<Node>) {
    node.replica.views.route(Arc::new(ReplicaViewRouter(Arc::downgrade(node))));
}

#[cfg(test)]
mod tests;
