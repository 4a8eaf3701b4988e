//! Whether and how well a term can be given to a receiver.
//!
//! Agrees with `org.apache.cassandra.cql3.AssignmentTestable` and its implementations;
//! `AbstractType.isValueCompatibleWith`.

use types::CqlType;

use super::{compatible_type, preferred_type, resolve_type};
use crate::ast::{self, LiteralKind};
use crate::context::PrepareContext;
use crate::fit::{Fit, fit_all, fit_type};
use crate::functions::Argument;

/// A term as the argument of a function that is being resolved.
pub(crate) struct TermArgument<'a, 's, 't> {
    /// The statement.
    pub context: &'a PrepareContext<'s>,
    /// The term.
    pub term: &'a ast::Term<'t>,
}

impl Argument for TermArgument<'_, '_, '_> {
    fn fit(&self, ty: &CqlType) -> Fit {
        fit(self.context, self.term, ty)
    }

    fn compatible_type(&self) -> Option<CqlType> {
        compatible_type(self.context, self.term)
    }

    fn text(&self) -> String {
        self.term.to_string()
    }

    fn is_marker(&self) -> bool {
        self.term.as_bind().is_some()
    }
}

/// Whether the term can be given to a receiver of the type.
pub(crate) fn is_assignable(context: &PrepareContext<'_>, term: &ast::Term<'_>, ty: &CqlType) -> bool {
    fit(context, term, ty) != Fit::No
}

/// How well the term can be given to a receiver of the type.
pub(crate) fn fit(context: &PrepareContext<'_>, term: &ast::Term<'_>, ty: &CqlType) -> Fit {
    let weak = |fits: bool| if fits { Fit::Weak } else { Fit::No };
    match term {
        ast::Term::Literal(literal) if !literal_fits(literal.kind, ty) => Fit::No,
        // the usual elements of a vector; a shortcut that does not look at their digits
        ast::Term::Literal(literal) if literal.kind == LiteralKind::Float && *ty == CqlType::Float => Fit::Weak,
        ast::Term::Literal(literal) if preferred_type(literal) == *ty => Fit::Exact,
        ast::Term::Literal(_) => Fit::Weak,
        ast::Term::Null => weak(*ty != CqlType::Counter),
        ast::Term::Bind(_) => Fit::Weak,
        ast::Term::List(elements) => match ty {
            CqlType::List { .. } if elements.is_empty() => Fit::Weak,
            CqlType::List { element, .. } => fit_all(elements.iter().map(|term| fit(context, term, element))),
            CqlType::Vector { element, dimension } if elements.len() == *dimension as usize => {
                fit_all(elements.iter().map(|term| fit(context, term, element)))
            }
            _ => Fit::No,
        },
        ast::Term::Set(elements) => match ty {
            CqlType::Set { .. } | CqlType::Map { .. } if elements.is_empty() => Fit::Weak,
            CqlType::Set { element, .. } => fit_all(elements.iter().map(|term| fit(context, term, element))),
            _ => Fit::No,
        },
        ast::Term::Map(entries) => match ty {
            CqlType::Map { key, value, .. } => {
                fit_all(entries.iter().flat_map(|(k, v)| [fit(context, k, key), fit(context, v, value)]))
            }
            _ => Fit::No,
        },
        ast::Term::UserType(fields) => match ty {
            // fields that the type does not have are told of when the literal is prepared
            CqlType::Udt(udt, _) => weak(fields.iter().all(|(name, term)| {
                let field = context.fields.find(udt, name.as_str());
                field.is_none_or(|at| is_assignable(context, term, &udt.fields[at].1))
            })),
            _ => Fit::No,
        },
        ast::Term::Tuple(terms) => match (ty, terms.as_slice()) {
            (CqlType::Tuple(fields), _) => weak(
                terms.len() <= fields.len()
                    && terms.iter().zip(fields.iter()).all(|(term, ty)| is_assignable(context, term, ty)),
            ),
            (_, [only]) => fit(context, only, ty),
            _ => Fit::No,
        },
        ast::Term::TypeHint(name, _) => match resolve_type(context, name) {
            // a frozen collection and one of many cells do not fit each other here
            Ok(hint) if hint.is_collection() && hint.is_multi_cell() != ty.is_multi_cell() => Fit::No,
            Ok(hint) => fit_type(ty, &hint),
            Err(_) => Fit::No,
        },
        ast::Term::Function(_) | ast::Term::Cast(..) | ast::Term::Negation(_) | ast::Term::Operation(..) => {
            super::call::fit(context, term, ty)
        }
    }
}

/// Whether a constant of the kind can be a value of the type.
pub(crate) fn literal_fits(kind: LiteralKind, ty: &CqlType) -> bool {
    use CqlType as T;
    // every constant is accepted here; preparing the term parses its text as the type
    if matches!(ty, T::Custom(_) | T::Tuple(_)) {
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
        // tinyint as well, because Cassandra's preferred type of hexadecimal digits is tinyint
        LiteralKind::Hex => matches!(ty, T::Blob | T::TinyInt),
        LiteralKind::Duration => *ty == T::Duration,
    }
}
