//! The cost of opening an engine on a commit log that nobody flushed: writes rows until the log has
//! so many bytes, drops the engine as the death of the process would, and opens it again, a few
//! times.
//!
//! `cargo run --profile quick -p bench-parts --example replay_bench -- [MEBIBYTES [VALUE_BYTES
//! [ROWS_A_PARTITION]]]`

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use env::Env;
use rows::{Cell, Liveness, Mutation, PartitionUpdate, Row};
use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use storage::{Engine, EngineOptions, commitlog};
use types::{CqlType, DecoratedKey};

/// Opened so often.
const ROUNDS: usize = 5;

fn table() -> Arc<TableMetadata> {
    let spec = |name: &str, kind, ty| ColumnSpec { name: name.into(), kind, position: 0, ty, reversed: false };
    let specs = vec![
        spec("k", ColumnKind::PartitionKey, CqlType::BigInt),
        spec("c", ColumnKind::Clustering, CqlType::BigInt),
        spec("v", ColumnKind::Regular, CqlType::Blob),
    ];
    let (kind, flags) = (TableKind::Regular, TableFlags::COMPOUND);
    let params = TableParams::default();
    Arc::new(TableMetadata::new(TableId([9; 16]), "bench", "t", kind, flags, params, specs, BTreeMap::new(), None))
}

fn options(directory: &std::path::Path) -> EngineOptions {
    EngineOptions {
        commitlog: commitlog::Options {
            sync: commitlog::SyncMode::Periodic(Duration::from_secs(10)),
            ..commitlog::Options::default()
        },
        shards: 8,
        memtable_bytes: 4 << 30,
        ..EngineOptions::with_small_budgets(directory)
    }
}

struct Writer {
    env: Env,
    engine: Arc<Engine>,
    table: Arc<TableMetadata>,
    value: Bytes,
    runtime: tokio::runtime::Runtime,
}

impl Writer {
    fn write(&self, k: u64, c: u64) {
        let mut update =
            PartitionUpdate::new(Arc::clone(&self.table), DecoratedKey::new(Bytes::copy_from_slice(&k.to_be_bytes())));
        let mut row = Row::new([Some(Bytes::copy_from_slice(&c.to_be_bytes()))].into_iter().collect());
        let now = self.env.clock.now_micros();
        row.liveness = Liveness::new(now);
        row.add_cell(Cell::live(self.table.regulars[0].id, now, self.value.clone()));
        update.add_row(row);
        while let Err(error) = self.engine.apply(&[Mutation::of(update.clone())]) {
            assert!(matches!(error, storage::StorageError::Busy), "{error}");
            self.runtime.block_on(self.engine.log.wait_for_room());
        }
    }
}

/// User and system time of this process so far, milliseconds.
fn cpu_millis(env: &Env) -> u64 {
    let stat = env.disk.read_all(std::path::Path::new("/proc/self/stat"), 4096).expect("Linux");
    let text = String::from_utf8_lossy(&stat).into_owned();
    let after = text.rsplit_once(')').expect("a name in brackets").1;
    let fields: Vec<u64> =
        after.split_whitespace().skip(11).take(2).map(|field| field.parse().expect("ticks")).collect();
    fields.iter().sum::<u64>() * 10
}

/// Writes until the log has so many bytes; gives how many rows.
fn fill(writer: &Writer, bytes: u64, rows_a_partition: u64) -> u64 {
    let (start, segment_size) = (writer.engine.log.position(), u64::from(commitlog::Options::default().segment_size));
    let mut rows = 0;
    loop {
        writer.write(rows / rows_a_partition, rows % rows_a_partition);
        rows += 1;
        let at = writer.engine.log.position();
        if (at.segment - start.segment) * segment_size + u64::from(at.offset) >= bytes {
            writer.runtime.block_on(writer.engine.log.sync()).expect("synced");
            return rows;
        }
    }
}

fn main() {
    let argument = |index: usize, default: u64| {
        std::env::args().nth(index).map_or(default, |text| text.parse().expect("a number"))
    };
    let (mebibytes, value_bytes, rows_a_partition) = (argument(1, 100), argument(2, 128), argument(3, 1));
    let directory = std::env::temp_dir().join(format!("helenus-replay-bench-{}", std::process::id()));
    let env = env::real::env();
    let engine = bench_parts::open(&env, options(&directory), [table()]);
    let table = engine.schema().table("bench", "t").cloned().expect("it was just made");
    let value = Bytes::from((0..value_bytes).map(|index| (index * 7) as u8).collect::<Vec<u8>>());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let writer = Writer { env, engine, table, value, runtime };
    let rows = fill(&writer, mebibytes << 20, rows_a_partition);
    println!("{rows} rows, {mebibytes} MiB of log, {} MiB of memtables", writer.engine.memory.usage().0 >> 20);
    let Writer { env, engine, .. } = writer;
    drop(engine);
    for _ in 0..ROUNDS {
        let (begun, cpu) = (env.now(), cpu_millis(&env));
        let (engine, recovered) = storage::open(&env, options(&directory)).expect("opened");
        let (seconds, cpu) = (env.elapsed(begun).as_secs_f64(), cpu_millis(&env) - cpu);
        println!(
            "open: {seconds:.3} s, {cpu} ms of CPU, {:.2} us of CPU a record ({recovered:?})",
            cpu as f64 * 1000.0 / recovered.records as f64
        );
        drop(engine);
    }
    let _ = env.disk.remove_dir_all(&directory);
}
