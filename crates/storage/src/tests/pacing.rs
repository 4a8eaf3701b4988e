//! The throughput of compactions: what is read counts, also where little of it is written.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use env::sync::atomic::Ordering;
use rows::{Cell, Row};

use super::common::int;
use super::tombstones::Node;
use crate::compaction::operation::{Operation, Work};
use crate::strategy::kind::Kind;

const PARTITIONS: i32 = 400;
/// Bytes of a value that do not compress.
const VALUE_LENGTH: usize = 8 << 10;
/// Bytes each second.
const RATE: u64 = 128 << 10;

/// An SSTable with a large value in each partition, and one that deletes all of them.
fn with_deleted_partitions() -> Node {
    let node = Node::new(&[]);
    let (random, column) = (node.sim.env().random, node.store.table().regulars[0].id);
    for k in 0..PARTITIONS {
        let value: Vec<u8> = (0..VALUE_LENGTH / 8).flat_map(|_| random.next_u64().to_be_bytes()).collect();
        node.write(k, 10, |update, _| {
            let mut row = Row::new([Some(int(1))].into_iter().collect());
            row.add_cell(Cell::live(column, 10, Bytes::from(value)));
            update.add_row(row);
        });
        if k % 50 == 0 {
            node.sim.block_on(node.engine.log.sync()).expect("a sound disk syncs");
        }
    }
    node.flush();
    (0..PARTITIONS).for_each(|k| node.write(k, 20, |update, deletion| update.deletion = deletion));
    node.flush();
    node
}

#[test]
fn deleted_data_that_is_read_counts_against_the_throughput() {
    let node = with_deleted_partitions();
    node.engine.set_compaction_rate(RATE);
    let clock = node.sim.env().clock;
    let began = clock.monotonic_nanos();
    let major = Operation::new(Kind::MajorCompaction, Work::Major { split: false }, 1);
    let mut compacted = pin!(node.engine.operate(&node.store, major));
    let env = node.sim.env();
    let early = node.sim.block_on(env.timeout(Duration::from_secs(10), compacted.as_mut()));
    assert!(early.is_err(), "3 MiB take longer: {early:?}");
    let running = node.engine.compactions.running();
    let (done, total) = (running[0].done.load(Ordering::Relaxed), running[0].total);
    assert!(done > total / 5 && done < total, "{done} bytes of {total} lie behind it");
    node.sim.block_on(compacted).expect("nothing fails");
    let took = Duration::from_nanos(clock.monotonic_nanos() - began);
    assert!(took >= Duration::from_secs(15), "{total} bytes were read in {took:?}");
    let view = node.store.view();
    let written: u64 = view.sstables.iter().map(|sstable| sstable.stored_length()).sum();
    assert!(written < total / 10, "{written} bytes of {total} are left");
}
