//! DROP INDEX, DROP MATERIALIZED VIEW, DROP TRIGGER: what hangs on a table goes.
//!
//! Must agree with: `DropIndexStatement`, `DropViewStatement`, `DropTriggerStatement`.

use std::sync::Arc;

use schema::system_schema::SchemaTable;
use schema::{KeyspaceMetadata, Schema, TableKind, TableMetadata, system};

use super::{ChangedSchema, DdlContext, SchemaAction, SchemaObject, check_changeable, event, keyspace_of};
use crate::ast::{DropNamed, DropTrigger};
use crate::error::CqlError;
use crate::result::{SchemaChangeKind, SchemaTarget};

pub(super) fn index(drop: &DropNamed<'_>, context: &DdlContext, schema: &Schema) -> Result<ChangedSchema, CqlError> {
    let (keyspace_name, name) = (keyspace_of(&drop.name, context)?, drop.name.name.as_str());
    if system::is_local_keyspace(keyspace_name) || system::VIRTUAL_KEYSPACES.contains(&keyspace_name) {
        return Err(CqlError::invalid(format!("System keyspace '{keyspace_name}' is not user-modifiable")));
    }
    let keyspace = schema.keyspace(keyspace_name);
    let found = keyspace.and_then(|keyspace| {
        let table = keyspace.tables.values().find(|table| table.indexes.contains_key(name))?;
        Some((keyspace, table))
    });
    let Some((keyspace, table)) = found else {
        if drop.if_exists {
            return Ok(None);
        }
        return Err(CqlError::invalid(format!("Index '{keyspace_name}.{name}' doesn't exist'")));
    };
    check_changeable(keyspace_name, SchemaAction::Alter, SchemaObject::Table(&table.name))?;
    let mut altered = TableMetadata::clone(table);
    altered.indexes.remove(name);
    Ok(Some(with_table(schema, keyspace, altered)))
}

pub(super) fn view(drop: &DropNamed<'_>, context: &DdlContext, schema: &Schema) -> Result<ChangedSchema, CqlError> {
    let (keyspace_name, name) = (keyspace_of(&drop.name, context)?, drop.name.name.as_str());
    check_changeable(keyspace_name, SchemaAction::Alter, SchemaObject::AllTables)?;
    let keyspace = schema.keyspace(keyspace_name);
    let is_view = |keyspace: &&Arc<KeyspaceMetadata>| {
        keyspace.tables.get(name).is_some_and(|table| table.kind == TableKind::View)
    };
    let event = event(SchemaChangeKind::Dropped, SchemaTarget::Table, keyspace_name, name);
    let Some(keyspace) = keyspace.filter(is_view) else {
        let left_out = schema.left_out_table(keyspace_name, name).filter(|table| keyspace.is_some() && table.is_view);
        if left_out.is_some() {
            return Ok(Some((schema.without_left_out(keyspace_name, name), event)));
        }
        if drop.if_exists {
            return Ok(None);
        }
        return Err(CqlError::invalid(format!("Materialized view '{keyspace_name}.{name}' doesn't exist")));
    };
    let mut after = KeyspaceMetadata::clone(keyspace);
    after.tables.remove(name);
    Ok(Some((schema.with_keyspace(after), event)))
}

pub(super) fn trigger(
    drop: &DropTrigger<'_>,
    context: &DdlContext,
    schema: &Schema,
) -> Result<ChangedSchema, CqlError> {
    let (keyspace_name, table_name) = (keyspace_of(&drop.table, context)?, drop.table.name.as_str());
    let name = drop.name.as_str();
    check_changeable(keyspace_name, SchemaAction::Alter, SchemaObject::Table(table_name))?;
    let found = schema.keyspace(keyspace_name).and_then(|keyspace| {
        let table = keyspace.tables.get(table_name)?;
        table.triggers().any(|trigger| trigger == name).then_some((keyspace, table))
    });
    let Some((keyspace, table)) = found else {
        if drop.if_exists {
            return Ok(None);
        }
        return Err(CqlError::invalid(format!("Trigger '{name}' on '{keyspace_name}.{table_name}' doesn't exist")));
    };
    let mut altered = TableMetadata::clone(table);
    altered.trigger_rows.retain(|row| {
        row.table != SchemaTable::Triggers || row.clustering.get(1).is_none_or(|trigger| trigger != name.as_bytes())
    });
    Ok(Some(with_table(schema, keyspace, altered)))
}

fn with_table(
    schema: &Schema,
    keyspace: &KeyspaceMetadata,
    table: TableMetadata,
) -> (Schema, crate::result::SchemaEvent) {
    let event = event(SchemaChangeKind::Updated, SchemaTarget::Table, &table.keyspace, &table.name);
    let mut after = KeyspaceMetadata::clone(keyspace);
    after.tables.insert(table.name.clone(), Arc::new(table));
    (schema.with_keyspace(after), event)
}
