//! `nodetool ring`: every token with its owner. One node as yet, which owns everything.

use crate::nodetool::text::file_size;
use crate::nodetool::{Context, Outcome, usage};
use crate::verbs::{GetKeyspaces, GetNode};

#[derive(clap::Args)]
pub struct Args {
    /// Show node domain names instead of IPs
    #[arg(short = 'r', long)]
    resolve_ip: bool,
    /// Specify a keyspace for accurate ownership information (topology awareness)
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
        let width = format!("{}:{}", address.split(':').next().unwrap_or_default(), node.storage_port).len();
        let line = |cells: [&str; 7]| {
            let [address, rack, status, state, load, owns, token] = cells;
            format!("{address:<width$}  {rack:<12}{status:<7}{state:<8}{load:<16}{owns:<20}{token:<44}")
        };
        let out = &mut *context.out;
        writeln!(out, "\nDatacenter: {}\n==========", node.data_center)?;
        writeln!(out, "{}", line(["Address", "Rack", "Status", "State", "Load", "Owns", "Token"]))?;
        match node.tokens.as_slice() {
            [.., last] if node.tokens.len() > 1 => {
                writeln!(out, "{}", line(["", "", "", "", "", "", &last.to_string()]))?;
            }
            _ => writeln!(out)?,
        }
        let load = file_size(node.load);
        for token in &node.tokens {
            let token = token.to_string();
            writeln!(out, "{}", line([&address, &node.rack, "Up", "Normal", &load, "100.00%", &token]))?;
        }
        writeln!(out)?;
        if node.tokens.len() > 1 {
            writeln!(out, "  Warning: \"nodetool ring\" is used to output all the tokens of a node.")?;
            writeln!(out, "  To view status related info of a node use \"nodetool status\" instead.\n")?;
        }
        write!(out, "\n  ")?;
        Ok(())
    }
}
