//! The cost of misses and scans: point reads with data three times the chunk cache and with all of
//! it in, the row cache, a scan from a file that the kernel does not have. CPU time and system
//! calls from the kernel's files; resident memory against the caches' own accounts.
//!
//! `cargo run --profile quick -p bench-parts --example cache_bench -- [PARTITIONS] [da|nb]`

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use env::Env;
use rows::{
    Cell, Liveness, Mutation, PartitionRange, PartitionUpdate, ReadCommand, ReadContext, ReadMode, ReadStats, Row,
};
use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use sstable::Version;
use storage::{Engine, EngineOptions, TableStore, commitlog, schema_change};
use types::{CqlType, DecoratedKey};

const VALUE_BYTES: u64 = 1000;
const READS: u64 = 100_000;

fn table() -> Arc<TableMetadata> {
    let spec = |name: &str, kind, ty| ColumnSpec { name: name.into(), kind, position: 0, ty, reversed: false };
    let specs =
        vec![spec("k", ColumnKind::PartitionKey, CqlType::BigInt), spec("v", ColumnKind::Regular, CqlType::Blob)];
    let caching = [("keys", "ALL"), ("rows_per_partition", "ALL")];
    let caching = caching.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let params = TableParams { caching, ..TableParams::default() };
    let (kind, flags) = (TableKind::Regular, TableFlags::COMPOUND);
    Arc::new(TableMetadata::new(TableId([9; 16]), "bench", "t", kind, flags, params, specs, BTreeMap::new(), None))
}

fn number(env: &Env, file: &str, line: &str) -> u64 {
    let text = env.disk.read_all(Path::new(file), 1 << 20).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let found = text.lines().find_map(|found| found.strip_prefix(line));
    found.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Microseconds of CPU of this process's threads.
fn cpu_micros(env: &Env) -> u64 {
    let text = env.disk.read_all(Path::new("/proc/self/schedstat"), 1 << 10).unwrap_or_default();
    String::from_utf8_lossy(&text).split_whitespace().next().and_then(|nanos| nanos.parse::<u64>().ok()).unwrap_or(0)
        / 1000
}

struct Bench {
    env: Env,
    engine: Arc<Engine>,
    store: Arc<TableStore>,
}

impl Bench {
    fn measured(&self, name: &str, unit: &str, count: f64, work: impl FnOnce()) {
        let (cpu, calls) = (cpu_micros(&self.env), number(&self.env, "/proc/self/io", "syscr:"));
        work();
        let cpu = cpu_micros(&self.env) - cpu;
        let calls = number(&self.env, "/proc/self/io", "syscr:") - calls;
        println!(
            "{name:44} {:>9.2} us CPU, {:>6.2} read calls for each {unit}",
            cpu as f64 / count,
            calls as f64 / count
        );
    }

    fn read(&self, range: PartitionRange) -> u64 {
        let context = ReadContext::new(ReadMode::Background);
        let command = ReadCommand::whole(&self.store.table(), range);
        let mut stream = self.engine.read(&command, &context).expect("the bench's disk is sound");
        let mut rows = 0;
        while stream.next_partition().expect("sound").is_some() {
            while stream.next_unfiltered().expect("sound").is_some() {
                rows += 1;
            }
        }
        rows + (ReadStats::get(&context.stats.chunks_read) << 32)
    }

    fn points(&self, name: &str, keys: u64) {
        let mut dice = 1u64;
        let mut missed = 0;
        self.measured(name, "read", READS as f64, || {
            for _ in 0..READS {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                missed += self.read(PartitionRange::Key(key((dice >> 33) % keys))) >> 32;
            }
        });
        println!("{:44} {:>9.2} chunks read for each read", "", missed as f64 / READS as f64);
    }

    fn memory(&self, what: &str) {
        let caches = &self.engine.caches;
        let used = caches.chunks.usage().size + caches.keys.usage().size + caches.rows.usage().size;
        let resident = number(&self.env, "/proc/self/status", "VmRSS:") >> 10;
        let mapped = number(&self.env, "/proc/self/status", "RssFile:") >> 10;
        println!(
            "{what:44} caches {} of {} MiB, resident {resident} MiB ({mapped} of files)",
            used >> 20,
            caches.budget() >> 20
        );
    }

    fn forget_file(&self) {
        for sstable in &self.store.view().sstables {
            sstable.data().file().drop_cache(0, 0);
        }
    }
}

fn key(k: u64) -> DecoratedKey {
    DecoratedKey::new(Bytes::copy_from_slice(&k.to_be_bytes()))
}

fn fill(env: &Env, engine: &Engine, store: &Arc<TableStore>, keys: u64, runtime: &tokio::runtime::Runtime) {
    let table = store.table();
    let mut value = vec![0u8; VALUE_BYTES as usize];
    for k in 0..keys {
        // half of it repeats: LZ4 makes about two thirds of it
        value.iter_mut().enumerate().for_each(|(at, byte)| *byte = if at % 64 < 32 { 7 } else { *byte });
        let half = env.random.next_u64().to_le_bytes();
        value.iter_mut().enumerate().filter(|(at, _)| at % 64 >= 32).for_each(|(at, byte)| *byte ^= half[at % 8]);
        let mut update = PartitionUpdate::new(Arc::clone(&table), key(k));
        let mut row = Row::new(rows::ClusteringValues::new());
        row.liveness = Liveness::new(1);
        row.add_cell(Cell::live(table.regulars[0].id, 1, Bytes::copy_from_slice(&value)));
        update.add_row(row);
        loop {
            match engine.apply(&[Mutation::of(update.clone())]) {
                Err(storage::StorageError::Busy) => runtime.block_on(engine.log.wait_for_room()),
                result => {
                    result.expect("the bench's disk is sound");
                    break;
                }
            }
        }
    }
    runtime.block_on(engine.flush(store)).expect("the bench's disk is sound");
    runtime.block_on(engine.compact(store)).expect("the bench's disk is sound");
}

fn main() {
    let keys: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(200_000);
    let version = if std::env::args().nth(2).as_deref() == Some("nb") { Version::NB } else { Version::DA };
    let directory = std::env::temp_dir().join("helenus-cache-bench");
    let env = env::real::env();
    let _ = env.disk.remove_dir_all(&directory);
    let data = keys * (VALUE_BYTES + 40);
    let options = EngineOptions {
        commitlog: commitlog::Options {
            sync: commitlog::SyncMode::Periodic(std::time::Duration::from_secs(10)),
            ..commitlog::Options::default()
        },
        memtable_bytes: 2 << 30,
        chunk_cache_bytes: (data / 3) as usize,
        key_cache_bytes: 16 << 20,
        row_cache_bytes: (data * 2) as usize,
        sstable_version: version,
        ..EngineOptions::with_small_budgets(&directory)
    };
    let engine = bench_parts::open(&env, options, [table()]);
    let store = engine.table(TableId([9; 16])).expect("it was just made");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    fill(&env, &engine, &store, keys, &runtime);
    let bench = Bench { env, engine, store };
    bench.memory("after the writes");

    let megabytes = data as f64 / 1e6;
    for round in ["cold", "in the kernel's cache"] {
        if round == "cold" {
            bench.forget_file();
        }
        bench.measured(&format!("chunk by chunk, {round}"), "MB", megabytes, || {
            for sstable in &bench.store.view().sstables {
                let data = sstable.data();
                let chunks = data.length().div_ceil(data.chunk_length() as u64);
                (0..chunks).for_each(|index| drop(data.read_chunk(index, ReadMode::Background).expect("sound")));
            }
        });
        if round == "cold" {
            bench.forget_file();
        }
        bench.measured(&format!("scan with its decoding, {round}"), "MB", megabytes, || {
            assert_eq!(bench.read(PartitionRange::all()) & 0xffff_ffff, keys);
        });
    }

    bench.engine.caches.set_capacities(None, Some(0)).expect("it fits");
    bench.points("points, chunks of all data in the cache (warming)", keys);
    bench.points("points, chunks of all data in the cache", keys);
    bench.memory("chunks filled");
    bench.engine.caches.set_capacities(None, Some(data * 2)).expect("it fits");
    bench.engine.caches.rows.clear();
    bench.points("points, rows cached (warming)", keys);
    bench.points("points, rows cached", keys);
    bench.memory("rows filled");
    bench.engine.caches.set_capacities(None, Some(data * 2)).expect("it fits");
    let _ = schema_change::change(&bench.engine, |schema| {
        let mut keyspace = schema.keyspace("bench").expect("it is there").as_ref().clone();
        for table in keyspace.tables.values_mut() {
            Arc::make_mut(table).params.caching.insert("rows_per_partition".into(), "NONE".into());
        }
        Ok::<_, ()>(schema.with_keyspace(keyspace))
    });
    bench.points("points, data three times the chunk cache", keys);
    bench.points("points, data three times the chunk cache", keys);
    bench.memory("at the end");
    let _ = bench.env.disk.remove_dir_all(&directory);
}
