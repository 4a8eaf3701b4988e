//! How the nodes of a ring come to have one schema. Agrees with `org.apache.cassandra.schema`
//! (`MigrationCoordinator`, `DefaultSchemaUpdateHandler`).
//!
//! Each node tells the version of its schema by gossip. A node that changes the schema pushes the
//! rows that it has written to all nodes that are up. A node that has missed them pulls the schema
//! from a neighbour that tells another version. Rows are merged with their timestamps, so that all
//! nodes have the same rows in the end, in whatever order they came.
//!
//! - [`exchange`]: the task that takes, asks and gives
//! - [`pulls`]: whom to ask, and when
//! - [`messages`]: rows of the schema tables as the payload of a message
//! - [`waiting`]: a change is answered once those who are up have it

pub(crate) mod exchange;
pub mod messages;
mod pulls;
#[cfg(test)]
mod tests;
pub(crate) mod waiting;

pub use waiting::AGREEMENT_WAIT;
