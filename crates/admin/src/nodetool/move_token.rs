//! `nodetool move`: the node owns another token.
//! Agrees with `org.apache.cassandra.tools.nodetool.Move`.

use crate::nodetool::{Context, Outcome};
use crate::verbs::RangeMovement;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The new token
    #[arg(allow_hyphen_values = true)]
    token: String,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        // Cassandra's tokens may be given as `\-123`, so that the dash is no option
        let token = self.token.trim_start_matches('\\').to_owned();
        Ok(context.api.ask(&RangeMovement::Move(token))?)
    }
}
