//! `nodetool gossipinfo`: the endpoint states that this node knows: its own.

use crate::nodetool::{Context, Outcome};
use crate::verbs::GetNode;

/// The version of the internode protocol that 5.0 speaks.
const NET_VERSION: u32 = 13;

#[derive(clap::Args)]
pub struct Args {
    /// Show node domain names instead of IPs
    #[arg(short = 'r', long)]
    resolve_ip: bool,
}

impl Args {
    pub fn run(self, context: &mut Context<'_>) -> Outcome {
        let node = context.api.ask(&GetNode {})?;
        let out = &mut *context.out;
        writeln!(
            out,
            "{0}/{0}\n  generation:{1}\n  heartbeat:{2}",
            node.address, node.generation, node.uptime_seconds
        )?;
        let token = node.tokens.first().map_or(String::new(), i64::to_string);
        let status = format!("{},{token}", node.mode);
        let states = [
            ("STATUS", status.clone()),
            ("LOAD", schema::ident::java_double(node.load as f64)),
            ("SCHEMA", node.schema_version),
            ("DC", node.data_center),
            ("RACK", node.rack),
            ("RELEASE_VERSION", node.release_version),
            ("RPC_ADDRESS", node.rpc_address.clone()),
            ("NET_VERSION", NET_VERSION.to_string()),
            ("HOST_ID", node.host_id),
            ("RPC_READY", node.native_transport_active.to_string()),
            ("NATIVE_ADDRESS_AND_PORT", format!("{}:{}", node.rpc_address, node.native_port)),
            ("STATUS_WITH_PORT", status),
            ("SSTABLE_VERSIONS", "bti-da".to_owned()),
            ("TOKENS", "<hidden>".to_owned()),
        ];
        for (version, (name, value)) in states.into_iter().enumerate() {
            writeln!(out, "  {name}:{}:{value}", version + 1)?;
        }
        writeln!(out)?;
        Ok(())
    }
}
