//! Preparing one assignment of UPDATE: from `column = …` to the operation on the column.
//!
//! Agrees with the classes `SetValue`, `SetElement`, `SetField`, `Addition`, `Substraction` and
//! `Prepend` in `org.apache.cassandra.cql3.Operation`, messages included.

use std::sync::Arc;

use schema::ColumnMetadata;
use types::CqlType;

use super::Operation;
use super::operation::TypedColumn;
use crate::ast::{self, AssignmentOperation};
use crate::context::{PrepareContext, Receiver};
use crate::error::CqlError;
use crate::terms;

fn invalid<T>(message: impl Into<String>) -> Result<T, CqlError> {
    Err(CqlError::invalid(message))
}

/// The operation that an assignment means. `is_conditional`: the statement has an IF, so that
/// columns other than counters may be added to what is there.
pub(super) fn assign(
    context: &mut PrepareContext<'_>,
    column: &ColumnMetadata,
    operation: &AssignmentOperation<'_>,
    is_conditional: bool,
) -> Result<Operation, CqlError> {
    let mut assignment = Assignment { context, column, operation };
    match operation {
        AssignmentOperation::Set(term) => set_value(assignment.context, column, term),
        AssignmentOperation::Add(term) => assignment.add(term, is_conditional),
        AssignmentOperation::Subtract(term) => assignment.subtract(term),
        AssignmentOperation::Prepend(term) => assignment.prepend(term),
        AssignmentOperation::SetElement(key, term) => assignment.set_element(key, term),
        AssignmentOperation::SetField(field, term) => assignment.set_field(field, term),
    }
}

/// An assignment that is being prepared.
struct Assignment<'a, 's, 't> {
    context: &'a mut PrepareContext<'s>,
    column: &'a ColumnMetadata,
    operation: &'a AssignmentOperation<'t>,
}

impl Assignment<'_, '_, '_> {
    /// Refuses the assignment for the kind of the column.
    fn wrong<T>(&self, kind: &str) -> Result<T, CqlError> {
        let column = self.column;
        invalid(format!("Invalid operation ({}) for {kind} column {}", shown(column, self.operation), column.name))
    }

    /// The term as a value of the column.
    fn value(&mut self, term: &ast::Term<'_>) -> Result<terms::Term, CqlError> {
        terms::prepare(self.context, term, &Receiver::column(self.column))
    }

    /// The term as a part of the column, such as the key of a map.
    fn part(&mut self, part: &str, ty: &CqlType, term: &ast::Term<'_>) -> Result<terms::Term, CqlError> {
        let receiver = Receiver::new(format!("{part}({})", self.column.name), ty.clone());
        terms::prepare(self.context, term, &receiver)
    }

    fn add(&mut self, term: &ast::Term<'_>, is_conditional: bool) -> Result<Operation, CqlError> {
        let column = self.column;
        match &column.ty {
            CqlType::Tuple(_) | CqlType::Udt(..) => self.wrong("tuple"),
            CqlType::Counter => Ok(Operation::Increment(column.id, self.value(term)?)),
            ty if is_conditional && (types::number::is_numeric(ty) || matches!(ty, CqlType::Text | CqlType::Ascii)) => {
                Ok(Operation::AddValue(column.into(), self.value(term)?))
            }
            ty if is_conditional && !ty.is_collection() => invalid(format!(
                "Invalid operation ({}) for non-numeric and non-text type {}",
                shown(column, self.operation),
                column.name
            )),
            ty if !ty.is_collection() => self.wrong("non counter"),
            ty if !ty.is_multi_cell() => self.wrong("frozen collection"),
            CqlType::Map { .. } => {
                let elements = self.value(term).map_err(|_| {
                    CqlError::invalid(format!("Value for a map addition has to be a map, but was: '{term}'"))
                })?;
                Ok(Operation::Add(column.into(), elements))
            }
            _ => Ok(Operation::Add(column.into(), self.value(term)?)),
        }
    }

    fn subtract(&mut self, term: &ast::Term<'_>) -> Result<Operation, CqlError> {
        let column = self.column;
        match &column.ty {
            CqlType::Counter => Ok(Operation::Decrement(column.id, self.value(term)?)),
            ty if !ty.is_collection() => self.wrong("non counter"),
            ty if !ty.is_multi_cell() => self.wrong("frozen collection"),
            CqlType::List { .. } => Ok(Operation::DiscardFromList(column.id, self.value(term)?)),
            CqlType::Map { key, .. } => {
                // what is taken from a map is a set of its keys
                let keys = CqlType::Set { element: Arc::clone(key), frozen: false };
                let receiver = Receiver::new(column.name.clone(), keys);
                let prepared = terms::prepare(self.context, term, &receiver).map_err(|_| {
                    CqlError::invalid(format!("Value for a map substraction has to be a set, but was: '{term}'"))
                })?;
                Ok(Operation::Discard(column.into(), prepared))
            }
            _ => Ok(Operation::Discard(column.into(), self.value(term)?)),
        }
    }

    fn prepend(&mut self, term: &ast::Term<'_>) -> Result<Operation, CqlError> {
        match &self.column.ty {
            CqlType::List { frozen: true, .. } => self.wrong("frozen list"),
            CqlType::List { .. } => Ok(Operation::Prepend(self.column.into(), self.value(term)?)),
            _ => self.wrong("non list"),
        }
    }

    fn set_element(&mut self, key: &ast::Term<'_>, term: &ast::Term<'_>) -> Result<Operation, CqlError> {
        let column = self.column;
        match &column.ty {
            ty if !ty.is_collection() => self.wrong("non collection"),
            ty if !ty.is_multi_cell() => self.wrong("frozen collection"),
            CqlType::List { element, .. } => {
                let index = self.part("idx", &CqlType::Int, key)?;
                Ok(Operation::SetIndex(column.id, index, self.part("value", element, term)?))
            }
            CqlType::Map { key: key_type, value, .. } => {
                let key = self.part("key", key_type, key)?;
                Ok(Operation::SetKey(column.id, key, self.part("value", value, term)?))
            }
            _ => self.wrong("set"),
        }
    }

    fn set_field(&mut self, field: &ast::Ident<'_>, term: &ast::Term<'_>) -> Result<Operation, CqlError> {
        let column = self.column;
        match &column.ty {
            CqlType::Udt(_, true) => self.wrong("frozen UDT"),
            CqlType::Udt(udt, _) => {
                let index = field_index(self.context, column, udt, field)?;
                let receiver = terms::field_receiver(&column.name, udt, index);
                Ok(Operation::SetField(column.id, index, terms::prepare(self.context, term, &receiver)?))
            }
            _ => self.wrong("non-UDT"),
        }
    }
}

pub(super) fn set_value(
    context: &mut PrepareContext<'_>,
    column: &ColumnMetadata,
    value: &ast::Term<'_>,
) -> Result<Operation, CqlError> {
    let term = terms::prepare(context, value, &Receiver::column(column))?;
    if column.ty.is_counter() {
        return invalid(format!(
            "Cannot set the value of counter column {} (counters can only be incremented/decremented, not set)",
            column.name
        ));
    }
    if column.is_complex() {
        return Ok(Operation::SetComplex(TypedColumn::from(column), term));
    }
    Ok(Operation::Set(column.id, term))
}

/// The place of a field in a user type.
pub(super) fn field_index(
    context: &PrepareContext<'_>,
    column: &ColumnMetadata,
    udt: &Arc<types::UserType>,
    field: &ast::Ident<'_>,
) -> Result<usize, CqlError> {
    let found = context.fields.find(udt, field.as_str());
    found.ok_or_else(|| CqlError::invalid(format!("UDT column {} does not have a field named {field}", column.name)))
}

/// The assignment as messages show it.
fn shown(column: &ColumnMetadata, operation: &AssignmentOperation<'_>) -> String {
    let name = &column.name;
    match operation {
        AssignmentOperation::Set(term) => format!("{name} = {term}"),
        AssignmentOperation::Add(term) => format!("{name} = {name} + {term}"),
        AssignmentOperation::Subtract(term) => format!("{name} = {name} - {term}"),
        AssignmentOperation::Prepend(term) => format!("{name} = {term} - {name}"),
        AssignmentOperation::SetElement(key, term) => format!("{name}[{key}] = {term}"),
        AssignmentOperation::SetField(field, term) => format!("{name}.{field} = {term}"),
    }
}
