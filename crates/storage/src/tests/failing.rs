//! Compactions that a strategy chose and that fail: the same SSTables are not compacted in vain for
//! ever, and the table's other ones are compacted.

use std::time::Duration;

use bytes::Bytes;
use env::Random;
use env::sim::{EIO, ENOSPC, Fault, Op};
use env::sync::atomic::Ordering;
use rows::{Cell, Row};
use sstable::Component;

use super::common::int;
use super::tombstones::Node;
use crate::compaction::choice::take_free;

/// A node with so many SSTables, none of which was compacted.
fn with_sstables(options: &[(&str, &str)], count: usize) -> Node {
    let node = Node::new(options);
    node.store.auto_compaction.set(false);
    write(&node, count);
    node
}

/// Flushes `count` more SSTables, each with rows of the same 50 partitions.
fn write(node: &Node, count: usize) {
    for _ in 0..count {
        (0..50).for_each(|k| node.insert(k, 1, 10));
        node.flush();
    }
}

fn sstables(node: &Node) -> usize {
    node.store.view().sstables.len()
}

fn ended(node: &Node) -> [u64; 2] {
    let compactions = &node.engine.compactions;
    [&compactions.aborted, &compactions.completed].map(|count| count.load(Ordering::Relaxed))
}

/// Some time in which the strategy is asked again and again.
fn pass(node: &Node, time: Duration) {
    let step = Duration::from_secs(1);
    for _ in 0..time.as_secs() {
        node.engine.compactor.wake();
        node.sim.run_until_idle();
        node.sim.advance(step);
    }
    node.sim.run_until_idle();
}

/// The data of one of the table's SSTables cannot be read any more; gives its place in the view.
fn break_one(node: &Node) -> std::path::PathBuf {
    let path = node.store.view().sstables[0].descriptor().path(Component::Data);
    let name = path.to_string_lossy().into_owned();
    node.sim.disk().inject(Fault { times: u64::MAX, errno: EIO, ..Fault::next(Op::Read, &name) });
    path
}

#[test]
fn an_sstable_that_the_device_cannot_read_is_left_alone() {
    let node = with_sstables(&[], 5);
    let broken = break_one(&node);
    node.store.auto_compaction.set(true);
    pass(&node, Duration::from_secs(600));
    assert_eq!(ended(&node), [1, 1], "one fails, and the other SSTables are compacted");
    assert_eq!(sstables(&node), 2);
    let view = node.store.view();
    let is_there = view.sstables.iter().any(|sstable| sstable.descriptor().path(Component::Data) == broken);
    assert!(is_there, "its rows are not given up");
}

/// An error that names no SSTable of the table: the pauses become longer, and other SSTables have
/// their turn meanwhile.
#[test]
fn a_compaction_that_keeps_failing_is_tried_less_often() {
    let node = with_sstables(&[], 4);
    node.sim.disk().inject(Fault { times: u64::MAX, errno: EIO, ..Fault::next(Op::Create, "-Data.db") });
    node.store.auto_compaction.set(true);
    pass(&node, Duration::from_secs(3_000));
    let [aborted, completed] = ended(&node);
    assert!((5..12).contains(&aborted), "{aborted} compactions failed");
    assert_eq!((completed, sstables(&node)), (0, 4));
    node.sim.disk().heal();
    write(&node, 4);
    pass(&node, Duration::from_secs(10));
    assert_eq!((ended(&node), sstables(&node)), ([aborted, 1], 5), "the new ones do not wait");
    pass(&node, Duration::from_secs(3_600));
    assert_eq!((ended(&node), sstables(&node)), ([aborted, 2], 1), "and the others are compacted in the end");
}

/// The operator has made room at last: the compactions go on soon, however long there was none.
#[test]
fn compactions_go_on_soon_after_a_disk_was_full() {
    let node = with_sstables(&[], 4);
    node.sim.disk().inject(Fault { times: u64::MAX, errno: ENOSPC, ..Fault::next(Op::Create, "-Data.db") });
    node.store.auto_compaction.set(true);
    pass(&node, Duration::from_secs(3_000));
    let [aborted, completed] = ended(&node);
    assert!((20..60).contains(&aborted), "{aborted} compactions failed");
    assert_eq!((completed, sstables(&node)), (0, 4));
    node.sim.disk().heal();
    pass(&node, Duration::from_secs(90));
    assert_eq!((ended(&node), sstables(&node)), ([aborted, 1], 1));
}

/// There is no room to compact some large SSTables: the small ones of the table are compacted, and
/// the large ones are tried now and then, and soon after there is room.
#[test]
fn a_compaction_without_room_keeps_no_other_ones_waiting() {
    let node = with_sstables(&[("min_sstable_size", "1")], 0);
    let dice = node.sim.dice();
    for _ in 0..4 {
        for k in 0..500 {
            let value: Bytes = (0..125).flat_map(|_| dice.next_u64().to_be_bytes()).collect();
            node.write(k, 10, |update, _| {
                let mut row = Row::new([Some(int(1))].into_iter().collect());
                row.add_cell(Cell::live(update.table.regulars[0].id, 10, value));
                update.add_row(row);
            });
        }
        node.flush();
    }
    let large = node.store.view().sstables[0].stored_length();
    node.sim.disk().set_capacity(Some(1 << 30));
    let free = node.sim.env().disk.available_space(&node.store.directory).expect("a sound disk");
    node.sim.disk().set_capacity(Some((1 << 30) - free + large + large / 2));
    node.store.auto_compaction.set(true);
    pass(&node, Duration::from_secs(600));
    let tries: Vec<u32> = node.store.changes().failed.values().map(|failures| failures.times).collect();
    assert!(tries.len() == 4 && tries.iter().all(|times| (5..20).contains(times)), "{tries:?}");
    write(&node, 4);
    pass(&node, Duration::from_secs(10));
    assert_eq!((ended(&node), sstables(&node)), ([0, 1], 5));
    node.sim.disk().set_capacity(None);
    pass(&node, Duration::from_secs(90));
    assert_eq!((ended(&node), sstables(&node)), ([0, 2], 2));
}

/// Of some SSTables nothing is left, and the commit log has no room for the note that says so: they
/// go soon after it has room again.
#[test]
fn compactions_go_on_soon_after_the_log_was_full() {
    let node = with_sstables(&[], 0);
    // the SSTables say which part of this node's log they hold
    node.engine.set_host_id([3; 16]);
    for _ in 0..4 {
        (0..50).for_each(|k| node.delete(k, 1, 10));
        node.flush();
    }
    node.gc_grace_ends();
    node.sim.disk().inject(Fault { times: u64::MAX, errno: ENOSPC, ..Fault::next(Op::Write, "CommitLog") });
    node.insert(100, 1, 20);
    node.sim.block_on(node.engine.log.sync()).expect_err("there is no room");
    node.store.auto_compaction.set(true);
    pass(&node, Duration::from_secs(3_000));
    let [aborted, completed] = ended(&node);
    assert!((20..60).contains(&aborted), "{aborted} compactions failed");
    assert_eq!((completed, sstables(&node)), (0, 4));
    node.sim.disk().heal();
    pass(&node, Duration::from_secs(90));
    assert_eq!(sstables(&node), 0);
}

/// Failures in the background, of which no client and no operator is told, have a figure. A
/// compaction of an operator, who is told of its failure, is none of them.
#[test]
fn failures_that_nobody_is_told_of_are_counted() {
    let node = with_sstables(&[], 4);
    let failures = || node.engine.background_failures();
    assert_eq!(failures(), 0);
    node.sim.disk().inject(Fault { times: u64::MAX, errno: EIO, ..Fault::next(Op::Create, "/t-") });
    node.sim.block_on(node.engine.compact(&node.store)).expect_err("the disk fails");
    assert_eq!(failures(), 0, "the operator is told");
    node.insert(1, 1, 20);
    node.engine.flusher.request(&node.store, None);
    pass(&node, Duration::from_secs(2));
    assert!(failures() > 0, "the flush fails");
    node.sim.disk().heal();
    pass(&node, Duration::from_secs(10));
    let before = failures();
    node.sim.disk().inject(Fault { times: u64::MAX, errno: EIO, ..Fault::next(Op::Create, "/t-") });
    node.store.auto_compaction.set(true);
    pass(&node, Duration::from_secs(1));
    assert!(failures() > before, "the compaction fails");
}

/// Where compactions look for deletions in the SSTables beside them, one of these that cannot be
/// read keeps them from their end once.
#[test]
fn garbage_is_collected_beside_an_sstable_that_cannot_be_read() {
    let node = with_sstables(&[("provide_overlapping_tombstones", "ROW")], 0);
    (0..50).for_each(|k| node.delete(k, 1, 20));
    node.flush();
    break_one(&node);
    // the strategy chooses the others
    let (taken, _) = take_free(&node.store, |_| true);
    assert_eq!(taken.len(), 1);
    write(&node, 4);
    node.store.auto_compaction.set(true);
    pass(&node, Duration::from_secs(600));
    assert_eq!((ended(&node), sstables(&node)), ([1, 1], 2));
}
