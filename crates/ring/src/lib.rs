//! The ring: the nodes and their tokens, which nodes hold a partition, and which of these a
//! request needs.
//!
//! Pure: everything here is computed from values that the caller gives. Knows no socket, no clock,
//! no thread, no schema and no storage. [`Ring`] is an immutable snapshot; a change of the ring (a
//! node that joins, a keyspace with another replication, a neighbour that is down) makes a new
//! one, which is published as an `Arc`. A request takes one snapshot and keeps to it; a read of a
//! range takes the newest one for each round of questions.
//!
//! - [`Endpoint`]: a node as the others know it
//! - [`Replication`]: how a keyspace is replicated, parsed once from its options
//! - [`Placement`]: which endpoints hold which range, for one replication
//! - [`ReplicaPlan`]: live, pending and down replicas of a request, and how many of them it waits
//!   for
//! - [`CasPlan`]: the replicas that decide a conditional statement, and how many are a majority
//! - [`primary`]: the ranges of which an endpoint is the first replica
//! - [`relocation`]: which ranges flow between which endpoints when one comes, goes or moves
//! - [`allocation`]: good tokens for a new node
//! - [`ownership`]: which part of the data an endpoint has
//!
//! Must agree with `org.apache.cassandra.locator` (`TokenMetadata`, the strategies, `ReplicaPlans`)
//! and `db.ConsistencyLevel` of Cassandra 5.0.8: a ring of both kinds of nodes places data alike.
//! `testdata/placement.txt` has the answers of its strategies for drawn rings,
//! `testdata/pending.txt` those of its `TokenMetadata` for rings with changes under way.

pub mod allocation;
pub mod cas;
pub mod endpoint;
pub mod level;
pub mod ownership;
pub mod placement;
pub mod plan;
pub mod primary;
pub mod relocation;
pub mod replication;
pub mod snapshot;

pub use cas::{CasPlan, PromisePlan};
pub use endpoint::{Endpoint, EndpointId, FormerTokens, State};
pub use level::{InsufficientReplicas, quorum};
pub use placement::Placement;
pub use plan::{ReplicaPlan, Replicas};
pub use replication::{Replication, ReplicationError};
pub use snapshot::Ring;

#[cfg(test)]
mod tests;
