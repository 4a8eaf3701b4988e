//! Searches of simulated replicas that do not agree: whatever each of them leaves out, the answer
//! is what the newest data says.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use rows::filter::Operator;
use rows::{Expression, Mutation, WantedRows};
use types::{Consistency, Token};

use super::*;
use crate::coordinator::contacts::{Contact, Contacts};
use crate::coordinator::distributed_read::DistributedRead;
use crate::coordinator::error::FailedRead;
use crate::coordinator::part_read::{Missing, PartRead, READING_SIZE_MAX};
use crate::coordinator::parts::Part;
use crate::node::ProtectionLimits;
use crate::replica::read::{ReadOutcome, Warnings};
use crate::testing::{SimRing, table};

fn three(seed: u64) -> SimRing {
    let ring = SimRing::new(seed, &["dc1", "dc1", "dc1"]);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "3")]);
    ring
}

/// `v = wanted`, and how many rows are wanted.
fn wanted_rows(command: &ReadCommand, wanted: i32, rows: u32) -> Arc<WantedRows> {
    let column = command.table.column_by_name("v").expect("a column of t").id;
    let value = wanted.to_be_bytes().to_vec().into();
    Arc::new(WantedRows { expressions: vec![Expression::Simple { column, operator: Operator::Eq, value }], rows })
}

/// The rows with a value that a search at a level finds.
fn find(ring: &SimRing, command: ReadCommand, wanted: i32, rows: u32, level: Consistency) -> Vec<(i32, i32, i32)> {
    let wanted_rows = wanted_rows(&command, wanted, rows);
    let found = ring.search(0, vec![command], Some(wanted_rows), level).expect("answered");
    found.into_iter().filter(|(_, _, v)| *v == wanted).collect()
}

/// A row without cells, deleted.
fn deletion(ring: &SimRing, k: i32, c: i32, timestamp: i64) -> Mutation {
    let mut mutation = ring.row("ks", k, c, 0, timestamp);
    let row = mutation.updates[0].rows.first_mut().expect("one row");
    row.deletion = rows::DeletionTime::new(timestamp, ring.world.env(0).clock.now_seconds());
    row.liveness = rows::Liveness::EMPTY;
    row.columns.clear();
    mutation
}

fn partition_deletion(ring: &SimRing, k: i32, timestamp: i64) -> Mutation {
    let mut mutation = ring.row("ks", k, 0, 0, timestamp);
    mutation.updates[0].rows.clear();
    mutation.updates[0].deletion = rows::DeletionTime::new(timestamp, ring.world.env(0).clock.now_seconds());
    mutation
}

/// Replicas that have newer data leave it out, because it does not meet the condition.
#[test]
fn older_forms_of_rows_are_not_shown() {
    let ring = three(21);
    for k in 1..4 {
        ring.write(0, vec![ring.row("ks", k, 1, 7, 10)], Consistency::All).expect("written");
    }
    ring.apply_alone(1, &[ring.row("ks", 1, 1, 8, 20)]);
    ring.apply_alone(2, &[deletion(&ring, 2, 1, 20)]);
    ring.apply_alone(1, &[partition_deletion(&ring, 3, 20)]);
    for k in 1..4 {
        assert_eq!(find(&ring, ring.select_key("ks", k), 7, 10, Consistency::All), [], "partition {k}");
    }
    assert_eq!(find(&ring, ring.select_key("ks", 1), 8, 10, Consistency::All), [(1, 1, 8)]);
    // the first search has told the others
    assert_eq!(ring.stored(0, "ks", 1), [(1, 8)]);
    assert_eq!(ring.stored(0, "ks", 2), []);
}

/// One replica is asked for no other rows than those that are wanted.
#[test]
fn one_replica_leaves_out_other_rows() {
    let ring = SimRing::new(22, &["dc1", "dc1"]);
    ring.create_keyspace("one", "SimpleStrategy", &[("replication_factor", "1")]);
    for k in 0..20 {
        ring.write(0, vec![ring.row("one", k, 1, k % 4, 10)], Consistency::One).expect("written");
    }
    let all = ring.select("one", PartitionRange::all());
    let given =
        ring.search(0, vec![all.clone()], Some(wanted_rows(&all, 3, u32::MAX)), Consistency::One).expect("answered");
    let of_others = given.iter().filter(|(k, ..)| ring.stored(1, "one", *k).len() == 1);
    assert!(of_others.clone().count() > 0 && of_others.clone().all(|(_, _, v)| *v == 3), "{given:?}");
    assert_eq!(find(&ring, all, 3, u32::MAX, Consistency::One).len(), 5);
}

/// Portions end inside of partitions, whose rest is a part of its own: a reader that leaves a
/// partition early does not meet it again, and one that reads all of it meets it once.
#[test]
fn a_partition_in_several_portions_comes_once() {
    let ring = three(24);
    for k in 1..5 {
        for c in 0..7 {
            ring.write(0, vec![ring.row("ks", k, c, 7, 10)], Consistency::All).expect("written");
        }
    }
    ring.apply_alone(1, &[ring.row("ks", 2, 3, 8, 20)]);
    let all = ring.select("ks", PartitionRange::all());
    for portion in [1, 2, 3, 5] {
        let limited = |per_partition| {
            let limits = DataLimits { per_partition, ..all.limits };
            let command = ReadCommand { limits, ..all.clone() };
            let found = find(&ring, command, 7, portion, Consistency::All);
            let of = |k: i32| found.iter().filter(|row| row.0 == k).map(|row| row.1).collect::<Vec<_>>();
            (1..5).map(of).collect::<Vec<_>>()
        };
        let whole: Vec<i32> = (0..7).collect();
        let second: Vec<i32> = whole.iter().copied().filter(|c| *c != 3).collect();
        assert_eq!(limited(u32::MAX), [whole.clone(), second, whole.clone(), whole], "portions of {portion}");
        assert_eq!(limited(2), vec![vec![0, 1]; 4], "portions of {portion}");
    }
}

/// Rows and deletions drawn from a seed, each of which reaches some of the replicas.
#[test]
fn drawn_replicas() {
    for seed in 0..3 {
        let ring = three(100 + seed);
        let random = ring.world.env(0).random.clone();
        let draw = |bound: u64| i32::try_from(random.below(bound)).expect("small");
        let mut newest: BTreeMap<(i32, i32), Option<i32>> = BTreeMap::new();
        for timestamp in 1..120 {
            let (k, c, v) = (draw(4), draw(6), draw(3));
            let mutation = match draw(12) {
                0 => {
                    newest.retain(|(of, _), _| *of != k);
                    partition_deletion(&ring, k, timestamp)
                }
                1 => {
                    newest.insert((k, c), None);
                    deletion(&ring, k, c, timestamp)
                }
                _ => {
                    newest.insert((k, c), Some(v));
                    ring.row("ks", k, c, v, timestamp)
                }
            };
            let first = draw(3);
            (0..=draw(2))
                .for_each(|more| ring.apply_alone(((first + more) % 3) as usize, std::slice::from_ref(&mutation)));
        }
        for (wanted, rows, reversed) in [(0, 1, false), (1, 2, true), (2, u32::MAX, false)] {
            let mut expected: Vec<(i32, i32, i32)> =
                newest.iter().filter(|(_, v)| **v == Some(wanted)).map(|((k, c), _)| (*k, *c, wanted)).collect();
            let order = |c: i32| if reversed { -c } else { c };
            expected.sort_by_key(|(k, c, _)| (Token::of_key(&k.to_be_bytes()), order(*c)));
            let command = ReadCommand { reversed, ..ring.select("ks", PartitionRange::all()) };
            assert_eq!(find(&ring, command, wanted, rows, Consistency::All), expected, "seed {seed}, value {wanted}");
        }
    }
}

/// A read that would hold too many rows is refused, and one that holds many warns.
#[test]
fn the_rows_that_are_held_are_bounded() {
    let ring = three(23);
    for c in 0..10 {
        ring.apply_alone(1, &[ring.row("ks", 1, c, 7, 10)]);
    }
    let command = ring.select_key("ks", 1);
    ring.node(0).set_protection(ProtectionLimits { warn: 2, fail: 29 });
    let refused = ring.search(0, vec![command.clone()], Some(wanted_rows(&command, 7, 100)), Consistency::All);
    match refused {
        Err(FailedRead::Overloaded(sentence)) => assert!(sentence.contains("over 29 rows"), "{sentence}"),
        other => panic!("too many rows are refused, not {other:?}"),
    }
    ring.node(0).set_protection(ProtectionLimits { warn: 2, fail: 30 });
    assert_eq!(find(&ring, command, 7, 100, Consistency::All).len(), 10);
}

/// The bytes that are read again count for the read like those of its first answers.
#[test]
fn the_bytes_that_are_read_again_are_bounded() {
    let ring = three(26);
    for c in 0..10 {
        ring.apply_alone(1, &[ring.row("ks", 1, c, 7, 10)]);
    }
    let (node, command, level) = (ring.node(0), ring.select_key("ks", 1), Consistency::All);
    let (messenger, warnings) = (node.messenger().expect("joined"), Warnings::default());
    let distributed_read = DistributedRead::new(node, messenger, level, Duration::from_secs(1_000), &warnings, None);
    // the bytes that are held behind the first answers to a part that had some before
    let fetch = |wanted_rows: Option<&WantedRows>, before: usize| {
        let parts = node.plan_parts_if_distributed(std::slice::from_ref(&command), level).expect("all are up");
        let parts = parts.into_iter().flatten();
        let mut parts: Vec<PartRead> = parts.map(|part| PartRead::new(part, wanted_rows)).collect();
        parts[0].size = before;
        let (mut window, mut taken) = (1, None);
        ring.world.block_on(distributed_read.fetch::<ReadError>(&mut parts, Missing::Part(0), &mut window, &mut taken))
    };
    let looked_for = wanted_rows(&command, 7, 100);
    let size = fetch(Some(looked_for.as_ref()), 0).expect("all answer");
    assert!(size > fetch(None, 0).expect("all answer"), "each replica was asked for the rows again");
    let rest = READING_SIZE_MAX - size;
    assert_eq!(fetch(Some(looked_for.as_ref()), rest).expect("so much may be held"), READING_SIZE_MAX);
    match fetch(Some(looked_for.as_ref()), rest + 1) {
        Err(FailedRead::Failed { outcome: ReadOutcome::Failed(ReadError::Malformed { what, .. }), .. }) => {
            assert!(what.contains("exceed 256 MiB"), "{what}");
        }
        other => panic!("no more may be held, and not {other:?}"),
    }
}

/// The rows of one partition are held at a time, however many partitions a portion has.
#[test]
fn rows_of_many_partitions_do_not_add_up() {
    let ring = three(25);
    for (k, c) in (1..5).flat_map(|k| (0..3).map(move |c| (k, c))) {
        ring.apply_alone(1, &[ring.row("ks", k, c, 7, 10)]);
    }
    ring.node(0).set_protection(ProtectionLimits { warn: 9, fail: 9 });
    let all = ring.select("ks", PartitionRange::all());
    assert_eq!(find(&ring, all, 7, 100, Consistency::All).len(), 12);
}

/// All rows of a portion are held, so a long read has no larger ones than a short read.
#[test]
fn portions_that_are_protected_do_not_grow() {
    let command = ReadCommand::whole(&table("ks", "t"), PartitionRange::all());
    let contact = |port: u16| Contact { address: SocketAddr::from(([127, 0, 0, 1], port)), is_local: false };
    for (wanted_rows, expected) in [(Some(wanted_rows(&command, 7, u32::MAX)), 5_000), (None, 40_000)] {
        let asked = vec![contact(1), contact(2)];
        let contacts = Contacts { asked, spare: Vec::new(), shortage: None, is_planned: true };
        let mut asked = PartRead::new(Part { command: command.clone(), contacts }, wanted_rows.as_deref());
        (0..3).for_each(|_| asked.grow());
        assert_eq!(asked.first().limits.rows, expected);
    }
}
