//! A change of the ring beside another one is refused, and names the other one.

use super::*;

/// The sentence by which something is refused.
fn refusal(result: Result<(), OperationError>) -> String {
    match result {
        Err(OperationError::Failed(why)) => why,
        other => panic!("it is refused: {other:?}"),
    }
}

/// Whether a machine knows the node of another one in a state.
fn knows(ring: &SimRing, machine: usize, other: usize, is_state: fn(State) -> bool) -> bool {
    let snapshot = ring.node(machine).ring();
    snapshot.endpoints().iter().any(|endpoint| endpoint.address == ring.address(other) && is_state(endpoint.state))
}

/// While a node joins, and fetches what the ring of before gives it, no other one leaves, moves or
/// is removed. When the new one is a member the same may be asked again.
#[test]
fn what_comes_beside_a_node_that_joins_is_refused() {
    let mut ring = ring_among(70, 4, 3);
    ring.spawn(3);
    let is_seen = || (0..3).all(|machine| knows(&ring, machine, 3, State::is_joining));
    assert!(ring.world.run_until(PATIENCE, is_seen), "it says that it joins");
    let token = ring.node(0).ring().local().tokens[0].0 / 2;
    let node = Arc::clone(ring.node(0));
    let told = ring.world.block_on(async move {
        [
            refusal(decommission::decommission(&node, false).await),
            refusal(relocation::relocate(&node, &token.to_string()).await),
        ]
    });
    let named = format!("{} is joining: wait until it has joined", ring.address(3));
    assert!(told.iter().all(|why| why.contains(&named)), "{told:?}");
    assert!(told[0].contains("`nodetool decommission --force`"), "{}", told[0]);
    assert_eq!(ring.node(0).mode(), Mode::Normal);
    agree_on_members(&ring, &[0, 1, 2, 3]);
    check_replicas(&ring, &[0]);
    let moved =
        beside_result(&ring, 0, move |node| async move { relocation::relocate(&node, &token.to_string()).await });
    assert!(ring.world.run_until(PATIENCE, || moved.lock().expect("no panic inside").is_some()), "it comes to an end");
    assert_eq!(*moved.lock().expect("no panic inside"), Some(Ok(())), "nobody changes the ring any more");
    agree_on_members(&ring, &[0, 1, 2, 3]);
    check_replicas(&ring, &[0]);
}

/// A dead node is not removed while another one joins. When the new node is stopped the dead one
/// is removed, and the new one comes again.
#[test]
fn a_removal_waits_for_the_end_of_another_change() {
    let mut ring = ring_among(71, 4, 3);
    let host_id = types::literal::print_uuid(&ring.node(2).identity.host_id);
    let is_down = |ring: &SimRing, machine: usize| {
        let (address, snapshot) = (ring.address(machine), ring.node(0).ring());
        snapshot.endpoints().iter().any(|endpoint| endpoint.address == address && !endpoint.is_up)
    };
    ring.kill(2);
    assert!(ring.world.run_until(PATIENCE, || is_down(&ring, 2)), "it is seen to be down");
    ring.spawn(3);
    assert!(ring.world.run_until(PATIENCE, || knows(&ring, 0, 3, State::is_joining)), "it says that it joins");
    let (node, id) = (Arc::clone(ring.node(0)), host_id.clone());
    let why = ring.world.block_on(async move { refusal(removal::remove(&node, &id).await) });
    assert!(why.contains(&format!("{} is joining: wait until it has joined", ring.address(3))), "{why}");
    assert_eq!(removal::status(ring.node(0)), "No token removals in process.");
    ring.kill(3);
    assert!(ring.world.run_until(PATIENCE, || is_down(&ring, 3)), "it is seen to be down");
    let node = Arc::clone(ring.node(0));
    ring.world.block_on(async move { removal::remove(&node, &host_id).await }).expect("nobody else changes the ring");
    agree_on_members(&ring, &[0, 1]);
    ring.start(3);
    agree_on_members(&ring, &[0, 1, 3]);
    check_replicas(&ring, &[0]);
}

/// Two nodes begin at the same moment, so that neither has heard of the other. One of them goes on,
/// and the other one stays a member with its tokens.
#[test]
fn of_two_that_begin_at_the_same_moment_one_goes_on() {
    for (seed, moves) in [(72, false), (73, true)] {
        let mut ring = SimRing::new(seed, &["dc1"; 4]);
        ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "2")]);
        write(&ring, 0, 0, Consistency::All);
        let tokens = ring.node(2).ring().local().tokens.clone();
        let to = tokens[0].0 / 2;
        let first = beside_result(&ring, 1, |node| async move { decommission::decommission(&node, false).await });
        let second = beside_result(&ring, 2, move |node| async move {
            match moves {
                true => relocation::relocate(&node, &to.to_string()).await,
                false => decommission::decommission(&node, false).await,
            }
        });
        let told = |of: &Told| of.lock().expect("no panic inside").clone();
        let are_over = || told(&first).is_some() && told(&second).is_some();
        assert!(ring.world.run_until(PATIENCE, are_over), "seed {seed}: both come to an end");
        assert_eq!(told(&first), Some(Ok(())), "seed {seed}: the one with the lowest address leaves");
        let why = refusal(told(&second).expect("it is over"));
        assert!(why.contains(&format!("{} is leaving: wait until it has left", ring.address(1))), "{why}");
        assert_eq!((ring.node(2).mode(), &ring.node(2).ring().local().tokens), (Mode::Normal, &tokens));
        agree_on_members(&ring, &[0, 2, 3]);
        ring.kill(1);
        write(&ring, 0, 1, Consistency::All);
        check_replicas(&ring, &[0, 1]);
    }
}

/// A node whose gossip is stopped changes nothing: nobody would hear of it. A removal ends that
/// waits for `ring_delay` meanwhile.
#[test]
fn what_nobody_would_hear_of_is_refused() {
    let mut ring = SimRing::new(76, &["dc1"; 3]);
    let host_id = types::literal::print_uuid(&ring.node(2).identity.host_id);
    ring.kill(2);
    ring.agree();
    let removed = host_id.clone();
    let begun = beside_result(&ring, 0, move |node| async move { removal::remove(&node, &removed).await });
    let has_begun = || removal::status(ring.node(0)).starts_with("Removing token");
    assert!(ring.world.run_until(PATIENCE, has_begun), "it has begun");
    gossip::set_active(ring.node(0), false, true).expect("it is a member");
    let node = Arc::clone(ring.node(0));
    let told = ring.world.block_on(async move {
        [
            refusal(decommission::decommission(&node, true).await),
            refusal(relocation::relocate(&node, "5").await),
            refusal(removal::remove(&node, &host_id).await),
        ]
    });
    assert!(told.iter().all(|why| why.contains("`nodetool enablegossip`")), "{told:?}");
    assert_eq!(ring.node(0).mode(), Mode::Normal);
    assert!(ring.world.run_until(PATIENCE, || begun.lock().expect("no panic inside").is_some()), "it ends");
    let why = refusal(begun.lock().expect("no panic inside").clone().expect("it is over"));
    assert!(why.contains("`nodetool enablegossip`"), "{why}");
    assert_eq!(removal::status(ring.node(0)), "No token removals in process.");
}

/// A node whose gossip is stopped, before it is told to assassinate an endpoint or while it waits
/// for a sign of life of it, does not remove an endpoint that is well.
#[test]
fn a_live_endpoint_is_not_assassinated_while_gossip_is_stopped() {
    for stops_first in [true, false] {
        let ring = ring_of(77, 3);
        let stop = || gossip::set_active(ring.node(0), false, true).expect("it is a member");
        if stops_first {
            stop();
        }
        let address = ring.address(2);
        let begun = beside_result(&ring, 0, move |node| async move { gossip::assassinate(&node, address).await });
        ring.world.run_for(Duration::from_millis(10));
        if !stops_first {
            stop();
        }
        assert!(ring.world.run_until(PATIENCE, || begun.lock().expect("no panic inside").is_some()), "it ends");
        let why = refusal(begun.lock().expect("no panic inside").clone().expect("it is over"));
        assert!(why.contains("`nodetool enablegossip`"), "{why}");
        gossip::set_active(ring.node(0), true, true).expect("it is a member");
        agree_on_members(&ring, &[0, 1, 2]);
    }
}

/// A dead node is not replaced while another one joins. That one lacks what only the dead node is
/// sure to have; when it is stopped the replacement goes on.
#[test]
fn a_replacement_waits_for_the_end_of_another_change() {
    let mut ring = ring_among(75, 5, 3);
    ring.tokens.insert(3, ring.node(2).ring().local().tokens.iter().map(|token| token.0).collect());
    ring.kill(2);
    ring.agree();
    ring.spawn(4);
    assert!(ring.world.run_until(PATIENCE, || knows(&ring, 0, 4, State::is_joining)), "it says that it joins");
    ring.movements.replaces = Some(ring.address(2));
    ring.spawn(3);
    ring.world.run_until(Duration::from_secs(40), || false);
    assert!(knows(&ring, 3, 4, State::is_joining), "the new node knows it");
    assert!(!knows(&ring, 0, 3, |_| true) && ring.node(3).mode() == Mode::Starting, "it waits for its turn");
    ring.kill(4);
    let is_member = || saved(&ring, 3) == Some(BootstrapState::Completed);
    assert!(ring.world.run_until(PATIENCE, is_member), "it has replaced the dead node");
    agree_on_members(&ring, &[0, 1, 3]);
    let is_forgotten = || !knows(&ring, 0, 4, |_| true);
    assert!(ring.world.run_until(PATIENCE * 2, is_forgotten), "the one that was stopped is forgotten");
    check_replicas(&ring, &[0]);
}

/// Two nodes are asked at the same moment to remove two dead ones. One of them does so, and the
/// other one afterwards, when it is asked again.
#[test]
fn of_two_removals_that_begin_at_the_same_moment_one_goes_on() {
    let mut ring = SimRing::new(74, &["dc1"; 5]);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "2")]);
    write(&ring, 0, 0, Consistency::All);
    let [first_id, second_id] = [2, 4].map(|machine| types::literal::print_uuid(&ring.node(machine).identity.host_id));
    [2, 4].into_iter().for_each(|machine| ring.kill(machine));
    ring.agree();
    let [first, second] = [(0, &first_id), (1, &second_id)].map(|(machine, host_id)| {
        let host_id = host_id.clone();
        beside_result(&ring, machine, move |node| async move { removal::remove(&node, &host_id).await })
    });
    let told = |of: &Told| of.lock().expect("no panic inside").clone();
    let are_over = || told(&first).is_some() && told(&second).is_some();
    assert!(ring.world.run_until(PATIENCE, are_over), "both come to an end");
    assert_eq!(told(&first), Some(Ok(())), "the one with the lowest address goes on");
    let why = refusal(told(&second).expect("it is over"));
    assert!(why.contains(&format!("{} is about to remove the node with host id {first_id}", ring.address(0))), "{why}");
    assert_eq!(removal::status(ring.node(1)), "No token removals in process.");
    // the news that it is gone come to the other one
    ring.world.run_until(Duration::from_secs(10), || false);
    let node = Arc::clone(ring.node(1));
    ring.world.block_on(async move { removal::remove(&node, &second_id).await }).expect("nobody else removes one");
    agree_on_members(&ring, &[0, 1, 3]);
    let is_gone = || [0, 1, 3].iter().all(|machine| ring.node(*machine).ring().endpoints().len() == 3);
    assert!(ring.world.run_until(PATIENCE, is_gone), "all have heard that the second one is removed");
    check_replicas(&ring, &[0]);
}

/// The outcome of an act; None: it is under way.
type Told = Arc<Mutex<Option<Result<(), OperationError>>>>;

/// Does something on a machine beside what the test does, and gives what comes of it.
fn beside_result<F: Future<Output = Result<(), OperationError>> + 'static>(
    ring: &SimRing,
    machine: usize,
    act: impl FnOnce(Arc<Node>) -> F + Send + 'static,
) -> Told {
    let outcome = Told::default();
    let told = Arc::clone(&outcome);
    beside(ring, machine, move |node| async move {
        let result = act(node).await;
        *told.lock().expect("no panic inside") = Some(result);
    });
    outcome
}
