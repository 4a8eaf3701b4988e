//! CREATE and DROP of functions and aggregates.
//!
//! A body is compiled here, so that one outside of the subset is refused with its line. Besides
//! Cassandra's `java` there is `wasm`, which Cassandra refuses. Rows are stored; the functions of
//! the keyspace are read from these rows again.
//!
//! Must agree with: `CreateFunctionStatement`, `DropFunctionStatement`, `CreateAggregateStatement`,
//! `DropAggregateStatement`, in the order and the words of their refusals.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use schema::function::{self, type_texts};
use schema::system_schema::{SchemaRow, SchemaTable};
use schema::{AggregateMetadata, FunctionKey, FunctionMetadata, KeyspaceMetadata, Schema};
use types::CqlType;

use super::{
    ChangedSchema, DdlContext, SchemaAction, SchemaObject, check_changeable, existing_keyspace, keyspace_of, type_name,
};
use crate::ast::{CreateAggregate, CreateFunction, DropFunction, Ident, Term, TypeName};
use crate::compatible;
use crate::context::{Bindings, MadeValues, PrepareContext, Receiver};
use crate::error::CqlError;
use crate::functions::USER_FUNCTIONS_DISABLED;
use crate::result::{SchemaChangeKind, SchemaEvent, SchemaTarget};
use crate::sources::NoSources;
use crate::terms;
use crate::values::BoundValue;

/// Signs that no name of a function has.
const DISALLOWED_SIGNS: [char; 4] = ['/', '[', ']', '^'];

fn invalid<T>(message: String) -> Result<T, CqlError> {
    Err(CqlError::Invalid(message))
}

fn is_name_valid(name: &str) -> bool {
    !name.contains(DISALLOWED_SIGNS)
}

/// Refuses `frozen<…>` where it is written around more than a tuple.
fn check_unfrozen<'a>(types: impl IntoIterator<Item = &'a TypeName<'a>>, what: &str) -> Result<(), CqlError> {
    for ty in types {
        if matches!(ty, TypeName::Frozen(inner) if !matches!(**inner, TypeName::Tuple(_))) {
            return invalid(format!("{what} '{ty}' cannot be frozen; remove frozen<> modifier from '{ty}'"));
        }
    }
    Ok(())
}

fn prepare(ty: &TypeName<'_>, keyspace: &KeyspaceMetadata) -> Result<CqlType, CqlError> {
    type_name::prepare(&type_name::normalize(ty), keyspace)
}

/// The key under which the schema has a function or aggregate with arguments of these types,
/// however the types are spelled. A type that the keyspace does not have is an error.
pub(crate) fn key_of<'t>(
    name: &str,
    types: impl IntoIterator<Item = &'t TypeName<'t>>,
    keyspace: &KeyspaceMetadata,
) -> Result<FunctionKey, CqlError> {
    let types: Result<Vec<CqlType>, CqlError> = types.into_iter().map(|ty| prepare(ty, keyspace)).collect();
    Ok((name.to_owned(), type_texts(&types?)))
}

/// The keyspace with a row in place of the one with its key, and its functions read again.
fn with_row(keyspace: &KeyspaceMetadata, row: SchemaRow) -> KeyspaceMetadata {
    let mut after = without_row(keyspace, &row);
    after.function_rows.push(row);
    after.function_rows.sort_by(|a, b| (a.table, &a.clustering).cmp(&(b.table, &b.clustering)));
    after.read_functions();
    after
}

fn without_row(keyspace: &KeyspaceMetadata, row: &SchemaRow) -> KeyspaceMetadata {
    let mut after = keyspace.clone();
    after.function_rows.retain(|other| other.table != row.table || other.clustering != row.clustering);
    after
}

fn event(
    change: SchemaChangeKind,
    target: SchemaTarget,
    keyspace: &str,
    name: &str,
    argument_types: Vec<String>,
) -> SchemaEvent {
    SchemaEvent { change, target, keyspace: keyspace.to_owned(), name: name.to_owned(), argument_types }
}

pub(super) fn create(
    create: &CreateFunction<'_>,
    context: &DdlContext,
    schema: &Schema,
) -> Result<ChangedSchema, CqlError> {
    let (keyspace_name, name) = (keyspace_of(&create.name, context)?, create.name.name.as_str());
    check_changeable(keyspace_name, SchemaAction::Create, SchemaObject::AllTables)?;
    if create.if_not_exists && create.or_replace {
        return invalid("Cannot use both 'OR REPLACE' and 'IF NOT EXISTS' directives".to_owned());
    }
    if !context.switches.user_functions && !context.restoring {
        return invalid(USER_FUNCTIONS_DISABLED.to_owned());
    }
    let language = create.language.as_str();
    if ![function::JAVA, function::WASM].iter().any(|known| language.eq_ignore_ascii_case(known)) {
        let text = "Currently only Java UDFs are available in Cassandra. For more information - CASSANDRA-18252 and CASSANDRA-17281";
        return invalid(text.to_owned());
    }
    if !is_name_valid(name) {
        return invalid(format!("Function name '{name}' is invalid"));
    }
    let names: Vec<&str> = create.arguments.iter().map(|(name, _)| name.as_str()).collect();
    let mut seen = HashSet::new();
    if !names.iter().all(|name| seen.insert(*name)) {
        return invalid(format!(
            "Duplicate argument names for given function {name} with argument names [{}]",
            names.join(", ")
        ));
    }
    check_unfrozen(create.arguments.iter().map(|(_, ty)| ty), "Argument")?;
    check_unfrozen([&create.returns], "Return type")?;
    let keyspace = existing_keyspace(schema, keyspace_name)?;
    let (mut arguments, mut types) = (Vec::new(), type_name::CheckedTypes::default());
    for (name, ty) in &create.arguments {
        arguments.push((name.as_str().to_owned(), types.prepare(&type_name::normalize(ty), keyspace)?));
    }
    let mut function = FunctionMetadata {
        keyspace: keyspace_name.to_owned(),
        name: name.to_owned(),
        arguments,
        returns: types.prepare(&type_name::normalize(&create.returns), keyspace)?,
        called_on_null: create.called_on_null_input,
        language: create.language.as_str().to_owned(),
        body: create.body.to_string(),
        compiled: Arc::new(Err(String::new())),
    };
    // a backup may hold what is refused here: the function stays, and calls of it are errors
    match function.compile(&keyspace.user_types) {
        Err(reason) if !context.restoring => return invalid(reason),
        compiled => function.compiled = Arc::new(compiled),
    }
    let key = function.key();
    if keyspace.aggregates.contains_key(&key) {
        return invalid(format!("Function '{name}' cannot replace an aggregate"));
    }
    let existing = keyspace.functions.get(&key);
    if let Some(existing) = existing {
        if create.if_not_exists {
            return Ok(None);
        }
        if !create.or_replace {
            return invalid(format!("Function '{name}' already exists"));
        }
        if existing.called_on_null != function.called_on_null {
            let directive = if function.called_on_null { "CALLED ON NULL INPUT" } else { "RETURNS NULL ON NULL INPUT" };
            return invalid(format!("Function '{name}' must have {directive} directive"));
        }
        if !compatible::sorts_as(&function.returns, &existing.returns) {
            return invalid(format!(
                "Cannot replace function '{name}', the new return type {} is not compatible with the return type {} of \
                 existing function",
                schema::type_text::print(&function.returns),
                schema::type_text::print(&existing.returns)
            ));
        }
    }
    let change = if existing.is_some() { SchemaChangeKind::Updated } else { SchemaChangeKind::Created };
    let types = create.arguments.iter().map(|(_, ty)| ty.to_string()).collect();
    let event = event(change, SchemaTarget::Function, keyspace_name, name, types);
    Ok(Some((schema.with_keyspace(with_row(keyspace, function.row())), event)))
}

pub(super) fn drop(drop: &DropFunction<'_>, context: &DdlContext, schema: &Schema) -> Result<ChangedSchema, CqlError> {
    let Some((keyspace, key, shown)) = found(drop, context, schema, Kind::Function)? else { return Ok(None) };
    let Some(function) = keyspace.functions.get(&key) else { return Ok(None) };
    let uses = |aggregate: &&Arc<AggregateMetadata>| {
        let last = aggregate.final_function.as_ref();
        aggregate.state_function.key() == key || last.is_some_and(|last| last.key() == key)
    };
    let dependent: Vec<String> = keyspace
        .aggregates
        .values()
        .filter(uses)
        .map(|aggregate| format!("{}.{}", keyspace.name, aggregate.name))
        .collect();
    if !dependent.is_empty() {
        return invalid(format!("Function '{shown}' is still referenced by aggregates {}", dependent.join(", ")));
    }
    let mut after = without_row(keyspace, &function.row());
    after.read_functions();
    let event = event(SchemaChangeKind::Dropped, SchemaTarget::Function, &keyspace.name, &key.0, key.1.clone());
    Ok(Some((schema.with_keyspace(after), event)))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Function,
    Aggregate,
}

type FoundFunction<'s> = Option<(&'s KeyspaceMetadata, FunctionKey, String)>;

/// The function or aggregate that a DROP names. None: there is none, which IF EXISTS allows.
fn found<'s>(
    drop: &DropFunction<'_>,
    context: &DdlContext,
    schema: &'s Schema,
    kind: Kind,
) -> Result<FoundFunction<'s>, CqlError> {
    let (keyspace_name, name) = (keyspace_of(&drop.name, context)?, drop.name.name.as_str());
    check_changeable(keyspace_name, SchemaAction::Drop, SchemaObject::AllTables)?;
    let word = if kind == Kind::Function { "Function" } else { "Aggregate" };
    let shown = match &drop.arguments {
        Some(types) => {
            let types: Vec<String> = types.iter().map(ToString::to_string).collect();
            format!("{keyspace_name}.{name}({})", types.join(", "))
        }
        None => format!("{keyspace_name}.{name}"),
    };
    let missing = || match drop.if_exists {
        true => Ok(None),
        false => invalid(format!("{word} '{shown}' doesn't exist")),
    };
    let Some(keyspace) = schema.keyspace(keyspace_name) else { return missing() };
    let keys: Vec<&FunctionKey> =
        keyspace.functions.keys().chain(keyspace.aggregates.keys()).filter(|key| key.0 == name).collect();
    if keys.len() > 1 && drop.arguments.is_none() {
        let upper = word.to_uppercase();
        return invalid(format!(
            "'DROP {upper} {name}' matches multiple function definitions; specify the argument types by issuing a statement \
             like 'DROP {upper} {name} (type, type, ...)'. You can use cqlsh 'DESCRIBE {upper} {name}' command to find all \
             overloads"
        ));
    }
    check_unfrozen(drop.arguments.iter().flatten(), "Argument")?;
    let wanted = drop.arguments.as_ref().map(|types| key_of(name, types, keyspace)).transpose()?;
    let is_kind = |key: &FunctionKey| match kind {
        Kind::Function => keyspace.functions.contains_key(key),
        Kind::Aggregate => keyspace.aggregates.contains_key(key),
    };
    let key = keys.into_iter().find(|key| is_kind(key) && wanted.as_ref().is_none_or(|wanted| wanted == *key));
    match key {
        Some(key) => Ok(Some((keyspace, key.clone(), shown))),
        None => missing(),
    }
}

pub(super) fn create_aggregate(
    create: &CreateAggregate<'_>,
    context: &DdlContext,
    schema: &Schema,
) -> Result<ChangedSchema, CqlError> {
    let (keyspace_name, name) = (keyspace_of(&create.name, context)?, create.name.name.as_str());
    check_changeable(keyspace_name, SchemaAction::Create, SchemaObject::AllTables)?;
    if create.if_not_exists && create.or_replace {
        return invalid("Cannot use both 'OR REPLACE' and 'IF NOT EXISTS' directives".to_owned());
    }
    if !is_name_valid(name) {
        return invalid(format!("Aggregate name '{name}' is invalid"));
    }
    check_unfrozen(&create.arguments, "Argument")?;
    check_unfrozen([&create.state_type], "State type")?;
    let keyspace = existing_keyspace(schema, keyspace_name)?;
    let arguments: Result<Vec<CqlType>, CqlError> = create.arguments.iter().map(|ty| prepare(ty, keyspace)).collect();
    let arguments = arguments?;
    let state_type = prepare(&create.state_type, keyspace)?;
    let function = |name: &Ident<'_>, types: Vec<&CqlType>, word: &str, shown: &str| {
        let key = (name.as_str().to_owned(), type_texts(types));
        match (keyspace.functions.get(&key), keyspace.aggregates.get(&key)) {
            (Some(function), _) => Ok(Arc::clone(function)),
            (None, Some(_)) => invalid(format!("{word} function {shown} isn't a scalar function")),
            (None, None) => invalid(format!("{word} function {shown} doesn't exist")),
        }
    };
    let of_state: Vec<String> =
        std::iter::once(&create.state_type).chain(&create.arguments).map(ToString::to_string).collect();
    let state_name = format!("{keyspace_name}.{}", create.state_function);
    let shown = format!("{state_name}({})", of_state.join(", "));
    let types = std::iter::once(&state_type).chain(&arguments).collect();
    let state_function = function(&create.state_function, types, "State", &shown)?;
    if state_function.returns != state_type {
        return invalid(format!(
            "State function {shown} return type must be the same as the first argument type - check STYPE, argument and return \
             types"
        ));
    }
    let final_function = match &create.final_function {
        Some(last) => {
            let shown = format!("{keyspace_name}.{last}({})", create.state_type);
            Some(function(last, vec![&state_type], "Final", &shown)?)
        }
        None => None,
    };
    let returns = final_function.as_ref().map_or(&state_function.returns, |last| &last.returns).clone();
    let initial = match &create.initial_condition {
        Some(term) => initial_condition(term, &state_type, keyspace)?,
        None => None,
    };
    if !state_function.called_on_null && initial.is_none() {
        return invalid(format!(
            "Cannot create aggregate '{name}' without INITCOND because state function {state_name} does not accept 'null' \
             arguments"
        ));
    }
    let aggregate = AggregateMetadata {
        keyspace: keyspace_name.to_owned(),
        name: name.to_owned(),
        arguments,
        returns,
        state_function,
        state_type,
        final_function,
        initial,
    };
    let key = aggregate.key();
    if keyspace.functions.contains_key(&key) {
        return invalid(format!("Aggregate '{name}' cannot replace a function"));
    }
    let existing = keyspace.aggregates.get(&key);
    if let Some(existing) = existing {
        if create.if_not_exists {
            return Ok(None);
        }
        if !create.or_replace {
            return invalid(format!("Aggregate '{name}' already exists"));
        }
        if !compatible::sorts_as(&aggregate.returns, &existing.returns) {
            return invalid(format!(
                "Cannot replace aggregate '{name}', the new return type {} isn't compatible with the return type {} of \
                 existing function",
                schema::type_text::print(&aggregate.returns),
                schema::type_text::print(&existing.returns)
            ));
        }
    }
    let change = if existing.is_some() { SchemaChangeKind::Updated } else { SchemaChangeKind::Created };
    let types = create.arguments.iter().map(ToString::to_string).collect();
    let event = event(change, SchemaTarget::Aggregate, keyspace_name, name, types);
    Ok(Some((schema.with_keyspace(with_row(keyspace, aggregate.row())), event)))
}

/// The value of INITCOND.
fn initial_condition(
    term: &Term<'_>,
    state_type: &CqlType,
    keyspace: &KeyspaceMetadata,
) -> Result<Option<Bytes>, CqlError> {
    let schema = Arc::new(Schema::default().with_keyspace(keyspace.clone()));
    let mut context = PrepareContext::new(&schema, &[]);
    context.keyspace = Arc::from(keyspace.name.as_str());
    let prepared = terms::prepare(&mut context, term, &Receiver::new("(dummy)", state_type.clone()))?;
    let value = match prepared.eval(&Bindings { values: &[], sources: &NoSources, made: &MadeValues::default() })? {
        BoundValue::Bytes(bytes) => Some(bytes),
        BoundValue::Null | BoundValue::Unset => None,
    };
    let is_empty = value.as_ref().is_none_or(|value| value.is_empty() && !state_type.empty_is_meaningful());
    if is_empty && !matches!(term, Term::Null) {
        return invalid("INITCOND must not be empty for all types except TEXT, ASCII, BLOB".to_owned());
    }
    Ok(value)
}

pub(super) fn drop_aggregate(
    drop: &DropFunction<'_>,
    context: &DdlContext,
    schema: &Schema,
) -> Result<ChangedSchema, CqlError> {
    let Some((keyspace, key, _)) = found(drop, context, schema, Kind::Aggregate)? else { return Ok(None) };
    let Some(aggregate) = keyspace.aggregates.get(&key) else { return Ok(None) };
    let row = SchemaRow { table: SchemaTable::Aggregates, ..aggregate.row() };
    let mut after = without_row(keyspace, &row);
    after.read_functions();
    let event = event(SchemaChangeKind::Dropped, SchemaTarget::Aggregate, &keyspace.name, &key.0, key.1.clone());
    Ok(Some((schema.with_keyspace(after), event)))
}
