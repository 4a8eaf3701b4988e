//! `pending_hints`: the hints that wait for other nodes. Agrees with `PendingHintsTable`.

use cluster::hints::HostHints;

use super::row::VirtualRow;
use super::{VirtualTable, int};
use crate::services::Services;

pub(super) const TABLES: &[VirtualTable] = &[VirtualTable::of_views("pending_hints", rows)];

/// Data center, rack and state of a host that nobody in the ring is.
const UNKNOWN: &str = "Unknown";

fn rows(services: &Services) -> Vec<VirtualRow> {
    services.node.pending_hints().iter().map(row).collect()
}

fn row(hints: &HostHints) -> VirtualRow {
    let HostHints { pending, endpoint } = hints;
    let millis = |millis: i64| millis.to_be_bytes().to_vec();
    let row = VirtualRow::default()
        .bytes("host_id", pending.host_id.to_vec())
        .int("files", int(pending.files))
        .bytes("newest", millis(pending.newest_millis))
        .bytes("oldest", millis(pending.oldest_millis));
    match endpoint {
        None => row.text("dc", UNKNOWN).text("rack", UNKNOWN).text("status", UNKNOWN),
        Some(endpoint) => row
            .inet("address", endpoint.address.ip())
            .int("port", i32::from(endpoint.address.port()))
            .text("dc", &endpoint.data_center)
            .text("rack", &endpoint.rack)
            .text("status", if endpoint.is_up { "UP" } else { "DOWN" }),
    }
}
