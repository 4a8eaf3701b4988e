//! The cost and the result of each strategy under one load of inserts, on a simulated disk: bytes
//! written for each byte flushed (write amplification), SSTables that are left, SSTables that a
//! read of one partition opens, and bytes that are left for each live byte.
//!
//! `cargo run --profile quick -p bench-parts --example compaction [ROWS]`. The simulated machine
//! computes everything from its seed: two runs print the same numbers.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use env::Random;
use env::sim::{DATA, Sim};
use rows::{Cell, Liveness, Mutation, PartitionRange, PartitionUpdate, ReadCommand, ReadContext, ReadMode, Row};
use schema::table::ColumnSpec;
use schema::{ColumnKind, KeyspaceMetadata, Replication, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use storage::compaction::choice;
use storage::{Engine, EngineOptions, commitlog, schema_change};
use types::{CqlType, DecoratedKey};

const ID: TableId = TableId([5; 16]);
/// Of these random ones each row is: later ones replace earlier ones.
const PARTITIONS: u64 = 40_000;
const VALUE_LENGTH: usize = 1000;
const READS: u64 = 5_000;

/// Sizes are those of the defaults by about a hundred: flushes are of 2 MiB.
const STRATEGIES: [(&str, &str); 6] = [
    ("SizeTiered (default)", "SizeTiered min_sstable_size=500000"),
    ("Leveled (10)", "Leveled sstable_size_in_mb=1"),
    ("Unified T4 (default)", "Unified min_sstable_size=1MiB target_sstable_size=10MiB"),
    ("Unified L10", "Unified scaling_parameters=L10 min_sstable_size=1MiB target_sstable_size=10MiB"),
    ("Unified N", "Unified scaling_parameters=N min_sstable_size=1MiB target_sstable_size=10MiB"),
    ("TimeWindow (20 windows)", "TimeWindow compaction_window_unit=MINUTES min_sstable_size=500000"),
];

fn main() {
    let rows = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100_000);
    println!("{rows} rows of {VALUE_LENGTH} random bytes over {PARTITIONS} partitions, {READS} reads of one partition");
    println!(
        "{:<24} {:>10} {:>12} {:>9} {:>15} {:>12}",
        "strategy", "flushed MB", "compacted MB", "amplified", "SSTables (deep)", "a read opens"
    );
    for (name, options) in STRATEGIES {
        run(name, options, rows);
    }
}

fn keyspace(options: &str) -> KeyspaceMetadata {
    let spec = |name: &str, kind, ty| ColumnSpec { name: name.into(), kind, position: 0, ty, reversed: false };
    let specs = vec![spec("k", ColumnKind::PartitionKey, CqlType::Int), spec("v", ColumnKind::Regular, CqlType::Blob)];
    let mut words = options.split_whitespace();
    let class = format!("org.apache.cassandra.db.compaction.{}CompactionStrategy", words.next().unwrap_or_default());
    let mut map = BTreeMap::from([("class".to_owned(), class)]);
    map.extend(words.filter_map(|word| word.split_once('=')).map(|(name, value)| (name.to_owned(), value.to_owned())));
    let params = TableParams { compaction: map, ..TableParams::default() };
    let (kind, flags) = (TableKind::Regular, TableFlags::COMPOUND);
    let table = TableMetadata::new(ID, "bench", "t", kind, flags, params, specs, BTreeMap::new(), None);
    let replication = Replication {
        class: "org.apache.cassandra.locator.SimpleStrategy".to_owned(),
        options: BTreeMap::from([("replication_factor".to_owned(), "1".to_owned())]),
    };
    let tables = BTreeMap::from([("t".to_owned(), Arc::new(table))]);
    let (user_types, function_rows) = (BTreeMap::new(), Vec::new());
    KeyspaceMetadata {
        name: "bench".into(),
        durable_writes: false,
        replication,
        tables,
        user_types,
        function_rows,
        functions: BTreeMap::new(),
        aggregates: BTreeMap::new(),
        is_virtual: false,
    }
}

fn run(name: &str, options: &str, rows: u64) {
    let sim = Sim::new(1);
    let dice = sim.dice();
    let engine_options = EngineOptions {
        commitlog: commitlog::Options::default(),
        memtable_bytes: 6 << 20,
        chunk_cache_bytes: 64 << 20,
        ..EngineOptions::with_small_budgets(Path::new(DATA))
    };
    let (engine, _) = storage::open(&sim.env(), engine_options).expect("an empty disk opens");
    schema_change::change(&engine, |schema| Ok::<_, ()>(schema.with_keyspace(keyspace(options))))
        .expect("a sound disk")
        .expect("nobody refuses");
    let table = engine.schema().table("bench", "t").cloned().expect("the table is there");
    for index in 0..rows {
        if index % (rows / 20).max(1) == 0 {
            sim.advance(Duration::from_secs(60));
        }
        insert(&sim, &engine, &table, dice.below(PARTITIONS) as i32, &dice);
    }
    let store = engine.table(ID).expect("the table is open");
    sim.block_on(engine.flush(&store)).expect("a sound disk flushes");
    sim.run_until_idle();
    let opened: u64 = (0..READS).map(|_| opened(&engine, &table, dice.below(PARTITIONS) as i32)).sum();
    let (flushed, compacted) = (store.metrics.bytes_flushed.get() as f64, store.metrics.bytes_compacted.get() as f64);
    let levels = choice::levels(&store).iter().filter(|(count, ..)| *count > 0).count();
    println!(
        "{name:<24} {:>10.1} {:>12.1} {:>9.2} {:>15} {:>12.2}",
        flushed / 1e6,
        compacted / 1e6,
        (flushed + compacted) / flushed,
        if levels > 0 {
            format!("{} ({levels})", store.view().sstables.len())
        } else {
            store.view().sstables.len().to_string()
        },
        opened as f64 / READS as f64
    );
}

fn key(k: i32) -> DecoratedKey {
    DecoratedKey::new(Bytes::copy_from_slice(&k.to_be_bytes()))
}

fn insert(sim: &Sim, engine: &Arc<Engine>, table: &Arc<TableMetadata>, k: i32, dice: &dyn Random) {
    let at = sim.env().clock.now_micros();
    let mut value = vec![0; VALUE_LENGTH];
    value.chunks_exact_mut(8).for_each(|chunk| chunk.copy_from_slice(&dice.next_u64().to_be_bytes()));
    let mut row = Row::new(rows::ClusteringValues::new());
    row.liveness = Liveness::new(at);
    row.add_cell(Cell::live(table.column_by_name("v").expect("the column").id, at, value.into()));
    let mut update = PartitionUpdate::new(Arc::clone(table), key(k));
    update.add_row(row);
    sim.block_on(engine.admit());
    engine.apply(&[Mutation::of(update)]).expect("a sound disk takes writes");
}

/// SSTables that a read of a partition opens, behind their filters.
fn opened(engine: &Engine, table: &Arc<TableMetadata>, k: i32) -> u64 {
    let context = ReadContext::new(ReadMode::Background);
    let command = ReadCommand::whole(table, PartitionRange::Key(key(k)));
    let mut stream = engine.read(&command, &context).expect("a sound disk reads");
    while stream.next_partition().expect("a sound disk reads").is_some() {
        while stream.next_unfiltered().expect("a sound disk reads").is_some() {}
    }
    context.stats.sstables_read.load(Ordering::Relaxed)
}
