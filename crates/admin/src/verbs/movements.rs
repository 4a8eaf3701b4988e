//! Ranges that move between nodes: the ways in and out of the ring.

use serde::{Deserialize, Serialize};

/// Moves ranges. Answered when the data is where it belongs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum RangeMovement {
    /// The node hands its ranges on and leaves for good.
    Decommission {
        /// Even where a keyspace has more copies than nodes then.
        force: bool,
    },
    /// A node that does not come back is taken out of the ring: its host id.
    Remove(String),
    /// The removal under way ends without waiting for who has not confirmed it.
    ForceRemoval,
    /// The node owns another token: its text.
    Move(String),
    /// The node fetches the data of its ranges anew.
    Rebuild(RebuildRequest),
    /// The node, which was started with `join_ring: false`, becomes a member.
    Join,
}

/// Has a node fetch the rest of its data after a bootstrap that has failed, and become a member.
/// Answered when it is one; with the reason where it has fetched all of its data again.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ResumeBootstrap {}

/// From whom the node fetches what.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RebuildRequest {
    /// Only nodes of this data center give; None: of any.
    pub source_data_center: Option<String>,
    /// Only this keyspace; None: all that nodes share.
    pub keyspace: Option<String>,
    /// Only these ranges: `(start,end],(start,end]`; None: all of the node.
    pub tokens: Option<String>,
    /// Only these nodes give, addresses with commas between; None: any.
    pub sources: Option<String>,
    /// Nodes of the own data center do not give.
    pub excludes_local_data_center: bool,
}

/// Asks for the removal that the node coordinates, as a sentence.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetRemovalStatus {}

/// Removes data that belongs to other nodes.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CleanupRequest {
    /// The tables.
    pub tables: super::TableSelection,
    /// SSTables of a table at a time; 0: as many as there are compaction threads.
    pub jobs: u32,
}
