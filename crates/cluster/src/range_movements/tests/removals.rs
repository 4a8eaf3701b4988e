//! Nodes that do not come back are removed, and the others fetch what they had from each other.

use std::collections::BTreeSet;

use ::gossip::Gossip;
use internode::payload::gossip::ApplicationState;

use super::*;
use crate::range_movement_state::Removal;
use crate::streaming::Operation;

/// Waits until the first node has begun a removal.
fn await_begin(ring: &SimRing) {
    let has_begun = || removal::status(ring.node(0)).starts_with("Removing token");
    assert!(ring.world.run_until(PATIENCE, has_begun), "it has begun");
}

/// The second node confirms an earlier removal and dies: the removal that is under way still waits
/// for it a minute later.
fn check_that_a_confirmation_does_not_count(ring: &mut SimRing) {
    removal::confirm_replication(ring.node(0), ring.address(1));
    ring.kill(1);
    ring.world.run_for(Duration::from_secs(60));
    let removal = ring.node(0).membership_state.movements.state().removal.clone().expect("it waits");
    assert!(removal.waiting.contains(&ring.address(1)), "{:?}", removal.waiting);
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
    assert!(ring.node(0).membership_state.movements.state().removal.is_some(), "it waits");
    ring.start(1);
    let has_ended =
        ring.world.run_until(PATIENCE, || ring.node(0).membership_state.movements.state().removal.is_none());
    assert!(has_ended, "its source is back");
    agree_on_members(&ring, &[0, 1]);
    assert!(ring.world.run_until(PATIENCE, || ring.node(0).ring().endpoints().len() == 2), "the third is forgotten");
    check_replicas(&ring, &[0]);
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
        let waits = |ring: &SimRing| ring.node(0).membership_state.movements.state().removal.is_some();
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

/// A ring of five with rows of two copies, two of whose nodes are dead. The first node tells that
/// both are being removed, and that it waits for the others.
fn ring_with_two_removals(seed: u64, removed: [usize; 2]) -> SimRing {
    let mut ring = SimRing::new(seed, &["dc1"; 5]);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "2")]);
    write(&ring, 0, 0, Consistency::All);
    let host_id = |machine: usize| types::literal::print_uuid(&ring.node(machine).identity.host_id);
    let coordinator = host_id(0);
    let told = removed.map(|machine| (ring.address(machine), host_id(machine)));
    removed.into_iter().for_each(|machine| ring.kill(machine));
    ring.agree();
    let now = removal::now(ring.node(0));
    ring.node(0).messenger().expect("joined").with_gossip(|gossip| {
        for (address, host_id) in &told {
            let generation = gossip.peers().get(address).expect("known").state.generation;
            gossip.advertise_removing(*address, host_id, &coordinator, generation, now).expect("known");
        }
    });
    ring
}

/// A node that has heard of two removals looks once more which there are, as it does at the end of
/// its start. It has followed both, and fetches nothing anew.
#[test]
fn two_removals_at_once_are_followed_once_each() {
    let ring = ring_with_two_removals(64, [1, 3]);
    let node = ring.node(2);
    let fetched = || {
        let ended = node.ended_streams().into_iter();
        ended.filter(|session| session.operation == Operation::RestoreReplicaCount && !session.follows).count()
    };
    ring.world.run_for(Duration::from_secs(60));
    let before = fetched();
    assert!(before > 0, "it gains ranges");
    node.membership().expect("joined").with_gossip(|gossip| removal::follow_all_removing(node, gossip));
    ring.world.run_for(Duration::from_secs(60));
    assert_eq!(fetched(), before);
}

/// Two neighbours had the only copies of some ranges, and both are removed. Neither removal waits
/// for the node of the other one to come back.
#[test]
fn two_removals_at_once_do_not_wait_for_each_other() {
    let ring = ring_with_two_removals(67, [1, 2]);
    let waiting: BTreeSet<_> = [0, 3, 4].map(|machine| ring.address(machine)).into();
    let (address, begun) = (ring.address(1), ring.node(0).env.now());
    ring.node(0).membership_state.movements.state().removal = Some(Removal { address, token: 0, begun, waiting });
    let has_all =
        || ring.node(0).membership_state.movements.state().removal.as_ref().is_some_and(|one| one.waiting.is_empty());
    assert!(ring.world.run_until(PATIENCE, has_all), "{}", removal::status(ring.node(0)));
}

/// A node confirms an earlier removal once more, because the answer to the first time came too
/// late. The next removal, of which that node has not been told yet, waits for it all the same.
#[test]
fn a_late_confirmation_of_an_earlier_removal_does_not_count() {
    let mut ring = ring_with_a_removal(65);
    await_begin(&ring);
    check_that_a_confirmation_does_not_count(&mut ring);
}

/// A node that gains ranges is down when a removal is asked for, and comes up before the others
/// are told of the removal, which waits for it.
#[test]
fn a_removal_waits_for_a_node_that_comes_up_before_it_is_told() {
    let mut ring = ring_of(69, 3);
    let host_id = types::literal::print_uuid(&ring.node(2).identity.host_id);
    // more than a lost sign of life is waited for (10 s)
    ring.node(0).membership_state.movements.configure(MovementSettings::default());
    [1, 2].into_iter().for_each(|machine| ring.kill(machine));
    ring.agree();
    beside(&ring, 0, move |node| async move { removal::remove(&node, &host_id).await.expect("removed") });
    let under_way = |ring: &SimRing| ring.node(0).membership_state.movements.state().removal.clone();
    assert!(ring.world.run_until(PATIENCE, || under_way(&ring).is_some()), "it has begun");
    assert!(!under_way(&ring).expect("it has begun").waiting.contains(&ring.address(1)), "that one is down");
    ring.start(1);
    let is_told = || ring.node(0).ring().endpoints().iter().any(|endpoint| endpoint.state == State::Leaving);
    assert!(ring.world.run_until(PATIENCE, is_told), "the others are told");
    assert!(under_way(&ring).expect("it waits").waiting.contains(&ring.address(1)), "it is up");
    assert!(ring.world.run_until(PATIENCE, || under_way(&ring).is_none()), "{}", removal::status(ring.node(0)));
    agree_on_members(&ring, &[0, 1]);
    check_replicas(&ring, &[0]);
}

/// A removal was forced, and a node confirms it seconds after the next one was asked for. The next
/// removal waits for that node all the same, also where `ring_delay` is shorter than the time for
/// which the confirmation was under way.
#[test]
fn a_confirmation_of_a_forced_removal_does_not_count_for_the_next() {
    let mut ring = ring_of(68, 3);
    let host_id = types::literal::print_uuid(&ring.node(2).identity.host_id);
    ring.kill(2);
    ring.agree();
    let settings = MovementSettings { ring_delay: Duration::from_millis(100), ..MovementSettings::default() };
    let (address, begun) = (ring.address(2), ring.node(0).env.now());
    let earlier = Removal { address, token: 0, begun, waiting: BTreeSet::new() };
    ring.node(0).membership_state.movements.configure(settings);
    ring.node(0).membership_state.movements.state().removal = Some(earlier);
    removal::force(ring.node(0));
    beside(&ring, 0, move |node| async move { removal::remove(&node, &host_id).await.expect("removed") });
    await_begin(&ring);
    ring.world.run_for(Duration::from_secs(5));
    check_that_a_confirmation_does_not_count(&mut ring);
}

/// A removal is ended before the others were told of it, and asked for again: the first one does
/// not go on in the place of the second, which would end before the others have the data. Its end
/// does not take back that this node is about to remove another one.
#[test]
fn a_removal_that_was_ended_does_not_go_on_as_the_next() {
    let mut ring = ring_of(66, 3);
    let host_id = types::literal::print_uuid(&ring.node(2).identity.host_id);
    ring.kill(2);
    ring.agree();
    let outcomes = Arc::new(Mutex::new(Vec::new()));
    let ask = || {
        let (outcomes, host_id) = (Arc::clone(&outcomes), host_id.clone());
        beside(&ring, 0, move |node| async move {
            let removed = removal::remove(&node, &host_id).await;
            outcomes.lock().expect("no panic inside").push(removed.is_ok());
        });
    };
    ask();
    await_begin(&ring);
    ring.world.run_for(Duration::from_secs(3));
    removal::force(ring.node(0));
    ask();
    let count = || outcomes.lock().expect("no panic inside").len();
    let intent = || {
        let told = |gossip: &mut Gossip| {
            let value = gossip.local.state().value(ApplicationState::RemovalCoordinator);
            value.map(str::len)
        };
        ring.node(0).messenger().expect("joined").with_gossip(told)
    };
    assert!(ring.world.run_until(PATIENCE, || count() == 1), "the first one has ended");
    assert!(intent().is_some_and(|told| told > 0), "the others are told of the second one");
    assert!(ring.world.run_until(PATIENCE, || count() == 2), "both come to an end");
    assert_eq!(intent(), Some(0));
    assert_eq!(*outcomes.lock().expect("no panic inside"), [false, true]);
    agree_on_members(&ring, &[0, 1]);
    check_replicas(&ring, &[0]);
}
