//! The session of the driver.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use scylla::client::PoolSize;
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::cluster::metadata::Peer;
use scylla::policies::host_filter::HostFilter;
use scylla::policies::load_balancing::DefaultPolicy;
use scylla::policies::retry::FallthroughRetryPolicy;
use scylla::statement::{Consistency, SerialConsistency};

use crate::Result;
use crate::settings::Settings;
use crate::settings::connection::{Compression, Connection};
use crate::tunnel::Tunnel;

/// Longest wait for an answer; an operation without one by then has failed.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Name and version of the server.
#[derive(Clone, serde::Serialize)]
pub struct Server {
    pub cluster: String,
    pub version: String,
}

/// Asks the connected node for its name and version.
pub async fn server(session: &Session) -> Result<Server> {
    let query = "SELECT cluster_name, release_version FROM system.local";
    let answer = session.query_unpaged(query, ()).await?.into_rows_result()?;
    let (cluster, version) = answer.first_row::<(String, String)>()?;
    Ok(Server { cluster, version })
}

/// Connects. The driver retries nothing, because this program counts the attempts.
pub async fn connect(settings: &Settings) -> Result<Session> {
    let connection = &settings.connection;
    let hosts: Vec<String> = connection.hosts.iter().map(|host| address(host, connection.port)).collect();
    let mut builder = SessionBuilder::new()
        .pool_size(PoolSize::PerHost(std::num::NonZeroUsize::new(connection.connections).ok_or("no connections")?))
        .default_execution_profile_handle(profile(settings).into_handle())
        .compression(connection.compression.map(|kind| match kind {
            Compression::Lz4 => scylla::frame::Compression::Lz4,
            Compression::Snappy => scylla::frame::Compression::Snappy,
        }));
    if let Some((user, password)) = &connection.login {
        builder = builder.user(user, password);
    }
    if connection.whitelist {
        builder = builder.host_filter(Arc::new(NodeAllowList { nodes: resolve(&hosts).await? }));
    }
    builder = match &connection.transport {
        None => builder.known_nodes(&hosts),
        Some(transport) => {
            let tunnel = Arc::new(Tunnel::open(transport, connection.port)?);
            for node in resolve(&hosts).await? {
                builder = builder.known_node_addr(tunnel.reach(node).await?);
            }
            builder.address_translator(tunnel)
        }
    };
    let session = builder.build().await.map_err(|error| unreachable(connection, &error))?;
    Ok(session)
}

async fn resolve(hosts: &[String]) -> Result<Vec<SocketAddr>> {
    let mut nodes = Vec::new();
    for host in hosts {
        nodes.extend(tokio::net::lookup_host(host).await.map_err(|error| format!("{host}: {error}"))?);
    }
    Ok(nodes)
}

/// Allows the nodes of the command line and no others.
struct NodeAllowList {
    nodes: Vec<SocketAddr>,
}

impl HostFilter for NodeAllowList {
    fn accept(&self, peer: &Peer) -> bool {
        self.nodes.iter().any(|node| node.ip() == peer.address.ip())
    }
}

fn address(host: &str, port: u16) -> String {
    match host.rsplit_once(':') {
        // host:port, but not an IPv6 address without brackets
        Some((before, after)) if after.parse::<u16>().is_ok() && (!before.contains(':') || before.ends_with(']')) => {
            host.to_owned()
        }
        _ if host.contains(':') => format!("[{host}]:{port}"),
        _ => format!("{host}:{port}"),
    }
}

fn unreachable(connection: &Connection, error: &dyn std::error::Error) -> String {
    let hosts = connection.hosts.join(", ");
    // in version 1.3 of TLS, a node refuses a client without certificate only after the handshake
    let hint = match &connection.transport {
        Some(transport) if transport.identity.is_none() => {
            " (a node that wants a certificate needs -transport keystore=)"
        }
        _ => "",
    };
    format!("no connection to {hosts} (port {}): {error}{hint}", connection.port)
}

fn profile(settings: &Settings) -> ExecutionProfile {
    let mut balancing = DefaultPolicy::builder().token_aware(true);
    if let Some(datacenter) = &settings.connection.datacenter {
        balancing = balancing.prefer_datacenter(datacenter.clone()).permit_dc_failover(false);
    }
    let serial = match settings.load.serial {
        Consistency::LocalSerial => SerialConsistency::LocalSerial,
        _ => SerialConsistency::Serial,
    };
    ExecutionProfile::builder()
        .consistency(settings.load.consistency)
        .serial_consistency(Some(serial))
        .request_timeout(Some(TIMEOUT))
        .retry_policy(Arc::new(FallthroughRetryPolicy::new()))
        .load_balancing_policy(balancing.build())
        .build()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_host_gets_the_port_unless_it_has_one() {
        for (host, expected) in [
            ("a", "a:9042"),
            ("a:9", "a:9"),
            ("127.0.0.1", "127.0.0.1:9042"),
            ("::1", "[::1]:9042"),
            ("[::1]:7", "[::1]:7"),
        ] {
            assert_eq!(super::address(host, 9042), expected);
        }
    }
}
