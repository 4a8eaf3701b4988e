//! Counters among several nodes.

use std::time::Duration;

use types::{Consistency, WriteKind};

use crate::coordinator::error::RequestError;
use crate::replica::apply::WriteError;
use crate::testing::SimRing;

fn add(ring: &SimRing, through: usize, keyspace: &str, by: i64, level: Consistency) -> Result<(), RequestError> {
    let node = ring.node(through).clone();
    let increment = ring.increment(keyspace, 1, by, node.clock.next_micros());
    ring.world.block_on(async move {
        match node.add_to_counters(vec![increment], level, None, None).await? {
            Some(wait) => wait.await,
            None => Ok(()),
        }
    })
}

/// Every node leads what it is asked for and is a replica of, and each has the sum; what is asked
/// of a node that is no replica is led by one.
#[test]
fn every_replica_has_the_sum_of_all_leaders() {
    let ring = SimRing::new(1, &["dc1", "dc1", "dc1"]);
    for (name, factor) in [("ks", "3"), ("one", "1")] {
        ring.create_keyspace(name, "SimpleStrategy", &[("replication_factor", factor)]);
    }
    for through in 0..3 {
        add(&ring, through, "ks", 1 << through, Consistency::All).expect("counted");
        add(&ring, through, "one", 1 << through, Consistency::One).expect("counted");
    }
    (0..3).for_each(|machine| assert_eq!(ring.counted(machine, "ks", 1), 7, "machine {machine}"));
    let mut of_one: Vec<i64> = (0..3).map(|machine| ring.counted(machine, "one", 1)).collect();
    of_one.sort_unstable();
    assert_eq!(of_one, [0, 0, 7]);
}

/// Nobody knows whether a leader that does not answer has counted: the client is told of a timeout.
/// A replica that is cut off costs only the levels that need it.
#[test]
fn a_leader_that_is_cut_off_makes_a_timeout() {
    let ring = SimRing::new(2, &["dc1", "dc1"]);
    ring.create_keyspace("one", "SimpleStrategy", &[("replication_factor", "1")]);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "2")]);
    add(&ring, 0, "one", 5, Consistency::One).expect("counted");
    let leader = (0..2).find(|machine| ring.counted(*machine, "one", 1) == 5).expect("one has it");
    ring.world.network().partition(&[leader]);
    let other = 1 - leader;
    let Err(RequestError::Write(failed)) = add(&ring, other, "one", 1, Consistency::One) else {
        panic!("the leader is cut off")
    };
    assert_eq!((failed.cause, failed.answers.kind), (WriteError::TimedOut, WriteKind::Counter));
    add(&ring, other, "ks", 3, Consistency::One).expect("counted");
    let Err(RequestError::Write(failed)) = add(&ring, other, "ks", 3, Consistency::All) else {
        panic!("a replica is cut off")
    };
    assert_eq!((failed.answers.received, failed.answers.block_for), (1, 2));
    ring.world.run_for(Duration::from_secs(1));
    assert_eq!(ring.counted(other, "ks", 1), 6);
}

/// A replica that does not take drivers yet leads nothing.
#[test]
fn a_node_that_is_not_ready_leads_nothing() {
    let ring = SimRing::new(3, &["dc1", "dc1", "dc1"]);
    ring.create_keyspace("one", "SimpleStrategy", &[("replication_factor", "1")]);
    add(&ring, 0, "one", 5, Consistency::One).expect("counted");
    let leader = (0..3).find(|machine| ring.counted(*machine, "one", 1) == 5).expect("one has it");
    let set_ready = |ready| {
        ring.node(leader).membership().expect("it has joined").set_ready(ready);
        ring.world.run_for(Duration::from_secs(5));
    };
    set_ready(false);
    let (other, level) = ((leader + 1) % 3, Consistency::One);
    let shortage = ring::InsufficientReplicas { required: 1, alive: 0 };
    assert_eq!(add(&ring, other, "one", 1, level), Err(RequestError::Unavailable { level, shortage }));
    set_ready(true);
    add(&ring, other, "one", 1, level).expect("counted");
    assert_eq!(ring.counted(leader, "one", 1), 6);
}
