//! Peers that send nonsense, that hang, and that are gone without a word: each costs its own link,
//! within the bounds, and the others go on.

use super::*;

/// The bytes that begin a link of machine 2.
fn initiate(world: &World) -> Vec<u8> {
    internode::Initiate {
        link: LinkType::Large,
        framing: Framing::Crc,
        versions: internode::version::VersionRange { min: 12, max: 13 },
        from: address(world, 2),
    }
    .encode()
}

/// One frame with these bytes as its payload.
fn frame(payload: &[u8], self_contained: bool) -> BytesMut {
    let mut out = BytesMut::new();
    let mut encoder = SegmentEncoder::new(SegmentFormat::Plain);
    match self_contained {
        true => encoder.append(&mut out, |out| out.extend_from_slice(payload)),
        false => encoder.append_part(&mut out, payload),
    }
    encoder.finish(&mut out);
    out
}

fn bytes_of(message: &Envelope) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    bytes
}

/// A stranger that says each of these after a proper handshake loses its link, except where only a
/// message is damaged; its neighbours notice nothing, and the counters tell what happened.
#[test]
fn nonsense_after_the_handshake_costs_the_link_alone() {
    let world = World::new(31, 3);
    let (links, _) = start(&world, 0, MessagingVersion::V13, Framing::Crc);
    let (others, got) = start(&world, 1, MessagingVersion::V13, Framing::Crc);
    let good = message(&world, 2, 70, Verb::MutationReq, 50, 20_000);
    let mut wrong_header = frame(&bytes_of(&good), true);
    wrong_header[1] ^= 1;
    let mut wrong_payload = frame(&bytes_of(&good), true);
    wrong_payload[20] ^= 1;
    let mut wrong_first_part = frame(&bytes_of(&good), false);
    wrong_first_part[20] ^= 1;
    // a header that announces more than internode_max_message_size
    let mut huge = good.clone();
    huge.payload = Bytes::from(vec![0; 10]);
    let mut huge = bytes_of(&huge);
    huge.truncate(huge.len() - 11);
    huge.extend_from_slice(&[0xF0, 0x7F, 0xFF, 0xFF, 0xFF]);
    // an unknown verb
    let verb = [1, 1, 2, 3, 4, 0xA7, 0x10, 0x04, 0, 0, 0];
    // two halves of two messages
    let mut halves = frame(&bytes_of(&message(&world, 2, 71, Verb::MutationReq, 90_000, 20_000))[..60_000], false);
    halves.extend_from_slice(&frame(&bytes_of(&good), true));
    let cases: [(&str, BytesMut, bool); 7] = [
        ("a wrong checksum of a frame's header", wrong_header, true),
        ("a wrong checksum of whole messages", wrong_payload, false),
        ("a wrong checksum of the first part of a message", wrong_first_part, true),
        ("a huge length", frame(&huge, false), true),
        ("an unknown verb", frame(&verb, true), true),
        ("half a message, then another one", halves, true),
        ("a message of no bytes", frame(&[0xFF; 3], true), true),
    ];
    for (number, (what, bytes, closes)) in cases.into_iter().enumerate() {
        let env = world.env(2);
        let ended = world.block_on(async {
            let mut stream = env.network.connect(address(&world, 1)).await.unwrap();
            stream.write_all(&initiate(&world)).await.unwrap();
            stream.write_all(&bytes).await.unwrap();
            let mut answer = Vec::new();
            env.timeout(Duration::from_secs(3), stream.read_to_end(&mut answer)).await.is_ok()
        });
        assert_eq!(ended, closes, "{what}");
        world.run_for(Duration::from_secs(1));
        links.send(address(&world, 1), message(&world, 0, number as u64 + 1, Verb::EchoReq, 0, 20_000)).unwrap();
        world.run_for(Duration::from_secs(1));
        let ids: Vec<_> = got.lock().unwrap().iter().map(|(_, _, id)| *id).collect();
        assert_eq!(ids, (1..=number as u64 + 1).collect::<Vec<_>>(), "{what}: nothing of it is given");
    }
    let counts = others.inbound_counts();
    let bad = counts.iter().find(|counts| counts.peer == address(&world, 2)).unwrap();
    assert_eq!((bad.closed, bad.damaged_frames, bad.received.count, bad.open), (6, 1, 0, 0));
}

/// A peer that announces a large message and sends a part of it holds what it has sent, not what it
/// has announced; when its connection ends nothing is kept.
#[test]
fn a_message_that_never_ends_is_given_up_with_its_link() {
    let world = World::new(32, 3);
    let (others, got) = start(&world, 1, MessagingVersion::V13, Framing::Crc);
    let whole = bytes_of(&message(&world, 2, 9, Verb::MutationReq, 4 << 20, 600_000));
    let env = world.env(2);
    world.block_on(async {
        let mut stream = env.network.connect(address(&world, 1)).await.unwrap();
        stream.write_all(&initiate(&world)).await.unwrap();
        stream.write_all(&frame(&whole[..100_000], false)).await.unwrap();
        env.sleep(Duration::from_secs(60)).await;
        assert_eq!(others.inbound_counts()[0].open, 1, "a link without bytes is legal");
    });
    world.run_for(Duration::from_secs(1));
    assert_eq!((others.inbound_counts()[0].open, others.inbound_counts()[0].closed), (0, 0));
    assert!(got.lock().unwrap().is_empty());
}

/// A peer that stands still with its connection open: when it has taken no byte for the time of
/// `internode_tcp_user_timeout` the link is closed and opened anew.
#[test]
fn a_link_that_hangs_is_closed_and_opened_anew() {
    let world = World::new(33, 2);
    let (links, _) = start(&world, 0, MessagingVersion::V13, Framing::Crc);
    let (_others, got) = start(&world, 1, MessagingVersion::V13, Framing::Crc);
    let to = address(&world, 1);
    links.send(to, message(&world, 0, 1, Verb::MutationReq, 10, 2000)).unwrap();
    world.run_for(Duration::from_secs(1));
    world.pause(1);
    for id in 2..=40 {
        links.send(to, message(&world, 0, id, Verb::MutationReq, 60_000, 120_000)).unwrap();
    }
    world.run_for(Duration::from_secs(20));
    let open = |links: &Links| links.outbound_counts()[0];
    assert!(open(&links).is_open && open(&links).connections == 1, "not yet");
    world.run_for(Duration::from_secs(20));
    let counts = open(&links);
    assert!(counts.attempts > 1 && counts.errors.count > 0, "{counts:?}");
    world.resume(1);
    world.run_for(Duration::from_secs(60));
    links.send(to, message(&world, 0, 90, Verb::MutationReq, 10, 20_000)).unwrap();
    world.run_for(Duration::from_secs(5));
    assert!(open(&links).connections > 1);
    assert_eq!(got.lock().unwrap().last().map(|(_, _, id)| *id), Some(90));
}

/// A peer that is taken for dead loses its connections and what waits for it; the next message
/// opens a new one.
#[test]
fn the_links_of_a_dead_peer_are_reset() {
    let world = World::new(34, 2);
    let (links, _) = start(&world, 0, MessagingVersion::V13, Framing::Crc);
    let (others, got) = start(&world, 1, MessagingVersion::V13, Framing::Crc);
    let to = address(&world, 1);
    links.send(to, message(&world, 0, 1, Verb::MutationReq, 10, 2000)).unwrap();
    world.run_for(Duration::from_secs(1));
    links.reset(to);
    world.run_for(Duration::from_secs(1));
    assert!(!links.outbound_counts()[0].is_open && others.inbound_counts()[0].open == 0);
    links.reset(to);
    links.send(to, message(&world, 0, 2, Verb::MutationReq, 10, 2000)).unwrap();
    world.run_for(Duration::from_secs(1));
    assert!(links.outbound_counts()[0].is_open && links.outbound_counts()[0].connections == 2);
    assert_eq!(got.lock().unwrap().iter().map(|(_, _, id)| *id).collect::<Vec<_>>(), [1, 2]);
}

/// Strangers that each send most of a large message and then nothing cannot take more memory than
/// is kept for all: the links beyond it are closed, and when the others end a large message comes
/// through again.
#[test]
fn unfinished_messages_take_no_more_than_is_kept_for_them() {
    let world = World::new(35, 3);
    let (links, _) = start(&world, 0, MessagingVersion::V13, Framing::Crc);
    let got = Got::default();
    let receiver = Arc::new(Gather(got.clone()));
    let others = Links::start(&world.env(1), plain(&world, 1), receiver).unwrap();
    let whole = bytes_of(&message(&world, 2, 9, Verb::MutationReq, 4 << 20, 600_000));
    for _ in 0..6 {
        let (env, to) = (world.env(2), address(&world, 1));
        let mut bytes = initiate(&world);
        // 3 MiB of 4: six of them are more than twice the reserve
        whole[..3 << 20].chunks(100_000).for_each(|part| bytes.extend_from_slice(&frame(part, false)));
        let sending = async move {
            let mut stream = env.network.connect(to).await.unwrap();
            // some are closed before they have sent all
            drop(stream.write_all(&bytes).await);
            env.sleep(Duration::from_secs(120)).await;
        };
        world.env(2).tasks.spawn_local_worker("stranger", Box::new(move || Box::pin(sending)));
    }
    // each link that has no room waits for it and is closed
    world.run_for(Duration::from_secs(80));
    let open = |others: &Links| others.inbound_counts().iter().map(|counts| counts.open).sum::<u64>();
    let most = (RESERVE / ((3 << 20) - limits::RECEIVE_OWN_MAX)) as u64 + 1;
    assert!((1..=most).contains(&open(&others)), "{} of at most {most}", open(&others));
    world.run_for(Duration::from_secs(80));
    assert_eq!(open(&others), 0);
    links.send(address(&world, 1), message(&world, 0, 1, Verb::MutationReq, 7 << 20, 20_000)).unwrap();
    world.run_for(Duration::from_secs(5));
    assert_eq!(got.lock().unwrap().iter().map(|(_, _, id)| *id).collect::<Vec<_>>(), [1]);
}
