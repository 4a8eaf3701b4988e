//! The node itself, its keyspaces, its end.

use serde::{Deserialize, Serialize};

use super::CacheInfo;

/// Asks for the node itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetNode {}

/// Asks for all stored keyspaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetKeyspaces {}

/// Asks for the path of the file with the token that verbs need that change something. None: the
/// node has no such file, and refuses them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetTokenFile {}

/// Sends clients away, refuses writes from now on and flushes all tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Drain {}

/// Closes the port of the native protocol, or opens it again. The answer comes when that is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum TransportChange {
    /// No client can connect, and connections are closed when their requests in flight are
    /// answered.
    Close {
        /// Requests in flight are dropped, not answered.
        force: bool,
    },
    /// Clients can connect again.
    Open,
}

/// The node itself.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct NodeInfo {
    /// Host id, a UUID with dashes.
    pub host_id: String,
    /// Name of the cluster (`cluster_name`).
    pub cluster_name: String,
    /// The version of Cassandra that the node answers as.
    pub release_version: String,
    /// The version of Helenus.
    pub helenus_version: String,
    /// Full class name of the snitch.
    pub snitch: String,
    /// Whether replicas are ordered by their latencies (`dynamic_snitch`).
    pub dynamic_snitch: bool,
    /// Full class name of the partitioner.
    pub partitioner: String,
    /// Data center.
    pub data_center: String,
    /// Rack.
    pub rack: String,
    /// The address by which other nodes know this node (`broadcast_address`).
    pub address: String,
    /// Port for other nodes (`storage_port`).
    pub storage_port: u16,
    /// The address that clients are told to connect to (`broadcast_rpc_address`).
    pub rpc_address: String,
    /// Port of the native protocol.
    pub native_port: u16,
    /// Whether the node talks with other nodes.
    pub gossip_active: bool,
    /// Whether clients can connect.
    pub native_transport_active: bool,
    /// Mode of operation: STARTING, NORMAL, JOINING, JOINING_FAILED, LEAVING, DECOMMISSION_FAILED,
    /// DECOMMISSIONED, MOVING, DRAINING, DRAINED.
    pub mode: String,
    /// Version of the schema, a UUID with dashes.
    pub schema_version: String,
    /// Format and version of new SSTables: `bti-da`.
    pub sstable_version: String,
    /// Bytes of live SSTables.
    pub load: u64,
    /// Bytes of the rows in live SSTables without compression.
    pub uncompressed_load: u64,
    /// When this start of the node began; seconds since 1970.
    pub generation: i64,
    /// Seconds since the start.
    pub uptime_seconds: u64,
    /// Resident memory of the process.
    pub memory_used: u64,
    /// The memory budget (`--memory`).
    pub memory_max: u64,
    /// Errors that no request reported: panics of workers, and tries of flushes and compactions
    /// that failed.
    pub exceptions: u64,
    /// The cache of uncompressed chunks.
    pub chunk_cache: CacheInfo,
    /// The cache of places of partitions.
    pub key_cache: CacheInfo,
    /// Seconds between two saves of the key cache; 0: it is not saved.
    pub key_cache_save_period: u64,
    /// The cache of heads of partitions.
    pub row_cache: CacheInfo,
    /// Seconds between two saves of the row cache; 0: it is not saved.
    pub row_cache_save_period: u64,
    /// Share of data that is repaired, per cent.
    pub percent_repaired: f64,
    /// The node's tokens in ascending order.
    pub tokens: Vec<i64>,
    /// How far the bootstrap is: COMPLETED.
    pub bootstrap_state: String,
}

/// A keyspace.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeyspaceInfo {
    /// Its name.
    pub name: String,
    /// Class of the replication strategy, without package.
    pub replication_class: String,
    /// Options of the replication strategy without the class.
    pub replication_options: Vec<(String, String)>,
    /// Names of its tables.
    pub tables: Vec<String>,
    /// Ids of these tables in the same order: 32 hexadecimal digits each, as in directories' names.
    #[serde(default)]
    pub table_ids: Vec<String>,
}
