//! The engine that the programs in `examples/` measure: tables of keyspace `bench` in a directory
//! of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use env::Env;
use schema::{KeyspaceMetadata, Replication, TableMetadata};
use storage::{Engine, EngineOptions, schema_change};

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
        kept: Vec::new(),
        functions: Default::default(),
        aggregates: Default::default(),
        is_virtual: false,
    };
    let changed = schema_change::change(&engine, |schema| Ok::<_, ()>(schema.with_keyspace(keyspace)));
    assert!(changed.is_ok_and(|changed| changed.is_ok()));
    engine
}
