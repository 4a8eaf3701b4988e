//! The statements on data: planning and execution.

pub(crate) mod batch;
pub(crate) mod conditional;
pub(crate) mod conditions;
pub(crate) mod modification;
pub(crate) mod select;
mod vectors;

use schema::index::definition::IndexDefinition;
use schema::{TableMetadata, system};

use crate::error::CqlError;

/// Refuses changes of a table that has dependents which would not follow: triggers, SASI indexes
/// that cut text into words, indexes of classes that are unknown here. They are not kept up yet,
/// and one that is stale would answer wrongly once Cassandra has the directory back. Legacy
/// indexes, SAI and all other SASI indexes are kept up (`storage::index`).
pub(crate) fn check_dependents(table: &TableMetadata) -> Result<(), CqlError> {
    if system::is_system_keyspace(&table.keyspace) {
        return Ok(());
    }
    let not_kept_up = table.indexes.values().filter(|index| IndexDefinition::of(table, index, false).is_none());
    let dependents = [
        ("indexes", not_kept_up.map(|index| index.name.clone()).collect::<Vec<_>>()),
        ("triggers", table.triggers().collect()),
    ];
    match dependents.iter().find(|(_, names)| !names.is_empty()) {
        Some((what, names)) => Err(CqlError::invalid(format!(
            "{}.{} can be read but not written: its {what} ({}) are not maintained yet and would become stale",
            table.keyspace,
            table.name,
            names.join(", ")
        ))),
        None => Ok(()),
    }
}
