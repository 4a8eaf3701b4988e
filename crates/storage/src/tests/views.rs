//! Materialized views over many lives of a machine: whatever was written, deleted, has expired, was
//! flushed, compacted, truncated or replayed, each view holds what its base table holds, with the
//! timestamps and times to live of the base.
//!
//! The naive twin is the definition of a view: all live rows of the base, each as an entry. Writes
//! have few timestamps, so that equal ones and older ones are the rule. A writer is alone, as the
//! locks of `cluster::replica::views` make it. Not drawn, since compactions decide there what any
//! table holds: histories longer than gc_grace, and a second write with the timestamp of a cell
//! that has expired (a compaction makes a tombstone of that cell, which wins).

use std::cell::Cell as Counter;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use env::Random;
use env::sim::{DATA, Sim, SimRandom};
use rows::live::{LiveRows, TombstoneLimits};
use rows::views::ViewFilter;
use rows::{
    Cell, ColumnData, DeletionTime, Liveness, Mutation, PartitionRange, PartitionUpdate, ReadCommand, ReadContext,
    ReadMode, Row,
};
use schema::table::ColumnSpec;
use schema::{
    ColumnKind, KeyspaceMetadata, Schema, TableFlags, TableId, TableKind, TableMetadata, TableParams, ViewDefinition,
};
use types::{CqlType, DecoratedKey};

use super::common::{self, delete_range, delete_row, die, int};
use crate::materialized::{self, ViewChange};
use crate::truncate::truncate_together;
use crate::{Engine, EngineOptions, StorageError, commitlog, schema_change};

const BASE: TableId = TableId([7; 16]);
const KEYS: u64 = 2;
const CLUSTERINGS: u64 = 4;
const VALUES: u64 = 3;
/// Writes draw their timestamps from so many.
const TIMESTAMPS: u64 = 40;
/// Between two of them. Writes with a TTL have timestamps in between.
const STEP: i64 = 1_000_000;

type Names = &'static [&'static str];

/// Name, partition key, clustering, other columns.
const VIEWS: [(&str, Names, Names, Names); 5] = [
    // a regular column of the base in the key, all columns
    ("by_v", &["v"], &["c", "k"], &["w", "x", "m"]),
    // the same, columns left out
    ("by_w", &["k", "w"], &["c"], &["x"]),
    // the key of the base in another order, all columns
    ("whole", &["c"], &["k"], &["v", "w", "x", "m"]),
    // the same, columns left out: they alone may keep a row alive
    ("part", &["c"], &["k"], &["w"]),
    // the same, with a WHERE
    ("some", &["k"], &["c"], &["m"]),
];

/// `c > 1`, of the view `some`.
struct Where {
    above: Option<i32>,
}

impl ViewFilter for Where {
    fn selects(&self, _: &DecoratedKey, clustering: &[Option<Bytes>]) -> bool {
        let found = clustering.first().and_then(Option::as_ref).map(|value| common::number(value));
        self.above.is_none_or(|above| found.is_some_and(|c| c > above))
    }

    fn matches(&self, _: &DecoratedKey, _: &Row, _: u32) -> bool {
        true
    }
}

fn spec(name: &str, kind: ColumnKind, position: usize) -> ColumnSpec {
    let int = || Arc::new(CqlType::Int);
    let ty = match name {
        "m" => CqlType::Map { key: int(), value: int(), frozen: false },
        _ => CqlType::Int,
    };
    ColumnSpec { name: name.to_owned(), kind, position, ty, reversed: name == "c" && kind == ColumnKind::Clustering }
}

fn table(id: TableId, name: &str, kind: TableKind, specs: Vec<ColumnSpec>) -> TableMetadata {
    let (flags, params) = (TableFlags::COMPOUND, TableParams::default());
    TableMetadata::new(id, "ks", name, kind, flags, params, specs, BTreeMap::new(), None)
}

fn keyspace() -> KeyspaceMetadata {
    let regular = |name| spec(name, ColumnKind::Regular, 0);
    let mut specs = vec![spec("k", ColumnKind::PartitionKey, 0), spec("c", ColumnKind::Clustering, 0)];
    specs.extend(["v", "w", "x", "m"].map(regular));
    let base = table(BASE, "t", TableKind::Regular, specs);
    let mut keyspace = common::keyspace("ks", None);
    for (number, (name, partition, clustering, others)) in (1u8..).zip(VIEWS) {
        let of = |kind| move |(position, name): (usize, &&str)| spec(name, kind, position);
        let mut specs: Vec<_> = partition.iter().enumerate().map(of(ColumnKind::PartitionKey)).collect();
        specs.extend(clustering.iter().enumerate().map(of(ColumnKind::Clustering)));
        specs.extend(others.iter().map(|name| regular(name)));
        let mut view = table(TableId([100 + number; 16]), name, TableKind::View, specs);
        view.view = Some(ViewDefinition {
            base_id: BASE,
            base_name: "t".to_owned(),
            include_all_columns: others.len() == 4,
            where_clause: if name == "some" { "c > 1" } else { "" }.to_owned(),
            has_base_column_in_key: view.has_column_in_key_beyond(&base),
        });
        keyspace.tables.insert(name.to_owned(), Arc::new(view));
    }
    keyspace.tables.insert("t".to_owned(), Arc::new(base));
    keyspace
}

/// An entry: its cells by column and path, each with its timestamp, TTL and end.
type Cells = Vec<(String, Bytes, Bytes, i64, u32, u32)>;
type Entries = BTreeMap<(Bytes, Vec<Bytes>), Cells>;

struct Model {
    sim: Sim,
    dice: SimRandom,
    /// Writes with a TTL so far. Each has a timestamp of its own.
    expiring: Counter<i64>,
}

impl Model {
    fn options(&self) -> EngineOptions {
        EngineOptions {
            commitlog: commitlog::Options {
                segment_size: 64 << 10,
                total_space: 1 << 20,
                ..commitlog::Options::default()
            },
            shards: 1 << self.dice.below(3),
            memtable_bytes: 1 << 20,
            ..EngineOptions::with_small_budgets(Path::new(DATA))
        }
    }

    fn open(&self) -> Arc<Engine> {
        let (engine, _) = crate::open(&self.sim.env(), self.options()).expect("a sound disk opens");
        let maker = |_: &Arc<Schema>, _: &Arc<TableMetadata>, view: &TableMetadata| {
            let above = (view.name == "some").then_some(1);
            Ok(Arc::new(Where { above }) as Arc<dyn ViewFilter>)
        };
        engine.set_view_filters(Box::new(maker));
        if engine.schema().table("ks", "t").is_none() {
            let changed = schema_change::change(&engine, |schema| Ok::<_, ()>(schema.with_keyspace(keyspace())));
            let changed = changed.expect("a sound disk takes the change").expect("the change is not refused");
            let position = changed.position.expect("rows were written");
            self.sim.block_on(engine.log.wait_durable(position)).expect("a sound disk syncs");
        }
        engine
    }

    /// A timestamp right after `at` that no other write has.
    fn own_timestamp(&self, at: i64) -> i64 {
        self.expiring.set(self.expiring.get() + 1);
        assert!(self.expiring.get() < STEP, "a history has few writes");
        at + self.expiring.get()
    }

    fn cell(&self, engine: &Engine, column: schema::ColumnId, at: i64) -> Cell {
        let now = engine.env.clock.now_seconds();
        match self.dice.below(8) {
            0 | 1 => Cell::tombstone(column, at, now),
            2 | 3 => {
                let ttl = 1 + self.dice.below(20) as u32;
                let cell = Cell::live(column, self.own_timestamp(at), int(self.dice.below(VALUES) as i32));
                Cell { ttl, local_deletion_time: now + ttl, ..cell }
            }
            _ => Cell::live(column, at, int(self.dice.below(VALUES) as i32)),
        }
    }

    fn clustering(&self) -> rows::ClusteringValues {
        std::iter::once(Some(int(self.dice.below(CLUSTERINGS) as i32))).collect()
    }

    fn row(&self, engine: &Engine, table: &Arc<TableMetadata>, at: i64) -> Row {
        let mut row = Row::new(self.clustering());
        let now = engine.env.clock.now_seconds();
        let ttl = 1 + self.dice.below(20) as u32;
        match self.dice.below(4) {
            0 | 1 => row.liveness = Liveness::new(at),
            2 => row.liveness = Liveness::expiring(self.own_timestamp(at), ttl, now + ttl),
            _ => {}
        }
        let column = |name: &str| table.column_by_name(name).expect("the model's column").id;
        for name in ["v", "w", "x"] {
            if self.dice.chance(40) {
                row.add_cell(self.cell(engine, column(name), at));
            }
        }
        if self.dice.chance(20) {
            row.add_complex_deletion(column("m"), DeletionTime::new(at - 1, now));
        }
        for _ in 0..self.dice.below(3) {
            let cell = self.cell(engine, column("m"), at).at(int(self.dice.below(VALUES) as i32));
            row.add_complex_cell(table, cell);
        }
        row
    }

    fn timestamp(&self) -> i64 {
        STEP * (1 + self.dice.below(TIMESTAMPS) as i64)
    }

    fn update(&self, engine: &Engine) -> PartitionUpdate {
        let table = engine.table(BASE).expect("the table is open").table();
        let (now, at) = (engine.env.clock.now_seconds(), self.timestamp());
        let key = DecoratedKey::new(int(self.dice.below(KEYS) as i32));
        let mut update = PartitionUpdate::new(Arc::clone(&table), key);
        match self.dice.below(24) {
            0 => update.deletion = DeletionTime::new(at, now),
            1 | 2 => {
                delete_range(&mut update, [self.clustering(), self.clustering()], DeletionTime::new(at, now));
                if self.dice.chance(30) {
                    update.add_row(self.row(engine, &table, self.timestamp()));
                }
            }
            3..=5 => delete_row(&mut update, self.clustering(), DeletionTime::new(at, now)),
            _ => {
                for _ in 0..=self.dice.below(2) {
                    let row = self.row(engine, &table, at);
                    if !row.is_empty() {
                        update.add_row(row);
                    }
                }
            }
        }
        update
    }

    fn write(&self, engine: &Arc<Engine>) {
        let update = self.update(engine);
        if update.is_empty() {
            return;
        }
        self.sim.block_on(engine.admit());
        let (views, now) = (engine.views(), engine.env.clock.now_seconds());
        let (mutations, context) = ([Mutation::of(update)], ReadContext::new(ReadMode::Background));
        let mut changes = materialized::changes(engine, &views, &mutations, now, &context).expect("a sound disk reads");
        for change in &mut changes {
            materialized::settle(engine, change, now, &context).expect("a sound disk reads");
        }
        let mut group: Vec<Mutation> = changes.into_iter().flat_map(ViewChange::into_mutations).collect();
        group.extend(mutations);
        let applied = engine.apply_with_views(&group, views.number).expect("a sound disk takes writes");
        if self.dice.chance(30) {
            let position = applied.position.expect("the keyspace is durable");
            self.sim.block_on(engine.log.wait_durable(position)).expect("a sound disk syncs");
        }
    }

    fn truncate(&self, engine: &Arc<Engine>) -> Result<(), StorageError> {
        let views = VIEWS.map(|(name, ..)| engine.table_by_name("ks", name).expect("the view is open"));
        let base = engine.table(BASE).expect("the table is open");
        let stores: Vec<_> = std::iter::once(base).chain(views).collect();
        self.sim.block_on(truncate_together(engine, &stores, ()))
    }

    fn read(&self, engine: &Engine, name: &str) -> Vec<(DecoratedKey, Row)> {
        let store = engine.table_by_name("ks", name).expect("the table is open");
        let now = engine.env.clock.now_seconds();
        let command = ReadCommand { now, ..ReadCommand::whole(&store.table(), PartitionRange::all()) };
        let mut stream = engine.read(&command, &ReadContext::new(ReadMode::Background)).expect("a sound disk reads");
        let mut live = LiveRows::new(stream.as_mut(), store.table(), now, TombstoneLimits::NONE);
        let mut found = Vec::new();
        while let Some(partition) = live.next_partition().expect("a sound disk reads") {
            while let Some(row) = live.next_row().expect("a sound disk reads") {
                found.push((partition.key.clone(), row));
            }
        }
        found
    }

    /// Every view holds what its base holds.
    fn check(&self, engine: &Engine) {
        let base = self.read(engine, "t");
        let schema = engine.schema();
        let of_base = schema.table("ks", "t").expect("the table is there");
        for definition in VIEWS {
            let view = schema.table("ks", definition.0).expect("the view is there");
            let expected: Entries = base.iter().filter_map(|row| entry(of_base, row, definition)).collect();
            let rows = self.read(engine, definition.0);
            let found: Entries =
                rows.iter().map(|(key, row)| (place(key, row), cells(view, row, definition.3))).collect();
            assert_eq!(found, expected, "seed {} view {}", self.sim.seed(), definition.0);
        }
    }

    fn live(&self, engine: &Arc<Engine>) {
        let stores = || engine.tables().into_iter().filter(|store| store.table().keyspace == "ks");
        for _ in 0..self.dice.below(200) {
            match self.dice.below(60) {
                0 => stores().for_each(|store| drop(self.sim.block_on(engine.flush(&store)))),
                1 => stores().for_each(|store| drop(self.sim.block_on(engine.compact(&store)))),
                2 => {
                    let one = stores().nth(self.dice.below(VIEWS.len() as u64) as usize).expect("there are more");
                    let _ = self.sim.block_on(engine.flush(&one));
                }
                3 => {
                    let _ = self.sim.run_until_idle();
                }
                4 => {
                    let _ = self.sim.step();
                }
                5 => {
                    self.sim.advance(std::time::Duration::from_secs(self.dice.below(15)));
                }
                6 if self.dice.chance(20) => self.truncate(engine).expect("a sound disk truncates"),
                7..=20 => self.check(engine),
                _ => self.write(engine),
            }
        }
    }
}

fn place(key: &DecoratedKey, row: &Row) -> (Bytes, Vec<Bytes>) {
    (key.key.clone(), row.clustering.iter().flatten().cloned().collect())
}

fn cells(table: &TableMetadata, row: &Row, names: &[&str]) -> Cells {
    let mut found = Vec::new();
    for name in names {
        let id = table.column_by_name(name).expect("the model's column").id;
        let cells = match row.column(id) {
            None => &[],
            Some(ColumnData::Simple(cell)) => std::slice::from_ref(cell),
            Some(ColumnData::Complex(complex)) => complex.cells.as_slice(),
        };
        found.extend(cells.iter().map(|cell| {
            let path = cell.path.clone().unwrap_or_default();
            ((*name).to_owned(), path, cell.value.clone(), cell.timestamp, cell.ttl, cell.local_deletion_time)
        }));
    }
    found
}

/// The entry of a live row of the base; None: the view has none.
fn entry(
    base: &TableMetadata,
    (key, row): &(DecoratedKey, Row),
    (name, partition, clustering, others): (&str, Names, Names, Names),
) -> Option<((Bytes, Vec<Bytes>), Cells)> {
    let value = |name: &&str| match *name {
        "k" => Some(key.key.clone()),
        "c" => row.clustering.first().cloned().flatten(),
        other => match row.column(base.column_by_name(other)?.id)? {
            ColumnData::Simple(cell) => Some(cell.value.clone()),
            ColumnData::Complex(_) => None,
        },
    };
    if name == "some" && common::number(&value(&"c")?) <= 1 {
        return None;
    }
    let parts: Vec<Bytes> = partition.iter().map(value).collect::<Option<_>>()?;
    let key = match parts.as_slice() {
        [only] => only.clone(),
        parts => {
            let parts: Vec<&[u8]> = parts.iter().map(AsRef::as_ref).collect();
            types::composite::compose(&parts).expect("short").into()
        }
    };
    let clustering: Vec<Bytes> = clustering.iter().map(value).collect::<Option<_>>()?;
    Some(((key, clustering), cells(base, row, others)))
}

fn run(seed: u64, lives: usize) {
    let sim = Sim::new(seed);
    let dice = sim.dice();
    let model = Model { sim, dice, expiring: Counter::new(0) };
    for _ in 0..lives {
        let engine = model.open();
        model.check(&engine);
        model.live(&engine);
        drop(engine);
        die(&model.sim, &model.dice);
    }
    let engine = model.open();
    let _ = model.sim.run_until_idle();
    model.check(&engine);
}

#[test]
fn views_hold_what_their_bases_hold() {
    super::seeds::each(6, |seed| run(seed, 4));
}
