//! Flushes by the age of memtables (`memtable_flush_period_in_ms`).

use std::sync::Arc;
use std::time::Duration;

use env::sim::{Fault, Op};
use schema::{KeyspaceMetadata, TableMetadata};

use super::dropping::Node;
use crate::schema_change;

/// Alters the table `t`.
fn set_period(node: &Node, millis: i32) {
    let mut table = TableMetadata::clone(&node.store("t").table());
    table.params.memtable_flush_period_in_ms = millis;
    let altered = schema_change::change(&node.engine, |schema| {
        let mut keyspace = KeyspaceMetadata::clone(schema.keyspace("restart").expect("it was made"));
        keyspace.tables.insert("t".to_owned(), Arc::new(table));
        Ok::<_, ()>(schema.with_keyspace(keyspace))
    });
    altered.expect("stored").expect("not refused");
    node.sim.run_until_idle();
}

fn write(node: &Node, k: i32) {
    for table in ["t", "u"] {
        node.engine.apply(&[node.row(table, k)]).expect("room");
    }
}

fn pass(node: &Node, seconds: u64) {
    node.sim.run_until_idle();
    node.sim.advance(Duration::from_secs(seconds));
    node.sim.run_until_idle();
}

/// Tables of a keyspace with `durable_writes = false` lose no more than a period by a crash.
#[test]
fn memtables_become_no_older_than_the_table_says() {
    let node = Node::open(51, false);
    set_period(&node, 60_000);
    let store = node.store("t");
    store.auto_compaction.set(false);
    let sstables = || store.view().sstables.len();
    pass(&node, 90);
    assert_eq!(sstables(), 0, "there is nothing to write");
    write(&node, 1);
    pass(&node, 61);
    assert_eq!(sstables(), 1);
    write(&node, 2);
    pass(&node, 30);
    assert_eq!(sstables(), 1, "the memtable is half a minute old");
    pass(&node, 31);
    assert_eq!(sstables(), 2);
    set_period(&node, 0);
    write(&node, 3);
    pass(&node, 3600);
    assert_eq!((sstables(), node.store("u").view().sstables.len()), (2, 0), "nobody asks for a flush");
}

/// A flush that fails is tried again and again. The periods that pass meanwhile freeze no further
/// memtables, and what was written in them is flushed once the disk takes it.
#[test]
fn no_memtables_are_frozen_behind_a_flush_that_keeps_failing() {
    let node = Node::open(52, false);
    set_period(&node, 60_000);
    let store = node.store("t");
    node.sim.disk().inject(Fault { times: u64::MAX, ..Fault::next(Op::Create, "/t-") });
    for k in 0..5 {
        write(&node, k);
        pass(&node, 61);
    }
    assert_eq!((store.view().flushing.len(), node.engine.flusher.pending()), (1, 1));
    // the flush waits for its next try: nothing is being written
    let figures = node.engine.flusher.figures();
    assert_eq!((figures.active, figures.pending), (0, 1));
    node.sim.disk().heal();
    pass(&node, 61);
    assert_eq!((store.view().memtable_size(), node.engine.flusher.pending()), (0, 0));
}
