//! The select clause: selectors are prepared once and evaluated for each row, straight into wire
//! form.
//!
//! Agrees with `org.apache.cassandra.cql3.selection`.

mod aggregate;
mod apply_masks;
mod cell_attributes;
mod mask;
mod node;
mod prepare;
mod row;
mod row_ids;

use std::sync::Arc;

use bytes::Bytes;
use schema::{ColumnId, TableMetadata};
use types::CqlType;

pub(crate) use aggregate::{Aggregate, AggregateState};
use cell_attributes::AttributeTarget;
pub(crate) use mask::Mask;
pub(crate) use prepare::{PreparedSelection, prepare, prepare_group};
pub(crate) use row::{Column, OwnedRow, RowView};
use row_ids::RowIds;

use crate::ast::CellAttribute;
use crate::context::Bindings;
use crate::error::CqlError;
use crate::functions::{Function, VALUE_BYTES_MAX, Values};
use crate::sources::NoSources;
use crate::terms::Term;
use crate::values;
use crate::values::BoundValue;

/// The most bytes of a result, and so of a row: what a frame can carry, less room for its head. A
/// statement with a larger result is refused.
pub(crate) const RESULT_BYTES_MAX: usize = if cfg!(test) { 16 << 20 } else { 255 << 20 };
/// Selectors whose values are appended before the size of the row is looked at again. A statement
/// names a column as often as its text has room for, so that one row could fill the memory.
const SELECTORS_UNCHECKED: usize = 4;

/// An expression with a value for each row.
#[derive(Clone, Debug)]
pub(crate) enum Selector {
    /// A column.
    Column(Column),
    /// A constant or a bound value.
    Term(Term),
    /// `writetime`, `maxwritetime` or `ttl` of a column or a part of one.
    Attribute(CellAttribute, Box<AttributeTarget>),
    /// A call of a function.
    Call(Arc<Function>, Vec<Selector>),
    /// `uuid()` or `now()`: an id of its own for each row.
    RowId(RowIds),
    /// A field of a user type.
    Field(Box<Selector>, usize),
    /// An element of a map or set; the type is that of the collection.
    Element(CqlType, Box<Selector>, Box<Selector>, Arc<str>),
    /// The elements of a map or set between two keys.
    Slice(CqlType, Box<Selector>, Option<Box<Selector>>, Option<Box<Selector>>),
    /// A tuple or a value of a user type.
    Tuple(Vec<Selector>),
    /// A list.
    List(Vec<Selector>),
    /// A set; the type is that of its elements.
    Set(CqlType, Vec<Selector>),
    /// A map; the type is that of its keys.
    Map(CqlType, Vec<(Selector, Selector)>),
    /// A vector; the type is that of its elements.
    Vector(CqlType, Vec<Selector>),
    /// The value of an aggregate, by its index in [`Selection::aggregates`].
    Aggregate(usize),
}

/// A prepared select clause.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    /// The selectors, one for each column of the result.
    pub selectors: Vec<Selector>,
    /// Names and types of the columns of the result.
    pub names: Vec<(String, CqlType)>,
    /// The aggregates that selectors refer to.
    pub aggregates: Vec<Aggregate>,
    /// The static and regular columns that selectors read, sorted.
    pub fetched: Arc<[ColumnId]>,
    /// All columns that selectors read, for the checks of DISTINCT.
    pub requested: Vec<Column>,
    /// Some selector depends on bound values or clocks, so that it must be bound for each request.
    pub has_terms: bool,
}

impl Selection {
    /// A copy with its terms evaluated. It needs no bound values, so that another thread can use
    /// it.
    pub fn bind(&self, bindings: &Bindings<'_>) -> Result<Self, CqlError> {
        let mut bound = self.clone();
        for selector in &mut bound.selectors {
            selector.bind(bindings)?;
        }
        for aggregate in &mut bound.aggregates {
            let user = aggregate.user.iter_mut().flat_map(|(_, arguments)| arguments);
            for argument in aggregate.argument.iter_mut().chain(user) {
                argument.bind(bindings)?;
            }
        }
        Ok(bound)
    }

    /// Adds columns to those that are read, for grouping or filtering.
    pub fn fetch(&mut self, columns: impl Iterator<Item = ColumnId>) {
        let mut ids: Vec<_> = self.fetched.iter().copied().chain(columns).collect();
        ids.sort_unstable();
        ids.dedup();
        self.fetched = ids.into();
    }

    /// Appends a row of the result as one JSON text.
    pub fn put_json(&self, out: &mut Vec<u8>, row: &RowView<'_>) -> Result<(), CqlError> {
        let mut json = String::from("{");
        for (at, (selector, (name, ty))) in self.selectors.iter().zip(&self.names).enumerate() {
            check_row(json.len())?;
            if at > 0 {
                json.push_str(", ");
            }
            json.push_str(&json_name(name));
            json.push_str(": ");
            match selector.value(row)? {
                Some(value) => json.push_str(&types::json::to_json(ty, &value)),
                None => json.push_str("null"),
            }
        }
        json.push('}');
        stdx::put_int_bytes(out, Some(json.as_bytes()));
        Ok(())
    }

    /// Appends a row of the result.
    pub fn put(&self, out: &mut Vec<u8>, row: &RowView<'_>) -> Result<(), CqlError> {
        let start = out.len();
        for some in self.selectors.chunks(SELECTORS_UNCHECKED) {
            check_row(out.len() - start)?;
            for selector in some {
                selector.put(out, row)?;
            }
        }
        Ok(())
    }
}

/// Refuses a row that has more bytes already than a result may have.
fn check_row(size: usize) -> Result<(), CqlError> {
    if size <= RESULT_BYTES_MAX {
        return Ok(());
    }
    let most = RESULT_BYTES_MAX >> 20;
    Err(CqlError::invalid(format!("A row of the result is larger than {most} MiB: ask for less")))
}

impl Selector {
    /// A copy with its terms evaluated, and with calls evaluated that depend on terms only.
    pub fn bind(&mut self, bindings: &Bindings<'_>) -> Result<(), CqlError> {
        match self {
            Self::Term(term) => *term = Term::Constant(term.eval_option(bindings)?),
            Self::Column(_) | Self::Aggregate(_) | Self::RowId(_) => {}
            Self::Attribute(_, target) => target.bind(bindings)?,
            Self::Call(function, arguments) => {
                for argument in arguments.iter_mut() {
                    argument.bind_argument(bindings, function)?;
                }
                let known: Option<Values> = arguments.iter().map(Self::constant).collect();
                if let Some(known) = known {
                    let value = match function.evaluate(&known, bindings.sources) {
                        // a user's function is called for rows alone: the first row has the failure
                        Err(_) if function.is_user_defined() => return Ok(()),
                        value => value?,
                    };
                    *self = match value.as_deref().and_then(RowIds::new).filter(|_| function.gives_ids()) {
                        Some(row_ids) => Self::RowId(row_ids),
                        None => Self::Term(Term::Constant(value)),
                    };
                }
            }
            Self::Field(inner, _) => inner.bind(bindings)?,
            Self::Element(_, inner, key, name) => {
                inner.bind(bindings)?;
                key.bind_key(bindings, name)?;
            }
            Self::Slice(_, inner, from, to) => {
                inner.bind(bindings)?;
                for place in [from, to] {
                    if let Some(end) = place
                        && !end.bind_end(bindings)?
                    {
                        *place = None;
                    }
                }
            }
            Self::Tuple(parts) | Self::List(parts) | Self::Set(_, parts) | Self::Vector(_, parts) => {
                for part in parts {
                    part.bind(bindings)?;
                }
            }
            Self::Map(_, entries) => {
                for (key, value) in entries {
                    key.bind(bindings)?;
                    value.bind(bindings)?;
                }
            }
        }
        Ok(())
    }

    /// As [`Self::bind`], for the argument of a function, which must not be unset.
    fn bind_argument(&mut self, bindings: &Bindings<'_>, function: &Function) -> Result<(), CqlError> {
        if let Self::Term(term) = self
            && term.eval(bindings)? == BoundValue::Unset
        {
            return Err(CqlError::invalid(format!(
                "Invalid unset value for argument in call to function {}",
                function.name()
            )));
        }
        self.bind(bindings)
    }

    /// As [`Self::bind`], for the key of an element of a collection, which must be neither null nor
    /// unset. `name`: what is selected of the collection.
    fn bind_key(&mut self, bindings: &Bindings<'_>, name: &str) -> Result<(), CqlError> {
        if let Self::Term(term) = self {
            let is = match term.eval(bindings)? {
                BoundValue::Bytes(_) => "",
                BoundValue::Null => "null",
                BoundValue::Unset => "unset",
            };
            if !is.is_empty() {
                return Err(CqlError::invalid(format!("Invalid {is} value for element selection on {name}")));
            }
        }
        self.bind(bindings)
    }

    /// As [`Self::bind`], for an end of a slice of a collection. False: unset, which is no end.
    fn bind_end(&mut self, bindings: &Bindings<'_>) -> Result<bool, CqlError> {
        if let Self::Term(term) = self {
            match term.eval(bindings)? {
                BoundValue::Bytes(_) => {}
                BoundValue::Null => return Err(CqlError::invalid("Invalid null value for slice selection")),
                BoundValue::Unset => return Ok(false),
            }
        }
        self.bind(bindings)?;
        Ok(true)
    }

    /// The value of a bound selector that is the same for every row; None: it depends on the row.
    fn constant(&self) -> Option<Option<Bytes>> {
        match self {
            Self::Term(Term::Constant(value)) => Some(value.clone()),
            _ => None,
        }
    }

    /// Appends the value for a row: `[int]` length and bytes.
    fn put(&self, out: &mut Vec<u8>, row: &RowView<'_>) -> Result<(), CqlError> {
        match self {
            Self::Column(column) => row.put(out, column),
            Self::Call(function, arguments) => {
                let at = out.len();
                stdx::put_i32(out, -1);
                if function.call(&values_of(arguments, row)?, &NoSources, out)? {
                    let length = i32::try_from(out.len() - at - 4).expect("the value of a function is bounded");
                    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
                }
            }
            _ => stdx::put_int_bytes(out, self.value(row)?.as_deref()),
        }
        Ok(())
    }

    /// The value for a row; None: null.
    pub fn value(&self, row: &RowView<'_>) -> Result<Option<Bytes>, CqlError> {
        Ok(match self {
            Self::Column(column) => row.value(column),
            Self::Term(Term::Constant(value)) => value.clone(),
            Self::Term(_) => return Err(CqlError::Server("a selector was not bound".into())),
            Self::RowId(row_ids) => Some(row_ids.of_row(row)),
            Self::Attribute(attribute, target) => target.value(*attribute, row)?,
            Self::Call(function, arguments) => function.evaluate(&values_of(arguments, row)?, &NoSources)?,
            Self::Field(inner, field) => match inner.value(row)? {
                Some(value) => values::split_tuple(&value)?.into_iter().nth(*field).flatten(),
                None => None,
            },
            Self::Element(ty, inner, key, _) => match (inner.value(row)?, key.value(row)?) {
                (Some(value), Some(key)) => element(ty, &value, &key)?,
                _ => None,
            },
            Self::Slice(ty, inner, from, to) => {
                let end = |end: &Option<Box<Selector>>| end.as_ref().map(|end| end.value(row)).transpose();
                match (inner.value(row)?, end(from)?, end(to)?) {
                    (None, ..) | (_, Some(None), _) | (_, _, Some(None)) => None,
                    (Some(value), from, to) => slice(ty, &value, from.flatten(), to.flatten())?,
                }
            }
            Self::Tuple(parts) => {
                let (mut found, mut room) = (Vec::with_capacity(parts.len()), VALUE_BYTES_MAX);
                for part in parts {
                    let value = part.value(row)?;
                    value.iter().try_for_each(|value| values::take_room(&mut room, value))?;
                    found.push(value);
                }
                Some(values::pack_tuple(&found))
            }
            Self::List(parts) => Some(values::pack_list(&elements(parts, row)?)),
            Self::Set(ty, parts) => {
                let mut found = elements(parts, row)?;
                values::sort_set(ty, &mut found);
                Some(values::pack_list(&found))
            }
            Self::Vector(ty, parts) => Some(values::pack_vector(ty, &elements(parts, row)?)),
            Self::Map(ty, entries) => {
                let (mut found, mut room) = (Vec::with_capacity(entries.len()), VALUE_BYTES_MAX);
                for (key, value) in entries {
                    let (key, value) = (required(key.value(row)?)?, required(value.value(row)?)?);
                    values::take_room(&mut room, &key)?;
                    values::take_room(&mut room, &value)?;
                    found.push((key, value));
                }
                values::sort_map(ty, &mut found);
                Some(values::pack_map(&found))
            }
            Self::Aggregate(at) => match row.aggregates.get(*at) {
                Some(value) => value.clone(),
                None => return Err(CqlError::Server("a row without its aggregates is shown".into())),
            },
        })
    }
}

/// Evaluates the arguments of a call.
fn values_of(arguments: &[Selector], row: &RowView<'_>) -> Result<Values, CqlError> {
    arguments.iter().map(|argument| argument.value(row)).collect()
}

/// The name of a column as a JSON key. Names with capitals are quoted inside of the key, as in
/// Cassandra.
fn json_name(name: &str) -> String {
    let quoted = if name.to_lowercase() == name { name.to_owned() } else { format!("\"{name}\"") };
    types::json::to_json(&CqlType::Text, quoted.as_bytes())
}

fn required(value: Option<Bytes>) -> Result<Bytes, CqlError> {
    value.ok_or_else(|| CqlError::invalid("null is not supported inside collections"))
}

fn elements(parts: &[Selector], row: &RowView<'_>) -> Result<Vec<Bytes>, CqlError> {
    let (mut found, mut room) = (Vec::with_capacity(parts.len()), VALUE_BYTES_MAX);
    for part in parts {
        let value = required(part.value(row)?)?;
        values::take_room(&mut room, &value)?;
        found.push(value);
    }
    Ok(found)
}

fn element(ty: &CqlType, value: &Bytes, wanted: &Bytes) -> Result<Option<Bytes>, CqlError> {
    Ok(match ty {
        CqlType::Map { key, .. } => values::split_map(value)?
            .into_iter()
            .find(|(found, _)| types::compare(key, found, wanted).is_eq())
            .map(|(_, value)| value),
        CqlType::Set { element, .. } => {
            values::split_list(value)?.into_iter().find(|found| types::compare(element, found, wanted).is_eq())
        }
        _ => None,
    })
}

/// The part of a collection between two keys. None: an empty part of a collection that is not
/// frozen, which is null.
fn slice(ty: &CqlType, value: &Bytes, from: Option<Bytes>, to: Option<Bytes>) -> Result<Option<Bytes>, CqlError> {
    let within = |ty: &CqlType, found: &Bytes| {
        from.as_ref().is_none_or(|from| types::compare(ty, found, from).is_ge())
            && to.as_ref().is_none_or(|to| types::compare(ty, found, to).is_le())
    };
    let is_shown = |count: usize| count > 0 || !ty.is_multi_cell();
    Ok(match ty {
        CqlType::Map { key, .. } => {
            let entries: Vec<_> =
                values::split_map(value)?.into_iter().filter(|(found, _)| within(key, found)).collect();
            is_shown(entries.len()).then(|| values::pack_map(&entries))
        }
        CqlType::Set { element, .. } => {
            let found: Vec<_> = values::split_list(value)?.into_iter().filter(|found| within(element, found)).collect();
            is_shown(found.len()).then(|| values::pack_list(&found))
        }
        _ => Some(value.clone()),
    })
}

/// The columns that `*` stands for.
pub(crate) fn wildcard(table: &TableMetadata) -> Selection {
    let columns: Vec<_> = table.columns_in_select_order();
    let mut selection = Selection {
        selectors: columns.iter().map(|column| Selector::Column(Column::of(column))).collect(),
        names: columns.iter().map(|column| (column.name.clone(), column.ty.clone())).collect(),
        aggregates: Vec::new(),
        fetched: Arc::from([]),
        requested: columns.iter().map(|column| Column::of(column)).collect(),
        has_terms: false,
    };
    selection.fetch(columns.iter().filter(|column| !column.is_primary_key()).map(|column| column.id));
    selection
}
