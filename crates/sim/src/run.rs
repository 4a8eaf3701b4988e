//! One run: a subject on a seed, and what its judges found.

use crate::judges::Finding;
use crate::node;
use crate::register::{self, Defect};

/// The options of a run.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Decides everything.
    pub seed: u64,
    /// How long clients work and troubles happen, in seconds of the simulation.
    pub seconds: u64,
}

/// The subject of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Subject {
    /// One Helenus node and its clients.
    Node,
    /// The example protocol.
    Register,
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

/// Runs a subject.
pub fn run(subject: Subject, settings: Settings, defect: Option<Defect>) -> Report {
    match subject {
        Subject::Node => node::run(settings),
        Subject::Register => register::run(settings, defect),
    }
}

/// The command that runs a seed again.
pub fn replay(subject: Subject, settings: Settings, defect: Option<Defect>) -> String {
    let name = |value: &dyn Fn() -> Option<clap::builder::PossibleValue>| {
        value().map_or(String::new(), |value| value.get_name().to_owned())
    };
    let subject = name(&|| clap::ValueEnum::to_possible_value(&subject));
    let defect = defect
        .map_or(String::new(), |defect| format!(" --defect {}", name(&|| clap::ValueEnum::to_possible_value(&defect))));
    format!("cargo run -p sim -- --subject {subject} --seed {} --seconds {}{defect}", settings.seed, settings.seconds)
}
