//! `gossip_info`: the states of the ring's endpoints. Agrees with `GossipInfoTable`. The versions
//! of the states, which count changes that were gossiped, are null, because nothing is gossiped
//! yet.

use ::ring::{Endpoint, State};
use cluster::clock::uuid_text;
use cluster::identity::RELEASE_VERSION;
use cluster::operations::{ring, state, tables};

use super::row::VirtualRow;
use super::{VirtualTable, int};
use crate::services::Services;

pub(super) const TABLES: &[VirtualTable] = &[VirtualTable::of_views("gossip_info", rows)];

/// The version of the messages between nodes: `MessagingService.VERSION_50`.
const NET_VERSION: &str = "13";

fn rows(services: &Services) -> Vec<VirtualRow> {
    let ring = ring::snapshot(&services.node);
    ring.endpoints().iter().map(|endpoint| row(services, endpoint, endpoint == ring.local())).collect()
}

/// The states of an endpoint that the ring knows; for this node all states.
fn row(services: &Services, endpoint: &Endpoint, is_local: bool) -> VirtualRow {
    let word = match endpoint.state {
        State::Normal => "NORMAL",
        State::Joining => "BOOT",
        State::Leaving => "LEAVING",
        State::Moving => "MOVING",
    };
    let status = format!("{word},{}", endpoint.tokens.first().map_or(0, |token| token.0));
    let row = VirtualRow::default()
        .inet("address", endpoint.address.ip())
        .int("port", i32::from(endpoint.address.port()))
        .text("hostname", &endpoint.address.ip().to_string())
        .text("dc", &endpoint.data_center)
        .text("rack", &endpoint.rack)
        .text("host_id", &uuid_text(&endpoint.host_id))
        .text("native_address_and_port", &endpoint.native.to_string())
        .text("rpc_address", &endpoint.native.ip().to_string())
        .text("status", &status)
        .text("status_with_port", &status);
    if is_local { with_own_states(services, row) } else { row }
}

fn with_own_states(services: &Services, row: VirtualRow) -> VirtualRow {
    let node = &services.node;
    let load: u64 = tables::all(node).iter().map(|store| super::table_metrics::disk_size(store)).sum();
    let version = state::options(node).sstable_version;
    row.int("generation", int(node.identity.generation as usize))
        .int("heartbeat", int(services.uptime_seconds() as usize))
        .text("load", &format!("{load}.0"))
        .text("net_version", NET_VERSION)
        .text("release_version", RELEASE_VERSION)
        .text("rpc_ready", "true")
        .text("schema", &uuid_text(&node.schema().version))
        .text("sstable_versions", &format!("{}-{}", version.format().name(), version.name()))
}
