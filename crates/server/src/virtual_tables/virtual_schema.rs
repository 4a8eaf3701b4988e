//! `system_virtual_schema`: the schema of the virtual tables, in the form of `system_schema`.

use schema::system_schema::{SchemaRow, SchemaTable, rows_of};

use super::VirtualTable;
use super::row::VirtualRow;
use crate::services::Services;

pub(super) const TABLES: &[VirtualTable] = &[
    of_schema("columns", |services| rows(services, "columns")),
    of_schema("keyspaces", |services| rows(services, "keyspaces")),
    of_schema("tables", |services| rows(services, "tables")),
];

const fn of_schema(name: &'static str, rows: super::MakeRows) -> VirtualTable {
    VirtualTable { keyspace: "system_virtual_schema", ..VirtualTable::of_views(name, rows) }
}

/// The rows of one of its tables.
fn rows(services: &Services, table: &str) -> Vec<VirtualRow> {
    let schema = services.node.schema();
    let of_keyspaces = schema.keyspaces.values().filter(|keyspace| keyspace.is_virtual);
    of_keyspaces.flat_map(|keyspace| rows_of(keyspace)).filter_map(|row| made_of(row, table)).collect()
}

fn made_of(row: SchemaRow, table: &str) -> Option<VirtualRow> {
    let wanted: (&[&'static str], &[&'static str]) = match (row.table, table) {
        (SchemaTable::Keyspaces, "keyspaces") => (&[], &[]),
        (SchemaTable::Tables, "tables") => (&["table_name"], &["comment"]),
        (SchemaTable::Columns, "columns") => {
            (&["table_name", "column_name"], &["clustering_order", "column_name_bytes", "kind", "position", "type"])
        }
        _ => return None,
    };
    let mut made = VirtualRow::default().text("keyspace_name", &row.keyspace);
    for (name, value) in wanted.0.iter().zip(row.clustering) {
        made = made.bytes(name, value);
    }
    for name in wanted.1 {
        if let Some((_, value)) = row.cells.iter().find(|(cell, _)| cell == name) {
            made = made.bytes(name, value.clone());
        }
    }
    Some(made)
}
