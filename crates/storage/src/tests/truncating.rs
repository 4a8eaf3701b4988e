//! TRUNCATE beside writes: rows that are written after the cut stay, whether a flush writes them
//! out before the truncation ends or not, and a compaction does not bring the others back.

use std::collections::BTreeMap;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use env::sim::{DATA, Op, Sim};
use rows::live::{LiveRows, TombstoneLimits};
use schema::{IndexKind, IndexMetadata, KeyspaceMetadata, TableMetadata};

use super::common::number;
use super::dropping::Node;
use super::restart::{mutation, open, options};
use crate::commitlog::{self, SyncMode};
use crate::{EngineOptions, StorageError, TableStore, schema_change, snapshot, truncate};

type Done = Result<(), StorageError>;

/// A request that a test carries on step by step.
struct Request(Pin<Box<dyn Future<Output = Done>>>);

impl Request {
    fn poll(&mut self) -> Poll<Done> {
        self.0.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }
}

/// Begins a truncation; its cut has been made when this ends, and nothing is removed yet.
fn begin(node: &Node, store: &Arc<TableStore>) -> Request {
    let (engine, of_request) = (Arc::clone(&node.engine), Arc::clone(store));
    let mut request = Request(Box::pin(async move { truncate::truncate(&engine, &of_request).await }));
    while store.view().active_size() > 0 {
        assert!(request.poll().is_pending(), "the truncation waits for a flush at least");
        node.sim.step();
    }
    request
}

fn write(node: &Node, k: i32) {
    node.engine.apply(&[node.row("t", k)]).expect("room");
}

fn flush(node: &Node, store: &Arc<TableStore>) {
    node.sim.block_on(node.engine.flush(store)).expect("a sound disk flushes");
}

/// The keys of a table's partitions that hold rows, ascending.
pub(super) fn keys(node: &Node, store: &Arc<TableStore>) -> Vec<i32> {
    let mut stream = crate::read::read_all(store, node.engine.env.clock.now_seconds()).expect("read");
    let mut live = LiveRows::new(stream.as_mut(), store.table(), 1, TombstoneLimits::NONE);
    let mut keys = Vec::new();
    while let Some(partition) = live.next_partition().expect("read") {
        let key = number(&partition.key.key);
        while live.next_row().expect("read").is_some() {
            keys.push(key);
        }
    }
    keys.sort_unstable();
    keys
}

#[test]
fn rows_that_are_flushed_after_the_cut_stay() {
    let node = Node::open(11, false);
    let store = node.store("t");
    write(&node, 1);
    flush(&node, &store);
    write(&node, 2);
    let mut truncation = begin(&node, &store);
    write(&node, 3);
    flush(&node, &store);
    write(&node, 4);
    node.sim.block_on(&mut truncation.0).expect("a sound disk truncates");
    assert_eq!(keys(&node, &store), [3, 4]);
    // the next truncation takes these away
    node.sim.block_on(truncate::truncate(&node.engine, &store)).expect("a sound disk truncates");
    assert!(keys(&node, &store).is_empty());
}

/// A truncation is durable when it completes, though writes do not wait for a sync of the log: its
/// SSTables are gone then, and nothing else tells a start that the log has nothing for the table.
#[test]
fn truncated_rows_do_not_come_back_after_a_power_cut() {
    let sim = Sim::new(31);
    let options = || {
        let options = options(Path::new(DATA), 16 << 20);
        let sync = SyncMode::Periodic(Duration::from_secs(10));
        let commitlog = commitlog::Options { sync, ..options.commitlog.clone() };
        EngineOptions { commitlog, auto_snapshot: false, ..options }
    };
    let (engine, _) = open(&sim.env(), options());
    let node = Node { sim, engine };
    let store = node.store("t");
    write(&node, 1);
    node.sim.block_on(node.engine.log.sync()).expect("a sound disk syncs");
    node.sim.block_on(truncate::truncate(&node.engine, &store)).expect("a sound disk truncates");
    let Node { sim, engine } = node;
    sim.power_cut();
    drop((store, engine));
    let (engine, _) = open(&sim.env(), options());
    let node = Node { sim, engine };
    assert!(keys(&node, &node.store("t")).is_empty());
}

/// A truncation lists directories and syncs its transaction log a few times, however many SSTables
/// there are: done for each of them, that would keep flushes of the table waiting for minutes.
#[test]
fn listings_and_syncs_of_a_truncation_do_not_grow_with_the_sstables() {
    let node = Node::open(17, false);
    let store = node.store("t");
    store.auto_compaction.set(false);
    for k in 0..40 {
        write(&node, k);
        flush(&node, &store);
    }
    assert_eq!(store.view().sstables.len(), 40);
    let operations = || [Op::List, Op::Sync].map(|op| node.sim.disk().count(op));
    let before = operations();
    node.sim.block_on(truncate::truncate(&node.engine, &store)).expect("a sound disk truncates");
    let made: Vec<u64> = operations().into_iter().zip(before).map(|(after, before)| after - before).collect();
    assert!(made.iter().all(|made| *made < 20), "listings and syncs: {made:?}");
    assert!(keys(&node, &store).is_empty());
}

/// Several nodes ask for truncations of a table in the same millisecond.
#[test]
fn snapshots_of_truncations_at_one_moment_have_names_of_their_own() {
    let node = Node::open(18, true);
    let store = node.store("t");
    write(&node, 1);
    flush(&node, &store);
    for _ in 0..2 {
        snapshot::take_automatic(&node.engine, &store, "truncated").expect("a sound disk links");
    }
    assert_eq!(snapshot::list(&node.engine, &store).expect("listed").len(), 2);
}

#[test]
fn a_compaction_waits_for_a_truncation() {
    let node = Node::open(12, false);
    let store = node.store("t");
    write(&node, 1);
    let mut truncation = begin(&node, &store);
    write(&node, 2);
    flush(&node, &store);
    let mut compaction = Request(Box::pin(node.engine.compact(&store)));
    node.sim.run_until_idle();
    let asked = compaction.poll();
    node.sim.block_on(&mut truncation.0).expect("a sound disk truncates");
    if asked.is_pending() {
        node.sim.block_on(&mut compaction.0).expect("a sound disk compacts");
    }
    assert_eq!(keys(&node, &store), [2]);
}

#[test]
fn index_entries_of_rows_after_the_cut_stay() {
    let node = Node::open(13, false);
    let mut table = TableMetadata::clone(&node.store("t").table());
    let options = BTreeMap::from([("target".to_owned(), "v".to_owned())]);
    let by_v = IndexMetadata { name: "by_v".to_owned(), kind: IndexKind::Composites, options };
    table.indexes.insert(by_v.name.clone(), by_v);
    let altered = schema_change::change(&node.engine, |schema| {
        let mut keyspace = KeyspaceMetadata::clone(schema.keyspace("restart").expect("it was made"));
        keyspace.tables.insert("t".to_owned(), Arc::new(table));
        Ok::<_, ()>(schema.with_keyspace(keyspace))
    });
    altered.expect("stored").expect("not refused");
    node.sim.run_until_idle();
    let store = node.store("t");
    write(&node, 1);
    let mut truncation = begin(&node, &store);
    write(&node, 2);
    flush(&node, &store);
    node.sim.block_on(&mut truncation.0).expect("a sound disk truncates");
    let index = Arc::clone(&store.view().index("by_v").expect("it was made").store);
    let entries = |store: &TableStore| store.view().sstables.iter().map(|one| one.partition_count()).sum::<u64>();
    assert_eq!((keys(&node, &store), entries(&store), entries(&index)), (vec![2], 1, 1));
}

#[test]
fn two_truncations_at_once_remove_what_each_has_cut() {
    let node = Node::open(14, false);
    let store = node.store("t");
    write(&node, 1);
    let mut first = begin(&node, &store);
    write(&node, 2);
    let mut second = begin(&node, &store);
    write(&node, 3);
    flush(&node, &store);
    node.sim.block_on(&mut second.0).expect("a sound disk truncates");
    assert_eq!(keys(&node, &store), [3]);
    node.sim.block_on(&mut first.0).expect("a sound disk truncates");
    assert_eq!(keys(&node, &store), [3]);
    // the first one is recorded last, and a start replays nothing that the second one has removed
    drop((first, second, store));
    let Node { sim, engine } = node;
    drop(engine);
    sim.kill();
    let engine = open(&sim.env(), options(Path::new(DATA), 16 << 20)).0;
    let node = Node { sim, engine };
    assert_eq!(keys(&node, &node.store("t")), [3]);
}

#[test]
fn a_truncation_that_is_given_up_leaves_nothing_behind() {
    let node = Node::open(15, false);
    let store = node.store("t");
    write(&node, 1);
    drop(begin(&node, &store));
    node.sim.run_until_idle();
    write(&node, 2);
    flush(&node, &store);
    node.sim.block_on(node.engine.compact(&store)).expect("a sound disk compacts");
    assert_eq!((keys(&node, &store), store.view().sstables.len()), (vec![1, 2], 1));
}

/// The clock is set back between two truncations, and the second one is recorded all the same:
/// otherwise a start would replay what it has removed.
#[test]
fn a_truncation_after_the_clock_was_set_back_is_recorded() {
    let Node { sim, engine } = Node::open(16, false);
    let mut node = Node { sim, engine };
    for (shift, k) in [(0, 1), (-3_600_000_000, 2), (0, 3)] {
        let Node { sim, engine } = node;
        drop(engine);
        sim.shift_wall_clock(shift);
        sim.kill();
        let engine = open(&sim.env(), options(Path::new(DATA), 16 << 20)).0;
        node = Node { sim, engine };
        let store = node.store("t");
        assert!(keys(&node, &store).is_empty(), "the row before {k} was truncated");
        // the other table keeps the segment of the log
        let of_both = mutation(&node.engine, k, 1, node.engine.env.clock.now_micros());
        node.engine.apply(&[of_both]).expect("room");
        node.sim.block_on(truncate::truncate(&node.engine, &store)).expect("a sound disk truncates");
    }
}
