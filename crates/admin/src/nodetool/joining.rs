//! `nodetool bootstrap` and `nodetool join`, for nodes that are on their way in. Agrees with
//! `org.apache.cassandra.tools.nodetool.{BootstrapResume,Join}`.

use crate::nodetool::{Context, Outcome, VerbError};
use crate::verb::AdminError;
use crate::verbs::{GetNode, RangeMovement, ResumeBootstrap};

#[derive(clap::Args)]
pub(crate) struct Bootstrap {
    #[command(subcommand)]
    operation: Operation,
}

#[derive(clap::Subcommand)]
enum Operation {
    /// Resume bootstrap streaming
    Resume {
        /// Use --force to resume bootstrap regardless of reset_bootstrap_progress
        #[arg(short = 'f', long)]
        force: bool,
    },
}

#[derive(clap::Args)]
pub(crate) struct Join {}

impl Bootstrap {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let Operation::Resume { force } = self.operation;
        if !force {
            return Err(failed("'nodetool bootstrap resume' is disabled."));
        }
        if context.api.ask(&GetNode {})?.mode != "JOINING_FAILED" {
            return Ok(writeln!(context.out, "Node is already bootstrapped.")?);
        }
        writeln!(context.out, "Resuming bootstrap")?;
        if let Some(reason) = context.api.ask(&ResumeBootstrap {})? {
            writeln!(context.out, "All data was fetched again, not the rest alone: {reason}.")?;
        }
        Ok(writeln!(context.out, "Resume bootstrap complete")?)
    }
}

impl Join {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        match context.api.ask(&GetNode {})?.mode.as_str() {
            "STARTING" => Ok(context.api.ask(&RangeMovement::Join)?),
            "JOINING" | "JOINING_FAILED" => Err(failed("Cannot join the ring until bootstrap completes")),
            _ => Err(failed("This node has already joined the ring.")),
        }
    }
}

fn failed(why: &str) -> VerbError {
    VerbError::Api(AdminError::Failed(why.to_owned()))
}
