//! `nodetool ring`: every token with its owner, by data center. Agrees with
//! `org.apache.cassandra.tools.nodetool.Ring`.

use std::io::{self, Write};

use crate::nodetool::status::check_keyspace;
use crate::nodetool::text::file_size;
use crate::nodetool::{Context, Outcome};
use crate::verbs::{EndpointInfo, GetRing, RingInfo};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Show node domain names instead of IPs
    #[arg(short = 'r', long)]
    resolve_ip: bool,
    /// Specify a keyspace for accurate ownership information (topology awareness)
    keyspace: Option<String>,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        check_keyspace(self.keyspace.as_deref(), context)?;
        let mut ring = context.api.ask(&GetRing { keyspace: self.keyspace })?;
        if self.resolve_ip {
            ring.endpoints.iter_mut().for_each(|endpoint| endpoint.address = context.host_name(&endpoint.address));
        }
        writeln!(context.out)?;
        for (name, _) in ring.by_data_center() {
            print_data_center(&ring, name, context.print_port, context.out)?;
        }
        let out = &mut *context.out;
        if ring.endpoints.iter().any(|endpoint| endpoint.tokens.len() > 1) {
            writeln!(out, "  Warning: \"nodetool ring\" is used to output all the tokens of a node.")?;
            writeln!(out, "  To view status related info of a node use \"nodetool status\" instead.\n")?;
        }
        write!(out, "\n  ")?;
        match &ring.note {
            Some(note) => Ok(writeln!(out, "Note: {note}")?),
            None => Ok(()),
        }
    }
}

fn print_data_center(ring: &RingInfo, name: &str, print_port: bool, out: &mut dyn Write) -> io::Result<()> {
    // the column is as wide as the longest address with its port, whether the port is shown or not
    let width = ring.endpoints.iter().map(|endpoint| endpoint.name(true).len()).max().unwrap_or(0);
    let line = |cells: [&str; 7]| {
        let [address, rack, status, state, load, owns, token] = cells;
        format!("{address:<width$}  {rack:<12}{status:<7}{state:<8}{load:<16}{owns:<20}{token:<44}")
    };
    writeln!(out, "Datacenter: {name}\n==========")?;
    writeln!(out, "{}", line(["Address", "Rack", "Status", "State", "Load", "Owns", "Token"]))?;
    let tokens: Vec<(i64, &EndpointInfo)> =
        ring.tokens().into_iter().filter(|(_, owner)| owner.data_center == name).collect();
    match tokens.as_slice() {
        [_, .., (last, _)] => writeln!(out, "{}", line(["", "", "", "", "", "", &last.to_string()]))?,
        _ => writeln!(out)?,
    }
    for (token, owner) in &tokens {
        let status = if owner.is_up { "Up" } else { "Down" };
        let load = owner.load.map_or("?".to_owned(), file_size);
        let owns = owner.owns.filter(|_| ring.note.is_none());
        let owns = owns.map_or("?".to_owned(), |share| format!("{:.2}%", share * 100.0));
        let (address, token) = (owner.name(print_port), token.to_string());
        writeln!(out, "{}", line([&address, &owner.rack, status, owner.state.word(), &load, &owns, &token]))?;
    }
    writeln!(out)
}
