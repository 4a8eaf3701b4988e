//! `helenus ring snapshot --tag TAG`: one node has all nodes of its ring take a snapshot, and says
//! which of them did not.

use std::io::Write;
use std::process::ExitCode;

use admin::AdminApi;
use admin::verbs::{RingSnapshotInfo, RingSnapshotRequest};
use clap::Args;

use crate::admin_port::AdminPort;

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
    let request = RingSnapshotRequest { name: snapshot.tag.clone(), keyspaces: snapshot.keyspaces.clone() };
    let client = match snapshot.node.client() {
        Ok(client) => client,
        Err(error) => {
            eprintln!("helenus: {error}");
            return ExitCode::FAILURE;
        }
    };
    let api: &dyn AdminApi = &client;
    match api.ask(&request) {
        Ok(shares) => report(&snapshot.tag, &shares),
        Err(error) => {
            eprintln!("helenus: {error}");
            ExitCode::FAILURE
        }
    }
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
