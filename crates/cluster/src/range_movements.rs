//! The ways in and out of a ring that has data: a node that gains ranges by a change of the ring
//! gets their data first, and all the while receives the writes of these ranges.
//!
//! - [`bootstrap`]: a new node, or one that replaces another, fetches its ranges before it owns
//!   them
//! - [`decommission`]: a node hands its ranges on, and leaves
//! - [`removal`]: the others fetch what a node had that does not come back
//! - [`relocation`]: a node with one token moves to another
//! - [`rebuild`]: a member fetches its ranges anew
//! - [`cleanup`]: a member removes what it has of ranges of others
//! - [`changing_nodes`]: one node changes the ring at a time
//!
//! Each is the same four steps: the others are told (gossip), until they know and writes that they
//! planned before have ended ([`announce`]); data flows ([`flows`]); the outcome is written to disk
//! ([`progress`]); the others are told again. Which ranges flow is `ring::relocation`.
//! Agrees with `org.apache.cassandra.service.StorageService` and `dht.BootStrapper`.

pub(crate) mod announce;
pub(crate) mod bootstrap;
mod changing_nodes;
pub mod cleanup;
pub mod decommission;
pub(crate) mod flows;
pub(crate) mod progress;
pub mod rebuild;
pub mod relocation;
pub mod removal;

use crate::node::Node;
pub use crate::range_movement_state::{BootstrapState, Mode, MovementSettings};

impl Node {
    /// The part that this node takes in the ring.
    pub fn mode(&self) -> Mode {
        self.membership_state.movements.state().mode
    }

    /// The reason why a bootstrap that had begun has fetched all ranges again; None: it has not
    /// fetched them again.
    pub fn bootstrap_restart_reason(&self) -> Option<String> {
        self.membership_state.movements.state().restart_reason.clone()
    }
}

#[cfg(test)]
mod tests;
