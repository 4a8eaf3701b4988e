//! Writes to a table with a view, on one machine.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rows::{DeletionTime, Mutation, PartitionUpdate};

use crate::stripes::Held;
use crate::system_rows::{self, SystemRow};
use crate::testing::views::{keyspace_with_view, with_keyspace};
use crate::testing::{SimNode, poll, table};

/// A node with the table `t` (k, c, v) and its view `by_v` (v, k, c).
fn with_view() -> SimNode {
    with_keyspace(keyspace_with_view("1"))
}

/// A row of the partition 1 of `t`.
fn row(c: i32, timestamp: i64) -> Mutation {
    let row = SystemRow::new(&table("ks", "t"), &[&1_i32.to_be_bytes()], &[&c.to_be_bytes()], timestamp, None);
    row.set("v", c.to_be_bytes().to_vec()).finish()
}

/// The deletion of a partition reads all of its rows for the view, which may take longer than
/// anybody waits. It happens all the same, and gives its locks back.
#[test]
fn a_wide_write_ends_though_nobody_waits_for_it() {
    const ROWS: i32 = 100;
    let machine = with_view();
    let counts = || (machine.count("ks", "t"), machine.count("ks", "by_v"));
    let base = table("ks", "t");
    let write = |c: i32, timestamp: i64| {
        machine.sim.block_on(machine.node.replica.apply(&[row(c, timestamp)], Held::new())).expect("applied");
    };
    (0..ROWS).for_each(|c| write(c, 10));
    assert_eq!(counts(), (ROWS as usize, ROWS as usize));
    let key = system_rows::partition_key(&base, &[&1_i32.to_be_bytes()]);
    let mut update = PartitionUpdate::new(Arc::clone(&base), key);
    update.deletion = DeletionTime::new(20, machine.node.env.clock.now_seconds());
    let deletion = [Mutation::of(update)];
    assert!(poll(pin!(machine.node.replica.apply(&deletion, Held::new()))).is_pending(), "a job reads the rows");
    // the future is dropped
    assert_eq!(counts(), (ROWS as usize, ROWS as usize));
    machine.sim.run_until_idle();
    assert_eq!(counts(), (0, 0));
    write(1, 30);
    assert_eq!(counts(), (1, 1));
}

/// A TRUNCATE waits for the writes that have begun, and these may take minutes. Those that come
/// later are not held up for as long.
#[test]
fn a_truncation_that_waits_for_a_wide_write_lets_others_pass() {
    let machine = with_view();
    let node = &machine.node;
    let wide = Arc::clone(&node.replica.views.gate).try_read_owned().expect("nobody closes the gate");
    let writes = async {
        for c in 0..5 {
            node.env.sleep(Duration::from_millis(400)).await;
            let write = [row(c, 10)];
            let applied = node.env.timeout(node.timeouts().write, node.replica.apply(&write, Held::new())).await;
            applied.expect("in time").expect("applied");
        }
        assert_eq!((machine.count("ks", "t"), machine.count("ks", "by_v")), (5, 5));
        drop(wide);
    };
    let (truncated, ()) = machine.sim.block_on(async { tokio::join!(node.truncate("ks", "t"), writes) });
    truncated.expect("truncated");
    assert_eq!((machine.count("ks", "t"), machine.count("ks", "by_v")), (0, 0));
}

/// A TRUNCATE that is given up in the middle empties a table and its views all the same: no repair
/// would take the rows of a view away.
#[test]
fn a_truncation_ends_with_its_views_though_nobody_waits_for_it() {
    let machine = with_view();
    let node = &machine.node;
    machine.sim.block_on(node.replica.apply(&[row(1, 10)], Held::new())).expect("applied");
    let given_up = node.env.timeout(Duration::from_millis(1), node.truncate("ks", "t"));
    assert!(machine.sim.block_on(given_up).is_err(), "its client goes away");
    machine.sim.block_on(node.env.sleep(Duration::from_secs(5)));
    assert_eq!((machine.count("ks", "t"), machine.count("ks", "by_v")), (0, 0));
}
