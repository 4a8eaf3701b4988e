//! Random histories of a table with all that a table can have: two clustering columns in mixed
//! order, collections, static columns, TTLs, a gc_grace that passes, columns dropped and added
//! again, truncations, the table itself dropped.
//!
//! Checked: after each step, in any order of flushes, compactions, restarts and power cuts (also in
//! the middle of those), reads equal the twin's: by partition, by several slices, reversed, with
//! some of the columns, whole range. So nothing that was deleted or has expired comes back when
//! tombstones are purged. A late write is at most half of gc_grace late: beyond, it may come before
//! or after the purge of what deletes it.

mod damage;
mod explain;
mod twin;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use env::Random;
use env::sim::{DATA, Sim, SimRandom};
use rows::live::{LiveRows, TombstoneLimits};
use rows::{
    Bound, Cell, CellPath, ClusteringValues, ColumnData, ColumnFilter, DataLimits, DeletionTime, Liveness, Mutation,
    PartitionRange, PartitionUpdate, ReadCommand, ReadContext, ReadMode, Row, Slice, Slices,
};
use schema::table::ColumnSpec;
use schema::{ColumnKind, DroppedColumn, KeyspaceMetadata, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use types::{CqlType, DecoratedKey};

use self::twin::{CellOp, Columns, History, Partition, Range, Value, What, Write};
use super::common::{self, delete_row, int, number};
use super::seeds::{each, seeds};
use crate::{Engine, EngineOptions, TableStore, commitlog, schema_change, truncate};

const PARTITIONS: u64 = 3;
const A: u64 = 4;
const B: u64 = 6;
const ELEMENTS: u64 = 5;
const GC_GRACE: i32 = 20;
const REGULARS: [&str; 6] = ["v", "w", "x", "m", "e", "l"];
const STATICS: [&str; 2] = ["s", "sm"];
/// May be dropped and added again.
const DROPPABLE: [&str; 3] = ["w", "x", "m"];

fn options(dice: &SimRandom, row_cache: usize) -> EngineOptions {
    EngineOptions {
        commitlog: commitlog::Options { segment_size: 48 << 10, total_space: 1 << 20, ..commitlog::Options::default() },
        shards: 1 << dice.below(3),
        memtable_bytes: 1 << 20,
        chunk_cache_bytes: 64 << 10,
        row_cache_bytes: row_cache,
        column_index_size: Some(256),
        tombstone_failure_threshold: u64::MAX,
        tombstone_warn_threshold: u64::MAX,
        ..EngineOptions::with_small_budgets(Path::new(DATA))
    }
}

fn type_of(name: &str) -> CqlType {
    let (int, frozen) = (Arc::new(CqlType::Int), false);
    match name {
        "m" | "sm" => CqlType::Map { key: Arc::clone(&int), value: int, frozen },
        "e" => CqlType::Set { element: int, frozen },
        "l" => CqlType::List { element: int, frozen },
        _ => CqlType::Int,
    }
}

fn spec(name: &str, kind: ColumnKind, position: usize, reversed: bool) -> ColumnSpec {
    ColumnSpec { name: name.into(), kind, position, ty: type_of(name), reversed }
}

fn table(id: u8, seed: u64) -> TableMetadata {
    let mut specs = vec![
        spec("k", ColumnKind::PartitionKey, 0, false),
        spec("a", ColumnKind::Clustering, 0, false),
        spec("b", ColumnKind::Clustering, 1, true),
    ];
    specs.extend(STATICS.map(|name| spec(name, ColumnKind::Static, 0, false)));
    specs.extend(REGULARS.map(|name| spec(name, ColumnKind::Regular, 0, false)));
    let mut params = TableParams { gc_grace_seconds: GC_GRACE, ..TableParams::default() };
    params.caching = common::caching(seed + u64::from(id));
    params.compression.insert("chunk_length_in_kb".into(), "1".into());
    params.compaction.insert("tombstone_compaction_interval".into(), "10".into());
    let (id, kind, flags) = (TableId([id; 16]), TableKind::Regular, TableFlags::COMPOUND);
    TableMetadata::new(id, "wide", "t", kind, flags, params, specs, BTreeMap::new(), None)
}

fn keyspace(table: Option<TableMetadata>) -> KeyspaceMetadata {
    common::keyspace("wide", table.map(Arc::new))
}

fn key(k: i32) -> DecoratedKey {
    DecoratedKey::new(int(k))
}

fn values(list: &[i32]) -> ClusteringValues {
    list.iter().map(|value| Some(int(*value))).collect()
}

/// List elements are named by time-UUIDs, others by themselves.
fn path(column: &str, element: i32) -> CellPath {
    match column {
        "l" => Bytes::copy_from_slice(&types::timeuuid::from_micros(1_700_000_000_000_000 + i64::from(element), 7)),
        _ => int(element),
    }
}

fn element_of(column: &str, bytes: &CellPath) -> i32 {
    (0..ELEMENTS as i32).find(|element| path(column, *element) == *bytes).expect("a path that was written")
}

struct Wide {
    sim: Sim,
    dice: SimRandom,
    history: History,
    /// Columns that are there.
    columns: BTreeSet<&'static str>,
    used: BTreeSet<i64>,
    tables: u8,
    row_cache: usize,
}

impl Wide {
    fn pick<T: Copy>(&self, list: &[T]) -> T {
        list[self.dice.below(list.len() as u64) as usize]
    }

    fn below(&self, end: u64) -> i32 {
        self.dice.below(end) as i32
    }

    fn open(&self) -> Arc<Engine> {
        let seed = self.sim.seed();
        let opened = crate::open(&self.sim.env(), options(&self.dice, self.row_cache));
        let (engine, _) = opened.unwrap_or_else(|error| panic!("seed {seed}: a sound disk opens, but: {error}"));
        if engine.schema().keyspace("wide").is_none() {
            self.change(&engine, keyspace(Some(table(self.tables, self.sim.seed()))));
        }
        engine
    }

    fn change(&self, engine: &Engine, keyspace: KeyspaceMetadata) -> Vec<Arc<TableStore>> {
        let changed = schema_change::change(engine, |schema| Ok::<_, ()>(schema.with_keyspace(keyspace)));
        let changed = changed.expect("a sound disk takes a change").expect("not refused");
        let position = changed.position.expect("rows were written");
        self.sim.block_on(engine.log.wait_durable(position)).expect("a sound disk syncs");
        changed.dropped
    }

    fn table(&self, engine: &Engine) -> Arc<TableMetadata> {
        engine.schema().table("wide", "t").cloned().expect("the schema survives everything")
    }

    fn store(&self, engine: &Engine) -> Arc<TableStore> {
        engine.table_by_name("wide", "t").expect("the table is open")
    }

    /// A timestamp that no other write has, mostly now.
    fn timestamp(&mut self, engine: &Engine) -> i64 {
        self.sim.advance(Duration::from_micros(self.dice.below(400)));
        let now = engine.env.clock.now_micros();
        let late_max = GC_GRACE as u64 * 500_000;
        let mut at = if self.dice.chance(75) { now } else { now - self.dice.below(late_max) as i64 } & !1;
        while !self.used.insert(at) {
            at += 2;
        }
        at
    }

    fn ttl(&self) -> Option<u32> {
        self.dice.chance(30).then(|| 1 + self.dice.below(3 * GC_GRACE as u64) as u32)
    }

    fn cells(&self, of: &[&'static str]) -> Vec<(&'static str, CellOp)> {
        let mut cells: BTreeMap<&'static str, CellOp> = BTreeMap::new();
        for _ in 0..1 + self.dice.below(3) {
            let name = self.pick(of);
            if (self.columns.contains(name) || STATICS.contains(&name)) && !cells.contains_key(name) {
                cells.insert(name, self.cell(name));
            }
        }
        cells.into_iter().collect()
    }

    fn cell(&self, name: &str) -> CellOp {
        let (value, element) = (if name == "e" { 0 } else { self.below(1000) }, self.below(ELEMENTS));
        if !type_of(name).is_multi_cell() {
            return if self.dice.chance(80) { CellOp::Set { value, ttl: self.ttl() } } else { CellOp::Unset };
        }
        match self.dice.below(10) {
            0 => CellOp::Clear,
            1..=2 => {
                let elements: BTreeSet<i32> = (0..self.dice.below(4)).map(|_| self.below(ELEMENTS)).collect();
                CellOp::Overwrite { elements: elements.into_iter().map(|element| (element, value)).collect() }
            }
            3..=4 => CellOp::Remove { element },
            _ => CellOp::Put { element, value, ttl: self.ttl() },
        }
    }

    fn range(&self) -> Range {
        let (a, b) = (self.below(A), self.below(B));
        match self.dice.below(3) {
            0 => Range::Prefix(a),
            1 => Range::Within { a, from: b, to: b + self.below(3) },
            _ => Range::Outer { from: a, to: a + self.below(2) },
        }
    }

    fn random_write(&mut self, engine: &Engine) -> Write {
        let (k, a, b) = (self.below(PARTITIONS), self.below(A), self.below(B));
        let what = match self.dice.below(40) {
            0 => What::DeletePartition,
            1..=4 => What::DeleteRange(self.range()),
            5..=8 => What::DeleteRow { a, b },
            9..=11 => What::Static { cells: self.cells(&STATICS) },
            _ => {
                let insert = self.dice.chance(60).then(|| self.ttl());
                What::Row { a, b, insert, cells: self.cells(&REGULARS) }
            }
        };
        Write { k, at: self.timestamp(engine), now: engine.env.clock.now_seconds(), what }
    }

    fn add_cells(row: &mut Row, table: &TableMetadata, write: &Write, cells: &[(&'static str, CellOp)]) {
        let Write { at, now, .. } = *write;
        for (name, op) in cells {
            let id = table.column_by_name(name).expect("a column that is there").id;
            let live = |value: i32, ttl: Option<u32>| {
                let value = if *name == "e" { Bytes::new() } else { int(value) };
                let mut cell = Cell::live(id, at, value);
                if let Some(ttl) = ttl {
                    (cell.ttl, cell.local_deletion_time) = (ttl, now + ttl);
                }
                cell
            };
            match op {
                CellOp::Set { value, ttl } => row.add_cell(live(*value, *ttl)),
                CellOp::Unset => row.add_cell(Cell::tombstone(id, at, now)),
                CellOp::Put { element, value, ttl } => {
                    row.add_complex_cell(table, live(*value, *ttl).at(path(name, *element)));
                }
                CellOp::Remove { element } => {
                    row.add_complex_cell(table, Cell::tombstone(id, at, now).at(path(name, *element)));
                }
                CellOp::Overwrite { elements } => {
                    row.add_complex_deletion(id, DeletionTime::new(at - 1, now));
                    for (element, value) in elements {
                        row.add_complex_cell(table, live(*value, None).at(path(name, *element)));
                    }
                }
                CellOp::Clear => row.add_complex_deletion(id, DeletionTime::new(at, now)),
            }
        }
    }

    fn slice(range: &Range) -> Slice {
        match *range {
            Range::Prefix(a) => Slice::of_prefix(values(&[a])),
            // b is in descending order
            Range::Within { a, from, to } => {
                Slice { start: Bound::start(values(&[a, to]), true), end: Bound::end(values(&[a, from]), true) }
            }
            Range::Outer { from, to } => {
                Slice { start: Bound::start(values(&[from]), true), end: Bound::end(values(&[to]), true) }
            }
        }
    }

    fn mutation(table: &Arc<TableMetadata>, write: &Write) -> Mutation {
        let mut update = PartitionUpdate::new(Arc::clone(table), key(write.k));
        let deletion = DeletionTime::new(write.at, write.now);
        match &write.what {
            What::Row { a, b, insert, cells } => {
                let mut row = Row::new(values(&[*a, *b]));
                if let Some(ttl) = insert {
                    row.liveness = match ttl {
                        None => Liveness::new(write.at),
                        Some(ttl) => Liveness::expiring(write.at, *ttl, write.now + ttl),
                    };
                }
                Self::add_cells(&mut row, table, write, cells);
                update.add_row(row);
            }
            What::Static { cells } => {
                let mut row = Row::new(ClusteringValues::new());
                Self::add_cells(&mut row, table, write, cells);
                update.add_static(row);
            }
            What::DeleteRow { a, b } => {
                delete_row(&mut update, values(&[*a, *b]), deletion);
            }
            What::DeleteRange(range) => update.range_deletions.push((Self::slice(range), deletion)),
            What::DeletePartition => update.deletion = deletion,
        }
        Mutation::of(update)
    }

    fn write(&mut self, engine: &Arc<Engine>) {
        let write = self.random_write(engine);
        let mutation = Self::mutation(&self.table(engine), &write);
        let empty = match &write.what {
            What::Row { insert, cells, .. } => insert.is_none() && cells.is_empty(),
            What::Static { cells } => cells.is_empty(),
            _ => false,
        };
        if empty {
            return;
        }
        self.sim.block_on(engine.admit());
        let applied = engine.apply(&[mutation]).expect("a sound disk takes writes");
        let position = applied.position.expect("the keyspace is durable");
        self.sim.block_on(engine.log.wait_durable(position)).expect("a sound disk syncs");
        self.history.writes.push(write);
    }

    fn view(&self, row: &Row, table: &TableMetadata, wanted: &[&'static str]) -> Columns {
        let named = |data: &ColumnData| {
            let column = table.column(data.column())?;
            let name = *wanted.iter().find(|name| **name == column.name)?;
            let simple = |cell: &Cell| if name == "e" { 0 } else { number(&cell.value) };
            let value = match data {
                ColumnData::Simple(cell) => Value::Simple(simple(cell)),
                ColumnData::Complex(complex) => Value::Elements(
                    complex
                        .cells
                        .iter()
                        .map(|cell| (element_of(name, cell.path.as_ref().expect("a path")), simple(cell)))
                        .collect(),
                ),
            };
            Some((name, value))
        };
        row.columns.iter().filter_map(named).collect()
    }

    /// A random read, compared with the twin's.
    fn check(&self, engine: &Engine) {
        let table = self.table(engine);
        let now = engine.env.clock.now_seconds();
        let all_columns: Vec<&'static str> = self.columns.iter().copied().chain(STATICS).collect();
        let mut wanted = all_columns.clone();
        let mut columns = ColumnFilter::All;
        // often such that rows by name need not read everything
        let simple = self.dice.chance(40);
        if simple || self.dice.chance(30) {
            wanted.retain(|name| if simple { ["v", "w", "x"].contains(name) } else { self.dice.chance(50) });
            let mut ids: Vec<_> =
                wanted.iter().map(|name| table.column_by_name(name).expect("it is there").id).collect();
            ids.sort();
            columns = ColumnFilter::Some(ids.into());
        }
        let single = self.dice.chance(70).then(|| self.below(PARTITIONS));
        let ranges: Option<Vec<Range>> = self.dice.chance(60).then(|| {
            (0..1 + self.dice.below(4))
                .map(|_| {
                    // often rows by name
                    let (a, b) = (self.below(A), self.below(B));
                    if simple || self.dice.chance(60) { Range::Within { a, from: b, to: b } } else { self.range() }
                })
                .collect()
        });
        let slices = match &ranges {
            None => Slices::all(),
            Some(ranges) => Slices::normalized(ranges.iter().map(Self::slice).collect(), &table.comparator),
        };
        let reversed = self.dice.chance(40);
        let range = single.map_or_else(PartitionRange::all, |k| PartitionRange::Key(key(k)));
        let limits = DataLimits::NONE;
        let command = ReadCommand {
            table: Arc::clone(&table),
            range,
            slices,
            reversed,
            columns,
            now,
            limits,
            indexes: Vec::new(),
        };
        let found = self.read(engine, &command, &wanted);
        explain::check(engine, &command, self.sim.seed());
        let mut expected: Vec<(i32, Partition)> = (0..PARTITIONS as i32)
            .filter(|k| single.is_none_or(|single| single == *k))
            .map(|k| {
                let mut partition = self.history.partition(k, now, &all_columns);
                if let Some(ranges) = &ranges {
                    partition.rows.retain(|(a, b), _| {
                        let row = values(&[*a, *b]);
                        ranges.iter().any(|range| Self::slice(range).contains(&row, &table.comparator))
                    });
                }
                for row in partition.rows.values_mut().chain([&mut partition.statics]) {
                    row.retain(|name, _| wanted.contains(name));
                }
                (k, partition)
            })
            .filter(|(_, partition)| *partition != Partition::default())
            .collect();
        expected.sort_by_key(|(k, _)| key(*k));
        if found != expected {
            self.explain(&command, &found, &expected);
        }
    }

    /// Panics with the first difference and what was written there.
    fn explain(&self, command: &ReadCommand, found: &[(i32, Partition)], expected: &[(i32, Partition)]) {
        let of = |list: &[(i32, Partition)], k: i32| {
            list.iter().find(|(other, _)| *other == k).map(|(_, partition)| partition.clone()).unwrap_or_default()
        };
        let k = (0..PARTITIONS as i32).find(|k| of(found, *k) != of(expected, *k)).expect("the order is right");
        let (found, expected) = (of(found, k), of(expected, k));
        let mut rows = found.rows.keys().chain(expected.rows.keys());
        let row = rows.find(|at| found.rows.get(at) != expected.rows.get(at)).copied();
        let (found_row, expected_row) = match row {
            Some(at) => (found.rows.get(&at), expected.rows.get(&at)),
            None => (Some(&found.statics), Some(&expected.statics)),
        };
        let relevant = |write: &&Write| {
            write.k == k
                && match &write.what {
                    What::Row { a, b, .. } | What::DeleteRow { a, b } => row == Some((*a, *b)),
                    What::Static { .. } => row.is_none(),
                    What::DeleteRange(range) => row.is_some_and(|(a, b)| range.covers(a, b)),
                    What::DeletePartition => true,
                }
        };
        let writes: Vec<String> = self.history.writes.iter().filter(relevant).map(|w| format!("{w:?}\n")).collect();
        let ReadCommand { slices, reversed, columns, now, .. } = command;
        panic!(
            "seed {}: partition {k} row {row:?} at {now}: found {found_row:?}, expected {expected_row:?}\nreversed {reversed} {columns:?} {slices:?}\n{}dropped {:?}",
            self.sim.seed(),
            writes.concat(),
            self.history.dropped,
        );
    }

    fn read(&self, engine: &Engine, command: &ReadCommand, wanted: &[&'static str]) -> Vec<(i32, Partition)> {
        let seed = self.sim.seed();
        let context = ReadContext::new(ReadMode::Background);
        let table = &command.table;
        let mut stream = engine.read(command, &context).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let mut live = LiveRows::new(stream.as_mut(), Arc::clone(table), command.now, TombstoneLimits::NONE);
        let mut partitions = Vec::new();
        while let Some(head) = live.next_partition().unwrap_or_else(|error| panic!("seed {seed}: {error}")) {
            let mut partition = Partition::default();
            if let Some(row) = &head.static_row {
                partition.statics = self.view(row, table, wanted);
            }
            let mut last = None;
            while let Some(row) = live.next_row().unwrap_or_else(|error| panic!("seed {seed}: {error}")) {
                let part = |index: usize| number(row.clustering[index].as_ref().expect("a clustering"));
                let at = (part(0), part(1));
                let order = |(a, b): (i32, i32)| if command.reversed { (-a, b) } else { (a, -b) };
                assert!(last.replace(at).is_none_or(|last| order(last) < order(at)), "seed {seed}: rows come in order");
                partition.rows.insert(at, self.view(&row, table, wanted));
            }
            if partition != Partition::default() {
                partitions.push((number(&head.key.key), partition));
            }
        }
        partitions
    }

    fn alter(&mut self, engine: &Arc<Engine>) {
        let name = self.pick(&DROPPABLE);
        let old = self.table(engine);
        let mut specs = old.specs();
        let mut dropped = old.dropped.clone();
        self.sim.advance(Duration::from_millis(1));
        if self.columns.remove(name) {
            specs.retain(|spec| spec.name != name);
            // the schema tables keep milliseconds
            let dropped_time = engine.env.clock.now_micros() / 1000 * 1000;
            let column =
                DroppedColumn { name: name.into(), ty: type_of(name), kind: ColumnKind::Regular, dropped_time };
            dropped.insert(name.into(), column);
            self.history.dropped.push((name, dropped_time));
        } else {
            specs.push(spec(name, ColumnKind::Regular, 0, false));
            self.columns.insert(name);
        }
        let (id, kind, flags) = (old.id, old.kind, old.flags);
        let new = TableMetadata::new(id, "wide", "t", kind, flags, old.params.clone(), specs, dropped, Some(&old));
        self.change(engine, keyspace(Some(new)));
    }

    fn drop_table(&mut self, engine: &Arc<Engine>) {
        let dropped = self.change(engine, keyspace(None));
        if self.dice.chance(70) {
            common::remove(&self.sim, engine, &dropped);
        }
        self.tables += 1;
        self.change(engine, keyspace(Some(table(self.tables, self.sim.seed()))));
        self.forget();
        self.columns = REGULARS.into_iter().collect();
    }

    fn truncate(&self, engine: &Arc<Engine>, store: &Arc<TableStore>) {
        self.sim.block_on(truncate::truncate(engine, store)).expect("a sound disk truncates");
    }

    fn forget(&mut self) {
        self.history = History::default();
    }

    fn step(&mut self, engine: &Arc<Engine>) {
        let store = self.store(engine);
        match self.dice.below(60) {
            0..=2 => self.sim.block_on(engine.flush(&store)).expect("a sound disk flushes"),
            3..=4 => self.sim.block_on(engine.compact(&store)).expect("a sound disk compacts"),
            5..=6 => drop(self.sim.run_until_idle()),
            7..=8 => self.sim.advance(Duration::from_secs(self.dice.below(GC_GRACE as u64 * 2))),
            9..=10 => self.alter(engine),
            11 if self.dice.chance(15) => {
                self.truncate(engine, &store);
                self.history.writes.clear();
            }
            12 if self.dice.chance(15) => self.drop_table(engine),
            13..=22 => self.check(engine),
            _ => self.write(engine),
        }
    }

    /// The power goes in the middle of a flush, a compaction or a truncation.
    fn power_cut_in_the_middle(&mut self, engine: &Arc<Engine>) {
        let store = self.store(engine);
        self.sim.disk().power_cut_after(self.dice.below(120));
        match self.dice.below(3) {
            0 => drop(self.sim.block_on(engine.flush(&store))),
            1 => drop(self.sim.block_on(engine.compact(&store))),
            _ => {
                // twice: what was not void in the first is in the second
                let _ = self.sim.block_on(engine.flush(&store));
                let _ = self.sim.block_on(engine.compact(&store));
            }
        }
        for _ in 0..self.dice.below(30) {
            self.sim.step();
        }
    }
}

fn run(seed: u64, lives: usize, row_cache: usize) -> (u64, u64) {
    let sim = Sim::new(seed);
    let dice = sim.dice();
    let columns = REGULARS.into_iter().collect();
    let mut wide =
        Wide { sim, dice, history: History::default(), columns, used: BTreeSet::new(), tables: 1, row_cache };
    for _ in 0..lives {
        let engine = wide.open();
        (0..4).for_each(|_| wide.check(&engine));
        for _ in 0..wide.dice.below(250) {
            wide.step(&engine);
        }
        match wide.dice.below(3) {
            0 => wide.sim.kill(),
            1 => wide.sim.power_cut(),
            _ => {
                wide.power_cut_in_the_middle(&engine);
                wide.sim.power_cut();
            }
        }
    }
    let engine = wide.open();
    (0..8).for_each(|_| wide.check(&engine));
    wide.sim.trace()
}

#[test]
fn histories_of_a_wide_table() {
    each(10, |seed| {
        run(seed, 4, common::ROW_CACHES[(seed / 5 % 2) as usize]);
    });
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in seeds(2).take(2) {
        let row_cache = common::ROW_CACHES[0];
        assert_eq!(run(seed, 3, row_cache), run(seed, 3, row_cache), "seed {seed}");
    }
}
