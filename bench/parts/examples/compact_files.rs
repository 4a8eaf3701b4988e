//! The cost of a major compaction of given SSTables: they are linked into a table of an engine of
//! their own and compacted there by one thread. Prints CPU seconds of the process, seconds of the
//! clock and MB (10^6 bytes) a CPU second, of Data.db as stored and as it is before compression.
//!
//! `cargo run --profile quick -p bench-parts --example compact_files -- DIRECTORY [SCRATCH]
//! [VERSION]`
//!
//! DIRECTORY holds SSTables of `bench.events` as the example `write_table` writes them. SCRATCH
//! (made anew, and left with the result for `helenus sstable verify`) must be on the same file
//! system if links are wanted.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use sstable::Version;
use storage::EngineOptions;
use types::CqlType;

const ID: TableId = TableId([0xbe; 16]);

fn table() -> Arc<TableMetadata> {
    let spec = |name: &str, kind, ty| ColumnSpec { name: name.into(), kind, position: 0, ty, reversed: false };
    let specs = vec![
        spec("device", ColumnKind::PartitionKey, CqlType::BigInt),
        spec("at", ColumnKind::Clustering, CqlType::Timestamp),
        spec("kind", ColumnKind::Regular, CqlType::Text),
        spec("note", ColumnKind::Regular, CqlType::Text),
        spec("reading", ColumnKind::Regular, CqlType::Double),
    ];
    let (kind, flags) = (TableKind::Regular, TableFlags::COMPOUND);
    let params = TableParams::default();
    Arc::new(TableMetadata::new(ID, "bench", "events", kind, flags, params, specs, BTreeMap::new(), None))
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(directory) = arguments.first().map(PathBuf::from) else {
        panic!("compact_files DIRECTORY [SCRATCH] [VERSION]")
    };
    let scratch = arguments.get(1).map_or_else(|| std::env::temp_dir().join("helenus-compact-files"), PathBuf::from);
    let version = arguments.get(2).map_or(Version::DA, |name| Version::from_name(name).expect("a version, like da"));
    let env = env::real::env();
    let _ = env.disk.remove_dir_all(&scratch);
    let options = EngineOptions { sstable_version: version, ..EngineOptions::with_small_budgets(&scratch) };
    let engine = bench_parts::open(&env, options, [table()]);
    let store = engine.table(ID).expect("the table is open");
    bench_parts::bring_in(&engine, &store, directory);
    let bytes = |of: fn(&sstable::SSTable) -> u64| store.view().sstables.iter().map(|sstable| of(sstable)).sum::<u64>();
    let (stored, plain) = (bytes(sstable::SSTable::stored_length), bytes(sstable::SSTable::data_length));
    let count = store.view().sstables.len();
    let (start, (user, system)) = (env.now(), bench_parts::cpu_seconds(&env));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(engine.compact(&store)).expect("sound SSTables compact");
    let seconds = env.elapsed(start).as_secs_f64();
    let (user, system) = (bench_parts::cpu_seconds(&env).0 - user, bench_parts::cpu_seconds(&env).1 - system);
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    println!("{count} SSTables of {:.0} MB, {:.0} MB before compression, into", megabytes(stored), megabytes(plain));
    let (stored_after, plain_after) = (bytes(sstable::SSTable::stored_length), bytes(sstable::SSTable::data_length));
    let count = store.view().sstables.len();
    println!("{count} of {:.0} MB, {:.0} MB before compression:", megabytes(stored_after), megabytes(plain_after));
    let cpu = user + system;
    println!(
        "{cpu:.2} CPU s ({user:.2} user, {system:.2} system) in {seconds:.2} s; {:.0} MB stored, {:.0} MB plain a CPU s",
        megabytes(stored) / cpu,
        megabytes(plain) / cpu
    );
}
