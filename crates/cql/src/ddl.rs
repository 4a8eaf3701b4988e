//! Statements that change the schema: keyspaces, tables, user types.
//!
//! A change is a pure function: statement, schema and a [`DdlContext`] in; a new schema and what
//! clients are told of it out, or `None` where there is nothing to change (`IF NOT EXISTS`).
//! Nothing is stored here: the coordinator gives the function its turn, stores the difference and
//! publishes the result. New triggers and indexes by class are refused by name.
//!
//! Must agree with: `org.apache.cassandra.cql3.statements.schema` and the checks of `ClientState`,
//! in their order and in their words.

mod alter_table;
mod compact;
mod create_index;
mod create_table;
mod drop;
mod drop_dependent;
pub(crate) mod function;
mod guard;
mod keyspace;
mod masks;
mod properties;
pub mod restore;
mod type_name;
mod user_type;
mod view;
mod warnings;

use std::collections::BTreeMap;
use std::sync::Arc;

use schema::{KeyspaceMetadata, Schema, SchemaError, TableId, system};

pub use guard::guard;
pub use warnings::warnings;

use crate::ast::{QualifiedName, Statement};
use crate::coordinator::SchemaChange;
use crate::error::CqlError;
use crate::guardrails::Guardrails;
use crate::result::{SchemaChangeKind, SchemaEvent, SchemaTarget};

/// The inputs of a schema change besides the statement and the schema.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DdlContext {
    /// The keyspace of the connection.
    pub keyspace: Option<String>,
    /// Microseconds since 1970: the time of a dropped column.
    pub now_micros: i64,
    /// The id of a table that does not say its own: a time UUID.
    pub new_table_id: TableId,
    /// The datacenters that have nodes, with the number of their nodes.
    pub datacenters: BTreeMap<String, usize>,
    /// Other nodes that come, go or move, as `/address:port`: meanwhile no replication changes.
    pub moving: Vec<String>,
    /// The implementation of indexes for which none is named (`default_secondary_index`); None: one
    /// must be.
    pub default_index: Option<String>,
    /// The compaction parameters, as they are stored, of a table that is created without
    /// `compaction`.
    pub default_compaction: Arc<BTreeMap<String, String>>,
    /// A schema that was is read again: what clients can create no more is let through.
    pub restoring: bool,
    /// From the node's configuration.
    pub switches: Switches,
    /// The guardrails that bind the client.
    pub guardrails: Option<Arc<Guardrails>>,
}

impl DdlContext {
    /// A property of a table that a guardrail passes over.
    fn ignores(&self, property: &str) -> bool {
        self.guardrails.as_ref().is_some_and(|guardrails| guardrails.schema.ignores(property))
    }
}

/// The keys of the node's configuration that allow or refuse changes of the schema.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Switches {
    /// default_keyspace_rf: the copies of a keyspace whose statement names none
    pub default_keyspace_rf: u32,
    /// drop_compact_storage_enabled
    pub drop_compact_storage: bool,
    /// dynamic_data_masking_enabled
    pub masking: bool,
    /// cdc_enabled
    pub cdc: bool,
    /// materialized_views_enabled
    pub views: bool,
    /// user_defined_functions_enabled
    pub user_functions: bool,
    /// sasi_indexes_enabled
    pub sasi: bool,
}

impl Default for Switches {
    /// The keys of a node without configuration: nothing is allowed.
    fn default() -> Self {
        Self {
            default_keyspace_rf: 1,
            drop_compact_storage: false,
            masking: false,
            cdc: false,
            views: false,
            user_functions: false,
            sasi: false,
        }
    }
}

/// A new schema with what is told of it; None: nothing changes.
pub type ChangedSchema = Option<(Schema, SchemaEvent)>;

/// Whether a statement is executed here (even if only to be refused).
#[cfg(test)]
pub fn is_ddl(statement: &Statement<'_>) -> bool {
    !matches!(
        statement,
        Statement::Select(_)
            | Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Batch(_)
            | Statement::Use(_)
            | Statement::Truncate(_)
            | Statement::Describe(_)
            | Statement::Explain(_)
            | Statement::ListRoles(_)
            | Statement::ListPermissions(_)
    )
}

/// The change that a statement asks for, as the coordinator takes it. The text is parsed again when
/// its turn comes: a tree borrows from it.
pub fn change(query: Arc<str>, context: DdlContext) -> SchemaChange {
    SchemaChange {
        apply: Box::new(move |schema| {
            let parsed = crate::parse(&query)?;
            let statement = &parsed.statement;
            if matches!(statement, Statement::CreateView(_)) && !parsed.bind_markers.is_empty() {
                return Err(CqlError::invalid("Bind variables are not allowed in CREATE MATERIALIZED VIEW statements"));
            }
            guard::before(statement, &context, schema, &mut Vec::new())?;
            let changed = apply(statement, &context, schema)?;
            let after = changed.as_ref().map_or(schema, |(after, _)| after);
            guard::after(statement, &context, schema, after, &mut Vec::new())?;
            Ok(changed)
        }),
    }
}

/// Applies a statement to a schema.
pub fn apply(statement: &Statement<'_>, context: &DdlContext, schema: &Schema) -> Result<ChangedSchema, CqlError> {
    let changed = match statement {
        Statement::CreateKeyspace(create) => keyspace::create(create, context, schema)?,
        Statement::AlterKeyspace(alter) => keyspace::alter(alter, context, schema)?,
        Statement::DropKeyspace(drop) => drop::keyspace(drop, schema)?,
        Statement::CreateTable(create) => create_table::create(create, context, schema)?,
        Statement::AlterTable(alter) => alter_table::alter(alter, context, schema)?,
        Statement::DropTable(drop) => drop::table(drop, context, schema)?,
        Statement::CreateType(create) => user_type::create(create, context, schema)?,
        Statement::AlterType(alter) => user_type::alter(alter, context, schema)?,
        Statement::DropType(drop) => drop::user_type(drop, context, schema)?,
        Statement::CreateView(create) => view::create(create, context, schema)?,
        Statement::AlterView(alter) => view::alter(alter, context, schema)?,
        Statement::CreateFunction(create) => function::create(create, context, schema)?,
        Statement::DropFunction(drop) => function::drop(drop, context, schema)?,
        Statement::CreateAggregate(create) => function::create_aggregate(create, context, schema)?,
        Statement::DropAggregate(drop) => function::drop_aggregate(drop, context, schema)?,
        Statement::CreateIndex(create) => create_index::create(create, context, schema)?,
        Statement::DropIndex(drop) => drop_dependent::index(drop, context, schema)?,
        Statement::DropView(drop) => drop_dependent::view(drop, context, schema)?,
        Statement::DropTrigger(drop) => drop_dependent::trigger(drop, context, schema)?,
        other => return Err(CqlError::unsupported(unsupported(other))),
    };
    let is_other = |after: &Schema| after.keyspaces != schema.keyspaces || after.left_out != schema.left_out;
    let changed = changed.filter(|(after, _)| is_other(after));
    if let Some((after, event)) = &changed {
        assert_event_matches(schema, after, event);
    }
    Ok(changed)
}

/// Asserts that clients are told of the change that was made: drivers keep their own picture of the
/// schema by these events.
fn assert_event_matches(before: &Schema, after: &Schema, event: &SchemaEvent) {
    let (keyspace, name) = (event.keyspace.as_str(), event.name.as_str());
    // what is left out can be dropped, and nothing else
    let is_drop = event.change == SchemaChangeKind::Dropped;
    let has = |schema: &Schema| match event.target {
        SchemaTarget::Keyspace => {
            schema.keyspace(keyspace).is_some() || is_drop && schema.left_out_of(keyspace).next().is_some()
        }
        SchemaTarget::Table => {
            schema.table(keyspace, name).is_some() || is_drop && schema.left_out_table(keyspace, name).is_some()
        }
        SchemaTarget::Type => schema.keyspace(keyspace).is_some_and(|found| found.user_types.contains_key(name)),
        SchemaTarget::Function => {
            schema.keyspace(keyspace).is_some_and(|found| found.functions.keys().any(|key| key.0 == name))
        }
        SchemaTarget::Aggregate => {
            schema.keyspace(keyspace).is_some_and(|found| found.aggregates.keys().any(|key| key.0 == name))
        }
    };
    // overloads share a name, so that only the other targets tell whether they are there
    if matches!(event.target, SchemaTarget::Function | SchemaTarget::Aggregate) {
        assert!(has(before) || has(after), "{event:?} is of a function that is or was there");
        return;
    }
    let expected = match event.change {
        SchemaChangeKind::Created => (false, true),
        SchemaChangeKind::Updated => (true, true),
        SchemaChangeKind::Dropped => (true, false),
    };
    assert_eq!((has(before), has(after)), expected, "{event:?} is what happened");
    if let (SchemaTarget::Table, Some(old), Some(new)) =
        (event.target, before.table(keyspace, name), after.table(keyspace, name))
    {
        assert_eq!(old.id, new.id, "a table that is altered stays the table that it is");
    }
}

/// The feature that a statement needs which is parsed and not executed; the refusal begins with it.
fn unsupported(statement: &Statement<'_>) -> &'static str {
    match statement {
        Statement::CreateTrigger(_) => "Triggers are",
        _ => "Roles and permissions are",
    }
}

/// The permission that a change of an object needs, by the name in Cassandra's `Permission`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SchemaAction {
    Create,
    Alter,
    Drop,
}

impl SchemaAction {
    fn name(self) -> &'static str {
        match self {
            SchemaAction::Create => "CREATE",
            SchemaAction::Alter => "ALTER",
            SchemaAction::Drop => "DROP",
        }
    }
}

/// The object that a change is of. Refusals name the object as `DataResource.toString` does.
enum SchemaObject<'a> {
    Keyspace,
    AllTables,
    Table(&'a str),
}

/// The keyspace of a name: given, or that of the connection.
fn keyspace_of<'a>(name: &'a QualifiedName<'_>, context: &'a DdlContext) -> Result<&'a str, CqlError> {
    name.keyspace().or(context.keyspace.as_deref()).ok_or_else(|| {
        CqlError::invalid("No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename")
    })
}

/// Refuses changes of built-in keyspaces, and names that no keyspace may have.
fn check_changeable(keyspace: &str, action: SchemaAction, target: SchemaObject<'_>) -> Result<(), CqlError> {
    if system::is_local_keyspace(keyspace) || system::VIRTUAL_KEYSPACES.contains(&keyspace) {
        return Err(CqlError::Unauthorized(format!("{keyspace} keyspace is not user-modifiable.")));
    }
    if system::REPLICATED_KEYSPACES.contains(&keyspace)
        && !(action == SchemaAction::Alter && matches!(target, SchemaObject::Keyspace))
    {
        let on = match target {
            SchemaObject::Keyspace => format!("<keyspace {keyspace}>"),
            SchemaObject::AllTables => format!("<all tables in {keyspace}>"),
            SchemaObject::Table(table) => format!("<table {keyspace}.{table}>"),
        };
        return Err(CqlError::Unauthorized(format!("Cannot {} {on}", action.name())));
    }
    check_keyspace_name(keyspace)
}

/// The longest name of a keyspace, as in Cassandra: it is part of file names.
const KEYSPACE_NAME_SIZE_MAX: usize = 48;

fn check_keyspace_name(name: &str) -> Result<(), CqlError> {
    if !is_word(name) {
        return Err(CqlError::invalid(format!(
            "Keyspace name must not be empty and must contain alphanumeric or underscore characters only (got \"{name}\")"
        )));
    }
    if name.len() > KEYSPACE_NAME_SIZE_MAX {
        return Err(CqlError::invalid(format!(
            "Keyspace name must not be more than {KEYSPACE_NAME_SIZE_MAX} characters long (got {} characters for \"{name}\")",
            name.len()
        )));
    }
    Ok(())
}

/// Letters, digits and underscores, at least one.
fn is_word(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn existing_keyspace<'a>(schema: &'a Schema, name: &str) -> Result<&'a KeyspaceMetadata, CqlError> {
    match schema.keyspace(name) {
        Some(keyspace) => Ok(keyspace),
        None => Err(CqlError::invalid(format!("Keyspace '{name}' doesn't exist"))),
    }
}

fn event(change: SchemaChangeKind, target: SchemaTarget, keyspace: &str, name: &str) -> SchemaEvent {
    SchemaEvent { change, target, keyspace: keyspace.to_owned(), name: name.to_owned(), argument_types: Vec::new() }
}

/// The error for clients, with the protocol's code, of a change that `schema` refuses.
fn refused(error: SchemaError) -> CqlError {
    match error {
        SchemaError::Syntax(message) => CqlError::Syntax(message),
        SchemaError::Invalid(message) => CqlError::Invalid(message),
        SchemaError::Config(message) => CqlError::Config(message),
        SchemaError::Corrupt(message) => CqlError::Server(message),
    }
}

#[cfg(test)]
mod tests;
