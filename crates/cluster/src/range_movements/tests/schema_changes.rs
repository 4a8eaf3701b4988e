//! The schema changes while nodes come: rows that were written by it are on them in the end.

use super::*;
use crate::schema_agreement::AGREEMENT_WAIT;

/// Asserts that a node reads the rows of all partitions.
fn check_reads(ring: &SimRing, through: usize) {
    for k in 0..KEYS {
        let rows = ring.read(through, vec![ring.select_key("ks", k)], Consistency::One).expect("answered");
        assert_eq!(rows, [(k, 0, k * 10)], "seed {}", ring.world.seed());
    }
}

/// The status that a machine tells of itself; None: it has told none.
fn told_status(ring: &SimRing, machine: usize) -> Option<::gossip::Status> {
    let members = ring.node(machine).messenger();
    members.and_then(|members| members.with_gossip(|gossip| ::gossip::Status::of(gossip.local.state())))
}

/// A client makes a keyspace while the second node comes into a new ring, and writes to it at once.
/// The first node may not have heard yet that the second one joins.
#[test]
fn a_keyspace_that_is_made_while_a_node_comes_is_on_it() {
    for (seed, millis) in [(80, 0), (81, 400), (82, 1_200), (83, 3_000)] {
        let mut ring = SimRing::begun(seed, &["dc1", "dc1", "dc1"], 1);
        ring.movements = MovementSettings { ring_delay: Duration::from_secs(10), ..MovementSettings::default() };
        ring.spawn(2);
        let has_begun = ring.world.run_until(PATIENCE, || told_status(&ring, 2) == Some(::gossip::Status::Boot));
        assert!(has_begun, "seed {seed}: it says that it joins");
        ring.world.run_for(Duration::from_millis(millis));
        ring.create_keyspace_through(0, "ks", "SimpleStrategy", &[("replication_factor", "1")]);
        let lacking = ring.world.block_on(ring.node(0).wait_for_schema_agreement(AGREEMENT_WAIT));
        assert_eq!(lacking, [], "seed {seed}");
        write(&ring, 0, 0, Consistency::One);
        agree_on_members(&ring, &[0, 2]);
        check_reads(&ring, 2);
    }
}

/// A node that stayed out of a new ring is told to join, and the others do not know yet that it
/// does. Its gossip is not stopped then, as that of other nodes on their way in is not, and a
/// second join does not begin beside the first.
#[test]
fn a_node_on_its_way_into_a_new_ring_is_joining() {
    let mut ring = SimRing::begun(86, &["dc1"; 3], 1);
    let ring_delay = Duration::from_secs(10);
    ring.movements = MovementSettings { ring_delay, joins: false, ..MovementSettings::default() };
    ring.start(2);
    ring.world.network().block(0, 2);
    beside(&ring, 2, |node| async move { node.enter().await.expect("joins") });
    let has_begun = ring.world.run_until(PATIENCE, || told_status(&ring, 2) == Some(::gossip::Status::Boot));
    assert!(has_begun, "it says that it joins");
    assert_eq!(ring.node(2).mode(), Mode::Joining);
    let stopped = gossip::set_active(ring.node(2), false, false);
    assert!(matches!(stopped, Err(OperationError::Invalid(_))), "{stopped:?}");
    let node = Arc::clone(ring.node(2));
    let second = ring.world.block_on(async move { node.enter().await }).map_err(|error| error.to_string());
    assert!(second.as_ref().is_err_and(|why| why.contains("Node is still joining")), "{second:?}");
    ring.world.network().heal();
    agree_on_members(&ring, &[0, 2]);
}

/// A node that has been up for longer than a minute is told to join right after a client has made a
/// keyspace and written to it. The node has been told of the keyspace, or the message was lost.
#[test]
fn a_node_that_was_there_fetches_a_keyspace_that_was_just_made() {
    for (seed, is_lost) in [(84, false), (85, true)] {
        let mut ring = SimRing::begun(seed, &["dc1"; 4], 3);
        ring.create_keyspace("old", "SimpleStrategy", &[("replication_factor", "2")]);
        let ring_delay = Duration::from_secs(10);
        ring.movements = MovementSettings { ring_delay, joins: false, ..MovementSettings::default() };
        ring.start(3);
        ring.world.run_for(Duration::from_secs(70));
        if is_lost {
            ring.world.network().block(0, 3);
        }
        ring.create_keyspace_through(0, "ks", "SimpleStrategy", &[("replication_factor", "1")]);
        let lacking = ring.world.block_on(ring.node(0).wait_for_schema_agreement(Duration::from_secs(2)));
        assert_eq!(lacking, if is_lost { vec![ring.address(3)] } else { Vec::new() });
        write(&ring, 0, 0, Consistency::One);
        if is_lost {
            // the message is worth nothing when it arrives
            ring.world.run_for(Duration::from_secs(12));
            ring.world.network().heal();
        }
        let node = Arc::clone(ring.node(3));
        ring.world.block_on(async move { node.enter().await }).expect("joins");
        agree_on_members(&ring, &[0, 1, 2, 3]);
        check_reads(&ring, 3);
    }
}

/// The way between a new node and one member is cut, and the new node knows of that member by the
/// others. It needs nothing of that member, and joins: the schema that the member tells is here.
#[test]
fn a_member_that_does_not_answer_does_not_keep_a_node_out() {
    let mut ring = SimRing::begun(87, &["dc1"; 5], 4);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "1")]);
    write(&ring, 0, 0, Consistency::One);
    ring.movements = MovementSettings { joins: false, ..MovementSettings::default() };
    ring.start(4);
    let sees = |ring: &SimRing| {
        let snapshot = ring.node(4).ring();
        (0..4).all(|machine| snapshot.peers().any(|peer| peer.address == ring.address(machine) && peer.is_up))
    };
    assert!(ring.world.run_until(PATIENCE, || sees(&ring)), "all members have greeted it");
    [(3, 4), (4, 3)].into_iter().for_each(|(from, to)| ring.world.network().block(from, to));
    beside(&ring, 4, |node| async move { node.enter().await.expect("joins") });
    // its answer is waited for during 90 s before the data is fetched, and once more behind that
    let patience = 3 * PATIENCE;
    let has_joined = ring.world.run_until(patience, || saved(&ring, 4) == Some(BootstrapState::Completed));
    assert!(has_joined && sees(&ring), "mode {}", ring.node(4).mode());
    agree_on_members(&ring, &[0, 1, 2, 3, 4]);
    check_reads(&ring, 0);
}

/// A node stays on its way in, because a source was away. Writes of its ranges need it: of a table
/// that is made meanwhile, too, so that it has the table when the client is answered.
#[test]
fn a_node_on_its_way_in_takes_writes_of_a_new_table() {
    let mut ring = ring_of(25, 2);
    ring.spawn(2);
    ring.world.run_for(Duration::from_secs(3));
    ring.kill(0);
    let has_failed = ring.world.run_until(PATIENCE, || ring.node(2).mode() == Mode::JoiningFailed);
    assert!(has_failed, "a source is down");
    ring.start(0);
    ring.agree();
    ring.world.run_for(Duration::from_secs(70));
    ring.create_keyspace_through(0, "new", "SimpleStrategy", &[("replication_factor", "2")]);
    let lacking = ring.world.block_on(ring.node(0).wait_for_schema_agreement(AGREEMENT_WAIT));
    assert_eq!(lacking, []);
    let rows: Vec<_> = (0..KEYS).map(|k| ring.row("new", k, 0, k, 1_000)).collect();
    for row in rows {
        ring.write(0, vec![row], Consistency::Quorum).expect("the majority and the new node have it");
    }
    let taken = (0..KEYS).filter(|k| !ring.stored(2, "new", *k).is_empty()).count();
    assert!(taken > 0, "it is about to be a replica");
}
