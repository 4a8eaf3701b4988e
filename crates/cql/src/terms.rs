//! Terms: expressions whose value does not depend on a row. A term is prepared for a receiver,
//! which determines its type, and evaluated with the bound values of a request.
//!
//! Agrees with
//! `org.apache.cassandra.cql3.{Term,Constants,Lists,Sets,Maps,Tuples,UserTypes,Vectors,TypeCast}`.

mod assign;
mod call;
mod json;
mod literal;
mod type_inference;

use std::sync::Arc;

use bytes::Bytes;
use types::{CqlType, UserType};

pub(crate) use assign::{TermArgument, is_assignable};
pub(crate) use json::{JsonColumn, JsonSource};
pub(crate) use literal::{field_receiver, prepare};
pub(crate) use type_inference::{common_type, compatible_type, exact_type, preferred_type, resolve_type};

use crate::context::Bindings;
use crate::error::CqlError;
use crate::functions::{Function, VALUE_BYTES_MAX, Values};
use crate::values::BoundValue;
use crate::{scalar, values};

/// A prepared term.
#[derive(Clone, Debug)]
pub(crate) enum Term {
    /// A value that is known when the statement is prepared; None: null.
    Constant(Option<Bytes>),
    /// A value that is not set: a key column that INSERT JSON leaves out.
    Unset,
    /// A bound value. Evaluating checks it against the type.
    Bind {
        /// Index of the bind marker.
        index: u16,
        /// The type that the value must have.
        ty: CqlType,
    },
    /// A composite value with parts that are known only when it is evaluated.
    Composite(Box<Composite>),
    /// A column of a bound JSON object.
    Json(Box<JsonColumn>),
    /// A call of a function.
    Call {
        /// The function.
        function: Arc<Function>,
        /// The arguments.
        arguments: Vec<Term>,
    },
}

/// A composite value of terms.
#[derive(Clone, Debug)]
pub(crate) enum Composite {
    /// A list.
    List(Vec<Term>),
    /// A set of elements of a type.
    Set(CqlType, Vec<Term>),
    /// A map with keys of a type.
    Map(CqlType, Vec<(Term, Term)>),
    /// A tuple.
    Tuple(Vec<Term>),
    /// A user type, and whether it is stored cell by cell.
    Udt(Arc<UserType>, bool, Vec<Term>),
    /// A vector of elements of a type.
    Vector(CqlType, Vec<Term>),
}

impl Term {
    /// null
    pub const NULL: Self = Self::Constant(None);

    /// The value depends neither on bound values nor on clocks.
    pub fn is_constant(&self) -> bool {
        matches!(self, Self::Constant(_))
    }

    /// Evaluates the term. A bind marker inside of a composite cannot be unset.
    pub fn eval(&self, bindings: &Bindings<'_>) -> Result<BoundValue, CqlError> {
        match self {
            Self::Constant(Some(value)) => Ok(BoundValue::Bytes(value.clone())),
            Self::Unset => Ok(BoundValue::Unset),
            Self::Constant(None) => Ok(BoundValue::Null),
            Self::Bind { index, ty } => {
                let value = bindings.value(*index)?;
                let BoundValue::Bytes(bytes) = value else { return Ok(value.clone()) };
                values::check_count(ty, bytes)?;
                scalar::validate(ty, bytes)?;
                Ok(BoundValue::Bytes(values::as_stored(ty, bytes)?))
            }
            Self::Composite(composite) => bindings.made.counted(composite.eval(bindings)?),
            Self::Json(column) => column.eval(bindings),
            Self::Call { function, arguments } => {
                let mut values = Values::new();
                for argument in arguments {
                    values.push(match argument.eval(bindings)? {
                        BoundValue::Bytes(bytes) => Some(bytes),
                        BoundValue::Null => None,
                        BoundValue::Unset => {
                            return Err(CqlError::invalid(format!(
                                "Invalid unset value for argument in call to function {}",
                                function.name()
                            )));
                        }
                    });
                }
                let value = function.evaluate(&values, bindings.sources)?;
                bindings.made.counted(value.map_or(BoundValue::Null, BoundValue::Bytes))
            }
        }
    }

    /// Evaluates the term where null and unset mean the same; None for both.
    pub fn eval_option(&self, bindings: &Bindings<'_>) -> Result<Option<Bytes>, CqlError> {
        Ok(match self.eval(bindings)? {
            BoundValue::Bytes(bytes) => Some(bytes),
            BoundValue::Null | BoundValue::Unset => None,
        })
    }
}

/// Evaluates an element of a collection. Null is refused; None means unset.
fn element(term: &Term, bindings: &Bindings<'_>) -> Result<Option<Bytes>, CqlError> {
    match term.eval(bindings)? {
        BoundValue::Bytes(bytes) => Ok(Some(bytes)),
        BoundValue::Null => Err(CqlError::invalid("null is not supported inside collections")),
        BoundValue::Unset => Ok(None),
    }
}

impl Composite {
    fn eval(&self, bindings: &Bindings<'_>) -> Result<BoundValue, CqlError> {
        let value = match self {
            Self::List(terms) => {
                let Some(elements) = elements(terms, bindings)? else { return Ok(BoundValue::Unset) };
                values::pack_list(&elements)
            }
            Self::Set(ty, terms) => {
                let Some(mut elements) = elements(terms, bindings)? else { return Ok(BoundValue::Unset) };
                values::sort_set(ty, &mut elements);
                values::pack_list(&elements)
            }
            Self::Map(ty, terms) => {
                let (mut entries, mut room) = (Vec::with_capacity(terms.len()), VALUE_BYTES_MAX);
                for (key, value) in terms {
                    let key = element(key, bindings)?
                        .ok_or_else(|| CqlError::invalid("unset value is not supported for map keys"))?;
                    let Some(value) = element(value, bindings)? else { return Ok(BoundValue::Unset) };
                    values::take_room(&mut room, &key)?;
                    values::take_room(&mut room, &value)?;
                    entries.push((key, value));
                }
                values::sort_map(ty, &mut entries);
                values::pack_map(&entries)
            }
            Self::Tuple(terms) => {
                let unset = |at| format!("Invalid unset value for tuple field number {at}");
                values::pack_tuple(&fields(terms, bindings, true, unset)?)
            }
            Self::Udt(udt, multi_cell, terms) => {
                let unset = |at: usize| {
                    let (field, name) = (&udt.fields[at].0, &udt.name);
                    format!("Invalid unset value for field '{field}' of user defined type {name}")
                };
                values::pack_tuple(&fields(terms, bindings, !*multi_cell, unset)?)
            }
            Self::Vector(ty, terms) => {
                let (mut elements, mut room) = (Vec::with_capacity(terms.len()), VALUE_BYTES_MAX);
                for term in terms {
                    match term.eval(bindings)? {
                        BoundValue::Bytes(bytes) => {
                            values::take_room(&mut room, &bytes)?;
                            elements.push(bytes);
                        }
                        BoundValue::Null => return Err(CqlError::invalid("null is not supported inside vectors")),
                        BoundValue::Unset => {
                            return Err(CqlError::invalid("unset is not supported inside vectors"));
                        }
                    }
                }
                values::pack_vector(ty, &elements)
            }
        };
        Ok(BoundValue::Bytes(value))
    }
}

fn elements(terms: &[Term], bindings: &Bindings<'_>) -> Result<Option<Vec<Bytes>>, CqlError> {
    let (mut elements, mut room) = (Vec::with_capacity(terms.len()), VALUE_BYTES_MAX);
    for term in terms {
        match element(term, bindings)? {
            Some(value) => {
                values::take_room(&mut room, &value)?;
                elements.push(value);
            }
            None => return Ok(None),
        }
    }
    Ok(Some(elements))
}

fn fields(
    terms: &[Term],
    bindings: &Bindings<'_>,
    refuse_unset: bool,
    unset: impl Fn(usize) -> String,
) -> Result<Vec<Option<Bytes>>, CqlError> {
    let (mut fields, mut room) = (Vec::with_capacity(terms.len()), VALUE_BYTES_MAX);
    for (at, term) in terms.iter().enumerate() {
        fields.push(match term.eval(bindings)? {
            BoundValue::Bytes(bytes) => {
                values::take_room(&mut room, &bytes)?;
                Some(bytes)
            }
            BoundValue::Null => None,
            BoundValue::Unset if refuse_unset => return Err(CqlError::invalid(unset(at))),
            BoundValue::Unset => None,
        });
    }
    Ok(fields)
}
