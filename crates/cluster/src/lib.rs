//! The ring as this node sees it: who it is, its tokens, replicas and levels, the coordinator of reads and writes.
//!
//! Today the ring has one node. [`Node`] is what requests use: a clock that never repeats, ids, writes that are durable when they
//! return, reads that go to the background when they would wait. Knows nothing of CQL or of connections: `server::coordinator`
//! puts these verbs behind the trait that statements use.

pub mod batchlog;
pub mod clock;
mod clock_mark;
pub mod compaction_history;
pub mod coordinator;
pub mod error;
mod explain;
pub mod identity;
pub mod node;
pub mod operations;
pub mod replica;
pub mod replication;
pub mod result_room;
pub mod sampling;
pub mod schema_changes;
mod size_estimates;
pub mod stripes;
pub mod system_rows;

#[cfg(test)]
mod testing;

pub use clock::{TimeUuids, WriteClock};
pub use error::NodeError;
pub use identity::{Identity, IdentityOptions};
pub use node::{Node, Timeouts};
pub use replica::apply::{Acknowledgement, WriteError};
pub use replica::read::{ReadFigures, ReadOutcome, ReadRequest};
pub use replication::Shortage;
pub use result_room::ResultRoom;
