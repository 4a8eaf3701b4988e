//! The cost of tombstones: N of them in one partition, taken in, read through, and read past.
//!
//! For each kind and order: the time that the first and the last tenth of the deletions take to be
//! taken in; then the time per tombstone of a read that returns the one live row behind them all,
//! forward and reversed, from the memtable, from an SSTable, and from both (every second tombstone
//! in each); and the time of a slice that holds ten of them.
//!
//! `cargo run --release -p bench-parts --example tombstones -- [KIND|all] [ORDER|all] [N]...`
//!
//! Instructions: run it under callgrind with `--toggle-collect='*read_through*'`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rows::live::{LiveRows, TombstoneLimits};
use rows::{
    Bound, Cell, ClusteringValues, ColumnFilter, DataLimits, DeletionTime, Liveness, Mutation, PartitionRange,
    PartitionUpdate, ReadCommand, ReadContext, ReadMode, Row, Slice, Slices,
};
use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use storage::{Engine, EngineOptions, commitlog};
use types::{CqlType, DecoratedKey};

const KINDS: [&str; 7] = ["row", "range", "overlapping", "adjacent", "cell", "complex", "expired"];
const ORDERS: [&str; 3] = ["sorted", "backwards", "random"];
/// Clusterings between two tombstones.
const STEP: u64 = 10;
/// Reads of which the fastest counts.
const READS: usize = 5;

fn table() -> Arc<TableMetadata> {
    let spec = |name: &str, kind, ty| ColumnSpec { name: name.into(), kind, position: 0, ty, reversed: false };
    let map = CqlType::Map { key: Arc::new(CqlType::Int), value: Arc::new(CqlType::Int), frozen: false };
    let specs = vec![
        spec("k", ColumnKind::PartitionKey, CqlType::Int),
        spec("c", ColumnKind::Clustering, CqlType::BigInt),
        spec("m", ColumnKind::Regular, map),
        spec("v", ColumnKind::Regular, CqlType::Blob),
    ];
    let (id, params) = (TableId([9; 16]), TableParams::default());
    let (kind, flags) = (TableKind::Regular, TableFlags::COMPOUND);
    Arc::new(TableMetadata::new(id, "bench", "t", kind, flags, params, specs, BTreeMap::new(), None))
}

fn clustering(c: u64) -> ClusteringValues {
    [Some(Bytes::copy_from_slice(&c.to_be_bytes()))].into_iter().collect()
}

fn partition(number: i32) -> DecoratedKey {
    DecoratedKey::new(Bytes::copy_from_slice(&number.to_be_bytes()))
}

/// Where the read finds its live row.
#[derive(Clone, Copy)]
struct Ends {
    first: u64,
    last: u64,
}

struct Bench {
    env: env::Env,
    engine: Arc<Engine>,
    table: Arc<TableMetadata>,
    runtime: tokio::runtime::Runtime,
    now: i64,
    /// The partition of this run.
    key: DecoratedKey,
}

impl Bench {
    fn open(directory: &Path) -> Self {
        let env = env::real::env();
        let _ = env.disk.remove_dir_all(directory);
        let sync = commitlog::SyncMode::Periodic(Duration::from_secs(10));
        let options = EngineOptions {
            commitlog: commitlog::Options { sync, ..commitlog::Options::default() },
            shards: 8,
            memtable_bytes: 4 << 30,
            chunk_cache_bytes: 512 << 20,
            ..EngineOptions::with_small_budgets(directory)
        };
        let engine = bench_parts::open(&env, options, [table()]);
        let table = engine.schema().table("bench", "t").cloned().expect("it was just made");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let now = env.clock.now_micros();
        Self { env, engine, table, runtime, now, key: partition(0) }
    }

    fn apply(&self, update: PartitionUpdate) {
        if !self.engine.memory.admits_at_once() {
            self.runtime.block_on(self.engine.admit());
        }
        let mutation = [Mutation::of(update)];
        while let Err(error) = self.engine.apply(&mutation) {
            assert!(matches!(error, storage::StorageError::Busy), "the bench's disk is sound: {error}");
            self.runtime.block_on(self.engine.log.wait_for_room());
        }
    }

    fn live_row(&self, c: u64) {
        let mut update = PartitionUpdate::new(Arc::clone(&self.table), self.key.clone());
        let mut row = Row::new(clustering(c));
        row.liveness = Liveness::new(self.now);
        row.add_cell(Cell::live(self.table.column_by_name("v").expect("v").id, self.now, Bytes::from_static(b"live")));
        update.add_row(row);
        self.apply(update);
    }

    /// The `index`th deletion of a kind.
    fn delete(&self, kind: &str, index: u64, order: i64) {
        let mut update = PartitionUpdate::new(Arc::clone(&self.table), self.key.clone());
        let (at, seconds) = (self.now + order, u32::try_from(self.now / 1_000_000).expect("before 2106"));
        let deletion = DeletionTime::new(at, seconds);
        let c = (index + 1) * STEP;
        let range =
            |to: u64| Slice { start: Bound::start(clustering(c), true), end: Bound::end(clustering(to), false) };
        let column = |name: &str| self.table.column_by_name(name).expect("a column").id;
        let mut row = Row::new(clustering(c));
        match kind {
            "range" => update.range_deletions.push((range(c + STEP / 2), deletion)),
            "overlapping" => update.range_deletions.push((range(c + STEP * 7 / 2), deletion)),
            "adjacent" => update.range_deletions.push((range(c + STEP), deletion)),
            "row" => row.deletion = deletion,
            "cell" => row.add_cell(Cell::tombstone(column("v"), at, seconds)),
            "complex" => row.add_complex_deletion(column("m"), deletion),
            "expired" => {
                row.liveness = Liveness::expiring(at, 1, seconds - 10);
                let cell = Cell::live(column("v"), at, Bytes::from_static(b"dead"));
                row.add_cell(Cell { ttl: 1, local_deletion_time: seconds - 10, ..cell });
            }
            kind => panic!("kinds are {KINDS:?}, not {kind}"),
        }
        if update.range_deletions.is_empty() {
            update.add_row(row);
        }
        self.apply(update);
    }

    fn read_through(&self, slice: Slice, reversed: bool) -> (u64, u64) {
        let command = ReadCommand {
            table: Arc::clone(&self.table),
            range: PartitionRange::Key(self.key.clone()),
            slices: Slices([slice].into()),
            reversed,
            columns: ColumnFilter::All,
            now: u32::try_from(self.now / 1_000_000).expect("before 2106"),
            limits: DataLimits::NONE,
            indexes: Vec::new(),
        };
        let context = ReadContext::new(ReadMode::Background);
        let mut stream = self.engine.read(&command, &context).expect("the bench's disk is sound");
        let mut live = LiveRows::new(stream.as_mut(), Arc::clone(&self.table), command.now, TombstoneLimits::NONE);
        let mut rows = 0;
        while rows == 0 && live.next_partition().expect("sound").is_some() {
            rows += u64::from(live.next_row().expect("sound").is_some());
        }
        (rows, live.tombstones())
    }

    /// Nanoseconds of the fastest read.
    fn timed(&self, slice: &Slice, reversed: bool) -> (f64, u64, u64) {
        let mut best = (f64::MAX, 0, 0);
        for _ in 0..READS {
            let start = self.env.now();
            let (rows, tombstones) = self.read_through(slice.clone(), reversed);
            let nanos = self.env.elapsed(start).as_secs_f64() * 1e9;
            best = (best.0.min(nanos), rows, tombstones);
        }
        best
    }

    fn reads(&self, place: &str, count: u64, ends: Ends) {
        let from = |c: u64| Bound::start(clustering(c), true);
        let to = |c: u64| Bound::end(clustering(c), true);
        let (forward, rows, passed) = self.timed(&Slice { start: from(ends.first + 1), end: to(ends.last) }, false);
        assert_eq!(rows, 1);
        let (reversed, rows, _) = self.timed(&Slice { start: from(ends.first), end: to(ends.last - 1) }, true);
        assert_eq!(rows, 1);
        let middle = (count / 2).max(1) * STEP;
        let ten = Slice { start: from(middle), end: to(middle + 10 * STEP - 1) };
        let (slice, _, of_slice) = self.timed(&ten, false);
        let (back, ..) = self.timed(&ten, true);
        let each = count as f64;
        println!(
            "    {place:9} forward {:7.1} ns each, reversed {:7.1} ({:4.2}); {passed} passed; slice of 10: {:6.1} us, reversed {:6.1}, {of_slice} passed",
            forward / each,
            reversed / each,
            reversed / forward,
            slice / 1e3,
            back / 1e3,
        );
    }

    fn flush(&self) {
        let store = self.engine.table(self.table.id).expect("open");
        self.runtime.block_on(self.engine.flush(&store)).expect("the bench's disk is sound");
    }

    fn run(&self, kind: &str, order: &str, count: u64) {
        let mut indexes: Vec<u64> = (0..count).collect();
        let mut dice = 1u64;
        let mut roll = move |sides: u64| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (dice >> 33) % sides
        };
        match order {
            "backwards" => indexes.reverse(),
            "random" => (1..count).rev().for_each(|last| indexes.swap(last as usize, roll(last + 1) as usize)),
            _ => {}
        }
        let ends = Ends { first: 1, last: (count + 10) * STEP };
        self.live_row(ends.first);
        self.live_row(ends.last);
        let tenth = (count as usize / 10).max(1);
        let mut tenths = Vec::new();
        for (number, chunk) in indexes.chunks(tenth).enumerate() {
            let start = self.env.now();
            for (within, index) in chunk.iter().enumerate() {
                self.delete(kind, *index, (number * tenth + within) as i64);
            }
            tenths.push(self.env.elapsed(start).as_secs_f64() * 1e9 / chunk.len() as f64);
        }
        let (used, _) = self.engine.memory.usage();
        let text: Vec<String> = tenths.iter().map(|nanos| format!("{nanos:.0}")).collect();
        println!(
            "{kind} {order} {count}: taken in, ns each by tenths: {}; {} bytes each",
            text.join(" "),
            used as u64 / count
        );
        self.reads("memtable", count, ends);
        let start = self.env.now();
        self.flush();
        println!("    flush {:.3} s", self.env.elapsed(start).as_secs_f64());
        self.reads("SSTable", count, ends);
        // every second one again, so that both have something to say at each place
        for index in indexes.iter().filter(|index| *index % 2 == 0) {
            self.delete(kind, *index, (count + index) as i64);
        }
        self.reads("both", count, ends);
        self.flush();
        self.reads("2 SSTables", count, ends);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |at: usize, all: &[&'static str]| -> Vec<&'static str> {
        let word = arguments.get(at).map_or("all", String::as_str);
        all.iter().copied().filter(|name| word == "all" || *name == word).collect()
    };
    let mut counts: Vec<u64> = arguments.iter().skip(2).filter_map(|text| text.parse().ok()).collect();
    if counts.is_empty() {
        counts = vec![10_000, 100_000];
    }
    let directory = std::env::temp_dir().join("helenus-tombstones-bench");
    let mut bench = Bench::open(&directory);
    let mut runs = 0;
    for kind in wanted(0, &KINDS) {
        for order in wanted(1, &ORDERS) {
            for count in &counts {
                runs += 1;
                bench.key = partition(runs);
                bench.run(kind, order, *count);
            }
        }
    }
    let _ = bench.env.disk.remove_dir_all(&directory);
}
