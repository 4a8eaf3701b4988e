//! Nodes that leave hand on what they have: rows, hints, and changes that Paxos has not completed.

use internode::payload::gossip::{EndpointState, VersionedValue};
use internode::payload::paxos::{Ballot, BallotFlag, Commit};
use rows::PartitionRange;

use super::*;
use crate::paxos::{PaxosOptions, PaxosVariant};
use crate::repair_state::schedule::turns::STATE;
use crate::testing::{hintable, store_unreadable_table};

#[test]
fn a_node_that_leaves_hands_on_what_it_has() {
    let mut ring = ring_of(2, 3);
    let movements = &ring.node(1).membership_state.movements;
    movements.configure(MovementSettings { severity_of_leaving: 2.5, ..movements.settings() });
    // system_distributed has three copies: one too many for the two that stay
    let node = Arc::clone(ring.node(1));
    let refused = ring.world.block_on(async move { decommission::decommission(&node, false).await });
    assert!(matches!(refused, Err(OperationError::Failed(why)) if why.contains("system_distributed (RF = 3, N = 3)")));
    beside(&ring, 1, |node| async move { decommission::decommission(&node, true).await.expect("leaves") });
    ring.world.run_until(Duration::from_secs(3), || false);
    write(&ring, 0, 1, Consistency::One);
    let severity = |machine| ring.node(machine).membership_state.severities.load().get(&ring.address(1)).copied();
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

/// A file of hints under another name than its head says is sent to nobody.
#[test]
fn a_node_with_hints_that_it_cannot_read_leaves_only_if_it_has_to() {
    let mut ring = SimRing::new(46, &["dc1"; 4]);
    let descriptor = hints::Descriptor {
        host_id: ring.node(0).identity.host_id,
        millis: 1,
        version: hints::Version::V3,
        compression: None,
    };
    let (mut bytes, disk) = (Vec::new(), ring.world.env(1).disk);
    descriptor.encode(&mut bytes);
    let directory = std::path::Path::new(env::sim::DATA).join("hints");
    let renamed = hints::Descriptor { millis: 2, ..descriptor }.file_name();
    let mut file = disk.create(&directory.join(&renamed)).expect("there is room");
    file.write_all(&bytes).expect("there is room");
    drop(file);
    ring.kill(1);
    ring.start(1);
    ring.agree();
    let node = Arc::clone(ring.node(1));
    let left = ring.world.block_on(async move { decommission::decommission(&node, false).await });
    assert!(matches!(&left, Err(OperationError::Failed(why)) if why.contains(&renamed)), "{left:?}");
    assert_eq!(ring.node(1).mode(), Mode::Normal);
}

/// A file is damaged behind its head, and its host is not there: nobody has read the file before
/// the node gives its hints away.
#[test]
fn a_node_whose_hints_turn_out_to_be_damaged_does_not_leave() {
    let mut ring = SimRing::new(47, &["dc1"; 4]);
    ring.movements = MovementSettings { ring_delay: Duration::from_secs(10), ..MovementSettings::default() };
    let descriptor = hints::Descriptor { host_id: [9; 16], millis: 1, version: hints::Version::V3, compression: None };
    let (mut bytes, disk) = (Vec::new(), ring.world.env(1).disk);
    descriptor.encode(&mut bytes);
    bytes.extend_from_slice(&[0xff; 64]);
    let directory = std::path::Path::new(env::sim::DATA).join("hints");
    // with a checksum the file counts as complete, and the start does not read it
    for (name, content) in [(descriptor.file_name(), bytes), (descriptor.checksum_name(), vec![0; 8])] {
        let mut file = disk.create(&directory.join(&name)).expect("there is room");
        file.write_all(&content).expect("there is room");
    }
    ring.kill(1);
    ring.start(1);
    ring.agree();
    let name = descriptor.file_name();
    beside(&ring, 1, move |node| async move {
        let left = decommission::decommission(&node, false).await;
        assert!(matches!(&left, Err(OperationError::Failed(why)) if why.contains(&name)), "{left:?}");
    });
    let mode = || ring.node(1).mode();
    assert!(ring.world.run_until(PATIENCE, || mode() == Mode::Leaving), "nothing is known of the damage yet");
    assert!(ring.world.run_until(PATIENCE, || mode() == Mode::DecommissionFailed), "{:?}", mode());
}

/// The data of a table that this node cannot read would stay behind, and nodes of Cassandra may
/// read the table.
#[test]
fn a_node_with_a_table_that_is_left_out_stays_beside_a_cassandra() {
    let ring = ring_of(44, 3);
    let (node, peer) = (ring.node(0), ring.address(1));
    store_unreadable_table(node);
    // a node of Cassandra tells of no schedule
    let messenger = node.messenger().expect("it has joined");
    let known = messenger.with_gossip(|gossip| gossip.state(peer).cloned()).expect("a member");
    let value = VersionedValue { value: String::new(), version: known.max_version() + 1 };
    messenger.apply_endpoint_state(peer, EndpointState { values: vec![(STATE, value)], ..known });
    let here = Arc::clone(node);
    let left = ring.world.block_on(async move { decommission::decommission(&here, true).await });
    assert!(matches!(&left, Err(OperationError::Failed(why)) if why.contains("ks.strange")), "{left:?}");
    let here = Arc::clone(node);
    let moved = ring.world.block_on(async move { relocation::relocate(&here, "77").await });
    assert!(matches!(&moved, Err(OperationError::Failed(why)) if why.contains("ks.strange")), "{moved:?}");
    assert_eq!(node.mode(), Mode::Normal);
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
