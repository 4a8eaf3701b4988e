//! Types: of names as written, and of terms as far as they have one by themselves.
//!
//! Agrees with `org.apache.cassandra.cql3.CQL3Type.Raw.prepare` and `Term.Raw.getExactTypeIfKnown`.

use std::sync::Arc;

use types::CqlType;

use crate::ast::{self, NativeType, TypeName};
use crate::context::Preparing;
use crate::error::CqlError;
use crate::functions;

/// The type of a native name.
pub(crate) fn native_type(native: NativeType) -> CqlType {
    match native {
        NativeType::Ascii => CqlType::Ascii,
        NativeType::Bigint => CqlType::BigInt,
        NativeType::Blob => CqlType::Blob,
        NativeType::Boolean => CqlType::Boolean,
        NativeType::Counter => CqlType::Counter,
        NativeType::Date => CqlType::Date,
        NativeType::Decimal => CqlType::Decimal,
        NativeType::Double => CqlType::Double,
        NativeType::Duration => CqlType::Duration,
        NativeType::Float => CqlType::Float,
        NativeType::Inet => CqlType::Inet,
        NativeType::Int => CqlType::Int,
        NativeType::Smallint => CqlType::SmallInt,
        NativeType::Text | NativeType::Varchar => CqlType::Text,
        NativeType::Time => CqlType::Time,
        NativeType::Timestamp => CqlType::Timestamp,
        NativeType::Timeuuid => CqlType::TimeUuid,
        NativeType::Tinyint => CqlType::TinyInt,
        NativeType::Uuid => CqlType::Uuid,
        NativeType::Varint => CqlType::Varint,
    }
}

/// The type that a name in a statement on data means (a hint or a cast). Parts of it are frozen or not as written.
pub(crate) fn resolve_type(preparing: &Preparing<'_>, name: &TypeName<'_>) -> Result<CqlType, CqlError> {
    let resolve = |name: &TypeName<'_>| resolve_type(preparing, name);
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
            let keyspace = name.keyspace().unwrap_or(&preparing.keyspace);
            let found = preparing.schema.keyspace(keyspace).and_then(|found| found.user_types.get(name.name.as_str()));
            let udt = found.ok_or_else(|| CqlError::invalid(format!("Unknown type {keyspace}.{}", name.name)))?;
            CqlType::Udt(Arc::clone(udt), false)
        }
        TypeName::Custom(class) => match types::marshal::parse(class) {
            Ok((ty, _)) => ty,
            Err(error) => return Err(CqlError::invalid(error.to_string())),
        },
    })
}

/// The type of a term, where it has one without a receiver.
pub(crate) fn exact_type(preparing: &Preparing<'_>, term: &ast::Term<'_>) -> Option<CqlType> {
    match term {
        ast::Term::Literal(_) | ast::Term::Null | ast::Term::Bind(_) | ast::Term::UserType(_) => None,
        ast::Term::List(elements) => elements
            .iter()
            .find_map(|element| exact_type(preparing, element))
            .map(|element| CqlType::List { element: Arc::new(element), frozen: false }),
        ast::Term::Set(elements) => elements
            .iter()
            .find_map(|element| exact_type(preparing, element))
            .map(|element| CqlType::Set { element: Arc::new(element), frozen: false }),
        ast::Term::Map(entries) => {
            let key = entries.iter().find_map(|(key, _)| exact_type(preparing, key))?;
            let value = entries.iter().find_map(|(_, value)| exact_type(preparing, value))?;
            Some(CqlType::Map { key: Arc::new(key), value: Arc::new(value), frozen: false })
        }
        ast::Term::Tuple(fields) => {
            let fields: Option<Vec<_>> = fields.iter().map(|field| exact_type(preparing, field)).collect();
            Some(CqlType::Tuple(fields?.into()))
        }
        ast::Term::Function(call) => functions::return_type(preparing, call),
        ast::Term::TypeHint(name, _) => resolve_type(preparing, name).ok(),
        ast::Term::Cast(_, native) => Some(native_type(*native)),
        ast::Term::Negation(inner) => exact_type(preparing, inner),
        ast::Term::Operation(left, _, right) => exact_type(preparing, left).or_else(|| exact_type(preparing, right)),
    }
}
