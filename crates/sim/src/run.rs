//! One run: a subject on a seed, and what its judges found.

use crate::node;
use crate::register::{self, Defect};
pub use crate::report::{Report, Settings};

/// The subject of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Subject {
    /// One Helenus node and its clients.
    Node,
    /// A ring of three Helenus nodes and its clients.
    Ring,
    /// The example protocol.
    Register,
}

/// Runs a subject.
pub fn run(subject: Subject, settings: Settings, defect: Option<Defect>) -> Report {
    match subject {
        Subject::Node => node::run(settings, 1),
        Subject::Ring => node::run(settings, 3),
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
