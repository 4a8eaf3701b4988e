//! A column that is dropped and added again: cells up to the time of the drop are gone, newer ones
//! are there, whatever happened to the table between the two: nothing, a flush, a compaction, a
//! restart. Agrees with `org.apache.cassandra.db.rows.DeserializationHelper.isDropped`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use env::sim::{DATA, Sim};
use rows::live::{LiveRows, TombstoneLimits};
use rows::{Cell, ColumnData, Liveness, Mutation, PartitionUpdate, Row};
use schema::table::ColumnSpec;
use schema::{ColumnKind, DroppedColumn, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use types::{CqlType, DecoratedKey};

use super::common::{give_host_id, int, keyspace, number};
use super::restart::options;
use crate::requests::operations::{Operation, VerifyOptions, Work};
use crate::strategy::kind::Kind;
use crate::{Engine, TableStore, schema_change};

/// The time of the drop, microseconds; writes are older or newer.
const DROPPED: i64 = 2_000_000;
const OLDER: i64 = 1000;
const NEWER: i64 = 3_000_000;

/// The events between two steps.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Between {
    Nothing,
    Flush,
    Compact,
    Restart,
}

const BETWEEN: [Between; 4] = [Between::Nothing, Between::Flush, Between::Compact, Between::Restart];

/// The columns that are dropped: a static one, a simple one, a collection.
fn droppable() -> [ColumnSpec; 3] {
    let spec = |name: &str, kind, ty| ColumnSpec { name: name.into(), kind, position: 0, ty, reversed: false };
    let (key, value) = (Box::new(CqlType::Int).into(), Box::new(CqlType::Int).into());
    let map = CqlType::Map { key, value, frozen: false };
    [
        spec("s", ColumnKind::Static, CqlType::Int),
        spec("w", ColumnKind::Regular, CqlType::Int),
        spec("m", ColumnKind::Regular, map),
    ]
}

fn table(with_droppable: bool, previous: Option<&TableMetadata>) -> Arc<TableMetadata> {
    let mut dropped = previous.map(|table| table.dropped.clone()).unwrap_or_default();
    for ColumnSpec { name, ty, kind, .. } in droppable().into_iter().filter(|_| !with_droppable) {
        dropped.insert(name.clone(), DroppedColumn { name, ty, kind, dropped_time: DROPPED });
    }
    of(with_droppable, dropped, previous)
}

fn of(
    with_droppable: bool,
    dropped: BTreeMap<String, DroppedColumn>,
    previous: Option<&TableMetadata>,
) -> Arc<TableMetadata> {
    let spec =
        |name: &str, kind| ColumnSpec { name: name.into(), kind, position: 0, ty: CqlType::Int, reversed: false };
    let mut specs = vec![
        spec("k", ColumnKind::PartitionKey),
        spec("c", ColumnKind::Clustering),
        spec("v", ColumnKind::Regular),
        spec("z", ColumnKind::Static),
    ];
    if with_droppable {
        specs.extend(droppable());
    }
    let (kind, flags, params) = (TableKind::Regular, TableFlags::COMPOUND, TableParams::default());
    let id = TableId([7; 16]);
    Arc::new(TableMetadata::new(id, "again", "t", kind, flags, params, specs, dropped, previous))
}

struct Node {
    sim: Sim,
    engine: Arc<Engine>,
}

impl Node {
    fn start(sim: Sim) -> Self {
        let options = options(Path::new(DATA), 16 << 20);
        let engine = loop {
            match crate::open(&sim.env(), options.clone()) {
                // a background task may still hold the engine that was dropped
                Err(crate::StorageError::Locked { .. }) => std::thread::yield_now(),
                opened => break opened.expect("a sound disk opens").0,
            }
        };
        Self { sim, engine }
    }

    fn store(&self) -> Arc<TableStore> {
        self.engine.table_by_name("again", "t").expect("it was made")
    }

    fn put(&self, table: Arc<TableMetadata>) {
        let keyspace = keyspace("again", Some(table));
        let changed = schema_change::change(&self.engine, |schema| Ok::<_, ()>(schema.with_keyspace(keyspace)));
        changed.expect("stored").expect("not refused");
    }

    fn alter(&self, with_droppable: bool) {
        let old = self.store().table();
        self.put(table(with_droppable, Some(&old)));
    }

    /// A partition with a row of older cells and one of newer cells; its static cell is as old as
    /// `of_static`.
    fn write(&self, k: i32, of_static: i64, value: i32) {
        let table = self.store().table();
        let id = |name: &str| table.column_by_name(name).expect("it is there").id;
        let mut update = PartitionUpdate::new(Arc::clone(&table), DecoratedKey::new(int(k)));
        let mut statics = Row::new(Default::default());
        statics.add_cell(Cell::live(id("s"), of_static, int(value)));
        update.static_row = Some(statics);
        for (c, at) in [(1, OLDER), (2, NEWER)] {
            let mut row = Row::new([Some(int(c))].into_iter().collect());
            row.liveness = Liveness::new(at);
            row.add_cell(Cell::live(id("w"), at, int(value)));
            // an element of its own for each write
            row.add_complex_cell(&table, Cell { path: Some(int(value)), ..Cell::live(id("m"), at, int(value)) });
            update.add_row(row);
        }
        self.engine.apply(&[Mutation::of(update)]).expect("room");
    }

    fn pass(self, between: Between) -> Self {
        match between {
            Between::Nothing => {}
            Between::Flush => self.sim.block_on(self.engine.flush(&self.store())).expect("a sound disk flushes"),
            Between::Compact => {
                self.sim.block_on(self.engine.flush(&self.store())).expect("a sound disk flushes");
                self.sim.block_on(self.engine.compact(&self.store())).expect("a sound disk compacts");
            }
            Between::Restart => {
                self.sim.block_on(self.engine.log.sync()).expect("a sound disk syncs");
                let Self { sim, engine } = self;
                drop(engine);
                sim.kill();
                return Self::start(sim);
            }
        }
        self
    }

    /// All live cells: partition, clustering (None: static), column, values.
    fn cells(&self) -> BTreeMap<(i32, Option<i32>, String), Vec<i32>> {
        let store = self.store();
        let table = store.table();
        let mut stream = crate::read::read_all(&store, 1).expect("read");
        let mut live = LiveRows::new(stream.as_mut(), Arc::clone(&table), 1, TombstoneLimits::NONE);
        let mut found = BTreeMap::new();
        let mut note = |k: i32, c: Option<i32>, row: &Row| {
            for data in &row.columns {
                let name = &table.column(data.column()).expect("no cells of columns that are not there").name;
                let values = match data {
                    ColumnData::Simple(cell) => vec![number(&cell.value)],
                    ColumnData::Complex(complex) => complex.cells.iter().map(|cell| number(&cell.value)).collect(),
                };
                found.insert((k, c, name.clone()), values);
            }
        };
        while let Some(partition) = live.next_partition().expect("read") {
            let k = number(&partition.key.key);
            if let Some(row) = &partition.static_row {
                note(k, None, row);
            }
            while let Some(row) = live.next_row().expect("read") {
                note(k, row.clustering[0].as_deref().map(number), &row);
            }
        }
        found
    }
}

fn check(steps: [Between; 4]) {
    let [first, second, third, last] = steps;
    let node = Node::start(Sim::new(1));
    node.put(table(true, None));
    node.write(1, OLDER, 10);
    node.write(2, NEWER, 10);
    // a second source of the same rows: cells of the collection are merged
    let node = node.pass(first);
    node.write(1, OLDER, 11);
    node.write(2, NEWER, 11);
    let node = node.pass(second);
    node.alter(false);
    let node = node.pass(third);
    assert_eq!(node.cells(), BTreeMap::new(), "{steps:?}: nothing is seen of a dropped column");
    node.alter(true);
    let node = node.pass(last);
    let cell = |k, c, name: &str, values: &[i32]| ((k, c, name.to_owned()), values.to_vec());
    let expected = BTreeMap::from([
        cell(1, Some(2), "m", &[10, 11]),
        cell(1, Some(2), "w", &[11]),
        cell(2, None, "s", &[11]),
        cell(2, Some(2), "m", &[10, 11]),
        cell(2, Some(2), "w", &[11]),
    ]);
    assert_eq!(node.cells(), expected, "{steps:?}: what is newer than the drop is there again");
}

/// The columns are added again after `third` has happened to a table without them.
fn check_all(third: Between) {
    for second in BETWEEN {
        check([Between::Flush, second, third, Between::Nothing]);
    }
    check([Between::Nothing, Between::Nothing, third, Between::Compact]);
    check([Between::Nothing, Between::Nothing, third, Between::Restart]);
}

#[test]
fn cells_newer_than_the_drop_stay_in_frozen_memtables() {
    check_all(Between::Nothing);
}

#[test]
fn cells_newer_than_the_drop_are_flushed() {
    check_all(Between::Flush);
}

#[test]
fn cells_newer_than_the_drop_are_compacted() {
    check_all(Between::Compact);
}

#[test]
fn cells_newer_than_the_drop_are_replayed() {
    check_all(Between::Restart);
}

/// Rows of which only cells of dropped columns are left, older or newer than the drop, are no
/// damage.
#[test]
fn sstables_with_dropped_columns_are_sound() {
    for at in [OLDER, NEWER] {
        let node = Node::start(Sim::new(3));
        node.put(table(true, None));
        node.write(1, at, 10);
        let written = node.store().table();
        let mut update = PartitionUpdate::new(Arc::clone(&written), DecoratedKey::new(int(2)));
        let mut row = Row::new([Some(int(1))].into_iter().collect());
        row.add_cell(Cell::live(written.column_by_name("w").expect("it is there").id, at, int(1)));
        update.add_row(row);
        node.engine.apply(&[Mutation::of(update)]).expect("room");
        let node = node.pass(Between::Flush);
        for with_droppable in [false, true] {
            node.alter(with_droppable);
            let extended = VerifyOptions { extended: true, ..VerifyOptions::default() };
            let verify = Operation::new(Kind::Verify, Work::Verify(extended), 1);
            node.sim.block_on(node.engine.operate(&node.store(), verify)).expect("nothing is damaged");
        }
    }
}

/// The schema has lost columns, without a record that somebody has dropped them: their cells stay
/// in SSTables, and are there again when the schema has the columns again.
#[test]
fn cells_of_columns_that_the_schema_has_lost_stay() {
    let node = Node::start(Sim::new(4));
    // the log has their records yet, which a node without a name would replay
    give_host_id(&node.sim, &node.engine, node.sim.env().clock.now_micros());
    node.put(table(true, None));
    node.write(1, NEWER, 10);
    let node = node.pass(Between::Flush);
    node.write(1, NEWER, 11);
    let node = node.pass(Between::Flush);
    let before = node.cells();
    node.put(of(false, BTreeMap::new(), Some(&node.store().table())));
    assert_eq!(node.cells(), BTreeMap::new());
    let node = node.pass(Between::Compact).pass(Between::Restart);
    let rewrite = Operation::new(Kind::Upgrade, Work::Rewrite, 1);
    let refused = node.sim.block_on(node.engine.operate(&node.store(), rewrite)).expect_err("cells would be lost");
    assert!(refused.to_string().contains("which again.t has not and never had"), "{refused}");
    node.put(of(true, BTreeMap::new(), Some(&node.store().table())));
    assert_eq!(node.cells(), before);
    let node = node.pass(Between::Compact);
    assert_eq!((node.cells(), node.store().view().sstables.len()), (before, 1));
}

/// The clock of the machine is set back while the node is down: a change of the schema still
/// replaces what the node stored before, whether that is in the commit log or in SSTables.
#[test]
fn a_change_after_the_clock_was_set_back_wins() {
    for flushed in [false, true] {
        let node = Node::start(Sim::new(2));
        node.put(table(true, None));
        node.alter(false);
        if flushed {
            for store in node.engine.tables() {
                node.sim.block_on(node.engine.flush(&store)).expect("a sound disk flushes");
            }
        }
        node.sim.shift_wall_clock(-3_600_000_000);
        let node = node.pass(Between::Restart);
        node.alter(true);
        let node = node.pass(Between::Restart);
        assert!(node.store().table().column_by_name("w").is_some(), "flushed {flushed}: the column was added last");
    }
}
