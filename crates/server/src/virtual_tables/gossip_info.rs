//! `gossip_info`: what this node would tell others of itself. Agrees with `GossipInfoTable`; the versions of the states, which count
//! what was told, are null: nothing is told to anyone yet.

use cluster::clock::uuid_text;
use cluster::identity::RELEASE_VERSION;
use cluster::operations::{state, tables};

use super::row::VirtualRow;
use super::{VirtualTable, int};
use crate::services::Services;

pub(super) const TABLES: &[VirtualTable] = &[VirtualTable::of_views("gossip_info", rows)];

/// The version of the messages between nodes: `MessagingService.VERSION_50`.
const NET_VERSION: &str = "13";

fn rows(services: &Services) -> Vec<VirtualRow> {
    let node = &services.node;
    let identity = &node.identity;
    let load: u64 = tables::all(node).iter().map(|store| super::table_metrics::disk_size(store)).sum();
    let version = state::options(node).sstable_version;
    let status = format!("NORMAL,{}", identity.tokens.first().map_or(0, |token| token.0));
    vec![
        VirtualRow::default()
            .inet("address", identity.broadcast.ip())
            .int("port", i32::from(identity.broadcast.port()))
            .text("hostname", &identity.broadcast.ip().to_string())
            .int("generation", int(identity.generation as usize))
            .int("heartbeat", int(services.uptime_seconds() as usize))
            .text("dc", &identity.data_center)
            .text("rack", &identity.rack)
            .text("host_id", &uuid_text(&identity.host_id))
            .text("load", &format!("{load}.0"))
            .text("native_address_and_port", &identity.native.to_string())
            .text("net_version", NET_VERSION)
            .text("release_version", RELEASE_VERSION)
            .text("rpc_address", &identity.native.ip().to_string())
            .text("rpc_ready", "true")
            .text("schema", &uuid_text(&node.schema().version))
            .text("sstable_versions", &format!("{}-{}", version.format().name(), version.name()))
            .text("status", &status)
            .text("status_with_port", &status),
    ]
}
