//! Writes to virtual tables. Nearly all are refused. Agrees with `AbstractMutableVirtualTable` and
//! `TruncateStatement`.

use cql::CqlError;
use rows::{ColumnData, Mutation, PartitionUpdate, Row};
use schema::TableMetadata;

use super::find;
use crate::services::Services;

fn refused(what: &str, table: &TableMetadata) -> CqlError {
    CqlError::invalid(format!("{what} is not supported by table {}.{}", table.keyspace, table.name))
}

/// Applies mutations of virtual tables.
pub fn apply(services: &Services, mutations: &[Mutation]) -> Result<(), CqlError> {
    mutations.iter().flat_map(|mutation| &mutation.updates).try_for_each(|update| apply_one(services, update))
}

fn apply_one(services: &Services, update: &PartitionUpdate) -> Result<(), CqlError> {
    let table = &update.table;
    let Some(mutable) = find(table).and_then(|known| known.mutable.as_ref()) else {
        return Err(refused("Modification", table));
    };
    if !update.range_deletions.is_empty() {
        return Err(refused("Range deletion", table));
    }
    if let Some(row) = update.rows.first() {
        return Err(refused(change_of(row), table));
    }
    let Some(delete) = mutable.delete_partition else { return Err(refused("Partition deletion", table)) };
    let components = types::composite::decompose(&update.key.key, table.partition_key.len());
    delete(services, &components.ok_or_else(|| CqlError::invalid("The partition key is no composite"))?);
    Ok(())
}

/// The name of the change that a row of an update makes.
fn change_of(row: &Row) -> &'static str {
    if !row.deletion.is_live() {
        return "Row deletion";
    }
    match row.columns.first() {
        Some(ColumnData::Simple(cell)) if cell.is_tombstone() => "Column deletion",
        _ => "Column modification",
    }
}

/// TRUNCATE of a virtual table.
pub fn truncate(services: &Services, table: &TableMetadata) -> Result<(), CqlError> {
    let mutable = find(table).and_then(|known| known.mutable.as_ref());
    (mutable.ok_or_else(|| refused("Truncation", table))?.truncate)(services);
    Ok(())
}
