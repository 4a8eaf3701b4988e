//! Tables WITH COMPACT STORAGE: what they may have, and the columns that CQL does not show.
//!
//! With clustering columns a table is dense: a row is one cell. Without, its columns are stored as
//! static ones beside a hidden clustering column and a hidden value, which clients of old times
//! used for columns without a definition.
//!
//! Must agree with: `CreateTableStatement.validateCompactTable` and `.fixupCompactTable`.

use std::collections::{BTreeMap, BTreeSet};

use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableMetadata};
use types::CqlType;

use super::DdlContext;
use super::create_table::key_names;
use crate::ast::{CreateTable, PrimaryKey};
use crate::error::CqlError;

/// Refuses what compact tables cannot have.
pub(super) fn check(
    create: &CreateTable<'_>,
    primary_key: &PrimaryKey<'_>,
    columns: &BTreeMap<String, CqlType>,
) -> Result<(), CqlError> {
    let key = key_names(primary_key);
    let others: Vec<_> = columns.iter().filter(|(name, _)| !key.contains(name.as_str())).collect();
    if others.iter().any(|(_, ty)| ty.is_multi_cell()) {
        return Err(CqlError::invalid("Non-frozen collections and UDTs are not supported with COMPACT STORAGE"));
    }
    if create.columns.iter().any(|column| column.is_static) {
        return Err(CqlError::invalid("Static columns are not supported in COMPACT STORAGE tables"));
    }
    match (primary_key.clustering.is_empty(), others.len()) {
        (true, 0) => Err(CqlError::invalid("No definition found that is not part of the PRIMARY KEY")),
        (false, 2..) => Err(CqlError::invalid(format!(
            "COMPACT STORAGE with composite PRIMARY KEY allows no more than one column not part of the PRIMARY KEY \
             (got: {})",
            others.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
        ))),
        _ => Ok(()),
    }
}

/// Flags and columns of a table with COMPACT STORAGE, hidden ones included.
pub(super) fn with_hidden_columns(counter: bool, mut specs: Vec<ColumnSpec>) -> (TableFlags, Vec<ColumnSpec>) {
    let clustering = specs.iter().filter(|spec| spec.kind == ColumnKind::Clustering).count();
    let flags = TableFlags { compound: clustering > 1, counter, dense: clustering > 0, super_: false };
    let value =
        free_name(&specs, std::iter::once("value".to_owned()).chain((1..).map(|number| format!("value{number}"))));
    let hidden = |name, kind, ty| ColumnSpec { name, kind, position: 0, ty, reversed: false };
    if clustering == 0 {
        let column = free_name(&specs, (1..).map(|number| format!("column{number}")));
        for spec in specs.iter_mut().filter(|spec| spec.kind == ColumnKind::Regular) {
            spec.kind = ColumnKind::Static;
        }
        specs.push(hidden(column, ColumnKind::Clustering, CqlType::Text));
        specs.push(hidden(value, ColumnKind::Regular, if counter { CqlType::Counter } else { CqlType::Blob }));
    } else if specs.iter().all(|spec| spec.kind != ColumnKind::Regular) {
        specs.push(hidden(value, ColumnKind::Regular, CqlType::Empty));
    }
    (flags, specs)
}

/// The table without COMPACT STORAGE: what it has stays as it is stored, and what was hidden shows.
pub(super) fn without_compact_storage(table: &TableMetadata, context: &DdlContext) -> Result<TableMetadata, CqlError> {
    if !context.switches.drop_compact_storage {
        return Err(CqlError::invalid("DROP COMPACT STORAGE is disabled. Enable in cassandra.yaml to use."));
    }
    if !table.is_compact() {
        return Err(CqlError::invalid("Cannot DROP COMPACT STORAGE on table without COMPACT STORAGE"));
    }
    let mut altered = table.clone();
    altered.flags = TableFlags { counter: table.flags.counter, ..TableFlags::COMPOUND };
    Ok(altered)
}

fn free_name(specs: &[ColumnSpec], mut names: impl Iterator<Item = String>) -> String {
    let taken: BTreeSet<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    names.find(|name| !taken.contains(name.as_str())).expect("the names have no end")
}
