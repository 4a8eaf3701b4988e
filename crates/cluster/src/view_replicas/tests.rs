//! Changes of views that belong to other nodes.

use std::time::Duration;

use types::Consistency;

use crate::testing::SimRing;
use crate::testing::views::{create_on, keyspace_with_view, owned_by, show_everything};

/// Runs until a look once a second says yes.
fn comes(ring: &SimRing, seconds: u32, is_there: impl Fn(&SimRing) -> bool) -> bool {
    (0..seconds).any(|_| {
        ring.world.run_for(Duration::from_secs(1));
        is_there(ring)
    })
}

/// A replica of a view that is down gets a hint of each of its entries at once, however slowly
/// records of the batch log are sent again, and the records go.
#[test]
fn a_replica_of_a_view_that_is_down_gets_hints() {
    const ROWS: usize = 300;
    let mut ring = SimRing::new(1, &["dc1", "dc1", "dc1"]);
    create_on(&ring, &keyspace_with_view("1"));
    let (key, values) = (owned_by(&ring, 0, 1)[0], owned_by(&ring, 2, ROWS));
    ring.kill(2);
    ring.agree();
    ring.node(0).set_batchlog_replay_throttle(Some(30));
    for (c, v) in (0..).zip(values) {
        ring.write(0, vec![ring.row("ks", key, c, v, 1)], Consistency::One).expect("written");
    }
    assert!(comes(&ring, 30, |ring| ring.count(0, "system", "batches") == 0), "the records go");
    ring.start(2);
    show_everything(&ring.node(2).engine);
    assert!(comes(&ring, 120, |ring| ring.count(2, "ks", "by_v") == ROWS), "the hints come");
}
