//! Repair: replicas compare what they have and stream to each other what differs.
//!
//! A repair is a *command* that an operator gives to one node, its *coordinator* ([`command`]). Its
//! id is that of the *parent session*. The ranges are grouped by the nodes that hold them; each
//! group is a *session*, and each table of it a *job* ([`job`]):
//!
//! 1. PREPARE: every replica learns of the parent session ([`participant`]).
//! 2. Snapshots, if replicas are validated one after the other (`--sequential`).
//! 3. Validation: each replica hashes its partitions into trees ([`validation`]).
//! 4. The trees of each two replicas are compared (crate `repair`), and what differs is streamed,
//!    by the coordinator itself or by one of the two replicas ([`streams`]).
//! 5. CLEANUP: replicas forget the parent session.
//!
//! TRUNCATE of one of its tables ends a repair ([`truncation`]).
//!
//! In an incremental repair only data that was not repaired yet takes part: it is put apart before
//! step 2 and counts as repaired after step 4 ([`consistent`]).
//!
//! [`schedule_task`] repairs without being asked.
//!
//! All of this runs on one thread of its own ([`worker`]), which waits and never computes for long:
//! hashing and comparing go to the threads for long jobs. `crate::repair_state` has the state
//! that the parts share. Agrees with `org.apache.cassandra.repair`.

pub mod command;
mod complete;
pub(crate) mod consistent;
mod history;
mod job;
mod messages;
pub(crate) mod participant;
pub(crate) mod paxos;
mod paxos_before_movement;
mod preview_report;
mod ranges;
mod schedule_task;
pub mod sessions_admin;
mod streams;
mod trace;
mod truncation;
mod validation;
mod worker;

pub use crate::repair_state::options;
pub use crate::repair_state::records;
pub use crate::repair_state::schedule::turns::Phase;
pub use crate::repair_state::schedule::{ScheduleCounts, ScheduleSettings, ScheduleSnapshot, TableProgress};
pub use crate::repair_state::sessions::LocalSession;
pub use crate::repair_state::settings::RepairSettings;
pub use internode::payload::repair::Preview;
pub use internode::payload::token_ranges::Tokens;
pub use types::Token;

#[cfg(test)]
mod tests;
