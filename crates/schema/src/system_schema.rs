//! Keyspaces, tables and types as rows of the `system_schema` tables, and back.
//!
//! The rows are plain values: `cluster` turns them into mutations and reads them back from storage.
//! Every column of these tables is simple (their collections are frozen), so a cell is a name and a
//! value. Agrees with `org.apache.cassandra.schema.SchemaKeyspace`.
//!
//! * [`rows_of`]: a keyspace as rows;
//! * [`diff`]: what to write when a keyspace changes;
//! * [`Schema::from_rows`]: the whole schema from the stored rows;
//! * [`Schema::with_rows`]: some keyspaces of a schema read again.
//!
//! Triggers are not executed. Their rows, and those of functions, are kept unchanged with the
//! keyspace or table that they belong to.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use types::{CqlType, UserType, literal};

use crate::{
    ColumnMask, ColumnMetadata, DroppedColumn, IndexMetadata, KeyspaceMetadata, TableMetadata, TableParams,
    ViewDefinition, system, system_schema::values::*, type_text,
};

mod decode;
pub mod values;

pub use crate::schema_row::{SchemaRow, SchemaTable, SchemaWrite};
pub use decode::LoadedSchema;

/// All rows that describe a keyspace.
pub fn rows_of(keyspace: &KeyspaceMetadata) -> Vec<SchemaRow> {
    let mut rows = vec![keyspace_row(keyspace)];
    rows.extend(keyspace.user_types.values().map(|udt| type_row(&keyspace.name, udt)));
    rows.extend(keyspace.function_rows.iter().cloned());
    rows.extend(keyspace.tables.values().flat_map(|table| rows_of_table(table)));
    rows
}

/// The writes that turn the stored `before` into `after`; None stands for a keyspace that does not
/// exist.
///
/// The row of the keyspace itself is among the writes of every change, because Cassandra sends it
/// along.
pub fn diff(before: Option<&KeyspaceMetadata>, after: Option<&KeyspaceMetadata>) -> Vec<SchemaWrite> {
    match (before, after) {
        (None, None) => Vec::new(),
        (Some(before), None) => SchemaTable::ALL
            .into_iter()
            .map(|table| SchemaWrite::DeletePartition { table, keyspace: before.name.clone() })
            .collect(),
        (None, Some(after)) => create(after),
        (Some(before), Some(after)) if before == after => Vec::new(),
        (Some(before), Some(after)) => diff_content(before, after),
    }
}

fn create(keyspace: &KeyspaceMetadata) -> Vec<SchemaWrite> {
    let types = keyspace.user_types.values().map(|udt| type_row(&keyspace.name, udt));
    let rows = std::iter::once(keyspace_row(keyspace)).chain(types).chain(keyspace.function_rows.iter().cloned());
    let mut writes: Vec<_> = rows.map(put).collect();
    keyspace.tables.values().for_each(|table| create_table(table, &mut writes));
    writes
}

fn diff_content(before: &KeyspaceMetadata, after: &KeyspaceMetadata) -> Vec<SchemaWrite> {
    let mut writes = vec![put(keyspace_row(after))];
    let old_types = before.user_types.values().map(|udt| type_row(&before.name, udt));
    let new_types = after.user_types.values().map(|udt| type_row(&after.name, udt));
    diff_rows(old_types, new_types, &mut writes);
    diff_rows(before.function_rows.iter().cloned(), after.function_rows.iter().cloned(), &mut writes);
    for (name, old) in &before.tables {
        if after.tables.get(name).is_none_or(|new| new.id != old.id) {
            drop_table(old, &mut writes);
        }
    }
    for (name, new) in &after.tables {
        match before.tables.get(name).filter(|old| old.id == new.id) {
            Some(old) if old == new => {}
            Some(old) => alter_table(old, new, &mut writes),
            None => create_table(new, &mut writes),
        }
    }
    writes
}

fn create_table(table: &TableMetadata, writes: &mut Vec<SchemaWrite>) {
    writes.push(put(own_row(table)));
    columns(table).for_each(|column| put_column(table, column, writes));
    writes.extend(rows_beside_columns(table).map(put));
}

/// The row of the table itself is written again with every change, however small.
fn alter_table(old: &TableMetadata, new: &TableMetadata, writes: &mut Vec<SchemaWrite>) {
    let of_columns = |table: &TableMetadata| -> Vec<(SchemaRow, Option<SchemaRow>)> {
        columns(table).map(|column| (column_row(table, column), mask_row_of(table, column))).collect()
    };
    let (before, after) = (of_columns(old), of_columns(new));
    let beside = |table| rows_beside_columns(table).collect::<Vec<_>>();
    // only a user type of one of its columns is another
    if own_row(old) == own_row(new) && before == after && beside(old) == beside(new) {
        return;
    }
    writes.push(put(own_row(new)));
    // looked up: a table may have tens of thousands of columns
    let stay: BTreeSet<_> = after.iter().map(|(row, _)| place(row)).collect();
    writes.extend(before.iter().filter(|(row, _)| !stay.contains(&place(row))).map(|(row, _)| delete(row)));
    let stored: BTreeMap<_, _> = before.iter().map(|rows| (place(&rows.0), rows)).collect();
    for (column, rows) in columns(new).zip(&after) {
        if stored.get(&place(&rows.0)) != Some(&rows) {
            put_column(new, column, writes);
        }
    }
    diff_rows(rows_beside_columns(old), rows_beside_columns(new), writes);
}

/// Masks of the table stay behind, as they do in Cassandra; a table that is created again under
/// its name deletes them.
fn drop_table(table: &TableMetadata, writes: &mut Vec<SchemaWrite>) {
    writes.push(delete(&own_row(table)));
    writes.extend(columns(table).map(|column| delete(&column_row(table, column))));
    writes.extend(rows_beside_columns(table).map(|row| delete(&row)));
}

/// Writes a column with its mask, or deletes the mask that a column of this name may have had.
/// Columns of built-in keyspaces have none, and nodes of earlier versions could not read that.
fn put_column(table: &TableMetadata, column: &ColumnMetadata, writes: &mut Vec<SchemaWrite>) {
    let row = column_row(table, column);
    match mask_row_of(table, column) {
        Some(mask) => writes.push(put(mask)),
        None if system::is_system_keyspace(&table.keyspace) => {}
        None => writes.push(SchemaWrite::DeleteRow {
            table: SchemaTable::ColumnMasks,
            keyspace: row.keyspace.clone(),
            clustering: row.clustering.clone(),
        }),
    }
    writes.push(put(row));
}

fn rows_of_table(table: &TableMetadata) -> impl Iterator<Item = SchemaRow> {
    std::iter::once(own_row(table))
        .chain(columns(table).map(|column| column_row(table, column)))
        .chain(table.masks.iter().map(|(column, mask)| mask_row(table, column, mask)))
        .chain(rows_beside_columns(table))
}

fn own_row(table: &TableMetadata) -> SchemaRow {
    match &table.view {
        Some(view) => view_row(table, view),
        None => table_row(table),
    }
}

fn rows_beside_columns(table: &TableMetadata) -> impl Iterator<Item = SchemaRow> {
    let dropped = table.dropped.values().map(|column| dropped_row(table, column));
    let indexes = table.indexes.values().map(|index| index_row(table, index));
    dropped.chain(indexes).chain(table.trigger_rows.iter().cloned())
}

fn diff_rows(
    old: impl Iterator<Item = SchemaRow>,
    new: impl Iterator<Item = SchemaRow>,
    writes: &mut Vec<SchemaWrite>,
) {
    let (old, new): (Vec<_>, Vec<_>) = (old.collect(), new.collect());
    let stay: BTreeSet<_> = new.iter().map(place).collect();
    writes.extend(old.iter().filter(|row| !stay.contains(&place(row))).map(delete));
    let stored: BTreeMap<_, _> = old.iter().map(|row| (place(row), row)).collect();
    writes.extend(new.iter().filter(|row| stored.get(&place(row)) != Some(row)).cloned().map(put));
}

/// The place of a row in its keyspace: one row is there at most.
fn place(row: &SchemaRow) -> (SchemaTable, &[Bytes]) {
    (row.table, &row.clustering)
}

fn delete(row: &SchemaRow) -> SchemaWrite {
    SchemaWrite::DeleteRow { table: row.table, keyspace: row.keyspace.clone(), clustering: row.clustering.clone() }
}

fn put(row: SchemaRow) -> SchemaWrite {
    let replaces = matches!(row.table, SchemaTable::Tables | SchemaTable::Views);
    SchemaWrite::Put { row, replaces }
}

fn columns(table: &TableMetadata) -> impl Iterator<Item = &ColumnMetadata> {
    [&table.partition_key, &table.clustering, &table.statics, &table.regulars].into_iter().flatten()
}

fn row(table: SchemaTable, keyspace: &str, clustering: &[&str], cells: Vec<(&str, Bytes)>) -> SchemaRow {
    SchemaRow {
        table,
        keyspace: keyspace.to_owned(),
        clustering: clustering.iter().map(|name| text(name)).collect(),
        cells: cells.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    }
}

fn keyspace_row(keyspace: &KeyspaceMetadata) -> SchemaRow {
    let cells = vec![
        ("durable_writes", boolean(keyspace.durable_writes)),
        ("replication", text_map(&keyspace.replication.as_map())),
    ];
    row(SchemaTable::Keyspaces, &keyspace.name, &[], cells)
}

fn type_row(keyspace: &str, udt: &UserType) -> SchemaRow {
    let cells = vec![
        ("field_names", text_list(udt.fields.iter().map(|(name, _)| name.clone()))),
        ("field_types", text_list(udt.fields.iter().map(|(_, ty)| type_text::print(ty)))),
    ];
    row(SchemaTable::Types, keyspace, &[&udt.name], cells)
}

fn table_row(table: &TableMetadata) -> SchemaRow {
    let mut cells = vec![("id", Bytes::copy_from_slice(&table.id.0)), ("flags", text_list(table.flags.names()))];
    params_cells(&table.params, &mut cells);
    row(SchemaTable::Tables, &table.keyspace, &[&table.name], cells)
}

fn view_row(table: &TableMetadata, view: &ViewDefinition) -> SchemaRow {
    let mut cells = vec![
        ("include_all_columns", boolean(view.include_all_columns)),
        ("base_table_id", Bytes::copy_from_slice(&view.base_id.0)),
        ("base_table_name", text(&view.base_name)),
        ("where_clause", text(&view.where_clause)),
        ("id", Bytes::copy_from_slice(&table.id.0)),
    ];
    params_cells(&table.params, &mut cells);
    row(SchemaTable::Views, &table.keyspace, &[&table.name], cells)
}

/// Columns that a 4.0 node would not know are written only where they differ from the default.
fn params_cells(params: &TableParams, cells: &mut Vec<(&str, Bytes)>) {
    cells.extend([
        ("bloom_filter_fp_chance", double(params.bloom_filter_fp_chance)),
        ("comment", text(&params.comment)),
        ("dclocal_read_repair_chance", double(0.0)),
        ("default_time_to_live", int(params.default_time_to_live)),
        ("gc_grace_seconds", int(params.gc_grace_seconds)),
        ("max_index_interval", int(params.max_index_interval)),
        ("memtable_flush_period_in_ms", int(params.memtable_flush_period_in_ms)),
        ("min_index_interval", int(params.min_index_interval)),
        ("read_repair_chance", double(0.0)),
        ("speculative_retry", text(&params.speculative_retry)),
        ("additional_write_policy", text(&params.additional_write_policy)),
        ("crc_check_chance", double(params.crc_check_chance)),
        ("caching", text_map(&params.caching)),
        ("compaction", text_map(&params.compaction)),
        ("compression", text_map(&params.compression)),
        ("read_repair", text(&params.read_repair)),
        ("extensions", blob_map(&params.extensions)),
    ]);
    let switches = [
        ("cdc", params.cdc),
        ("allow_auto_snapshot", params.allow_auto_snapshot),
        ("incremental_backups", params.incremental_backups),
    ];
    cells.extend(switches.into_iter().filter_map(|(name, value)| Some((name, boolean(value?)))));
    cells.extend(params.memtable.as_ref().map(|name| ("memtable", text(name))));
}

fn column_row(table: &TableMetadata, column: &ColumnMetadata) -> SchemaRow {
    let position = if column.is_primary_key() { i32::try_from(column.position).unwrap_or(i32::MAX) } else { -1 };
    let order = match (column.kind, column.reversed) {
        (crate::ColumnKind::Clustering, true) => "desc",
        (crate::ColumnKind::Clustering, false) => "asc",
        _ => "none",
    };
    let cells = vec![
        ("column_name_bytes", text(&column.name)),
        ("kind", text(column.kind.name())),
        ("position", int(position)),
        ("clustering_order", text(order)),
        ("type", text(&type_text::print(&column.ty))),
    ];
    row(SchemaTable::Columns, &table.keyspace, &[&table.name, &column.name], cells)
}

fn dropped_row(table: &TableMetadata, column: &DroppedColumn) -> SchemaRow {
    let ty: CqlType = type_text::expand_user_types(&column.ty);
    let cells = vec![
        ("dropped_time", bigint(column.dropped_time.div_euclid(1000))),
        ("type", text(&type_text::print(&ty))),
        ("kind", text(column.kind.name())),
    ];
    row(SchemaTable::DroppedColumns, &table.keyspace, &[&table.name, &column.name], cells)
}

fn index_row(table: &TableMetadata, index: &IndexMetadata) -> SchemaRow {
    let cells = vec![("kind", text(index.kind.name())), ("options", text_map(&index.options))];
    row(SchemaTable::Indexes, &table.keyspace, &[&table.name, &index.name], cells)
}

fn mask_row_of(table: &TableMetadata, column: &ColumnMetadata) -> Option<SchemaRow> {
    table.masks.get(&column.name).map(|mask| mask_row(table, &column.name, mask))
}

/// The row of a mask. A list holds no null, so a second list says which arguments are null.
fn mask_row(table: &TableMetadata, column: &str, mask: &ColumnMask) -> SchemaRow {
    let arguments = || mask.argument_types.iter().zip(&mask.arguments);
    let value = |(ty, value): (&CqlType, &Option<Bytes>)| {
        value.as_ref().map(|value| literal::to_plain_text(ty, value)).unwrap_or_default()
    };
    let cells = vec![
        ("function_keyspace", text(&mask.keyspace)),
        ("function_name", text(&mask.function)),
        ("function_argument_types", text_list(mask.argument_types.iter().map(type_text::print))),
        ("function_argument_values", text_list(arguments().map(value))),
        ("function_argument_nulls", boolean_list(arguments().map(|(_, value)| value.is_none()))),
    ];
    row(SchemaTable::ColumnMasks, &table.keyspace, &[&table.name, column], cells)
}

#[cfg(test)]
mod tests;
