//! Repair without a network: the trees that replicas compare, and the exchanges that follow from
//! them.
//!
//! A replica hashes the partitions of a table into a [`MerkleTree`] for each range ([`Validator`]).
//! The node that coordinates the repair compares the trees of each two replicas
//! ([`MerkleTree::difference`]) and plans which of them stream which ranges ([`plan`]).
//!
//! Knows no socket, clock, thread or file. Trees come from peers and are never trusted. Agrees with
//! `org.apache.cassandra.utils.MerkleTree` and `org.apache.cassandra.repair`.

pub mod plan;
pub mod repaired_state;
pub mod size;
pub mod tree;
pub mod trees;
pub mod validator;

pub use tree::MerkleTree;
pub use trees::MerkleTrees;
pub use validator::Validator;
