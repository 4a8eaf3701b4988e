//! `nodetool decommission`: the node hands its ranges on and leaves the ring.
//! Agrees with `org.apache.cassandra.tools.nodetool.Decommission`.

use crate::nodetool::{Context, Outcome};
use crate::verbs::{GetNode, RangeMovement};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Force decommission of this node even when it reduces the number of replicas to below
    /// configured RF, and while another node joins, leaves or moves
    #[arg(short = 'f', long)]
    force: bool,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        match context.api.ask(&GetNode {})?.mode.as_str() {
            "LEAVING" => writeln!(context.out, "This node is still decommissioning.")?,
            "DECOMMISSIONED" => writeln!(context.out, "Node was already decommissioned.")?,
            _ => context.api.ask(&RangeMovement::Decommission { force: self.force })?,
        }
        Ok(())
    }
}
