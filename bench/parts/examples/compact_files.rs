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
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use sstable::Version;
use storage::{EngineOptions, import};
use types::CqlType;

const ID: TableId = TableId([0xbe; 16]);
/// `/proc/self/stat` is shorter.
const PROC_FILE_MAX: u64 = 1 << 16;
/// Units of CPU time there, a second.
const TICKS_A_SECOND: f64 = 100.0;

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

/// User and system seconds of this process.
fn cpu_seconds(env: &env::Env) -> (f64, f64) {
    let text = env.disk.read_all(Path::new("/proc/self/stat"), PROC_FILE_MAX).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut ticks = fields.split_whitespace().skip(11).map(|field| field.parse().unwrap_or(0.0) / TICKS_A_SECOND);
    (ticks.next().unwrap_or(0.0), ticks.next().unwrap_or(0.0))
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
    let options = EngineOptions { sstable_version: version, ..EngineOptions::beneath(&scratch) };
    let engine = bench_parts::open(&env, options, [table()]);
    let store = engine.table(ID).expect("the table is open");
    store.auto_compaction.set(false);
    let sources = import::Options {
        directories: vec![directory],
        reset_level: false,
        clear_repaired: false,
        verify: false,
        extended_verify: false,
        copy: true,
    };
    let failed = import::import(&engine, &store, &sources).expect("the SSTables are brought in");
    assert!(failed.is_empty(), "the SSTables are sound");
    let bytes = |of: fn(&sstable::SSTable) -> u64| store.view().sstables.iter().map(|sstable| of(sstable)).sum::<u64>();
    let (stored, plain) = (bytes(sstable::SSTable::stored_length), bytes(sstable::SSTable::data_length));
    let count = store.view().sstables.len();
    let (start, (user, system)) = (env.now(), cpu_seconds(&env));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(engine.compact(&store)).expect("sound SSTables compact");
    let seconds = env.elapsed(start).as_secs_f64();
    let (user, system) = (cpu_seconds(&env).0 - user, cpu_seconds(&env).1 - system);
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
