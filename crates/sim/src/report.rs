//! The options of a run and its outcome.

use env::rare::{EventChoice, Figures};

use crate::faults::Kinds;
use crate::judges::Rulings;

/// The options of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The seed, from which everything in the run follows.
    pub seed: u64,
    /// How long clients work and troubles happen, in seconds of the simulation.
    pub seconds: u64,
    /// Most troubles; clients go on without any for the rest of their time.
    pub steps: u64,
    /// The kinds of trouble.
    pub kinds: Kinds,
    /// The rare events that may be switched on.
    pub rare: EventChoice,
}

impl Settings {
    /// Settings for so many seconds of the simulation, with troubles of every kind and the rare
    /// events that the seed draws.
    pub fn of(seed: u64, seconds: u64) -> Self {
        Settings { seed, seconds, steps: u64::MAX, kinds: Kinds::ALL, rare: EventChoice::Drawn }
    }
}

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// Operations that clients began.
    pub operations: usize,
    /// Digest and count of all events of the run: two runs of a seed agree.
    pub trace: (u64, u64),
    /// The troubles, a line each, with the time on the timeline.
    pub happened: Vec<String>,
    /// The rare events that were switched on, and how often each happened.
    pub rare: Vec<Figures>,
    /// The judges and their findings.
    pub rulings: Rulings,
}
