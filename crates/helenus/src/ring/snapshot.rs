//! `helenus ring snapshot --tag TAG`: one node has all nodes of its ring take a snapshot, and says
//! which of them did not.

use std::io::Write;
use std::process::ExitCode;

use admin::AdminApi;
use admin::verbs::{RingSnapshotInfo, RingSnapshotRequest};
use clap::Args;

use crate::admin_port::AdminPort;
use crate::backup::check_tag;

/// Options of `helenus ring snapshot`.
#[derive(Args)]
pub struct Snapshot {
    /// The name of the snapshot.
    #[arg(short = 't', long)]
    tag: String,
    #[command(flatten)]
    node: AdminPort,
    /// Keyspaces [default: all that nodes share].
    keyspaces: Vec<String>,
}

/// Carries out `helenus ring snapshot`.
pub fn run(snapshot: &Snapshot) -> ExitCode {
    match take(snapshot) {
        Ok(shares) => report(&snapshot.tag, &shares),
        Err(why) => {
            eprintln!("helenus: {why}");
            ExitCode::FAILURE
        }
    }
}

/// The shares of all nodes. Err: no node was asked.
fn take(snapshot: &Snapshot) -> Result<Vec<RingSnapshotInfo>, String> {
    check_tag(&snapshot.tag)?;
    let client = snapshot.node.client()?;
    let api: &dyn AdminApi = &client;
    let request = RingSnapshotRequest { name: snapshot.tag.clone(), keyspaces: snapshot.keyspaces.clone() };
    api.ask(&request).map_err(|error| error.to_string())
}

fn report(tag: &str, shares: &[RingSnapshotInfo]) -> ExitCode {
    let mut out = std::io::stdout().lock();
    for RingSnapshotInfo { address, tables, failure } in shares {
        let told = match failure {
            None => writeln!(out, "{address}: snapshot {tag} of {tables} tables"),
            Some(why) => writeln!(out, "{address}: FAILED: {why}"),
        };
        if told.is_err() {
            return ExitCode::FAILURE;
        }
    }
    match shares.iter().all(|share| share.failure.is_none()) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{Command, Program};
    use crate::ring::Ring;

    /// Nothing listens on the port: a node that is asked is told apart from a refusal.
    #[test]
    fn a_name_that_no_backup_can_have_is_refused_before_a_node_is_asked() {
        for tag in ["mon day", "a/b", ".a", ""] {
            let words = ["helenus", "ring", "snapshot", "--tag", tag, "--port", "1"];
            let program = Program::try_parse_from(words).expect("known options");
            let Some(Command::Ring(Ring::Snapshot(snapshot))) = program.command else { panic!("a snapshot was asked") };
            let refused = take(&snapshot).expect_err(tag);
            assert!(refused.starts_with("--tag: "), "{refused}");
        }
    }
}
