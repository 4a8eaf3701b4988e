//! Materialized views among several nodes: which replica of a view has which rows ([`pairing`]),
//! and how the changes that belong to others get there ([`remote`]).
//!
//! A replica asks these modules through the trait [`Routes`], because it knows no ring.

mod pairing;
mod remote;

use std::sync::{Arc, Weak};

use storage::materialized::ViewChange;

use crate::node::Node;
use crate::replica::views::{Divided, Routes};

/// This node among the others.
pub(crate) struct AmongOthers(pub Weak<Node>);

impl Routes for AmongOthers {
    fn divide(&self, changes: Vec<ViewChange>) -> Divided {
        match self.0.upgrade().filter(|node| node.others().is_some()) {
            Some(node) if !changes.is_empty() => pairing::pair(&node, changes),
            _ => Divided { here: changes, remote: None },
        }
    }
}

/// Has the changes of views divided among the replicas from now on.
pub(crate) fn begin(node: &Arc<Node>) {
    node.replica.views.route(Arc::new(AmongOthers(Arc::downgrade(node))));
}

#[cfg(test)]
mod tests;
