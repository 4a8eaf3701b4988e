//! Preparing INSERT, UPDATE and DELETE.
//!
//! Agrees with the `prepare` methods of
//! `org.apache.cassandra.cql3.statements.{UpdateStatement,DeleteStatement}` and of
//! `cql3.Operation`, messages included.

use std::collections::HashSet;
use std::sync::Arc;

use schema::index::definition::IndexDefinition;
use schema::{ColumnKind, ColumnMetadata, Schema, TableKind, TableMetadata};
use types::CqlType;

use super::assign::{assign, field_index, set_value};
use super::operation::TypedColumn;
use super::{ModificationPlan, Operation};
use crate::ast::{self, Deletion, Ident, InsertSource, JsonValue};
use crate::context::{PrepareContext, Receiver, find_column};
use crate::error::CqlError;
use crate::restrictions::{self, Restrictions, StatementKind};
use crate::statements::conditions::{self, Conditions};
use crate::terms::{self, JsonSource, Term};

fn invalid<T>(message: impl Into<String>) -> Result<T, CqlError> {
    Err(CqlError::invalid(message))
}

/// Names that are compared with each other; more go into a set.
const COMPARED_MAX: usize = 16;

/// Whether a name stands twice. The names were not looked up yet, so a frame may hold millions of
/// them; most statements have a few, for which a set costs more than it saves.
fn has_duplicates(names: &[Ident<'_>]) -> bool {
    if names.len() <= COMPARED_MAX {
        return names.iter().enumerate().any(|(at, name)| names[..at].contains(name));
    }
    let mut seen = HashSet::with_capacity(names.len());
    !names.iter().all(|name| seen.insert(name.as_str()))
}

fn check_table(table: &TableMetadata) -> Result<(), CqlError> {
    match table.kind {
        TableKind::View => return invalid("Cannot directly modify a materialized view"),
        // a virtual table refuses changes itself
        TableKind::Regular | TableKind::Index | TableKind::Virtual => {}
    }
    crate::statements::check_dependents(table)
}

fn using(
    context: &mut PrepareContext<'_>,
    timestamp: Option<&ast::Term<'_>>,
    ttl: Option<&ast::Term<'_>>,
) -> Result<(Option<Term>, Option<Term>), CqlError> {
    let mut prepare = |term: Option<&ast::Term<'_>>, name: &str, ty: CqlType| match term {
        None => Ok(None),
        Some(term) => terms::prepare(context, term, &Receiver::new(name, ty)).map(Some),
    };
    let timestamp = prepare(timestamp, "[timestamp]", CqlType::BigInt)?;
    Ok((timestamp, prepare(ttl, "[ttl]", CqlType::Int)?))
}

/// The two lists of operations of a plan, each in the order of column ids.
#[derive(Default)]
struct Operations {
    statics: Vec<Operation>,
    regulars: Vec<Operation>,
}

impl Operations {
    fn add(&mut self, column: &ColumnMetadata, operation: Operation) {
        let list = if column.is_static() { &mut self.statics } else { &mut self.regulars };
        list.push(operation);
    }

    fn only_static(&self) -> bool {
        !self.statics.is_empty() && self.regulars.is_empty()
    }

    fn into_plan(
        mut self,
        schema: &Schema,
        table: Arc<TableMetadata>,
        kind: StatementKind,
        restrictions: Restrictions,
        using: (Option<Term>, Option<Term>),
        conditions: Conditions,
    ) -> Result<ModificationPlan, CqlError> {
        // cells stand in rows in this order; the sort is stable, so that changes of one column keep
        // theirs
        self.statics.sort_by_key(Operation::column);
        self.regulars.sort_by_key(Operation::column);
        let is_static = |operation: &Operation| table.column(operation.column()).map(ColumnMetadata::is_static);
        let (statics, regulars) = (&self.statics, &self.regulars);
        assert!(statics.iter().all(|operation| is_static(operation) == Some(true)), "static rows have static columns");
        assert!(regulars.iter().all(|operation| is_static(operation) == Some(false)), "rows have regular columns");
        let requires_read = self.statics.iter().chain(&self.regulars).any(Operation::requires_read);
        let indexes = table.indexes.values().filter_map(|index| IndexDefinition::of(&table, index, false));
        let keyspace = schema.keyspace(&table.keyspace).into_iter();
        let plan = ModificationPlan {
            indexes: indexes.collect(),
            views: keyspace.flat_map(|keyspace| keyspace.views_of(table.id)).cloned().collect(),
            table,
            kind,
            restrictions,
            static_operations: self.statics,
            operations: self.regulars,
            timestamp: using.0,
            ttl: using.1,
            requires_read,
            conditions,
            lacks_compact_value: false,
        };
        plan.check_conditions()
    }
}

/// Prepares an INSERT.
pub(crate) fn prepare_insert(
    context: &mut PrepareContext<'_>,
    insert: &ast::Insert<'_>,
    keyspace: Option<&str>,
) -> Result<ModificationPlan, CqlError> {
    let table = context.table(&insert.table, keyspace)?;
    context.set_table(&table);
    if table.is_counter() {
        return invalid("INSERT statements are not allowed on counter tables, use UPDATE instead");
    }
    check_table(&table)?;
    let (columns, values) = match &insert.source {
        InsertSource::Values { columns, values } => (columns, values),
        InsertSource::Json { value, default_unset } => {
            return prepare_insert_json(context, insert, table, value, *default_unset);
        }
    };
    if columns.is_empty() {
        return invalid("No columns provided to INSERT");
    }
    if columns.len() != values.len() {
        return invalid("Unmatched column names/values");
    }
    if has_duplicates(columns) {
        return invalid("The column names contains duplicates");
    }
    let mut operations = Operations::default();
    let mut keys = Vec::new();
    let mut sets_clustering = false;
    for (name, value) in columns.iter().zip(values) {
        let column = find_column(&table, name.as_str())?;
        sets_clustering |= column.kind == ColumnKind::Clustering;
        if column.is_primary_key() {
            keys.push((column, terms::prepare(context, value, &Receiver::column(column))?));
        } else {
            let operation = set_value(context, column, value)?;
            operations.add(column, operation);
        }
    }
    let only_static = !sets_clustering && operations.only_static();
    let lacks_compact_value = lacks_compact_value(&table, &operations);
    let using = using(context, insert.using.timestamp.as_ref(), insert.using.ttl.as_ref())?;
    let restrictions = restrictions::of_insert(&table, keys, only_static)?;
    let plan = operations.into_plan(
        context.schema,
        Arc::clone(&table),
        StatementKind::Insert,
        restrictions,
        using,
        of_insert(insert),
    )?;
    Ok(ModificationPlan { lacks_compact_value, ..plan })
}

/// Prepares an INSERT JSON. It sets every column of the table, except those that DEFAULT UNSET
/// leaves as they are.
fn prepare_insert_json(
    context: &mut PrepareContext<'_>,
    insert: &ast::Insert<'_>,
    table: Arc<TableMetadata>,
    value: &JsonValue<'_>,
    default_unset: bool,
) -> Result<ModificationPlan, CqlError> {
    let columns = table.columns_in_select_order();
    let source = JsonSource::prepare(context, value, &columns, default_unset)?;
    let mut operations = Operations::default();
    let mut keys = Vec::new();
    for (at, column) in columns.into_iter().enumerate() {
        // a key column that is missing is refused when the statement is executed, as in Cassandra.
        // Of a conditional statement a static column counts as set: its value is in the answer
        let counts = column.is_primary_key() || insert.if_not_exists;
        let Some(term) = source.term(at).or(counts.then_some(Term::Unset)) else { continue };
        if column.is_primary_key() {
            keys.push((column, term));
        } else if column.is_complex() {
            operations.add(column, Operation::SetComplex(TypedColumn::from(column), term));
        } else {
            operations.add(column, Operation::Set(column.id, term));
        }
    }
    let using = using(context, insert.using.timestamp.as_ref(), insert.using.ttl.as_ref())?;
    let only_static = table.is_static_compact() && operations.only_static();
    let restrictions = restrictions::of_insert(&table, keys, only_static)?;
    operations.into_plan(
        context.schema,
        Arc::clone(&table),
        StatementKind::Insert,
        restrictions,
        using,
        of_insert(insert),
    )
}

fn of_insert(insert: &ast::Insert<'_>) -> Conditions {
    if insert.if_not_exists { Conditions::NotExists } else { Conditions::None }
}

/// Prepares an UPDATE.
pub(crate) fn prepare_update(
    context: &mut PrepareContext<'_>,
    update: &ast::Update<'_>,
    keyspace: Option<&str>,
) -> Result<ModificationPlan, CqlError> {
    let table = context.table(&update.table, keyspace)?;
    context.set_table(&table);
    check_table(&table)?;
    let using = using(context, update.using.timestamp.as_ref(), update.using.ttl.as_ref())?;
    let conditions = conditions::prepare(context, &table, &update.condition, using.0.is_some())?;
    let mut operations = Operations::default();
    for assignment in &update.assignments {
        let column = find_column(&table, assignment.column.as_str())?;
        if column.is_primary_key() {
            return invalid(format!("PRIMARY KEY part {} found in SET part", column.name));
        }
        let operation = assign(context, column, &assignment.operation, !conditions.is_none())?;
        operations.add(column, operation);
    }
    let only_static = operations.only_static() && !conditions.applies_to_regular();
    let clause = &update.where_clause;
    let restrictions = restrictions::prepare(context, StatementKind::Update, &table, clause, only_static, false)?;
    operations.into_plan(context.schema, Arc::clone(&table), StatementKind::Update, restrictions, using, conditions)
}

/// Prepares a DELETE.
pub(crate) fn prepare_delete(
    context: &mut PrepareContext<'_>,
    delete: &ast::Delete<'_>,
    keyspace: Option<&str>,
) -> Result<ModificationPlan, CqlError> {
    let table = context.table(&delete.table, keyspace)?;
    context.set_table(&table);
    check_table(&table)?;
    let using = using(context, delete.timestamp.as_ref(), None)?;
    let conditions = conditions::prepare(context, &table, &delete.condition, using.0.is_some())?;
    let mut operations = Operations::default();
    for deletion in &delete.deletions {
        let column = find_column(&table, deletion.column().as_str())?;
        if column.is_primary_key() {
            return invalid(format!(
                "Invalid identifier {} for deletion (should not be a PRIMARY KEY part)",
                column.name
            ));
        }
        let operation = delete_part(context, column, deletion)?;
        operations.add(column, operation);
    }
    let only_static = operations.only_static() && !conditions.applies_to_regular();
    let clause = &delete.where_clause;
    let restrictions = restrictions::prepare(context, StatementKind::Delete, &table, clause, only_static, false)?;
    let plan = operations.into_plan(
        context.schema,
        Arc::clone(&table),
        StatementKind::Delete,
        restrictions,
        using,
        conditions,
    )?;
    check_conditional_delete(&plan)?;
    Ok(plan)
}

/// Refuses a conditional DELETE of more than one row, unless it deletes static columns only.
fn check_conditional_delete(plan: &ModificationPlan) -> Result<(), CqlError> {
    const NEEDS_KEY: &str =
        "DELETE statements must restrict all PRIMARY KEY columns with equality relations in order to";
    let restrictions = &plan.restrictions;
    let names_row =
        restrictions.clustering_width() == plan.table.clustering.len() && !restrictions.has_clustering_slice();
    if plan.conditions.is_none() || names_row {
        return Ok(());
    }
    if !plan.operations.is_empty() || plan.static_operations.is_empty() {
        return invalid(format!("{NEEDS_KEY} delete non static columns"));
    }
    if plan.conditions.applies_to_regular() {
        return invalid(format!("{NEEDS_KEY} use IF condition on non static columns"));
    }
    Ok(())
}

/// Whether an INSERT lacks the value of the only value column of a compact table, without which the
/// row would not exist.
fn lacks_compact_value(table: &TableMetadata, operations: &Operations) -> bool {
    let is_wanted = |value: &ColumnMetadata| !table.is_static_compact() && value.ty != CqlType::Empty;
    operations.regulars.is_empty() && table.compact_value().is_some_and(is_wanted)
}

fn delete_part(
    context: &mut PrepareContext<'_>,
    column: &ColumnMetadata,
    deletion: &Deletion<'_>,
) -> Result<Operation, CqlError> {
    let name = &column.name;
    match deletion {
        Deletion::Column(_) => Ok(Operation::Delete(column.id, column.is_complex())),
        Deletion::Element(_, key) => {
            let receiver = |part: &str, ty: &CqlType| Receiver::new(format!("{part}({name})"), ty.clone());
            match &column.ty {
                ty if !ty.is_collection() => {
                    invalid(format!("Invalid deletion operation for non collection column {name}"))
                }
                ty if !ty.is_multi_cell() => {
                    invalid(format!("Invalid deletion operation for frozen collection column {name}"))
                }
                CqlType::Set { element, .. } => {
                    let term = terms::prepare(context, key, &receiver("value", element))?;
                    Ok(Operation::DeleteKey(TypedColumn::from(column), term))
                }
                CqlType::Map { key: key_type, .. } => {
                    let term = terms::prepare(context, key, &receiver("key", key_type))?;
                    Ok(Operation::DeleteKey(TypedColumn::from(column), term))
                }
                _ => {
                    let term = terms::prepare(context, key, &receiver("idx", &CqlType::Int))?;
                    Ok(Operation::DeleteIndex(column.id, term))
                }
            }
        }
        Deletion::Field(_, field) => match &column.ty {
            CqlType::Udt(_, true) => invalid(format!("Frozen UDT column {name} does not support field deletions")),
            CqlType::Udt(udt, _) => Ok(Operation::DeleteField(column.id, field_index(context, column, udt, field)?)),
            _ => invalid(format!("Invalid field deletion operation for non-UDT column {name}")),
        },
    }
}
