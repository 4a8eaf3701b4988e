//! Repairs: begin one, and follow what happens to it.

use serde::{Deserialize, Serialize};

/// Which replicas of a range are validated at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum RepairParallelism {
    /// All.
    #[default]
    Parallel,
    /// One after the other.
    Sequential,
    /// One of each data center.
    DataCenterAware,
}

/// The data that a preview looks at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum RepairPreview {
    /// No preview: what differs is streamed.
    #[default]
    None,
    /// All data.
    All,
    /// Data that was not repaired.
    Unrepaired,
    /// Repaired data.
    Repaired,
}

/// Begins a repair, which goes on after the answer. The answer is its number.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RepairRequest {
    /// Keyspace.
    pub keyspace: String,
    /// Tables; empty: all of the keyspace.
    pub tables: Vec<String>,
    /// Which replicas are validated at a time.
    pub parallelism: RepairParallelism,
    /// Only the ranges for which the node stands first.
    pub primary_range: bool,
    /// Only data that was not repaired yet, which counts as repaired afterwards.
    pub incremental: bool,
    /// Tables at a time.
    pub job_threads: u32,
    /// Only replicas in these data centers; empty: in all.
    pub data_centers: Vec<String>,
    /// Only replicas in the node's data center.
    pub local_data_center: bool,
    /// Only these replicas; empty: all.
    pub hosts: Vec<String>,
    /// Ranges as tokens, (start, end]; empty: those of the node.
    pub ranges: Vec<(i64, i64)>,
    /// Whether nothing is streamed.
    pub preview: RepairPreview,
    /// The node only receives.
    pub pull: bool,
    /// Replicas that are down are left out.
    pub force: bool,
    /// Data that several replicas have alike is fetched from one of them.
    pub optimise_streams: bool,
    /// A keyspace without other replicas is no error.
    pub ignore_unreplicated: bool,
    /// Statements of Paxos under way are completed first.
    pub repair_paxos: bool,
    /// Nothing else is done.
    pub paxos_only: bool,
    /// The repair is a tracing session, whose events are told.
    pub trace: bool,
}

/// Ends the repairs that this node coordinates: their sessions are over, and nothing new begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StopRepairs {}

/// Asks what happened to a repair. The answer comes when something has, or after some seconds
/// without events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetRepair {
    /// The number of the repair.
    pub number: i32,
    /// The number of events that are known already.
    pub from: u64,
}

/// The kind of an event of a repair.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum RepairEventKind {
    /// The repair has begun.
    Start,
    /// A part is done; so much of all, in hundredths.
    Progress(u32),
    /// Something is to be known.
    Notification,
    /// Something has failed.
    Error,
    /// All is done.
    Success,
    /// The repair has ended, well or not.
    Complete,
}

/// Something that happened to a repair.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RepairEvent {
    /// Milliseconds since 1970.
    pub at: i64,
    /// The kind.
    pub kind: RepairEventKind,
    /// The text.
    pub text: String,
}

/// The events of a repair since somebody asked.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RepairEvents {
    /// The events, oldest first.
    pub events: Vec<RepairEvent>,
    /// Nothing more happens.
    pub has_ended: bool,
}
