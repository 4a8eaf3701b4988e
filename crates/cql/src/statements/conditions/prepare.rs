//! Preparing the conditions of a statement. Agrees with `ColumnCondition.Raw.prepare`.

use std::sync::Arc;

use schema::{ColumnMetadata, TableMetadata};
use types::CqlType;

use super::{ColumnCondition, Conditions, Part, Test};
use crate::ast::{self, Condition, ConditionPart, ConditionTest, InValues, Operator};
use crate::context::{PrepareContext, Receiver, find_column};
use crate::error::CqlError;
use crate::restrictions::InTerms;
use crate::terms::{self, Term};

fn invalid<T>(message: impl Into<String>) -> Result<T, CqlError> {
    Err(CqlError::invalid(message))
}

/// Prepares the IF of an UPDATE or DELETE.
pub(crate) fn prepare(
    context: &mut PrepareContext<'_>,
    table: &TableMetadata,
    condition: &Condition<'_>,
    sets_timestamp: bool,
) -> Result<Conditions, CqlError> {
    let conditions = match condition {
        Condition::None => return Ok(Conditions::None),
        Condition::Exists => return Ok(Conditions::Exists),
        Condition::Columns(conditions) => conditions,
    };
    if sets_timestamp {
        return invalid("Cannot provide custom timestamp for conditional updates");
    }
    let prepared: Result<Vec<_>, _> = conditions
        .iter()
        .map(|condition| {
            let column = find_column(table, condition.column.as_str())?;
            let prepared = prepare_one(context, column, condition)?;
            if column.is_primary_key() {
                return invalid(format!("PRIMARY KEY column '{}' cannot have IF conditions", column.name));
            }
            Ok(prepared)
        })
        .collect();
    Ok(Conditions::Columns(prepared?))
}

fn prepare_one(
    context: &mut PrepareContext<'_>,
    column: &ColumnMetadata,
    condition: &ast::ColumnCondition<'_>,
) -> Result<ColumnCondition, CqlError> {
    let name = &column.name;
    if column.ty.is_counter() {
        return invalid("Conditions on counters are not supported");
    }
    let (part, receiver) = match &condition.part {
        ConditionPart::Whole => (Part::Whole, Receiver::column(column)),
        ConditionPart::Element(key) => {
            let (key_receiver, value) = match &column.ty {
                CqlType::List { element, .. } => (Receiver::new(format!("idx({name})"), CqlType::Int), element),
                CqlType::Map { key, value, .. } => (Receiver::new(format!("key({name})"), (**key).clone()), value),
                CqlType::Set { .. } => return invalid(format!("Invalid element access syntax for set column {name}")),
                _ => return invalid(format!("Invalid element access syntax for non-collection column {name}")),
            };
            check_duration(value, &condition.test)?;
            let key = terms::prepare(context, key, &key_receiver)?;
            (Part::Element(key), Receiver::new(format!("value({name})"), (**value).clone()))
        }
        ConditionPart::Field(field) => {
            let CqlType::Udt(udt, _) = &column.ty else {
                return invalid(format!("Invalid field access syntax for non-UDT column {name}"));
            };
            let Some(index) = context.fields.find(udt, field.as_str()) else {
                return invalid(format!("Unknown field {field} for column {name}"));
            };
            (Part::Field(index), terms::field_receiver(name, udt, index))
        }
    };
    check_duration(&receiver.ty, &condition.test)?;
    let test = prepare_test(context, column, &receiver, &condition.test)?;
    Ok(ColumnCondition { column: column.clone(), part, test })
}

/// Durations have no order.
fn check_duration(ty: &CqlType, test: &ConditionTest<'_>) -> Result<(), CqlError> {
    let operator = match test {
        ConditionTest::Compare(operator, _) => *operator,
        ConditionTest::Between(..) => Operator::Gte,
        ConditionTest::In(_) | ConditionTest::NotIn(_) => return Ok(()),
    };
    let is_slice = matches!(operator, Operator::Lt | Operator::Lte | Operator::Gt | Operator::Gte);
    if !is_slice || !ty.references_duration() {
        return Ok(());
    }
    let what = match ty {
        CqlType::Tuple(_) => "tuples",
        CqlType::Udt(..) => "UDTs",
        ty if ty.is_collection() => "collections",
        _ => {
            return invalid(format!("Slice conditions ( {} ) are not supported on durations", operator.symbol()));
        }
    };
    invalid(format!("Slice conditions are not supported on {what} containing durations"))
}

fn prepare_test(
    context: &mut PrepareContext<'_>,
    column: &ColumnMetadata,
    receiver: &Receiver,
    test: &ConditionTest<'_>,
) -> Result<Test, CqlError> {
    let name = &column.name;
    match test {
        ConditionTest::Compare(operator, value) => {
            let part = |part: &str, ty: &Arc<CqlType>| Receiver::new(format!("{part}({name})"), (**ty).clone());
            let receiver = match (operator, &receiver.ty) {
                (Operator::ContainsKey, CqlType::Map { key, .. }) => &part("key", key),
                (Operator::ContainsKey, _) => {
                    return invalid(format!("Cannot use CONTAINS KEY on non-map column {name}"));
                }
                (Operator::Contains, CqlType::List { element: ty, .. } | CqlType::Set { element: ty, .. })
                | (Operator::Contains, CqlType::Map { value: ty, .. }) => &part("value", ty),
                (Operator::Contains, _) => {
                    return invalid(format!("Cannot use CONTAINS on non-collection column {name}"));
                }
                _ => receiver,
            };
            Ok(Test::Compare(*operator, terms::prepare(context, value, receiver)?))
        }
        ConditionTest::In(values) => Ok(Test::In(in_terms(context, receiver, values)?)),
        ConditionTest::NotIn(values) => Ok(Test::NotIn(in_terms(context, receiver, values)?)),
        ConditionTest::Between(low, high) => {
            let low = terms::prepare(context, low, receiver)?;
            Ok(Test::Between(low, terms::prepare(context, high, receiver)?))
        }
    }
}

/// The right side of IN and NOT IN.
fn in_terms(context: &mut PrepareContext<'_>, receiver: &Receiver, values: &InValues<'_>) -> Result<InTerms, CqlError> {
    match values {
        InValues::List(list) => {
            let terms: Result<Vec<_>, _> = list.iter().map(|term| terms::prepare(context, term, receiver)).collect();
            Ok(InTerms::List(terms?))
        }
        InValues::Bind(marker) => {
            let ty = CqlType::List { element: Arc::new(receiver.ty.clone().freeze()), frozen: true };
            let index = context.bind(marker, &Receiver::new(format!("in({})", receiver.name), ty.clone()));
            Ok(InTerms::Bind(Term::Bind { index, ty }))
        }
    }
}
