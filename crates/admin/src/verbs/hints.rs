//! Hinted handoff: its settings and the hints that wait.

use serde::{Deserialize, Serialize};

/// Asks for the settings of hinted handoff.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetHandoff {}

/// The settings of hinted handoff.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct HandoffInfo {
    /// Hints are kept.
    pub is_enabled: bool,
    /// Hints are kept and not sent.
    pub is_paused: bool,
    /// Data centers whose nodes get no hints.
    pub disabled_data_centers: Vec<String>,
    /// A node that has been down for longer gets no more hints, milliseconds.
    pub window_millis: u64,
    /// Bytes a second that hints are sent with; 0: without a limit.
    pub throttle: u64,
}

/// Changes hinted handoff until the next start.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandoffChange {
    /// Hints are kept, or not.
    Enable(bool),
    /// Hints are kept for the nodes of a data center, or not.
    EnableFor(String, bool),
    /// Hints are sent, or wait.
    Send(bool),
    /// The window, milliseconds.
    Window(u64),
    /// The throttle, KiB a second; 0: without a limit.
    ThrottleKib(u64),
    /// Removes the hints that wait: those of a node by its address, or all.
    Truncate(Option<String>),
}

/// Asks for the hints that wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetPendingHints {}

/// The hints that wait for a node.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PendingHintsInfo {
    /// The node.
    pub host_id: String,
    /// Its address with its port; None: nobody in the ring has the id.
    pub address: Option<String>,
    /// Its rack; `Unknown` without an address.
    pub rack: String,
    /// Its data center; `Unknown` without an address.
    pub data_center: String,
    /// `UP`, `DOWN`, or `Unknown` without an address.
    pub status: String,
    /// Files.
    pub files: usize,
    /// When the newest file was begun.
    pub newest_millis: i64,
    /// When the oldest file was begun.
    pub oldest_millis: i64,
}
