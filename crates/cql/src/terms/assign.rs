//! Whether a term can be given to a receiver.
//!
//! Agrees with `org.apache.cassandra.cql3.AssignmentTestable` and its implementations; `AbstractType.isValueCompatibleWith`.

use types::CqlType;

use super::{exact_type, resolve_type};
use crate::ast::{self, LiteralKind};
use crate::context::Preparing;

/// The term can be given to a receiver of the type.
pub(crate) fn is_assignable(preparing: &Preparing<'_>, term: &ast::Term<'_>, ty: &CqlType) -> bool {
    match term {
        ast::Term::Literal(literal) => literal_fits(literal.kind, ty),
        ast::Term::Null => *ty != CqlType::Counter,
        ast::Term::Bind(_) => true,
        ast::Term::List(elements) => match ty {
            CqlType::List { element, .. } => elements.iter().all(|term| is_assignable(preparing, term, element)),
            CqlType::Vector { element, dimension } => {
                elements.len() == *dimension as usize
                    && elements.iter().all(|term| is_assignable(preparing, term, element))
            }
            _ => false,
        },
        ast::Term::Set(elements) => match ty {
            CqlType::Set { element, .. } => elements.iter().all(|term| is_assignable(preparing, term, element)),
            CqlType::Map { .. } => elements.is_empty(),
            _ => false,
        },
        ast::Term::Map(entries) => match ty {
            CqlType::Map { key, value, .. } => {
                entries.iter().all(|(k, v)| is_assignable(preparing, k, key) && is_assignable(preparing, v, value))
            }
            _ => false,
        },
        ast::Term::UserType(fields) => match ty {
            CqlType::Udt(udt, _) => fields.iter().all(|(name, term)| {
                let field = udt.fields.iter().find(|(field, _)| field == name.as_str());
                field.is_none_or(|(_, ty)| is_assignable(preparing, term, ty))
            }),
            _ => false,
        },
        ast::Term::Tuple(terms) => match ty {
            CqlType::Tuple(fields) => {
                terms.len() <= fields.len()
                    && terms.iter().zip(fields.iter()).all(|(term, ty)| is_assignable(preparing, term, ty))
            }
            _ => matches!(terms.as_slice(), [term] if is_assignable(preparing, term, ty)),
        },
        ast::Term::TypeHint(name, _) => resolve_type(preparing, name).is_ok_and(|hint| is_value_compatible(ty, &hint)),
        ast::Term::Negation(inner) => is_assignable(preparing, inner, ty),
        ast::Term::Operation(left, _, right) => {
            is_assignable(preparing, left, ty) || is_assignable(preparing, right, ty)
        }
        ast::Term::Function(_) | ast::Term::Cast(..) => {
            exact_type(preparing, term).is_none_or(|found| is_value_compatible(ty, &found))
        }
    }
}

/// A constant of the kind may stand for a value of the type.
pub(crate) fn literal_fits(kind: LiteralKind, ty: &CqlType) -> bool {
    use CqlType as T;
    if matches!(ty, T::Custom(_)) {
        return true;
    }
    match kind {
        LiteralKind::String => {
            matches!(ty, T::Ascii | T::Text | T::Inet | T::Date | T::Time | T::Timestamp)
        }
        LiteralKind::Integer => matches!(
            ty,
            T::BigInt
                | T::Counter
                | T::Date
                | T::Decimal
                | T::Double
                | T::Duration
                | T::Float
                | T::Int
                | T::SmallInt
                | T::Time
                | T::Timestamp
                | T::TinyInt
                | T::Varint
        ),
        LiteralKind::Float => matches!(ty, T::Decimal | T::Double | T::Float),
        LiteralKind::Uuid => matches!(ty, T::Uuid | T::TimeUuid),
        LiteralKind::Boolean => *ty == T::Boolean,
        LiteralKind::Hex => *ty == T::Blob,
        LiteralKind::Duration => *ty == T::Duration,
    }
}

/// Values of `value` are values of `ty` as they are.
pub(crate) fn is_value_compatible(ty: &CqlType, value: &CqlType) -> bool {
    use CqlType as T;
    match (ty, value) {
        (a, b) if a == b => true,
        (T::Blob, b) => !b.is_multi_cell(),
        (T::Text, T::Ascii)
        | (T::Uuid, T::TimeUuid)
        | (T::Varint, T::Int | T::BigInt | T::Timestamp)
        | (T::BigInt | T::Timestamp, T::BigInt | T::Timestamp)
        | (T::Date, T::Int)
        | (T::Time, T::BigInt) => true,
        (T::List { element: a, .. }, T::List { element: b, .. })
        | (T::Set { element: a, .. }, T::Set { element: b, .. }) => is_value_compatible(a, b),
        (T::Map { key: a, value: c, .. }, T::Map { key: b, value: d, .. }) => {
            is_value_compatible(a, b) && is_value_compatible(c, d)
        }
        (T::Tuple(a), T::Tuple(b)) => {
            b.len() <= a.len() && a.iter().zip(b.iter()).all(|(a, b)| is_value_compatible(a, b))
        }
        (T::Udt(a, _), T::Udt(b, _)) => a == b,
        (T::Vector { element: a, dimension: m }, T::Vector { element: b, dimension: n }) => {
            m == n && is_value_compatible(a, b)
        }
        _ => false,
    }
}
