//! CREATE TYPE and ALTER TYPE. A changed type is put in place in every type and table that is made
//! with it.
//!
//! Must agree with: `CreateTypeStatement`, `AlterTypeStatement`,
//! `KeyspaceMetadata.withUpdatedUserType`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schema::{KeyspaceMetadata, Schema, TableMetadata};
use types::UserType;
use types::extent::Extents;
use types::ident::qualified;

use super::type_name::{CheckedTypes, TypeReplacements};
use super::{
    ChangedSchema, DdlContext, SchemaAction, SchemaObject, check_changeable, event, existing_keyspace, keyspace_of,
    type_name,
};
use crate::ast::{AlterType, CreateType, Ident, TypeAlteration, TypeName};
use crate::error::CqlError;
use crate::result::{SchemaChangeKind, SchemaTarget};

/// The most fields of a user type. Cells of a type that is not frozen have the numbers of their
/// fields in 16 bits, which Cassandra reads as signed ones.
const FIELDS_MAX: usize = i16::MAX as usize;

pub(super) fn create(
    create: &CreateType<'_>,
    context: &DdlContext,
    schema: &Schema,
) -> Result<ChangedSchema, CqlError> {
    let (keyspace_name, name) = (keyspace_of(&create.name, context)?, create.name.name.as_str());
    check_changeable(keyspace_name, SchemaAction::Create, SchemaObject::AllTables)?;
    let keyspace = existing_keyspace(schema, keyspace_name)?;
    if keyspace.user_types.contains_key(name) {
        if create.if_not_exists {
            return Ok(None);
        }
        return Err(CqlError::invalid(format!("A user type with name '{name}' already exists")));
    }
    check_count(name, create.fields.len())?;
    if let Some(field) = repeated(create.fields.iter().map(|(field, _)| field.as_str())) {
        return Err(CqlError::invalid(format!("Duplicate field name '{field}' in type '{name}'")));
    }
    let normalized: Vec<(&Ident<'_>, TypeName<'_>)> =
        create.fields.iter().map(|(field, ty)| (field, type_name::normalize(ty))).collect();
    normalized.iter().try_for_each(|(_, ty)| check_field_type(ty))?;
    let (mut fields, mut types) = (Vec::new(), CheckedTypes::default());
    for (field, ty) in &normalized {
        fields.push((field.as_str().to_owned(), types.prepare(ty, keyspace)?));
    }
    let udt = Arc::new(UserType { keyspace: keyspace_name.to_owned(), name: name.to_owned(), fields });
    type_name::check_extent(Extents::default().of_user_type(&udt))?;
    let mut after = keyspace.clone();
    after.user_types.insert(name.to_owned(), udt);
    let event = event(SchemaChangeKind::Created, SchemaTarget::Type, keyspace_name, name);
    Ok(Some((schema.with_keyspace(after), event)))
}

/// The first name that has stood before. A name is not compared with each of those before it: a
/// type may have tens of thousands.
fn repeated<'n>(mut names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let mut seen = BTreeSet::new();
    names.find(|name| !seen.insert(*name))
}

fn check_count(name: &str, fields: usize) -> Result<(), CqlError> {
    if fields <= FIELDS_MAX {
        return Ok(());
    }
    Err(CqlError::invalid(format!("Type '{name}' may have {FIELDS_MAX} fields at most, but has {fields}")))
}

fn check_field_type(ty: &TypeName<'_>) -> Result<(), CqlError> {
    if ty.is_counter() {
        return Err(CqlError::invalid("A user type cannot contain counters"));
    }
    if type_name::is_unfrozen_user_type(ty) {
        return Err(CqlError::invalid("A user type cannot contain non-frozen UDTs"));
    }
    Ok(())
}

pub(super) fn alter(alter: &AlterType<'_>, context: &DdlContext, schema: &Schema) -> Result<ChangedSchema, CqlError> {
    let (keyspace_name, name) = (keyspace_of(&alter.name, context)?, alter.name.name.as_str());
    check_changeable(keyspace_name, SchemaAction::Alter, SchemaObject::AllTables)?;
    let found = schema.keyspace(keyspace_name).and_then(|keyspace| Some((keyspace, keyspace.user_types.get(name)?)));
    let Some((keyspace, udt)) = found else {
        if alter.if_exists {
            return Ok(None);
        }
        return Err(CqlError::invalid(format!("Type {keyspace_name}.{name} doesn't exist")));
    };
    let altered = match &alter.alteration {
        TypeAlteration::AlterField(..) => {
            return Err(CqlError::invalid("Altering field types is no longer supported"));
        }
        TypeAlteration::Add { if_not_exists, field, type_name } => {
            with_field(keyspace, udt, field, type_name, *if_not_exists)?
        }
        TypeAlteration::Rename { if_exists, fields } => with_renamed_fields(keyspace, udt, fields, *if_exists)?,
    };
    if altered == **udt {
        return Ok(None);
    }
    let event = event(SchemaChangeKind::Updated, SchemaTarget::Type, keyspace_name, name);
    Ok(Some((schema.with_keyspace(with_user_type(keyspace, altered)?), event)))
}

fn with_field(
    keyspace: &KeyspaceMetadata,
    udt: &UserType,
    field: &Ident<'_>,
    type_name: &TypeName<'_>,
    if_not_exists: bool,
) -> Result<UserType, CqlError> {
    let normalized = type_name::normalize(type_name);
    check_field_type(&normalized)?;
    let full_name = qualified(&udt.keyspace, &udt.name);
    if udt.fields.iter().any(|(name, _)| name == field.as_str()) {
        if if_not_exists {
            return Ok(udt.clone());
        }
        return Err(CqlError::invalid(format!(
            "Cannot add field {field} to type {full_name}: a field with name {field} already exists"
        )));
    }
    check_count(&udt.name, udt.fields.len() + 1)?;
    let ty = CheckedTypes::default().prepare(&normalized, keyspace)?;
    let normalized = type_name::in_keyspace(&normalized, &keyspace.name);
    let users = type_name::types_using(keyspace, &udt.name);
    if type_name::names_one_of(&ty, &users) {
        return Err(CqlError::invalid(format!(
            "Cannot add new field {field} of type {normalized} to user type {full_name} as it would create a circular \
             reference"
        )));
    }
    let in_keys: Vec<String> = keyspace
        .tables
        .values()
        .filter(|table| table.partition_key.iter().any(|column| type_name::names_one_of(&column.ty, &users)))
        .map(|table| qualified(&table.keyspace, &table.name))
        .collect();
    if !in_keys.is_empty() {
        return Err(CqlError::invalid(format!(
            "Cannot add new field {field} of type {normalized} to user type {full_name} as the type is being used in \
             partition key by the following tables: {}",
            in_keys.join(", ")
        )));
    }
    let mut altered = udt.clone();
    altered.fields.push((field.as_str().to_owned(), ty));
    Ok(altered)
}

fn with_renamed_fields(
    keyspace: &KeyspaceMetadata,
    udt: &UserType,
    renames: &[(Ident<'_>, Ident<'_>)],
    if_exists: bool,
) -> Result<UserType, CqlError> {
    check_initial_conditions(keyspace, udt)?;
    let full_name = qualified(&udt.keyspace, &udt.name);
    let mut altered = udt.clone();
    let places: BTreeMap<&str, usize> =
        udt.fields.iter().enumerate().map(|(at, (name, _))| (name.as_str(), at)).collect();
    for (old, new) in renames {
        match places.get(old.as_str()) {
            Some(at) => altered.fields[*at].0 = new.as_str().to_owned(),
            None if if_exists => {}
            None => return Err(CqlError::invalid(format!("Unkown field {old} in user type {full_name}"))),
        }
    }
    if let Some(name) = repeated(altered.fields.iter().map(|(name, _)| name.as_str())) {
        return Err(CqlError::invalid(format!("Duplicate field name {name} in type {}", udt.keyspace)));
    }
    Ok(altered)
}

/// Refuses if the INITCOND of an aggregate is written with the fields of the type. The row of the
/// aggregate keeps the old names, by which Cassandra could not read it any more.
fn check_initial_conditions(keyspace: &KeyspaceMetadata, udt: &UserType) -> Result<(), CqlError> {
    let users = type_name::types_using(keyspace, &udt.name);
    let aggregates: Vec<String> = keyspace
        .aggregates
        .values()
        .filter(|aggregate| aggregate.initial.is_some() && type_name::names_one_of(&aggregate.state_type, &users))
        .map(|aggregate| format!("{}.{}", aggregate.keyspace, aggregate.name))
        .collect();
    if aggregates.is_empty() {
        return Ok(());
    }
    Err(CqlError::invalid(format!(
        "Cannot alter user type {} as it is still used in INITCOND by aggregates {}",
        qualified(&udt.keyspace, &udt.name),
        aggregates.join(", ")
    )))
}

/// The keyspace with a user type in place of the one of its name, wherever it is used. Refused
/// where a type or a table would become too large.
fn with_user_type(keyspace: &KeyspaceMetadata, udt: UserType) -> Result<KeyspaceMetadata, CqlError> {
    let replacements = type_name::type_replacements(keyspace, udt);
    let mut extents = Extents::default();
    replacements.values().try_for_each(|udt| type_name::check_extent(extents.of_user_type(udt)))?;
    let mut after = keyspace.clone();
    for table in after.tables.values_mut() {
        if let Some(altered) = table_with_user_types(table, &replacements) {
            type_name::check_extent(extents.of_all(altered.types()))?;
            *table = Arc::new(altered);
        }
    }
    after.user_types.extend(replacements);
    after.functions.clear();
    after.read_functions();
    Ok(after)
}

fn table_with_user_types(table: &TableMetadata, replacements: &TypeReplacements) -> Option<TableMetadata> {
    let mut specs = table.specs();
    let mut changed = false;
    for spec in &mut specs {
        if let Some(ty) = type_name::with_replacements(&spec.ty, replacements) {
            spec.ty = ty;
            changed = true;
        }
    }
    let mut masks = table.masks.clone();
    for ty in masks.values_mut().flat_map(|mask| &mut mask.argument_types) {
        if let Some(altered) = type_name::with_replacements(ty, replacements) {
            *ty = altered;
        }
    }
    let (keyspace, name) = (&table.keyspace, &table.name);
    let (params, dropped) = (table.params.clone(), table.dropped.clone());
    changed.then(|| {
        let (kind, flags) = (table.kind, table.flags);
        let mut altered =
            TableMetadata::new(table.id, keyspace, name, kind, flags, params, specs, dropped, Some(table));
        altered.masks = masks;
        altered
    })
}
