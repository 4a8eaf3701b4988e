//! `nodetool failuredetector`: how suspicious the silence of each other node is.
//! Agrees with `org.apache.cassandra.tools.nodetool.FailureDetectorInfo`.

use crate::nodetool::{Context, Outcome};
use crate::verbs::GetGossip;

#[derive(clap::Args)]
pub(crate) struct Args {}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let endpoints = context.api.ask(&GetGossip {})?;
        writeln!(context.out, "{:>10},{:>16}", "Endpoint", "Phi")?;
        for endpoint in endpoints {
            if let Some(phi) = endpoint.phi {
                let name = format!("/{}", endpoint.name(context.print_port));
                writeln!(context.out, "{name:>10},{phi:>16.8}")?;
            }
        }
        Ok(())
    }
}
