//! The identity of this node: names, host id, tokens, addresses. Found in `system.local`, or made
//! up at the first start, and written there.
//!
//! Agrees with `org.apache.cassandra.db.SystemKeyspace` (`checkHealth`, `persistLocalMetadata`,
//! `getOrInitializeLocalHostId`).

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
use crate::range_movement_state::BootstrapState;
use crate::system_rows::{self, SystemRow};

/// The version of Cassandra that this node answers with where a client or a node asks for one.
pub const RELEASE_VERSION: &str = "5.0.8";
/// The CQL version.
pub const CQL_VERSION: &str = "3.4.7";
/// The newest stable protocol version.
pub const NATIVE_PROTOCOL_VERSION: &str = "5";
/// The only partitioner.
pub const PARTITIONER: &str = "org.apache.cassandra.dht.Murmur3Partitioner";

/// The parts of the identity that come from the configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IdentityOptions {
    /// cluster_name
    pub cluster_name: String,
    /// The configuration names no cluster, so the name that the directory has counts
    pub adopt_cluster_name: bool,
    /// num_tokens
    pub num_tokens: u32,
    /// The configuration names no number of tokens, so the tokens that the directory has count,
    /// however many
    pub adopt_tokens: bool,
    /// initial_token; empty: random ones
    pub initial_tokens: Vec<i64>,
    /// The host id of the node whose place and address a new one takes; None: the node makes an id
    /// of its own
    pub host_id: Option<[u8; 16]>,
    /// `initial_tokens` and `host_id` are those of the node in whose place a new one stands: they
    /// count for a directory that is no complete member of its ring, whatever the directory has
    pub takes_place: bool,
    /// listen_address and storage_port
    pub listen: SocketAddr,
    /// broadcast_address and storage_port
    pub broadcast: SocketAddr,
    /// broadcast_rpc_address and the native transport's port: the address to which drivers connect
    pub native: SocketAddr,
    /// Data center and rack as the snitch has them; None: those of the directory count, and a new
    /// directory gets Cassandra's usual ones
    pub place: Option<(String, String)>,
    /// The node is to join a ring: a new directory is marked as complete only when the node has
    /// joined
    pub joins: bool,
}

/// The identity of this node: names, host id, tokens, addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The name of the cluster.
    pub cluster_name: String,
    /// The host id. Chosen at the first start, and changed only before the node has joined, if it
    /// takes the place of another node.
    pub host_id: [u8; 16],
    /// The tokens of the node, ascending. Chosen when the host id is; `nodetool move` changes
    /// them, too.
    pub tokens: Vec<Token>,
    /// `datacenter1` unless the directory or the snitch says otherwise.
    pub data_center: String,
    /// `rack1` unless the directory or the snitch says otherwise.
    pub rack: String,
    /// Seconds since 1970 of this start, but more than at the start before: other nodes ignore a
    /// generation that is not greater than the one that they know.
    pub generation: u32,
    /// The directory was a complete member of its ring at an earlier start, or alone
    /// (`system.local.bootstrapped`).
    pub is_bootstrapped: bool,
    /// The node was fetching its data when it was interrupted at an earlier start.
    pub is_interrupted: bool,
    /// The node is to join a ring.
    pub joins: bool,
    /// The address on which the node listens for other nodes.
    pub listen: SocketAddr,
    /// The address at which other nodes are told to reach this node.
    pub broadcast: SocketAddr,
    /// The address at which drivers are told to reach this node.
    pub native: SocketAddr,
}

/// The table `system.local`.
pub(crate) fn local_table(engine: &Engine) -> Arc<TableMetadata> {
    Arc::clone(engine.schema().table("system", "local").expect("a built-in table"))
}

/// The part of the identity that a directory has from earlier starts, here or as Cassandra.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Saved {
    /// Its tokens, ascending; there is one at least.
    pub tokens: Vec<Token>,
    /// How far the node has come on its way into its ring.
    pub state: BootstrapState,
}

impl Saved {
    /// The identity in the directory. None: the directory has no tokens, so the node is new.
    pub fn find(engine: &Engine) -> Result<Option<Self>, NodeError> {
        let table = local_table(engine);
        let rows = system_rows::read(engine, &table, Some(system_rows::partition_key(&table, &[b"local"])))?;
        let saved = rows.first().map(|(_, row)| {
            let state = system_rows::text(&table, row, "bootstrapped");
            let state = state.map_or(BootstrapState::NeedsBootstrap, |text| BootstrapState::parse(&text));
            Self { tokens: saved_tokens(&table, row), state }
        });
        Ok(saved.filter(|saved| !saved.tokens.is_empty()))
    }

    /// Whether the node may still take the place of another: it has not come in yet.
    pub fn is_outside(&self) -> bool {
        matches!(self.state, BootstrapState::NeedsBootstrap | BootstrapState::InProgress)
    }
}

impl Identity {
    /// The identity that the directory has, or else a new one.
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
        let (data_center, rack) = place(saved_text("data_center"), saved_text("rack"), options.place.as_ref())?;
        let generation = saved.as_ref().and_then(|row| system_rows::value(&table, row, "gossip_generation"));
        let generation = generation.and_then(|bytes| <[u8; 4]>::try_from(bytes.as_ref()).ok()).map(u32::from_be_bytes);
        let host_id = saved.as_ref().and_then(|row| system_rows::value(&table, row, "host_id"));
        let host_id = host_id.and_then(|bytes| <[u8; 16]>::try_from(bytes.as_ref()).ok());
        let state = saved_text("bootstrapped").map(|text| BootstrapState::parse(&text));
        let takes_place = options.takes_place && state != Some(BootstrapState::Completed);
        let saved_tokens = saved.as_ref().map(|row| saved_tokens(&table, row)).filter(|tokens| !tokens.is_empty());
        let tokens = match saved_tokens.filter(|_| !takes_place) {
            Some(tokens) => checked_tokens(tokens, &options)?,
            None => new_tokens(env, &options),
        };
        let host_id = if takes_place { options.host_id.or(host_id) } else { host_id.or(options.host_id) };
        if state == Some(BootstrapState::Decommissioned) {
            return Err(NodeError::Mismatch(
                "This node was decommissioned and will not rejoin the ring unless all existing data is removed and the \
                 node is bootstrapped again"
                    .to_owned(),
            ));
        }
        let is_bootstrapped = state == Some(BootstrapState::Completed);
        let is_interrupted = state == Some(BootstrapState::InProgress);
        if is_interrupted && !options.joins {
            tracing::warn!(
                "the node had begun to fetch the data of its ranges in a ring, and is started alone: data is missing"
            );
        }
        Ok(Self {
            cluster_name,
            host_id: host_id.unwrap_or_else(|| uuids.random()),
            tokens,
            data_center,
            rack,
            generation: generation.map_or(0, |saved| saved.saturating_add(1)).max(env.clock.now_seconds()),
            is_bootstrapped,
            is_interrupted,
            joins: options.joins,
            listen: options.listen,
            broadcast: options.broadcast,
            native: options.native,
        })
    }

    /// How far the node is on its way in. A node that does not join has no way to go, unless it was
    /// on one before: started in its ring again, it still has to fetch its data.
    fn bootstrap_state(&self) -> BootstrapState {
        match (self.is_bootstrapped, self.is_interrupted) {
            (true, _) => BootstrapState::Completed,
            (false, true) => BootstrapState::InProgress,
            (false, false) if self.joins => BootstrapState::NeedsBootstrap,
            (false, false) => BootstrapState::Completed,
        }
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
            .set("bootstrapped", text(self.bootstrap_state().text()))
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

/// The place that a node starts with: that of the snitch, which must be the one that the directory
/// has. Its ranges were chosen for that place; in another place the node would be replica of
/// others. Agrees with `StartupChecks.{checkDatacenter,checkRack}`.
fn place(
    data_center: Option<String>,
    rack: Option<String>,
    snitch: Option<&(String, String)>,
) -> Result<(String, String), NodeError> {
    let checked = |what: &str, saved: Option<String>, now: Option<&String>, usual: &str| match (saved, now) {
        (Some(saved), Some(now)) if saved != *now => Err(NodeError::Mismatch(format!(
            "Cannot start node if snitch's {what} ({now}) differs from previous {what} ({saved}). Please fix the snitch \
             configuration, decommission and rebootstrap this node."
        ))),
        (saved, now) => Ok(now.cloned().or(saved).unwrap_or_else(|| usual.to_owned())),
    };
    let data_center = checked("data center", data_center, snitch.map(|(name, _)| name), "datacenter1")?;
    Ok((data_center, checked("rack", rack, snitch.map(|(_, name)| name), "rack1")?))
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

/// A node keeps the tokens that it has: `nodetool move` has changed them since `initial_token` was
/// written. Another number of tokens is refused. Agrees with `StorageService.joinTokenRing`.
fn checked_tokens(saved: Vec<Token>, options: &IdentityOptions) -> Result<Vec<Token>, NodeError> {
    let mut wanted: Vec<Token> = options.initial_tokens.iter().copied().map(Token).collect();
    wanted.sort();
    let count = if wanted.is_empty() { options.num_tokens as usize } else { wanted.len() };
    if saved.len() != count && !(wanted.is_empty() && options.adopt_tokens) {
        let message = format!("Cannot change the number of tokens from {} to {count}", saved.len());
        return Err(NodeError::Mismatch(message));
    }
    if !wanted.is_empty() && wanted != saved {
        tracing::warn!("initial_token names other tokens than this node has; it keeps its own");
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use env::sim::Sim;

    use super::*;
    use crate::testing::{SimNode, periodic};

    /// A directory whose bootstrap was interrupted is started alone. Its next start in the ring
    /// must not take the node for a member that has its data.
    #[test]
    fn a_start_alone_completes_no_bootstrap() {
        let machine = SimNode::new(Duration::from_secs(2));
        let state = |machine: &SimNode| Saved::find(&machine.node.engine).expect("readable").map(|saved| saved.state);
        assert_eq!(state(&machine), Some(BootstrapState::Completed), "it was never on its way into a ring");
        let node = Arc::clone(&machine.node);
        let kept = machine.sim.block_on(async move { node.save_bootstrap_state(BootstrapState::InProgress).await });
        kept.expect("a sound disk");
        let machine = machine.after_power_cut();
        assert_eq!(state(&machine), Some(BootstrapState::InProgress));
    }

    /// The others go by the state and the tokens that this node has told them.
    #[test]
    fn state_and_tokens_are_durable_when_they_are_written() {
        let sim = Sim::new(1);
        let node = periodic(&sim);
        let tokens = [11, 22, 33, 44].map(Token);
        sim.block_on(node.save_tokens(&tokens)).expect("a sound disk");
        sim.block_on(node.save_bootstrap_state(BootstrapState::InProgress)).expect("a sound disk");
        sim.power_cut();
        drop(node);
        let saved = Saved::find(&periodic(&sim).engine).expect("readable").expect("it was written");
        assert_eq!((saved.state, saved.tokens), (BootstrapState::InProgress, tokens.to_vec()));
    }
}
