//! `nodetool describecluster`: name, snitch, partitioner, schema versions, keyspaces. One node as yet.

use crate::nodetool::{Context, Outcome};
use crate::verbs::{GetKeyspaces, GetNode};

#[derive(clap::Args)]
pub struct Args {}

impl Args {
    pub fn run(self, context: &mut Context<'_>) -> Outcome {
        let node = context.api.ask(&GetNode {})?;
        let keyspaces = context.api.ask(&GetKeyspaces {})?;
        let out = &mut *context.out;
        writeln!(out, "Cluster Information:\n\tName: {}", node.cluster_name)?;
        writeln!(out, "\tSnitch: {}\n\tDynamicEndPointSnitch: enabled", node.snitch)?;
        writeln!(out, "\tPartitioner: {}", node.partitioner)?;
        writeln!(out, "\tSchema versions:\n\t\t{}: [{}]\n", node.schema_version, node.address)?;
        writeln!(out, "Stats for all nodes:\n\tLive: 1\n\tJoining: 0\n\tMoving: 0\n\tLeaving: 0\n\tUnreachable: 0")?;
        writeln!(out, "\nData Centers: \n\t{} #Nodes: 1 #Down: 0", node.data_center)?;
        writeln!(out, "\nDatabase versions:\n\t{}: [{}:{}]\n", node.release_version, node.address, node.storage_port)?;
        writeln!(out, "Keyspaces:")?;
        for keyspace in keyspaces {
            let options: Vec<String> =
                keyspace.replication_options.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let options = options.join(", ");
            writeln!(out, "\t{} -> Replication class: {} {{{options}}}", keyspace.name, keyspace.replication_class)?;
        }
        Ok(())
    }
}
