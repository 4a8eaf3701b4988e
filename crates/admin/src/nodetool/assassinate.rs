//! `nodetool assassinate`: removes a node that does not come back, without handing on its data.
//! Agrees with `org.apache.cassandra.tools.nodetool.Assassinate`.

use crate::nodetool::{Context, Outcome};
use crate::verbs::GossipChange;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// IP address of the endpoint to assassinate
    address: String,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        Ok(context.api.ask(&GossipChange::Assassinate(self.address))?)
    }
}
