//! ALTER TABLE: columns added, dropped, renamed; options.
//!
//! A changed table is built anew from the specs of its columns; those that stay keep their ids, so
//! that rows in memory stay readable. A dropped column is remembered with its time: what was
//! written to it before is ignored, also when it returns.
//!
//! Must agree with: `AlterTableStatement`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schema::table::ColumnSpec;
use schema::{
    ColumnKind, ColumnMetadata, DroppedColumn, KeyspaceMetadata, Schema, TableKind, TableMetadata, TableParams,
};
use types::CqlType;

use super::create_table::has_unfrozen_fields;
use super::type_name::CheckedTypes;
use super::{
    ChangedSchema, DdlContext, SchemaAction, SchemaObject, check_changeable, compact, event, keyspace_of, masks,
    properties, refused, type_name, view,
};
use crate::ast::{AlterTable, ColumnDefinition, Ident, Property, TableAlteration};
use crate::compatible;
use crate::error::CqlError;
use crate::result::{SchemaChangeKind, SchemaTarget};

pub(super) fn alter(alter: &AlterTable<'_>, context: &DdlContext, schema: &Schema) -> Result<ChangedSchema, CqlError> {
    let (keyspace_name, name) = (keyspace_of(&alter.name, context)?, alter.name.name.as_str());
    check_changeable(keyspace_name, SchemaAction::Alter, SchemaObject::Table(name))?;
    match &alter.alteration {
        TableAlteration::MaskColumn { mask, .. } => masks::check_enabled(std::iter::once(mask), context)?,
        TableAlteration::Add { columns, .. } => {
            masks::check_enabled(columns.iter().map(|column| &column.mask), context)?;
        }
        _ => {}
    }
    let found = schema.keyspace(keyspace_name).and_then(|keyspace| Some((keyspace, keyspace.tables.get(name)?)));
    let Some((keyspace, table)) = found else {
        if alter.if_exists {
            return Ok(None);
        }
        return Err(CqlError::invalid(format!("Table '{keyspace_name}.{name}' doesn't exist")));
    };
    if table.kind == TableKind::View {
        return Err(CqlError::invalid(
            "Cannot use ALTER TABLE on a materialized view; use ALTER MATERIALIZED VIEW instead",
        ));
    }
    let altered = altered_table(&alter.alteration, keyspace, table, context)?;
    check_views(&alter.alteration, keyspace, table, &altered)?;
    let mut after = KeyspaceMetadata::clone(keyspace);
    if let TableAlteration::MaskColumn { column, .. } = &alter.alteration {
        masks::mask_views_of(&mut after, &altered, column.as_str());
    }
    let renamed = match &alter.alteration {
        TableAlteration::Rename { columns, .. } => columns.as_slice(),
        _ => &[],
    };
    view::alter_views_of(&mut after, table, &altered, renamed)?;
    after.tables.insert(name.to_owned(), Arc::new(altered));
    let event = event(SchemaChangeKind::Updated, SchemaTarget::Table, keyspace_name, name);
    Ok(Some((schema.with_keyspace(after), event)))
}

/// Refuses changes that the views of a table cannot follow.
fn check_views(
    alteration: &TableAlteration<'_>,
    keyspace: &KeyspaceMetadata,
    table: &TableMetadata,
    altered: &TableMetadata,
) -> Result<(), CqlError> {
    if keyspace.views_of(table.id).next().is_none() {
        return Ok(());
    }
    match alteration {
        TableAlteration::Drop { columns, .. } => {
            let Some(dropped) = columns.iter().find(|column| altered.column_by_name(column.as_str()).is_none()) else {
                return Ok(());
            };
            if table.column_by_name(dropped.as_str()).is_none() {
                return Ok(());
            }
            Err(CqlError::invalid(format!(
                "Cannot drop column {} on base table {} with materialized views",
                types::ident::maybe_quote(dropped.as_str()),
                table.name
            )))
        }
        TableAlteration::With(_) if altered.params.gc_grace_seconds == 0 => Err(CqlError::invalid(
            "Cannot alter gc_grace_seconds of the base table of a materialized view to 0, since this value is used to TTL \
             undelivered updates. Setting gc_grace_seconds too low might cause undelivered updates to expire before being \
             replayed.",
        )),
        _ => Ok(()),
    }
}

fn altered_table(
    alteration: &TableAlteration<'_>,
    keyspace: &KeyspaceMetadata,
    table: &TableMetadata,
    context: &DdlContext,
) -> Result<TableMetadata, CqlError> {
    match alteration {
        TableAlteration::AlterColumn { .. } => Err(CqlError::invalid("Altering column types is no longer supported")),
        TableAlteration::MaskColumn { if_exists, column, mask } => {
            masks::with_mask(keyspace, table, column, *if_exists, mask)
        }
        TableAlteration::Add { if_not_exists, columns } => with_columns(keyspace, table, columns, *if_not_exists),
        TableAlteration::Drop { if_exists, columns, timestamp } => {
            without_columns(table, columns, *if_exists, timestamp.unwrap_or(context.now_micros))
        }
        TableAlteration::Rename { columns, .. } => with_renamed_columns(table, columns),
        TableAlteration::DropCompactStorage => compact::without_compact_storage(table, context),
        TableAlteration::With(properties) => with_options(table, properties, context),
    }
}

/// The table with other columns, which keep their ids where they are the same.
fn rebuild(
    table: &TableMetadata,
    specs: Vec<ColumnSpec>,
    dropped: BTreeMap<String, DroppedColumn>,
    params: TableParams,
) -> TableMetadata {
    let (keyspace, name) = (&table.keyspace, &table.name);
    TableMetadata::new(table.id, keyspace, name, table.kind, table.flags, params, specs, dropped, Some(table))
}

fn with_columns(
    keyspace: &KeyspaceMetadata,
    table: &TableMetadata,
    columns: &[ColumnDefinition<'_>],
    if_not_exists: bool,
) -> Result<TableMetadata, CqlError> {
    check_room(table, columns.len())?;
    let mut specs = table.specs();
    let mut names: BTreeSet<String> = specs.iter().map(|spec| spec.name.clone()).collect();
    let mut masks = table.masks.clone();
    let (mut types, masking) = (CheckedTypes::default(), masks::MaskPreparer::new(keyspace, &table.name));
    if columns.iter().any(|column| !names.contains(column.name.as_str())) {
        types.add(table.types())?;
    }
    for column in columns {
        let name = column.name.as_str();
        let normalized = type_name::normalize(&column.type_name);
        // the type of a column that is there already is not added to the others
        let ty = match names.contains(name) {
            true => CheckedTypes::default().prepare(&normalized, keyspace)?,
            false => types.prepare(&normalized, keyspace)?,
        };
        let mask = column.mask.as_ref();
        let mask = mask.map(|mask| masking.prepare(mask, &column.name, &ty)).transpose()?;
        if !names.insert(name.to_owned()) {
            if if_not_exists {
                continue;
            }
            return Err(CqlError::invalid(format!("Column with name '{name}' already exists")));
        }
        check_added(table, column, &ty)?;
        let kind = if column.is_static { ColumnKind::Static } else { ColumnKind::Regular };
        specs.push(ColumnSpec { name: name.to_owned(), kind, position: 0, ty, reversed: false });
        masks.extend(mask.map(|mask| (name.to_owned(), mask)));
    }
    let mut altered = rebuild(table, specs, table.dropped.clone(), table.params.clone());
    altered.masks = masks;
    Ok(altered)
}

/// Refuses more new names of columns than there are ids left.
fn check_room(table: &TableMetadata, columns: usize) -> Result<(), CqlError> {
    let room = table.column_room();
    if columns <= room {
        return Ok(());
    }
    let name = full_name(table);
    Err(CqlError::invalid(format!("Table '{name}' may get {room} columns more at most, but would get {columns}")))
}

fn check_added(table: &TableMetadata, column: &ColumnDefinition<'_>, ty: &CqlType) -> Result<(), CqlError> {
    let name = &column.name;
    if table.is_compact() {
        return Err(CqlError::invalid("Cannot add new column to a COMPACT STORAGE table"));
    }
    if column.is_static && table.clustering.is_empty() {
        return Err(CqlError::invalid(
            "Static columns are only useful (and thus allowed) if the table has at least one clustering column",
        ));
    }
    if has_unfrozen_fields(ty) {
        return Err(CqlError::invalid(format!(
            "Non-frozen UDTs with nested non-frozen collections are not supported for column {name}"
        )));
    }
    if let Some(dropped) = table.dropped.get(name.as_str()) {
        check_added_again(table, column, ty, dropped)?;
    }
    match (table.is_counter(), ty.is_counter()) {
        (true, false) => Err(CqlError::Config(format!(
            "{}.{}: Cannot have a non counter column (\"{name}\") in a counter table",
            table.keyspace, table.name
        ))),
        (false, true) => Err(CqlError::Config(format!(
            "{}.{}: Cannot have a counter column (\"{name}\") in a non counter table",
            table.keyspace, table.name
        ))),
        _ => Ok(()),
    }
}

/// A column that was dropped may come back if what is left of it in SSTables can be read.
fn check_added_again(
    table: &TableMetadata,
    column: &ColumnDefinition<'_>,
    ty: &CqlType,
    dropped: &DroppedColumn,
) -> Result<(), CqlError> {
    let name = &column.name;
    if !compatible::reads_as(ty, &dropped.ty) {
        return Err(CqlError::invalid(format!(
            "Cannot add a column '{name}' of type {}, incompatible with previously dropped column '{name}' of type {}",
            ty.cql_name(),
            dropped.ty.cql_name()
        )));
    }
    if (dropped.kind == ColumnKind::Static) != column.is_static {
        let kind = |is_static: bool| if is_static { "STATIC" } else { "REGULAR" };
        return Err(CqlError::invalid(format!(
            "Cannot re-add previously dropped column '{name}' of kind {}, incompatible with previous kind {}",
            kind(column.is_static),
            kind(dropped.kind == ColumnKind::Static)
        )));
    }
    if table.is_counter() {
        return Err(CqlError::invalid(format!("Cannot re-add previously dropped counter column {name}")));
    }
    Ok(())
}

fn without_columns(
    table: &TableMetadata,
    columns: &[Ident<'_>],
    if_exists: bool,
    dropped_time: i64,
) -> Result<TableMetadata, CqlError> {
    let mut dropped = table.dropped.clone();
    let mut gone = BTreeSet::new();
    for name in columns {
        let Some(column) = table.column_by_name(name.as_str()) else {
            if if_exists {
                continue;
            }
            return Err(CqlError::invalid(format!("Column {name} was not found in table '{}'", full_name(table))));
        };
        check_droppable(table, column)?;
        gone.insert(name.as_str());
        let ty = types::cql_name::expand_user_types(&column.ty);
        let record = DroppedColumn { name: column.name.clone(), ty, kind: column.kind, dropped_time };
        dropped.insert(column.name.clone(), record);
    }
    let specs = table.specs().into_iter().filter(|spec| !gone.contains(spec.name.as_str())).collect();
    Ok(rebuild(table, specs, dropped, table.params.clone()))
}

fn check_droppable(table: &TableMetadata, column: &ColumnMetadata) -> Result<(), CqlError> {
    let name = &column.name;
    if column.is_primary_key() {
        return Err(CqlError::invalid(format!("Cannot drop PRIMARY KEY column {name}")));
    }
    // Cassandra ends such a statement with an exception
    if table.compact_value().is_some_and(|value| value.name == *name) {
        return Err(CqlError::invalid(format!("Cannot drop {name}, the value of a COMPACT STORAGE table")));
    }
    if matches!(column.ty, CqlType::Udt(_, false)) {
        return Err(CqlError::invalid(format!(
            "Cannot drop non-frozen column {name} of user type {}",
            column.ty.cql_name()
        )));
    }
    check_not_indexed(table, column, |indexes| {
        format!("Cannot drop column {name} because it has dependent secondary indexes ({indexes})")
    })
}

fn check_not_indexed(
    table: &TableMetadata,
    column: &ColumnMetadata,
    refusal: impl Fn(&str) -> String,
) -> Result<(), CqlError> {
    let quoted = types::ident::maybe_quote(&column.name);
    let targets_column = |target: &String| {
        let inside = target.split_once('(').map_or(target.as_str(), |(_, inside)| inside.trim_end_matches(')'));
        inside == quoted || inside == column.name
    };
    let names: Vec<&str> = table
        .indexes
        .values()
        .filter(|index| index.options.get("target").is_some_and(targets_column))
        .map(|index| index.name.as_str())
        .collect();
    if names.is_empty() { Ok(()) } else { Err(CqlError::invalid(refusal(&names.join(", ")))) }
}

fn with_renamed_columns(table: &TableMetadata, columns: &[(Ident<'_>, Ident<'_>)]) -> Result<TableMetadata, CqlError> {
    check_room(table, columns.len())?;
    let mut specs = table.specs();
    let mut places: BTreeMap<String, usize> =
        specs.iter().enumerate().map(|(at, spec)| (spec.name.clone(), at)).collect();
    let mut masks = table.masks.clone();
    for (old, new) in columns {
        let Some(column) = table.column_by_name(old.as_str()).filter(|column| !table.is_hidden(column)) else {
            // also IF EXISTS, which Cassandra takes and does not heed
            return Err(CqlError::invalid(format!("Undefined column name {old} in table {}", full_name(table))));
        };
        if !column.is_primary_key() {
            return Err(CqlError::invalid(format!("Cannot rename non PRIMARY KEY column {old}")));
        }
        // also one that the statement renames itself, as in Cassandra
        if table.column_by_name(new.as_str()).is_some() || places.contains_key(new.as_str()) {
            return Err(CqlError::invalid(format!(
                "Cannot rename column {old} to {new} in table '{}'; another column with that name already exists",
                full_name(table)
            )));
        }
        check_not_indexed(table, column, |indexes| {
            format!("Can't rename column {old} because it has dependent secondary indexes ({indexes})")
        })?;
        if let Some(at) = places.remove(old.as_str()) {
            specs[at].name = new.as_str().to_owned();
            places.insert(new.as_str().to_owned(), at);
        }
        if let Some(mask) = masks.remove(old.as_str()) {
            masks.insert(new.as_str().to_owned(), mask);
        }
    }
    let mut altered = rebuild(table, specs, table.dropped.clone(), table.params.clone());
    altered.masks = masks;
    Ok(altered)
}

fn with_options(
    table: &TableMetadata,
    properties: &[Property<'_>],
    context: &DdlContext,
) -> Result<TableMetadata, CqlError> {
    let options = properties::of_table(properties, context)?;
    let mut params = table.params.altered(&options).map_err(refused)?;
    if !context.switches.cdc {
        params.cdc = table.params.cdc;
    }
    if TableParams::table_id(&options).map_err(refused)?.is_some() {
        return Err(CqlError::Config("Cannot alter table id.".to_owned()));
    }
    if table.is_counter() && params.default_time_to_live > 0 {
        return Err(CqlError::invalid("Cannot set default_time_to_live on a table with counters"));
    }
    let mut altered = table.clone();
    altered.params = params;
    Ok(altered)
}

/// As Cassandra prints a table in messages.
fn full_name(table: &TableMetadata) -> String {
    types::ident::qualified(&table.keyspace, &table.name)
}
