//! Several machines of one seed that find each other over the simulated network.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use env::Random;
use env::sim::World;
use gossip::{Event, Gossip, Options, Status};
use internode::payload::gossip::ApplicationState;
use internode::{Envelope, Framing, LinkType, MessagingVersion, Verb};
use links::{LinkOptions, Peer};

use super::*;

#[derive(Default)]
struct Watch(Mutex<Vec<Event>>);

impl Follower for Watch {
    fn ring_changed(&self, _gossip: &Gossip, event: &Event) {
        self.0.lock().unwrap().push(event.clone());
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
    let links =
        LinkOptions { listen: local, local, version: MessagingVersion::V13, framing: Framing::Crc, reserve: 1 << 20 };
    JoinOptions {
        links,
        gossip: Options::new(local, cluster, vec![address(world, 0)]),
        generation: i32::try_from(env.clock.now_seconds()).unwrap(),
        introduction: Introduction {
            host_id: format!("host-{machine}"),
            tokens: vec![machine as i64 * 1000],
            data_center: "dc1".to_owned(),
            rack: "rack1".to_owned(),
            release_version: "5.0.8".to_owned(),
            native: SocketAddr::new(local.ip(), 9042),
            schema: "59adb24e-f3cd-3e02-97f0-5b395827453f".to_owned(),
            version: MessagingVersion::V13,
            sstable_versions: "bti-da".to_owned(),
        },
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

#[test]
fn a_node_that_leaves_is_down_at_once() {
    let world = World::new(9, 2);
    let nodes: Vec<_> = (0..2).map(|machine| join(&world, machine, options(&world, machine, "lab"))).collect();
    assert!(world.run_until(Duration::from_secs(30), || nodes.iter().all(|node| alive(node) == Some(1))));
    let leaver = nodes[1].lock().unwrap().take().unwrap().ok().unwrap();
    world.block_on(leaver.leave());
    assert_eq!(alive(&nodes[0]), Some(0));
    let status = nodes[0]
        .lock()
        .unwrap()
        .as_ref()
        .unwrap()
        .as_ref()
        .unwrap()
        .with_gossip(|gossip| gossip.peers()[&address(&world, 1)].status());
    assert_eq!(status, Some(Status::Shutdown));
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
    same_token.introduction.tokens = vec![0];
    assert!(refused(1, same_token, 10).contains("the token 0 belongs to"));
    let other_cluster = options(&world, 2, "another");
    assert!(refused(2, other_cluster, 90).contains("none of the seeds answers"));
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
    assert_eq!(world.block_on(ask(Verb::HintReq)), Err(Unanswered::Failed(types::FailureReason::Unknown)));
    assert_eq!(world.block_on(ask(Verb::MutationReq)), Err(Unanswered::TimedOut));
    let of_many = messenger.request_through(
        second,
        &["10.9.9.9:7000".parse().unwrap()],
        Request::new(Verb::ReadReq, &b"all"[..], Duration::from_secs(2)),
    );
    let answers: Vec<_> = of_many.into_iter().map(|(peer, answer)| (peer, world.block_on(answer).is_ok())).collect();
    assert_eq!(answers, [(second, true), ("10.9.9.9:7000".parse().unwrap(), false)]);
}

/// What an asker has heard, in order.
#[derive(Default)]
struct Heard(Mutex<Vec<(SocketAddr, Result<Verb, Unanswered>)>>);

impl Asker for Heard {
    fn hear(&self, peer: SocketAddr, answer: Result<Envelope, Unanswered>) {
        self.0.lock().unwrap().push((peer, answer.map(|message| message.header.verb)));
    }
}

/// An asker hears once of each node that was asked: an answer, a failure, that the time is over, or
/// that nothing was sent.
#[test]
fn an_asker_hears_of_each_node_once() {
    let world = World::new(6, 2);
    let nodes: Vec<_> = (0..2).map(|machine| join(&world, machine, options(&world, machine, "lab"))).collect();
    assert!(world.run_until(Duration::from_secs(30), || nodes.iter().all(|node| alive(node) == Some(1))));
    let messenger = nodes[0].lock().unwrap().as_ref().unwrap().as_ref().unwrap().messenger();
    let (second, absent) = (address(&world, 1), "10.9.9.9:7000".parse().unwrap());
    let heard = |verb, others: &[SocketAddr], payload: usize| {
        let heard = Arc::new(Heard::default());
        let asker: Arc<dyn Asker> = heard.clone();
        let request = Request::new(verb, vec![0; payload], Duration::from_secs(2));
        messenger.ask(second, others, request, &asker);
        world.run_for(Duration::from_secs(6));
        heard.0.lock().unwrap().clone()
    };
    let late = Err(Unanswered::TimedOut);
    assert_eq!(heard(Verb::ReadReq, &[absent], 1), [(second, Ok(Verb::ReadRsp)), (absent, late)]);
    assert_eq!(heard(Verb::HintReq, &[], 1), [(second, Err(Unanswered::Failed(types::FailureReason::Unknown)))]);
    assert_eq!(heard(Verb::MutationReq, &[], 1), [(second, late)]);
    // more than the queue and the reserve hold
    assert_eq!(heard(Verb::ReadReq, &[], 6 << 20), [(second, Err(Unanswered::Refused))]);
}
