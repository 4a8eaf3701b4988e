//! `nodetool describering`: the token ranges of a keyspace, in ring order.

use crate::nodetool::{Context, Outcome, usage};
use crate::verbs::{GetKeyspaces, GetNode};

#[derive(clap::Args)]
pub struct Args {
    /// The keyspace name
    keyspace: String,
}

impl Args {
    pub fn run(self, context: &mut Context<'_>) -> Outcome {
        if !context.api.ask(&GetKeyspaces {})?.iter().any(|known| known.name == self.keyspace) {
            return usage(format!("The keyspace {} does not exist", self.keyspace));
        }
        let node = context.api.ask(&GetNode {})?;
        writeln!(context.out, "Schema Version:{}\nTokenRange: ", node.schema_version)?;
        let starts = node.tokens.last().into_iter().chain(&node.tokens);
        for (start, end) in starts.zip(&node.tokens) {
            let details = format!("host:{}, datacenter:{}, rack:{}", node.address, node.data_center, node.rack);
            writeln!(
                context.out,
                "\tTokenRange(start_token:{start}, end_token:{end}, endpoints:[{}], rpc_endpoints:[{}], \
                 endpoint_details:[EndpointDetails({details})])",
                node.address, node.rpc_address
            )?;
        }
        Ok(())
    }
}
