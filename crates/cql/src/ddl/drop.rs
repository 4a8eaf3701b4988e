//! DROP KEYSPACE, DROP TABLE, DROP TYPE.
//!
//! A table that is left out because its stored rows cannot be read is dropped like any other, and
//! so is a keyspace of which nothing else is there. Cassandra does not start with such rows.
//!
//! Must agree with: `DropKeyspaceStatement`, `DropTableStatement`, `DropTypeStatement`.

use schema::{KeyspaceMetadata, Schema, TableKind};
use types::CqlType;
use types::ident::qualified;

use super::type_name::{names_one_of, types_using};
use super::{ChangedSchema, DdlContext, SchemaAction, SchemaObject, check_changeable, event, keyspace_of};
use crate::ast::{DropKeyspace, DropNamed};
use crate::error::CqlError;
use crate::result::{SchemaChangeKind, SchemaTarget};

pub(super) fn keyspace(drop: &DropKeyspace<'_>, schema: &Schema) -> Result<ChangedSchema, CqlError> {
    let name = drop.name.as_str();
    check_changeable(name, SchemaAction::Drop, SchemaObject::Keyspace)?;
    if schema.keyspace(name).is_none() && schema.left_out_of(name).next().is_none() {
        if drop.if_exists {
            return Ok(None);
        }
        return Err(CqlError::invalid(format!("Keyspace '{name}' doesn't exist")));
    }
    let event = event(SchemaChangeKind::Dropped, SchemaTarget::Keyspace, name, "");
    Ok(Some((schema.without_keyspace(name), event)))
}

pub(super) fn table(drop: &DropNamed<'_>, context: &DdlContext, schema: &Schema) -> Result<ChangedSchema, CqlError> {
    let (keyspace, name) = (keyspace_of(&drop.name, context)?, drop.name.name.as_str());
    check_changeable(keyspace, SchemaAction::Drop, SchemaObject::Table(name))?;
    let known = schema.table(keyspace, name).map(|table| (table.id, table.kind == TableKind::View));
    let left_out = schema.left_out_table(keyspace, name).map(|table| (table.id, table.is_view));
    let Some((id, is_view)) = known.or(left_out) else {
        if drop.if_exists {
            return Ok(None);
        }
        return Err(CqlError::invalid(format!("Table '{keyspace}.{name}' doesn't exist")));
    };
    if is_view {
        return Err(CqlError::invalid(
            "Cannot use DROP TABLE on a materialized view. Please use DROP MATERIALIZED VIEW instead.",
        ));
    }
    let mut after = KeyspaceMetadata::clone(super::existing_keyspace(schema, keyspace)?);
    let has_left_out_view = schema.left_out_of(keyspace).any(|(_, table)| table.base_id == Some(id));
    if after.views_of(id).next().is_some() || has_left_out_view {
        // Cassandra names the keyspace only
        return Err(CqlError::invalid(format!(
            "Cannot drop a table when materialized views still depend on it ({keyspace})"
        )));
    }
    let event = event(SchemaChangeKind::Dropped, SchemaTarget::Table, keyspace, name);
    if known.is_none() {
        return Ok(Some((schema.without_left_out(keyspace, name), event)));
    }
    after.tables.remove(name);
    Ok(Some((schema.with_keyspace(after), event)))
}

pub(super) fn user_type(
    drop: &DropNamed<'_>,
    context: &DdlContext,
    schema: &Schema,
) -> Result<ChangedSchema, CqlError> {
    let (keyspace, name) = (keyspace_of(&drop.name, context)?, drop.name.name.as_str());
    check_changeable(keyspace, SchemaAction::Drop, SchemaObject::AllTables)?;
    let before = match schema.keyspace(keyspace) {
        Some(before) if before.user_types.contains_key(name) => before,
        _ if drop.if_exists => return Ok(None),
        _ => return Err(CqlError::invalid(format!("Type '{keyspace}.{name}' doesn't exist"))),
    };
    check_unused(before, name)?;
    let mut after = KeyspaceMetadata::clone(before);
    after.user_types.remove(name);
    let event = event(SchemaChangeKind::Dropped, SchemaTarget::Type, keyspace, name);
    Ok(Some((schema.with_keyspace(after), event)))
}

/// Refuses if another type or a table is made with the type.
fn check_unused(keyspace: &KeyspaceMetadata, name: &str) -> Result<(), CqlError> {
    let users = types_using(keyspace, name);
    let types: Vec<&str> = users.iter().copied().filter(|other| *other != name).collect();
    let tables: Vec<&str> = keyspace
        .tables
        .values()
        .filter(|table| table.columns_in_select_order().iter().any(|column| names_one_of(&column.ty, &users)))
        .map(|table| table.name.as_str())
        .collect();
    let uses = |ty: &CqlType| names_one_of(ty, &users);
    let functions = keyspace
        .functions
        .values()
        .filter(|function| uses(&function.returns) || function.arguments.iter().any(|(_, ty)| uses(ty)))
        .map(|function| &function.name);
    let aggregates = keyspace
        .aggregates
        .values()
        .filter(|aggregate| {
            uses(&aggregate.returns) || uses(&aggregate.state_type) || aggregate.arguments.iter().any(uses)
        })
        .map(|aggregate| &aggregate.name);
    let functions: Vec<String> =
        functions.chain(aggregates).map(|function| qualified(&keyspace.name, function)).collect();
    let functions = functions.iter().map(String::as_str).collect();
    for (what, users) in [("functions", functions), ("user types", types), ("tables", tables)] {
        if !users.is_empty() {
            return Err(CqlError::invalid(format!(
                "Cannot drop user type '{}.{name}' as it is still used by {what} {}",
                keyspace.name,
                users.join(", ")
            )));
        }
    }
    Ok(())
}
