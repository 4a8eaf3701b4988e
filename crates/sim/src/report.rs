//! The options of a run and its outcome.

use crate::judges::Finding;

/// The options of a run.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Decides everything.
    pub seed: u64,
    /// How long clients work and troubles happen, in seconds of the simulation.
    pub seconds: u64,
}

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// Operations that clients began.
    pub operations: usize,
    /// Digest and count of all that happened: two runs of a seed agree.
    pub trace: (u64, u64),
    /// The findings of the judges; empty: all is well.
    pub findings: Vec<Finding>,
}
