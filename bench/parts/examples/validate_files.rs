//! The cost of a repair's validation of given SSTables: they are linked into a table of an engine
//! of their own and hashed into one tree by one thread. Prints CPU seconds of the process, the
//! number of partitions, and the XOR of all their hashes.
//!
//! `cargo run --profile quick -p bench-parts --example validate_files -- DIRECTORY [SCRATCH]`
//!
//! DIRECTORY holds SSTables of `keyspace1.standard1` as `helenus stress write` makes them. SCRATCH
//! is made anew and must be on the same file system.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use internode::payload::token_ranges::Tokens;
use repair::{MerkleTree, Validator, size};
use rows::purge::PurgeStream;
use rows::{ReadContext, ReadMode};
use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use storage::{EngineOptions, flushed_table};
use types::{CqlType, Token};

const ID: TableId = TableId([0xbe; 16]);
/// Leaves of the tree are two to this power at most.
const TREE_DEPTH: u32 = 14;
/// Bytes of memory that the tree may use.
const TREE_SPACE: u64 = 16 << 20;
/// Heads and rows that are hashed in one go.
const SLICE: usize = 10_000;

fn table() -> Arc<TableMetadata> {
    let spec =
        |name: &str, kind| ColumnSpec { name: name.into(), kind, position: 0, ty: CqlType::Blob, reversed: false };
    let regulars = ["C0", "C1", "C2", "C3", "C4"].map(|name| spec(name, ColumnKind::Regular));
    let specs = [spec("key", ColumnKind::PartitionKey)].into_iter().chain(regulars).collect();
    let (kind, flags) = (TableKind::Regular, TableFlags::COMPOUND);
    let params = TableParams::default();
    Arc::new(TableMetadata::new(ID, "bench", "standard1", kind, flags, params, specs, BTreeMap::new(), None))
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(directory) = arguments.first().map(PathBuf::from) else { panic!("validate_files DIRECTORY [SCRATCH]") };
    let scratch = arguments.get(1).map_or_else(|| std::env::temp_dir().join("helenus-validate-files"), PathBuf::from);
    let env = env::real::env();
    let _ = env.disk.remove_dir_all(&scratch);
    let engine = bench_parts::open(&env, EngineOptions::with_small_budgets(&scratch), [table()]);
    let store = engine.table(ID).expect("the table is open");
    bench_parts::bring_in(&engine, &store, directory);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let frozen = runtime.block_on(flushed_table::take(&engine, &store, |_| true)).expect("the table is frozen");
    let whole = Tokens { start: Token(i64::MIN), end: Token(i64::MIN) };
    let partitions = frozen.partitions_in((whole.start, whole.end));
    let (start, (user, system)) = (env.now(), bench_parts::cpu_seconds(&env));
    let trees = size::empty_trees(&[(whole, partitions)], TREE_SPACE, TREE_DEPTH);
    let mut validator = Validator::new(&frozen.table, trees);
    let stream = frozen.read(&[(whole.start, whole.end)], ReadContext::new(ReadMode::Background));
    let stream = PurgeStream::new(stream, u32::MAX / 2, 0, Box::new(|_| i64::MAX));
    let mut stream = stream.of_table(&frozen.table);
    while !validator.advance(&mut stream, SLICE).expect("sound SSTables are read") {}
    let seconds = env.elapsed(start).as_secs_f64();
    let (user, system) = (bench_parts::cpu_seconds(&env).0 - user, bench_parts::cpu_seconds(&env).1 - system);
    let count = validator.partitions();
    let trees = validator.finish();
    let mut all = [0u8; 32];
    for (_, hash) in trees.trees().iter().flat_map(MerkleTree::parts) {
        all.iter_mut().zip(hash).for_each(|(all, byte)| *all ^= byte);
    }
    let sstables = frozen.sstables.len();
    println!(
        "{count} partitions of {sstables} SSTables: {:.2} CPU s ({user:.2} user, {system:.2} system) in {seconds:.2} s",
        user + system
    );
    println!("{all:02x?}");
}
