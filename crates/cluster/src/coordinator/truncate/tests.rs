//! TRUNCATE among several nodes.

use std::time::Duration;

use ring::InsufficientReplicas;
use types::Consistency;

use crate::coordinator::error::RequestError;
use crate::replica::apply::WriteError;
use crate::testing::SimRing;

#[test]
fn every_node_truncates_or_the_client_is_told_who_has_not() {
    let mut ring = SimRing::new(1, &["dc1", "dc1", "dc2"]);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "3")]);
    let truncate = |ring: &SimRing| {
        let node = ring.node(1).clone();
        ring.world.block_on(async move { node.truncate("ks", "t").await })
    };
    let write = |ring: &SimRing, v| ring.write(0, vec![ring.row("ks", 1, 2, v, i64::from(v))], Consistency::All);
    write(&ring, 3).expect("written");
    truncate(&ring).expect("truncated");
    (0..3).for_each(|machine| assert_eq!(ring.stored(machine, "ks", 1), [], "machine {machine}"));
    write(&ring, 4).expect("written");
    // one is cut off, and nobody knows yet
    ring.world.network().partition(&[2]);
    let Err(RequestError::Write(failed)) = truncate(&ring) else { panic!("one node has not truncated") };
    assert_eq!((failed.cause, failed.answers.received), (WriteError::TimedOut, 2));
    assert_eq!(ring.stored(2, "ks", 1), [(2, 4)]);
    ring.world.network().heal();
    ring.kill(2);
    ring.agree();
    let (level, shortage) = (Consistency::All, InsufficientReplicas { required: 3, alive: 2 });
    assert_eq!(truncate(&ring), Err(RequestError::Unavailable { level, shortage }));
}

/// Otherwise one node keeps what the others have dropped, and repairs bring it back to them.
#[test]
fn a_truncation_ends_on_its_coordinator_too_though_nobody_waits_for_it() {
    let ring = SimRing::new(2, &["dc1", "dc1", "dc1"]);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "3")]);
    ring.write(0, vec![ring.row("ks", 1, 2, 3, 10)], Consistency::All).expect("written");
    let node = ring.node(0);
    let given_up = node.env.timeout(Duration::from_millis(1), node.truncate("ks", "t"));
    assert!(ring.world.block_on(given_up).is_err(), "its client goes away");
    ring.world.run_for(Duration::from_secs(5));
    (0..3).for_each(|machine| assert_eq!(ring.stored(machine, "ks", 1), [], "machine {machine}"));
}
