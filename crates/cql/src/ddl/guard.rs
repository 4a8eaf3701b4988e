//! The guardrails that a change of the schema has to pass: some are asked before it is made, some
//! are asked about the schema that it makes.
//!
//! The checks themselves are in [`crate::guardrails`]. They are asked even where nothing changes.
//!
//! Must agree with: the order of `validate` and `apply` in `AlterSchemaStatement` and its
//! subclasses.

use schema::{Schema, TableMetadata, TableParams};

use super::{DdlContext, SchemaAction, SchemaObject, check_changeable, create_table, keyspace_of, properties};
use crate::ast::{QualifiedName, Statement, TableAlteration};
use crate::error::CqlError;

/// Asks the guardrails that bind the client about a statement that has turned `before` into
/// `after`, or changed nothing; what they only warn of is handed back.
pub fn guard(
    statement: &Statement<'_>,
    context: &DdlContext,
    before: &Schema,
    after: &Schema,
) -> Result<Vec<String>, CqlError> {
    let mut warnings = Vec::new();
    self::before(statement, context, before, &mut warnings)?;
    self::after(statement, context, before, after, &mut warnings)?;
    Ok(warnings)
}

/// Asks the guardrails that look at the statement, before the change is tried.
pub(super) fn before(
    statement: &Statement<'_>,
    context: &DdlContext,
    schema: &Schema,
    warnings: &mut Vec<String>,
) -> Result<(), CqlError> {
    let Some(guardrails) = &context.guardrails else { return Ok(()) };
    let properties = match statement {
        Statement::CreateTable(create) => {
            create_table::check_form(create)?;
            check_changeable(keyspace_of(&create.name, context)?, SchemaAction::Create, SchemaObject::AllTables)?;
            create.properties.as_slice()
        }
        Statement::AlterTable(alter) => match &alter.alteration {
            TableAlteration::With(properties) => properties.as_slice(),
            _ => &[],
        },
        _ => &[],
    };
    // properties that are wrong are refused when the change is tried
    let options = properties::of_table(properties, context).ok();
    let params = options.and_then(|options| TableParams::create_with(&options, &context.default_compaction).ok());
    let table = table_of(statement, context, schema)?;
    guardrails.schema.check_before(statement, params.as_ref(), table, schema, warnings)
}

/// Asks the guardrails that look at the schema which the change has made.
pub(super) fn after(
    statement: &Statement<'_>,
    context: &DdlContext,
    before: &Schema,
    after: &Schema,
    warnings: &mut Vec<String>,
) -> Result<(), CqlError> {
    let Some(guardrails) = &context.guardrails else { return Ok(()) };
    let table = table_of(statement, context, after)?;
    guardrails.schema.check(statement, table, before, after, warnings)
}

/// The table that a statement makes or alters.
fn table_of<'s>(
    statement: &Statement<'_>,
    context: &DdlContext,
    schema: &'s Schema,
) -> Result<Option<&'s TableMetadata>, CqlError> {
    let name: &QualifiedName<'_> = match statement {
        Statement::CreateTable(create) => &create.name,
        Statement::AlterTable(alter) => &alter.name,
        Statement::CreateIndex(create) => &create.table,
        Statement::CreateView(create) => &create.name,
        _ => return Ok(None),
    };
    Ok(schema.table(keyspace_of(name, context)?, name.name.as_str()).map(|table| &**table))
}
