//! Whom reads ask, by what the dynamic snitch knows.

use std::net::SocketAddr;
use std::time::Duration;

use env::sim::Link;
use internode::payload::gossip::ApplicationState;
use types::Consistency;

use crate::testing::{SNITCH_RESET, SimRing};

/// Four nodes, a keyspace of two copies, and a partition of which node 0 has none.
fn four() -> (SimRing, i32) {
    let ring = SimRing::new(1, &["dc1", "dc1", "dc1", "dc1"]);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "2")]);
    let is_elsewhere = |k: &i32| !asked(&ring, *k, Consistency::All).contains(&ring.address(0));
    let k = (0..).find(is_elsewhere).expect("some partition is elsewhere");
    ring.write(0, vec![ring.row("ks", k, 1, 1, 10)], Consistency::All).expect("written");
    (ring, k)
}

/// The replicas of a partition that node 0 asks.
fn asked(ring: &SimRing, k: i32, level: Consistency) -> Vec<SocketAddr> {
    let parts = ring.node(0).plan_parts_if_distributed(&[ring.select_key("ks", k)], level).expect("all are up");
    parts.iter().flatten().flat_map(|part| &part.contacts.asked).map(|contact| contact.address).collect()
}

/// How long node 0 takes to read a partition at ONE.
fn read(ring: &SimRing, k: i32) -> Duration {
    let begun = ring.world.elapsed();
    let read = ring.read(0, vec![ring.select_key("ks", k)], Consistency::One);
    assert_eq!(read.expect("answered"), [(k, 1, 1)]);
    ring.world.elapsed() - begun
}

/// A replica that has become slow is not asked while another one is faster; when its latencies are
/// forgotten it is asked again.
#[test]
fn a_slow_replica_is_avoided_and_comes_back() {
    let (ring, k) = four();
    let near = asked(&ring, k, Consistency::All);
    let slow = (0..4).find(|machine| ring.address(*machine) == near[0]).expect("a node of the ring");
    let far = Link { delay_min_micros: 40_000, delay_max_micros: 60_000, ..Link::NEAR };
    ring.world.network().set_link(slow, 0, far);
    let times: Vec<Duration> = (0..20)
        .map(|_| {
            ring.world.run_for(Duration::from_millis(100));
            read(&ring, k)
        })
        .collect();
    assert!(times[0] > Duration::from_millis(30), "{times:?}");
    assert!(times[10..].iter().all(|time| *time < Duration::from_millis(10)), "{times:?}");
    assert_eq!(asked(&ring, k, Consistency::All), [near[1], near[0]]);
    ring.world.network().set_link(slow, 0, Link::NEAR);
    ring.world.run_for(SNITCH_RESET);
    assert_eq!(asked(&ring, k, Consistency::All), near);
}

/// A replica that tells a severity of itself is asked last.
#[test]
fn a_severity_that_a_node_tells_counts() {
    let (ring, k) = four();
    let near = asked(&ring, k, Consistency::All);
    let first = (0..4).find(|machine| ring.address(*machine) == near[0]).expect("a node of the ring");
    let messenger = ring.node(first).messenger().expect("it has joined");
    messenger.with_gossip(|gossip| gossip.local.set(ApplicationState::Severity, "2.5"));
    ring.world.run_for(Duration::from_secs(10));
    assert_eq!(asked(&ring, k, Consistency::All), [near[1], near[0]]);
    assert_eq!(asked(&ring, k, Consistency::One), [near[1]]);
}
