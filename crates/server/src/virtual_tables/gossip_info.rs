//! `gossip_info`: what the node knows of each endpoint. Agrees with `GossipInfoTable`.

use cluster::operations::gossip::{self, KnownEndpoint};
use internode::payload::gossip::ApplicationState;

use super::VirtualTable;
use super::row::VirtualRow;
use crate::services::Services;

pub(super) const TABLES: &[VirtualTable] = &[VirtualTable::of_views("gossip_info", rows)];

/// The columns of each application state, one for its value and one for its version. None: the
/// value is not shown.
const COLUMNS: [(ApplicationState, Option<&str>, &str); 20] = {
    use ApplicationState::*;
    [
        (Status, Some("status"), "status_version"),
        (Load, Some("load"), "load_version"),
        (Schema, Some("schema"), "schema_version"),
        (Dc, Some("dc"), "dc_version"),
        (Rack, Some("rack"), "rack_version"),
        (ReleaseVersion, Some("release_version"), "release_version_version"),
        (RemovalCoordinator, Some("removal_coordinator"), "removal_coordinator_version"),
        (InternalIp, Some("internal_ip"), "internal_ip_version"),
        (RpcAddress, Some("rpc_address"), "rpc_address_version"),
        (Severity, Some("severity"), "severity_version"),
        (NetVersion, Some("net_version"), "net_version_version"),
        (HostId, Some("host_id"), "host_id_version"),
        (Tokens, None, "tokens_version"),
        (RpcReady, Some("rpc_ready"), "rpc_ready_version"),
        (InternalAddressAndPort, Some("internal_address_and_port"), "internal_address_and_port_version"),
        (NativeAddressAndPort, Some("native_address_and_port"), "native_address_and_port_version"),
        (StatusWithPort, Some("status_with_port"), "status_with_port_version"),
        (SstableVersions, Some("sstable_versions"), "sstable_versions_version"),
        (DiskUsage, Some("disk_usage"), "disk_usage_version"),
        (IndexStatus, Some("index_status"), "index_status_version"),
    ]
};

fn rows(services: &Services) -> Vec<VirtualRow> {
    gossip::known_endpoints(&services.node).iter().map(row).collect()
}

fn row(known: &KnownEndpoint) -> VirtualRow {
    let head = VirtualRow::default()
        .inet("address", known.address.ip())
        .int("port", i32::from(known.address.port()))
        .text("hostname", &known.address.ip().to_string())
        .int("generation", known.state.generation)
        .int("heartbeat", known.state.heartbeat);
    let with = |row: VirtualRow, (of, name, version): &(ApplicationState, Option<&'static str>, &'static str)| {
        let Some((_, value)) = known.state.values.iter().find(|(known, _)| known == of) else { return row };
        let row = row.int(version, value.version);
        match name {
            Some(name) => row.text(name, &value.value),
            None => row,
        }
    };
    COLUMNS.iter().fold(head, with)
}
