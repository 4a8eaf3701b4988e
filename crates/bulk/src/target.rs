//! The target of a load, as one of its nodes tells: the nodes with their tokens, the keyspace's
//! replication, the table.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use cql::ddl::restore::{RestoreOptions, restore};
use env::Env;
use ring::{Endpoint, Replication, Ring, State};
use schema::{Schema, TableId, TableMetadata};
use sstable::MURMUR3_PARTITIONER;
use stdx::Cursor;
use types::Token;
use types::ident::maybe_quote;

use crate::native::{Answer, NativeConnection};
use crate::options::Options;

/// Most nodes of a ring.
const NODES_MAX: usize = 10_000;
/// Most tokens of a node.
const TOKENS_MAX: usize = 100_000;
/// A load waits for so long until all nodes have one schema: as long as drivers do after a change.
/// A node that takes longer, as one that is down, refuses its share by itself.
const AGREEMENT_MAX: Duration = Duration::from_secs(10);
/// The pause between two looks at the nodes' schemas.
const AGREEMENT_PAUSE: Duration = Duration::from_millis(200);
/// The port on which nodes listen for each other, where the ring does not say.
const STORAGE_PORT: u16 = 7000;

/// The target of a load.
pub(crate) struct Target {
    /// The nodes; the local one is that which was asked. The keyspace is placed among them.
    pub ring: Ring,
    /// The table.
    pub table: Arc<TableMetadata>,
}

/// Asks one node for everything. Err: a sentence.
pub(crate) async fn learn(env: &Env, options: &Options) -> Result<Target, String> {
    let mut connection = options.access.open(env).await?;
    let ring = learn_ring(&mut connection, options.storage_port).await?;
    await_agreement(env, &mut connection).await?;
    let (schema, replication) = learn_keyspace(env, &mut connection, &options.keyspace).await?;
    let table = schema.table(&options.keyspace, &options.table);
    let table = table.ok_or_else(|| format!("there is no table {}.{} in the ring", options.keyspace, options.table))?;
    let ring = ring.with_keyspaces([(options.keyspace.clone(), Ok(replication))]);
    Ok(Target { ring, table: Arc::clone(table) })
}

async fn learn_ring(connection: &mut NativeConnection, storage_port: Option<u16>) -> Result<Ring, String> {
    let of_local = "SELECT partitioner, broadcast_address, broadcast_port, data_center, rack, tokens, host_id \
                    FROM system.local";
    let local = connection.ask(of_local).await?;
    let partitioner = local.text(0, "partitioner").unwrap_or_default();
    if partitioner != MURMUR3_PARTITIONER {
        return Err(format!("the ring's partitioner is {partitioner}; only rows of {MURMUR3_PARTITIONER} are loaded"));
    }
    let node = connection.node();
    let endpoint = endpoint(&local, 0, ("broadcast_address", "broadcast_port"), storage_port)?;
    let endpoint = endpoint.ok_or_else(|| format!("{node} owns no tokens: ask a member of the ring"))?;
    let of_peers = "SELECT peer, peer_port, data_center, rack, tokens, host_id FROM system.peers_v2";
    let peers = connection.ask(of_peers).await?;
    if peers.rows.len() > NODES_MAX {
        return Err(format!("the ring has {} nodes, the limit is {NODES_MAX}", peers.rows.len()));
    }
    let mut endpoints = vec![endpoint];
    for row in 0..peers.rows.len() {
        // a node on its way in owns nothing yet; its rows come to it by its own streams
        endpoints.extend(self::endpoint(&peers, row, ("peer", "peer_port"), storage_port)?);
    }
    Ok(Ring::new(endpoints, ring::EndpointId(0)))
}

/// Waits until all nodes have the schema of the one that is asked, [`AGREEMENT_MAX`] at most: a
/// node refuses files of a table that it has not heard of yet.
async fn await_agreement(env: &Env, connection: &mut NativeConnection) -> Result<(), String> {
    let until = env.now().plus(AGREEMENT_MAX);
    loop {
        let local = connection.ask("SELECT schema_version FROM system.local").await?;
        let peers = connection.ask("SELECT schema_version FROM system.peers_v2").await?;
        let version = local.value(0, "schema_version");
        let agree = (0..peers.rows.len()).all(|row| peers.value(row, "schema_version") == version);
        if agree || env.now() >= until {
            return Ok(());
        }
        env.sleep(AGREEMENT_PAUSE).await;
    }
}

/// A node of an answer; None: it owns no tokens.
fn endpoint(
    answer: &Answer,
    row: usize,
    (address, port): (&str, &str),
    storage_port: Option<u16>,
) -> Result<Option<Endpoint>, String> {
    let wrong = |what: &str| format!("the ring's table of nodes has no {what}");
    let Some(tokens) = answer.value(row, "tokens") else { return Ok(None) };
    let tokens = tokens_of(tokens)?;
    if tokens.is_empty() {
        return Ok(None);
    }
    let ip = answer.value(row, address).and_then(|bytes| ip_of(bytes)).ok_or_else(|| wrong(address))?;
    let told = answer.value(row, port).and_then(|bytes| Cursor::new(bytes).i32().ok());
    let told = told.and_then(|port| u16::try_from(port).ok());
    let address = SocketAddr::new(ip, storage_port.or(told).unwrap_or(STORAGE_PORT));
    let host_id = answer.value(row, "host_id").and_then(|bytes| bytes[..].try_into().ok());
    Ok(Some(Endpoint {
        address,
        native: address,
        host_id: host_id.ok_or_else(|| wrong("host id"))?,
        data_center: answer.text(row, "data_center").ok_or_else(|| wrong("data center"))?,
        rack: answer.text(row, "rack").ok_or_else(|| wrong("rack"))?,
        tokens,
        is_up: true,
        state: State::Normal,
    }))
}

fn ip_of(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Some(IpAddr::from(four));
    }
    <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from)
}

/// The tokens of a set of texts, ascending.
fn tokens_of(set: &[u8]) -> Result<Vec<Token>, String> {
    let wrong = || "the tokens of a node cannot be read".to_owned();
    let mut cursor = Cursor::new(set);
    let count = cursor.i32().ok().and_then(|count| usize::try_from(count).ok()).ok_or_else(wrong)?;
    if count > TOKENS_MAX {
        return Err(format!("a node has {count} tokens, the limit is {TOKENS_MAX}"));
    }
    let mut tokens = BTreeSet::new();
    for _ in 0..count {
        let text = cursor.int_bytes().ok().flatten().and_then(|bytes| std::str::from_utf8(bytes).ok());
        tokens.insert(Token(text.and_then(|text| text.parse().ok()).ok_or_else(wrong)?));
    }
    Ok(tokens.into_iter().collect())
}

/// The keyspace's schema and where its rows lie.
async fn learn_keyspace(
    env: &Env,
    connection: &mut NativeConnection,
    keyspace: &str,
) -> Result<(Schema, Replication), String> {
    let described = connection.ask(&format!("DESCRIBE KEYSPACE {} WITH INTERNALS", maybe_quote(keyspace))).await;
    let described = described.map_err(|why| format!("the ring does not describe keyspace {keyspace}: {why}"))?;
    let statements = (0..described.rows.len()).filter_map(|row| described.text(row, "create_statement"));
    let text: String = statements.map(|statement| statement + "\n").collect();
    let restoring = RestoreOptions {
        keyspace: Some(keyspace.to_owned()),
        now_micros: env.clock.now_micros(),
        id_of: &TableId::of_system_table,
    };
    let restored = restore(&text, &restoring, Schema::default());
    let schema = restored.map_err(|error| format!("the schema of {keyspace}: {error}"))?.schema;
    let known = schema.keyspace(keyspace).ok_or_else(|| format!("there is no keyspace {keyspace} in the ring"))?;
    let replication = Replication::parse(&known.replication.class, &known.replication.options);
    let replication = replication.map_err(|error| format!("the replication of {keyspace}: {error}"))?;
    match replication {
        Replication::Local => Err(format!("{keyspace} is a keyspace of each node alone: nothing is loaded into it")),
        replication => Ok((schema, replication)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(tokens: &[&str]) -> Vec<u8> {
        let mut set = Vec::new();
        stdx::put_i32(&mut set, tokens.len() as i32);
        tokens.iter().for_each(|token| stdx::put_int_bytes(&mut set, Some(token.as_bytes())));
        set
    }

    #[test]
    fn tokens_of_a_node_ascend() {
        assert_eq!(tokens_of(&set(&["5", "-9223372036854775808", "17"])).unwrap(), [i64::MIN, 5, 17].map(Token));
        assert!(tokens_of(&set(&["x"])).is_err());
        assert!(tokens_of(&[0x7f, 0xff, 0xff, 0xff]).is_err());
    }
}
