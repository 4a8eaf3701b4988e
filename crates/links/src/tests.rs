//! Links of simulated machines: what arrives, what is lost and told of, and what strangers can do.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use env::Random;
use env::sim::World;
use internode::{Envelope, Framing, Header, InternodeError, LinkType, MessagingVersion, Verb};
use segments::{SegmentEncoder, SegmentFormat};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

mod encryption;
mod failures;
mod settings;

/// Messages that a node has got: the peer, the link, the id.
type Got = Arc<Mutex<Vec<(SocketAddr, LinkType, u64)>>>;

struct Gather(Got);

/// Bytes beyond the room of each link.
const RESERVE: usize = 8 << 20;

impl Receiver for Gather {
    fn received(&self, from: &Peer, link: LinkType, message: Envelope) -> Result<(), InternodeError> {
        let expected: Vec<u8> = content(message.header.id, message.payload.len());
        assert_eq!(message.payload, expected, "message {} came as it was sent", message.header.id);
        self.0.lock().unwrap().push((from.address, link, message.header.id));
        Ok(())
    }
}

fn content(id: u64, size: usize) -> Vec<u8> {
    (0..size).map(|place| (place as u64 * 31 + id) as u8).collect()
}

fn address(world: &World, machine: usize) -> SocketAddr {
    SocketAddr::new(world.address(machine), 7000)
}

fn start(world: &World, machine: usize, version: MessagingVersion, framing: Framing) -> (Links, Got) {
    let got = Got::default();
    let local = address(world, machine);
    let compression = if framing == Framing::Lz4 { Scope::All } else { Scope::None };
    let options = LinkOptions { version, compression, ..plain(world, machine) };
    let links = Links::start(&world.env(machine), options, Arc::new(Gather(got.clone()))).unwrap();
    assert_eq!(links.address(), local);
    (links, got)
}

fn plain(world: &World, machine: usize) -> LinkOptions {
    let local = address(world, machine);
    LinkOptions {
        listen: local,
        local,
        version: MessagingVersion::V13,
        compression: Scope::None,
        encryption: None,
        settings: LinkSettings { reserve: RESERVE, receive_reserve: RESERVE, ..LinkSettings::default() },
    }
}

fn message(world: &World, machine: usize, id: u64, verb: Verb, size: usize, life: u64) -> Envelope {
    let now = world.env(machine).clock.now_micros() / 1000;
    Envelope { header: Header::new(verb, id, now, life), payload: Bytes::from(content(id, size)) }
}

#[test]
fn messages_arrive_in_order_on_the_link_of_their_size_and_priority() {
    for framing in [Framing::Crc, Framing::Lz4] {
        let world = World::new(3, 2);
        let (links, _) = start(&world, 0, MessagingVersion::V13, framing);
        let (_others, got) = start(&world, 1, MessagingVersion::V13, Framing::Crc);
        let kinds = [
            (Verb::GossipDigestSyn, 100, LinkType::Urgent),
            (Verb::MutationReq, 5000, LinkType::Small),
            (Verb::MutationReq, 300_000, LinkType::Large),
        ];
        for id in 1..=60 {
            let (verb, size, _) = kinds[id as usize % 3];
            links.send(address(&world, 1), message(&world, 0, id, verb, size, 10_000)).unwrap();
        }
        world.run_for(Duration::from_secs(5));
        let got = got.lock().unwrap().clone();
        assert_eq!(got.len(), 60);
        for (place, (_, _, link)) in kinds.iter().enumerate() {
            let ids: Vec<_> = got.iter().filter(|(_, on, _)| on == link).map(|(_, _, id)| *id).collect();
            assert_eq!(ids, (1..=60).filter(|id| id % 3 == place as u64).collect::<Vec<_>>(), "{link:?}");
        }
        assert!(got.iter().all(|(from, ..)| *from == address(&world, 0)));
    }
}

/// Whatever happens to connections, nothing comes twice, out of order or changed, and what is sent
/// in quiet times arrives.
#[test]
fn resets_and_partitions_lose_messages_but_never_repeat_them() {
    for seed in 1..=6 {
        let world = World::new(seed, 2);
        let dice = world.dice();
        let (links, _) = start(&world, 0, MessagingVersion::V13, Framing::Crc);
        let (_others, got) = start(&world, 1, MessagingVersion::V13, Framing::Crc);
        let mut id = 0;
        for _ in 0..60 {
            match dice.below(6) {
                0 => drop(world.network().reset_one(0, 1)),
                1 => world.network().block(0, 1),
                2 => world.network().block(1, 0),
                _ => world.network().heal(),
            }
            for _ in 0..dice.below(20) {
                id += 1;
                let size = dice.below(40_000) as usize;
                // a full queue is an answer
                let _ = links.send(address(&world, 1), message(&world, 0, id, Verb::MutationReq, size, 2000));
            }
            world.run_for(Duration::from_millis(dice.below(1500)));
        }
        world.network().heal();
        world.run_for(Duration::from_secs(90));
        for last in id + 1..=id + 5 {
            links.send(address(&world, 1), message(&world, 0, last, Verb::MutationReq, 10, 5000)).unwrap();
        }
        world.run_for(Duration::from_secs(5));
        let ids: Vec<_> = got.lock().unwrap().iter().map(|(_, _, id)| *id).collect();
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "seed {seed}: {ids:?}");
        assert!(
            ids.ends_with(&[id + 1, id + 2, id + 3, id + 4, id + 5]),
            "seed {seed}: {:?} of {id}",
            &ids[ids.len() - 5..]
        );
        assert_eq!(links.waiting(address(&world, 1), LinkType::Small), (0, 0));
    }
}

#[test]
fn what_waits_for_an_unreachable_node_is_bounded_and_expires() {
    let world = World::new(4, 2);
    let (links, _) = start(&world, 0, MessagingVersion::V13, Framing::Crc);
    let to = address(&world, 1);
    let mut refused = 0;
    for id in 1..=300 {
        let sent = links.send(to, message(&world, 0, id, Verb::MutationReq, 60_000, 2000));
        refused += usize::from(sent == Err(Refused::Full));
    }
    let (messages, bytes) = links.waiting(to, LinkType::Small);
    assert!(
        bytes <= limits::QUEUE_SIZE_MAX + RESERVE && messages + refused == 300 && refused > 50,
        "{messages} {bytes} {refused}"
    );
    world.run_for(Duration::from_secs(10));
    assert_eq!(links.waiting(to, LinkType::Small), (0, 0), "what nobody waits for any more is gone");
    // what was borrowed is there again for another link
    (1000..1180).for_each(|id| {
        links.send_on(to, LinkType::Large, message(&world, 0, id, Verb::MutationReq, 60_000, 1)).unwrap()
    });
    world.run_for(Duration::from_secs(10));
    let (_others, got) = start(&world, 1, MessagingVersion::V13, Framing::Crc);
    links.send(to, message(&world, 0, 900, Verb::MutationReq, 10, 2000)).unwrap();
    world.run_for(Duration::from_secs(3));
    assert_eq!(got.lock().unwrap().iter().map(|(_, _, id)| *id).collect::<Vec<_>>(), [900]);
}

#[test]
fn neighbours_of_both_versions_speak_twelve() {
    for (opener, acceptor) in
        [(MessagingVersion::V12, MessagingVersion::V13), (MessagingVersion::V13, MessagingVersion::V12)]
    {
        let world = World::new(5, 2);
        let (links, _) = start(&world, 0, opener, Framing::Crc);
        let (_others, got) = start(&world, 1, acceptor, Framing::Crc);
        links.send(address(&world, 1), message(&world, 0, 1, Verb::EchoReq, 0, 2000)).unwrap();
        world.run_for(Duration::from_secs(1));
        assert_eq!(got.lock().unwrap().len(), 1);
    }
}

/// A stranger's bytes end the stranger's connection, and nothing else.
#[test]
fn garbage_closes_its_own_connection_alone() {
    let world = World::new(6, 3);
    let (links, _) = start(&world, 0, MessagingVersion::V13, Framing::Crc);
    let (_others, got) = start(&world, 1, MessagingVersion::V13, Framing::Crc);
    let good = internode::Initiate {
        link: LinkType::Small,
        framing: Framing::Crc,
        versions: internode::version::VersionRange { min: 12, max: 13 },
        from: address(&world, 2),
    };
    let mut unknown_verb = good.encode();
    let mut frame = BytesMut::new();
    let mut encoder = SegmentEncoder::new(SegmentFormat::Plain);
    encoder.append(&mut frame, |out| out.extend_from_slice(&[1, 1, 2, 3, 4, 0xA7, 0x10, 0x04, 0, 0, 0]));
    encoder.finish(&mut frame);
    unknown_verb.extend_from_slice(&frame);
    let old = internode::Initiate { versions: internode::version::VersionRange { min: 10, max: 11 }, ..good };
    let garbage =
        [b"GET / HTTP/1.1\r\n\r\n".to_vec(), vec![0; 100], unknown_verb, old.encode(), good.encode()[..9].to_vec()];
    for bytes in garbage {
        let env = world.env(2);
        let answered = world.block_on(async {
            let mut stream = env.network.connect(address(&world, 1)).await.unwrap();
            stream.write_all(&bytes).await.unwrap();
            let mut answer = Vec::new();
            let ended = env.timeout(Duration::from_secs(40), stream.read_to_end(&mut answer)).await;
            (ended.is_ok(), answer.len())
        });
        assert!(answered.0, "the connection was closed: {bytes:?}");
        assert!(answered.1 <= 12, "at most an Accept was sent");
    }
    links.send(address(&world, 1), message(&world, 0, 1, Verb::EchoReq, 0, 20_000)).unwrap();
    world.run_for(Duration::from_secs(1));
    assert_eq!(got.lock().unwrap().len(), 1);
}

/// Counters say what has happened on each link, in both directions.
#[test]
fn what_happens_on_links_is_counted() {
    let world = World::new(7, 2);
    let (links, _) = start(&world, 0, MessagingVersion::V13, Framing::Crc);
    let (others, got) = start(&world, 1, MessagingVersion::V13, Framing::Crc);
    let to = address(&world, 1);
    for id in 1..=5 {
        links.send(to, message(&world, 0, id, Verb::MutationReq, 100, 2000)).unwrap();
    }
    world.run_for(Duration::from_secs(1));
    world.network().block(0, 1);
    assert!(world.network().reset_one(0, 1));
    world.run_for(Duration::from_secs(1));
    links.send(to, message(&world, 0, 6, Verb::MutationReq, 100, 500)).unwrap();
    world.run_for(Duration::from_secs(10));
    let [small] = &links.outbound_counts()[..] else { panic!("one link") };
    assert_eq!((small.peer, small.link, small.is_open), (to, LinkType::Small, false));
    assert_eq!((small.sent.count, small.expired.count, small.pending.count), (5, 1, 0));
    assert!(small.sent.bytes > 500 && small.attempts > small.connections, "{small:?}");
    assert_eq!((small.connections, small.dropped()), (1, 1));
    let [small] = &others.inbound_counts()[..] else { panic!("one link") };
    assert_eq!((small.peer, small.link, small.open), (address(&world, 0), LinkType::Small, 0));
    assert_eq!((small.received, small.processed), (small.received, small.received));
    assert_eq!((small.received.count, small.closed, small.expired.count), (5, 0, 0));
    assert_eq!(small.received.bytes, links.outbound_counts()[0].sent.bytes);
    assert_eq!(got.lock().unwrap().len(), 5);
}

/// A message that is too old on arrival is counted, and nobody executes it.
#[test]
fn a_message_that_is_too_old_on_arrival_is_not_given() {
    let world = World::new(8, 2);
    let (links, _) = start(&world, 0, MessagingVersion::V13, Framing::Crc);
    let (others, got) = start(&world, 1, MessagingVersion::V13, Framing::Crc);
    // the receiver's clock is ten seconds ahead
    world.shift_wall_clock(1, 10_000_000);
    links.send(address(&world, 1), message(&world, 0, 1, Verb::MutationReq, 100, 2000)).unwrap();
    world.run_for(Duration::from_secs(1));
    let [small] = &others.inbound_counts()[..] else { panic!("one link") };
    assert_eq!((small.received.count, small.expired.count, small.processed.count), (1, 1, 0));
    assert!(got.lock().unwrap().is_empty());
}
