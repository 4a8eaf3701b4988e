//! A read that passes tombstones where they stand gives what one gives that is given each of them:
//! the same rows, the same number of tombstones, whatever the sources, the slices and the
//! direction.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use env::Random;
use env::sim::{DATA, Sim, SimRandom};
use rows::live::{LiveRows, TombstoneLimits};
use rows::{
    Bound, Cell, ClusteringValues, DeletionTime, Liveness, Mutation, PartitionHead, PartitionRange, PartitionStream,
    PartitionUpdate, ReadCommand, ReadContext, ReadError, ReadMode, Row, Slice, Slices, Unfiltered,
};
use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use types::{CqlType, DecoratedKey};

use super::common::{self, delete_row, int};
use super::seeds::each;
use crate::{Engine, EngineOptions, schema_change};

const NOW: u32 = 1_700_000_000;
/// Clusterings of the first column.
const A: u64 = 120;
/// And of the second.
const B: u64 = 8;

fn table() -> TableMetadata {
    let spec =
        |name: &str, kind, position, ty, reversed| ColumnSpec { name: name.into(), kind, position, ty, reversed };
    let int = Arc::new(CqlType::Int);
    let map = CqlType::Map { key: Arc::clone(&int), value: int, frozen: false };
    let specs = vec![
        spec("k", ColumnKind::PartitionKey, 0, CqlType::Int, false),
        spec("a", ColumnKind::Clustering, 0, CqlType::Int, false),
        spec("b", ColumnKind::Clustering, 1, CqlType::Text, true),
        spec("v", ColumnKind::Regular, 0, CqlType::Int, false),
        spec("m", ColumnKind::Regular, 0, map, false),
    ];
    let mut params = TableParams::default();
    params.compression.insert("chunk_length_in_kb".into(), "1".into());
    let (kind, flags) = (TableKind::Regular, TableFlags::COMPOUND);
    TableMetadata::new(TableId([9; 16]), "passing", "t", kind, flags, params, specs, BTreeMap::new(), None)
}

fn value(number: u64) -> bytes::Bytes {
    int(number as i32)
}

fn clustering(a: u64, b: u64) -> ClusteringValues {
    [Some(value(a)), Some("x".repeat(b as usize).into())].into_iter().collect()
}

/// A clustering of both columns, or of the first alone.
fn prefix(dice: &SimRandom) -> ClusteringValues {
    let mut values = clustering(dice.below(A), dice.below(B));
    if dice.chance(30) {
        values.truncate(1);
    }
    values
}

fn slice(dice: &SimRandom) -> Slice {
    Slice { start: Bound::start(prefix(dice), dice.chance(50)), end: Bound::end(prefix(dice), dice.chance(50)) }
}

/// Passes at most so many at once.
struct Bounded {
    stream: Box<dyn PartitionStream>,
    most: u64,
    passed: u64,
}

impl PartitionStream for Bounded {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        self.stream.next_partition()
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        self.stream.next_unfiltered()
    }

    fn pass_tombstones(&mut self, most: u64) -> Result<u64, ReadError> {
        if self.most == 0 {
            return Ok(0);
        }
        let passed = self.stream.pass_tombstones(most.min(self.most))?;
        assert!(passed <= self.most, "{passed} were passed where {} were allowed", self.most);
        self.passed += passed;
        Ok(passed)
    }
}

struct Table {
    sim: Sim,
    dice: SimRandom,
    engine: Arc<Engine>,
    table: Arc<TableMetadata>,
    clock: i64,
}

impl Table {
    fn open(seed: u64) -> Self {
        let sim = Sim::new(seed);
        let options =
            EngineOptions { column_index_size: Some(1 << 10), ..EngineOptions::with_small_budgets(Path::new(DATA)) };
        let (engine, _) = crate::open(&sim.env(), options).expect("a sound disk");
        let keyspace = common::keyspace("passing", Some(Arc::new(table())));
        let changed = schema_change::change(&engine, |schema| Ok::<_, ()>(schema.with_keyspace(keyspace)));
        assert!(changed.is_ok_and(|changed| changed.is_ok()));
        let table = engine.schema().table("passing", "t").cloned().expect("it was made");
        Self { dice: sim.dice(), sim, engine, table, clock: 0 }
    }

    /// Mostly deletions of rows, or of ranges, or both, as `ranges` in a hundred says.
    fn write(&mut self, ranges: u64) {
        let dice = &self.dice;
        self.clock += 1;
        let at = if dice.chance(90) { self.clock } else { dice.below(self.clock as u64) as i64 };
        let deletion = DeletionTime::new(at, NOW - 5);
        let mut update = PartitionUpdate::new(Arc::clone(&self.table), DecoratedKey::new(int(1)));
        let mut row = Row::new(clustering(dice.below(A), dice.below(B)));
        let column = |name: &str| self.table.column_by_name(name).expect("a column").id;
        match dice.below(100) {
            0 if dice.chance(10) => update.deletion = deletion,
            1..=3 => row.liveness = Liveness::new(at),
            4..=5 => row.add_cell(Cell::tombstone(column("v"), at, NOW - 5)),
            6 => row.add_complex_deletion(column("m"), deletion),
            7 => {
                row.deletion = deletion;
                row.add_cell(Cell::live(column("v"), at + 1, int(5)));
            }
            dice if dice >= 100 - ranges => {
                let mut slice = slice(&self.dice);
                if slice.is_empty(&self.table.comparator) || self.dice.chance(80) {
                    // one of those that do not hide all others
                    let a = self.dice.below(A);
                    let first = [Some(value(a))].into_iter().collect();
                    slice = Slice { start: Bound::start(first, true), end: Bound::end(clustering(a, 0), false) };
                }
                update.range_deletions.push((slice, deletion));
            }
            _ => delete_row(&mut update, row.clustering.clone(), deletion),
        }
        if !row.is_empty() {
            update.add_row(row);
        }
        self.engine.apply(&[Mutation::of(update)]).expect("a sound disk takes a write");
    }

    fn flush(&self) {
        let store = self.engine.table(self.table.id).expect("open");
        self.sim.block_on(self.engine.flush(&store)).expect("a sound disk flushes");
    }

    /// Rows, tombstones, and how many of these were passed.
    fn read(&self, command: &ReadCommand, most: u64) -> (Vec<Row>, u64, u64) {
        let context = ReadContext::new(ReadMode::Background);
        let stream = self.engine.read(command, &context).expect("sound");
        let mut stream = Bounded { stream, most, passed: 0 };
        let limits = TombstoneLimits::NONE;
        let mut live = LiveRows::new(&mut stream, Arc::clone(&self.table), command.now, limits);
        let mut rows = Vec::new();
        while live.next_partition().expect("sound").is_some() {
            while let Some(row) = live.next_row().expect("sound") {
                rows.push(row);
            }
        }
        let tombstones = live.tombstones();
        (rows, tombstones, stream.passed)
    }

    /// How many tombstones were passed.
    fn check(&self, place: &str) -> u64 {
        let mut count = 0;
        for _ in 0..30 {
            let all = self.dice.chance(20);
            let some = |()| (0..=self.dice.below(2)).map(|_| slice(&self.dice)).collect();
            let slices = if all { Slices::all() } else { Slices::normalized(some(()), &self.table.comparator) };
            let range = PartitionRange::Key(DecoratedKey::new(int(1)));
            let whole = ReadCommand::whole(&self.table, range);
            let command = ReadCommand { slices, reversed: self.dice.chance(50), now: NOW, ..whole };
            let (rows, tombstones, _) = self.read(&command, 0);
            for most in [1, 1 + self.dice.below(300), u64::MAX] {
                let (found, counted, passed) = self.read(&command, most);
                let (seed, slices, reversed) = (self.sim.seed(), &command.slices, command.reversed);
                assert_eq!(found, rows, "seed {seed}, {place}, {most} at once, reversed {reversed}: {slices:?}");
                assert_eq!(
                    counted, tombstones,
                    "seed {seed}, {place}, {most} at once, reversed {reversed}: {slices:?}"
                );
                count += passed;
            }
        }
        count
    }
}

#[test]
fn tombstones_that_are_passed_count_as_those_that_are_given() {
    each(12, |seed| {
        let mut table = Table::open(seed);
        let ranges = [0, 10, 50, 92][(seed % 4) as usize];
        let write = |table: &mut Table| (0..1_200).for_each(|_| table.write(ranges));
        write(&mut table);
        assert!(table.check("memtable") > 0);
        table.flush();
        assert!(table.check("SSTable") > 0);
        write(&mut table);
        table.check("both");
        table.flush();
        table.check("two SSTables");
    });
}
