//! The settings of links, each at another value than the usual one.

use super::*;

/// Links of a machine with these settings.
fn start_with(world: &World, machine: usize, settings: LinkSettings) -> (Links, Got) {
    let got = Got::default();
    let options = LinkOptions { settings, ..plain(world, machine) };
    (Links::start(&world.env(machine), options, Arc::new(Gather(got.clone()))).unwrap(), got)
}

fn ids(got: &Got) -> Vec<u64> {
    got.lock().unwrap().iter().map(|(_, _, id)| *id).collect()
}

/// A message of the greatest size is sent and taken; one byte more is refused before it is sent,
/// and closes the link of a peer that sends it all the same.
#[test]
fn no_message_is_larger_than_the_greatest_size() {
    let world = World::new(51, 3);
    let whole = message(&world, 0, 1, Verb::MutationReq, 100_000, 20_000);
    let settings = LinkSettings { message_size_max: crate::links::encoded_size(&whole), ..LinkSettings::default() };
    let (links, _) = start_with(&world, 0, settings.clone());
    let (others, got) = start_with(&world, 1, settings);
    let to = address(&world, 1);
    links.send(to, whole).unwrap();
    let larger = |id| message(&world, 0, id, Verb::MutationReq, 100_001, 20_000);
    assert_eq!(links.send(to, larger(2)), Err(Refused::TooLarge));
    world.run_for(Duration::from_secs(1));
    assert_eq!(ids(&got), [1]);
    let (strangers, _) = start(&world, 2, MessagingVersion::V13, Framing::Crc);
    strangers.send(to, larger(3)).unwrap();
    world.run_for(Duration::from_secs(1));
    let counts = others.inbound_counts();
    assert_eq!(counts.iter().map(|counts| counts.closed).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(ids(&got), [1]);
}

/// Messages that wait for one peer take no more than its reserve, whatever its links are, and
/// leave the rest of the reserve of all to the others.
#[test]
fn a_peer_that_takes_nothing_leaves_room_for_the_others() {
    let world = World::new(52, 4);
    let settings = LinkSettings { queue: 1 << 20, reserve_each: 2 << 20, reserve: 3 << 20, ..LinkSettings::default() };
    let (links, _) = start_with(&world, 0, settings);
    let mut id = 0;
    let mut fill = |machine: usize, link: LinkType| {
        let mut taken = 0;
        loop {
            id += 1;
            let sent = links.send_on(address(&world, machine), link, message(&world, 0, id, Verb::EchoReq, 9936, 9000));
            match sent {
                Ok(()) => taken += 10_000,
                Err(error) => {
                    assert_eq!(error, Refused::Full);
                    return taken;
                }
            }
        }
    };
    const MIB: usize = 1 << 20;
    // messages are whole, so a queue leaves less than one message to the next queue
    let close_to = |taken: usize, mib: usize| taken.abs_diff(mib * MIB) < 10_000;
    let first = fill(1, LinkType::Small);
    assert!(close_to(first, 3), "{first}: its own room and the reserve of the peer");
    let second = fill(1, LinkType::Large);
    assert!(close_to(second, 1), "{second}: the reserve of the peer is taken");
    let third = fill(2, LinkType::Small);
    assert!(close_to(third, 2), "{third}: what is left of the reserve of all");
    let fourth = fill(3, LinkType::Small);
    assert!(close_to(fourth, 1), "{fourth}: only its own room");
}

/// Without trust in clocks a message counts as made when it comes: that of a peer whose clock is
/// ten seconds behind is given.
#[test]
fn clocks_that_are_not_trusted_make_no_message_old() {
    for trusts_clocks in [true, false] {
        let world = World::new(53, 2);
        let (links, _) = start(&world, 0, MessagingVersion::V13, Framing::Crc);
        let (others, got) = start_with(&world, 1, LinkSettings { trusts_clocks, ..LinkSettings::default() });
        world.shift_wall_clock(1, 10_000_000);
        links.send(address(&world, 1), message(&world, 0, 1, Verb::MutationReq, 100, 2000)).unwrap();
        world.run_for(Duration::from_secs(1));
        assert_eq!(ids(&got).len(), usize::from(!trusts_clocks));
        assert_eq!(others.inbound_counts()[0].expired.count, u64::from(trusts_clocks));
    }
}

/// Attempts to connect to a machine that says nothing are given up after the time of the settings.
#[test]
fn an_attempt_to_connect_ends_in_time() {
    let attempts = |connect_timeout: Duration| {
        let world = World::new(54, 2);
        let (links, _) = start_with(&world, 0, LinkSettings { connect_timeout, ..LinkSettings::default() });
        world.network().block(0, 1);
        links.send(address(&world, 1), message(&world, 0, 1, Verb::MutationReq, 100, 60_000)).unwrap();
        world.run_for(Duration::from_secs(30));
        links.outbound_counts()[0].attempts
    };
    assert_eq!(attempts(Duration::from_secs(14)), 3, "at 0, 14.1 and 28.3 s");
    assert!((11..=15).contains(&attempts(Duration::from_secs(2))));
}

/// Peers connect at the broadcast address too, where the settings say so.
#[test]
fn the_broadcast_address_may_be_listened_on_too() {
    for listens_on_broadcast in [false, true] {
        let world = World::new(55, 2);
        let settings = LinkSettings { listens_on_broadcast, ..LinkSettings::default() };
        let got = Got::default();
        let broadcast = SocketAddr::new(world.address(1), 7099);
        let options = LinkOptions { settings, local: broadcast, ..plain(&world, 1) };
        let _others = Links::start(&world.env(1), options, Arc::new(Gather(got.clone()))).unwrap();
        let (links, _) = start(&world, 0, MessagingVersion::V13, Framing::Crc);
        for (id, to) in [(1, address(&world, 1)), (2, broadcast)] {
            links.send(to, message(&world, 0, id, Verb::EchoReq, 0, 2000)).unwrap();
        }
        world.run_for(Duration::from_secs(5));
        let mut came = ids(&got);
        came.sort_unstable();
        assert_eq!(came, if listens_on_broadcast { vec![1, 2] } else { vec![1] });
    }
}

#[test]
fn sockets_have_the_buffers_that_operators_set() {
    let settings = LinkSettings { send_buffer: 70_000, receive_buffer: 90_000, ..LinkSettings::default() };
    let (opened, stream, accepted) = (settings.opened(), settings.opened_for_stream(), settings.accepted());
    let buffers = [opened, stream, accepted].map(|options| (options.send_buffer, options.receive_buffer));
    assert_eq!(buffers, [(70_000, 0), (70_000, 0), (0, 90_000)]);
    assert_eq!((opened.user_timeout, stream.user_timeout), (settings.user_timeout, settings.stream_user_timeout));
}
