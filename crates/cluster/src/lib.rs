//! The ring as this node sees it: its identity, its tokens, replicas and levels, the coordinator
//! of reads and writes.
//!
//! [`Node`] is the state that requests share: identity, clocks, ids, timeouts, locks, the ring.
//! What is done with a request stands in [`coordinator`], one verb a file; what this node does as
//! one of the replicas, in [`replica`], behind which the engine is. A ring may have this node alone
//! or many. Knows nothing of CQL or of clients' connections: `server::coordinator` puts these verbs
//! behind the trait that statements use.

pub mod allocation;
mod answer_times;
mod batch_hosts;
mod batch_replay;
pub mod batchlog;
pub mod cas_metrics;
pub mod clock;
mod clock_mark;
pub mod compaction_history;
pub mod coordinator;
mod dynamic_snitch;
pub mod error;
mod explain;
mod former_owners;
pub mod group_functions;
pub mod handoff;
pub mod hints;
pub mod identity;
mod in_flight_requests;
mod log_limiter;
pub mod membership;
mod membership_state;
pub mod node;
pub mod operations;
mod out_of_range;
mod out_of_range_state;
pub mod paxos;
pub mod peers;
mod promises;
mod range_movement_state;
pub mod range_movements;
pub mod read_repair_metrics;
pub mod repair;
mod repair_state;
mod replacements;
pub mod replica;
pub mod result_room;
pub mod sampling;
pub mod schema_agreement;
pub mod schema_changes;
mod schema_inbox;
mod serve;
mod shared_rows;
mod size_estimates;
pub mod spans;
mod start;
pub mod streaming;
mod streaming_state;
pub mod stripes;
pub mod system_rows;
pub mod thresholds;
mod topology;
pub mod traces;
mod view_builds;
mod view_replicas;
mod view_tasks;

#[cfg(test)]
mod testing;

pub use batch_hosts::BatchHosts;
pub use clock::{TimeUuids, WriteClock};
pub use coordinator::acknowledgement::Acknowledgement;
pub use coordinator::error::{FailedAnswers, FailedCas, FailedRead, FailedWrite, RequestError};
pub use dynamic_snitch::DynamicSnitchOptions;
pub use error::NodeError;
pub use identity::{Identity, IdentityOptions};
pub use membership::JoinSettings;
pub use membership_state::{NodeLocations, RingEvent, SeedNames};
pub use node::{Node, ProtectionLimits, Timeouts};
pub use out_of_range_state::OutOfRangeCounts;
pub use range_movement_state::MovementSettings;
pub use replica::apply::WriteError;
pub use replica::read::{ReadFigures, ReadOutcome, ReadRequest};
pub use result_room::ResultRoom;
