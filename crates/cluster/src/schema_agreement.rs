//! How the nodes of a ring come to have one schema. Agrees with `org.apache.cassandra.schema`
//! (`MigrationCoordinator`, `DefaultSchemaUpdateHandler`).
//!
//! Each node tells the version of its schema by gossip. Whoever changes the schema pushes the rows
//! that it has written to all who are up; what is missed so is pulled from a neighbour whose
//! version is another. Rows are merged as they are, timestamps included, so that in the end
//! everybody has the same, whatever came first.
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
