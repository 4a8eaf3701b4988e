//! SSTables that have expired as a whole: they go also where there is no room to compact anything.

use std::time::Duration;

use rows::{Liveness, Row};
use sstable::SSTable;

use super::beside::begin;
use super::common::int;
use super::tombstones::Node;
use crate::strategy::kind::Kind;

/// Seconds.
const TTL: u32 = 600;
/// Windows of a minute; SSTables that have expired are looked for each time.
const WINDOWS: [(&str, &str); 4] = [
    ("class", "org.apache.cassandra.db.compaction.TimeWindowCompactionStrategy"),
    ("compaction_window_unit", "MINUTES"),
    ("compaction_window_size", "1"),
    ("expired_sstable_check_frequency_seconds", "0"),
];

/// Writes a row now, which may expire, and flushes it.
fn flush(node: &Node, k: i32, expires: bool) {
    let clock = node.sim.env().clock;
    let at = clock.now_micros();
    node.write(k, at, |update, _| {
        let mut row = Row::new([Some(int(1))].into_iter().collect());
        row.liveness = match expires {
            true => Liveness::expiring(at, TTL, clock.now_seconds() + TTL),
            false => Liveness::new(at),
        };
        update.add_row(row);
    });
    node.flush();
}

/// Two SSTables of a window that has ended are to be compacted, and the disk has no room for that:
/// an SSTable that has expired, and is chosen together with them, goes all the same.
#[test]
fn what_has_expired_goes_where_the_disk_is_full() {
    let node = Node::new(&WINDOWS);
    let expires = |sstable: &SSTable| sstable.statistics().stats.max_local_deletion_time < u32::MAX / 2;
    let sstables = || node.store.view().sstables.clone();
    flush(&node, 1, true);
    node.sim.advance(Duration::from_secs(120));
    flush(&node, 2, false);
    flush(&node, 3, false);
    begin(&node.engine, &node.store, Kind::Cleanup);
    node.sim.advance(Duration::from_secs(120));
    flush(&node, 4, false);
    node.sim.run_until_idle();
    assert_eq!(sstables().len(), 4, "nothing has expired, and there is no room");
    node.sim.advance(Duration::from_secs(u64::from(TTL)));
    node.gc_grace_ends();
    node.engine.compactor.wake();
    for _ in 0..1_000 {
        node.sim.run_until_idle();
        node.sim.advance(Duration::from_millis(10));
    }
    let left = sstables();
    assert!(left.iter().all(|sstable| !expires(sstable)), "what has expired is gone");
    assert_eq!(left.len(), 3, "the others stay as they are");
    assert_eq!(node.engine.compactions.left_out.load(env::sync::atomic::Ordering::Relaxed), 2);
}
