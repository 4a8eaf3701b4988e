//! Nodes of a simulated ring come, go, move and are removed; afterwards each replica has what was
//! acknowledged, whatever was killed on the way.

mod bootstraps;
mod changing_nodes;
mod deaths;
mod decommissions;
mod indexes;
mod moves;
mod rebuilds;
mod removals;
mod replacements;
mod schema_changes;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use env::LocalFutureFactory;
use env::sim::{ENOSPC, Fault, Op};
use ring::State;
use types::Consistency;

use super::{BootstrapState, Mode};
use crate::node::Node;
use crate::operations::sstables::{self, ImportOptions, Outcome, VerifyOptions, Work};
use crate::operations::tables::{self, Selection};
use crate::operations::{OperationError, gossip, state};
use crate::range_movement_state::MovementSettings;
use crate::range_movements::rebuild::{self, RebuildOptions};
use crate::range_movements::{cleanup, decommission, relocation, removal};
use crate::testing::SimRing;

const KEYS: i32 = 30;

/// The longest time that a movement takes in these tests, and nodes to agree on its outcome.
const PATIENCE: Duration = Duration::from_secs(300);

/// A ring of three of which the first `started` are there, with rows of two copies.
fn ring_of(seed: u64, started: usize) -> SimRing {
    ring_among(seed, 3, started)
}

/// A ring of so many machines, of which the first `started` are there, with rows of two copies.
fn ring_among(seed: u64, machines: usize, started: usize) -> SimRing {
    let mut ring = SimRing::begun(seed, &vec!["dc1"; machines], started);
    ring.movements = MovementSettings { ring_delay: Duration::from_secs(10), ..MovementSettings::default() };
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "2")]);
    write(&ring, 0, 0, Consistency::All);
    ring
}

/// A ring of three whose third node is dead, and is being removed by the first.
fn ring_with_a_removal(seed: u64) -> SimRing {
    let mut ring = ring_of(seed, 3);
    let host_id = types::literal::print_uuid(&ring.node(2).identity.host_id);
    ring.kill(2);
    ring.agree();
    beside(&ring, 0, move |node| async move { removal::remove(&node, &host_id).await.expect("removed") });
    ring
}

/// Writes a row of each partition with this clustering.
fn write(ring: &SimRing, through: usize, c: i32, level: Consistency) {
    for k in 0..KEYS {
        let timestamp = 1_000 + i64::from(c);
        ring.write(through, vec![ring.row("ks", k, c, k * 10 + c, timestamp)], level).expect("acknowledged");
    }
}

/// Runs until every living node sees these machines as members in the state NORMAL, and no other.
fn agree_on_members(ring: &SimRing, members: &[usize]) {
    let sees = |node: &Arc<Node>| {
        let snapshot = node.ring();
        let mut seen: Vec<_> = snapshot
            .endpoints()
            .iter()
            .filter(|endpoint| endpoint.state == State::Normal && !endpoint.tokens.is_empty())
            .map(|endpoint| endpoint.address)
            .collect();
        seen.sort();
        seen == members.iter().map(|machine| ring.address(*machine)).collect::<Vec<_>>()
    };
    let agreed = ring.world.run_until(PATIENCE, || members.iter().all(|machine| sees(ring.node(*machine))));
    let seen: Vec<_> = members.iter().map(|machine| ring.node(*machine).ring().endpoints().to_vec()).collect();
    assert!(agreed, "seed {}: {members:?} are the members: {seen:#?}", ring.world.seed());
}

/// Asserts that each replica has the rows with these clusterings.
fn check_replicas(ring: &SimRing, clusterings: &[i32]) {
    let living = ring.living();
    let snapshot = ring.node(living[0]).ring();
    let placement = snapshot.placement("ks").expect("placed");
    for k in 0..KEYS {
        let token = types::DecoratedKey::new(bytes::Bytes::copy_from_slice(&k.to_be_bytes())).token;
        assert_eq!(placement.natural(token).len(), 2, "two copies");
        assert!(placement.pending(token).is_empty(), "nothing moves any more");
        for id in placement.natural(token) {
            let address = snapshot.endpoint(*id).address;
            let machine = living.iter().copied().find(|machine| ring.address(*machine) == address);
            let machine = machine.expect("a replica lives");
            let expected: Vec<_> = clusterings.iter().map(|c| (*c, k * 10 + c)).collect();
            assert_eq!(ring.stored(machine, "ks", k), expected, "seed {}: {k} on {address}", ring.world.seed());
        }
    }
}

/// Does something on a machine beside what the test does.
fn beside<F: Future<Output = ()> + 'static>(
    ring: &SimRing,
    machine: usize,
    act: impl FnOnce(Arc<Node>) -> F + Send + 'static,
) {
    let node = Arc::clone(ring.node(machine));
    let make: LocalFutureFactory = Box::new(move || Box::pin(act(node)));
    drop(ring.world.env(machine).tasks.spawn_local_worker("movement", make));
}

fn saved(ring: &SimRing, machine: usize) -> Option<BootstrapState> {
    ring.saved_bootstrap_state(machine).map(|text| BootstrapState::parse(&text))
}

/// Partitions that another node has taken over are no fault by themselves. A verification names
/// them where that is asked for, and an import takes them where it is told to.
#[test]
fn partitions_of_other_nodes_are_named() {
    let mut ring = ring_of(1, 2);
    ring.start(2);
    agree_on_members(&ring, &[0, 1, 2]);
    let node = Arc::clone(ring.node(0));
    ring.world.block_on(async move {
        let (all, ks) = (Selection { keyspaces: &[], tables: &[] }, ["ks".to_owned()]);
        let of_ks = Selection { keyspaces: &ks, tables: &[] };
        tables::flush(&node, all).await.expect("flushed");
        let store = node.engine.table_by_name("ks", "t").expect("open");
        let directory = storage::snapshot::take(&node.engine, &store, "before").expect("taken");
        let verify = async |check_tokens| {
            let options = VerifyOptions { extended: true, ..VerifyOptions::default() };
            sstables::work(&node, of_ks, 1, Work::Verify { options, check_tokens }).await
        };
        let named = |result: Result<Outcome, OperationError>| match result {
            Err(OperationError::Failed(why)) => why.contains("which other nodes hold"),
            _ => false,
        };
        assert_eq!(verify(false).await, Ok(Outcome::default()));
        assert!(named(verify(true).await));
        cleanup::cleanup(&node, all, 1).await.expect("cleaned up");
        assert_eq!(verify(true).await, Ok(Outcome::default()));
        let directories = vec![directory.clone()];
        let options = ImportOptions { directories, copy: true, verify: true, ..ImportOptions::default() };
        let import = |verify_tokens| sstables::import(&node, "ks", "t", &options, verify_tokens);
        assert_eq!(import(true), Ok(vec![directory.display().to_string()]), "left out");
        assert_eq!(verify(true).await, Ok(Outcome::default()));
        assert_eq!(import(false), Ok(Vec::new()));
        assert!(named(verify(true).await));
    });
}

/// A full disk does not fail a movement at its end: the outcome is written when there is room.
#[test]
fn the_outcome_of_a_movement_waits_for_room_in_the_log() {
    let ring = ring_of(48, 2);
    ring.world.disk(0).inject(Fault { times: u64::MAX, errno: ENOSPC, ..Fault::next(Op::Write, "CommitLog") });
    let outcome = Arc::new(Mutex::new(None));
    let told = Arc::clone(&outcome);
    beside(&ring, 0, move |node| async move {
        let kept = node.save_bootstrap_state(BootstrapState::Completed).await;
        *told.lock().expect("no panic inside") = Some(kept);
    });
    ring.world.run_until(Duration::from_secs(5), || false);
    assert_eq!(*outcome.lock().expect("no panic inside"), None);
    ring.world.disk(0).heal();
    let is_kept = || *outcome.lock().expect("no panic inside") == Some(Ok(()));
    assert!(ring.world.run_until(PATIENCE, is_kept), "there is room");
}

/// A node that joins, moves or leaves does not fall silent: the others would forget that, and write
/// past it.
#[test]
fn gossip_goes_on_while_a_node_changes_its_place() {
    let reaches = |ring: &SimRing, mode: Mode| {
        assert!(ring.world.run_until(PATIENCE, || ring.node(2).mode() == mode), "{mode}");
    };
    let refuses = |ring: &SimRing| {
        let Err(OperationError::Invalid(why)) = gossip::set_active(ring.node(2), false, false) else {
            panic!("it is {}", ring.node(2).mode())
        };
        let expected =
            "Unable to stop gossip because the node is not in the normal state. Try to stop the node instead.";
        assert_eq!((why.as_str(), gossip::is_active(ring.node(2))), (expected, Some(true)));
    };
    let mut ring = ring_of(61, 2);
    ring.spawn(2);
    reaches(&ring, Mode::Joining);
    refuses(&ring);
    agree_on_members(&ring, &[0, 1, 2]);
    reaches(&ring, Mode::Normal);
    let token = ring.node(2).ring().local().tokens[0].0 / 2;
    beside(&ring, 2, move |node| async move {
        relocation::relocate(&node, &token.to_string()).await.expect("moves");
    });
    reaches(&ring, Mode::Moving);
    refuses(&ring);
    reaches(&ring, Mode::Normal);
    agree_on_members(&ring, &[0, 1, 2]);
    beside(&ring, 2, |node| async move { decommission::decommission(&node, true).await.expect("leaves") });
    reaches(&ring, Mode::Leaving);
    refuses(&ring);
    reaches(&ring, Mode::Decommissioned);
}
