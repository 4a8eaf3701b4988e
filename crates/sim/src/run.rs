//! One run: a subject on a seed, and the findings of its judges.

use clap::ValueEnum;
use env::rare::{self, EventChoice};

use crate::faults::{Kind, Kinds};
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
    /// A ring of Helenus nodes in two data centers, far from each other, and its clients.
    Centers,
    /// A ring of Helenus nodes that join, leave, move, are removed and replaced, and its clients.
    Topology,
    /// A ring whose replicas drift apart, and that repairs itself.
    Schedule,
    /// The example protocol.
    Register,
}

/// Runs a subject, with the rare events that the settings want.
pub fn run(subject: Subject, settings: Settings, defect: Option<Defect>) -> Report {
    let switched = rare::begin(settings.seed, settings.rare);
    let report = run_plainly(subject, settings, defect);
    Report { rare: switched.figures(), ..report }
}

fn run_plainly(subject: Subject, settings: Settings, defect: Option<Defect>) -> Report {
    match subject {
        Subject::Node => node::run(settings, node::NODE),
        Subject::Ring => node::run(settings, node::RING),
        Subject::Centers => node::run(settings, node::CENTERS),
        Subject::Topology => node::topology::run(settings),
        Subject::Schedule => node::schedule::run(settings),
        Subject::Register => register::run(settings, defect),
    }
}

/// The command that runs a seed again, in a build that has rare events if this one has.
pub fn replay(subject: Subject, settings: Settings, defect: Option<Defect>) -> String {
    let features = if rare::ARE_COMPILED && !cfg!(debug_assertions) { " --features rare" } else { "" };
    let mut command = format!("cargo run -p sim{features} -- --subject {} --seed {}", name(&subject), settings.seed);
    command += &format!(" --seconds {}", settings.seconds);
    if settings.steps != u64::MAX {
        command += &format!(" --steps {}", settings.steps);
    }
    if settings.kinds != Kinds::ALL {
        let kinds = Kind::value_variants().iter().filter(|kind| settings.kinds.has(**kind));
        command += &format!(" --faults {}", kinds.map(name).collect::<Vec<_>>().join(","));
    }
    match settings.rare {
        EventChoice::Drawn => {}
        EventChoice::None => command += " --rare none",
        EventChoice::All => command += " --rare all",
    }
    if let Some(defect) = defect {
        command += &format!(" --defect {}", name(&defect));
    }
    command
}

/// A value as the command line knows it.
fn name<V: ValueEnum>(value: &V) -> String {
    value.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
}
