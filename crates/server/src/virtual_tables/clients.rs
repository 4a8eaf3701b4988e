//! `clients`: the open connections of clients. Agrees with `ClientsTable`; `hostname` is the
//! address, because names are not looked up.

use types::CqlType;

use super::VirtualTable;
use super::row::VirtualRow;
use crate::services::Services;
use native::ConnectionStats;

pub(super) const TABLES: &[VirtualTable] = &[VirtualTable::of_views("clients", rows)];

fn rows(services: &Services) -> Vec<VirtualRow> {
    let Some(connections) = services.connections() else { return Vec::new() };
    connections.list().iter().map(|connection| row(connection)).collect()
}

fn row(connection: &ConnectionStats) -> VirtualRow {
    let details = connection.details();
    let entries: Vec<(&[u8], &[u8])> =
        details.options.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
    let address = connection.peer.ip();
    let row = VirtualRow::default()
        .inet("address", address)
        .int("port", i32::from(connection.peer.port()))
        .text("hostname", &address.to_string())
        .text("connection_stage", &connection.stage().name().to_lowercase())
        .bytes("client_options", types::collection::build_map(&CqlType::Text, entries))
        .maybe_text("username", details.user.as_deref().or(Some("anonymous")))
        .maybe_text("driver_name", details.driver_name.as_deref())
        .maybe_text("driver_version", details.driver_version.as_deref())
        .maybe_text("keyspace_name", details.keyspace.as_deref())
        .count("request_count", connection.requests.get())
        .boolean("ssl_enabled", false);
    match details.version {
        Some(version) => row.int("protocol_version", version as i32),
        None => row,
    }
}
