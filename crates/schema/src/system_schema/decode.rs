//! Reads the whole schema from the rows of the schema tables.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use types::extent::Extents;
use types::{UserType, literal};

use super::values::*;
use super::{SchemaRow, SchemaTable};
use crate::error::{Result, SchemaError};
use crate::index::IndexKind;
use crate::params::speculative;
use crate::table::ColumnSpec;
use crate::{
    ColumnKind, ColumnMask, DroppedColumn, IndexMetadata, KeyspaceMetadata, LeftOutTable, Replication, Schema,
    TableFlags, TableId, TableKind, TableMetadata, TableParams, ViewDefinition, system, type_text,
};

/// The result of reading the schema tables.
#[derive(Debug)]
pub struct LoadedSchema {
    /// The schema, with the built-in keyspaces. Its version is that of the schema before.
    pub schema: Schema,
    /// Elements that have rows but are not executed yet, for instance "function ks.name".
    pub ignored: Vec<String>,
    /// Elements that cannot be read, each with the reason. A table that was in force before stays
    /// as it was; everything else is left out.
    ///
    /// Rows that other nodes write may be so: one node drops a table while another alters it, and
    /// what is left of both is a table without columns.
    pub unreadable: Vec<String>,
    /// The tables among these that are left out although their rows have a partition key, each
    /// with the reason: nobody has dropped them, and their data is still wanted. `schema` has them
    /// by name ([`Schema::left_out`]).
    pub left_out: BTreeMap<TableId, String>,
}

type RowsByTable<'a> = BTreeMap<SchemaTable, TableRows<'a>>;

/// The rows of a keyspace in one table of the schema.
#[derive(Default)]
struct TableRows<'a> {
    all: Vec<Row<'a>>,
    /// The rows by the name that their clustering begins with, such as that of a table: the rows
    /// of all columns are not passed for each table of a keyspace.
    by_name: BTreeMap<&'a [u8], Vec<Row<'a>>>,
}

impl<'a> TableRows<'a> {
    fn add(&mut self, row: Row<'a>) {
        self.all.push(row);
        if let Some(name) = row.0.clustering.first() {
            self.by_name.entry(name).or_default().push(row);
        }
    }
}

impl Schema {
    /// The schema that these rows describe, on top of the built-in keyspaces. `previous` is the
    /// schema before the change: tables that it has keep the ids of their columns.
    ///
    /// Rows of keyspaces that are local to the node are skipped, because the program defines them.
    pub fn from_rows(rows: impl IntoIterator<Item = SchemaRow>, previous: Option<&Schema>) -> LoadedSchema {
        let rows: Vec<SchemaRow> = rows.into_iter().collect();
        let names = rows.iter().map(|row| row.keyspace.clone()).collect();
        let base = previous.map_or_else(system::schema, Schema::built_in_only);
        read_keyspaces(base, previous, &names, &rows)
    }

    /// This schema, in which the keyspaces of these names are what the rows describe. A keyspace
    /// without rows is gone, unless it is built in.
    pub fn with_rows(&self, names: &BTreeSet<String>, rows: &[SchemaRow]) -> LoadedSchema {
        read_keyspaces(self.clone(), Some(self), names, rows)
    }

    /// The built-in keyspaces of this schema, without those of users.
    fn built_in_only(&self) -> Schema {
        let mut schema = self.clone();
        schema.keyspaces.retain(|name, _| system::is_system_keyspace(name));
        schema.tables_by_id.retain(|_, table| system::is_system_keyspace(&table.keyspace));
        schema.left_out.clear();
        schema
    }
}

fn read_keyspaces(
    mut schema: Schema,
    previous: Option<&Schema>,
    names: &BTreeSet<String>,
    rows: &[SchemaRow],
) -> LoadedSchema {
    let mut keyspaces: BTreeMap<&str, RowsByTable<'_>> = BTreeMap::new();
    for row in rows.iter().filter(|row| names.contains(&row.keyspace)) {
        keyspaces.entry(&row.keyspace).or_default().entry(row.table).or_default().add(Row(row));
    }
    let (mut ignored, mut unreadable, mut left_out) = (Vec::new(), Vec::new(), BTreeMap::new());
    schema.left_out.retain(|(keyspace, _), _| !names.contains(keyspace));
    let mut by_name = BTreeMap::new();
    let of_users =
        |name: &&String| !system::is_local_keyspace(name) && !system::VIRTUAL_KEYSPACES.contains(&name.as_str());
    for name in names.iter().filter(of_users) {
        let previous = previous.and_then(|schema| schema.keyspace(name)).map(Arc::as_ref);
        let left_out = LeftOutTables { reasons: &mut left_out, by_name: &mut by_name };
        let (ignored, unreadable) = (&mut ignored, &mut unreadable);
        let mut reader = KeyspaceReader { name, previous, extents: Extents::default(), ignored, unreadable, left_out };
        match keyspaces.get(name.as_str()).map(|rows| (rows, reader.keyspace(rows))) {
            Some((_, Ok(Some(keyspace)))) => schema.put_keyspace(with_built_in_tables(keyspace)),
            Some((rows, Err(error))) => reader.leave_out_all(rows, &error),
            None | Some((_, Ok(None))) if system::is_system_keyspace(name) => {}
            None | Some((_, Ok(None))) => schema = schema.without_keyspace(name),
        }
    }
    // tables of a keyspace that was in force and cannot be read any more stay in force
    by_name.retain(|(keyspace, table): &(String, String), _| schema.table(keyspace, table).is_none());
    schema.left_out.append(&mut by_name);
    LoadedSchema { schema, ignored, unreadable, left_out }
}

/// A directory or a ring of an earlier version lacks tables that this program uses, and columns of
/// them. Columns that it has beyond those stay. Agrees with
/// `SchemaTransformations.updateSystemKeyspace`.
fn with_built_in_tables(mut keyspace: KeyspaceMetadata) -> KeyspaceMetadata {
    if system::generation(&keyspace.name).is_some() {
        let built_in = system::keyspaces().into_iter().find(|built_in| built_in.name == keyspace.name);
        for (name, table) in built_in.into_iter().flat_map(|built_in| built_in.tables) {
            match keyspace.tables.get_mut(&name) {
                Some(stored) if stored.id == table.id => add_columns(stored, &table),
                Some(_) => {}
                None => {
                    keyspace.tables.insert(name, table);
                }
            }
        }
    }
    keyspace
}

/// Adds the columns to a stored table that the built-in one has beyond its own.
fn add_columns(stored: &mut Arc<TableMetadata>, built_in: &TableMetadata) {
    let is_lacking = |spec: &ColumnSpec| {
        matches!(spec.kind, ColumnKind::Static | ColumnKind::Regular)
            && stored.column_by_name(&spec.name).is_none()
            && !stored.dropped.contains_key(&spec.name)
    };
    let lacking: Vec<ColumnSpec> = built_in.specs().into_iter().filter(is_lacking).collect();
    if lacking.is_empty() {
        return;
    }
    let specs = [stored.specs(), lacking].concat();
    let (params, dropped) = (stored.params.clone(), stored.dropped.clone());
    let (keyspace, name) = (&built_in.keyspace, &built_in.name);
    let (id, kind, flags) = (stored.id, stored.kind, stored.flags);
    let whole = TableMetadata::new(id, keyspace, name, kind, flags, params, specs, dropped, Some(&**stored));
    *stored = Arc::new(whole);
}

/// A row, with the functions that read its cells and name the row in errors.
#[derive(Clone, Copy)]
struct Row<'a>(&'a SchemaRow);

impl<'a> Row<'a> {
    fn cell(self, name: &str) -> Option<&'a Bytes> {
        self.0.cells.iter().find(|(cell, _)| cell == name).map(|(_, value)| value)
    }

    /// Reads a column that must be present and readable.
    fn required<T>(self, name: &str, read: impl Fn(&[u8]) -> Option<T>) -> Result<T> {
        self.cell(name).and_then(|value| read(value)).ok_or_else(|| self.corrupt(name))
    }

    /// Reads a column that may be null.
    fn optional<T>(self, name: &str, read: impl Fn(&[u8]) -> Option<T>) -> Result<Option<T>> {
        match self.cell(name) {
            None => Ok(None),
            Some(value) => read(value).map(Some).ok_or_else(|| self.corrupt(name)),
        }
    }

    fn key(self, index: usize) -> Result<String> {
        let value = self.0.clustering.get(index).and_then(|value| read_text(value));
        value.ok_or_else(|| self.corrupt("its clustering"))
    }

    fn corrupt(self, column: &str) -> SchemaError {
        let names: Vec<_> = self.0.clustering.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        SchemaError::Corrupt(format!(
            "system_schema.{}: {} of {}.{} is missing or unreadable",
            self.0.table.name(),
            column,
            self.0.keyspace,
            names.join(".")
        ))
    }
}

fn rows_in<'a, 'b>(rows: &'b RowsByTable<'a>, table: SchemaTable) -> impl Iterator<Item = Row<'a>> + 'b {
    rows.get(&table).into_iter().flat_map(|rows| &rows.all).copied()
}

/// The rows whose clustering begins with a name.
fn rows_under<'a>(rows: &RowsByTable<'a>, table: SchemaTable, name: &[u8]) -> impl Iterator<Item = Row<'a>> {
    rows.get(&table).and_then(|rows| rows.by_name.get(name)).into_iter().flatten().copied()
}

fn read_id(bytes: &[u8]) -> Option<TableId> {
    bytes.try_into().ok().map(TableId)
}

/// Whether rows name a column of the partition key of a table. They do not where one node has
/// dropped the table while another altered it.
fn has_partition_key(table: Row<'_>, rows: &RowsByTable<'_>) -> bool {
    let Some(name) = table.0.clustering.first() else { return false };
    rows_under(rows, SchemaTable::Columns, name).any(|column| column.0.names_partition_key())
}

/// The tables that are left out, as they are found.
struct LeftOutTables<'a> {
    /// For each id the reason.
    reasons: &'a mut BTreeMap<TableId, String>,
    /// By the names of keyspace and table.
    by_name: &'a mut BTreeMap<(String, String), LeftOutTable>,
}

/// A keyspace that is read, and what is said of its rows.
struct KeyspaceReader<'a> {
    name: &'a str,
    previous: Option<&'a KeyspaceMetadata>,
    /// The extents of its user types: types that are too large are not taken.
    extents: Extents,
    ignored: &'a mut Vec<String>,
    unreadable: &'a mut Vec<String>,
    left_out: LeftOutTables<'a>,
}

impl KeyspaceReader<'_> {
    /// The keyspace cannot be read, and all of its tables are left out with it.
    fn leave_out_all(&mut self, rows: &RowsByTable<'_>, error: &SchemaError) {
        self.unreadable.push(error.message().to_owned());
        for row in rows_in(rows, SchemaTable::Tables).chain(rows_in(rows, SchemaTable::Views)) {
            self.leave_out(row, rows, error);
        }
    }

    fn leave_out(&mut self, row: Row<'_>, rows: &RowsByTable<'_>, error: &SchemaError) {
        let id = row.cell("id").and_then(|id| read_id(id));
        let Some(id) = id.filter(|_| has_partition_key(row, rows)) else { return };
        self.left_out.reasons.insert(id, error.message().to_owned());
        let Ok(name) = row.key(0) else { return };
        let table = LeftOutTable {
            id,
            is_view: row.0.table == SchemaTable::Views,
            base_id: row.cell("base_table_id").and_then(|id| read_id(id)),
            allow_auto_snapshot: row.cell("allow_auto_snapshot").and_then(|switch| read_boolean(switch)),
        };
        self.left_out.by_name.insert((self.name.to_owned(), name), table);
    }

    /// `None`: the keyspace has no row of its own, which is what a concurrent DROP KEYSPACE leaves.
    fn keyspace(&mut self, rows: &RowsByTable<'_>) -> Result<Option<KeyspaceMetadata>> {
        let name = self.name;
        let Some(row) = rows_in(rows, SchemaTable::Keyspaces).next() else {
            self.ignored.push(format!("rows of keyspace {name}, which has no row of its own"));
            return Ok(None);
        };
        let replication = Replication::from_stored(row.required("replication", read_text_map)?);
        let mut keyspace = KeyspaceMetadata {
            name: name.to_owned(),
            durable_writes: row.required("durable_writes", read_boolean)?,
            replication: replication.ok_or_else(|| row.corrupt("replication"))?,
            tables: BTreeMap::new(),
            user_types: self.types(rows),
            function_rows: Vec::new(),
            functions: BTreeMap::new(),
            aggregates: BTreeMap::new(),
            is_virtual: false,
        };
        for row in rows_in(rows, SchemaTable::Tables).chain(rows_in(rows, SchemaTable::Views)) {
            if let Some(table) = self.table(row, rows, &keyspace.user_types) {
                keyspace.tables.insert(table.name.clone(), table);
            }
        }
        complete_views(&mut keyspace);
        for table in [SchemaTable::Functions, SchemaTable::Aggregates] {
            for row in rows_in(rows, table) {
                keyspace.function_rows.push(row.0.clone());
            }
        }
        if let Some(previous) = self.previous.filter(|previous| previous.user_types == keyspace.user_types) {
            keyspace.functions = previous.functions.clone();
        }
        self.ignored.extend(keyspace.read_functions());
        for row in rows_in(rows, SchemaTable::Triggers) {
            self.ignored.push(format!("trigger on {name}.{}", row.key(0)?));
        }
        Ok(Some(keyspace))
    }

    fn table(
        &mut self,
        row: Row<'_>,
        rows: &RowsByTable<'_>,
        user_types: &BTreeMap<String, Arc<UserType>>,
    ) -> Option<Arc<TableMetadata>> {
        let name = row.key(0);
        let of_name = |name: &String| self.previous.and_then(|keyspace| keyspace.tables.get(name));
        let previous = name.as_ref().ok().and_then(of_name);
        let read = name.and_then(|name| read_table(&name, row, rows, user_types, previous.map(Arc::as_ref)));
        let bounded = read.and_then(|table| match self.extents.of_all(table.types()).check_stored() {
            Ok(()) => Ok(table),
            Err(why) => Err(SchemaError::Corrupt(format!("The table {}.{}: {why}", table.keyspace, table.name))),
        });
        match bounded {
            Ok(table) => Some(Arc::new(table)),
            Err(error) => {
                self.unreadable.push(error.message().to_owned());
                let id = row.cell("id").and_then(|id| read_id(id));
                let stays = previous.filter(|table| id == Some(table.id)).cloned();
                if stays.is_none() {
                    self.leave_out(row, rows, &error);
                }
                stays
            }
        }
    }

    /// Reads user types in the order of their dependencies: each round takes the types whose
    /// fields are all known.
    fn types(&mut self, rows: &RowsByTable<'_>) -> BTreeMap<String, Arc<UserType>> {
        let mut waiting: Vec<Row<'_>> = rows_in(rows, SchemaTable::Types).collect();
        let mut known: BTreeMap<String, Arc<UserType>> = BTreeMap::new();
        while !waiting.is_empty() {
            let before = waiting.len();
            let mut still = Vec::new();
            for row in waiting {
                match read_type(self.name, row, &known) {
                    Ok(Some(udt)) => {
                        let udt = Arc::new(udt);
                        match self.extents.of_user_type(&udt).check_stored() {
                            Ok(()) => drop(known.insert(udt.name.clone(), udt)),
                            Err(why) => self.unreadable.push(format!("The type {}.{}: {why}", self.name, udt.name)),
                        }
                    }
                    Ok(None) => still.push(row),
                    Err(error) => self.unreadable.push(error.message().to_owned()),
                }
            }
            if still.len() == before {
                self.unreadable.push(format!("Cannot resolve UDTs for keyspace {}: some types are missing", self.name));
                break;
            }
            waiting = still;
        }
        known
    }
}

/// Completes the definitions of views by what only their base tables tell. A view whose base table
/// is not known stays as its row says.
fn complete_views(keyspace: &mut KeyspaceMetadata) {
    let beyond = |view: &TableMetadata| {
        let definition = view.view.as_ref()?;
        let base = keyspace.tables.get(&definition.base_name).filter(|base| base.id == definition.base_id)?;
        view.has_column_in_key_beyond(base).then(|| view.name.clone())
    };
    let beyond: Vec<String> = keyspace.tables.values().filter_map(|table| beyond(table)).collect();
    for name in beyond {
        let table = keyspace.tables.get_mut(&name).map(Arc::make_mut);
        if let Some(view) = table.and_then(|table| table.view.as_mut()) {
            view.has_base_column_in_key = true;
        }
    }
}

fn read_type(keyspace: &str, row: Row<'_>, known: &BTreeMap<String, Arc<UserType>>) -> Result<Option<UserType>> {
    let names = row.required("field_names", read_text_list)?;
    let types = row.required("field_types", read_text_list)?;
    if names.len() != types.len() {
        return Err(row.corrupt("field_types"));
    }
    let types: Option<Vec<_>> =
        types.iter().map(|text| type_text::parse(text, &|name| known.get(name).cloned())).collect();
    let Some(types) = types else { return Ok(None) };
    let fields = names.into_iter().zip(types).collect();
    Ok(Some(UserType { keyspace: keyspace.to_owned(), name: row.key(0)?, fields }))
}

fn read_table(
    name: &str,
    row: Row<'_>,
    rows: &RowsByTable<'_>,
    user_types: &BTreeMap<String, Arc<UserType>>,
    previous: Option<&TableMetadata>,
) -> Result<TableMetadata> {
    let id = row.required("id", read_id)?;
    let view = (row.0.table == SchemaTable::Views).then(|| read_view(row)).transpose()?;
    // the row of a view has no flags
    let mut flags = match &view {
        Some(_) => TableFlags::COMPOUND,
        None => TableFlags::from_names(&row.required("flags", read_text_list)?),
    };
    let of_table = |table| rows_under(rows, table, name.as_bytes());
    let mut specs = Vec::new();
    for column in of_table(SchemaTable::Columns) {
        specs.push(read_column(column, user_types)?);
    }
    if !specs.iter().any(|spec| spec.kind == ColumnKind::PartitionKey) {
        return Err(SchemaError::Corrupt(format!(
            "No partition columns found for table {}.{name} in system_schema.columns",
            row.0.keyspace
        )));
    }
    let mut dropped = BTreeMap::new();
    for column in of_table(SchemaTable::DroppedColumns) {
        let column = read_dropped(column)?;
        dropped.insert(column.name.clone(), column);
    }
    let params = read_params(row)?;
    let previous = previous.filter(|table| table.id == id);
    let kind = if view.is_some() { TableKind::View } else { TableKind::Regular };
    flags.counter |= view.is_some() && specs.iter().any(|spec| spec.ty.is_counter());
    let mut table = TableMetadata::new(id, &row.0.keyspace, name, kind, flags, params, specs, dropped, previous);
    table.view = view;
    table.trigger_rows = of_table(SchemaTable::Triggers).map(|row| row.0.clone()).collect();
    table.masks.clear();
    for mask in of_table(SchemaTable::ColumnMasks) {
        let column = mask.key(1)?;
        // Cassandra leaves the mask of a column that was dropped
        if table.column_by_name(&column).is_some() {
            table.masks.insert(column, read_mask(mask, user_types)?);
        }
    }
    table.indexes.clear();
    for index in of_table(SchemaTable::Indexes) {
        let index = read_index(index)?;
        table.indexes.insert(index.name.clone(), index);
    }
    Ok(table)
}

fn read_view(row: Row<'_>) -> Result<ViewDefinition> {
    Ok(ViewDefinition {
        base_id: row.required("base_table_id", read_id)?,
        base_name: row.required("base_table_name", read_text)?,
        include_all_columns: row.required("include_all_columns", read_boolean)?,
        where_clause: row.required("where_clause", read_text)?,
        has_base_column_in_key: false,
    })
}

fn read_column(row: Row<'_>, user_types: &BTreeMap<String, Arc<UserType>>) -> Result<ColumnSpec> {
    let ty = row.required("type", read_text)?;
    let kind = row.required("kind", read_text)?;
    let name = row.key(1)?;
    // files name the column by these bytes, which are of any type in a table of Thrift: by the text
    // its cells would not be found, and the next compaction would leave them out
    if row.cell("column_name_bytes").is_some_and(|bytes| bytes.as_ref() != name.as_bytes()) {
        return Err(SchemaError::Corrupt(format!(
            "{}.{} has the column {name}, whose name in files is not this text (column_name_bytes): such tables, which \
             Thrift could make, are not served",
            row.0.keyspace,
            row.key(0)?
        )));
    }
    Ok(ColumnSpec {
        name,
        kind: ColumnKind::from_name(&kind).ok_or_else(|| row.corrupt("kind"))?,
        position: usize::try_from(row.required("position", read_int)?).unwrap_or(0),
        ty: type_text::parse(&ty, &|name| user_types.get(name).cloned()).ok_or_else(|| row.corrupt("type"))?,
        reversed: row.required("clustering_order", read_text)? == "desc",
    })
}

fn read_mask(row: Row<'_>, user_types: &BTreeMap<String, Arc<UserType>>) -> Result<ColumnMask> {
    let types = row.required("function_argument_types", read_text_list)?;
    let types: Option<Vec<_>> =
        types.iter().map(|ty| type_text::parse(ty, &|name| user_types.get(name).cloned())).collect();
    let argument_types = types.ok_or_else(|| row.corrupt("function_argument_types"))?;
    let values = row.required("function_argument_values", read_text_list)?;
    let nulls = row.required("function_argument_nulls", read_boolean_list)?;
    if values.len() != argument_types.len() || nulls.len() != values.len() {
        return Err(row.corrupt("function_argument_values"));
    }
    let mut arguments = Vec::with_capacity(values.len());
    for ((value, ty), is_null) in values.iter().zip(&argument_types).zip(nulls) {
        arguments.push(match is_null {
            true => None,
            false => {
                let value = literal::parse_text(ty, value).map_err(|_| row.corrupt("function_argument_values"))?;
                Some(Bytes::from(value))
            }
        });
    }
    let (keyspace, function) =
        (row.required("function_keyspace", read_text)?, row.required("function_name", read_text)?);
    Ok(ColumnMask { keyspace, function, argument_types, arguments })
}

fn read_dropped(row: Row<'_>) -> Result<DroppedColumn> {
    let ty = row.required("type", read_text)?;
    let kind = row.optional("kind", read_text)?;
    let millis = row.required("dropped_time", read_bigint)?;
    Ok(DroppedColumn {
        name: row.key(1)?,
        ty: type_text::parse(&ty, &|_| None).ok_or_else(|| row.corrupt("type"))?,
        kind: kind
            .map_or(Some(ColumnKind::Regular), |kind| ColumnKind::from_name(&kind))
            .ok_or_else(|| row.corrupt("kind"))?,
        dropped_time: millis.saturating_mul(1000),
    })
}

fn read_index(row: Row<'_>) -> Result<IndexMetadata> {
    let kind = row.required("kind", read_text)?;
    Ok(IndexMetadata {
        name: row.key(1)?,
        kind: IndexKind::from_name(&kind).ok_or_else(|| row.corrupt("kind"))?,
        options: row.required("options", read_text_map)?,
    })
}

/// Reads a speculative retry policy in its form of 5.0: Cassandra 3 has written `99PERCENTILE`, and
/// the row of a table stays so until somebody alters the table. A text that is no policy stays.
fn read_policy(bytes: &[u8]) -> Option<String> {
    let text = read_text(bytes)?;
    Some(speculative::normalize(&text).unwrap_or(text))
}

fn read_params(row: Row<'_>) -> Result<TableParams> {
    let additional = row.optional("additional_write_policy", read_policy)?;
    Ok(TableParams {
        comment: row.optional("comment", read_text)?.unwrap_or_default(),
        additional_write_policy: additional.unwrap_or_else(|| "99p".to_owned()),
        allow_auto_snapshot: row.optional("allow_auto_snapshot", read_boolean)?,
        bloom_filter_fp_chance: row.required("bloom_filter_fp_chance", read_double)?,
        caching: row.required("caching", read_text_map)?,
        cdc: row.optional("cdc", read_boolean)?,
        compaction: row.required("compaction", read_text_map)?,
        compression: row.required("compression", read_text_map)?,
        crc_check_chance: row.required("crc_check_chance", read_double)?,
        default_time_to_live: row.required("default_time_to_live", read_int)?,
        extensions: row.optional("extensions", read_blob_map)?.unwrap_or_default(),
        gc_grace_seconds: row.required("gc_grace_seconds", read_int)?,
        incremental_backups: row.optional("incremental_backups", read_boolean)?,
        max_index_interval: row.required("max_index_interval", read_int)?,
        memtable: row.optional("memtable", read_text)?,
        memtable_flush_period_in_ms: row.required("memtable_flush_period_in_ms", read_int)?,
        min_index_interval: row.required("min_index_interval", read_int)?,
        read_repair: row.optional("read_repair", read_text)?.unwrap_or_else(|| "BLOCKING".to_owned()),
        speculative_retry: row.required("speculative_retry", read_policy)?,
    })
}
