//! Tests with the contexts of Cassandra's `CounterContextTest`, and of the laws of merging.

use std::collections::BTreeMap;
use std::sync::Arc;

use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use types::{CqlType, DecoratedKey};

use super::*;
use crate::{DeletionTime, MergeStream, PartitionHead, PartitionStream, ReadError, Unfiltered};

fn id(byte: u8) -> CounterId {
    [byte; 16]
}

fn shard(byte: u8, kind: Kind, clock: i64, count: i64) -> Shard {
    Shard { id: id(byte), kind, clock, count }
}

/// Shards of every kind, with ids, clocks and counts that coincide.
fn contexts() -> Vec<Bytes> {
    let mut contexts = Vec::new();
    for kind in [Kind::Global, Kind::Remote] {
        for (clock, count) in [(1, 5), (2, 5), (2, 7), (-3, 1), (9, -9)] {
            contexts.push(encode(&[shard(1, kind, clock, count)]));
            contexts.push(encode(&[shard(1, kind, clock, count), shard(2, Kind::Global, clock, 3)]));
            contexts.push(encode(&[shard(0, Kind::Remote, 4, 4), shard(2, kind, clock, count)]));
        }
    }
    contexts
}

#[test]
fn bytes_of_a_global_shard() {
    let context = global(id(7), ClockAndCount { clock: 1, count: 2 });
    let mut expected = vec![0, 1, 0x80, 0];
    expected.extend([7; 16]);
    expected.extend(1i64.to_be_bytes());
    expected.extend(2i64.to_be_bytes());
    assert_eq!(context, expected);
    assert!(!has_legacy_shards(&context));
    assert_eq!((total(&context), shard_of(&context, &id(7)).clock, shard_of(&context, &id(8)).clock), (2, 1, 0));
}

#[test]
fn every_kind_of_shard_is_read_back() {
    let shards = [
        shard(1, Kind::Global, 1, 10),
        shard(2, Kind::Remote, 2, 20),
        shard(3, Kind::Local, 3, 30),
        shard(4, Kind::Global, 4, 40),
    ];
    let context = encode(&shards);
    assert_eq!(decode(&context).expect("a context").as_slice(), shards);
    assert_eq!(&context[..8], [0, 3, 0x80, 0, 0, 2, 0x80, 3]);
    assert!(has_legacy_shards(&context));
    assert_eq!(total(&context), 100);
}

#[test]
fn merging_is_the_same_in_any_order_and_as_often_as_one_likes() {
    let contexts = contexts();
    for a in &contexts {
        assert_eq!(merge(a, a), *a);
        for b in &contexts {
            assert_eq!(merge(a, b), merge(b, a));
            assert_eq!(merge(&merge(a, b), b), merge(a, b));
            for c in &contexts {
                assert_eq!(merge(&merge(a, b), c), merge(a, &merge(b, c)));
            }
        }
    }
}

#[test]
fn global_beats_local_beats_remote_and_locals_add_up() {
    let of = |kind, clock, count| encode(&[shard(1, kind, clock, count)]);
    let global = of(Kind::Global, 1, 1);
    assert_eq!(merge(&global, &of(Kind::Local, 9, 9)), global);
    assert_eq!(merge(&of(Kind::Remote, 9, 9), &global), global);
    let local = of(Kind::Local, 1, 1);
    assert_eq!(merge(&local, &of(Kind::Remote, 9, 9)), local);
    assert_eq!(merge(&local, &of(Kind::Local, 2, 5)), of(Kind::Local, 3, 6));
    assert_eq!(merge(&of(Kind::Remote, 2, 1), &of(Kind::Remote, 1, 9)), of(Kind::Remote, 2, 1));
    assert_eq!(merge(&of(Kind::Global, 2, 1), &of(Kind::Global, 2, 9)), of(Kind::Global, 2, 9));
}

#[test]
fn local_shards_of_another_node_become_remote() {
    let context = encode(&[shard(1, Kind::Global, 1, 1), shard(2, Kind::Local, 2, 2)]);
    assert_eq!(clear_local(context.clone()), context);
    let forgotten = forget_local(context.clone());
    assert_eq!(forgotten, encode(&[shard(1, Kind::Global, 1, 1), shard(2, Kind::Remote, 2, 2)]));
    assert_eq!(forget_local(forgotten.clone()), forgotten);
    let mut marked = context.to_vec();
    marked[..2].copy_from_slice(&(-2i16).to_be_bytes());
    let cleared = clear_local(marked.into());
    assert_eq!(cleared, encode(&[shard(1, Kind::Global, 1, 1), shard(2, Kind::Remote, 2, 2)]));
}

#[test]
fn a_deletion_wins_whatever_its_time() {
    let column = ColumnId(0);
    let live = Cell::live(column, 9, global(id(1), ClockAndCount { clock: 1, count: 1 }));
    let dead = Cell::tombstone(column, 3, 100);
    assert_eq!(reconcile(&live, &dead), dead);
    assert_eq!(reconcile(&dead, &live), dead);
    let later = Cell::tombstone(column, 4, 100);
    assert_eq!(reconcile(&dead, &later), later);
}

#[test]
fn bytes_that_are_no_context_do_no_harm() {
    let context = global(id(1), ClockAndCount { clock: 1, count: 1 });
    for bytes in [&b""[..], &[0], &[0, 9], &[0x80, 0, 1], &[0, 0, 1, 2, 3]] {
        let bytes = Bytes::from_static(bytes);
        assert_eq!(total(&bytes), 0);
        assert_eq!(total(&merge(&context, &bytes)), 1);
        assert_eq!(total(&merge(&bytes, &context)), 1);
        assert_eq!(total(&clear_local(bytes)), 0);
    }
}

fn table() -> Arc<TableMetadata> {
    let spec = |name: &str, kind, ty| ColumnSpec { name: name.into(), kind, position: 0, ty, reversed: false };
    let specs = vec![
        spec("k", ColumnKind::PartitionKey, CqlType::Int),
        spec("c", ColumnKind::Clustering, CqlType::Int),
        spec("n", ColumnKind::Regular, CqlType::Counter),
    ];
    let flags = TableFlags { counter: true, ..TableFlags::COMPOUND };
    let (kind, params) = (TableKind::Regular, TableParams::default());
    Arc::new(TableMetadata::new(TableId([1; 16]), "k", "t", kind, flags, params, specs, BTreeMap::new(), None))
}

fn counted(table: &TableMetadata, by: u8, timestamp: i64, count: i64) -> Row {
    let mut row = Row::new([Some(Bytes::from_static(&[0, 0, 0, 1]))].into_iter().collect());
    let context = global(id(by), ClockAndCount { clock: timestamp, count });
    row.add_cell(Cell::live(table.regulars[0].id, timestamp, context));
    row
}

/// A stream of one partition with one row.
struct One(Option<PartitionHead>, Option<Row>);

impl PartitionStream for One {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        Ok(self.0.take())
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        Ok(self.1.take().map(Unfiltered::Row))
    }
}

/// Two nodes count before and after a deletion in a third source; the order of the sources makes no
/// difference.
#[test]
fn what_a_deletion_shadows_does_not_live_on_in_a_later_shard() {
    let table = table();
    let deleted = |timestamp| {
        let mut row = counted(&table, 9, 0, 0);
        row.columns.clear();
        row.deletion = DeletionTime::new(timestamp, 1);
        row
    };
    let of_row = [(None, counted(&table, 1, 100, 5)), (None, counted(&table, 2, 300, 7)), (None, deleted(200))];
    let of_partition = [
        (None, counted(&table, 1, 100, 5)),
        (None, counted(&table, 2, 300, 7)),
        (Some(DeletionTime::new(200, 1)), deleted(0)),
    ];
    for sources in [of_row, of_partition] {
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let streams = order.iter().map(|index| -> Box<dyn PartitionStream> {
                let (deletion, row) = sources[*index].clone();
                let head = PartitionHead::new(
                    DecoratedKey::new(Bytes::from_static(b"key")),
                    deletion.unwrap_or(DeletionTime::LIVE),
                    None,
                );
                Box::new(One(Some(head), Some(row)))
            });
            let mut merged = MergeStream::boxed(&table, streams.collect(), false);
            merged.next_partition().expect("in memory").expect("a partition");
            let Some(Unfiltered::Row(row)) = merged.next_unfiltered().expect("in memory") else { panic!("a row") };
            let Some(ColumnData::Simple(cell)) = row.columns.first() else { panic!("a counter") };
            assert_eq!(total(&cell.value), 7, "{order:?}");
        }
    }
}
