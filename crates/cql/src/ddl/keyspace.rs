//! CREATE KEYSPACE and ALTER KEYSPACE.
//!
//! Must agree with: `CreateKeyspaceStatement`, `AlterKeyspaceStatement`, `KeyspaceAttributes`.

use std::collections::BTreeMap;

use schema::replication::keyspace_params;
use schema::{KeyspaceMetadata, Options, Schema, system};

use super::{
    ChangedSchema, DdlContext, SchemaAction, SchemaObject, check_changeable, check_keyspace_name, event, properties,
    refused,
};
use crate::ast::{AlterKeyspace, CreateKeyspace};
use crate::error::CqlError;
use crate::result::{SchemaChangeKind, SchemaTarget};

pub(super) fn create(
    create: &CreateKeyspace<'_>,
    context: &DdlContext,
    schema: &Schema,
) -> Result<ChangedSchema, CqlError> {
    let name = create.name.as_str();
    let lower = name.to_lowercase();
    if system::is_local_keyspace(&lower) || system::VIRTUAL_KEYSPACES.contains(&lower.as_str()) {
        return Err(CqlError::invalid(format!("System keyspace '{name}' is not user-modifiable")));
    }
    check_keyspace_name(name)?;
    let options = properties::options(&create.properties)?;
    check_options(&options)?;
    if !options.names().any(|option| option == "replication") {
        return Err(CqlError::invalid("Missing mandatory option 'replication'"));
    }
    if schema.keyspace(name).is_some() {
        if create.if_not_exists {
            return Ok(None);
        }
        return Err(CqlError::AlreadyExists {
            keyspace: name.to_owned(),
            table: String::new(),
            message: format!("Cannot add existing keyspace \"{name}\""),
        });
    }
    let factor = context.switches.default_keyspace_rf;
    let (durable_writes, replication) =
        keyspace_params(name, &options, None, &datacenters(context), factor).map_err(refused)?;
    let keyspace = KeyspaceMetadata {
        name: name.to_owned(),
        durable_writes,
        replication,
        tables: BTreeMap::new(),
        user_types: BTreeMap::new(),
        function_rows: Vec::new(),
        functions: BTreeMap::new(),
        aggregates: BTreeMap::new(),
        is_virtual: false,
    };
    let event = event(SchemaChangeKind::Created, SchemaTarget::Keyspace, name, "");
    Ok(Some((schema.with_keyspace(keyspace), event)))
}

pub(super) fn alter(
    alter: &AlterKeyspace<'_>,
    context: &DdlContext,
    schema: &Schema,
) -> Result<ChangedSchema, CqlError> {
    let name = alter.name.as_str();
    check_changeable(name, SchemaAction::Alter, SchemaObject::Keyspace)?;
    let options = properties::options(&alter.properties)?;
    check_options(&options)?;
    let Some(before) = schema.keyspace(name) else {
        if alter.if_exists {
            return Ok(None);
        }
        return Err(CqlError::invalid(format!("Keyspace '{name}' doesn't exist")));
    };
    let previous = Some((before.durable_writes, &before.replication));
    let factor = context.switches.default_keyspace_rf;
    let (durable_writes, replication) =
        keyspace_params(name, &options, previous, &datacenters(context), factor).map_err(refused)?;
    if !context.moving.is_empty() {
        return Err(CqlError::Config(format!(
            "Cannot alter RF while some endpoints are not in normal state (no range movements): [{}]",
            context.moving.join(", ")
        )));
    }
    let keyspace = KeyspaceMetadata { durable_writes, replication, ..KeyspaceMetadata::clone(before) };
    let event = event(SchemaChangeKind::Updated, SchemaTarget::Keyspace, name, "");
    Ok(Some((schema.with_keyspace(keyspace), event)))
}

/// Names of options, and that replication names its strategy.
fn check_options(options: &Options) -> Result<(), CqlError> {
    options.check_names(&["durable_writes", "replication"]).map_err(refused)?;
    match options.map("replication").map_err(refused)? {
        Some(map) if !map.is_empty() && !map.contains_key("class") => {
            Err(CqlError::Config("Missing replication strategy class".to_owned()))
        }
        _ => Ok(()),
    }
}

fn datacenters(context: &DdlContext) -> Vec<&str> {
    context.datacenters.keys().map(String::as_str).collect()
}
