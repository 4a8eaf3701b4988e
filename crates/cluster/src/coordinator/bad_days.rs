//! Bad days of a ring, of which a replica is the cause: a full disk, days of absence, a clock that
//! is an hour ahead. Nothing that was acknowledged is lost, and no read gives a wrong answer.

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
