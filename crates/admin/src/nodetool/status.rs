//! `nodetool status`: the nodes of each data center. One node as yet, which owns everything.

use crate::nodetool::text::{Table, file_size};
use crate::nodetool::{Context, Outcome, usage};
use crate::verbs::{GetKeyspaces, GetNode};

#[derive(clap::Args)]
pub struct Args {
    /// Show node domain names instead of IPs
    #[arg(short = 'r', long)]
    resolve_ip: bool,
    /// The keyspace name
    keyspace: Option<String>,
}

impl Args {
    pub fn run(self, context: &mut Context<'_>) -> Outcome {
        if let Some(keyspace) = &self.keyspace
            && !context.api.ask(&GetKeyspaces {})?.iter().any(|known| known.name == *keyspace)
        {
            return usage(format!("The keyspace: {keyspace}, does not exist"));
        }
        let node = context.api.ask(&GetNode {})?;
        let address = if context.print_port { format!("{}:{}", node.address, node.storage_port) } else { node.address };
        let header = format!("Datacenter: {}", node.data_center);
        writeln!(context.out, "{header}\n{}", "=".repeat(header.len()))?;
        writeln!(context.out, "Status=Up/Down\n|/ State=Normal/Leaving/Joining/Moving")?;
        let load = file_size(node.load);
        let mut table = Table::wide();
        match node.tokens.as_slice() {
            [token] => {
                table.add(["--", "Address", "Load", "Owns (effective)", "Host ID", "Token", "Rack"]);
                let token = token.to_string();
                table.add(["UN", &address, &load, "100.0%", &node.host_id, &token, &node.rack]);
            }
            tokens => {
                table.add(["--", "Address", "Load", "Tokens", "Owns (effective)", "Host ID", "Rack"]);
                let count = tokens.len().to_string();
                table.add(["UN", &address, &load, &count, "100.0%", &node.host_id, &node.rack]);
            }
        }
        table.print(context.out)?;
        writeln!(context.out)?;
        Ok(())
    }
}
