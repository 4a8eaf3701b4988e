//! Nodes that stand in the place of others, which do not come back.

use std::net::SocketAddr;

use super::*;
use crate::allocation;
use crate::identity::Saved;

/// A new node stands in the place of one that does not come back: with its tokens, and the data of
/// its ranges.
#[test]
fn a_dead_node_is_replaced() {
    let mut ring = SimRing::begun(6, &["dc1", "dc1", "dc1", "dc1"], 3);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "2")]);
    write(&ring, 0, 0, Consistency::All);
    let tokens = ring.node(2).ring().local().tokens.iter().map(|token| token.0).collect();
    ring.tokens.insert(3, tokens);
    let replaces = Some(ring.address(2));
    ring.movements = MovementSettings { ring_delay: Duration::from_secs(10), replaces, ..MovementSettings::default() };
    let why = ring.try_start(3).expect_err("it lives");
    assert!(why.contains("Cannot replace a live node..."), "{why}");
    ring.kill(2);
    let is_down = |ring: &SimRing| ring.node(0).ring().endpoints().iter().any(|endpoint| !endpoint.is_up);
    assert!(ring.world.run_until(PATIENCE, || is_down(&ring)));
    ring.start(3);
    agree_on_members(&ring, &[0, 1, 3]);
    check_replicas(&ring, &[0]);
    let forgotten = |machine: usize| {
        ring.node(machine)
            .messenger()
            .expect("joined")
            .with_gossip(|gossip| !gossip.peers().contains_key(&ring.address(2)))
    };
    assert!(ring.world.run_until(PATIENCE, || [0, 1, 3].into_iter().all(forgotten)), "it is forgotten");
}

/// The clock of the dead node was a day ahead when it was started last, so that it seems to have
/// been started after the one that replaces it.
#[test]
fn a_dead_node_whose_clock_was_ahead_is_replaced() {
    const DAY_MICROS: i64 = 24 * 3_600 * 1_000_000;
    let mut ring = SimRing::begun(56, &["dc1", "dc1", "dc1", "dc1"], 3);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "2")]);
    write(&ring, 0, 0, Consistency::All);
    ring.kill(2);
    ring.world.shift_wall_clock(2, DAY_MICROS);
    ring.start(2);
    ring.agree();
    ring.tokens.insert(3, ring.node(2).ring().local().tokens.iter().map(|token| token.0).collect());
    let (ring_delay, replaces) = (Duration::from_secs(10), Some(ring.address(2)));
    ring.movements = MovementSettings { ring_delay, replaces, ..MovementSettings::default() };
    ring.kill(2);
    ring.agree();
    ring.start(3);
    agree_on_members(&ring, &[0, 1, 3]);
    check_replicas(&ring, &[0]);
    // its later starts come after this one, whoever answers them
    let told = |ring: &SimRing| {
        let members = ring.node(3).messenger().expect("joined");
        members.with_gossip(|gossip| i64::from(gossip.local.state().generation))
    };
    let before = told(&ring);
    assert!(before > i64::from(ring.node(3).identity.generation), "it was started after the dead node");
    ring.kill(3);
    ring.start(3);
    assert!(i64::from(ring.node(3).identity.generation) > before);
    agree_on_members(&ring, &[0, 1, 3]);
}

/// All others were restarted since a node died: they remember it, and nobody has heard of it.
#[test]
fn a_dead_node_is_replaced_after_a_restart_of_all_others() {
    let mut ring = replaced(54);
    ring.agree();
    ring.world.run_until(Duration::from_secs(5), || false);
    let settings = ring.movements;
    ring.movements.replaces = None;
    [0, 1].iter().for_each(|machine| ring.kill(*machine));
    [0, 1].iter().for_each(|machine| ring.start(*machine));
    ring.movements = settings;
    let (env, (identity, settings)) = (ring.world.env(3), ring.options(3));
    let found = ring.world.block_on(allocation::replaced(&env, &identity, None, settings)).expect("remembered");
    assert_eq!((found.tokens, found.host_id), (identity.initial_tokens, None));
    ring.start(3);
    agree_on_members(&ring, &[0, 1, 3]);
    check_replicas(&ring, &[0]);
}

/// A ring with two copies of its rows, whose third node is dead and is to be replaced by a fourth
/// one with the same tokens.
fn replaced(seed: u64) -> SimRing {
    let mut ring = SimRing::begun(seed, &["dc1", "dc1", "dc1", "dc1"], 3);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "2")]);
    write(&ring, 0, 0, Consistency::All);
    ring.tokens.insert(3, ring.node(2).ring().local().tokens.iter().map(|token| token.0).collect());
    let (ring_delay, replaces) = (Duration::from_secs(10), Some(ring.address(2)));
    ring.movements = MovementSettings { ring_delay, replaces, ..MovementSettings::default() };
    ring.kill(2);
    ring
}

/// The hints that wait for the dead node go to the one that has replaced it, and no file is left.
#[test]
fn hints_of_a_dead_node_go_to_the_one_that_replaces_it() {
    let mut ring = replaced(58);
    ring.agree();
    write(&ring, 0, 1, Consistency::One);
    let wait = |ring: &SimRing| !ring.node(0).pending_hints().is_empty();
    assert!(ring.world.run_until(PATIENCE, || wait(&ring)), "the dead node has missed writes");
    ring.start(3);
    agree_on_members(&ring, &[0, 1, 3]);
    assert!(ring.world.run_until(PATIENCE, || !wait(&ring)), "the hints are taken");
    check_replicas(&ring, &[0, 1]);
}

/// A node that has replaced another and dies before anybody hears of it is a member when it is
/// started again, whether it is still told whom it replaces or not.
#[test]
fn a_replacement_that_dies_at_its_end_is_there_again() {
    for is_told_again in [true, false] {
        let mut ring = replaced(10);
        ring.agree();
        ring.spawn(3);
        let is_member = |ring: &SimRing| {
            ring.node(3).ring().local().state == State::Normal && saved(ring, 3) == Some(BootstrapState::Completed)
        };
        assert!(ring.world.run_until(PATIENCE, || is_member(&ring)), "it replaces the other");
        ring.power_cut(3);
        if !is_told_again {
            ring.movements.replaces = None;
        }
        ring.start(3);
        agree_on_members(&ring, &[0, 1, 3]);
        check_replicas(&ring, &[0]);
    }
}

/// A new node does not become a member without the data of a range whose other replica is down
/// meanwhile. It fetches the rest when the replica is back and the operator asks.
#[test]
fn a_replacement_without_its_data_does_not_join() {
    let mut ring = replaced(9);
    ring.kill(1);
    ring.agree();
    ring.spawn(3);
    let ends = |ring: &SimRing| {
        ring.node(3).mode() == Mode::JoiningFailed || saved(ring, 3) == Some(BootstrapState::Completed)
    };
    assert!(ring.world.run_until(PATIENCE, || ends(&ring)), "it tries");
    assert_eq!(ring.node(3).mode(), Mode::JoiningFailed, "a replica of its ranges is down");
    ring.start(1);
    let sees = |ring: &SimRing| ring.node(3).ring().endpoints().iter().filter(|endpoint| endpoint.is_up).count() == 3;
    assert!(ring.world.run_until(PATIENCE, || sees(&ring)), "it is up again");
    let node = Arc::clone(ring.node(3));
    ring.world.block_on(async move { node.enter().await }).expect("the rest comes");
    agree_on_members(&ring, &[0, 1, 3]);
    check_replicas(&ring, &[0]);
}

/// A ring with two copies of its rows, whose third node is cut off and is to be replaced by a
/// fourth one with the same tokens; and the address of the third.
fn ring_with_one_cut_off(seed: u64) -> (SimRing, SocketAddr) {
    let mut ring = SimRing::begun(seed, &["dc1"; 4], 3);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "2")]);
    write(&ring, 0, 0, Consistency::All);
    ring.tokens.insert(3, ring.node(2).ring().local().tokens.iter().map(|token| token.0).collect());
    let (ring_delay, replaced) = (Duration::from_secs(10), ring.address(2));
    ring.movements = MovementSettings { ring_delay, replaces: Some(replaced), ..MovementSettings::default() };
    ring.world.network().partition(&[2]);
    let sees = |machine: usize| {
        ring.node(machine).ring().endpoints().iter().any(|endpoint| endpoint.address == replaced && endpoint.is_up)
    };
    assert!(ring.world.run_until(PATIENCE, || !sees(0) && !sees(1)), "it is cut off");
    (ring, replaced)
}

/// A node that was only cut off is up again before the new one has its data: both would own the
/// tokens, each in its own eyes.
#[test]
fn a_node_that_is_back_in_time_is_not_replaced() {
    let (mut ring, replaced) = ring_with_one_cut_off(60);
    let tokens = ring.node(2).ring().local().tokens.clone();
    slow_down(&ring, 120);
    ring.spawn(3);
    assert!(ring.world.run_until(PATIENCE, || ring.node(3).mode() == Mode::Joining), "it is on its way");
    ring.world.network().heal();
    let has_failed = ring.world.run_until(PATIENCE, || ring.node(3).mode() == Mode::JoiningFailed);
    assert!(has_failed, "the other one is up");
    let owner = |machine: usize| {
        let snapshot = ring.node(machine).ring();
        snapshot.tokens().find(|(token, _)| *token == tokens[0]).map(|(_, endpoint)| endpoint.address)
    };
    assert_eq!([0, 1, 2].map(owner), [Some(replaced); 3]);
}

/// A node that was cut off is up again when the new one, which has written that its data has come,
/// would become a member. It does not, and its next start does not find a member either.
#[test]
fn a_node_that_is_back_at_the_end_is_not_replaced() {
    let (mut ring, replaced) = ring_with_one_cut_off(70);
    slow_down(&ring, 3_000);
    ring.spawn(3);
    assert!(ring.world.run_until(PATIENCE, || saved(&ring, 3) == Some(BootstrapState::InProgress)), "it is on its way");
    ring.world.network().heal();
    let is_back = || {
        let is_alive = |gossip: &mut ::gossip::Gossip| gossip.peers().get(&replaced).is_some_and(|peer| peer.is_alive);
        ring.node(3).messenger().is_some_and(|messenger| messenger.with_gossip(is_alive))
    };
    assert!(ring.world.run_until(PATIENCE, is_back), "the other one is up");
    let node = Arc::clone(ring.node(3));
    assert_eq!(node.mode(), Mode::Joining, "its sources send nothing");
    let refused = ring.world.block_on(async move {
        node.save_bootstrap_state(BootstrapState::Completed).await.expect("room");
        let local_states = node.membership_state.local_states.get().expect("it is on its way");
        node.take_place(&node.membership().expect("it is on its way"), local_states).await
    });
    assert!(refused.is_err_and(|why| why.contains("Cannot replace a live node...")));
    assert_eq!((ring.node(3).mode(), saved(&ring, 3)), (Mode::JoiningFailed, Some(BootstrapState::InProgress)));
    let status = |gossip: &mut ::gossip::Gossip| ::gossip::Status::of(gossip.local.state());
    let status = ring.node(3).messenger().expect("it is on its way").with_gossip(status);
    assert_ne!(status, Some(::gossip::Status::Normal));
}

/// A new node takes the place, the address and the host id of one whose disk is lost.
#[test]
fn a_dead_node_is_replaced_under_its_own_address() {
    let mut ring = ring_of(8, 3);
    let (own, host_id) = (ring.address(2), ring.node(2).identity.host_id);
    ring.kill(2);
    ring.wipe(2);
    ring.agree();
    // the operator forgets to say so at first: that start writes a host id and a token of its own
    ring.tokens.insert(2, vec![12_345]);
    let why = ring.try_start(2).expect_err("the address is that of another");
    assert!(why.contains("is the address of the node with host id"), "{why}");
    ring.tokens.remove(&2);
    ring.movements.replaces = Some(own);
    let (env, (identity, settings)) = (ring.world.env(2), ring.options(2));
    let saved = Saved { tokens: vec![types::Token(12_345)], state: BootstrapState::NeedsBootstrap };
    let replaced = ring.world.block_on(allocation::replaced(&env, &identity, Some(&saved), settings));
    let replaced = replaced.expect("the ring knows it");
    assert_eq!((replaced.tokens, replaced.host_id), (identity.initial_tokens, Some(host_id)));
    ring.host_ids.insert(2, host_id);
    write(&ring, 0, 1, Consistency::One);
    ring.spawn(2);
    ring.world.run_until(Duration::from_secs(5), || false);
    let is_up = |ring: &SimRing| ring.node(0).ring().endpoints().iter().any(|one| one.address == own && one.is_up);
    assert!(!is_up(&ring), "it hibernates");
    assert_eq!(ring.node(2).identity.host_id, host_id);
    // it is interrupted, and the operator forgets it again
    ring.power_cut(2);
    ring.movements.replaces = None;
    let why = ring.try_start(2).expect_err("it would be a member without data");
    assert!(why.contains("start with replace_address_first_boot=10.0.0.3 to go on with it"), "{why}");
    ring.movements.replaces = Some(own);
    ring.spawn(2);
    write(&ring, 0, 2, Consistency::One);
    assert!(ring.world.run_until(PATIENCE, || is_up(&ring)), "it is there");
    agree_on_members(&ring, &[0, 1, 2]);
    // hints of the writes meanwhile
    ring.world.run_until(Duration::from_secs(30), || false);
    check_replicas(&ring, &[0, 1, 2]);
}

/// A ring whose third node has lost its disk, and comes back under its own address. The others send
/// nothing for so many seconds.
fn returning_to_slow_sources(seed: u64, seconds: usize) -> SimRing {
    let mut ring = ring_of(seed, 3);
    let (own, host_id) = (ring.address(2), ring.node(2).identity.host_id);
    ring.kill(2);
    ring.wipe(2);
    ring.agree();
    ring.movements.replaces = Some(own);
    ring.host_ids.insert(2, host_id);
    slow_down(&ring, seconds);
    ring.spawn(2);
    ring
}

/// The first two nodes send nothing for so many seconds.
fn slow_down(ring: &SimRing, seconds: usize) {
    for node in [0, 1].map(|machine| ring.node(machine)) {
        let rates = node.stream_settings();
        node.change_stream_settings(|settings| (settings.throughput, settings.entire_throughput) = (1, 1));
        for is_entire in [true, false] {
            node.streaming_state.throttle(node.env.now(), seconds, is_entire, false);
        }
        node.change_stream_settings(|settings| *settings = rates);
    }
}

/// Gossip takes a node that hibernates for dead. Its sources go on with it all the same, though
/// nothing happens for longer than a dead peer is waited for.
#[test]
fn a_replacement_under_its_own_address_is_waited_for() {
    let ring = returning_to_slow_sources(57, 120);
    let is_member = || saved(&ring, 2) == Some(BootstrapState::Completed);
    assert!(ring.world.run_until(PATIENCE, is_member), "its data has come");
    let failed = (0..3).flat_map(|machine| ring.node(machine).ended_streams());
    let failed: Vec<_> = failed.filter(|session| matches!(session.end, Some(Err(_)))).collect();
    assert!(failed.is_empty(), "{failed:?}");
    agree_on_members(&ring, &[0, 1, 2]);
    check_replicas(&ring, &[0]);
}

/// The machine of such a node is lost while it fetches: its sources do not wait for it for ever.
#[test]
fn a_replacement_under_its_own_address_that_is_lost_is_given_up() {
    let mut ring = returning_to_slow_sources(58, 3_000);
    let is_quiet = |ring: &SimRing| (0..2).all(|machine| ring.node(machine).streaming_state.all().is_empty());
    assert!(ring.world.run_until(PATIENCE, || !is_quiet(&ring)), "it fetches");
    ring.power_cut(2);
    assert!(ring.world.run_until(PATIENCE, || is_quiet(&ring)), "nobody is there");
}
