//! Bare cost of the engine, without protocol and CQL: writes into memtables and log, point reads
//! and slices from memtables and from SSTables. Prints CPU-bound rates; run it under `perf stat` or
//! callgrind for instructions.
//!
//! `cargo run --release -p bench-parts --example engine_bench -- [ROWS]`

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use rows::live::{LiveRows, TombstoneLimits};
use rows::{
    Cell, ColumnFilter, DataLimits, Liveness, Mutation, PartitionRange, PartitionUpdate, ReadCommand, ReadContext,
    ReadMode, Row, Slice, Slices,
};
use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use storage::{Engine, EngineOptions, commitlog};
use types::{CqlType, DecoratedKey};

fn table() -> Arc<TableMetadata> {
    let spec = |name: &str, kind, ty| ColumnSpec { name: name.into(), kind, position: 0, ty, reversed: false };
    let specs = vec![
        spec("k", ColumnKind::PartitionKey, CqlType::BigInt),
        spec("c", ColumnKind::Clustering, CqlType::Text),
        spec("v", ColumnKind::Regular, CqlType::Blob),
    ];
    let (id, params) = (TableId([9; 16]), TableParams::default());
    let (kind, flags) = (TableKind::Regular, TableFlags::COMPOUND);
    Arc::new(TableMetadata::new(id, "bench", "t", kind, flags, params, specs, BTreeMap::new(), None))
}

fn clustering(c: u64) -> rows::ClusteringValues {
    [Some(Bytes::from(format!("{c:010}")))].into_iter().collect()
}

fn key(k: u64) -> DecoratedKey {
    DecoratedKey::new(Bytes::copy_from_slice(&k.to_be_bytes()))
}

struct Bench {
    env: env::Env,
    engine: Arc<Engine>,
    table: Arc<TableMetadata>,
    runtime: tokio::runtime::Runtime,
}

impl Bench {
    fn timed(&self, name: &str, count: u64, mut work: impl FnMut(u64)) {
        let start = self.env.now();
        (0..count).for_each(&mut work);
        let seconds = self.env.elapsed(start).as_secs_f64();
        println!("{name:36} {:>12.0}/s {:>10.3} us each", count as f64 / seconds, seconds * 1e6 / count as f64);
    }

    fn write(&self, k: u64, c: u64) {
        let mut update = PartitionUpdate::new(Arc::clone(&self.table), key(k));
        let mut row = Row::new(clustering(c));
        let now = self.env.clock.now_micros();
        row.liveness = Liveness::new(now);
        row.add_cell(Cell::live(self.table.regulars[0].id, now, Bytes::from_static(b"abcdefghijklmnopqrstuvwxy")));
        update.add_row(row);
        if !self.engine.memory.admits_at_once() {
            self.runtime.block_on(self.engine.admit());
        }
        loop {
            match self.engine.apply(&[Mutation::of(update.clone())]) {
                Err(storage::StorageError::Busy) => self.runtime.block_on(self.engine.log.wait_for_room()),
                result => {
                    result.expect("the bench's disk is sound");
                    break;
                }
            }
        }
    }

    fn read(&self, range: PartitionRange, slices: Slices, reversed: bool, limit: u64) -> u64 {
        let command = ReadCommand {
            table: Arc::clone(&self.table),
            range,
            slices,
            reversed,
            columns: ColumnFilter::All,
            now: self.env.clock.now_seconds(),
            limits: DataLimits::NONE,
            indexes: Vec::new(),
        };
        let context = ReadContext::new(ReadMode::Background);
        let mut stream = self.engine.read(&command, &context).expect("the bench's disk is sound");
        let mut live = LiveRows::new(stream.as_mut(), Arc::clone(&self.table), command.now, TombstoneLimits::NONE);
        let mut rows = 0;
        while rows < limit && live.next_partition().expect("sound").is_some() {
            while rows < limit && live.next_row().expect("sound").is_some() {
                rows += 1;
            }
        }
        rows
    }

    fn reads(&self, what: &str, rows: u64) {
        let mut dice = 1u64;
        let mut roll = move |sides: u64| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (dice >> 33) % sides
        };
        let one = |c: u64| Slices::from(vec![Slice::of_prefix(clustering(c))]);
        let from = |c: u64| {
            Slices::from(vec![Slice { start: rows::Bound::start(clustering(c), true), end: rows::Bound::top() }])
        };
        self.timed(&format!("{what}: small partition"), 100_000, |_| {
            let k = 1 + roll(rows);
            assert_eq!(self.read(PartitionRange::Key(key(k)), Slices::all(), false, 10), 1);
        });
        self.timed(&format!("{what}: one row of the wide partition"), 100_000, |_| {
            let c = roll(rows);
            assert_eq!(self.read(PartitionRange::Key(key(0)), one(c), false, 10), 1);
        });
        self.timed(&format!("{what}: 100 rows from a random one"), 10_000, |_| {
            let c = roll(rows - 100);
            assert_eq!(self.read(PartitionRange::Key(key(0)), from(c), false, 100), 100);
        });
        self.timed(&format!("{what}: last 100 rows, reversed"), 10_000, |_| {
            assert_eq!(self.read(PartitionRange::Key(key(0)), Slices::all(), true, 100), 100);
        });
        let start = self.env.now();
        let scanned = self.read(PartitionRange::all(), Slices::all(), false, u64::MAX);
        let seconds = self.env.elapsed(start).as_secs_f64();
        println!("{:36} {:>12.0} rows/s", format!("{what}: scan"), scanned as f64 / seconds);
    }
}

fn main() {
    let rows: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(300_000);
    let directory = std::env::temp_dir().join("helenus-engine-bench");
    let env = env::real::env();
    let _ = env.disk.remove_dir_all(&directory);
    let options = EngineOptions {
        commitlog: commitlog::Options {
            sync: commitlog::SyncMode::Periodic(std::time::Duration::from_secs(10)),
            ..commitlog::Options::default()
        },
        shards: 8,
        memtable_bytes: 2 << 30,
        chunk_cache_bytes: 512 << 20,
        tombstone_failure_threshold: 100_000,
        tombstone_warn_threshold: 1000,
        ..EngineOptions::with_small_budgets(&directory)
    };
    let engine = bench_parts::open(&env, options, [table()]);
    let table = engine.schema().table("bench", "t").cloned().expect("it was just made");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let bench = Bench { env, engine, table, runtime };
    bench.timed("write: small partitions", rows, |index| bench.write(1 + index, 0));
    bench.timed("write: one wide partition", rows, |index| bench.write(0, index));
    let (used, _) = bench.engine.memory.usage();
    println!("{:36} {:>12.0} bytes each", "memtable: accounted", used as f64 / (2 * rows) as f64);
    bench.reads("memtable", rows);
    let store = bench.engine.table(bench.table.id).expect("open");
    let start = bench.env.now();
    bench.runtime.block_on(bench.engine.flush(&store)).expect("the bench's disk is sound");
    println!("{:36} {:>12.2} s", "flush", bench.env.elapsed(start).as_secs_f64());
    bench.reads("SSTable", rows);
    let _ = bench.env.disk.remove_dir_all(&directory);
}
