//! Which answers name static columns of a partition that has no static row (`read::static_form`).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use env::sim::{DATA, Sim};
use rows::{Cell, DeletionTime, Mutation, PartitionRange, PartitionUpdate, ReadCommand, ReadContext, ReadMode, Row};
use rows::{ColumnFilter, Liveness, Slice, Slices};
use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use types::{CqlType, DecoratedKey};

use super::common::{int, keyspace};
use super::restart::{open, options};
use crate::{Engine, schema_change};

/// `t (k int, c int, s int static, v int, PRIMARY KEY (k, c))`.
fn table() -> Arc<TableMetadata> {
    let spec =
        |name: &str, kind| ColumnSpec { name: name.into(), kind, position: 0, ty: CqlType::Int, reversed: false };
    let specs = vec![
        spec("k", ColumnKind::PartitionKey),
        spec("c", ColumnKind::Clustering),
        spec("s", ColumnKind::Static),
        spec("v", ColumnKind::Regular),
    ];
    let (kind, flags, params) = (TableKind::Regular, TableFlags::COMPOUND, TableParams::default());
    Arc::new(TableMetadata::new(TableId([8; 16]), "form", "t", kind, flags, params, specs, BTreeMap::new(), None))
}

/// Writes a row of a partition; with it the partition's deletion and a static cell, if wanted.
fn write(engine: &Engine, k: i32, deletion: Option<i64>, has_static: bool) {
    let table = engine.table_by_name("form", "t").expect("it was made").table();
    let id = |name: &str| table.column_by_name(name).expect("it is there").id;
    let mut update = PartitionUpdate::new(Arc::clone(&table), DecoratedKey::new(int(k)));
    update.deletion = deletion.map_or(DeletionTime::LIVE, |at| DeletionTime::new(at, 1));
    if has_static {
        let mut row = Row::new(Default::default());
        row.add_cell(Cell::live(id("s"), 10, int(1)));
        update.static_row = Some(row);
    }
    let mut row = Row::new([Some(int(1))].into_iter().collect());
    row.liveness = Liveness::new(10);
    update.add_row(row);
    engine.apply(&[Mutation::of(update)]).expect("room");
}

/// Whether the answer to a read of a partition names static columns; `by_name`: of its row alone.
fn names(engine: &Engine, k: i32, by_name: bool, columns: ColumnFilter) -> bool {
    let table = engine.table_by_name("form", "t").expect("it was made").table();
    let whole = ReadCommand::whole(&table, PartitionRange::Key(DecoratedKey::new(int(k))));
    let row = || Slices::normalized(vec![Slice::of_prefix([Some(int(1))].into_iter().collect())], &table.comparator);
    let slices = if by_name { row() } else { Slices::all() };
    let command = ReadCommand { slices, columns, ..whole };
    let mut stream = engine.read(&command, &ReadContext::new(ReadMode::Background)).expect("read");
    let head = stream.next_partition().expect("read").expect("it was written");
    head.names_statics
}

#[test]
fn static_columns_of_a_single_sstable_are_named() {
    let sim = Sim::new(11);
    let (engine, _) = open(&sim.env(), options(Path::new(DATA), 16 << 20));
    let form = keyspace("form", Some(table()));
    let changed = schema_change::change(&engine, |schema| Ok::<_, ()>(schema.with_keyspace(form)));
    changed.expect("stored").expect("not refused");
    let store = engine.table_by_name("form", "t").expect("it was made");
    (0..6).for_each(|k| write(&engine, k, None, k == 5));
    write(&engine, 6, Some(5), false);
    assert!(!names(&engine, 1, false, ColumnFilter::All), "memtables name none");
    sim.block_on(engine.flush(&store)).expect("a sound disk flushes");
    assert!(names(&engine, 1, false, ColumnFilter::All));
    assert!(!names(&engine, 1, false, ColumnFilter::Some(Arc::new([]))), "none are fetched");
    // Cassandra makes a partition of what it reads by name, which has no static row without cells,
    // unless the partition was deleted
    assert!(!names(&engine, 1, true, ColumnFilter::All));
    assert!(names(&engine, 6, true, ColumnFilter::All));
    // a memtable that has the partition is a second source
    write(&engine, 1, None, false);
    assert!(!names(&engine, 1, false, ColumnFilter::All));
    assert!(names(&engine, 2, false, ColumnFilter::All));
    // an SSTable is one where its keys lie around the partition's, unless all of it is deleted
    let token = |k: i32| DecoratedKey::new(int(k)).token;
    let mut keys: Vec<i32> = (0..7).collect();
    keys.sort_by_key(|k| token(*k));
    [keys[0], keys[2]].into_iter().for_each(|k| write(&engine, k, None, false));
    sim.block_on(engine.flush(&store)).expect("a sound disk flushes");
    let last = *keys.last().expect("seven keys");
    assert!(!names(&engine, keys[1], false, ColumnFilter::All));
    // partition 1 was flushed with them and may be the last
    assert_eq!(names(&engine, last, false, ColumnFilter::All), last != 1);
}
