//! Nodes of a simulated ring come, go, move and are removed; afterwards each replica has what was
//! acknowledged, whatever was killed on the way.

mod deaths;
mod indexes;
mod movers;
mod replacements;
mod schema_changes;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use env::MakeLocal;
use env::sim::{ENOSPC, Fault, Op};
use internode::payload::paxos::{Ballot, BallotFlag, Commit};
use ring::State;
use rows::PartitionRange;
use types::{Consistency, Token};

use super::{BootstrapState, Mode};
use crate::coordinator::cas::{Cas, Round};
use crate::movements::MovementSettings;
use crate::node::Node;
use crate::operations::sstables::{self, ImportOptions, Outcome, VerifyOptions, Work};
use crate::operations::tables::{self, Selection};
use crate::operations::{OperationError, gossip, state};
use crate::paxos::{PaxosOptions, PaxosVariant};
use crate::range_movements::rebuild::{self, RebuildOptions};
use crate::range_movements::{cleanup, decommission, relocation, removal};
use crate::testing::{SimRing, hintable};

const KEYS: i32 = 30;

/// The longest time that a movement takes in these tests, and nodes to agree on its outcome.
const PATIENCE: Duration = Duration::from_secs(300);

/// A ring of three of which the first `started` are there, with rows of two copies.
fn ring_of(seed: u64, started: usize) -> SimRing {
    let mut ring = SimRing::begun(seed, &["dc1", "dc1", "dc1"], started);
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
    let make: MakeLocal = Box::new(move || Box::pin(act(node)));
    drop(ring.world.env(machine).tasks.spawn_local_worker("movement", make));
}

fn saved(ring: &SimRing, machine: usize) -> Option<BootstrapState> {
    ring.saved_bootstrap_state(machine).map(|text| BootstrapState::parse(&text))
}

#[test]
fn a_new_node_has_its_ranges_when_it_is_a_member() {
    let mut ring = ring_of(1, 2);
    ring.start(2);
    assert_eq!(saved(&ring, 2), Some(BootstrapState::Completed));
    agree_on_members(&ring, &[0, 1, 2]);
    check_replicas(&ring, &[0]);
    write(&ring, 2, 1, Consistency::All);
    check_replicas(&ring, &[0, 1]);
    // what the others had of the new node's ranges is still there, until it is cleaned up
    let stored = |ring: &SimRing, machine| (0..KEYS).filter(|k| !ring.stored(machine, "ks", *k).is_empty()).count();
    let before = stored(&ring, 0) + stored(&ring, 1);
    for machine in [0, 1] {
        let node = Arc::clone(ring.node(machine));
        let all = Selection { keyspaces: &[], tables: &[] };
        ring.world.block_on(async move {
            tables::flush(&node, all).await.expect("flushed");
            cleanup::cleanup(&node, all, 1).await.expect("cleaned up");
        });
    }
    let after = stored(&ring, 0) + stored(&ring, 1);
    assert!(after < before, "{after} of {before} partitions are left");
    check_replicas(&ring, &[0, 1]);
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

/// A new node dies before it has told that it joins. The others forget it after half a minute, and
/// ignore what they still hear of that start for a minute more. It comes again meanwhile: they are
/// to know it, and to write to it, before it fetches its ranges. Seed 7003 of the deaths was such a
/// one: what was written until the minute was over was not on the new node.
#[test]
fn a_new_node_that_died_early_is_written_to_when_it_comes_again() {
    let mut ring = ring_of(46, 2);
    let address = ring.address(2);
    let knows = |ring: &SimRing, machine: usize| {
        let membership = ring.node(machine).membership().expect("a member");
        membership.with_gossip(|gossip| gossip.peers().contains_key(&address))
    };
    ring.spawn(2);
    let is_heard = ring.world.run_until(PATIENCE, || knows(&ring, 0) && knows(&ring, 1));
    assert!(is_heard, "both have heard of it");
    ring.kill(2);
    let is_forgotten = ring.world.run_until(PATIENCE, || !knows(&ring, 0) && !knows(&ring, 1));
    assert!(is_forgotten, "it was no member yet");
    ring.spawn(2);
    let mut written = vec![0];
    let is_normal = |ring: &SimRing| saved(ring, 2) == Some(BootstrapState::Completed);
    for c in 1..100 {
        ring.world.run_until(Duration::from_millis(500), || false);
        write(&ring, 0, c, Consistency::Quorum);
        written.push(c);
        if is_normal(&ring) {
            break;
        }
    }
    agree_on_members(&ring, &[0, 1, 2]);
    check_replicas(&ring, &written);
}

/// Writes go on while the node fetches: what is acknowledged is on it when it is a member.
#[test]
fn writes_during_a_bootstrap_reach_the_new_node() {
    for seed in 0..2 {
        let mut ring = ring_of(10 + seed, 2);
        ring.spawn(2);
        ring.world.run_until(Duration::from_millis(2_500 + seed * 1_500), || false);
        write(&ring, 0, 1, Consistency::One);
        agree_on_members(&ring, &[0, 1, 2]);
        write(&ring, 1, 2, Consistency::Quorum);
        ring.world.run_until(Duration::from_secs(5), || false);
        check_replicas(&ring, &[0, 1, 2]);
    }
}

/// Nodes that come at the same time are members one after the other: of two that have said BOOT the
/// one with the lower address is first.
#[test]
fn two_new_nodes_wait_for_each_other() {
    for (seed, apart) in [(15, 0), (16, 3_000)] {
        let mut ring = SimRing::begun(seed, &["dc1", "dc1", "dc1", "dc1"], 2);
        ring.movements = MovementSettings { ring_delay: Duration::from_secs(10), ..MovementSettings::default() };
        ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "2")]);
        write(&ring, 0, 0, Consistency::All);
        ring.spawn(3);
        ring.world.run_until(Duration::from_millis(apart), || false);
        ring.spawn(2);
        ring.world.run_until(Duration::from_secs(4), || false);
        write(&ring, 0, 1, Consistency::One);
        agree_on_members(&ring, &[0, 1, 2, 3]);
        ring.world.run_until(Duration::from_secs(5), || false);
        check_replicas(&ring, &[0, 1]);
    }
}

/// A read that repairs tells also the node that is about to be a replica.
#[test]
fn a_read_repair_during_a_bootstrap_reaches_the_new_node() {
    let mut ring = ring_of(15, 2);
    ring.spawn(2);
    let token_of = |k: i32| types::DecoratedKey::new(bytes::Bytes::copy_from_slice(&k.to_be_bytes())).token;
    let is_pending = |ring: &SimRing, k: i32| {
        let snapshot = ring.node(0).ring();
        snapshot.placement("ks").is_some_and(|placement| !placement.pending(token_of(k)).is_empty())
    };
    assert!(ring.world.run_until(PATIENCE, || (0..KEYS).any(|k| is_pending(&ring, k))), "the new node is seen");
    let (gained, kept): (Vec<i32>, Vec<i32>) = (0..KEYS).partition(|k| is_pending(&ring, *k));
    for k in 0..KEYS {
        ring.apply_alone(1, &[ring.row("ks", k, 7, 7, 2_000)]);
        ring.read(0, vec![ring.select_key("ks", k)], Consistency::Quorum).expect("answered");
    }
    let has = |machine: usize, k: &i32| ring.stored(machine, "ks", *k).contains(&(7, 7));
    assert!((0..KEYS).all(|k| has(0, &k)), "the replica that was read is repaired");
    assert!(gained.iter().all(|k| has(2, k)), "so is the one to be");
    assert!(!kept.is_empty() && !kept.iter().any(|k| has(2, k)), "of its partitions alone");
}

/// Rows with this clustering on both members of two, as of coordinators that have forgotten the new
/// node.
fn write_without_newcomer(ring: &SimRing, c: i32) {
    for k in 0..KEYS {
        let row = ring.row("ks", k, c, k * 10 + c, 1_000 + i64::from(c));
        [0, 1].iter().for_each(|machine| ring.apply_alone(*machine, std::slice::from_ref(&row)));
    }
}

/// A node that is killed while it comes in fetches its ranges when it starts again: those, too,
/// that had come, since others may have written without it meanwhile.
#[test]
fn a_bootstrap_that_is_killed_goes_on() {
    for (seed, millis) in [(20, 3_000), (21, 9_500), (22, 7_500)] {
        let mut ring = ring_of(seed, 2);
        ring.spawn(2);
        ring.world.run_until(Duration::from_millis(millis), || false);
        assert_eq!(ring.node(2).mode(), Mode::Joining, "seed {seed}");
        ring.power_cut(2);
        write(&ring, 0, 1, Consistency::One);
        write_without_newcomer(&ring, 2);
        ring.start(2);
        agree_on_members(&ring, &[0, 1, 2]);
        ring.world.run_until(Duration::from_secs(30), || false);
        check_replicas(&ring, &[0, 1, 2]);
    }
}

/// The node that a new one asks for the schema dies: a ring of which the new node knows no keyspace
/// yet is no empty ring.
#[test]
fn a_bootstrap_waits_for_the_schema() {
    let mut ring = ring_of(26, 2);
    ring.spawn(2);
    let asks = |ring: &SimRing| {
        let endpoints = ring.node(2).ring().endpoints().to_vec();
        endpoints.iter().any(|endpoint| endpoint.address == ring.address(0) && endpoint.is_up)
    };
    assert!(ring.world.run_until(PATIENCE, || asks(&ring)), "the first node is seen");
    ring.kill(0);
    ring.world.run_until(Duration::from_secs(30), || false);
    ring.start(0);
    let is_over = |ring: &SimRing| {
        ring.node(2).mode() == Mode::JoiningFailed || saved(ring, 2) == Some(BootstrapState::Completed)
    };
    assert!(ring.world.run_until(PATIENCE, || is_over(&ring)), "it comes to an end");
    if saved(&ring, 2) != Some(BootstrapState::Completed) {
        let node = Arc::clone(ring.node(2));
        ring.world.block_on(async move { node.enter().await }).expect("the rest comes");
    }
    agree_on_members(&ring, &[0, 1, 2]);
    check_replicas(&ring, &[0]);
}

/// A ring of two members, of which the first has died while a third node fetched from it.
fn with_a_bootstrap_that_has_failed() -> SimRing {
    let mut ring = ring_of(25, 2);
    ring.spawn(2);
    ring.world.run_until(Duration::from_secs(3), || false);
    ring.kill(0);
    let has_failed = ring.world.run_until(PATIENCE, || ring.node(2).mode() == Mode::JoiningFailed);
    assert!(has_failed, "a source is down");
    ring
}

/// Starts the source again, and waits until the third node sees it up.
fn bring_the_source_back(ring: &mut SimRing) {
    ring.start(0);
    assert!(ring.world.run_until(PATIENCE, || sees_all_up(ring)), "it is up again");
}

/// Whether the third node sees all nodes up.
fn sees_all_up(ring: &SimRing) -> bool {
    ring.node(2).ring().endpoints().iter().all(|endpoint| endpoint.is_up)
}

/// A bootstrap whose source goes away is resumed by an operator when the source is back.
#[test]
fn a_bootstrap_that_has_failed_is_resumed() {
    let mut ring = with_a_bootstrap_that_has_failed();
    let Err(OperationError::Invalid(why)) = state::check_may_start(ring.node(2), "native transport") else {
        panic!("clients would read what has not come")
    };
    assert_eq!(why, "Unable to start native transport because the node is not in the normal state.");
    bring_the_source_back(&mut ring);
    write(&ring, 0, 1, Consistency::One);
    let node = Arc::clone(ring.node(2));
    ring.world.block_on(async move { node.enter().await }).expect("the rest comes");
    agree_on_members(&ring, &[0, 1, 2]);
    ring.world.run_until(Duration::from_secs(30), || false);
    check_replicas(&ring, &[0, 1]);
}

/// A node whose bootstrap has failed is cut off. Once the others have forgotten that it joins they
/// write without it, and what had come before is fetched again when the operator resumes it. After
/// a short cut the rest is fetched alone.
#[test]
fn a_resumed_bootstrap_does_not_trust_what_came_before_it_was_forgotten() {
    for (seconds, is_forgotten) in [(60, false), (400, true)] {
        let mut ring = with_a_bootstrap_that_has_failed();
        bring_the_source_back(&mut ring);
        // as if everything of it had come by the first attempt
        let whole_ring = vec![(types::Token(i64::MIN), types::Token(i64::MIN))];
        ring.node(2).record_available("ks", &whole_ring).expect("recorded");
        ring.world.network().partition(&[2]);
        ring.world.run_until(Duration::from_secs(seconds), || false);
        let address = ring.address(2);
        let knows = |machine: usize| {
            let snapshot = ring.node(machine).ring();
            snapshot.endpoints().iter().any(|endpoint| endpoint.address == address)
        };
        assert_eq!([0, 1].map(knows), [!is_forgotten; 2], "{seconds} s");
        if is_forgotten {
            write(&ring, 0, 1, Consistency::All);
        }
        ring.world.network().heal();
        assert!(ring.world.run_until(PATIENCE, || sees_all_up(&ring)), "the cut is over");
        let node = Arc::clone(ring.node(2));
        ring.world.block_on(async move { node.enter().await }).expect("the rest comes");
        agree_on_members(&ring, &[0, 1, 2]);
        assert_eq!(ring.node(2).reason_to_join_anew().is_some(), is_forgotten, "{seconds} s");
        match is_forgotten {
            true => check_replicas(&ring, &[0, 1]),
            false => assert!((0..KEYS).all(|k| ring.stored(2, "ks", k).is_empty()), "it had come, as it is recorded"),
        }
    }
}

/// With `join_ring: false` a node coordinates and has no data, until it is told to join.
#[test]
fn a_node_that_stays_out_joins_when_it_is_told_to() {
    let mut ring = ring_of(9, 2);
    ring.movements.joins = false;
    ring.start(2);
    assert_eq!(ring.node(2).mode(), Mode::Starting);
    write(&ring, 2, 1, Consistency::All);
    assert!((0..KEYS).all(|k| ring.stored(2, "ks", k).is_empty()), "it is no replica");
    agree_on_members(&ring, &[0, 1]);
    // what only a member does is refused
    let node = Arc::clone(ring.node(2));
    let refused = ring.world.block_on(async move {
        let all = Selection { keyspaces: &[], tables: &[] };
        [relocation::relocate(&node, "5").await, cleanup::cleanup(&node, all, 1).await]
    });
    for result in refused {
        let Err(OperationError::Failed(why)) = result else { panic!("it has no data: {result:?}") };
        assert!(why.contains("in STARTING state; wait for status to become normal or restart"), "{why}");
    }
    // it gossips and coordinates all the same, and says of itself what it said before
    state::check_may_start(ring.node(2), "native transport").expect("with join_ring: false");
    for active in [false, true] {
        gossip::set_active(ring.node(2), active, true).expect("with join_ring: false");
        ring.world.run_until(Duration::from_secs(3), || false);
        if !active {
            let node = Arc::clone(ring.node(2));
            let refused = ring.world.block_on(async move { node.enter().await });
            let why = refused.expect_err("nobody would hear of it").to_string();
            assert!(why.contains("nodetool enablegossip") && ring.node(2).mode() == Mode::Starting, "{why}");
        }
    }
    agree_on_members(&ring, &[0, 1]);
    let node = Arc::clone(ring.node(2));
    ring.world.block_on(async move { node.enter().await }).expect("joins");
    agree_on_members(&ring, &[0, 1, 2]);
    check_replicas(&ring, &[0, 1]);
}

#[test]
fn a_node_that_leaves_hands_on_what_it_has() {
    let mut ring = ring_of(2, 3);
    let movements = &ring.node(1).joined.movements;
    movements.configure(MovementSettings { severity_of_leaving: 2.5, ..movements.settings() });
    // system_distributed has three copies: one too many for the two that stay
    let node = Arc::clone(ring.node(1));
    let refused = ring.world.block_on(async move { decommission::decommission(&node, false).await });
    assert!(matches!(refused, Err(OperationError::Failed(why)) if why.contains("system_distributed (RF = 3, N = 3)")));
    beside(&ring, 1, |node| async move { decommission::decommission(&node, true).await.expect("leaves") });
    ring.world.run_until(Duration::from_secs(3), || false);
    write(&ring, 0, 1, Consistency::One);
    let severity = |machine| ring.node(machine).joined.severities.load().get(&ring.address(1)).copied();
    assert_eq!([0, 2].map(severity), [Some(2.5); 2], "it says that it is to be asked last");
    agree_on_members(&ring, &[0, 2]);
    let left = ring.world.run_until(PATIENCE, || ring.node(1).mode() == Mode::Decommissioned);
    assert!(left, "it has left");
    assert_eq!(saved(&ring, 1), Some(BootstrapState::Decommissioned));
    ring.kill(1);
    check_replicas(&ring, &[0, 1]);
    // its directory does not come back
    let why = ring.try_open(1).map(drop).expect_err("decommissioned");
    assert!(why.contains("This node was decommissioned and will not rejoin the ring"), "{why}");
    // two are left for two copies
    let node = Arc::clone(ring.node(0));
    let refused = ring.world.block_on(async move { decommission::decommission(&node, false).await });
    let Err(OperationError::Failed(why)) = refused else { panic!("two copies need two nodes: {refused:?}") };
    assert!(why.ends_with("(RF = 2, N = 2). Perform a forceful decommission to ignore."), "{why}");
}

/// A node that has told LEFT coordinates a write, which does not go to its own old copy any more.
/// One of the replicas that stay does not get the write yet. A node that still sees the other one
/// leaving reads from both: that read has to find a replica that has the write. Seed 900749 of the
/// simulator's subject `topology` (30 seconds) was such a read.
#[test]
fn a_read_finds_writes_that_passed_by_a_node_that_has_left() {
    const LEAVER: usize = 3;
    let mut ring = SimRing::new(43, &["dc1"; 4]);
    ring.movements = MovementSettings { ring_delay: Duration::from_secs(10), ..MovementSettings::default() };
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "3")]);
    write(&ring, 0, 0, Consistency::All);
    beside(&ring, LEAVER, |node| async move { decommission::decommission(&node, false).await.expect("leaves") });
    let has_left = || ring.node(LEAVER).ring().local().tokens.is_empty();
    assert!(ring.world.run_until(PATIENCE, has_left), "it says that it has left");
    // a key whose first two replicas are the node that leaves and another one, and the node that
    // gains the key
    let found = (0..KEYS).find_map(|k| {
        let snapshot = ring.node(0).ring();
        let (placement, token) = (snapshot.placement("ks")?, types::Token::of_key(&k.to_be_bytes()));
        let machine = |id: &ring::EndpointId| {
            let address = snapshot.endpoint(*id).address;
            (0..4).find(|machine| ring.address(*machine) == address)
        };
        let natural: Vec<usize> = placement.natural(token).iter().filter_map(machine).collect();
        let gaining = machine(placement.pending(token).first()?)?;
        let other = natural[..2].iter().copied().find(|one| *one != LEAVER)?;
        natural[..2].contains(&LEAVER).then_some((k, other, gaining))
    });
    let (k, lagging, reader) = found.expect("the others have not heard of it, and some key is such a one");
    ring.world.network().block(LEAVER, lagging);
    ring.write(LEAVER, vec![ring.row("ks", k, 1, 7, 2_000)], Consistency::Quorum).expect("two have it");
    assert_eq!(ring.stored(lagging, "ks", k).len(), 1, "this one does not");
    let sees_leaving = || ring.node(reader).ring().endpoints().iter().any(|endpoint| endpoint.state == State::Leaving);
    // the range first: its second replica is asked at once, that of the partition after a while
    let commands = [ring.select("ks", PartitionRange::all()), ring.select_key("ks", k)];
    let found = commands.map(|command| {
        assert!(sees_leaving(), "the reader has not heard of it");
        let rows = ring.read(reader, vec![command], Consistency::Quorum).expect("two answer");
        rows.contains(&(k, 1, 7))
    });
    assert_eq!(found, [true; 2], "{k} is read through {reader}, and {lagging} does not have it");
}

/// A node that has moved owns new ranges at once in its own eyes. A write that it coordinates is
/// acknowledged by itself and by one of the two replicas that stay; a node that has not heard of
/// the move reads from the other one and from the one that has lost the range.
#[test]
fn a_read_of_who_has_not_heard_of_a_move_finds_writes_of_who_has() {
    const MOVER: usize = 3;
    let ring = SimRing::new(45, &["dc1"; 4]);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "3")]);
    write(&ring, 0, 0, Consistency::All);
    let token_of = |machine: usize| ring.node(machine).ring().local().tokens.first().map(|token| token.0);
    let own: Vec<i64> = (0..4).map(|machine| token_of(machine).expect("one token")).collect();
    // between the two that follow it, so that a third one loses what lies before them
    let mut others: Vec<i64> = own[..3].iter().map(|token| token.wrapping_sub(own[MOVER])).collect();
    others.sort_by_key(|distance| distance.cast_unsigned());
    let (first, second) = (own[MOVER].wrapping_add(others[0]), own[MOVER].wrapping_add(others[1]));
    let half = i64::try_from(second.wrapping_sub(first).cast_unsigned() / 2).expect("a half of it");
    let to = first.wrapping_add(half);
    beside(&ring, MOVER, move |node| async move {
        relocation::relocate(&node, &to.to_string()).await.expect("moves");
    });
    let has_moved = || {
        let snapshot = ring.node(MOVER).ring();
        snapshot.local().state == State::Normal && snapshot.local().tokens == [types::Token(to)]
    };
    assert!(ring.world.run_until(PATIENCE, has_moved), "it says that it has moved");
    let replicas = |of: usize, k: i32| -> Vec<usize> {
        let snapshot = ring.node(of).ring();
        let natural =
            snapshot.placement("ks").expect("placed").natural(types::Token::of_key(&k.to_be_bytes())).to_vec();
        let machine = |id: &ring::EndpointId| {
            (0..4).find(|machine| ring.address(*machine) == snapshot.endpoint(*id).address).expect("a machine")
        };
        natural.iter().map(machine).collect()
    };
    let found = (0..KEYS).find_map(|k| {
        let (before, after) = (replicas(0, k), replicas(MOVER, k));
        let loser = before.iter().copied().find(|machine| !after.contains(machine))?;
        let mut stay = before.into_iter().filter(|machine| *machine != loser);
        (after.contains(&MOVER)).then_some((k, loser, stay.next()?, stay.next()?))
    });
    let (k, loser, reader, up_to_date) = found.expect("the others have not heard of it, and it gains some key");
    ring.world.network().block(MOVER, reader);
    ring.write(MOVER, vec![ring.row("ks", k, 1, 7, 2_000)], Consistency::Quorum).expect("a majority has it");
    assert_eq!(ring.stored(reader, "ks", k).len(), 1, "this one does not");
    ring.world.network().heal();
    ring.world.network().block(reader, up_to_date);
    let sees_moving =
        || ring.node(reader).ring().endpoints().iter().any(|endpoint| matches!(endpoint.state, State::Moving(_)));
    assert!(sees_moving(), "the reader has not heard of it");
    let rows = ring.read(reader, vec![ring.select_key("ks", k)], Consistency::Quorum).expect("two answer");
    assert!(rows.contains(&(k, 1, 7)), "{k} is read from {reader} and {loser}, of which {loser} has it: {rows:?}");
    ring.world.network().heal();
    agree_on_members(&ring, &[0, 1, 2, 3]);
    statements_count_on_the_former_replica(&ring, MOVER, reader, k);
    // after ring_delay (these nodes were started with its default, 30 s) nobody writes to the
    // former replica
    ring.world.run_until(Duration::from_secs(35), || false);
    for machine in 0..4 {
        let snapshot = ring.node(machine).ring();
        assert!(snapshot.former().is_empty(), "{machine} has forgotten who had the range");
    }
    ring.write(MOVER, vec![ring.row("ks", k, 2, 8, 3_000)], Consistency::All).expect("all have it");
    ring.world.run_until(Duration::from_secs(5), || false);
    assert_eq!(ring.stored(reader, "ks", k).len(), 3);
    assert_eq!(ring.stored(loser, "ks", k).len(), 2, "the last write is not here");
}

/// Of the replicas of a partition one does not answer, and a former one knows that it has no copy
/// any more: it refuses commits, but takes what was decided as a write. The second statement finds
/// that the former replica does not know the commit of the first.
fn statements_count_on_the_former_replica(ring: &SimRing, through: usize, silent: usize, k: i32) {
    let node = ring.node(through);
    assert!(!node.ring().former().is_empty(), "the change is not yet old");
    ring.world.network().block(through, silent);
    let command = ring.select_key("ks", k);
    for to in [70, 71] {
        let row = ring.row("ks", k, 1, to, 1);
        let (table, key) = (&row.updates[0].table, &row.updates[0].key);
        let (serial, commit) = (Consistency::Serial, Consistency::Quorum);
        let cas = Cas { table, key, serial, commit, trace: None };
        let decide = async |round: Round| {
            let timestamp = round.timestamp.expect("nodes of a ring agree on ballots");
            Ok::<_, ()>(Some(ring.row("ks", k, 1, to, timestamp)))
        };
        let decided = ring.world.block_on(node.compare_and_set(cas, &command, decide));
        assert!(decided.is_ok(), "statement {to}: {decided:?}");
    }
    ring.world.network().heal();
}

/// The node that has the only living copies of some ranges dies while a removal fetches them. The
/// removal waits for it, however long it is away. Seeds 7000 and 7003 of the deaths: it ended after
/// `ring_delay`, and a replica had nothing.
#[test]
fn a_removal_waits_for_a_source_that_is_down() {
    let mut ring = ring_with_a_removal(47);
    let is_leaving =
        |ring: &SimRing| ring.node(0).ring().endpoints().iter().any(|endpoint| endpoint.state == State::Leaving);
    assert!(ring.world.run_until(PATIENCE, || is_leaving(&ring)), "the removal has begun");
    ring.kill(1);
    ring.world.run_until(Duration::from_secs(90), || false);
    assert!(ring.node(0).joined.movements.state().removal.is_some(), "it waits");
    ring.start(1);
    let has_ended = ring.world.run_until(PATIENCE, || ring.node(0).joined.movements.state().removal.is_none());
    assert!(has_ended, "its source is back");
    agree_on_members(&ring, &[0, 1]);
    assert!(ring.world.run_until(PATIENCE, || ring.node(0).ring().endpoints().len() == 2), "the third is forgotten");
    check_replicas(&ring, &[0]);
}

/// Hints that a node keeps for another that is down go to a third one when the node leaves.
#[test]
fn hints_of_a_node_that_leaves_reach_their_host() {
    let mut ring = SimRing::new(41, &["dc1"; 5]);
    ring.movements = MovementSettings { ring_delay: Duration::from_secs(10), ..MovementSettings::default() };
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "2")]);
    // the first node gains nothing when the second one leaves
    ring.kill(0);
    ring.agree();
    write(&ring, 1, 0, Consistency::One);
    let has_hints = |ring: &SimRing| !ring.node(1).handoff.store.get().expect("it keeps hints").is_empty();
    assert!(ring.world.run_until(Duration::from_secs(20), || has_hints(&ring)), "the coordinator has hints");
    beside(&ring, 1, |node| async move { decommission::decommission(&node, true).await.expect("leaves") });
    let left = ring.world.run_until(PATIENCE, || ring.node(1).mode() == Mode::Decommissioned);
    assert!(left && !has_hints(&ring), "nothing goes with it");
    ring.kill(1);
    ring.start(0);
    agree_on_members(&ring, &[0, 2, 3, 4]);
    ring.world.run_until(Duration::from_secs(40), || false);
    check_replicas(&ring, &[0]);
}

/// Hints for a node that is down keep coming to a node that leaves, faster than it looks whether
/// one is left. It leaves all the same.
#[test]
fn hints_that_keep_coming_do_not_hold_a_node_that_leaves() {
    let mut ring = SimRing::new(59, &["dc1"; 5]);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "2")]);
    // the first node gains nothing when the second one leaves
    ring.kill(0);
    ring.agree();
    // a file takes longer to be written than until the next hint comes
    ring.world.disk(1).set_sync_delay(Duration::from_millis(10));
    let (dead, row) = (ring.address(0), hintable(&ring.row("ks", 1, 0, 1, 1_000)));
    beside(&ring, 1, move |node| async move {
        while node.mode() != Mode::Decommissioned {
            if let Some(endpoint) = node.ring().peers().find(|endpoint| endpoint.address == dead) {
                node.hint(endpoint, &row);
            }
            node.env.sleep(Duration::from_millis(5)).await;
        }
    });
    beside(&ring, 1, |node| async move { decommission::decommission(&node, true).await.expect("leaves") });
    let left = ring.world.run_until(PATIENCE, || ring.node(1).mode() == Mode::Decommissioned);
    assert!(left, "it does not wait until no hint comes any more");
}

/// With Paxos v2 a change that one replica has accepted is completed before the replica's ranges
/// move.
#[test]
fn paxos_is_repaired_before_ranges_move() {
    let ring = SimRing::new(42, &["dc1"; 4]);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "2")]);
    write(&ring, 0, 0, Consistency::All);
    let k = (0..KEYS).find(|k| !ring.stored(1, "ks", *k).is_empty()).expect("the second node is a replica");
    let micros = ring.world.env(0).clock.now_micros() - 1_000_000;
    let ballot = Ballot::new(micros, BallotFlag::Global, 7);
    let proposal = Commit { ballot, update: ring.row("ks", k, 1, k * 10 + 1, micros).updates.remove(0) };
    let node = Arc::clone(ring.node(1));
    node.set_paxos(PaxosOptions { variant: PaxosVariant::V2, ..PaxosOptions::default() });
    ring.world.block_on(async move {
        let (table, key) = (&proposal.update.table, &proposal.update.key);
        assert!(node.replica.paxos_prepare(table, key, ballot).await.expect("prepared").promised);
        assert_eq!(node.replica.paxos_propose(&proposal).await.expect("proposed"), None);
    });
    beside(&ring, 1, |node| async move { decommission::decommission(&node, true).await.expect("leaves") });
    assert!(ring.world.run_until(PATIENCE, || ring.node(1).mode() == Mode::Decommissioned), "it has left");
    let holders = [0, 2, 3].iter().filter(|machine| ring.stored(**machine, "ks", k).contains(&(1, k * 10 + 1)));
    assert!(holders.count() >= 2, "the change was completed");
}

/// A node that is killed while it leaves is a member again, and leaves when it is asked again.
#[test]
fn a_decommission_that_is_killed_begins_again() {
    for (seed, millis) in [(30, 100), (31, 3_000)] {
        let mut ring = ring_of(seed, 3);
        beside(&ring, 1, |node| async move { drop(decommission::decommission(&node, true).await) });
        ring.world.run_until(Duration::from_millis(millis), || false);
        ring.power_cut(1);
        ring.start(1);
        agree_on_members(&ring, &[0, 1, 2]);
        write(&ring, 0, 1, Consistency::Quorum);
        ring.world.run_until(Duration::from_secs(5), || false);
        beside(&ring, 1, |node| async move { decommission::decommission(&node, true).await.expect("leaves") });
        agree_on_members(&ring, &[0, 2]);
        ring.world.run_until(PATIENCE, || ring.node(1).mode() == Mode::Decommissioned);
        ring.kill(1);
        check_replicas(&ring, &[0, 1]);
    }
}

#[test]
fn a_node_that_does_not_come_back_is_removed() {
    let mut ring = ring_of(3, 3);
    let host_id = types::literal::print_uuid(&ring.node(2).identity.host_id);
    let remove = |ring: &SimRing, id: &str| {
        let (node, id) = (Arc::clone(ring.node(0)), id.to_owned());
        ring.world.block_on(async move { removal::remove(&node, &id).await })
    };
    let refused = |ring: &SimRing, id: &str| match remove(ring, id) {
        Err(OperationError::Failed(why) | OperationError::Invalid(why)) => why,
        Ok(()) => panic!("{id} is removed"),
    };
    assert!(refused(&ring, &host_id).contains("is alive and owns this ID. Use decommission command"));
    assert_eq!(refused(&ring, "00000000-0000-0000-0000-000000000009"), "Host ID not found.");
    assert_eq!(removal::status(ring.node(0)), "No token removals in process.");
    ring.kill(2);
    ring.agree();
    remove(&ring, &host_id).expect("removed");
    assert_eq!(removal::status(ring.node(0)), "No token removals in process.");
    agree_on_members(&ring, &[0, 1]);
    check_replicas(&ring, &[0]);
}

/// A node that dies while it restores the copies of a removed one restores them when it is started
/// again, though it sees nobody up at first, and tells the coordinator, who waits for it.
#[test]
fn a_removal_goes_on_when_who_gains_by_it_has_died() {
    let mut ring = ring_with_a_removal(4);
    let is_told = || ring.node(1).ring().endpoints().iter().any(|endpoint| endpoint.state == State::Leaving);
    assert!(ring.world.run_until(PATIENCE, is_told), "who gains ranges is told");
    ring.power_cut(1);
    ring.world.run_until(Duration::from_millis(500), || false);
    ring.start(1);
    agree_on_members(&ring, &[0, 1]);
    let is_over = || removal::status(ring.node(0)) == "No token removals in process.";
    assert!(ring.world.run_until(PATIENCE, is_over), "{}", removal::status(ring.node(0)));
    check_replicas(&ring, &[0]);
}

/// A removal that waits for a node which is down comes to its end when the removed node is none
/// that is being removed any more.
#[test]
fn a_removal_ends_when_there_is_nobody_to_remove() {
    type Ending = fn(&mut SimRing);
    let comes_back: Ending = |ring| ring.start(2);
    let is_assassinated: Ending = |ring| {
        let (node, address) = (Arc::clone(ring.node(0)), ring.address(2));
        ring.world.block_on(async move { gossip::assassinate(&node, address).await }).expect("it is down");
    };
    let is_forced: Ending = |ring| removal::force(ring.node(0));
    let endings = [
        (comes_back, Some("has come back while it was removed: it stays in the ring"), 2),
        (is_assassinated, None, 1),
        (is_forced, None, 1),
    ];
    for (seed, (ending, expected, members)) in (49..).zip(endings) {
        let mut ring = ring_of(seed, 3);
        let host_id = types::literal::print_uuid(&ring.node(2).identity.host_id);
        ring.kill(2);
        ring.agree();
        let outcome = Arc::new(Mutex::new(None));
        let told = Arc::clone(&outcome);
        beside(&ring, 0, move |node| async move {
            *told.lock().expect("no panic inside") = Some(removal::remove(&node, &host_id).await);
        });
        let waits = |ring: &SimRing| ring.node(0).joined.movements.state().removal.is_some();
        assert!(ring.world.run_until(PATIENCE, || waits(&ring)), "it has begun");
        ring.kill(1);
        ring.world.run_until(Duration::from_secs(60), || false);
        assert!(waits(&ring), "it waits for the second node");
        ending(&mut ring);
        let is_over = || outcome.lock().expect("no panic inside").is_some();
        assert!(ring.world.run_until(PATIENCE, is_over), "seed {seed}: it ends");
        let outcome = outcome.lock().expect("no panic inside").take().expect("it is over");
        match (outcome, expected) {
            (Err(OperationError::Failed(why)), Some(expected)) => assert!(why.contains(expected), "{why}"),
            (outcome, expected) => assert_eq!((outcome.is_ok(), expected), (true, None), "seed {seed}: {outcome:?}"),
        }
        assert_eq!(removal::status(ring.node(0)), "No token removals in process.");
        let known = ring.node(0).ring();
        let owners =
            known.endpoints().iter().filter(|one| one.state == State::Normal && one.address != ring.address(1));
        assert_eq!(owners.count(), members, "seed {seed}: {:?}", known.endpoints());
    }
}

/// A full disk does not fail a movement at its end: the outcome is written when there is room.
#[test]
fn the_outcome_of_a_movement_waits_for_room_in_the_log() {
    let ring = ring_of(48, 2);
    ring.world.disk(0).inject(Fault { times: u64::MAX, errno: ENOSPC, ..Fault::next(Op::Write, "CommitLog") });
    let outcome = Arc::new(Mutex::new(None));
    let told = Arc::clone(&outcome);
    beside(&ring, 0, move |node| async move {
        let kept = node.keep_bootstrap_state(BootstrapState::Completed).await;
        *told.lock().expect("no panic inside") = Some(kept);
    });
    ring.world.run_until(Duration::from_secs(5), || false);
    assert_eq!(*outcome.lock().expect("no panic inside"), None);
    ring.world.disk(0).heal();
    let is_kept = || *outcome.lock().expect("no panic inside") == Some(Ok(()));
    assert!(ring.world.run_until(PATIENCE, is_kept), "there is room");
}

/// A node that joined without its data fetches it when it is asked to.
#[test]
fn a_node_rebuilds_its_ranges() {
    let mut ring = ring_of(7, 2);
    ring.movements.bootstraps = false;
    ring.start(2);
    agree_on_members(&ring, &[0, 1, 2]);
    assert!((0..KEYS).all(|k| ring.stored(2, "ks", k).is_empty()), "it has joined without data");
    let rebuild = |options: RebuildOptions| {
        let node = Arc::clone(ring.node(2));
        ring.world.block_on(async move { rebuild::rebuild(&node, options).await })
    };
    let elsewhere = RebuildOptions { source_data_center: Some("dc9".to_owned()), ..RebuildOptions::default() };
    let Err(OperationError::Invalid(why)) = rebuild(elsewhere) else { panic!("there is no such data center") };
    assert_eq!(why, "Provided datacenter 'dc9' is not a valid datacenter, available datacenters are: dc1");
    rebuild(RebuildOptions { keyspace: Some("ks".to_owned()), ..RebuildOptions::default() })
        .expect("its data has come");
    check_replicas(&ring, &[0]);
}

/// `nodetool rebuild -ts`: parts of the range that goes around the end of the ring. A range that
/// only begins and ends in that one is no part of it.
#[test]
fn a_node_rebuilds_parts_of_the_range_around_the_end() {
    let ring = ring_of(21, 3);
    let node = ring.node(0);
    let last = Token(i64::MAX - 1);
    let known = node.ring();
    let around = known.placement("ks").expect("placed").ranges().find(|(start, end, _)| start >= end);
    let (start, end, replicas) = around.expect("one range goes around");
    assert!(start == last && replicas.contains(&known.local_id()), "the range of machine 0");
    let first = Token(i64::MIN + 5);
    let cases = [
        ((start, first), true),
        ((Token(i64::MAX), end), true),
        ((start, Token(i64::MAX)), true),
        ((first, end), true),
        ((first, Token(i64::MIN + 4)), false),
        ((start, Token(end.0 + 1)), false),
    ];
    for (range, is_part) in cases {
        let options = RebuildOptions { keyspace: Some("ks".to_owned()), ranges: vec![range], ..Default::default() };
        let here = Arc::clone(node);
        let rebuilt = ring.world.block_on(async move { rebuild::rebuild(&here, options).await });
        match rebuilt {
            Ok(()) => assert!(is_part, "{range:?}"),
            Err(why) => assert!(!is_part && why.to_string().contains("not a range that is owned"), "{range:?}: {why}"),
        }
    }
}

#[test]
fn a_node_moves_to_another_token() {
    let mut ring = ring_of(4, 3);
    let token = ring.node(2).ring().local().tokens[0].0 / 2;
    beside(&ring, 2, move |node| async move {
        relocation::relocate(&node, &token.to_string()).await.expect("moves");
    });
    ring.world.run_until(Duration::from_secs(3), || false);
    write(&ring, 0, 1, Consistency::One);
    let has_moved = |machine: usize| ring.node(machine).ring().tokens().any(|(owned, _)| owned.0 == token);
    assert!(ring.world.run_until(PATIENCE, || (0..3).all(has_moved)), "all know the new token");
    agree_on_members(&ring, &[0, 1, 2]);
    ring.world.run_until(Duration::from_secs(5), || false);
    check_replicas(&ring, &[0, 1]);
    // its configuration still names the token that it had (initial_token)
    ring.kill(2);
    ring.start(2);
    assert_eq!(ring.node(2).ring().local().tokens, [types::Token(token)]);
    agree_on_members(&ring, &[0, 1, 2]);
    check_replicas(&ring, &[0, 1]);
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

/// A second change of the ring beside one that is under way, and a node that would need data from
/// one that is down, are refused.
#[test]
fn what_would_lose_data_is_refused() {
    let mut ring = ring_of(5, 2);
    ring.kill(1);
    ring.agree();
    let why = ring.try_start(2).expect_err("a replica is down");
    assert!(why.contains("Necessary replicas for strict consistency are missing in keyspace"), "{why}");
}
