//! Many nodes in one loop: messages are delivered, delayed or lost as a seed says. What must hold
//! is in each test's name.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use internode::payload::gossip::{Ack, ApplicationState, Digest, Syn};

use super::*;

/// A generator of numbers, the same for the same seed (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

fn address(number: usize) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::from(0x7f00_0001 + number as u32).into(), 7000)
}

/// A ring of nodes, of which the first is the seed.
struct World {
    nodes: Vec<Option<Gossip>>,
    second: u64,
    dice: Dice,
    /// Messages of a hundred that are lost.
    loss: usize,
    /// Pairs between which nothing passes, in this direction.
    cut: Vec<(usize, usize)>,
    /// Messages on their way: from, to, what.
    wire: Vec<(usize, usize, Message)>,
    events: Vec<(usize, Event)>,
    bytes: usize,
}

impl World {
    fn new(count: usize, seed: u64) -> Self {
        let mut world = Self {
            nodes: Vec::new(),
            second: 0,
            dice: Dice(seed * 2 + 1),
            loss: 0,
            cut: Vec::new(),
            wire: Vec::new(),
            events: Vec::new(),
            bytes: 0,
        };
        (0..count).for_each(|number| world.nodes.push(Some(node(number, 1000))));
        world
    }

    fn now(&self) -> Now {
        Now { monotonic: Duration::from_secs(self.second), wall_millis: 1_000_000 + self.second as i64 * 1000 }
    }

    fn collect(&mut self, number: usize) {
        let Some(gossip) = &mut self.nodes[number] else { return };
        for output in gossip.take_outputs() {
            match output {
                Output::Send(to, message) => {
                    let to = (0..self.nodes.len()).find(|place| address(*place) == to).unwrap();
                    if self.dice.below(100) >= self.loss && !self.cut.contains(&(number, to)) {
                        self.wire.push((number, to, message));
                    }
                }
                Output::Notify(event) => self.events.push((number, event)),
                Output::WarnOfFutureGeneration(endpoint, _) => panic!("{endpoint} is of this time"),
            }
        }
    }

    fn deliver(&mut self, from: usize, to: usize, message: Message) {
        let now = self.now();
        let Some(gossip) = &mut self.nodes[to] else { return };
        self.bytes += size(&message);
        match message {
            Message::Syn(syn) => gossip.on_syn(address(from), &syn),
            Message::Ack(ack) => gossip.on_ack(address(from), ack, now),
            Message::Ack2(ack2) => gossip.on_ack2(ack2, now),
            Message::Echo => {
                let answers = self.dice.below(100) >= self.loss && !self.cut.contains(&(to, from));
                if let Some(asker) = self.nodes[from].as_mut().filter(|_| answers) {
                    asker.on_echo_response(address(to), now);
                }
                self.collect(from);
            }
        }
        self.collect(to);
    }

    fn run(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.second += 1;
            for number in 0..self.nodes.len() {
                let (now, dice) = (self.now(), &mut self.dice);
                if let Some(gossip) = &mut self.nodes[number] {
                    gossip.tick(now, &mut |bound| dice.below(bound));
                }
                self.collect(number);
            }
            while !self.wire.is_empty() {
                let place = self.dice.below(self.wire.len());
                let (from, to, message) = self.wire.swap_remove(place);
                self.deliver(from, to, message);
            }
        }
    }

    /// Nodes that `number` takes for alive.
    fn alive(&self, number: usize) -> usize {
        self.nodes[number].as_ref().unwrap().peers().values().filter(|peer| peer.is_alive).count()
    }

    fn converged(&self) -> bool {
        let there: Vec<_> = (0..self.nodes.len()).filter(|number| self.nodes[*number].is_some()).collect();
        there.iter().all(|number| self.alive(*number) == there.len() - 1)
    }
}

fn size(message: &Message) -> usize {
    match message {
        Message::Syn(syn) => syn.encode().unwrap().len(),
        Message::Ack(ack) => ack.encode().unwrap().len(),
        Message::Ack2(ack2) => ack2.encode().unwrap().len(),
        Message::Echo => 0,
    }
}

fn node(number: usize, generation: i32) -> Gossip {
    let mut local = Local::new(generation);
    local.set(ApplicationState::HostId, format!("host {number}"));
    local.set(ApplicationState::Tokens, "\0\0\0\0");
    local.set(ApplicationState::StatusWithPort, "NORMAL,1");
    let mut gossip = Gossip::new(Options::new(address(number), "sim", vec![address(0)]), local);
    gossip.enable();
    gossip
}

#[test]
fn everybody_finds_everybody() {
    for seed in 1..=10 {
        let mut world = World::new(12, seed);
        world.loss = 10;
        let rounds = (1..=120).find(|_| {
            world.run(1);
            world.converged()
        });
        assert!(rounds.is_some(), "seed {seed}");
        let ups = world.events.iter().filter(|(_, event)| matches!(event, Event::Up(_))).count();
        assert_eq!(ups, 12 * 11, "seed {seed}: each of each, once");
    }
}

#[test]
fn the_silent_are_convicted_and_their_return_is_seen() {
    for seed in 1..=5 {
        let mut world = World::new(5, seed);
        world.run(40);
        assert!(world.converged(), "seed {seed}");
        world.nodes[3] = None;
        let begun = world.second;
        while world.nodes[0].as_ref().unwrap().peers()[&address(3)].is_alive {
            world.run(1);
        }
        let silence = world.second - begun;
        assert!((15..60).contains(&silence), "seed {seed}: {silence} s");
        world.run(30);
        assert!((0..3).all(|number| world.alive(number) == 3), "seed {seed}: members are kept, and down");
        world.nodes[3] = Some(node(3, 2000));
        world.run(30);
        assert!(world.converged(), "seed {seed}");
        assert_eq!(world.nodes[1].as_ref().unwrap().peers()[&address(3)].state.generation, 2000);
    }
}

#[test]
fn who_is_heard_but_cannot_be_reached_is_not_alive() {
    let mut world = World::new(3, 7);
    // 2 cannot answer 1, though 0 tells each of the other
    world.cut = vec![(2, 1)];
    world.run(60);
    let of = |number: usize, peer: usize| world.nodes[number].as_ref().unwrap().peers()[&address(peer)].is_alive;
    assert!(of(0, 1) && of(0, 2) && of(1, 0) && of(2, 0));
    assert!(!of(1, 2), "the echo's answer does not arrive");
}

#[test]
fn a_shutdown_is_down_at_once_and_nothing_old_revives_it() {
    for with_state in [false, true] {
        let mut world = World::new(4, 3);
        world.run(40);
        let mut last = world.nodes[2].as_ref().unwrap().local.clone();
        last.set(ApplicationState::StatusWithPort, "shutdown,true");
        world.nodes[2] = None;
        let now = world.now();
        let told = world.nodes[0].as_mut().unwrap();
        told.on_shutdown(address(2), with_state.then(|| last.state().clone()), now);
        assert!(!told.peers()[&address(2)].is_alive);
        assert_eq!(told.peers()[&address(2)].status(), Some(Status::Shutdown));
        world.run(5);
        assert!(!world.nodes[0].as_ref().unwrap().peers()[&address(2)].is_alive);
        assert_eq!(world.nodes[0].as_ref().unwrap().peers()[&address(2)].status(), Some(Status::Shutdown));
        world.nodes[2] = Some(node(2, 3000));
        world.run(40);
        assert!(world.converged());
    }
}

/// The message that an endpoint stops may be on its way for longer than its restart takes.
#[test]
fn a_shutdown_of_an_earlier_start_is_passed_over() {
    for (started, is_alive) in [(999, true), (1000, false), (1001, false)] {
        let mut world = World::new(3, 11);
        world.run(40);
        let mut last = Local::new(started);
        last.set(ApplicationState::StatusWithPort, "shutdown,true");
        let now = world.now();
        let told = world.nodes[0].as_mut().expect("it is there");
        let before = told.peers()[&address(2)].state.clone();
        told.on_shutdown(address(2), Some(last.state().clone()), now);
        assert_eq!(told.peers()[&address(2)].is_alive, is_alive, "generation {started}");
        assert_eq!(told.peers()[&address(2)].state == before, is_alive, "generation {started}");
    }
}

#[test]
fn a_stranger_is_not_answered_and_a_look_shows_nothing() {
    let mut world = World::new(2, 5);
    world.run(20);
    let mut stranger = node(7, 1000);
    stranger.options.cluster = "other".to_owned();
    let member = world.nodes[0].as_mut().unwrap();
    let Message::Syn(syn) = stranger.syn(Vec::new()) else { panic!("a SYN") };
    assert_eq!(member.difference(&syn).as_deref(), Some("its cluster_name is 'other', and this node's is 'sim'"));
    member.on_syn(address(7), &syn);
    assert_eq!(member.take_outputs(), []);
    // nor is a node of this cluster that places keys by another partitioner
    let partitioner = "org.apache.cassandra.dht.RandomPartitioner".to_owned();
    let other = Syn { cluster: "sim".to_owned(), partitioner, ..syn };
    assert!(member.difference(&other).is_some_and(|told| told.starts_with("its partitioner is ")));
    member.on_syn(address(7), &other);
    assert_eq!(member.take_outputs(), []);

    let mut newcomer = Gossip::new(Options::new(address(1), "sim", vec![address(0)]), Local::new(5));
    newcomer.begin_shadow();
    newcomer.ask_seeds(&[]);
    assert_eq!(newcomer.shadow_round_result(), None);
    let [Output::Send(_, Message::Syn(syn))] = &newcomer.take_outputs()[..] else { panic!("one SYN") };
    member.on_syn(address(1), syn);
    let [Output::Send(_, Message::Ack(ack))] = &member.take_outputs()[..] else { panic!("one ACK") };
    newcomer.on_ack(address(0), ack.clone(), Now { monotonic: Duration::ZERO, wall_millis: 0 });
    let Some(shadow::ShadowRoundResult::Ring(states)) = newcomer.shadow_round_result() else { panic!("the ring") };
    assert_eq!(states.len(), 2);
    assert!(newcomer.peers().is_empty(), "a look changes nothing");
}

/// A message that names an endpoint again and again gets its state once, however long it is.
#[test]
fn digests_that_repeat_an_endpoint_get_no_larger_answer() {
    let now = Now { monotonic: Duration::ZERO, wall_millis: 0 };
    let (mut member, asker) = (node(0, 1000), node(1, 1000));
    let digests = vec![Digest { endpoint: address(0), generation: 1, max_version: 0 }; 50];
    let Message::Syn(syn) = asker.syn(digests.clone()) else { panic!("a SYN") };
    member.on_syn(address(1), &syn);
    let [Output::Send(_, Message::Ack(ack))] = &member.take_outputs()[..] else { panic!("one ACK") };
    assert_eq!(ack.states.len(), 1);
    member.on_ack(address(1), Ack { digests, states: Vec::new() }, now);
    let [Output::Send(_, Message::Ack2(ack2))] = &member.take_outputs()[..] else { panic!("one ACK2") };
    assert_eq!(ack2.states.len(), 1);
}

#[test]
fn two_that_look_at_each_other_see_nobody() {
    let mut pair: Vec<_> = (0..2)
        .map(|number| {
            let mut gossip =
                Gossip::new(Options::new(address(number), "sim", vec![address(0), address(1)]), Local::new(5));
            gossip.begin_shadow();
            gossip.ask_seeds(&[]);
            gossip
        })
        .collect();
    let now = Now { monotonic: Duration::ZERO, wall_millis: 0 };
    for (from, to) in [(0, 1), (1, 0)] {
        let [Output::Send(_, Message::Syn(syn))] = &pair[from].take_outputs()[..] else { panic!("one SYN") };
        let syn = syn.clone();
        pair[to].on_syn(address(from), &syn);
        let outputs = pair[to].take_outputs();
        let Some(Output::Send(_, Message::Ack(ack))) = outputs.last() else { panic!("an ACK") };
        pair[from].on_ack(address(from ^ 1), ack.clone(), now);
        // the other's own SYN is still to be sent
        outputs
            .into_iter()
            .filter(|output| matches!(output, Output::Send(_, Message::Syn(_))))
            .for_each(|o| pair[to].outputs.push(o));
        assert_eq!(pair[from].shadow_round_result(), Some(shadow::ShadowRoundResult::NoRing));
    }
}

#[test]
fn a_generation_of_the_far_future_and_a_quarantined_endpoint_are_ignored() {
    let mut world = World::new(2, 9);
    world.run(20);
    let now = world.now();
    let told = world.nodes[0].as_mut().unwrap();
    let state = internode::payload::gossip::EndpointState { generation: i32::MAX, ..Default::default() };
    told.apply(vec![(address(1), state.clone()), (address(9), state)], now);
    assert_eq!(told.peers()[&address(1)].state.generation, 1000);
    assert!(!told.peers().contains_key(&address(9)));
    let disbelieved = |number| Output::WarnOfFutureGeneration(address(number), i64::from(i32::MAX));
    assert_eq!(told.take_outputs(), [disbelieved(1), disbelieved(9)]);
    // the end of that start leaves room for the next one, too
    let mut last = Local::new(i32::MAX);
    last.set(ApplicationState::StatusWithPort, "shutdown,true");
    told.on_shutdown(address(1), Some(last.state().clone()), now);
    assert_eq!(told.peers()[&address(1)].state.generation, 1000);
    assert_eq!(told.take_outputs(), [disbelieved(1)]);
    told.remove(address(1), now);
    world.run(30);
    assert!(!world.nodes[0].as_ref().unwrap().peers().contains_key(&address(1)));
    world.run(60);
    assert!(world.converged(), "after a minute it counts again");
    // started again it counts at once
    let now = world.now();
    let told = world.nodes[0].as_mut().unwrap();
    told.remove(address(1), now);
    let started = |generation| internode::payload::gossip::EndpointState { generation, ..Default::default() };
    told.apply(vec![(address(1), started(i32::MAX))], now);
    told.apply(vec![(address(1), started(1000))], now);
    assert!(!told.peers().contains_key(&address(1)));
    told.apply(vec![(address(1), started(1001))], now);
    assert_eq!(told.peers()[&address(1)].state.generation, 1001);
}

/// Rounds to converge and bytes a round, by the number of nodes. The figures are printed: `cargo
/// test -p gossip -- --nocapture scale`.
#[test]
fn convergence_grows_with_the_logarithm_of_the_ring() {
    let mut rounds_of = Vec::new();
    for count in [8, 64] {
        let mut world = World::new(count, 1);
        let rounds = (1..=100).find(|_| {
            world.run(1);
            world.converged()
        });
        let rounds = rounds.unwrap_or_else(|| panic!("{count} nodes do not converge"));
        println!("{count} nodes: {rounds} rounds, {} bytes a node and round", world.bytes / count / rounds);
        rounds_of.push(rounds);
    }
    assert!(rounds_of[1] <= rounds_of[0] + 12, "{rounds_of:?}");
}

#[test]
fn an_endpoint_that_does_not_come_back_is_removed_everywhere() {
    let mut world = World::new(4, 11);
    world.run(30);
    world.nodes[3] = None;
    world.run(60);
    let now = world.now();
    let first = world.nodes[0].as_mut().unwrap();
    let known = &first.peers()[&address(3)].state;
    let seen = (known.generation, known.heartbeat);
    assert_eq!(first.assassinate(address(3), Some((seen.0, seen.1 - 1)), now), Err("heartbeat"));
    assert_eq!(first.assassinate(address(3), Some((seen.0 - 1, seen.1)), now), Err("generation"));
    assert_eq!(first.assassinate(address(3), Some(seen), now), Ok(()));
    world.collect(0);
    world.run(30);
    for number in 0..3 {
        let peer = &world.nodes[number].as_ref().unwrap().peers()[&address(3)];
        assert!(!peer.is_member() && matches!(peer.status(), Some(Status::Left(Some(_)))), "node {number}");
    }
}

/// A ring of three members and a node that joins and watches how long they are silent.
fn with_a_watch() -> World {
    let mut world = World::new(4, 13);
    let joining = world.nodes[3].as_mut().expect("it is there");
    joining.local.set(ApplicationState::StatusWithPort, "BOOT,1");
    world.run(40);
    let now = world.now();
    world.nodes[3].as_mut().expect("it is there").watch_presence(now);
    world.run(200);
    world
}

/// The silence that the node which joins has seen.
fn absence(world: &World) -> Option<Absence> {
    world.nodes[3].as_ref().expect("it is there").absence(world.now())
}

fn knows(world: &World, number: usize) -> bool {
    world.nodes[number].as_ref().expect("it is there").peers().contains_key(&address(3))
}

#[test]
fn a_node_that_joins_sees_that_it_may_be_forgotten() {
    for (seconds, is_forgotten) in [(100, false), (320, true)] {
        let mut world = with_a_watch();
        assert_eq!(absence(&world), None, "nobody is silent");
        world.cut = (0..3).flat_map(|number| [(number, 3), (3, number)]).collect();
        world.run(seconds);
        assert!((0..3).all(|number| knows(&world, number) != is_forgotten), "{seconds} s");
        assert_eq!(absence(&world).is_some(), is_forgotten, "{seconds} s: it is cut off still");
        world.cut.clear();
        world.run(30);
        assert_eq!(absence(&world).is_some(), is_forgotten, "{seconds} s: it hears of the others again");
        // a new watch looks at what comes
        let now = world.now();
        world.nodes[3].as_mut().expect("it is there").watch_presence(now);
        world.run(200);
        assert_eq!(absence(&world), None, "{seconds} s");
    }
}

/// One member of three that is silent may be dead. When it goes on as the same process it was cut
/// off, and has forgotten who joins; a process that is started anew asks who does.
#[test]
fn a_silent_member_counts_when_it_goes_on() {
    for is_started_again in [true, false] {
        let mut world = with_a_watch();
        match is_started_again {
            true => world.nodes[1] = None,
            false => world.cut = [0, 2, 3].into_iter().flat_map(|number| [(number, 1), (1, number)]).collect(),
        }
        world.run(320);
        assert_eq!(absence(&world), None, "the other two are heard");
        match is_started_again {
            true => world.nodes[1] = Some(node(1, 2000)),
            false => {
                assert!(!knows(&world, 1), "it has forgotten who joins");
                world.cut.clear();
            }
        }
        world.run(30);
        let member = absence(&world).map(|absence| absence.member);
        assert_eq!(member, (!is_started_again).then_some(address(1)));
    }
}
