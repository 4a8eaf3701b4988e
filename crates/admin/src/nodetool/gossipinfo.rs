//! `nodetool gossipinfo`: what the node knows of each endpoint.
//! Agrees with `Gossiper.getAllEndpointStates`.

use crate::nodetool::{Context, Outcome};
use crate::verbs::GetGossip;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Show node domain names instead of IPs
    #[arg(short = 'r', long)]
    resolve_ip: bool,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        for mut endpoint in context.api.ask(&GetGossip {})? {
            if self.resolve_ip {
                endpoint.address = context.host_name(&endpoint.address);
                writeln!(context.out, "{}", endpoint.name(context.print_port))?;
            } else {
                writeln!(context.out, "{}/{}", endpoint.address, endpoint.name(context.print_port))?;
            }
            writeln!(context.out, "  generation:{}\n  heartbeat:{}", endpoint.generation, endpoint.heartbeat)?;
            for (name, version, value) in &endpoint.states {
                let value = if name == "TOKENS" { "<hidden>" } else { value };
                writeln!(context.out, "  {name}:{version}:{value}")?;
            }
            writeln!(context.out)?;
        }
        Ok(())
    }
}
