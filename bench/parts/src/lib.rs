//! The programs in `examples/` share an engine to measure, with tables of keyspace `bench` in a
//! directory of its own, SSTables that are brought into it, and the CPU time of the process.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use env::Env;
use schema::{KeyspaceMetadata, Replication, TableMetadata};
use storage::{Engine, EngineOptions, TableStore, import, schema_change};

/// Opens it, empty, and makes the tables.
pub fn open(env: &Env, options: EngineOptions, tables: impl IntoIterator<Item = Arc<TableMetadata>>) -> Arc<Engine> {
    let (engine, _) = storage::open(env, options).expect("the bench's disk is sound");
    let keyspace = KeyspaceMetadata {
        name: "bench".into(),
        durable_writes: true,
        replication: Replication {
            class: "org.apache.cassandra.locator.SimpleStrategy".into(),
            options: BTreeMap::from([("replication_factor".into(), "1".into())]),
        },
        tables: tables.into_iter().map(|table| (table.name.clone(), table)).collect(),
        user_types: BTreeMap::new(),
        function_rows: Vec::new(),
        functions: Default::default(),
        aggregates: Default::default(),
        is_virtual: false,
    };
    let changed = schema_change::change(&engine, |schema| Ok::<_, ()>(schema.with_keyspace(keyspace)));
    assert!(changed.is_ok_and(|changed| changed.is_ok()));
    engine
}

/// `/proc/self/stat` is shorter.
const PROC_FILE_MAX: u64 = 1 << 16;
/// Units of CPU time there, a second.
const TICKS_A_SECOND: f64 = 100.0;

/// User and system seconds of this process.
pub fn cpu_seconds(env: &Env) -> (f64, f64) {
    let text = env.disk.read_all(Path::new("/proc/self/stat"), PROC_FILE_MAX).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut ticks = fields.split_whitespace().skip(11).map(|field| field.parse().unwrap_or(0.0) / TICKS_A_SECOND);
    (ticks.next().unwrap_or(0.0), ticks.next().unwrap_or(0.0))
}

/// Links the SSTables of a directory into a table, which is not compacted by itself from then on.
pub fn bring_in(engine: &Engine, store: &Arc<TableStore>, directory: PathBuf) {
    store.auto_compaction.set(false);
    let sources = import::Options {
        directories: vec![directory],
        reset_level: false,
        clear_repaired: false,
        verify: false,
        extended_verify: false,
        copy: true,
        require_indexes: false,
    };
    let failed = import::import(engine, store, &sources, None).expect("the SSTables are brought in");
    assert!(failed.is_empty(), "the SSTables are sound");
}
