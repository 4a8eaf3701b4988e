//! `nodetool describecluster`: name, snitch, partitioner, schema versions, numbers of nodes,
//! keyspaces. Agrees with `org.apache.cassandra.tools.nodetool.DescribeCluster`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::nodetool::{Context, Outcome};
use crate::verbs::join;
use crate::verbs::{EndpointInfo, EndpointState, GetKeyspaces, GetNode, GetRing, GetSchemaVersions, RingInfo};

/// Shown instead of the schema version of nodes that do not answer, as in Cassandra.
const UNREACHABLE: &str = "UNREACHABLE";

#[derive(clap::Args)]
pub(crate) struct Args {}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let node = context.api.ask(&GetNode {})?;
        let keyspaces = context.api.ask(&GetKeyspaces {})?;
        let ring = context.api.ask(&GetRing { keyspace: None })?;
        let versions = context.api.ask(&GetSchemaVersions {})?;
        let out = &mut *context.out;
        writeln!(out, "Cluster Information:\n\tName: {}", node.cluster_name)?;
        let dynamic = if node.dynamic_snitch { "enabled" } else { "disabled" };
        writeln!(out, "\tSnitch: {}\n\tDynamicEndPointSnitch: {dynamic}", node.snitch)?;
        writeln!(out, "\tPartitioner: {}\n\tSchema versions:", node.partitioner)?;
        let mut by_version: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for of in versions {
            let version = of.version.unwrap_or_else(|| UNREACHABLE.to_owned());
            let name = if context.print_port { join(&of.address, of.storage_port) } else { of.address };
            by_version.entry(version).or_default().push(name);
        }
        for (version, names) in by_version {
            writeln!(out, "\t\t{version}: [{}]\n", names.join(", "))?;
        }
        print_numbers(&ring, out)?;
        writeln!(out, "\nDatabase versions:")?;
        let release = |endpoint: &EndpointInfo| endpoint.release_version.clone().unwrap_or_default();
        for (version, names) in grouped(&ring, release) {
            writeln!(out, "\t{version}: [{}]\n", names.join(", "))?;
        }
        writeln!(out, "Keyspaces:")?;
        for keyspace in keyspaces {
            let options: Vec<String> =
                keyspace.replication_options.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let options = options.join(", ");
            writeln!(out, "\t{} -> Replication class: {} {{{options}}}", keyspace.name, keyspace.replication_class)?;
        }
        match &ring.note {
            Some(note) => Ok(writeln!(out, "\nNote: {note}")?),
            None => Ok(()),
        }
    }
}

/// The names of the endpoints with their ports, grouped by a property.
fn grouped(ring: &RingInfo, by: impl Fn(&EndpointInfo) -> String) -> BTreeMap<String, Vec<String>> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for endpoint in &ring.endpoints {
        groups.entry(by(endpoint)).or_default().push(endpoint.name(true));
    }
    groups
}

fn print_numbers(ring: &RingInfo, out: &mut dyn Write) -> io::Result<()> {
    let down = |endpoints: &[&EndpointInfo]| endpoints.iter().filter(|endpoint| !endpoint.is_up).count();
    let all: Vec<&EndpointInfo> = ring.endpoints.iter().collect();
    let in_state = |state| all.iter().filter(|endpoint| endpoint.state == state).count();
    writeln!(out, "Stats for all nodes:\n\tLive: {}", all.len() - down(&all))?;
    writeln!(out, "\tJoining: {}", in_state(EndpointState::Joining))?;
    writeln!(out, "\tMoving: {}", in_state(EndpointState::Moving))?;
    writeln!(out, "\tLeaving: {}", in_state(EndpointState::Leaving))?;
    writeln!(out, "\tUnreachable: {}\n\nData Centers: ", down(&all))?;
    for (name, endpoints) in ring.by_data_center() {
        writeln!(out, "\t{name} #Nodes: {} #Down: {}", endpoints.len(), down(&endpoints))?;
    }
    Ok(())
}
