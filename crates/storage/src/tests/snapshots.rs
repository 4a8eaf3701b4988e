//! Snapshots beside compactions of their table, and the work that a snapshot is for the disk.

use std::path::Path;
use std::sync::Arc;

use env::sim::{DATA, Op};

use super::dropping::Node;
use super::restart::{open, options};
use super::truncating::keys;
use crate::files::FileRetention;
use crate::{TableStore, snapshot};

/// A node whose table `t` has an SSTable for each of some keys, and merges none by itself.
fn with_sstables(seed: u64, count: i32) -> (Node, Arc<TableStore>) {
    let node = Node::open(seed, false);
    let store = node.store("t");
    store.auto_compaction.set(false);
    (0..count).for_each(|k| add_sstable(&node, &store, k));
    (node, store)
}

fn add_sstable(node: &Node, store: &Arc<TableStore>, k: i32) {
    let before = store.view().sstables.len();
    node.engine.apply(&[node.row("t", k)]).expect("room");
    node.sim.block_on(node.engine.flush(store)).expect("a sound disk flushes");
    assert_eq!(store.view().sstables.len(), before + 1);
}

/// Data files in a directory.
fn data_files(node: &Node, directory: &Path) -> usize {
    let entries = node.engine.env.disk.list_dir(directory).expect("it is there");
    entries.iter().filter(|entry| entry.name.ends_with("-Data.db")).count()
}

/// A sync of a directory is a flush of the device's cache, and a listing grows with the SSTables:
/// one of each for an SSTable would keep a snapshot of thousands of SSTables busy for minutes.
#[test]
fn syncs_and_listings_of_a_snapshot_do_not_grow_with_the_sstables() {
    let operations_for = |count: i32| {
        let (node, store) = with_sstables(41, count);
        let operations = || [Op::Sync, Op::SyncDir, Op::List].map(|op| node.sim.disk().count(op));
        let before = operations();
        let directory = snapshot::take(&node.engine, &store, "monday").expect("a sound disk links");
        let after = operations();
        assert_eq!(data_files(&node, &directory), store.view().sstables.len());
        let differences: Vec<u64> = after.into_iter().zip(before).map(|(after, before)| after - before).collect();
        differences
    };
    assert_eq!(operations_for(2), operations_for(20));
}

/// A flush and a compaction end while a snapshot is being taken, the files of the SSTables that are
/// replaced stay for it, and they go with its end or, after a crash, with the next start.
#[test]
fn a_snapshot_keeps_files_and_holds_nobody_up() {
    for is_killed in [false, true] {
        let (node, store) = with_sstables(42, 3);
        let kept = FileRetention::of(&store);
        add_sstable(&node, &store, 3);
        node.sim.block_on(node.engine.compact(&store)).expect("a sound disk compacts");
        assert_eq!((store.view().sstables.len(), data_files(&node, &store.directory)), (1, 5));
        if !is_killed {
            drop(kept);
            assert_eq!(data_files(&node, &store.directory), 1);
            continue;
        }
        let Node { sim, engine } = node;
        drop(engine);
        sim.kill();
        let (engine, _) = open(&sim.env(), options(Path::new(DATA), 16 << 20));
        let node = Node { sim, engine };
        assert_eq!((keys(&node, &node.store("t")), data_files(&node, &store.directory)), (vec![0, 1, 2, 3], 1));
    }
}

#[test]
fn the_manifest_names_the_first_segment_with_rows_that_are_not_in_the_snapshot() {
    let (node, store) = with_sstables(43, 1);
    let log = &node.engine.log;
    let segment_of = |tag: &str| {
        let directory = snapshot::take(&node.engine, &store, tag).expect("a sound disk links");
        let text = node.engine.env.disk.read_all(&directory.join("manifest.json"), 1 << 20).expect("it is there");
        let manifest: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        assert!(manifest["commitlog_from"].as_u64() <= manifest["commitlog_segment"].as_u64());
        manifest["commitlog_segment"].as_u64()
    };
    let first = log.position().segment;
    assert_eq!(segment_of("monday"), Some(first));
    node.engine.apply(&[node.row("t", 1)]).expect("room");
    for k in 0..20_000 {
        if log.position().segment > first {
            break;
        }
        node.engine.apply(&[node.row("u", k)]).expect("room");
        node.sim.run_until_idle();
    }
    assert!(log.position().segment > first);
    assert_eq!(segment_of("tuesday"), Some(first), "a row was not flushed");
    node.sim.block_on(node.engine.flush(&store)).expect("a sound disk flushes");
    node.sim.run_until_idle();
    assert_eq!(segment_of("wednesday"), Some(log.position().segment));
}
