//! Neighbours that are wrong in themselves: of another cluster, with a wrong clock, with the host
//! id of another node.

use internode::payload::gossip::{Ack, Syn};
use internode::{Header, InternodeError};
use links::{Links, Receiver};

use super::*;
use crate::shared::duplicate_host_id;

fn alive_at(joined: &Joined, endpoint: SocketAddr) -> Option<bool> {
    let joined = joined.lock().unwrap();
    let membership = joined.as_ref()?.as_ref().ok()?;
    membership.with_gossip(|gossip| gossip.peers().get(&endpoint).map(|peer| peer.is_alive))
}

/// A clock that is an hour ahead of the others, or an hour behind, keeps nobody from seeing
/// anybody: such a difference is taken for a wrong clock, not for the age of messages.
#[test]
fn a_clock_that_is_an_hour_off_does_not_part_the_ring() {
    for micros in [3_600_000_000, -3_600_000_000] {
        let world = World::new(41, 3);
        world.shift_wall_clock(1, micros);
        let nodes: Vec<_> = (0..3).map(|machine| join(&world, machine, options(&world, machine, "lab"))).collect();
        let found = world.run_until(Duration::from_secs(20), || nodes.iter().all(|node| alive(node) == Some(2)));
        assert!(found, "{micros}: {:?}", nodes.iter().map(alive).collect::<Vec<_>>());
        world.run_for(Duration::from_secs(60));
        assert!(nodes.iter().all(|node| alive(node) == Some(2)), "and it stays so");
    }
}

/// A node whose clock is set a year and more ahead is not believed (its generation could never be
/// followed by another one), and the others keep each other.
#[test]
fn a_generation_of_the_far_future_is_kept_out() {
    let world = World::new(42, 3);
    let nodes: Vec<_> = (0..2).map(|machine| join(&world, machine, options(&world, machine, "lab"))).collect();
    assert!(world.run_until(Duration::from_secs(10), || nodes.iter().all(|node| alive(node) == Some(1))));
    let mut far = options(&world, 2, "lab");
    far.generation += 2 * 366 * 24 * 3600;
    let third = join(&world, 2, far);
    world.run_for(Duration::from_secs(60));
    assert!(third.lock().unwrap().is_some());
    assert!(nodes.iter().all(|node| alive_at(node, address(&world, 2)).is_none()));
    assert!(nodes.iter().all(|node| alive(node) == Some(1)));
}

/// A seed tells a node that starts of an earlier start of it, in a generation that none can
/// follow. The node keeps its own: others would not believe another one, nor any later start.
#[test]
fn a_node_does_not_follow_a_generation_that_nobody_believes() {
    let world = World::new(47, 2);
    let heard = Arc::new(Listening::default());
    let links = Links::start(&world.env(0), options(&world, 0, "lab").links, heard.clone()).unwrap();
    let wish = options(&world, 1, "lab");
    let (own, host_id) = (wish.generation, wish.local_states.host_id.clone());
    let joined = join(&world, 1, wish);
    let asks = || heard.0.lock().unwrap().contains(&Verb::GossipDigestSyn);
    assert!(world.run_until(Duration::from_secs(5), asks));
    let mut told = EndpointState { generation: i32::MAX, ..member() };
    told.values.push((ApplicationState::HostId, VersionedValue { value: host_id, version: 1 }));
    let ack = Ack { digests: Vec::new(), states: vec![(address(&world, 1), told)] };
    let header = Header::new(Verb::GossipDigestAck, 1, world.env(0).clock.now_micros() / 1000, 60_000);
    links.send(address(&world, 1), Envelope { header, payload: ack.encode().unwrap().into() }).unwrap();
    assert!(world.run_until(Duration::from_secs(10), || joined.lock().unwrap().is_some()));
    let joined = joined.lock().unwrap();
    let membership = joined.as_ref().and_then(|joined| joined.as_ref().ok()).expect("it has joined");
    assert_eq!(membership.with_gossip(|gossip| gossip.local.state().generation), own);
}

/// Nodes of another cluster in the list of seeds, or with the same seeds, stay strangers: neither
/// side learns of the other, and both clusters go on.
#[test]
fn two_clusters_with_each_others_addresses_stay_two() {
    let world = World::new(43, 4);
    let of = |machine: usize, cluster: &str, seeds: &[usize]| {
        let mut options = options(&world, machine, cluster);
        options.gossip.seeds = seeds.iter().map(|seed| address(&world, *seed)).collect();
        join(&world, machine, options)
    };
    let nodes = [of(0, "one", &[0]), of(1, "one", &[0, 2]), of(2, "two", &[2]), of(3, "two", &[2, 0])];
    world.run_for(Duration::from_secs(90));
    let seen: Vec<_> = nodes.iter().map(alive).collect();
    assert_eq!(seen, [Some(1), Some(1), Some(1), Some(1)]);
    assert_eq!(alive_at(&nodes[1], address(&world, 2)), None);
    assert_eq!(alive_at(&nodes[3], address(&world, 0)), None);
}

/// The verbs that a node that only listens has heard.
#[derive(Default)]
struct Listening(Mutex<Vec<Verb>>);

impl Receiver for Listening {
    fn received(&self, _from: &Peer, _link: LinkType, message: Envelope) -> Result<(), InternodeError> {
        self.0.lock().unwrap().push(message.header.verb);
        Ok(())
    }
}

/// A node that places keys by another partitioner is not answered, however often it asks, and is
/// unknown to the ring. A node whose only seed it is says that the seed takes links and is silent.
#[test]
fn a_neighbour_with_another_partitioner_stays_outside() {
    let world = World::new(46, 4);
    let nodes: Vec<_> = (0..2).map(|machine| join(&world, machine, options(&world, machine, "lab"))).collect();
    assert!(world.run_until(Duration::from_secs(10), || nodes.iter().all(|node| alive(node) == Some(1))));
    let heard = Arc::new(Listening::default());
    let links = Links::start(&world.env(2), options(&world, 2, "lab").links, heard.clone()).unwrap();
    let ask = |id: u64, partitioner: &str| {
        let class = format!("org.apache.cassandra.dht.{partitioner}");
        let syn = Syn { cluster: "lab".to_owned(), partitioner: class, digests: Vec::new() };
        let now = world.env(2).clock.now_micros() / 1000;
        let header = Header::new(Verb::GossipDigestSyn, id, now, 60_000);
        links.send(address(&world, 0), Envelope { header, payload: syn.encode().unwrap().into() }).unwrap();
        world.run_for(Duration::from_secs(1));
        heard.0.lock().unwrap().clone()
    };
    for id in 1..=5 {
        assert_eq!(ask(id, "ByteOrderedPartitioner"), []);
    }
    assert_eq!(ask(6, "Murmur3Partitioner"), [Verb::GossipDigestAck], "its own kind is answered on the same link");
    assert!(nodes.iter().all(|node| alive_at(node, address(&world, 2)).is_none()));
    let mut newcomer = options(&world, 3, "lab");
    newcomer.gossip.seeds = vec![address(&world, 2)];
    let joined = join(&world, 3, newcomer);
    assert!(world.run_until(Duration::from_secs(90), || joined.lock().unwrap().is_some()));
    let error = joined.lock().unwrap().take().unwrap().err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.starts_with("none of the seeds answers: 10.0.0.3:7000 took a link and did not answer"), "{error}");
    assert!(alive(&nodes[0]) == Some(1) && alive(&nodes[1]) == Some(1));
}

/// Two nodes on copies of one directory: both stand, each finds that the other has its host id, and
/// a third one knows which was started last.
#[test]
fn two_nodes_with_one_host_id_find_each_other_out() {
    let world = World::new(44, 3);
    let first = join(&world, 0, options(&world, 0, "lab"));
    world.run_for(Duration::from_secs(2));
    let of = |machine: usize, later: i32| {
        let mut options = options(&world, machine, "lab");
        options.local_states.host_id = "host-1".to_owned();
        options.local_states.tokens = vec![1000];
        options.generation += later;
        join(&world, machine, options)
    };
    let older = of(1, 0);
    world.run_for(Duration::from_secs(5));
    let newer = of(2, 10);
    let all = [first, older, newer];
    assert!(world.run_until(Duration::from_secs(20), || all.iter().all(|node| alive(node) == Some(2))));
    let with = |node: &Joined, act: &dyn Fn(&Gossip) -> bool| {
        node.lock().unwrap().as_ref().unwrap().as_ref().unwrap().with_gossip(|gossip| act(gossip))
    };
    let (one, two) = (address(&world, 1), address(&world, 2));
    assert!(with(&all[1], &|gossip| duplicate_host_id(gossip, two).is_some()));
    assert!(with(&all[2], &|gossip| duplicate_host_id(gossip, one).is_some()));
    assert!(
        with(&all[0], &|gossip| duplicate_host_id(gossip, one).is_none() && duplicate_host_id(gossip, two).is_none())
    );
    let started = |gossip: &Gossip, of| gossip.state(of).map(|state| state.generation);
    assert!(with(&all[0], &|gossip| started(gossip, two) > started(gossip, one)));
}

/// Eight nodes that are switched on in the same moment, three of them seeds, stand within seconds.
#[test]
fn all_nodes_start_at_once() {
    for seed in 1..=3 {
        let world = World::new(seed, 8);
        let nodes: Vec<_> = (0..8)
            .map(|machine| {
                let mut options = options(&world, machine, "lab");
                options.gossip.seeds = (0..3).map(|seed| address(&world, seed)).collect();
                join(&world, machine, options)
            })
            .collect();
        let found = world.run_until(Duration::from_secs(6), || nodes.iter().all(|node| alive(node) == Some(7)));
        assert!(found, "seed {seed}: {:?}", nodes.iter().map(alive).collect::<Vec<_>>());
    }
}

/// Knows by what names seeds go, and which address they have now.
struct Named(Arc<Mutex<SocketAddr>>);

impl MembershipHandler for Named {
    fn ring_changed(&self, _gossip: &Gossip, _events: &[Event]) {}

    fn schema_version(&self) -> [u8; 16] {
        [0; 16]
    }

    fn seeds(&self) -> Option<Vec<SocketAddr>> {
        Some(vec![*self.0.lock().unwrap()])
    }

    fn requested(&self, _via: &Messenger, _from: &Peer, _link: LinkType, _message: Envelope) -> bool {
        false
    }
}

/// A seed whose name has another address than at the first look is found, by a node that starts and
/// by one that has lost sight of everybody.
#[test]
fn names_of_seeds_are_looked_up_again() {
    let world = World::new(45, 4);
    let _first = join(&world, 0, options(&world, 0, "lab"));
    world.run_for(Duration::from_secs(2));
    let gone: SocketAddr = "10.9.9.9:7000".parse().unwrap();
    let name = Arc::new(Mutex::new(address(&world, 0)));
    let mut lost = options(&world, 1, "lab");
    lost.gossip.seeds = vec![gone];
    let (env, joined, known) = (world.env(1), Joined::default(), name.clone());
    let (of_task, told) = (env.clone(), joined.clone());
    let joining = async move {
        *told.lock().unwrap() = Some(Membership::join(&of_task, lost, Arc::new(Named(known))).await);
    };
    env.tasks.spawn_local_worker("join", Box::new(move || Box::pin(joining)));
    assert!(world.run_until(Duration::from_secs(12), || alive(&joined) == Some(1)));
    // the seed goes, and its name with it to another machine, which knows nobody
    world.kill(0);
    *name.lock().unwrap() = address(&world, 2);
    let mut other = options(&world, 2, "lab");
    other.gossip.seeds = vec![address(&world, 2)];
    let second = join(&world, 2, other);
    assert!(world.run_until(Duration::from_secs(180), || alive(&joined) == Some(1) && alive(&second) == Some(1)));
}
