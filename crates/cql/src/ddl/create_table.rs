//! CREATE TABLE: first what can be seen in the statement alone, then what needs the keyspace's
//! types.
//!
//! The checks stand in the order in which Cassandra makes them, since a statement with two mistakes
//! must be refused for the same one. A table may have tens of thousands of columns, in its key as
//! well: names are looked up in sets, otherwise one statement would hold a worker for seconds.
//!
//! Must agree with: `CreateTableStatement`, `TableMetadata.validate`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schema::table::ColumnSpec;
use schema::{ColumnKind, KeyspaceMetadata, Options, Schema, TableFlags, TableKind, TableMetadata, TableParams};
use types::CqlType;

use super::type_name::CheckedTypes;
use super::{
    ChangedSchema, DdlContext, SchemaAction, SchemaObject, check_changeable, compact, event, existing_keyspace,
    is_word, keyspace_of, masks, properties, refused, type_name,
};
use crate::ast::{ColumnDefinition, CreateTable, Ident, PrimaryKey};
use crate::error::CqlError;
use crate::result::{SchemaChangeKind, SchemaTarget};

/// The longest name of a table: with the table's id it is the name of a directory.
const TABLE_NAME_SIZE_MAX: usize = 222;
/// The most columns of a new table. Ids of columns have 16 bits; the other half of them is for
/// columns that come later.
const COLUMNS_MAX: usize = 1 << 15;

pub(super) fn create(
    create: &CreateTable<'_>,
    context: &DdlContext,
    schema: &Schema,
) -> Result<ChangedSchema, CqlError> {
    let (keyspace_name, name) = (keyspace_of(&create.name, context)?, create.name.name.as_str());
    let primary_key = check_form(create)?;
    check_changeable(keyspace_name, SchemaAction::Create, SchemaObject::AllTables)?;
    let keyspace = existing_keyspace(schema, keyspace_name)?;
    if keyspace.tables.contains_key(name) {
        if create.if_not_exists {
            return Ok(None);
        }
        return Err(CqlError::AlreadyExists {
            keyspace: keyspace_name.to_owned(),
            table: name.to_owned(),
            message: format!("Cannot add already existing table \"{name}\" to keyspace \"{keyspace_name}\""),
        });
    }
    let table = build(create, primary_key, keyspace, context)?;
    check_name(&table)?;
    if schema.table_by_id(table.id).is_some() {
        return Err(CqlError::Config(format!("A table with id {} exists already", table.id)));
    }
    let mut after = keyspace.clone();
    after.tables.insert(name.to_owned(), Arc::new(table));
    let event = event(SchemaChangeKind::Created, SchemaTarget::Table, keyspace_name, name);
    Ok(Some((schema.with_keyspace(after), event)))
}

/// The checks that need no schema: each column is declared once and ordered once, and there is one
/// primary key.
pub(super) fn check_form<'s, 'a>(create: &'s CreateTable<'a>) -> Result<&'s PrimaryKey<'a>, CqlError> {
    let name = &create.name;
    let mut names = BTreeSet::new();
    for column in &create.columns {
        if !names.insert(column.name.as_str()) {
            return Err(CqlError::invalid(format!(
                "Duplicate column '{}' declaration for table '{name}'",
                column.name
            )));
        }
    }
    let mut ordered = BTreeSet::new();
    for order in &create.clustering_order {
        if !ordered.insert(order.column.as_str()) {
            return Err(CqlError::invalid(format!(
                "Duplicate column '{}' in CLUSTERING ORDER BY clause for table '{name}'",
                order.column
            )));
        }
    }
    match create.primary_keys.as_slice() {
        [primary_key] => Ok(primary_key),
        [] => Err(CqlError::invalid(format!("No PRIMARY KEY specifed for table '{name}' (exactly one required)"))),
        _ => {
            Err(CqlError::invalid(format!("Multiple PRIMARY KEY specified for table '{name}' (exactly one required)")))
        }
    }
}

fn build(
    create: &CreateTable<'_>,
    primary_key: &PrimaryKey<'_>,
    keyspace: &KeyspaceMetadata,
    context: &DdlContext,
) -> Result<TableMetadata, CqlError> {
    if create.columns.len() > COLUMNS_MAX {
        return Err(CqlError::invalid(format!(
            "Table '{}' may have {COLUMNS_MAX} columns at most, but has {}",
            create.name,
            create.columns.len()
        )));
    }
    masks::check_enabled(create.columns.iter().map(|column| &column.mask), context)?;
    let options = properties::of_table(&create.properties, context)?;
    let mut params = TableParams::create_with(&options, &context.default_compaction).map_err(refused)?;
    params.cdc = params.cdc.take().or(Some(false)).filter(|_| context.switches.cdc);
    let columns = prepare_columns(create, keyspace)?;
    let masks = masks::of_columns(&create.columns, &columns, keyspace, create.name.name.as_str())?;
    check_primary_key(create, primary_key, &columns)?;
    let is_compact = create.compact_storage;
    // DESCRIBE shows the order of a hidden column
    if !(is_compact && context.restoring && primary_key.clustering.is_empty()) {
        check_clustering_order(create, primary_key)?;
    }
    if is_compact {
        compact::check(create, primary_key, &columns)?;
    } else if primary_key.clustering.is_empty() && create.columns.iter().any(|column| column.is_static) {
        return Err(CqlError::invalid(
            "Static columns are only useful (and thus allowed) if the table has at least one clustering column",
        ));
    }
    let counter = create.columns.iter().any(|column| column.type_name.is_counter());
    let by_class = columns.iter().find(|(_, ty)| !counter && ty.is_counter());
    if let Some((column, _)) = by_class {
        return Err(CqlError::Config(format!(
            "{}.{}: Cannot have a counter column (\"{column}\") in a non counter table",
            keyspace.name, create.name.name
        )));
    }
    if counter {
        check_counters(primary_key, &columns, &params)?;
    }
    let specs = specs(create, primary_key, columns);
    let (flags, specs) = match is_compact {
        true => compact::with_hidden_columns(counter, specs),
        false => (TableFlags { counter, ..TableFlags::COMPOUND }, specs),
    };
    let id = table_id(&options, context)?;
    let (keyspace, name) = (&keyspace.name, create.name.name.as_str());
    let mut table =
        TableMetadata::new(id, keyspace, name, TableKind::Regular, flags, params, specs, BTreeMap::new(), None);
    table.masks = masks;
    Ok(table)
}

fn table_id(options: &Options, context: &DdlContext) -> Result<schema::TableId, CqlError> {
    Ok(TableParams::table_id(options).map_err(refused)?.unwrap_or(context.new_table_id))
}

/// The types of all columns, by name.
fn prepare_columns(
    create: &CreateTable<'_>,
    keyspace: &KeyspaceMetadata,
) -> Result<BTreeMap<String, CqlType>, CqlError> {
    let (mut columns, mut types) = (BTreeMap::new(), CheckedTypes::default());
    for column in &create.columns {
        let ty = types.prepare(&type_name::normalize(&column.type_name), keyspace)?;
        columns.insert(column.name.as_str().to_owned(), ty);
    }
    if columns.values().any(has_unfrozen_fields) {
        return Err(CqlError::invalid("Non-frozen UDTs with nested non-frozen collections are not supported"));
    }
    Ok(columns)
}

/// A user type, not frozen, with a field that is stored cell by cell.
pub(super) fn has_unfrozen_fields(ty: &CqlType) -> bool {
    matches!(ty, CqlType::Udt(udt, false) if udt.fields.iter().any(|(_, field)| field.is_multi_cell()))
}

fn check_primary_key(
    create: &CreateTable<'_>,
    primary_key: &PrimaryKey<'_>,
    columns: &BTreeMap<String, CqlType>,
) -> Result<(), CqlError> {
    let table = create.name.name.as_str();
    let statics = create.columns.iter().filter(|column| column.is_static);
    let statics: BTreeSet<&str> = statics.map(|column| column.name.as_str()).collect();
    let mut seen = BTreeSet::new();
    for column in primary_key.partition.iter().chain(&primary_key.clustering) {
        let Some(ty) = columns.get(column.as_str()) else {
            return Err(CqlError::invalid(format!(
                "Unknown column '{column}' referenced in PRIMARY KEY for table '{table}'"
            )));
        };
        if !seen.insert(column.as_str()) {
            return Err(CqlError::invalid(format!(
                "Duplicate column '{column}' in PRIMARY KEY clause for table '{table}'"
            )));
        }
        check_key_type(column, ty)?;
        if statics.contains(column.as_str()) {
            return Err(CqlError::invalid(format!("Static column '{column}' cannot be part of the PRIMARY KEY")));
        }
    }
    Ok(())
}

/// The names of the columns of a key.
pub(super) fn key_names<'k>(primary_key: &'k PrimaryKey<'_>) -> BTreeSet<&'k str> {
    primary_key.partition.iter().chain(&primary_key.clustering).map(Ident::as_str).collect()
}

fn check_key_type(column: &Ident<'_>, ty: &CqlType) -> Result<(), CqlError> {
    if ty.is_multi_cell() {
        return Err(CqlError::invalid(match ty {
            CqlType::Udt(udt, _) => format!(
                "Invalid non-frozen user-defined type \"{}.{}\" for PRIMARY KEY column '{column}'",
                udt.keyspace, udt.name
            ),
            _ => {
                format!("Invalid non-frozen collection type {} for PRIMARY KEY column '{column}'", ty.cql_name())
            }
        }));
    }
    if ty.is_counter() {
        return Err(CqlError::invalid(format!("counter type is not supported for PRIMARY KEY column '{column}'")));
    }
    if ty.references_duration() {
        return Err(CqlError::invalid(format!("duration type is not supported for PRIMARY KEY column '{column}'")));
    }
    Ok(())
}

/// The order must name the first clustering columns, in their order, and nothing else.
fn check_clustering_order(create: &CreateTable<'_>, primary_key: &PrimaryKey<'_>) -> Result<(), CqlError> {
    let clustering = &primary_key.clustering;
    let names: BTreeSet<&str> = clustering.iter().map(Ident::as_str).collect();
    let ordered: Vec<&Ident<'_>> = create.clustering_order.iter().map(|order| &order.column).collect();
    let strangers: Vec<&str> =
        ordered.iter().map(|column| column.as_str()).filter(|column| !names.contains(column)).collect();
    if !strangers.is_empty() {
        return Err(CqlError::invalid(format!(
            "Only clustering key columns can be defined in CLUSTERING ORDER directive: [{}] are not clustering columns",
            strangers.join(", ")
        )));
    }
    for (column, expected) in ordered.iter().zip(clustering) {
        if *column == expected {
            continue;
        }
        return Err(CqlError::invalid(if ordered.contains(&expected) {
            format!(
                "The order of columns in the CLUSTERING ORDER directive must match that of the clustering columns \
                 ({expected} must appear before {column})"
            )
        } else {
            format!("Missing CLUSTERING ORDER for column {expected}")
        }));
    }
    Ok(())
}

fn check_counters(
    primary_key: &PrimaryKey<'_>,
    columns: &BTreeMap<String, CqlType>,
    params: &TableParams,
) -> Result<(), CqlError> {
    let key = key_names(primary_key);
    if columns.iter().any(|(name, ty)| !key.contains(name.as_str()) && !ty.is_counter()) {
        return Err(CqlError::invalid("Cannot mix counter and non counter columns in the same table"));
    }
    if params.default_time_to_live > 0 {
        return Err(CqlError::invalid("Cannot set default_time_to_live on a table with counters"));
    }
    Ok(())
}

fn specs(
    create: &CreateTable<'_>,
    primary_key: &PrimaryKey<'_>,
    mut columns: BTreeMap<String, CqlType>,
) -> Vec<ColumnSpec> {
    let mut specs = Vec::new();
    let defined: BTreeMap<&str, &ColumnDefinition<'_>> =
        create.columns.iter().map(|column| (column.name.as_str(), column)).collect();
    let descending = create.clustering_order.iter().filter(|order| order.descending);
    let descending: BTreeSet<&str> = descending.map(|order| order.column.as_str()).collect();
    let keys = [(ColumnKind::PartitionKey, &primary_key.partition), (ColumnKind::Clustering, &primary_key.clustering)];
    for (kind, names) in keys {
        for (position, name) in names.iter().enumerate() {
            let ty = columns.remove(name.as_str()).expect("key columns were checked to exist once");
            let by_class = defined.get(name.as_str()).is_some_and(|column| type_name::is_reversed(&column.type_name));
            let reversed = kind == ColumnKind::Clustering && (descending.contains(name.as_str()) || by_class);
            let name = name.as_str().to_owned();
            specs.push(ColumnSpec { name, kind, position, ty, reversed });
        }
    }
    for column in &create.columns {
        if let Some(ty) = columns.remove(column.name.as_str()) {
            let kind = if column.is_static { ColumnKind::Static } else { ColumnKind::Regular };
            let name = column.name.as_str().to_owned();
            specs.push(ColumnSpec { name, kind, position: 0, ty, reversed: false });
        }
    }
    specs
}

pub(super) fn check_name(table: &TableMetadata) -> Result<(), CqlError> {
    let name = &table.name;
    let refuse = |why: String| Err(CqlError::Config(format!("{}.{name}: {why}", table.keyspace)));
    if !is_word(name) {
        return refuse(format!(
            "Table name must not be empty or not contain non-alphanumeric-underscore characters (got \"{name}\")"
        ));
    }
    if name.len() > TABLE_NAME_SIZE_MAX {
        return refuse(format!(
            "Table name must not be more than {TABLE_NAME_SIZE_MAX} characters long (got {} characters for \"{name}\")",
            name.len()
        ));
    }
    Ok(())
}
