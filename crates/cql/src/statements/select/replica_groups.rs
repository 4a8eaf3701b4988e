//! The function of a GROUP BY that another node coordinates: a replica looks it up by the names
//! that came with the read, and gives its values for the count of groups.
//!
//! Agrees with `AbstractFunctionSelector.AbstractFunctionSelectorDeserializer` and
//! `GroupMaker.SelectorGroupMaker`.

use std::sync::Arc;

use bytes::Bytes;
use rows::ReadError;
use rows::limits::{GroupSelector, GroupValues};
use schema::{Schema, TableMetadata};
use types::CqlType;

use crate::fit::Fit;
use crate::functions::{self, Argument, Scope, TypeArgument};
use crate::scalar::type_name;
use crate::selection::{Column, RowView, Selector};
use crate::terms::Term;

/// A function of one clustering column.
struct FunctionValues {
    selector: Selector,
    /// The type of its values.
    ty: CqlType,
}

impl GroupValues for FunctionValues {
    fn value(&self, of: Option<&Bytes>) -> Result<Option<Bytes>, ReadError> {
        let clustering = [of.cloned()];
        let row = RowView { key: &[], clustering: &clustering, static_row: None, row: None, now: 0, aggregates: &[] };
        self.selector.value(&row).map_err(|error| ReadError::Function { why: error.to_string() })
    }

    fn is_same(&self, one: Option<&Bytes>, other: Option<&Bytes>) -> bool {
        match (one, other) {
            (Some(one), Some(other)) => types::compare(&self.ty, one, other).is_eq(),
            (one, other) => one.is_none() && other.is_none(),
        }
    }
}

/// Looks up the function by which a coordinator counts groups of a table: a function of the last of
/// so many clustering `columns`. Err: there is no such function, as a sentence.
pub fn group_values(
    schema: &Schema,
    table: &TableMetadata,
    columns: u32,
    selector: &GroupSelector,
) -> Result<Arc<dyn GroupValues>, String> {
    let column = (columns as usize).checked_sub(1).and_then(|last| table.clustering.get(last));
    let column = column.ok_or_else(|| format!("{} has no {columns} clustering columns", table.name))?;
    let (selector, ty) = look_up(schema, table, &column.ty, selector)?;
    Ok(Arc::new(FunctionValues { selector, ty }))
}

/// The selector, and the type of its values. The clustering column is of the type `of`, and stands
/// first in the rows that the selector is given.
fn look_up(
    schema: &Schema,
    table: &TableMetadata,
    of: &CqlType,
    selector: &GroupSelector,
) -> Result<(Selector, CqlType), String> {
    let GroupSelector::Call { keyspace, name, types, constants, others } = selector else {
        return Ok((Selector::Column(Column::Clustering { position: 0, ty: of.clone() }), of.clone()));
    };
    let known = schema.keyspace(&table.keyspace).map(|keyspace| &keyspace.user_types);
    let user_type = |name: &str| known.and_then(|types| types.get(name).cloned());
    let parse = |text: &String| {
        let parsed = types::cql_name::parse(text, &user_type);
        parsed.ok_or_else(|| format!("{text}, an argument of {keyspace}.{name}, is no type"))
    };
    let types = types.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    let arguments: Vec<_> = types.iter().map(TypeArgument).collect();
    let arguments: Vec<&dyn Argument> = arguments.iter().map(|argument| argument as &dyn Argument).collect();
    let scope = Scope { schema, keyspace: &table.keyspace, table: &table.name };
    let found = functions::resolve(scope, Some(keyspace), name, &arguments, None).map_err(|error| error.to_string())?;
    let function = found.ok_or_else(|| format!("there is no function {keyspace}.{name}"))?;
    if function.aggregate().is_some() {
        return Err(format!("{keyspace}.{name} is an aggregate, and makes no groups"));
    }
    let mut others = others.iter();
    let mut selectors = Vec::with_capacity(types.len());
    for (constant, ty) in constants.iter().zip(&types) {
        selectors.push(match constant {
            Some(value) => Selector::Term(Term::Constant(Some(value.clone()))),
            None => {
                let other = others.next().ok_or_else(|| format!("a call of {keyspace}.{name} lacks an argument"))?;
                let (selector, of_other) = look_up(schema, table, of, other)?;
                if TypeArgument(&of_other).fit(ty) == Fit::No {
                    let (has, wants) = (type_name(&of_other), type_name(ty));
                    return Err(format!("an argument of {keyspace}.{name} is of type {has}, not {wants}"));
                }
                selector
            }
        });
    }
    if selectors.len() != function.arguments.len() {
        return Err(format!("{keyspace}.{name} is called with {} arguments", selectors.len()));
    }
    for (value, ty) in constants.iter().zip(&types) {
        if let Some(value) = value {
            types::validate::validate(ty, value)
                .map_err(|error| format!("an argument of {keyspace}.{name}: {error}"))?;
        }
    }
    let returns = function.returns.clone();
    Ok((Selector::Call(function, selectors), returns))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(keyspace: &str, name: &str, types: &[&str], constants: Vec<Option<Bytes>>) -> GroupSelector {
        GroupSelector::Call {
            keyspace: keyspace.to_owned(),
            name: name.to_owned(),
            types: types.iter().map(|ty| (*ty).to_owned()).collect(),
            others: constants.iter().filter(|constant| constant.is_none()).map(|_| GroupSelector::Column).collect(),
            constants,
        }
    }

    /// The values of a function of `system_traces.events`, whose one clustering column is a
    /// timeuuid.
    fn values_of(selector: &GroupSelector) -> Result<Arc<dyn GroupValues>, String> {
        let schema = schema::system::schema();
        let table = schema.table("system_traces", "events").expect("a built-in table");
        group_values(&schema, table, 1, selector)
    }

    /// A moment, seconds since 1970, as a timestamp.
    fn seconds(value: i64) -> Option<Bytes> {
        Some(Bytes::copy_from_slice(&(value * 1000).to_be_bytes()))
    }

    /// An hour: no months, no days, 3.6e12 nanoseconds.
    fn hour() -> Option<Bytes> {
        types::literal::parse_text(&CqlType::Duration, "1h").ok().map(Bytes::from)
    }

    #[test]
    fn values_of_a_function_make_groups() {
        let floor = call("system", "floor", &["timeuuid", "duration"], vec![None, hour()]);
        let values = values_of(&floor).expect("a function");
        let id = |value: i64| Bytes::copy_from_slice(&types::timeuuid::from_micros(value * 1_000_000, 0));
        let of = |value: i64| values.value(Some(&id(value))).expect("a value");
        assert_eq!((of(3_600), of(7_199), of(7_200)), (seconds(3_600), seconds(3_600), seconds(7_200)));
        assert!(values.is_same(of(3_600).as_ref(), of(7_199).as_ref()));
        assert!(!values.is_same(of(7_199).as_ref(), of(7_200).as_ref()));
        assert!(!values.is_same(None, of(1).as_ref()) && values.is_same(None, None));
    }

    #[test]
    fn what_is_no_function_is_refused() {
        let refusals = [
            (call("system", "nothing", &["int"], vec![None]), "there is no function system.nothing"),
            (
                call("system", "floor", &["timestamp", "duration"], vec![None, hour()]),
                "an argument of system.floor is of type timeuuid, not timestamp",
            ),
            (call("system", "floor", &["nothing"], vec![None]), "nothing, an argument of system.floor, is no type"),
            (call("system", "max", &["int"], vec![None]), "system.max is an aggregate, and makes no groups"),
            (
                call("system", "floor", &["timeuuid", "duration"], vec![None, Some(Bytes::from_static(&[1]))]),
                "an argument of system.floor: ",
            ),
        ];
        for (selector, why) in refusals {
            let refused = values_of(&selector).err().expect("refused");
            assert!(refused.starts_with(why), "{refused}");
        }
    }
}
