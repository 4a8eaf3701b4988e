//! Bloom filters of flushes and compactions: each is made for about as many partitions as its
//! SSTable has, whatever part of the ring they lie in.

use bytes::Bytes;
use env::Random;
use rows::{Cell, Row};
use sstable::{KeyHash, SSTable};
use types::{DecoratedKey, Token};

use super::common::int;
use super::tombstones::Node;
use crate::compaction::operation::{Operation, Work};
use crate::outputs::Inputs;
use crate::strategy::kind::Kind;

/// The unified strategy, with sixteen shards however little there is.
const UNIFIED: [(&str, &str); 3] = [
    ("class", "org.apache.cassandra.db.compaction.UnifiedCompactionStrategy"),
    ("base_shard_count", "16"),
    ("min_sstable_size", "0B"),
];

fn key(k: i32) -> DecoratedKey {
    DecoratedKey::new(int(k))
}

/// The first `count` keys from `from` on whose tokens are in the first quarter of the ring.
fn in_first_quarter(from: i32, count: usize) -> Vec<i32> {
    (from..).filter(|k| key(*k).token < Token(-(1 << 62))).take(count).collect()
}

/// A node with 4000 partitions in the first quarter of the ring, in four flushes that were
/// compacted within each shard.
fn with_a_quarter_of_the_ring() -> Node {
    let node = Node::new(&UNIFIED);
    for keys in in_first_quarter(0, 4_000).chunks(1_000) {
        keys.iter().for_each(|k| node.insert(*k, 1, 10));
        node.flush();
        node.store.view().sstables.iter().for_each(|sstable| assert_sound(sstable));
    }
    node.compact();
    node
}

/// The filter says of few keys that are not there that they may be.
#[track_caller]
fn assert_says_no(sstable: &SSTable) {
    let absent = (1_000_000..1_200_000).map(key);
    let within = absent.filter(|key| key >= sstable.first_key() && key <= sstable.last_key());
    let answers: Vec<bool> = within.map(|key| sstable.may_contain(&key, KeyHash::of(&key.key))).collect();
    let wrong = answers.iter().filter(|answer| **answer).count();
    let (prefix, partitions) = (sstable.descriptor().prefix(), sstable.partition_count());
    assert!(answers.len() > 1_000, "{prefix} is of a part of the ring: {} keys", answers.len());
    assert!(wrong * 33 < answers.len(), "{prefix}, {partitions} partitions: {wrong} of {} are wrong", answers.len());
}

/// The filter says of few keys that are not there that they may be, and takes no more memory than
/// the partitions need.
#[track_caller]
fn assert_sound(sstable: &SSTable) {
    assert_says_no(sstable);
    let (prefix, partitions) = (sstable.descriptor().prefix(), sstable.partition_count());
    // ten bits a partition
    let bits = sstable.filter_size() as u64 * 8;
    assert!(bits <= partitions * 15 + 128, "{prefix}, {partitions} partitions: {bits} bits");
}

#[test]
fn filters_of_a_part_of_the_ring_are_made_for_its_partitions() {
    let node = with_a_quarter_of_the_ring();
    let sstables = node.store.view().sstables.clone();
    assert_eq!(sstables.len(), 4, "one a shard");
    sstables.iter().for_each(|sstable| assert_sound(sstable));
}

/// Tombstones of partitions that no other SSTable has go where SSTables of an upper level lie
/// beside them. A filter that takes every key for its own would keep all of them.
#[test]
fn tombstones_go_beside_sstables_of_an_upper_level() {
    let node = with_a_quarter_of_the_ring();
    let others = in_first_quarter(100_000, 400);
    others.iter().for_each(|k| node.delete(*k, 1, 20));
    node.flush();
    let is_newer = |sstable: &SSTable| sstable.statistics().stats.min_timestamp == 20;
    let left = || {
        let view = node.store.view();
        view.sstables.iter().filter(|sstable| is_newer(sstable)).map(|sstable| sstable.partition_count()).sum::<u64>()
    };
    assert_eq!(left(), 400);
    node.gc_grace_ends();
    let named = Operation::new(Kind::MajorCompaction, Work::Named, 1);
    let operation = Operation { select: Box::new(is_newer), ..named };
    node.sim.block_on(node.engine.operate(&node.store, operation)).expect("a sound disk compacts");
    assert!(left() < 20, "{} of 400 tombstones stay", left());
}

#[test]
fn rows_that_are_written_again_make_no_filter_larger() {
    let node = Node::new(&[]);
    for at in 1..=3 {
        (0..1_000).for_each(|k| node.insert(k, 1, at));
        node.flush();
    }
    node.compact();
    let view = node.store.view();
    assert_eq!((view.sstables.len(), view.sstables[0].partition_count()), (1, 1_000));
    assert_sound(&view.sstables[0]);
}

/// Statistics whose sketch could not be read are written with an empty one: each partition counts.
#[test]
fn an_empty_sketch_says_nothing_about_keys() {
    let node = Node::new(&[]);
    (0..1_000).for_each(|k| node.insert(k, 1, 10));
    node.flush();
    node.restate(|statistics| statistics.cardinality = None);
    (1_000..2_000).for_each(|k| node.insert(k, 1, 10));
    node.flush();
    assert_eq!(Inputs::of_sstables(&node.store.view().sstables).keys(), 2_000.0);
}

/// A leveled table whose rows are written three times: each SSTable of the level is filled with
/// different keys, so that there are three times fewer SSTables than the bytes that go in would
/// fill.
#[test]
fn filters_of_sstables_of_a_size_are_made_for_rows_that_are_written_again() {
    const KEYS: i32 = 3_400;
    let leveled = "org.apache.cassandra.db.compaction.LeveledCompactionStrategy";
    let node = Node::new(&[("class", leveled), ("sstable_size_in_mb", "1"), ("enabled", "false")]);
    let (dice, column) = (node.sim.dice(), node.store.table().regulars[0].id);
    for at in 1..=3 {
        for k in 0..KEYS {
            // random: it is as large when it is compressed
            let mut value = vec![0; 1 << 10];
            dice.fill(&mut value);
            node.write(k, at, |update, _| {
                let mut row = Row::new([Some(int(1))].into_iter().collect());
                row.add_cell(Cell::live(column, at, Bytes::from(value)));
                update.add_row(row);
            });
        }
        node.flush();
    }
    let sstables = || node.store.view().sstables.clone();
    let partitions = || sstables().iter().map(|sstable| sstable.partition_count()).sum::<u64>();
    assert_eq!(partitions(), 3 * KEYS as u64);
    node.compact();
    assert_eq!(partitions(), KEYS as u64);
    let mut written = sstables();
    written.sort_by(|one, other| one.first_key().cmp(other.first_key()));
    let (last, full) = written.split_last().expect("there are rows");
    assert_eq!(full.len(), 3, "they are filled to their size");
    full.iter().for_each(|sstable| assert_sound(sstable));
    assert_says_no(last);
}

/// The partitions of a node that owns the two ends of the ring and nothing between them.
#[test]
fn gaps_in_the_ring_have_no_partitions() {
    let node = Node::new(&[]);
    let sixteenth = 1i64 << 60;
    let (first_end, last_start) = (Token(i64::MIN + sixteenth), Token(i64::MAX - sixteenth));
    let at_an_end = (0..).filter(|k| key(*k).token <= first_end || key(*k).token > last_start);
    at_an_end.take(1_000).for_each(|k| node.insert(k, 1, 10));
    node.flush();
    let mut inputs = Inputs::of_sstables(&node.store.view().sstables);
    let mut between = |after: Token, end: Token| inputs.keys_between(after, end).expect("a sound disk reads");
    let (first, last) = (between(Token::MIN, first_end), between(last_start, Token::MIN));
    assert!(first > 400.0 && last > 400.0 && first + last < 1_100.0, "{first} and {last} of 1000");
    let gap = between(first_end, Token(i64::MIN + 2 * sixteenth));
    assert!(gap < 100.0, "{gap} of 1000");
    assert_eq!(between(Token::MIN, Token::MIN), 1_000.0);
}
