//! A snapshot that all nodes of the ring take at one time: each table is asked of every node by
//! SNAPSHOT_REQ, which Cassandra's nodes understand too. A node flushes before it links its files.
//!
//! "At one time" is about the time of a flush: nothing stops writes meanwhile, so a write that is
//! acknowledged while the snapshot is taken may be in the snapshots of some replicas only.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use internode::Verb;
use internode::payload::simple::SnapshotRequest;
use membership::Request;

use super::tables::{self, Selection};
use super::{Result, invalid, snapshots};
use crate::node::Node;

/// Tables that one node is asked for at one time. Each costs the node a flush.
const ASKED_MAX: usize = 8;

/// The keyspace of the tables that hold the schema.
const SCHEMA_KEYSPACE: &str = "system_schema";

/// Longest time that a node gets for the snapshot of one table.
const TABLE_TIME_MAX: Duration = Duration::from_secs(600);

/// The share that a node has in the snapshot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SnapshotShare {
    /// The node.
    pub address: SocketAddr,
    /// Tables of which the node has the snapshot.
    pub tables: usize,
    /// Why the node has not taken the snapshot of all tables; None: it has.
    pub failure: Option<String>,
}

/// Takes the snapshot on this node and all others. Tables of keyspaces that a node has for itself
/// are left out, except those of `system_schema`, which are always taken. Otherwise a backup would
/// copy the schema of a later time: a table that was dropped in between would be missing from it,
/// and a restore would drop that table although its rows were saved. Gives every node's share, this
/// one's first.
pub async fn take(node: &Node, name: &str, keyspaces: &[String]) -> Result<Vec<SnapshotShare>> {
    let stores = tables::selected(node, Selection { keyspaces, tables: &[] })?;
    let is_shared = |keyspace: &str| !schema::system::is_local_keyspace(keyspace);
    let mut stores: Vec<_> = stores.into_iter().filter(|store| is_shared(&store.table().keyspace)).collect();
    if stores.is_empty() {
        return invalid("no keyspace that the nodes share is meant".to_owned());
    }
    stores.extend(tables::all(node).into_iter().filter(|store| store.table().keyspace == SCHEMA_KEYSPACE));
    let here = async {
        let taken = snapshots::take(node, name, &stores, false).await;
        let failure = taken.err().map(|error| error.to_string());
        let tables = if failure.is_none() { stores.len() } else { 0 };
        SnapshotShare { address: node.identity.broadcast, tables, failure }
    };
    let ring = node.ring();
    let mut elsewhere = FuturesUnordered::new();
    for peer in ring.peers() {
        let names = stores.iter().map(|store| (store.table().keyspace.clone(), store.table().name.clone()));
        elsewhere.push(of_peer(node, peer.address, peer.is_up, name, names.collect()));
    }
    let others = async {
        let mut shares = BTreeMap::new();
        while let Some(share) = elsewhere.next().await {
            shares.insert(share.address, share);
        }
        shares
    };
    let (mine, others) = tokio::join!(here, others);
    Ok(std::iter::once(mine).chain(others.into_values()).collect())
}

/// The share of another node.
async fn of_peer(
    node: &Node,
    address: SocketAddr,
    is_up: bool,
    tag: &str,
    tables: Vec<(String, String)>,
) -> SnapshotShare {
    let mut share = SnapshotShare { address, tables: 0, failure: None };
    let (Some(messenger), true) = (node.messenger(), is_up) else {
        share.failure = Some("it is down".to_owned());
        return share;
    };
    let ask = |(keyspace, table): (String, String)| async move {
        let request = SnapshotRequest { keyspace, table, tag: tag.to_owned(), clear: false };
        let payload = request.encode().map_err(|error| error.to_string())?;
        let answer = messenger.request(address, Request::new(Verb::SnapshotReq, payload, TABLE_TIME_MAX)).await;
        let SnapshotRequest { keyspace, table, .. } = request;
        answer.map(drop).map_err(|error| format!("{keyspace}.{table}: {error:?} (its log says more)"))
    };
    let mut answers = futures_util::stream::iter(tables).map(ask).buffer_unordered(ASKED_MAX);
    while let Some(answer) = answers.next().await {
        match answer {
            Ok(()) => share.tables += 1,
            Err(why) => share.failure = share.failure.or(Some(why)),
        }
    }
    share
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use env::sim::{Fault, Op};

    use super::*;
    use crate::testing::SimRing;

    fn take_on(ring: &SimRing, name: &str) -> Vec<SnapshotShare> {
        let node = Arc::clone(ring.node(0));
        ring.world.block_on(async move { take(&node, name, &["ks".to_owned()]).await }).expect("a keyspace")
    }

    #[test]
    fn all_nodes_flush_and_link_and_a_name_is_used_once() {
        let ring = SimRing::new(7, &["dc1", "dc1", "dc1"]);
        ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "2")]);
        for machine in 0..3 {
            ring.apply_alone(machine, &[ring.row("ks", 1, 1, 10, 1_000)]);
        }
        let shares = take_on(&ring, "monday");
        assert!(shares.iter().all(|share| share.failure.is_none() && share.tables > 0), "{shares:?}");
        let addresses: Vec<_> = shares.iter().map(|share| share.address).collect();
        assert_eq!(addresses, [0, 1, 2].map(|machine| ring.address(machine)));
        for machine in 0..3 {
            let taken = snapshots::list(ring.node(machine)).expect("the disk is sound");
            assert!(taken.iter().any(|one| one.tag == "monday" && one.keyspace == "ks" && one.size > 0), "{taken:?}");
            let is_of_schema = |one: &snapshots::Snapshot| one.keyspace == "system_schema" && one.table == "tables";
            assert!(taken.iter().any(is_of_schema), "{taken:?}");
        }
        assert!(take_on(&ring, "monday").iter().all(|share| share.failure.is_some()));
    }

    #[test]
    fn a_snapshot_that_the_disk_refuses_leaves_nothing_and_keyspaces_are_cleared_by_name() {
        let ring = SimRing::new(8, &["dc1"]);
        ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "1")]);
        ring.apply_alone(0, &[ring.row("ks", 1, 1, 10, 1_000)]);
        ring.world.disk(0).inject(Fault::next(Op::Write, "manifest.json"));
        let listed = || snapshots::list(ring.node(0)).expect("the disk is sound");
        assert!(take_on(&ring, "monday")[0].failure.is_some());
        assert_eq!(listed(), []);
        let shares = take_on(&ring, "monday");
        assert!(shares[0].failure.is_none(), "{shares:?}");
        let clear = |keyspace: &str| snapshots::clear(ring.node(0), Some("monday"), &[keyspace.to_owned()]);
        clear("not there").expect("as in Cassandra");
        assert!(listed().iter().any(|one| one.keyspace == "ks"));
        clear("ks").expect("cleared");
        assert!(!listed().is_empty() && listed().iter().all(|one| one.keyspace != "ks"));
    }
}
