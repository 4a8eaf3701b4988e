//! Who this node is: names, host id, tokens, addresses. Found in `system.local`, or made up at the first start, and written there.
//!
//! Agrees with `org.apache.cassandra.db.SystemKeyspace` (`checkHealth`, `persistLocalMetadata`, `getOrInitializeLocalHostId`).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use env::Env;
use rows::{Mutation, Row};
use schema::TableMetadata;
use storage::Engine;
use types::Token;

use crate::clock::TimeUuids;
use crate::error::NodeError;
use crate::system_rows::{self, SystemRow};

/// What we answer for Cassandra's version.
pub const RELEASE_VERSION: &str = "5.0.8";
/// The CQL version.
pub const CQL_VERSION: &str = "3.4.7";
/// The newest stable protocol version.
pub const NATIVE_PROTOCOL_VERSION: &str = "5";
/// The only partitioner.
pub const PARTITIONER: &str = "org.apache.cassandra.dht.Murmur3Partitioner";

/// What the configuration says of the node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IdentityOptions {
    /// cluster_name
    pub cluster_name: String,
    /// The directory's name of the cluster counts: the configuration has none.
    pub adopt_cluster_name: bool,
    /// num_tokens
    pub num_tokens: u32,
    /// The directory's tokens count, however many: the configuration has no number.
    pub adopt_tokens: bool,
    /// initial_token; empty: random ones
    pub initial_tokens: Vec<i64>,
    /// listen_address and storage_port
    pub listen: SocketAddr,
    /// broadcast_address and storage_port
    pub broadcast: SocketAddr,
    /// broadcast_rpc_address and the native transport's port: where drivers connect to
    pub native: SocketAddr,
}

/// Who this node is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Of the cluster.
    pub cluster_name: String,
    /// For ever.
    pub host_id: [u8; 16],
    /// For ever, in their order.
    pub tokens: Vec<Token>,
    /// `datacenter1` unless the directory says otherwise.
    pub data_center: String,
    /// `rack1` unless the directory says otherwise.
    pub rack: String,
    /// Seconds since 1970 of this start.
    pub generation: u32,
    /// Where it listens for nodes.
    pub listen: SocketAddr,
    /// What it tells nodes.
    pub broadcast: SocketAddr,
    /// What it tells drivers.
    pub native: SocketAddr,
}

/// `system.local`.
pub(crate) fn local_table(engine: &Engine) -> Arc<TableMetadata> {
    Arc::clone(engine.schema().table("system", "local").expect("a built-in table"))
}

impl Identity {
    /// As the directory has it; where it has none, a new one.
    pub(crate) fn find(
        engine: &Engine,
        env: &Env,
        uuids: &TimeUuids,
        options: IdentityOptions,
    ) -> Result<Self, NodeError> {
        let table = local_table(engine);
        let saved = system_rows::read(engine, &table, Some(system_rows::partition_key(&table, &[b"local"])))?;
        let saved = saved.into_iter().next().map(|(_, row)| row);
        let saved_text = |name: &str| saved.as_ref().and_then(|row| system_rows::text(&table, row, name));
        let cluster_name = match saved_text("cluster_name") {
            Some(name) if name != options.cluster_name && !options.adopt_cluster_name => {
                let message = format!("Saved cluster name {name} != configured name {}", options.cluster_name);
                return Err(NodeError::Mismatch(message));
            }
            Some(name) => name,
            None => options.cluster_name.clone(),
        };
        if let Some(partitioner) = saved_text("partitioner").filter(|saved| saved != PARTITIONER) {
            let message = format!("the directory was written with {partitioner}; only {PARTITIONER} is served");
            return Err(NodeError::Mismatch(message));
        }
        let host_id = saved.as_ref().and_then(|row| system_rows::value(&table, row, "host_id"));
        let host_id = host_id.and_then(|bytes| <[u8; 16]>::try_from(bytes.as_ref()).ok());
        let tokens = match saved.as_ref().map(|row| saved_tokens(&table, row)).filter(|tokens| !tokens.is_empty()) {
            Some(tokens) => checked_tokens(tokens, &options)?,
            None => new_tokens(env, &options),
        };
        Ok(Self {
            cluster_name,
            host_id: host_id.unwrap_or_else(|| uuids.random()),
            tokens,
            data_center: saved_text("data_center").unwrap_or_else(|| "datacenter1".to_owned()),
            rack: saved_text("rack").unwrap_or_else(|| "rack1".to_owned()),
            generation: env.clock.now_seconds(),
            listen: options.listen,
            broadcast: options.broadcast,
            native: options.native,
        })
    }

    /// The row of `system.local`.
    pub(crate) fn row(&self, table: &Arc<TableMetadata>, schema_version: [u8; 16], timestamp: i64) -> Mutation {
        let text = |text: &str| Bytes::copy_from_slice(text.as_bytes());
        let port = |address: SocketAddr| i32::from(address.port()).to_be_bytes().to_vec();
        let tokens = self.tokens.iter().map(|token| (Bytes::from(token.0.to_string()), Bytes::new()));
        SystemRow::new(table, &[b"local"], &[], timestamp, None)
            .set("cluster_name", text(&self.cluster_name))
            .set("release_version", text(RELEASE_VERSION))
            .set("cql_version", text(CQL_VERSION))
            .set("native_protocol_version", text(NATIVE_PROTOCOL_VERSION))
            .set("partitioner", text(PARTITIONER))
            .set("data_center", text(&self.data_center))
            .set("rack", text(&self.rack))
            .set("bootstrapped", text("COMPLETED"))
            .set("host_id", self.host_id.to_vec())
            .set("schema_version", schema_version.to_vec())
            .set("gossip_generation", self.generation.to_be_bytes().to_vec())
            .set("rpc_address", inet(self.native.ip()))
            .set("rpc_port", port(self.native))
            .set("broadcast_address", inet(self.broadcast.ip()))
            .set("broadcast_port", port(self.broadcast))
            .set("listen_address", inet(self.listen.ip()))
            .set("listen_port", port(self.listen))
            .set_elements("tokens", tokens)
            .finish()
    }
}

/// An address as an `inet` value.
pub fn inet(address: IpAddr) -> Bytes {
    match address {
        IpAddr::V4(address) => Bytes::copy_from_slice(&address.octets()),
        IpAddr::V6(address) => Bytes::copy_from_slice(&address.octets()),
    }
}

fn saved_tokens(table: &TableMetadata, row: &Row) -> Vec<Token> {
    let parse = |bytes: Bytes| std::str::from_utf8(&bytes).ok()?.parse().ok().map(Token);
    let mut tokens: Vec<Token> = system_rows::elements(table, row, "tokens").into_iter().filter_map(parse).collect();
    tokens.sort();
    tokens
}

/// Tokens are for ever: other ones in the configuration are refused.
fn checked_tokens(saved: Vec<Token>, options: &IdentityOptions) -> Result<Vec<Token>, NodeError> {
    let mut wanted: Vec<Token> = options.initial_tokens.iter().copied().map(Token).collect();
    wanted.sort();
    if wanted.is_empty() && saved.len() != options.num_tokens as usize && !options.adopt_tokens {
        let message = format!("Cannot change the number of tokens from {} to {}", saved.len(), options.num_tokens);
        return Err(NodeError::Mismatch(message));
    }
    if !wanted.is_empty() && wanted != saved {
        return Err(NodeError::Mismatch("Cannot change the tokens that this node has (initial_token)".to_owned()));
    }
    Ok(saved)
}

fn new_tokens(env: &Env, options: &IdentityOptions) -> Vec<Token> {
    let mut tokens: Vec<Token> = options.initial_tokens.iter().copied().map(Token).collect();
    while tokens.len() < options.num_tokens.max(1) as usize {
        let token = Token(env.random.next_u64() as i64);
        if token != Token::MIN && !tokens.contains(&token) {
            tokens.push(token);
        }
    }
    tokens.sort();
    tokens
}
