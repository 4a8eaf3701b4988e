//! `nodetool removenode`: a node that does not come back is taken out of the ring, and the others
//! restore its copies. Agrees with `org.apache.cassandra.tools.nodetool.RemoveNode`.

use crate::nodetool::{Context, Outcome};
use crate::verbs::{GetRemovalStatus, RangeMovement};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Show status of current node removal, force completion of pending removal, or remove provided
    /// ID
    #[arg(value_name = "status|force|ID")]
    operation: String,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        if self.operation != "status" && self.operation != "force" {
            return Ok(context.api.ask(&RangeMovement::Remove(self.operation))?);
        }
        let status = context.api.ask(&GetRemovalStatus {})?;
        writeln!(context.out, "RemovalStatus: {status}")?;
        match self.operation.as_str() {
            "force" => Ok(context.api.ask(&RangeMovement::ForceRemoval)?),
            _ => Ok(()),
        }
    }
}
