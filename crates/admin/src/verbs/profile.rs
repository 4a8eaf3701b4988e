//! Profile of a node: which threads use the CPU, what holds memory, what is waited for.

use serde::{Deserialize, Serialize};

use crate::histogram::HistogramData;

/// Watches the node for a while; the answer comes when the while is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetProfile {
    /// How long, milliseconds.
    pub duration_millis: u64,
}

/// The use of the machine over a while.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Profile {
    /// How long the node was watched, microseconds.
    pub micros: u64,
    /// Threads that were there at the beginning and at the end, the busiest first. Empty where the
    /// kernel does not tell.
    pub threads: Vec<ThreadUse>,
    /// Bytes by what holds them, at the end: as the kernel counts, then as the node counts.
    pub memory: Vec<(String, u64)>,
    /// Bytes that the process read from disks.
    pub disk_read: u64,
    /// Bytes that the process wrote to disks.
    pub disk_written: u64,
    /// Waits of writes for a sync of the commit log.
    pub waiting_on_commit: HistogramData,
}

/// The use of a core by a thread.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ThreadUse {
    /// The thread's name, at most 15 bytes.
    pub name: String,
    /// The kernel's id.
    pub id: u64,
    /// Microseconds on a core.
    pub cpu_micros: u64,
    /// Microseconds for which it could have run and had no core.
    pub queued_micros: u64,
    /// How often it was put on a core.
    pub turns: u64,
}
