//! The schema in the engine's own `system_schema` tables: read from them at start, written to them
//! when it changes.
//!
//! Agrees with `org.apache.cassandra.schema.SchemaKeyspace`: same tables, same rows, same version,
//! so that Cassandra finds its schema in a directory that Helenus wrote, and nodes of both kinds
//! agree on one.

mod stored;
mod version;

use std::sync::Arc;

use bytes::Bytes;
use rows::{Cell, ClusteringValues, DeletionTime, Liveness, Mutation, PartitionUpdate, ReadError, Row};
use schema::system::is_local_keyspace;
use schema::system_schema::{LoadedSchema, SchemaTable, SchemaWrite};
use schema::{Schema, TableMetadata};
use types::DecoratedKey;

use crate::error::StorageError;
use crate::table::TableStore;

pub use stored::{StoredSchema, schema_table};

/// The keyspace of these tables.
pub const KEYSPACE: &str = "system_schema";

/// Reads all of the schema tables. `built_in` has the definitions of these tables.
pub fn read(
    built_in: &Schema,
    store_of: &dyn Fn(&TableMetadata) -> Option<Arc<TableStore>>,
    now: u32,
) -> Result<StoredSchema, StorageError> {
    let mut stored = StoredSchema::default();
    for table in SchemaTable::ALL {
        let metadata = metadata(built_in, table)?;
        if let Some(store) = store_of(&metadata) {
            read_table(&mut stored, &store, table, now)?;
        }
    }
    Ok(stored)
}

fn read_table(
    stored: &mut StoredSchema,
    store: &Arc<TableStore>,
    table: SchemaTable,
    now: u32,
) -> Result<(), ReadError> {
    let metadata = store.table();
    let mut stream = crate::read::read_all(store, now)?;
    stored.add(table, |key| PartitionUpdate::new(Arc::clone(&metadata), key), stream.as_mut())
}

/// The schema as stored, still without its version, and what of it cannot be read.
pub fn load(stored: &StoredSchema, now: u32) -> LoadedSchema {
    let loaded = Schema::from_rows(stored.rows(None, now), None);
    log_ignored_parts(&loaded.ignored, &loaded.unreadable);
    loaded
}

/// Logs which parts of the stored schema are not in force.
pub fn log_ignored_parts(ignored: &[String], unreadable: &[String]) {
    for ignored in ignored {
        tracing::warn!(%ignored, "a part of the stored schema is not executed yet and left as it is");
    }
    for error in unreadable {
        tracing::error!(%error, "a part of the stored schema cannot be read; its rows are kept and it is left out");
    }
}

fn metadata(built_in: &Schema, table: SchemaTable) -> Result<Arc<TableMetadata>, StorageError> {
    built_in
        .table(KEYSPACE, table.name())
        .cloned()
        .ok_or_else(|| StorageError::UnknownTable { table: format!("{KEYSPACE}.{}", table.name()) })
}

/// The mutations that carry out schema writes, one a keyspace and in their order, at a timestamp.
/// The rows of a table are merged at the end, all at once: a table may have tens of thousands of
/// columns, and a merge passes all rows.
pub fn mutations(
    built_in: &Schema,
    writes: &[SchemaWrite],
    timestamp: i64,
    now: u32,
) -> Result<Vec<Mutation>, StorageError> {
    // for each keyspace and each of its tables the updates, at least one
    let mut gathered: Vec<(DecoratedKey, Vec<Vec<PartitionUpdate>>)> = Vec::new();
    for write in writes {
        let (table, keyspace) = match write {
            SchemaWrite::Put { row, .. } => (row.table, &row.keyspace),
            SchemaWrite::DeleteRow { table, keyspace, .. } | SchemaWrite::DeletePartition { table, keyspace } => {
                (*table, keyspace)
            }
        };
        let key = DecoratedKey::new(Bytes::copy_from_slice(keyspace.as_bytes()));
        let mut update = PartitionUpdate::new(metadata(built_in, table)?, key.clone());
        fill(&mut update, write, timestamp, now);
        let index = gathered.iter().position(|(known, _)| *known == key).unwrap_or(gathered.len());
        if index == gathered.len() {
            gathered.push((key, Vec::new()));
        }
        let tables = &mut gathered[index].1;
        match tables.iter_mut().find(|updates| updates[0].table.id == update.table.id) {
            Some(updates) => updates.push(update),
            None => tables.push(vec![update]),
        }
    }
    let merged = |updates: Vec<PartitionUpdate>| {
        let mut updates = updates.into_iter();
        let mut first = updates.next()?;
        first.merge(updates);
        Some(first)
    };
    let mutation = |(key, tables): (DecoratedKey, Vec<Vec<PartitionUpdate>>)| {
        let updates = tables.into_iter().filter_map(merged).collect();
        Mutation { key, updates }
    };
    Ok(gathered.into_iter().map(mutation).collect())
}

/// The columns of `system_schema.aggregates` that Cassandra writes as null where an aggregate has
/// nothing for them (`SchemaKeyspace.addAggregateToSchemaMutation`).
const AGGREGATE_MAY_LACK: &[&str] = &["final_func", "initcond"];

fn fill(update: &mut PartitionUpdate, write: &SchemaWrite, timestamp: i64, now: u32) {
    let row_of = |clustering: &[Bytes]| Row::new(clustering.iter().cloned().map(Some).collect::<ClusteringValues>());
    match write {
        SchemaWrite::DeletePartition { .. } => update.deletion = DeletionTime::new(timestamp, now),
        SchemaWrite::DeleteRow { clustering, .. } => {
            let mut row = row_of(clustering);
            row.deletion = DeletionTime::new(timestamp, now);
            update.add_row(row);
        }
        SchemaWrite::Put { row: wanted, replaces } => {
            let mut row = row_of(&wanted.clustering);
            if *replaces {
                row.deletion = DeletionTime::new(timestamp - 1, now);
            }
            row.liveness = Liveness::new(timestamp);
            for (name, value) in &wanted.cells {
                if let Some(column) = update.table.column_by_name(name) {
                    row.add_cell(Cell::live(column.id, timestamp, value.clone()));
                }
            }
            // what an aggregate lacks is written as null, which also takes away what another had
            let may_lack = if wanted.table == SchemaTable::Aggregates { AGGREGATE_MAY_LACK } else { &[] };
            for name in may_lack.iter().filter(|name| !wanted.content().contains_key(*name)) {
                if let Some(column) = update.table.column_by_name(name) {
                    row.add_cell(Cell::tombstone(column.id, timestamp, now));
                }
            }
            update.add_row(row);
        }
    }
}

/// Leaves out mutations that other nodes may not send: rows of tables that are no schema tables,
/// and of keyspaces that each node has for itself.
pub fn only_of_ring(mutations: Vec<Mutation>) -> Vec<Mutation> {
    let of_ring = |mutation: &Mutation| {
        let name = String::from_utf8_lossy(&mutation.key.key);
        let is_of_ring = !schema::system::VIRTUAL_KEYSPACES.contains(&name.as_ref()) && !is_local_keyspace(&name);
        if !is_of_ring {
            tracing::warn!(keyspace = %name, "rows of a keyspace that is not shared are not taken from other nodes");
        }
        is_of_ring
    };
    let mut mutations: Vec<Mutation> = mutations.into_iter().filter(of_ring).collect();
    for mutation in &mut mutations {
        mutation.updates.retain(|update| schema_table(&update.table).is_some());
    }
    mutations.retain(|mutation| !mutation.updates.is_empty());
    mutations
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The columns of a wide table, the last one first. Where all rows are put in order for each of
    /// them, this test takes minutes.
    #[test]
    fn writes_of_many_columns_are_one_mutation() {
        let row = |number: usize| SchemaWrite::DeleteRow {
            table: SchemaTable::Columns,
            keyspace: "ks".to_owned(),
            clustering: vec![Bytes::from_static(b"t"), Bytes::from(format!("c{number:05}"))],
        };
        let writes: Vec<SchemaWrite> = (0..30_000).rev().map(row).collect();
        let made = mutations(&schema::system::schema(), &writes, 1, 1).expect("the table is built in");
        let [Mutation { updates, .. }] = made.as_slice() else { panic!("{} mutations", made.len()) };
        assert_eq!((updates.len(), updates[0].rows.len()), (1, 30_000));
    }
}
