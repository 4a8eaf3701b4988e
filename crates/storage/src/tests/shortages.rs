//! Shortages of the system. File descriptors while a node starts: the start ends with a sentence
//! that says so, or finds a way; it never takes an SSTable for damaged. Threads while a node runs:
//! the node goes on with those that it has. Memory while a flush is due for long, or fails: writers
//! go on. Room for the commit log: flushes wait for a while.

use std::path::Path;
use std::time::Duration;

use env::sim::{DATA, EIO, EMFILE, ENOSPC, Fault, Op, Sim};
use sstable::Version;

use super::dropping::Node;
use super::restart::{check, open, options, write};
use crate::{DiskFailurePolicy, EngineOptions};

/// Files that a start opens, by a part of their paths; each is tried at its first two openings.
const PATHS: [&str; 10] = [
    "",
    "commitlog",
    ".log",
    "-Statistics.db",
    "-Data.db",
    "-Partitions.db",
    "-Index.db",
    "-Filter.db",
    "-CompressionInfo.db",
    "-TOC.txt",
];

fn options_of(version: Version) -> EngineOptions {
    // with this policy a node starts without the SSTables that are damaged
    let disk_failure_policy = DiskFailurePolicy::Ignore;
    EngineOptions { disk_failure_policy, sstable_version: version, ..options(Path::new(DATA), 16 << 20) }
}

fn stopped(version: Version) -> Sim {
    let sim = Sim::new(21);
    let (engine, _) = open(&sim.env(), options_of(version));
    write(&engine, 0);
    for store in engine.tables() {
        sim.block_on(engine.flush(&store)).expect("a sound disk flushes");
    }
    drop(engine);
    sim.kill();
    sim
}

#[test]
fn a_start_without_descriptors_leaves_no_sstable_out() {
    for version in [Version::DA, Version::NB] {
        let sim = stopped(version);
        let (mut refused, mut started) = (0, 0);
        for (path, skip) in PATHS.into_iter().flat_map(|path| [(path, 0), (path, 1)]) {
            for op in [Op::Open, Op::List] {
                sim.disk().inject(Fault { skip, errno: EMFILE, ..Fault::next(op, path) });
            }
            match crate::open(&sim.env(), options_of(version)) {
                Err(error) => {
                    let why = error.to_string();
                    assert!(why.contains("file descriptor") && why.contains("ulimit -n"), "{path} {skip}: {why}");
                    refused += 1;
                }
                Ok((engine, _)) => {
                    let left_out: Vec<_> = engine.stores().iter().flat_map(|store| store.left_out()).collect();
                    assert_eq!(left_out, [], "{path} {skip}");
                    sim.disk().heal();
                    check(&engine, 3);
                    started += 1;
                }
            }
            sim.kill();
            sim.disk().heal();
        }
        assert!(refused > 10 && started > 3, "{version:?}: {refused} starts were refused, {started} were not");
    }
}

#[test]
fn a_node_without_threads_goes_on_with_its_compactors() {
    let sim = Sim::new(22);
    let (engine, _) = open(&sim.env(), options(Path::new(DATA), 16 << 20));
    let before = engine.compactor.concurrency();
    sim.set_lack_of_threads(true);
    let refused = engine.compactor.set_concurrency(&engine, before + 3);
    assert!(refused.is_err_and(|error| error.to_string().contains("no thread")));
    assert_eq!(engine.compactor.concurrency(), before);
    sim.set_lack_of_threads(false);
    assert_eq!(engine.compactor.set_concurrency(&engine, before + 3), Ok(()));
    assert_eq!(engine.compactor.concurrency(), before + 3);
}

/// A log that is short of room does not have what is in memtables: a flush that nobody waits for is
/// put off, and one that somebody asks for is not.
#[test]
fn flushes_wait_for_a_log_that_is_short_of_room() {
    for is_asked_for in [false, true] {
        let sim = Sim::new(24);
        let (engine, _) = open(&sim.env(), options(Path::new(DATA), 16 << 20));
        let node = Node { sim, engine };
        node.flush_all();
        let store = node.store("u");
        let before = store.view().sstables.len();
        node.sim.disk().inject(Fault { times: u64::MAX, errno: ENOSPC, ..Fault::next(Op::Write, "CommitLog") });
        let applied = node.engine.apply(&[node.row("u", 0)]).expect("the log does not know yet");
        let position = applied.position.expect("the keyspace is durable");
        node.sim.block_on(node.engine.log.wait_durable(position)).expect_err("there is no room");
        let written = || store.view().sstables.len() - before;
        match is_asked_for {
            true => node.sim.block_on(node.engine.flush(&store)).expect("the disk of the SSTables has room"),
            false => {
                node.engine.flusher.request(&store, None);
                node.sim.run_until_idle();
                node.sim.advance(Duration::from_secs(5));
                node.sim.run_until_idle();
                assert_eq!(written(), 0, "the log may have room soon");
                node.sim.advance(Duration::from_secs(6));
                node.sim.run_until_idle();
            }
        }
        assert_eq!(written(), 1, "asked for: {is_asked_for}");
    }
}

/// A node with so little room for memtables that some thousand rows fill it.
fn with_little_memory(seed: u64) -> Node {
    let sim = Sim::new(seed);
    let (engine, _) = open(&sim.env(), options(Path::new(DATA), 256 << 10));
    let node = Node { sim, engine };
    node.flush_all();
    node
}

/// While a flush is due nobody asks for another one. When it has ended, well or not, all writers
/// may be waiting for the memory of other tables, and none is left to ask.
#[test]
fn writers_go_on_after_a_flush_that_was_due_for_long() {
    for fails in [false, true] {
        let node = with_little_memory(23);
        node.engine.apply(&[node.row("u", 0)]).expect("room");
        if fails {
            node.sim.disk().inject(Fault { times: u64::MAX, errno: EIO, ..Fault::next(Op::Create, "/u-") });
        }
        node.engine.flusher.request(&node.store("u"), None);
        let (mut k, budget) = (0, node.engine.memory.usage().1);
        while node.engine.memory.usage().0 < budget + (16 << 10) {
            node.engine.apply(&[node.row("t", k)]).expect("room");
            k += 1;
        }
        assert_eq!(node.engine.flusher.pending(), 1);
        let env = node.sim.env();
        let admitted = node.sim.block_on(env.timeout(Duration::from_secs(30), node.engine.admit()));
        admitted.expect("memory is free once the other table is flushed");
    }
}

/// A table whose flush fails for ever keeps its part of the memory. Flushes of another table go on
/// in the rest of it, and are not of a few rows each.
#[test]
fn a_flush_that_keeps_failing_stops_no_other() {
    let node = with_little_memory(25);
    let (t, u, budget) = (node.store("t"), node.store("u"), node.engine.memory.usage().1);
    node.sim.disk().inject(Fault { times: u64::MAX, errno: EIO, ..Fault::next(Op::Create, "/u-") });
    let mut k = 0;
    while node.engine.memory.usage().0 < budget / 2 {
        node.engine.apply(&[node.row("u", k)]).expect("room");
        k += 1;
    }
    node.sim.block_on(node.engine.flush(&u)).expect_err("the disk fails");
    let (env, before) = (node.sim.env(), t.metrics.flushes.get());
    let mut added = 0;
    while added < 3 * budget {
        let admitted = node.sim.block_on(env.timeout(Duration::from_secs(30), node.engine.admit()));
        admitted.expect("the other table is flushed");
        added += node.engine.apply(&[node.row("t", k)]).expect("room").added;
        k += 1;
    }
    let flushes = t.metrics.flushes.get() - before;
    assert!((3..50).contains(&flushes), "{flushes} flushes");
    assert!(u.view().memtable_size() > 0, "the rows of the table that fails stay in memory");
}
