//! Several machines of one seed that find each other over the simulated network.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use env::Random;
use env::sim::World;
use gossip::{Event, Gossip, Options, Status};
use internode::payload::gossip::{ApplicationState, EndpointState, States, VersionedValue};
use internode::{Envelope, LinkType, MessagingVersion, Verb};
use links::{LinkOptions, Peer, Scope};

use super::*;
use crate::shared::{ResponseReceiver, Waiting};
use crate::start::SeedRenewal;

mod failures;

#[derive(Default)]
struct Watch(Mutex<Vec<Event>>);

impl MembershipHandler for Watch {
    fn ring_changed(&self, _gossip: &Gossip, events: &[Event]) {
        self.0.lock().unwrap().extend_from_slice(events);
    }

    fn schema_version(&self) -> [u8; 16] {
        [7; 16]
    }

    /// Answers a READ_REQ with its payload, says nothing to a MUTATION_REQ, knows nothing else.
    fn requested(&self, via: &Messenger, from: &Peer, _link: LinkType, message: Envelope) -> bool {
        match message.header.verb {
            Verb::ReadReq => {
                via.answer(from, &message.header, Ok(message.payload));
                true
            }
            verb => verb == Verb::MutationReq,
        }
    }
}

type Joined = Arc<Mutex<Option<Result<Membership, JoinError>>>>;

fn address(world: &World, machine: usize) -> SocketAddr {
    SocketAddr::new(world.address(machine), 7000)
}

fn options(world: &World, machine: usize, cluster: &str) -> JoinOptions {
    let local = address(world, machine);
    let env = world.env(machine);
    let links = LinkOptions {
        listen: local,
        local,
        version: MessagingVersion::V13,
        compression: Scope::None,
        encryption: None,
        settings: links::LinkSettings { reserve: 1 << 20, ..Default::default() },
    };
    JoinOptions {
        links,
        gossip: Options::new(local, cluster, vec![address(world, 0)]),
        generation: i32::try_from(env.clock.now_seconds()).unwrap(),
        is_member: true,
        joining: None,
        replaces: None,
        prefers_local: false,
        local_states: LocalApplicationStates {
            host_id: format!("host-{machine}"),
            tokens: vec![machine as i64 * 1000],
            data_center: "dc1".to_owned(),
            rack: "rack1".to_owned(),
            release_version: "5.0.8".to_owned(),
            native: SocketAddr::new(local.ip(), 9042),
            internal: None,
            schema: "59adb24e-f3cd-3e02-97f0-5b395827453f".to_owned(),
            version: MessagingVersion::V13,
            sstable_versions: "bti-da".to_owned(),
        },
        remembered: States::new(),
    }
}

/// Starts to join; the result appears when the machine has run for long enough.
fn join(world: &World, machine: usize, options: JoinOptions) -> Joined {
    let (env, joined) = (world.env(machine), Joined::default());
    let (of_task, told) = (env.clone(), joined.clone());
    let joining = async move {
        let result = Membership::join(&of_task, options, Arc::new(Watch::default())).await;
        *told.lock().unwrap() = Some(result);
    };
    env.tasks.spawn_local_worker("join", Box::new(move || Box::pin(joining)));
    joined
}

/// The status that an endpoint has told, as far as a node that has joined knows.
fn status_told(joined: &Joined, endpoint: SocketAddr) -> Option<Status> {
    let joined = joined.lock().unwrap();
    let membership = joined.as_ref().unwrap().as_ref().unwrap();
    membership.with_gossip(|gossip| gossip.state(endpoint).and_then(Status::of))
}

/// How many others a node takes for alive. `None`: it has not joined.
fn alive(joined: &Joined) -> Option<usize> {
    let joined = joined.lock().unwrap();
    let membership = joined.as_ref()?.as_ref().ok()?;
    Some(membership.with_gossip(|gossip| gossip.peers().values().filter(|peer| peer.is_alive).count()))
}

#[test]
fn nodes_that_start_at_once_find_each_other() {
    for seed in 1..=3 {
        let world = World::new(seed, 4);
        let nodes: Vec<_> = (0..4).map(|machine| join(&world, machine, options(&world, machine, "lab"))).collect();
        let found = world.run_until(Duration::from_secs(60), || nodes.iter().all(|node| alive(node) == Some(3)));
        assert!(found, "seed {seed}: {:?}", nodes.iter().map(alive).collect::<Vec<_>>());
        let tokens = nodes[3].lock().unwrap().as_ref().unwrap().as_ref().unwrap().with_gossip(|gossip| {
            gossip.state(address(&world, 1)).and_then(|state| state.value(ApplicationState::Tokens).map(str::to_owned))
        });
        assert_eq!(tokens, Some(internode::payload::gossip::tokens::text_of(&[1000])));
    }
}

/// Links to peers of the own data center go to the internal address that they tell, if this node
/// prefers that; those to other data centers do not.
#[test]
fn internal_addresses_are_preferred_in_the_own_data_center() {
    let world = World::new(21, 3);
    let internal = |machine| Some(SocketAddr::new(world.address(machine), 7777));
    let telling = |machine: usize, data_center: &str, prefers_local: bool| {
        let options = options(&world, machine, "lab");
        let local_states = LocalApplicationStates {
            internal: internal(machine),
            data_center: data_center.to_owned(),
            ..options.local_states
        };
        join(&world, machine, JoinOptions { prefers_local, local_states, ..options })
    };
    let nodes = [telling(0, "dc1", true), telling(1, "dc1", false), telling(2, "dc2", true)];
    // nobody listens there, so only what was connected before goes on
    world.run_for(Duration::from_secs(5));
    let route = |node: usize, peer: usize| {
        let joined = nodes[node].lock().unwrap();
        joined.as_ref().unwrap().as_ref().ok().unwrap().messenger().0.route(address(&world, peer))
    };
    assert_eq!(Some(route(0, 1)), internal(1));
    assert_eq!([route(1, 0), route(0, 2), route(2, 0)], [0, 2, 0].map(|machine| address(&world, machine)));
}

/// Kills, restarts, cuts of one direction: when all is quiet again everybody sees everybody.
#[test]
fn bad_days_pass() {
    for seed in 1..=3 {
        let world = World::new(seed, 4);
        let dice = world.dice();
        let mut nodes: Vec<_> = (0..4).map(|machine| join(&world, machine, options(&world, machine, "lab"))).collect();
        world.run_for(Duration::from_secs(30));
        for _ in 0..8 {
            let machine = 1 + dice.below(3) as usize;
            match dice.below(4) {
                0 => {
                    world.kill(machine);
                    world.run_for(Duration::from_secs(dice.below(40)));
                    nodes[machine] = join(&world, machine, options(&world, machine, "lab"));
                }
                1 => world.network().block(machine, dice.below(4) as usize),
                2 => drop(world.network().reset_one(machine, 0)),
                _ => world.network().heal(),
            }
            world.run_for(Duration::from_secs(dice.below(30)));
        }
        world.network().heal();
        let found = world.run_until(Duration::from_secs(180), || nodes.iter().all(|node| alive(node) == Some(3)));
        assert!(found, "seed {seed}: {:?}", nodes.iter().map(alive).collect::<Vec<_>>());
    }
}

/// So it is also while the ring changes its messaging version: a link has the lower one of its two.
#[test]
fn a_node_that_leaves_is_down_at_once() {
    use MessagingVersion::{V12, V13};
    for [stays, leaves] in [[V13, V13], [V12, V13], [V13, V12], [V12, V12]] {
        let world = World::new(9, 2);
        let of_version = |machine: usize, version: MessagingVersion| {
            let mut options = options(&world, machine, "lab");
            (options.links.version, options.local_states.version) = (version, version);
            join(&world, machine, options)
        };
        let nodes = [of_version(0, stays), of_version(1, leaves)];
        assert!(world.run_until(Duration::from_secs(30), || nodes.iter().all(|node| alive(node) == Some(1))));
        let leaver = nodes[1].lock().expect("no panic").take().and_then(Result::ok).expect("it has joined");
        world.block_on(leaver.leave());
        assert_eq!(alive(&nodes[0]), Some(0), "from {leaves:?} to {stays:?}");
        assert_eq!(status_told(&nodes[0], address(&world, 1)), Some(Status::Shutdown));
    }
}

#[test]
fn what_would_take_the_place_of_another_is_refused() {
    let world = World::new(11, 4);
    let first = join(&world, 0, options(&world, 0, "lab"));
    world.run_for(Duration::from_secs(5));
    assert_eq!(alive(&first), Some(0));
    let refused = |machine: usize, options: JoinOptions, limit: u64| {
        let joined = join(&world, machine, options);
        assert!(world.run_until(Duration::from_secs(limit), || joined.lock().unwrap().is_some()));
        let result = joined.lock().unwrap().take().unwrap();
        result.err().map(|error| error.to_string()).unwrap_or_default()
    };
    let mut same_token = options(&world, 1, "lab");
    same_token.local_states.tokens = vec![0];
    assert!(refused(1, same_token, 10).contains("the token 0 belongs to"));
    let other_cluster = options(&world, 2, "another");
    let said = refused(2, other_cluster, 90);
    assert!(said.contains("10.0.0.1:7000 took a link and did not answer this node of cluster 'another'"), "{said}");
}

/// A node that replaces one whose clock was ahead has been started after it for the others, which
/// give a token to the one that was started last. So it is when either of them starts again, while
/// others still know both.
#[test]
fn a_replacement_has_been_started_after_the_node_that_it_replaces() {
    let hour = 3_600;
    for (ahead, follows) in [(hour, true), (-hour, false)] {
        let world = World::new(19, 3);
        let _first = join(&world, 0, options(&world, 0, "lab"));
        world.run_for(Duration::from_secs(5));
        let replaced = options(&world, 1, "lab");
        let generation = replaced.generation + ahead;
        let _second = join(&world, 1, JoinOptions { generation, ..replaced });
        world.run_for(Duration::from_secs(5));
        world.kill(1);
        let mut replacing = JoinOptions { replaces: Some(address(&world, 1)), ..options(&world, 2, "lab") };
        replacing.local_states.tokens = vec![1000];
        let own = replacing.generation;
        let again = JoinOptions { replaces: None, ..replacing.clone() };
        let of_second = join(&world, 2, replacing);
        assert!(world.run_until(Duration::from_secs(30), || alive(&of_second).is_some()));
        let joined = of_second.lock().expect("no panic");
        let membership = joined.as_ref().and_then(|joined| joined.as_ref().ok()).expect("it has joined");
        let told = membership.with_gossip(|gossip| {
            [1, 2].map(|machine| gossip.state(address(&world, machine)).map(|state| state.generation))
        });
        assert_eq!(told, [Some(generation), Some(if follows { generation + 1 } else { own })]);
        drop(joined);
        world.run_for(Duration::from_secs(5));
        world.kill(2);
        let restarted = join(&world, 2, again);
        assert!(world.run_until(Duration::from_secs(30), || alive(&restarted).is_some()));
        let former = join(&world, 1, options(&world, 1, "lab"));
        assert!(world.run_until(Duration::from_secs(30), || former.lock().expect("no panic").is_some()));
        let refusal = former.lock().expect("no panic").take().and_then(Result::err).expect("it is refused");
        assert_eq!(refusal.to_string(), "the token 1000 belongs to 10.0.0.3:7000; choose another (initial_token)");
    }
}

/// A node that was removed owns nothing in the ring any more: a member that has come to its tokens
/// keeps them, also where that member was started before the removed node.
#[test]
fn a_removed_node_does_not_take_its_tokens_back() {
    let world = World::new(23, 3);
    let first = join(&world, 0, options(&world, 0, "lab"));
    world.run_for(Duration::from_secs(5));
    let _second = join(&world, 1, options(&world, 1, "lab"));
    assert!(world.run_until(Duration::from_secs(30), || alive(&first) == Some(1)));
    world.kill(1);
    let joined = first.lock().expect("no panic");
    let membership = joined.as_ref().and_then(|joined| joined.as_ref().ok()).expect("it has joined");
    let second = address(&world, 1);
    membership.shared.with_gossip(|gossip, now| gossip.assassinate(second, None, now)).expect("it is removed");
    drop(joined);
    assert!(matches!(status_told(&first, second), Some(Status::Left(_))));
    let mut owner = options(&world, 2, "lab");
    owner.local_states.tokens = vec![1000];
    owner.generation -= 3_600;
    let third = join(&world, 2, owner);
    assert!(world.run_until(Duration::from_secs(30), || alive(&third).is_some()));
    world.run_for(Duration::from_secs(5));
    let former = join(&world, 1, options(&world, 1, "lab"));
    assert!(world.run_until(Duration::from_secs(30), || former.lock().expect("no panic").is_some()));
    let refusal = former.lock().expect("no panic").take().and_then(Result::err).expect("it is refused");
    assert_eq!(refusal.to_string(), "the token 1000 belongs to 10.0.0.3:7000; choose another (initial_token)");
}

/// The ring knows the address of a node from an earlier start: whether the node may start there
/// depends on how far that start had come, and on what this one wants.
#[test]
fn an_address_that_the_ring_knows() {
    let hibernates = Some("hibernate,true");
    let taken = "10.0.0.2:7000 is the address of the node with host id host-1";
    let cases = [
        ("hibernate,true", false, None, "host-1", "start with replace_address_first_boot=10.0.0.2 to go on with it"),
        ("hibernate,true", false, hibernates, "host-1", ""),
        ("hibernate,true", true, None, "host-1", ""),
        // on an emptied directory
        ("BOOT,1000", false, None, "host-9", ""),
        ("BOOT,1000", true, None, "host-9", taken),
        ("NORMAL,1000", false, None, "host-9", taken),
    ];
    for (told, is_member, joining, host_id, expected) in cases {
        let world = World::new(17, 2);
        let first = join(&world, 0, options(&world, 0, "lab"));
        world.run_for(Duration::from_secs(5));
        let earlier = JoinOptions { is_member: false, joining: Some(told.to_owned()), ..options(&world, 1, "lab") };
        drop(join(&world, 1, earlier));
        world.run_for(Duration::from_secs(5));
        assert_eq!(status_told(&first, address(&world, 1)), Some(Status::parse(told)));
        world.kill(1);
        world.run_for(Duration::from_secs(2));
        let mut again = options(&world, 1, "lab");
        again.local_states.host_id = host_id.to_owned();
        let joined = join(&world, 1, JoinOptions { is_member, joining: joining.map(str::to_owned), ..again });
        assert!(world.run_until(Duration::from_secs(10), || joined.lock().unwrap().is_some()), "{told}, {host_id}");
        let result = joined.lock().unwrap().take().unwrap();
        let error = result.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(expected) && error.is_empty() == expected.is_empty(), "{told}, {host_id}: {error}");
    }
}

/// A request is answered, fails, or stays without an answer; one that is passed on is answered by
/// each node that has it.
#[test]
fn requests_and_their_answers() {
    let world = World::new(5, 2);
    let nodes: Vec<_> = (0..2).map(|machine| join(&world, machine, options(&world, machine, "lab"))).collect();
    assert!(world.run_until(Duration::from_secs(30), || nodes.iter().all(|node| alive(node) == Some(1))));
    let messenger = nodes[0].lock().unwrap().as_ref().unwrap().as_ref().unwrap().messenger();
    let second = address(&world, 1);
    let ask = |verb| messenger.request(second, Request::new(verb, &b"what"[..], Duration::from_secs(2)));
    let answer = world.block_on(ask(Verb::ReadReq)).unwrap();
    assert_eq!((answer.header.verb, &answer.payload[..]), (Verb::ReadRsp, &b"what"[..]));
    assert_eq!(world.block_on(ask(Verb::HintReq)), Err(RequestFailure::Failed(types::FailureReason::Unknown)));
    assert_eq!(world.block_on(ask(Verb::MutationReq)), Err(RequestFailure::TimedOut));
    let of_many = messenger.request_through(
        second,
        &["10.9.9.9:7000".parse().unwrap()],
        Request::new(Verb::ReadReq, &b"all"[..], Duration::from_secs(2)),
    );
    let answers: Vec<_> = of_many.into_iter().map(|(peer, answer)| (peer, world.block_on(answer).is_ok())).collect();
    assert_eq!(answers, [(second, true), ("10.9.9.9:7000".parse().unwrap(), false)]);
}

/// Answers that a callback has heard, in order.
#[derive(Default)]
struct Heard(Mutex<Vec<(SocketAddr, Result<Verb, RequestFailure>)>>);

impl RequestCallback for Heard {
    fn on_outcome(&self, peer: SocketAddr, answer: Result<Envelope, RequestFailure>) {
        self.0.lock().unwrap().push((peer, answer.map(|message| message.header.verb)));
    }
}

/// A callback hears once of each node that was asked: an answer, a failure, that the time is
/// over, or that nothing was sent.
#[test]
fn an_asker_hears_of_each_node_once() {
    let world = World::new(6, 2);
    let nodes: Vec<_> = (0..2).map(|machine| join(&world, machine, options(&world, machine, "lab"))).collect();
    assert!(world.run_until(Duration::from_secs(30), || nodes.iter().all(|node| alive(node) == Some(1))));
    let messenger = nodes[0].lock().unwrap().as_ref().unwrap().as_ref().unwrap().messenger();
    let (second, absent) = (address(&world, 1), "10.9.9.9:7000".parse().unwrap());
    let heard = |verb, others: &[SocketAddr], payload: usize| {
        let heard = Arc::new(Heard::default());
        let callback: Arc<dyn RequestCallback> = heard.clone();
        let request = Request::new(verb, vec![0; payload], Duration::from_secs(2));
        messenger.ask(second, others, request, &callback);
        world.run_for(Duration::from_secs(6));
        heard.0.lock().unwrap().clone()
    };
    let late = Err(RequestFailure::TimedOut);
    assert_eq!(heard(Verb::ReadReq, &[absent], 1), [(second, Ok(Verb::ReadRsp)), (absent, late)]);
    assert_eq!(heard(Verb::HintReq, &[], 1), [(second, Err(RequestFailure::Failed(types::FailureReason::Unknown)))]);
    assert_eq!(heard(Verb::MutationReq, &[], 1), [(second, late)]);
    // more than the queue and the reserve hold
    assert_eq!(heard(Verb::ReadReq, &[], 6 << 20), [(second, Err(RequestFailure::Refused))]);
    // too many wait for one of them: the others are asked all the same, through the next one if it
    // is the first
    let third = "10.9.9.8:7000".parse().unwrap();
    for (full, others, expected) in [
        (absent, [absent, third], [(absent, Err(RequestFailure::Refused)), (second, Ok(Verb::ReadRsp)), (third, late)]),
        (second, [absent, third], [(second, Err(RequestFailure::Refused)), (third, late), (absent, late)]),
    ] {
        let mut taken = Vec::new();
        let mut state = messenger.0.state();
        let nothing = KeptBytes::default();
        while state.callbacks.has_room(full, nothing, Duration::ZERO) {
            let id = state.callbacks.next_id();
            let waiting = Waiting { verb: Verb::ReadReq, sent: Duration::ZERO, receiver: ResponseReceiver::Echo };
            assert!(state.callbacks.add(id, full, Duration::ZERO..Duration::MAX, nothing, || waiting));
            taken.push(id);
        }
        drop(state);
        assert_eq!(heard(Verb::ReadReq, &others, 1), expected, "{full} has no room");
        let mut state = messenger.0.state();
        taken.iter().for_each(|id| drop(state.callbacks.take(*id, full, Duration::ZERO)));
    }
}

/// Three nodes that start at once are up everywhere within 1.5 seconds, whoever of them is a seed;
/// also when the seed starts last.
#[test]
fn a_ring_of_three_stands_within_a_second_and_a_half() {
    for seeds in [&[0][..], &[0, 1], &[0, 1, 2]] {
        for (seed, seed_late_ms) in (1..=4).flat_map(|seed| [(seed, 0), (seed, 700)]) {
            let world = World::new(seed, 3);
            let begin = |machine: usize| {
                let mut options = options(&world, machine, "lab");
                options.gossip.seeds = seeds.iter().map(|seed| address(&world, *seed)).collect();
                join(&world, machine, options)
            };
            let others = [begin(1), begin(2)];
            world.run_for(Duration::from_millis(seed_late_ms));
            let begun = world.elapsed();
            let nodes = [begin(0), others[0].clone(), others[1].clone()];
            let found = world.run_until(Duration::from_secs(60), || nodes.iter().all(|node| alive(node) == Some(2)));
            let took = world.elapsed() - begun;
            assert!(found && took < Duration::from_millis(1500), "{seeds:?}, seed {seed}, {seed_late_ms} ms: {took:?}");
        }
    }
}

/// A seed that is down delays nobody while another seed answers; when none answers, the nodes that
/// storage knows are asked; when nobody answers, the node does not start.
#[test]
fn a_node_starts_while_its_seed_is_down() {
    let world = World::new(13, 5);
    let seeded = |machine: usize, seeds: &[usize]| {
        let mut options = options(&world, machine, "lab");
        options.gossip.seeds = seeds.iter().map(|seed| address(&world, *seed)).collect();
        options
    };
    let took = |machine: usize, options: JoinOptions| {
        let begun = world.elapsed();
        let joined = join(&world, machine, options);
        assert!(world.run_until(Duration::from_secs(90), || joined.lock().unwrap().is_some()));
        (world.elapsed() - begun, joined)
    };
    // machine 0 is the seed that stays down
    let (_, first) = took(1, seeded(1, &[1]));
    let (waited, second) = took(2, seeded(2, &[0, 1]));
    assert!(waited < Duration::from_secs(1), "{waited:?}");
    assert!(world.run_until(Duration::from_secs(2), || alive(&first) == Some(1) && alive(&second) == Some(1)));
    let knowing = JoinOptions { remembered: vec![(address(&world, 1), member())], ..seeded(3, &[0]) };
    let (waited, third) = took(3, knowing);
    assert!((Duration::from_secs(5)..Duration::from_secs(12)).contains(&waited), "{waited:?}");
    assert!(world.run_until(Duration::from_secs(2), || alive(&third) == Some(2)));
    let (_, fourth) = took(4, seeded(4, &[0]));
    let error = fourth.lock().unwrap().take().unwrap().err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.starts_with("none of the seeds answers: no link can be opened to 10.0.0.1:7000;"), "{error}");
}

/// Name servers that do not answer hold up no round, and are not asked twice at a time.
#[test]
fn seeds_are_looked_up_beside_the_rounds() {
    let world = World::new(31, 1);
    let (env, begun) = (world.env(0), Arc::<Mutex<Vec<usize>>>::default());
    let (of_task, told) = (env.clone(), begun.clone());
    let rounds = async move {
        let mut renewal = SeedRenewal::default();
        for round in 1..=4 {
            let told = told.clone();
            // the first look-up ends at once, the second never
            renewal.begin(async move {
                told.lock().unwrap().push(round);
                if round > 1 {
                    std::future::pending::<()>().await;
                }
            });
            of_task.sleep(Duration::from_secs(1)).await;
        }
        told.lock().unwrap().push(0);
    };
    env.tasks.spawn_local_worker("rounds", Box::new(move || Box::pin(rounds)));
    assert!(world.run_until(Duration::from_secs(60), || begun.lock().unwrap().contains(&0)));
    assert_eq!(*begun.lock().unwrap(), [1, 2, 0]);
}

/// A node that is alone at its start, as a seed is, knows the members from before its restart. They
/// are greeted at once and are up when the node has joined; one that is gone is not told to others,
/// except to a new node, for which there is no other way to know its tokens.
#[test]
fn a_restart_remembers_the_ring() {
    let world = World::new(13, 4);
    let nodes: Vec<_> = (0..3).map(|machine| join(&world, machine, options(&world, machine, "lab"))).collect();
    assert!(world.run_until(Duration::from_secs(30), || nodes.iter().all(|node| alive(node) == Some(2))));
    world.kill(0);
    world.run_for(Duration::from_secs(5));
    let mut again = options(&world, 0, "lab");
    let gone: SocketAddr = "10.9.9.9:7000".parse().unwrap();
    again.remembered = [address(&world, 1), address(&world, 2), gone].map(|peer| (peer, member())).to_vec();
    let first = join(&world, 0, again);
    assert!(world.run_until(Duration::from_secs(5), || alive(&first).is_some()));
    assert_eq!(alive(&first), Some(2), "it has joined when both have answered");
    world.run_for(Duration::from_secs(20));
    let knows_gone = |node: &Joined| {
        let node = node.lock().unwrap();
        node.as_ref().unwrap().as_ref().unwrap().with_gossip(|gossip| gossip.peers().contains_key(&gone))
    };
    assert!(knows_gone(&first) && !knows_gone(&nodes[1]) && !knows_gone(&nodes[2]));
    for is_member in [false, true] {
        let newcomer = join(&world, 3, JoinOptions { is_member, ..options(&world, 3, "lab") });
        assert!(world.run_until(Duration::from_secs(20), || alive(&newcomer).is_some()));
        assert_eq!(knows_gone(&newcomer), !is_member, "a member remembers by itself");
        world.kill(3);
    }
}

fn member() -> EndpointState {
    let value = |text: String| VersionedValue { value: text, version: 0 };
    let values = vec![
        (ApplicationState::Tokens, value(internode::payload::gossip::tokens::text_of(&[5]))),
        (ApplicationState::StatusWithPort, value("NORMAL,5".to_owned())),
    ];
    EndpointState { generation: 0, heartbeat: 0, values }
}

#[test]
fn gossip_is_stopped_and_begun_again() {
    let world = World::new(15, 2);
    let nodes: Vec<_> = (0..2).map(|machine| join(&world, machine, options(&world, machine, "lab"))).collect();
    assert!(world.run_until(Duration::from_secs(30), || nodes.iter().all(|node| alive(node) == Some(1))));
    let second = nodes[1].lock().unwrap().take().unwrap().ok().unwrap();
    second.stop_gossip();
    assert!(world.run_until(Duration::from_secs(2), || alive(&nodes[0]) == Some(0)) && !second.is_gossiping());
    world.run_for(Duration::from_secs(60));
    assert_eq!(alive(&nodes[0]), Some(0), "nothing of the old generation brings it back");
    second.start_gossip(&options(&world, 1, "lab").local_states, true);
    assert!(world.run_until(Duration::from_secs(10), || alive(&nodes[0]) == Some(1)) && second.is_gossiping());
}

/// A directory that was written by mistake may have this generation.
#[test]
fn gossip_is_begun_again_in_the_last_generation() {
    let world = World::new(16, 1);
    let alone = join(&world, 0, JoinOptions { generation: i32::MAX, ..options(&world, 0, "lab") });
    assert!(world.run_until(Duration::from_secs(30), || alive(&alone) == Some(0)));
    let alone = alone.lock().unwrap().take().unwrap().ok().unwrap();
    alone.stop_gossip();
    alone.start_gossip(&options(&world, 0, "lab").local_states, true);
    let told = alone.with_gossip(|gossip| (gossip.local.state().generation, Status::of(gossip.local.state())));
    assert_eq!(told, (i32::MAX, Some(Status::Normal)));
}
