//! Bad days of a ring, of which a replica or the way to it is the cause: a full disk, days of
//! absence, a clock that is an hour ahead, links that hang, another address. Nothing that was
//! acknowledged is lost, and no read gives a wrong answer.

use std::time::Duration;

use types::{Consistency, FailureReason};

use crate::coordinator::error::RequestError;
use crate::replica::apply::WriteError;
use crate::testing::SimRing;

const KEYS: i32 = 20;

/// Bytes of a segment of the commit log: few writes fill what a full disk has left of them.
const SEGMENT: u32 = 128 << 10;

/// Three nodes and a keyspace of three copies.
fn three(seed: u64) -> SimRing {
    let ring = SimRing::with_segments(seed, &["dc1", "dc1", "dc1"], SEGMENT);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "3")]);
    ring
}

/// The values (c, v) of each partition, read through each node.
fn check_everywhere(ring: &SimRing, level: Consistency, expected: &[(i32, i32)]) {
    for (machine, k) in (0..3).flat_map(|machine| (0..KEYS).map(move |k| (machine, k))) {
        let rows = ring.read(machine, vec![ring.select_key("ks", k)], level).expect("answered");
        let wanted: Vec<_> = expected.iter().map(|(c, v)| (k, *c, *v)).collect();
        assert_eq!(rows, wanted, "partition {k} through machine {machine}");
    }
}

/// A replica whose disk is full refuses writes and says so; the others go on. What it has refused
/// comes as hints once there is room.
#[test]
fn a_full_disk_stops_one_replica() {
    let ring = three(71);
    for k in 0..KEYS {
        ring.write(0, vec![ring.row("ks", k, 1, 1, 10)], Consistency::All).expect("written");
    }
    let disk = ring.world.disk(2);
    disk.set_capacity(Some(0));
    // the log keeps what it has room for; then it refuses
    let mut refused = None;
    for round in 0..2_000 {
        let rows = (0..KEYS).map(|k| ring.row("ks", k, 2, 2, 20 + round)).collect();
        if let Err(error) = ring.write(0, rows, Consistency::All) {
            refused = Some(error);
            break;
        }
    }
    let Some(RequestError::Write(failed)) = refused else { panic!("a full disk takes nothing: {refused:?}") };
    assert_eq!(failed.cause, WriteError::Peers, "the replica says so at once");
    let told: Vec<_> = failed.answers.failures.iter().map(|failure| (failure.endpoint, failure.reason)).collect();
    assert_eq!(told, [(ring.address(2), FailureReason::Unknown)]);
    for k in 0..KEYS {
        ring.write(1, vec![ring.row("ks", k, 3, 3, 30)], Consistency::Quorum).expect("two have room");
    }
    disk.set_capacity(None);
    let has_all = || (0..KEYS).all(|k| ring.stored(2, "ks", k) == [(1, 1), (2, 2), (3, 3)]);
    assert!(ring.world.run_until(Duration::from_secs(600), has_all), "hints bring what was refused");
    check_everywhere(&ring, Consistency::All, &[(1, 1), (2, 2), (3, 3)]);
}

/// A node that was away for days has missed what no hint has kept. Reads give what a quorum
/// acknowledged all the same, and the node has it afterwards.
#[test]
fn a_node_comes_back_after_days() {
    const DAYS_MICROS: i64 = 5 * 24 * 3_600 * 1_000_000;
    let mut ring = three(72);
    for k in 0..KEYS {
        ring.write(0, vec![ring.row("ks", k, 1, 1, 10)], Consistency::All).expect("written");
    }
    // durable, so that the process that comes back has it
    ring.world.run_for(Duration::from_secs(15));
    ring.kill(2);
    ring.agree();
    let write = |ring: &SimRing, c| {
        for k in 0..KEYS {
            ring.write(1, vec![ring.row("ks", k, c, c, 20)], Consistency::Quorum).expect("two are there");
        }
    };
    write(&ring, 2);
    (0..3).for_each(|machine| ring.world.shift_wall_clock(machine, DAYS_MICROS));
    // the hints of the first writes are older than `max_hint_window` now, and there are no new ones
    ring.world.run_for(Duration::from_secs(60));
    write(&ring, 3);
    ring.start(2);
    ring.agree();
    let has_last = |k: &i32| ring.stored(2, "ks", *k).contains(&(3, 3));
    assert_eq!((0..KEYS).filter(has_last).count(), 0, "nothing was kept for so long");
    check_everywhere(&ring, Consistency::Quorum, &[(1, 1), (2, 2), (3, 3)]);
    check_everywhere(&ring, Consistency::All, &[(1, 1), (2, 2), (3, 3)]);
    assert_eq!((0..KEYS).filter(has_last).count(), KEYS as usize, "reads have repaired it");
}

/// A coordinator whose clock is an hour ahead: its writes are there for all at once, and requests
/// of and to it do not expire.
#[test]
fn a_clock_an_hour_ahead_takes_part() {
    for micros in [3_600_000_000, -3_600_000_000] {
        let ring = three(73);
        ring.world.shift_wall_clock(1, micros);
        ring.world.run_for(Duration::from_secs(10));
        for (c, through) in [(1, 0), (2, 1), (3, 2)] {
            for k in 0..KEYS {
                let row = ring.row("ks", k, c, c, 10);
                ring.write(through, vec![row], Consistency::All).expect("all take it, whatever their clocks say");
            }
        }
        check_everywhere(&ring, Consistency::All, &[(1, 1), (2, 2), (3, 3)]);
    }
}

/// Writes a row to each partition at QUORUM through machine 0, and reads all partitions through
/// machines 0 and 1. Each request has its answer before its timeout.
fn carry_on(ring: &SimRing, c: i32, expected: &[(i32, i32)]) {
    let timeouts = ring.node(0).timeouts();
    let in_time = |limit: Duration, act: &dyn Fn()| {
        let begun = ring.world.elapsed();
        act();
        let took = ring.world.elapsed() - begun;
        assert!(took < limit, "a request takes {took:?}");
    };
    for k in 0..KEYS {
        in_time(timeouts.write, &|| {
            let row = ring.row("ks", k, c, c, 10 * i64::from(c));
            ring.write(0, vec![row], Consistency::Quorum).expect("two replicas are there");
        });
        let wanted: Vec<_> = expected.iter().map(|(c, v)| (k, *c, *v)).collect();
        for through in [0, 1] {
            in_time(timeouts.read, &|| {
                let read = ring.read(through, vec![ring.select_key("ks", k)], Consistency::Quorum);
                assert_eq!(read.expect("two replicas are there"), wanted, "partition {k} through {through}");
            });
        }
    }
}

/// Whether a machine sees another one up.
fn sees_up(ring: &SimRing, machine: usize, other: usize) -> bool {
    let (now, address) = (ring.node(machine).ring(), ring.address(other));
    now.endpoints().iter().any(|endpoint| endpoint.address == address && endpoint.is_up)
}

/// Bytes that wait at a machine for another one, on all links.
fn waiting(ring: &SimRing, machine: usize, other: usize) -> u64 {
    let counts = ring.node(machine).messenger().expect("it has joined").outbound_counts();
    counts.iter().filter(|link| link.peer == ring.address(other)).map(|link| link.pending.bytes).sum()
}

/// A process that stands still: its kernel takes bytes, nothing is answered. Writes and reads go on
/// without it, it is found to be down, and what it has missed comes as hints when it goes on.
#[test]
fn a_replica_that_stands_still_holds_nobody_up() {
    let ring = three(74);
    carry_on(&ring, 1, &[(1, 1)]);
    ring.world.pause(2);
    carry_on(&ring, 2, &[(1, 1), (2, 2)]);
    let is_found_out = || !sees_up(&ring, 0, 2) && !sees_up(&ring, 1, 2);
    assert!(ring.world.run_until(Duration::from_secs(60), is_found_out), "phi convicts it");
    carry_on(&ring, 3, &[(1, 1), (2, 2), (3, 3)]);
    // what is left are messages of gossip, by which the node is found when it goes on
    assert!(waiting(&ring, 0, 2) < 512, "no request is kept in memory for a node that is down");
    ring.world.resume(2);
    ring.agree();
    let has_all = || (0..KEYS).all(|k| ring.stored(2, "ks", k) == [(1, 1), (2, 2), (3, 3)]);
    assert!(ring.world.run_until(Duration::from_secs(300), has_all), "hints bring what it has missed");
}

/// All connections between two machines hang, as behind a firewall that has forgotten them: bytes
/// are taken and go nowhere, and nobody is told. The third machine still reaches both, so neither
/// takes the other for down. What waits is given up, the links are opened anew
/// (`internode_tcp_user_timeout`), and hints bring what was lost.
#[test]
fn links_that_hang_are_opened_anew() {
    let ring = three(75);
    carry_on(&ring, 1, &[(1, 1)]);
    while ring.world.network().hang_one(0, 2) {}
    let opened = |machine: usize, to: usize| -> u64 {
        let counts = ring.node(machine).messenger().expect("it has joined").outbound_counts();
        counts.iter().filter(|link| link.peer == ring.address(to)).map(|link| link.connections).sum()
    };
    let before = opened(0, 2);
    let (mut c, mut expected, mut most) = (1, vec![(1, 1)], 0);
    while opened(0, 2) == before {
        c += 1;
        assert!(c < 120, "a link that takes no byte for half a minute is opened anew");
        expected.push((c, c));
        carry_on(&ring, c, &expected);
        most = most.max(waiting(&ring, 0, 2));
        ring.world.run_for(Duration::from_secs(1));
    }
    assert!(most < 1 << 20, "what nobody waits for any more does not stay in memory: {most}");
    ring.agree();
    let has_all = || (0..KEYS).all(|k| ring.stored(2, "ks", k) == expected);
    assert!(ring.world.run_until(Duration::from_secs(300), has_all), "hints bring what was lost");
    check_everywhere(&ring, Consistency::All, &expected);
}

/// A cable is cut and put in again after minutes: neither side was told of the end of any
/// connection. Each finds out by itself.
#[test]
fn a_cable_that_was_cut_heals() {
    let ring = three(76);
    carry_on(&ring, 1, &[(1, 1)]);
    ring.world.network().partition(&[2]);
    carry_on(&ring, 2, &[(1, 1), (2, 2)]);
    ring.world.run_for(Duration::from_secs(180));
    assert!(!sees_up(&ring, 0, 2) && !sees_up(&ring, 2, 0));
    let alone = ring.write(2, vec![ring.row("ks", 1, 9, 9, 90)], Consistency::Quorum);
    assert!(matches!(alone, Err(RequestError::Unavailable { .. })), "{alone:?}");
    ring.world.network().heal();
    ring.agree();
    let has_all = || (0..KEYS).all(|k| ring.stored(2, "ks", k) == [(1, 1), (2, 2)]);
    assert!(ring.world.run_until(Duration::from_secs(300), has_all), "hints bring what it has missed");
    check_everywhere(&ring, Consistency::All, &[(1, 1), (2, 2)]);
}

/// A node comes back under another address with its host id and tokens: the ring has it there and
/// forgets the former address, hints find it, and drivers read of one node. So does a node that was
/// down meanwhile and remembers the former address.
#[test]
fn a_node_comes_back_under_another_address() {
    let mut ring = SimRing::begun(77, &["dc1", "dc1", "dc1", "dc1"], 3);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "3")]);
    carry_on(&ring, 1, &[(1, 1)]);
    let identity = &ring.node(2).identity;
    let (host_id, tokens) = (identity.host_id, identity.tokens.iter().map(|token| token.0).collect());
    ring.kill(2);
    ring.agree();
    carry_on(&ring, 2, &[(1, 1), (2, 2)]);
    ring.world.run_for(Duration::from_secs(15));
    ring.kill(1);
    ring.host_ids.insert(3, host_id);
    ring.tokens.insert(3, tokens);
    ring.start(3);
    let has_last = |ring: &SimRing| (0..KEYS).all(|k| ring.stored(3, "ks", k).contains(&(2, 2)));
    assert!(ring.world.run_until(Duration::from_secs(300), || has_last(&ring)), "hints follow the host id");
    ring.start(1);
    ring.agree();
    let addresses = |ring: &SimRing, machine: usize| {
        let mut known: Vec<_> = ring.node(machine).ring().endpoints().iter().map(|endpoint| endpoint.address).collect();
        known.sort();
        known
    };
    let wanted = [0, 1, 3].map(|machine| ring.address(machine));
    for machine in [0, 1, 3] {
        let is_forgotten = || addresses(&ring, machine) == wanted && ring.count(machine, "system", "peers_v2") == 2;
        let forgotten = ring.world.run_until(Duration::from_secs(120), is_forgotten);
        let rows = ring.count(machine, "system", "peers_v2");
        assert!(forgotten, "machine {machine} knows {:?}, {rows} rows", addresses(&ring, machine));
    }
}
