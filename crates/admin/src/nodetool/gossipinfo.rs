//! `nodetool gossipinfo`: the states of the endpoints. Of this node all states are known, of others
//! what the ring knows. Agrees with `Gossiper.getAllEndpointStates`; versions are the positions of
//! the states, because nothing is gossiped yet.

use std::io::{self, Write};

use crate::nodetool::{Context, Outcome};
use crate::verbs::{EndpointInfo, EndpointState, GetNode, GetRing, NodeInfo};

/// The version of the internode protocol that 5.0 speaks.
const NET_VERSION: u32 = 13;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Show node domain names instead of IPs
    #[arg(short = 'r', long)]
    resolve_ip: bool,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let node = context.api.ask(&GetNode {})?;
        let ring = context.api.ask(&GetRing { keyspace: None })?;
        for endpoint in &ring.endpoints {
            writeln!(context.out, "{0}/{0}", endpoint.address)?;
            if (&endpoint.address, endpoint.storage_port) == (&node.address, node.storage_port) {
                print_node(&node, context.out)?;
            } else {
                print_other(endpoint, context.out)?;
            }
            writeln!(context.out)?;
        }
        Ok(())
    }
}

/// This node, of which every state is known.
fn print_node(node: &NodeInfo, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "  generation:{}\n  heartbeat:{}", node.generation, node.uptime_seconds)?;
    let status = status(&node.mode, &node.tokens);
    let states = [
        ("STATUS", status.clone()),
        ("LOAD", schema::ident::java_double(node.load as f64)),
        ("SCHEMA", node.schema_version.clone()),
        ("DC", node.data_center.clone()),
        ("RACK", node.rack.clone()),
        ("RELEASE_VERSION", node.release_version.clone()),
        ("RPC_ADDRESS", node.rpc_address.clone()),
        ("NET_VERSION", NET_VERSION.to_string()),
        ("HOST_ID", node.host_id.clone()),
        ("RPC_READY", node.native_transport_active.to_string()),
        ("NATIVE_ADDRESS_AND_PORT", format!("{}:{}", node.rpc_address, node.native_port)),
        ("STATUS_WITH_PORT", status),
        ("SSTABLE_VERSIONS", node.sstable_version.clone()),
        ("TOKENS", "<hidden>".to_owned()),
    ];
    print_states(&states, out)
}

/// Another node, as far as the ring knows it.
fn print_other(endpoint: &EndpointInfo, out: &mut dyn Write) -> io::Result<()> {
    let word = match endpoint.state {
        EndpointState::Normal => "NORMAL",
        EndpointState::Joining => "BOOT",
        EndpointState::Leaving => "LEAVING",
        EndpointState::Moving => "MOVING",
    };
    let status = status(word, &endpoint.tokens);
    let states = [
        ("STATUS", status.clone()),
        ("DC", endpoint.data_center.clone()),
        ("RACK", endpoint.rack.clone()),
        ("RPC_ADDRESS", endpoint.rpc_address.clone()),
        ("HOST_ID", endpoint.host_id.clone()),
        ("NATIVE_ADDRESS_AND_PORT", format!("{}:{}", endpoint.rpc_address, endpoint.native_port)),
        ("STATUS_WITH_PORT", status),
        ("TOKENS", "<hidden>".to_owned()),
    ];
    print_states(&states, out)
}

fn status(word: &str, tokens: &[i64]) -> String {
    format!("{word},{}", tokens.first().map_or(String::new(), i64::to_string))
}

fn print_states(states: &[(&str, String)], out: &mut dyn Write) -> io::Result<()> {
    states.iter().enumerate().try_for_each(|(index, (name, value))| writeln!(out, "  {name}:{}:{value}", index + 1))
}
