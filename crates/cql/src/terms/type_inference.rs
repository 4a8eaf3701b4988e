//! The types that names in a statement mean, and the types of terms without a receiver.
//!
//! Agrees with `org.apache.cassandra.cql3.CQL3Type.Raw.prepare`, `Term.Raw.getExactTypeIfKnown` and
//! `getCompatibleTypeIfKnown`.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::mem::discriminant;
use std::sync::Arc;

use types::CqlType;
use types::decimal::Decimal;

use crate::ast::{self, LiteralKind, TypeName};
use crate::context::PrepareContext;
use crate::error::CqlError;
use crate::fit::{Fit, fit_type, native_type};

/// Resolves the type named by a type hint or a cast. Inner types are frozen only if they are
/// written so.
pub(crate) fn resolve_type(context: &PrepareContext<'_>, name: &TypeName<'_>) -> Result<CqlType, CqlError> {
    let resolve = |name: &TypeName<'_>| resolve_type(context, name);
    Ok(match name {
        TypeName::Native(native) => native_type(*native),
        TypeName::List(element) => CqlType::List { element: Arc::new(resolve(element)?), frozen: false },
        TypeName::Set(element) => CqlType::Set { element: Arc::new(resolve(element)?), frozen: false },
        TypeName::Map(key, value) => {
            CqlType::Map { key: Arc::new(resolve(key)?), value: Arc::new(resolve(value)?), frozen: false }
        }
        TypeName::Tuple(fields) => CqlType::Tuple(fields.iter().map(resolve).collect::<Result<Vec<_>, _>>()?.into()),
        TypeName::Vector(element, dimension) => CqlType::Vector {
            element: Arc::new(resolve(element)?),
            dimension: u32::try_from(*dimension).map_err(|_| {
                CqlError::invalid(format!("vectors may only have positive dimensions; given {dimension}"))
            })?,
        },
        TypeName::Frozen(inner) => match resolve(inner)? {
            CqlType::List { element, .. } => CqlType::List { element, frozen: true },
            CqlType::Set { element, .. } => CqlType::Set { element, frozen: true },
            CqlType::Map { key, value, .. } => CqlType::Map { key, value, frozen: true },
            CqlType::Udt(udt, _) => CqlType::Udt(udt, true),
            other => other,
        },
        TypeName::User(name) => {
            let keyspace = name.keyspace().unwrap_or(&context.keyspace);
            let found = context.schema.keyspace(keyspace).and_then(|found| found.user_types.get(name.name.as_str()));
            let udt = found.ok_or_else(|| CqlError::invalid(format!("Unknown type {keyspace}.{}", name.name)))?;
            CqlType::Udt(Arc::clone(udt), false)
        }
        TypeName::Custom(class) => match types::marshal::parse(class) {
            Ok((ty, _)) => ty,
            Err(error) => return Err(CqlError::invalid(error.to_string())),
        },
    })
}

/// The type of a term that does not depend on a receiver; None: it does.
pub(crate) fn exact_type(context: &PrepareContext<'_>, term: &ast::Term<'_>) -> Option<CqlType> {
    let of = |term: &ast::Term<'_>| exact_type(context, term);
    match term {
        ast::Term::Literal(_) | ast::Term::Null | ast::Term::Bind(_) | ast::Term::UserType(_) => None,
        ast::Term::List(elements) => elements.iter().find_map(of).map(list_of),
        ast::Term::Set(elements) => elements.iter().find_map(of).map(set_of),
        ast::Term::Map(entries) => {
            let key = entries.iter().find_map(|(key, _)| of(key))?;
            let value = entries.iter().find_map(|(_, value)| of(value))?;
            Some(map_of(key, value))
        }
        ast::Term::Tuple(fields) => {
            let fields: Option<Vec<_>> = fields.iter().map(of).collect();
            Some(CqlType::Tuple(fields?.into()))
        }
        ast::Term::TypeHint(name, _) => resolve_type(context, name).ok(),
        ast::Term::Function(_) | ast::Term::Cast(..) | ast::Term::Negation(_) | ast::Term::Operation(..) => {
            super::call::return_type(context, term)
        }
    }
}

/// The type that a term is given where no receiver says which; for constants their preferred type.
pub(crate) fn compatible_type(context: &PrepareContext<'_>, term: &ast::Term<'_>) -> Option<CqlType> {
    let of = |term: &ast::Term<'_>| compatible_type(context, term);
    match term {
        ast::Term::Literal(literal) => Some(preferred_type(literal)),
        // `[…]` may be a list or a vector, so it has none
        ast::Term::Set(elements) => common_type(elements.iter().filter_map(of)).map(set_of),
        ast::Term::Map(entries) => {
            let key = common_type(entries.iter().filter_map(|(key, _)| of(key)))?;
            let value = common_type(entries.iter().filter_map(|(_, value)| of(value)))?;
            Some(map_of(key, value))
        }
        other => exact_type(context, other),
    }
}

/// The type among these to which values of all the others can be given. Only distinct types are
/// compared with one another: a literal may have as many elements as a frame has bytes.
pub(crate) fn common_type(types: impl Iterator<Item = CqlType>) -> Option<CqlType> {
    let mut seen = HashSet::new();
    let types: Vec<_> = types.filter(|ty| seen.insert(Shallow(ty.clone()))).collect();
    types.iter().find(|ty| types.iter().all(|other| fit_type(ty, other) != Fit::No)).cloned()
}

/// A type whose hash takes few steps, however many fields the user types and tuples in it have. To
/// compare two types takes few steps as well where they are the same in memory, as the types of a
/// column are wherever it stands.
#[derive(PartialEq, Eq)]
struct Shallow(CqlType);

impl Hash for Shallow {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut ty = &self.0;
        loop {
            discriminant(ty).hash(state);
            ty = match ty {
                CqlType::List { element, .. } | CqlType::Set { element, .. } | CqlType::Vector { element, .. } => {
                    element.as_ref()
                }
                CqlType::Map { key, value, .. } => {
                    discriminant(&**key).hash(state);
                    value.as_ref()
                }
                CqlType::Tuple(types) => {
                    types.len().hash(state);
                    return types.iter().take(COMPONENTS_HASHED).for_each(|ty| discriminant(ty).hash(state));
                }
                CqlType::Udt(udt, _) => return udt.name.hash(state),
                _ => return,
            };
        }
    }
}

/// Components of a tuple that its hash depends on.
const COMPONENTS_HASHED: usize = 16;

fn list_of(element: CqlType) -> CqlType {
    CqlType::List { element: Arc::new(element), frozen: true }
}

fn set_of(element: CqlType) -> CqlType {
    CqlType::Set { element: Arc::new(element), frozen: true }
}

fn map_of(key: CqlType, value: CqlType) -> CqlType {
    CqlType::Map { key: Arc::new(key), value: Arc::new(value), frozen: true }
}

/// The preferred type of a constant. As in Cassandra it is tinyint for hexadecimal digits.
pub(crate) fn preferred_type(literal: &ast::Literal<'_>) -> CqlType {
    let text = literal.text.as_ref();
    match literal.kind {
        LiteralKind::String if text.is_ascii() => CqlType::Ascii,
        LiteralKind::String => CqlType::Text,
        LiteralKind::Integer if text.parse::<i32>().is_ok() => CqlType::Int,
        LiteralKind::Integer if text.parse::<i64>().is_ok() => CqlType::BigInt,
        LiteralKind::Integer => CqlType::Varint,
        LiteralKind::Float if is_double(text) => CqlType::Double,
        LiteralKind::Float => CqlType::Decimal,
        LiteralKind::Uuid => match types::literal::parse_uuid(text) {
            Some(uuid) if types::timeuuid::is_timeuuid(&uuid) => CqlType::TimeUuid,
            _ => CqlType::Uuid,
        },
        LiteralKind::Boolean => CqlType::Boolean,
        LiteralKind::Hex => CqlType::TinyInt,
        LiteralKind::Duration => CqlType::Duration,
    }
}

/// More significant digits than the text of any double has (Java prints 17, for some numbers 18).
const DOUBLE_DIGITS_MAX: usize = 20;

/// The number of digits in the mantissa, without zeros at both ends.
fn significant_digits(text: &str) -> usize {
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let digits = || mantissa.bytes().filter(u8::is_ascii_digit);
    let zeros_before = digits().take_while(|digit| *digit == b'0').count();
    let zeros_behind = digits().rev().take_while(|digit| *digit == b'0').count();
    digits().count().saturating_sub(zeros_before + zeros_behind)
}

/// Whether a double prints as the text, so that the constant is a double and no decimal.
fn is_double(text: &str) -> bool {
    if significant_digits(text) > DOUBLE_DIGITS_MAX {
        return false;
    }
    let Some(exact) = Decimal::parse(text) else { return true };
    let Ok(double) = Decimal::of_double(exact.to_double()) else { return false };
    exact.strip_zeros() == double.strip_zeros()
}

#[cfg(test)]
mod tests {
    use types::UserType;

    use super::*;

    /// Passing the fields of the type of each element would take minutes here.
    #[test]
    fn the_common_type_of_many_elements_of_large_types() {
        let wide = |name: &str| {
            let fields = (0..30_000).map(|at| (format!("f{at}"), CqlType::Int)).collect();
            let udt = UserType { keyspace: "ks".to_owned(), name: name.to_owned(), fields };
            CqlType::Udt(Arc::new(udt), true)
        };
        let (one, other) = (wide("one"), wide("other"));
        let tuple = CqlType::Tuple(vec![one.clone(); 10_000].into());
        for ty in [&one, &tuple, &list_of(tuple.clone())] {
            assert_eq!(common_type(std::iter::repeat_n(ty.clone(), 100_000)), Some(ty.clone()));
        }
        let both = std::iter::repeat_n([one.clone(), other], 100_000).flatten();
        assert_eq!(common_type(both), Some(one));
    }

    /// Comparing each element with all behind it would take hours here.
    #[test]
    fn the_common_type_of_many_elements() {
        const ELEMENTS: usize = 2_000_000;
        let cases = [
            (CqlType::Int, CqlType::Varint, Some(CqlType::Varint)),
            (CqlType::Varint, CqlType::Int, Some(CqlType::Varint)),
            (CqlType::Int, CqlType::BigInt, None),
        ];
        for (of_many, of_last, common) in cases {
            let types = std::iter::repeat_n(of_many, ELEMENTS).chain([of_last]);
            assert_eq!(common_type(types), common);
        }
    }
}
