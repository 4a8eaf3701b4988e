//! How long the lock of a partition is held.

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use super::*;
use crate::testing::{SimNode, WINDOW, poll};

/// The job that copies a large value has not run when the request's time is over: the next conditional statement
/// of the partition would not see what it writes.
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
