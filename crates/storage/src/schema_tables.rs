//! The schema in the engine's own `system_schema` tables: read from them at start, written to them when it changes.
//!
//! Agrees with `org.apache.cassandra.schema.SchemaKeyspace`: same tables, same rows, so that Cassandra finds its schema in a
//! directory that Helenus wrote.

use std::sync::Arc;

use bytes::Bytes;
use rows::live::{LiveRows, TombstoneLimits};
use rows::{Cell, ClusteringValues, ColumnData, DeletionTime, Liveness, Mutation, PartitionUpdate, ReadError, Row};
use schema::rows_form::{SchemaRow, SchemaTable, SchemaWrite};
use schema::{Schema, TableMetadata};
use types::DecoratedKey;

use crate::error::StorageError;
use crate::table::TableStore;

/// The keyspace of these tables.
pub const KEYSPACE: &str = "system_schema";

/// The schema as stored. `built_in` has the schema tables themselves; `previous` keeps column ids.
pub fn load(
    built_in: &Schema,
    store_of: &dyn Fn(&TableMetadata) -> Option<Arc<TableStore>>,
    now: u32,
    previous: Option<&Schema>,
) -> Result<Schema, StorageError> {
    let mut rows = Vec::new();
    for table in SchemaTable::ALL {
        let metadata = metadata(built_in, table)?;
        let Some(store) = store_of(&metadata) else { continue };
        rows.extend(read_rows(&store, table, &metadata, now)?);
    }
    let loaded = Schema::from_rows(rows, previous)
        .map_err(|error| StorageError::Refused { why: format!("the stored schema cannot be read: {error}") })?;
    for ignored in &loaded.ignored {
        tracing::warn!(%ignored, "a part of the stored schema is not executed yet and left as it is");
    }
    Ok(loaded.schema)
}

fn metadata(built_in: &Schema, table: SchemaTable) -> Result<Arc<TableMetadata>, StorageError> {
    built_in
        .table(KEYSPACE, table.name())
        .cloned()
        .ok_or_else(|| StorageError::UnknownTable { table: format!("{KEYSPACE}.{}", table.name()) })
}

fn read_rows(
    store: &Arc<TableStore>,
    table: SchemaTable,
    metadata: &Arc<TableMetadata>,
    now: u32,
) -> Result<Vec<SchemaRow>, ReadError> {
    let mut stream = crate::read::read_all(store, now)?;
    let mut live = LiveRows::new(stream.as_mut(), Arc::clone(metadata), now, TombstoneLimits::NONE);
    let mut rows = Vec::new();
    while let Some(partition) = live.next_partition()? {
        let Ok(keyspace) = String::from_utf8(partition.key.key.to_vec()) else { continue };
        while let Some(row) = live.next_row()? {
            rows.push(SchemaRow {
                table,
                keyspace: keyspace.clone(),
                clustering: row.clustering.iter().map(|value| value.clone().unwrap_or_default()).collect(),
                cells: cells(&row, metadata),
            });
        }
    }
    Ok(rows)
}

fn cells(row: &Row, table: &TableMetadata) -> Vec<(String, Bytes)> {
    let named = |data: &ColumnData| match data {
        ColumnData::Simple(cell) => table.column(cell.column).map(|column| (column.name.clone(), cell.value.clone())),
        ColumnData::Complex(_) => None,
    };
    row.columns.iter().filter_map(named).collect()
}

/// The mutations that carry out schema writes, one a keyspace and in their order, at a timestamp.
pub fn mutations(
    built_in: &Schema,
    writes: &[SchemaWrite],
    timestamp: i64,
    now: u32,
) -> Result<Vec<Mutation>, StorageError> {
    let mut mutations: Vec<Mutation> = Vec::new();
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
        let index = mutations.iter().position(|mutation| mutation.key == key).unwrap_or(mutations.len());
        if index == mutations.len() {
            mutations.push(Mutation { key, updates: Vec::new() });
        }
        let updates = &mut mutations[index].updates;
        match updates.iter_mut().find(|other| other.table.id == update.table.id) {
            Some(other) => other.merge([update]),
            None => updates.push(update),
        }
    }
    Ok(mutations)
}

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
            update.add_row(row);
        }
    }
}

/// Names of the keyspaces that have a row.
pub fn stored_keyspaces(
    built_in: &Schema,
    store_of: &dyn Fn(&TableMetadata) -> Option<Arc<TableStore>>,
    now: u32,
) -> Result<std::collections::BTreeSet<String>, StorageError> {
    let metadata = metadata(built_in, SchemaTable::Keyspaces)?;
    let Some(store) = store_of(&metadata) else { return Ok(Default::default()) };
    let rows = read_rows(&store, SchemaTable::Keyspaces, &metadata, now)?;
    Ok(rows.into_iter().map(|row| row.keyspace).collect())
}
