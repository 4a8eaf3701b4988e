//! `nodetool clearsnapshot`: removes snapshots.

use crate::nodetool::{Context, Outcome, usage};
use crate::verbs::ClearSnapshots;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Remove the snapshot with a given name
    #[arg(short = 't')]
    name: Option<String>,
    /// Removes all snapshots
    #[arg(long)]
    all: bool,
    /// Remove snapshots from the given keyspaces
    keyspaces: Vec<String>,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let with = match (&self.name, self.all) {
            (None, false) => return usage("Specify snapshot name or --all"),
            (Some(_), true) => return usage("Specify only one of snapshot name or --all"),
            (None, true) => "[all snapshots]".to_owned(),
            (Some(name), false) => format!("snapshot name [{name}]"),
        };
        let of = if self.keyspaces.is_empty() { "all keyspaces".to_owned() } else { self.keyspaces.join(", ") };
        writeln!(context.out, "Requested clearing snapshot(s) for [{of}] with {with}")?;
        Ok(context.api.ask(&ClearSnapshots { name: self.name, keyspaces: self.keyspaces })?)
    }
}
