//! Random histories over many lives of a machine.
//!
//! Checked: after every crash the engine shows all acknowledged writes and of those under way at
//! the crash some prefix, nothing else; reads by partition, slice and range, forwards and reversed,
//! equal the twin's; rows with a TTL go when it is over; a truncated table is empty, and so is one
//! that was dropped and created again. Not checked here: purging (gc_grace is never over; `purging`
//! has that).

mod damage;
mod faults;
mod sources;
mod whole_table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use env::Random;
use env::sim::{DATA, Sim, SimRandom};
use rows::command::RingBound;
use rows::live::{LiveRows, TombstoneLimits};
use rows::{
    Bound, Cell, ColumnData, ColumnFilter, DataLimits, DeletionTime, Liveness, Mutation, PartitionRange,
    PartitionUpdate, ReadCommand, ReadContext, ReadError, ReadMode, Row, Slice, Slices,
};
use schema::table::ColumnSpec;
use schema::{ColumnKind, KeyspaceMetadata, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use types::{CqlType, DecoratedKey};

use super::common::{self, delete_range, delete_row, die, int, number};
use super::twin::{self, Op, Partition};
use crate::{Engine, EngineOptions, StorageError, commitlog, schema_change};

const PARTITIONS: i32 = 6;
const CLUSTERINGS: i32 = 60;

fn options(dice: &SimRandom, row_cache: usize) -> EngineOptions {
    EngineOptions {
        commitlog: commitlog::Options { segment_size: 64 << 10, total_space: 1 << 20, ..commitlog::Options::default() },
        shards: 1 << dice.below(4),
        memtable_bytes: 1 << 20,
        chunk_cache_bytes: 64 << 10,
        row_cache_bytes: row_cache,
        column_index_size: Some(256),
        tombstone_failure_threshold: u64::MAX,
        tombstone_warn_threshold: u64::MAX,
        ..EngineOptions::with_small_budgets(Path::new(DATA))
    }
}

fn table(seed: u64) -> Arc<TableMetadata> {
    table_of(TableId([9; 16]), "model", seed)
}

fn table_of(id: TableId, keyspace: &str, seed: u64) -> Arc<TableMetadata> {
    let spec =
        |name: &str, kind| ColumnSpec { name: name.into(), kind, position: 0, ty: CqlType::Int, reversed: false };
    let specs = vec![
        spec("k", ColumnKind::PartitionKey),
        spec("c", ColumnKind::Clustering),
        spec("s", ColumnKind::Static),
        spec("v", ColumnKind::Regular),
    ];
    let mut params = TableParams { caching: common::caching(seed), ..TableParams::default() };
    params.compression.insert("chunk_length_in_kb".into(), "1".into());
    let (kind, flags) = (TableKind::Regular, TableFlags::COMPOUND);
    Arc::new(TableMetadata::new(id, keyspace, "t", kind, flags, params, specs, BTreeMap::new(), None))
}

fn keyspace(seed: u64) -> KeyspaceMetadata {
    common::keyspace("model", Some(table(seed)))
}

fn key(k: i32) -> DecoratedKey {
    DecoratedKey::new(int(k))
}

/// Key, static value, and rows of clustering and value.
type ReadPartition = (i32, Option<i32>, Vec<(i32, i32)>);

struct Model {
    sim: Sim,
    dice: SimRandom,
    /// Histories that agree with all that was seen. More than one where a write that nobody waited
    /// for may have survived a crash without showing.
    histories: Vec<Vec<Op>>,
    clock: i64,
    /// SSTables that wait outside of the table.
    sources: Vec<sources::Source>,
    /// Directories of SSTables so far.
    tags: u64,
    /// How often the table was created again.
    tables: u8,
}

impl Model {
    fn new(seed: u64) -> Self {
        let sim = Sim::new(seed);
        let dice = sim.dice();
        let clock = 1_700_000_000_000_000;
        Self { sim, dice, histories: vec![Vec::new()], clock, sources: Vec::new(), tags: 0, tables: 0 }
    }

    fn open(&self) -> Result<Arc<Engine>, StorageError> {
        let (engine, _) =
            crate::open(&self.sim.env(), options(&self.dice, common::ROW_CACHES[(self.sim.seed() / 5 % 2) as usize]))?;
        // also where the last life ended between DROP and CREATE
        if !self.is_there(&engine) {
            let (seed, id) = (self.sim.seed(), TableId([if self.tables == 0 { 9 } else { 100 + self.tables }; 16]));
            let own = common::keyspace("model", Some(table_of(id, "model", seed)));
            let both = |schema: &schema::Schema| schema.with_keyspace(own).with_keyspace(sources::keyspace(seed));
            let changed = schema_change::change(&engine, |schema| Ok::<_, ()>(both(schema)))?;
            let position = changed.expect("the change is not refused").position.expect("rows were written");
            self.sim.block_on(engine.log.wait_durable(position))?;
        }
        Ok(engine)
    }

    fn table(&self, engine: &Engine) -> Arc<TableMetadata> {
        engine.schema().table("model", "t").cloned().expect("the schema survives everything")
    }

    fn random_op(&mut self) -> Op {
        let dice = &self.dice;
        let k = dice.below(PARTITIONS as u64) as i32;
        let c = dice.below(CLUSTERINGS as u64) as i32;
        self.clock += 1;
        // mostly now, sometimes long ago
        let at = if dice.chance(90) { self.clock } else { dice.below(self.clock as u64) as i64 };
        match dice.below(22) {
            20..=21 => {
                let ends = self.sim.env().clock.now_seconds() + 1 + dice.below(200) as u32;
                Op::Expiring { k, c, v: dice.below(1000) as i32, at: self.clock, ends }
            }
            0 => Op::DeletePartition { k, at },
            1..=3 => Op::DeleteRange { k, from: c, to: c + dice.below(20) as i32, at },
            4..=5 => Op::DeleteRow { k, c, at },
            6 => Op::Static { k, s: dice.below(1000) as i32, at },
            _ => Op::Insert { k, c, v: dice.below(1000) as i32, at },
        }
    }

    fn mutation(&self, table: &Arc<TableMetadata>, op: &Op, now: u32) -> Mutation {
        let mut update = PartitionUpdate::new(Arc::clone(table), key(op.k()));
        let column = |name: &str| table.column_by_name(name).expect("the model's column").id;
        let clustering = |c: i32| [Some(int(c))].into_iter().collect();
        match op {
            Op::Insert { c, v, at, .. } => {
                let mut row = Row::new(clustering(*c));
                row.liveness = Liveness::new(*at);
                row.add_cell(Cell::live(column("v"), *at, int(*v)));
                update.add_row(row);
            }
            Op::Expiring { c, v, at, ends, .. } => {
                // how long a row has to live is not more than what is left of it
                let ttl = ends.saturating_sub(now).max(1);
                let mut row = Row::new(clustering(*c));
                row.liveness = Liveness::expiring(*at, ttl, *ends);
                row.add_cell(Cell { ttl, local_deletion_time: *ends, ..Cell::live(column("v"), *at, int(*v)) });
                update.add_row(row);
            }
            Op::Truncate | Op::PerhapsTruncate => unreachable!("no mutation: Model::truncate does it"),
            Op::Static { s, at, .. } => {
                let mut row = Row::new(rows::ClusteringValues::new());
                row.add_cell(Cell::live(column("s"), *at, int(*s)));
                update.add_static(row);
            }
            Op::DeleteRow { c, at, .. } => {
                delete_row(&mut update, clustering(*c), DeletionTime::new(*at, now));
            }
            Op::DeleteRange { from, to, at, .. } => {
                delete_range(&mut update, [clustering(*from), clustering(*to)], DeletionTime::new(*at, now));
            }
            Op::DeletePartition { at, .. } => update.deletion = DeletionTime::new(*at, now),
        }
        Mutation::of(update)
    }

    /// Writes and waits; false: the machine died or the disk failed.
    fn write(&mut self, engine: &Arc<Engine>, op: Op) -> bool {
        let mutation = self.mutation(&self.table(engine), &op, engine.env.clock.now_seconds());
        self.sim.block_on(engine.admit());
        let Ok(applied) = engine.apply(&[mutation]) else { return false };
        let position = applied.position.expect("the keyspace is durable");
        let durable = self.sim.block_on(engine.log.wait_durable(position)).is_ok();
        if durable {
            self.histories.iter_mut().for_each(|history| history.push(op.clone()));
        }
        durable
    }

    fn command(&self, engine: &Engine, range: PartitionRange, slices: Slices, reversed: bool) -> ReadCommand {
        let (columns, limits) = (ColumnFilter::All, DataLimits::NONE);
        let now = engine.env.clock.now_seconds();
        ReadCommand { table: self.table(engine), range, slices, reversed, columns, now, limits, indexes: Vec::new() }
    }

    /// Partitions of a read, rows in the order in which they came.
    fn read(&self, engine: &Engine, command: &ReadCommand) -> Result<Vec<ReadPartition>, ReadError> {
        let context = ReadContext::new(ReadMode::Background);
        let mut stream = engine.read(command, &context)?;
        let mut live = LiveRows::new(stream.as_mut(), Arc::clone(&command.table), command.now, TombstoneLimits::NONE);
        let mut partitions = Vec::new();
        while let Some(partition) = live.next_partition()? {
            let value = |row: &Row| match row.columns.as_slice() {
                [ColumnData::Simple(cell)] => number(&cell.value),
                other => panic!("one cell is expected, not {other:?}"),
            };
            let mut rows = Vec::new();
            while let Some(row) = live.next_row()? {
                rows.push((number(row.clustering[0].as_ref().expect("a clustering")), value(&row)));
            }
            partitions.push((number(&partition.key.key), partition.static_row.as_ref().map(value), rows));
        }
        partitions.retain(|(_, s, rows)| s.is_some() || !rows.is_empty());
        Ok(partitions)
    }

    /// The whole content, read as one range.
    fn content(&self, engine: &Engine) -> BTreeMap<i32, Partition> {
        let command = self.command(engine, PartitionRange::all(), Slices::all(), false);
        let partitions = self.read(engine, &command).expect("a sound disk reads");
        let content = partitions.into_iter().map(|(k, s, rows)| {
            assert!(rows.is_sorted(), "rows come in order");
            (k, Partition { s, rows: rows.into_iter().collect() })
        });
        content.collect()
    }

    fn now(&self) -> u32 {
        self.sim.env().clock.now_seconds()
    }

    fn expected(ops: &[Op], now: u32) -> BTreeMap<i32, Partition> {
        let all = (0..PARTITIONS).map(|k| (k, twin::partition(k, ops.iter(), now)));
        all.filter(|(_, partition)| !partition.is_empty()).collect()
    }

    fn check_slice(&mut self, engine: &Engine) {
        let k = self.dice.below(PARTITIONS as u64) as i32;
        let (a, b) = (self.dice.below(CLUSTERINGS as u64) as i32, self.dice.below(CLUSTERINGS as u64) as i32);
        let (from, to) = (a.min(b), a.max(b));
        let clustering = |c: i32| [Some(int(c))].into_iter().collect();
        let slice = Slice { start: Bound::start(clustering(from), true), end: Bound::end(clustering(to), false) };
        let slices = Slices::normalized(vec![slice], &self.table(engine).comparator);
        let reversed = self.dice.chance(50);
        let found = self
            .read(engine, &self.command(engine, PartitionRange::Key(key(k)), slices, reversed))
            .expect("a sound disk reads");
        let now = self.now();
        let expected = |history: &Vec<Op>| {
            let partition = twin::partition(k, history.iter(), now);
            let mut rows: Vec<_> = partition.rows.range(from..to).map(|(c, v)| (*c, *v)).collect();
            if reversed {
                rows.reverse();
            }
            if partition.s.is_none() && rows.is_empty() { vec![] } else { vec![(k, partition.s, rows)] }
        };
        let one = expected(&self.histories[0]);
        self.histories.retain(|history| expected(history) == found);
        let seed = self.sim.seed();
        assert!(
            !self.histories.is_empty(),
            "seed {seed} k {k} [{from}, {to}) reversed {reversed}: {found:?} is not {one:?}"
        );
    }

    fn check_range(&mut self, engine: &Engine) {
        let mut keys: Vec<_> = (0..PARTITIONS).map(|k| (key(k), k)).collect();
        keys.sort();
        let from = keys[self.dice.below(PARTITIONS as u64) as usize].0.clone();
        let range = PartitionRange::Range {
            start: RingBound::Key { key: from.clone(), inclusive: false },
            end: RingBound::Open,
        };
        let found = self.read(engine, &self.command(engine, range, Slices::all(), false)).expect("a sound disk reads");
        let found: Vec<_> = found.into_iter().map(|(k, ..)| k).collect();
        let now = self.now();
        let expected = |history: &Vec<Op>| {
            let there = Self::expected(history, now);
            keys.iter().filter(|(key, k)| *key > from && there.contains_key(k)).map(|(_, k)| *k).collect::<Vec<_>>()
        };
        self.histories.retain(|history| expected(history) == found);
        assert!(!self.histories.is_empty(), "seed {}", self.sim.seed());
    }

    /// One life: writes, flushes, compactions, reads, then some writes that nobody waits for.
    fn live(&mut self, engine: &Arc<Engine>) -> Vec<Op> {
        for _ in 0..self.dice.below(120) {
            match self.dice.below(36) {
                30 => self.sim.advance(std::time::Duration::from_secs(self.dice.below(60))),
                31..=32 => {
                    self.truncate(engine).expect("a sound disk truncates");
                    self.forget();
                }
                33 => {
                    self.create_again(engine).expect("a sound disk drops and creates");
                    self.forget();
                }
                34..=35 => self.alter(engine).expect("a sound disk alters"),
                0 => {
                    let store = self.store(engine);
                    let _ = self.sim.block_on(engine.flush(&store));
                }
                1 => {
                    let store = self.store(engine);
                    let _ = self.sim.block_on(engine.compact(&store));
                }
                2 => drop(self.sim.run_until_idle()),
                3..=4 => self.check_slice(engine),
                5 => self.check_range(engine),
                6 => self.prepare_source(engine),
                7 => self.import(engine),
                8 => self.refresh(engine),
                9 => self.rewrite(engine).expect("a sound disk takes rewrites"),
                10 => self.verify(engine).expect("what was written is sound"),
                _ => {
                    let op = self.random_op();
                    assert!(self.write(engine, op), "seed {}: a write failed on a sound disk", self.sim.seed());
                }
            }
        }
        let mut under_way = Vec::new();
        for _ in 0..self.dice.below(4) {
            // mutations of one step lie side by side in the log, as those of a logged batch do: a
            // crash leaves a beginning of them
            let ops: Vec<Op> = (0..1 + self.dice.below(3)).map(|_| self.random_op()).collect();
            let (table, now) = (self.table(engine), engine.env.clock.now_seconds());
            let mutations: Vec<Mutation> = ops.iter().map(|op| self.mutation(&table, op, now)).collect();
            engine.apply(&mutations).expect("a sound disk takes writes");
            under_way.extend(ops);
            for _ in 0..self.dice.below(3) {
                self.sim.step();
            }
        }
        under_way
    }

    /// The content after a crash is that of the acknowledged writes and a prefix of those under
    /// way.
    fn check_after_crash(&mut self, engine: &Engine, under_way: Vec<Op>) {
        let (content, now) = (self.content(engine), self.now());
        let mut agreeing = Vec::new();
        for history in &self.histories {
            for survivors in 0..=under_way.len() {
                let mut ops = history.clone();
                ops.extend_from_slice(&under_way[..survivors]);
                if Self::expected(&ops, now) == content {
                    agreeing.push(ops);
                }
            }
        }
        let expected = Self::expected(&self.histories[0], now);
        let seed = self.sim.seed();
        assert!(!agreeing.is_empty(), "seed {seed}: {content:?} is not {expected:?} (under way: {under_way:?})");
        self.histories = agreeing;
    }
}

fn run(seed: u64, lives: usize) -> (u64, u64) {
    let mut model = Model::new(seed);
    let mut under_way = Vec::new();
    for _ in 0..lives {
        let engine = model.open().expect("a sound disk opens");
        model.check_after_crash(&engine, std::mem::take(&mut under_way));
        under_way = model.live(&engine);
        drop(engine);
        die(&model.sim, &model.dice);
    }
    let engine = model.open().expect("a sound disk opens");
    model.check_after_crash(&engine, under_way);
    model.sim.trace()
}

#[test]
fn histories_with_kills_and_power_cuts() {
    super::seeds::each(40, |seed| {
        run(seed, 4);
    });
}
