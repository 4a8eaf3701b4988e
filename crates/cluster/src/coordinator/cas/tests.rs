//! How long the lock of a partition is held.

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use super::*;
use crate::testing::{SimNode, SimRing, WINDOW, poll};

/// The job that copies a large value has not run when the request's time is over: the next
/// conditional statement of the partition would not see what it writes.
#[test]
fn a_large_write_holds_the_lock_until_its_job_has_ended() {
    let machine = SimNode::new(WINDOW);
    let write = [machine.role(1, 2 << 20)];
    let update = &write[0].updates[0];
    let node = &machine.node;
    let cas = Cas { table: &update.table, key: &update.key, serial: Consistency::Serial, commit: Consistency::One };
    {
        let decide = async || Ok::<_, ()>(Some(write[0].clone()));
        let mut written = pin!(node.compare_and_set(cas, decide));
        assert!(poll(written.as_mut()).is_pending());
        // the request ends here, as it does when its connection is reset or its time is over
    }
    let mut next = pin!(node.lock_partition(&update.table, &update.key));
    assert!(poll(next.as_mut()).is_pending(), "the job has not run");
    assert_eq!(machine.count("system_auth", "roles"), 0);
    machine.sim.advance(Duration::from_millis(1));
    while machine.count("system_auth", "roles") == 0 {
        assert!(machine.sim.step(), "the job is run");
    }
    assert!(matches!(poll(next.as_mut()), Poll::Ready(Some(_))));
}

/// A lock of this node alone does not decide where others have copies: refused before anything is
/// read or written, whoever is the coordinator.
#[test]
fn what_other_nodes_have_copies_of_is_refused() {
    let ring = SimRing::new(3, &["dc1", "dc1"]);
    ring.create_keyspace("two", "SimpleStrategy", &[("replication_factor", "2")]);
    ring.create_keyspace("one", "SimpleStrategy", &[("replication_factor", "1")]);
    let decided = |through: usize, keyspace: &str, k: i32| {
        let row = ring.row(keyspace, k, 1, 1, 1);
        let update = &row.updates[0];
        let (serial, commit) = (Consistency::Serial, Consistency::One);
        let cas = Cas { table: &update.table, key: &update.key, serial, commit };
        let decide = async || Ok::<_, ()>(Some(row.clone()));
        ring.world.block_on(ring.node(through).compare_and_set(cas, decide)).map_err(|error| format!("{error:?}"))
    };
    for through in [0, 1] {
        let refused = decided(through, "two", 1).expect_err("two nodes have it");
        assert!(refused.contains("NeedsPaxos"), "{refused}");
        assert_eq!(ring.stored(through, "two", 1), []);
    }
    // of one copy its own node alone decides
    let taken: Vec<bool> = [0, 1].map(|through| decided(through, "one", 1).is_ok()).into();
    assert_eq!(taken.iter().filter(|taken| **taken).count(), 1);
    let holder = taken.iter().position(|taken| *taken).expect("one of them");
    assert_eq!(ring.stored(holder, "one", 1), [(1, 1)]);
}
