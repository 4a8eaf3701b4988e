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
    let nobody = services.auth.is_none().then_some("anonymous");
    connections.list().iter().map(|connection| row(connection, nobody)).collect()
}

/// `nobody`: the name of a user who has not logged in; None where users log in.
fn row(connection: &ConnectionStats, nobody: Option<&str>) -> VirtualRow {
    let details = connection.details();
    let entries: Vec<(&[u8], &[u8])> =
        details.options.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
    let address = connection.peer.ip();
    let encrypted = connection.encrypted.get();
    let row = VirtualRow::default()
        .inet("address", address)
        .int("port", i32::from(connection.peer.port()))
        .text("hostname", &address.to_string())
        .text("connection_stage", &connection.stage().name().to_lowercase())
        .bytes("client_options", types::collection::build_map(&CqlType::Text, entries))
        .maybe_text("username", details.user.as_deref().or(nobody))
        .maybe_text("driver_name", details.driver_name.as_deref())
        .maybe_text("driver_version", details.driver_version.as_deref())
        .maybe_text("keyspace_name", details.keyspace.as_deref())
        .count("request_count", connection.requests.get())
        .boolean("ssl_enabled", encrypted.is_some())
        .maybe_text("ssl_protocol", encrypted.map(|encrypted| encrypted.protocol))
        .maybe_text("ssl_cipher_suite", encrypted.map(|encrypted| encrypted.cipher_suite.as_str()));
    match details.version {
        Some(version) => row.int("protocol_version", version as i32),
        None => row,
    }
}

#[cfg(test)]
mod tests {
    use tls::EncryptionInfo;

    use super::*;
    use crate::machine;

    #[test]
    fn connections_tell_how_they_are_encrypted() {
        let connection = ConnectionStats::new(machine::address());
        let shown = |column: &str| row(&connection, None).get(column).map(|value| value.to_vec());
        assert_eq!(
            [shown("ssl_enabled"), shown("ssl_protocol"), shown("ssl_cipher_suite")],
            [Some(vec![0]), None, None]
        );
        let cipher_suite = "TLS_AES_256_GCM_SHA384".to_owned();
        connection.encrypted.set(EncryptionInfo { protocol: "TLSv1.3", cipher_suite }).expect("set once");
        assert_eq!(shown("ssl_enabled"), Some(vec![1]));
        assert_eq!(shown("ssl_protocol"), Some(b"TLSv1.3".to_vec()));
        assert_eq!(shown("ssl_cipher_suite"), Some(b"TLS_AES_256_GCM_SHA384".to_vec()));
    }

    /// A connection on which nobody has logged in yet shows no user where users log in.
    #[test]
    fn who_has_not_logged_in_is_no_anonymous_user() {
        let connection = ConnectionStats::new(machine::address());
        let user = |nobody| row(&connection, nobody).get("username").map(|value| value.to_vec());
        assert_eq!([user(None), user(Some("anonymous"))], [None, Some(b"anonymous".to_vec())]);
        connection.update(|details| details.user = Some("ada".into()));
        assert_eq!(user(None), Some(b"ada".to_vec()));
    }
}
