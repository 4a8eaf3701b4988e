//! Preparing terms for their receiver.
//!
//! Agrees with the `prepare` methods of Cassandra's `Term.Raw` classes, their messages included.

use std::collections::BTreeMap;
use std::sync::Arc;

use types::{CqlType, UserType};

use super::{Composite, Term, is_assignable, resolve_type};
use crate::ast;
use crate::context::{Bindings, MadeValues, PrepareContext, Receiver};
use crate::error::CqlError;
use crate::scalar::{self, type_name};
use crate::sources::NoSources;
use crate::values::BoundValue;

/// Bytes of a field without a value in a serialized user type.
const NULL_SIZE: usize = 4;

/// Prepares a term for a receiver.
pub(crate) fn prepare(
    context: &mut PrepareContext<'_>,
    term: &ast::Term<'_>,
    receiver: &Receiver,
) -> Result<Term, CqlError> {
    match term {
        ast::Term::Literal(literal) => prepare_literal(literal, receiver),
        ast::Term::Null if receiver.ty == CqlType::Counter => {
            Err(CqlError::invalid("Invalid null value for counter increment/decrement"))
        }
        ast::Term::Null => Ok(Term::NULL),
        ast::Term::Bind(marker) => Ok(Term::Bind { index: context.bind(marker, receiver), ty: receiver.ty.clone() }),
        ast::Term::List(elements) => prepare_list(context, elements, receiver),
        ast::Term::Set(elements) => prepare_set(context, elements, receiver),
        ast::Term::Map(entries) => prepare_map(context, entries, receiver),
        ast::Term::UserType(fields) => prepare_udt(context, fields, receiver),
        ast::Term::Tuple(fields) => prepare_tuple(context, fields, receiver),
        ast::Term::TypeHint(name, inner) => {
            let hint = resolve_type(context, name)?;
            if !is_assignable(context, inner, &hint) {
                let ty = type_name(&hint);
                return Err(CqlError::invalid(format!("Cannot cast value {inner} to type {ty}")));
            }
            if !is_assignable(context, term, &receiver.ty) {
                let (name, ty) = (&receiver.name, type_name(&receiver.ty));
                return Err(CqlError::invalid(format!("Cannot assign value {term} to {name} of type {ty}")));
            }
            prepare(context, inner, receiver)
        }
        ast::Term::Function(_) | ast::Term::Cast(..) | ast::Term::Negation(_) | ast::Term::Operation(..) => {
            super::call::prepare(context, term, receiver)
        }
    }
}

fn prepare_literal(literal: &ast::Literal<'_>, receiver: &Receiver) -> Result<Term, CqlError> {
    if !super::assign::literal_fits(literal.kind, &receiver.ty) {
        return Err(CqlError::invalid(format!(
            "Invalid {} constant ({}) for \"{}\" of type {}",
            literal.kind.name(),
            literal.text,
            receiver.name,
            type_name(&receiver.ty)
        )));
    }
    let ty = if literal.kind == ast::LiteralKind::Hex { &CqlType::Blob } else { &receiver.ty };
    let ty = if *ty == CqlType::Counter { &CqlType::BigInt } else { ty };
    let text = match literal.kind {
        ast::LiteralKind::Hex => literal.text.get(2..).unwrap_or_default(),
        _ => &literal.text,
    };
    let value = scalar::parse_text(ty, text)?;
    // for a type that is given by its class the bytes are used as they are
    if literal.kind == ast::LiteralKind::Hex && !matches!(receiver.ty, CqlType::Custom(_)) {
        scalar::validate(&receiver.ty, &value)?;
    }
    Ok(Term::Constant(Some(value)))
}

/// Makes a constant of a composite if all its parts are constants.
fn fold(composite: Composite, constant: bool) -> Result<Term, CqlError> {
    let term = Term::Composite(Box::new(composite));
    if !constant {
        return Ok(term);
    }
    Ok(match term.eval(&Bindings { values: &[], sources: &NoSources, made: &MadeValues::default() })? {
        BoundValue::Bytes(bytes) => Term::Constant(Some(bytes)),
        BoundValue::Null | BoundValue::Unset => Term::NULL,
    })
}

fn wrong_literal(kind: &str, receiver: &Receiver) -> CqlError {
    CqlError::invalid(format!("Invalid {kind} literal for {} of type {}", receiver.name, type_name(&receiver.ty)))
}

fn wrong_part(kind: &str, receiver: &Receiver, part: &str, term: &ast::Term<'_>, ty: &CqlType) -> CqlError {
    let name = &receiver.name;
    CqlError::invalid(format!("Invalid {kind} literal for {name}: {part} {term} is not of type {}", type_name(ty)))
}

fn refuse_markers(kind: &str, receiver: &Receiver, term: &ast::Term<'_>) -> Result<(), CqlError> {
    if term.contains_bind_marker() {
        return Err(CqlError::invalid(format!(
            "Invalid {kind} literal for {}: bind variables are not supported inside collection literals",
            receiver.name
        )));
    }
    Ok(())
}

fn prepare_parts(
    context: &mut PrepareContext<'_>,
    kind: &str,
    elements: &[ast::Term<'_>],
    receiver: &Receiver,
    element: &CqlType,
) -> Result<Vec<Term>, CqlError> {
    for term in elements {
        if !is_assignable(context, term, element) {
            return Err(wrong_part(kind, receiver, "value", term, element));
        }
    }
    let value = Receiver::new(format!("value({})", receiver.name), element.clone());
    let mut terms = Vec::with_capacity(elements.len());
    for term in elements {
        if kind != "vector" {
            refuse_markers(kind, receiver, term)?;
        }
        terms.push(prepare(context, term, &value)?);
    }
    Ok(terms)
}

fn prepare_list(
    context: &mut PrepareContext<'_>,
    elements: &[ast::Term<'_>],
    receiver: &Receiver,
) -> Result<Term, CqlError> {
    match &receiver.ty {
        CqlType::List { element, .. } => {
            let terms = prepare_parts(context, "list", elements, receiver, element)?;
            let constant = terms.iter().all(Term::is_constant);
            fold(Composite::List(terms), constant)
        }
        CqlType::Vector { element, dimension } => {
            if elements.len() != *dimension as usize {
                return Err(CqlError::invalid(format!(
                    "Invalid vector literal for {} of type {}; expected {dimension} elements, but given {}",
                    receiver.name,
                    type_name(&receiver.ty),
                    elements.len()
                )));
            }
            let terms = prepare_parts(context, "vector", elements, receiver, element)?;
            let constant = terms.iter().all(Term::is_constant);
            fold(Composite::Vector((**element).clone(), terms), constant)
        }
        other => Err(CqlError::invalid(format!(
            "Unexpected receiver type '{}'; only list and vector are expected",
            type_name(other)
        ))),
    }
}

fn prepare_set(
    context: &mut PrepareContext<'_>,
    elements: &[ast::Term<'_>],
    receiver: &Receiver,
) -> Result<Term, CqlError> {
    match &receiver.ty {
        CqlType::Set { element, .. } => {
            let terms = prepare_parts(context, "set", elements, receiver, element)?;
            let constant = terms.iter().all(Term::is_constant);
            fold(Composite::Set((**element).clone(), terms), constant)
        }
        CqlType::Map { key, .. } if elements.is_empty() => fold(Composite::Map((**key).clone(), Vec::new()), true),
        _ => Err(wrong_literal("set", receiver)),
    }
}

fn prepare_map(
    context: &mut PrepareContext<'_>,
    entries: &[(ast::Term<'_>, ast::Term<'_>)],
    receiver: &Receiver,
) -> Result<Term, CqlError> {
    let CqlType::Map { key, value, .. } = &receiver.ty else { return Err(wrong_literal("map", receiver)) };
    for (k, v) in entries {
        if !is_assignable(context, k, key) {
            return Err(wrong_part("map", receiver, "key", k, key));
        }
        if !is_assignable(context, v, value) {
            return Err(wrong_part("map", receiver, "value", v, value));
        }
    }
    let key_receiver = Receiver::new(format!("key({})", receiver.name), (**key).clone());
    let value_receiver = Receiver::new(format!("value({})", receiver.name), (**value).clone());
    let mut terms = Vec::with_capacity(entries.len());
    for (k, v) in entries {
        refuse_markers("map", receiver, k)?;
        refuse_markers("map", receiver, v)?;
        terms.push((prepare(context, k, &key_receiver)?, prepare(context, v, &value_receiver)?));
    }
    let constant = terms.iter().all(|(k, v)| k.is_constant() && v.is_constant());
    fold(Composite::Map((**key).clone(), terms), constant)
}

/// The receiver for a field of a user type.
pub(crate) fn field_receiver(receiver: &str, udt: &UserType, field: usize) -> Receiver {
    let (name, ty) = &udt.fields[field];
    Receiver::new(format!("{receiver}.{name}"), ty.clone())
}

fn prepare_udt(
    context: &mut PrepareContext<'_>,
    fields: &[(ast::Ident<'_>, ast::Term<'_>)],
    receiver: &Receiver,
) -> Result<Term, CqlError> {
    let CqlType::Udt(udt, frozen) = &receiver.ty else { return Err(wrong_literal("user type", receiver)) };
    // of a name that is given twice the last term counts
    let (mut given, mut unknown) = (BTreeMap::new(), None);
    for (name, term) in fields {
        match context.fields.find(udt, name.as_str()) {
            Some(at) => {
                given.insert(at, term);
            }
            None => unknown = unknown.or(Some(name)),
        }
    }
    for (at, term) in &given {
        let (name, ty) = &udt.fields[*at];
        if !is_assignable(context, term, ty) {
            return Err(CqlError::invalid(format!(
                "Invalid user type literal for {}: field {name} is not of type {}",
                receiver.name,
                type_name(ty)
            )));
        }
    }
    let mut prepared = Vec::with_capacity(given.len());
    for (at, term) in given {
        prepared.push((at, prepare(context, term, &field_receiver(&receiver.name, udt, at))?));
    }
    if let Some(name) = unknown {
        let ty = &udt.name;
        return Err(CqlError::invalid(format!("Unknown field '{name}' in value of user defined type {ty}")));
    }
    let constant = prepared.iter().all(|(_, term)| term.is_constant());
    let each = if constant { NULL_SIZE } else { size_of::<Term>() };
    context.leave_out(udt.fields.len() - prepared.len(), each)?;
    let mut terms = vec![Term::NULL; udt.fields.len()];
    for (at, term) in prepared {
        terms[at] = term;
    }
    fold(Composite::Udt(Arc::clone(udt), !*frozen, terms), constant)
}

fn prepare_tuple(
    context: &mut PrepareContext<'_>,
    fields: &[ast::Term<'_>],
    receiver: &Receiver,
) -> Result<Term, CqlError> {
    let CqlType::Tuple(types) = &receiver.ty else {
        // an expression in parentheses, which the parser cannot tell from a tuple of one
        if let [term] = fields {
            return prepare(context, term, receiver);
        }
        let (name, ty) = (&receiver.name, type_name(&receiver.ty));
        return Err(CqlError::invalid(format!("Invalid tuple type literal for {name} of type {ty}")));
    };
    if fields.len() > types.len() {
        return Err(CqlError::invalid(format!(
            "Invalid tuple literal for {}: too many elements. Type {} expects {} but got {}",
            receiver.name,
            type_name(&receiver.ty),
            types.len(),
            fields.len()
        )));
    }
    let mut terms = Vec::with_capacity(fields.len());
    for (at, (term, ty)) in fields.iter().zip(types.iter()).enumerate() {
        if !is_assignable(context, term, ty) {
            return Err(CqlError::invalid(format!(
                "Invalid tuple literal for {}: component {at} is not of type {}",
                receiver.name,
                type_name(ty)
            )));
        }
        let component = Receiver::new(format!("{}[{at}]", receiver.name), ty.clone());
        terms.push(prepare(context, term, &component)?);
    }
    let constant = terms.iter().all(Term::is_constant);
    fold(Composite::Tuple(terms), constant)
}
