//! The ring: its endpoints, their tokens, which part of the data each has, and the replicas of each
//! range.

use serde::{Deserialize, Serialize};

/// Asks all nodes which version of the schema they have.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetSchemaVersions {}

/// A node and the version of its schema.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SchemaVersion {
    /// The address by which other nodes know it.
    pub address: String,
    /// Its port for other nodes.
    pub storage_port: u16,
    /// A UUID with dashes; None: the node has not answered.
    pub version: Option<String>,
}

/// Asks for the ring, and for a keyspace where its data lies.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetRing {
    /// The keyspace; None: ownership is that of the users' keyspaces if all have the same
    /// replication, and ranges are left out.
    pub keyspace: Option<String>,
}

/// The ring as the asked node sees it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RingInfo {
    /// All endpoints in the order of their addresses.
    pub endpoints: Vec<EndpointInfo>,
    /// Why the endpoints' share of the data is not known; None: it is known.
    pub note: Option<String>,
    /// The ranges of the keyspace in the order of the ring, the range that wraps around the end of
    /// the ring first.
    pub ranges: Vec<RangeInfo>,
}

/// An endpoint of the ring.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct EndpointInfo {
    /// The address by which other nodes know it.
    pub address: String,
    /// Its port for other nodes.
    pub storage_port: u16,
    /// The address that clients are told to connect to.
    pub rpc_address: String,
    /// Its port of the native protocol.
    pub native_port: u16,
    /// Its host id, a UUID with dashes.
    pub host_id: String,
    /// Its data center.
    pub data_center: String,
    /// Its rack.
    pub rack: String,
    /// Whether the asked node takes it for alive.
    pub is_up: bool,
    /// Its state: whether it owns its tokens, joins, leaves or moves.
    pub state: EndpointState,
    /// Bytes of its live SSTables; None: not known to the asked node.
    pub load: Option<u64>,
    /// The version of Cassandra that it answers as; None: not known.
    pub release_version: Option<String>,
    /// The version of its schema, a UUID with dashes; None: not known.
    pub schema_version: Option<String>,
    /// Its tokens in ascending order.
    pub tokens: Vec<i64>,
    /// The share of the data that it has a copy of, 0 to 1; None: not known, see
    /// [`RingInfo::note`].
    pub owns: Option<f64>,
}

/// The state of an endpoint in the ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum EndpointState {
    /// The node owns its tokens.
    Normal,
    /// The node hands its tokens to others and leaves.
    Leaving,
    /// The node is about to own its tokens.
    Joining,
    /// The node changes its tokens.
    Moving,
}

impl EndpointState {
    /// nodetool's word for the state. Its first letter is that of `nodetool status`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Leaving => "Leaving",
            Self::Joining => "Joining",
            Self::Moving => "Moving",
        }
    }
}

/// A range of tokens and who holds it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RangeInfo {
    /// The token before the first of the range.
    pub start: i64,
    /// The last token of the range.
    pub end: i64,
    /// The replicas, as positions in [`RingInfo::endpoints`]; the primary replica first.
    pub replicas: Vec<usize>,
}

impl RingInfo {
    /// Names of the data centers in alphabetical order, each with its endpoints.
    pub fn by_data_center(&self) -> Vec<(&str, Vec<&EndpointInfo>)> {
        let mut names: Vec<&str> = self.endpoints.iter().map(|endpoint| endpoint.data_center.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let of = |name| self.endpoints.iter().filter(|endpoint| endpoint.data_center == name).collect();
        names.into_iter().map(|name| (name, of(name))).collect()
    }

    /// Every token with its owner, in ascending order.
    pub fn tokens(&self) -> Vec<(i64, &EndpointInfo)> {
        let mut tokens: Vec<_> = self.endpoints.iter().flat_map(tokens_of).collect();
        tokens.sort_by_key(|(token, _)| *token);
        tokens
    }
}

fn tokens_of(endpoint: &EndpointInfo) -> impl Iterator<Item = (i64, &EndpointInfo)> {
    endpoint.tokens.iter().map(move |token| (*token, endpoint))
}

impl EndpointInfo {
    /// How nodetool names the endpoint: its address, with `print_port` also its storage port.
    pub fn name(&self, print_port: bool) -> String {
        if print_port { join(&self.address, self.storage_port) } else { self.address.clone() }
    }

    /// Address and port for clients, or the address alone.
    pub fn native_name(&self, print_port: bool) -> String {
        if print_port { join(&self.rpc_address, self.native_port) } else { self.rpc_address.clone() }
    }
}

pub(crate) fn join(address: &str, port: u16) -> String {
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}
