//! The built-in schedule of repairs.

use serde::{Deserialize, Serialize};

/// Asks how the schedule stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetRepairSchedule {}

/// Asks for the settings of the schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetRepairSettings {}

/// Changes a setting of the schedule until the node is started again.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SetRepairSetting {
    /// The name, as `auto_repair` of cassandra.yaml has it.
    pub name: String,
    /// The value.
    pub value: String,
}

/// The settings of the schedule.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RepairSettingsInfo {
    /// Whether the node takes part in a schedule.
    pub is_on: bool,
    /// `repair_check_interval`, seconds.
    pub check_seconds: u64,
    /// Names and values of full repairs.
    pub full: Vec<(String, String)>,
}

/// The schedule as it was at the node's last look.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RepairScheduleInfo {
    /// Why there is none; None: there is one.
    pub off: Option<String>,
    /// How this node stands: run, claim, due, rest or off.
    pub phase: String,
    /// Host ids of the nodes that have a turn now.
    pub active: Vec<String>,
    /// The tables, by name.
    pub tables: Vec<ScheduledTable>,
    /// The 99th percentile of clients' latencies without repairs; 0: not known.
    pub usual_latency: u64,
    /// The 99th percentile of clients' latencies in the last ten seconds.
    pub latency: u64,
}

/// A table in the schedule: of the ranges for which the node stands first.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ScheduledTable {
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// Seconds since the repair of the range that has waited longest; None: some range was never
    /// repaired.
    pub age_seconds: Option<u64>,
    /// gc_grace_seconds.
    pub grace_seconds: u64,
    /// Repairs that are due.
    pub due: u64,
    /// Repairs that are due and cannot begin: a replica is down, or they have failed just now.
    pub blocked: u64,
}
