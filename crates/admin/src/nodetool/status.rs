//! `nodetool status`: the nodes of each data center. Agrees with
//! `org.apache.cassandra.tools.nodetool.Status`; nodes stand in the order of their addresses, in
//! Cassandra in that of a hash map.

use crate::nodetool::text::{Table, file_size};
use crate::nodetool::{Context, EXIT_USAGE, Outcome, VerbError};
use crate::verbs::{EndpointInfo, GetKeyspaces, GetRing};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Show node domain names instead of IPs
    #[arg(short = 'r', long)]
    resolve_ip: bool,
    /// The keyspace name
    keyspace: Option<String>,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        check_keyspace(self.keyspace.as_deref(), context)?;
        let mut ring = context.api.ask(&GetRing { keyspace: self.keyspace })?;
        if self.resolve_ip {
            ring.endpoints.iter_mut().for_each(|endpoint| endpoint.address = context.host_name(&endpoint.address));
        }
        let data_centers = ring.by_data_center();
        // as Cassandra has it: with more data centers than tokens there is a token a node
        let has_one_token = ring.tokens().len() <= data_centers.len();
        let layout = Layout { has_one_token, is_effective: ring.note.is_none(), print_port: context.print_port };
        let tables: Vec<Table> = data_centers.iter().map(|(_, endpoints)| layout.table(endpoints)).collect();
        let widths = Table::widths_of(&tables);
        for (index, ((name, _), table)) in data_centers.iter().zip(&tables).enumerate() {
            if index > 0 {
                writeln!(context.out)?;
            }
            let header = format!("Datacenter: {name}");
            writeln!(context.out, "{header}\n{}", "=".repeat(header.len()))?;
            writeln!(context.out, "Status=Up/Down\n|/ State=Normal/Leaving/Joining/Moving")?;
            table.print_in(&widths, context.out)?;
        }
        writeln!(context.out)?;
        if let Some(note) = &ring.note {
            writeln!(context.out, "Note: {note}")?;
        }
        Ok(())
    }
}

/// Refuses a keyspace that does not exist.
pub(super) fn check_keyspace(keyspace: Option<&str>, context: &mut Context<'_>) -> Outcome {
    match keyspace {
        Some(keyspace) if !context.api.ask(&GetKeyspaces {})?.iter().any(|known| known.name == keyspace) => {
            writeln!(context.out, "\nError: The keyspace {keyspace}, does not exist")?;
            Err(VerbError::Failed { text: String::new(), code: EXIT_USAGE })
        }
        _ => Ok(()),
    }
}

/// Which columns the tables have.
struct Layout {
    /// Every node has one token, which is shown; otherwise their number is shown.
    has_one_token: bool,
    /// The share of the data is known.
    is_effective: bool,
    print_port: bool,
}

impl Layout {
    fn table(&self, endpoints: &[&EndpointInfo]) -> Table {
        let owns = if self.is_effective { "Owns (effective)" } else { "Owns" };
        let mut table = Table::wide();
        match self.has_one_token {
            true => table.add(["--", "Address", "Load", owns, "Host ID", "Token", "Rack"]),
            false => table.add(["--", "Address", "Load", "Tokens", owns, "Host ID", "Rack"]),
        }
        endpoints.iter().for_each(|endpoint| self.add(endpoint, &mut table));
        table
    }

    fn add(&self, endpoint: &EndpointInfo, table: &mut Table) {
        let up = if endpoint.is_up { 'U' } else { 'D' };
        let letters: String = [up].into_iter().chain(endpoint.state.word().chars().take(1)).collect();
        let address = endpoint.name(self.print_port);
        let load = endpoint.load.map_or("?".to_owned(), file_size);
        let owns = endpoint.owns.filter(|_| self.is_effective);
        let owns = owns.map_or("?".to_owned(), |share| format!("{:.1}%", share * 100.0));
        let (host_id, rack) = (endpoint.host_id.clone(), endpoint.rack.clone());
        match self.has_one_token {
            true => {
                let token = endpoint.tokens.first().map_or(String::new(), i64::to_string);
                table.add([letters, address, load, owns, host_id, token, rack]);
            }
            false => {
                table.add([letters, address, load, endpoint.tokens.len().to_string(), owns, host_id, rack]);
            }
        }
    }
}
