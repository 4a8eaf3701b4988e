//! Types of columns and fields: from the name as written to the type, with what may not stand in
//! what.
//!
//! Freezing goes inwards, as in Cassandra: `frozen<list<set<int>>>` is
//! `frozen<list<frozen<set<int>>>>`, and so it is printed in messages; what stands in a tuple is
//! frozen.
//!
//! Must agree with: `CQL3Type.Raw` and its `prepare`, `VectorType`.

use std::sync::Arc;

use schema::KeyspaceMetadata;
use types::CqlType;

use crate::ast::{Ident, NativeType, QualifiedName, TypeName};
use crate::error::CqlError;
use crate::fit::native_type;

/// The most dimensions of a vector: its length in bytes must fit the counts of the formats. More
/// are refused.
const VECTOR_DIMENSION_MAX: i32 = 1 << 24;

/// The type with freezing written where it is meant.
pub(super) fn normalize<'a>(name: &TypeName<'a>) -> TypeName<'a> {
    let boxed = |inner: &TypeName<'a>| Box::new(normalize(inner));
    match name {
        TypeName::Frozen(inner) => freeze(normalize(inner)),
        TypeName::List(element) => TypeName::List(boxed(element)),
        TypeName::Set(element) => TypeName::Set(boxed(element)),
        TypeName::Map(key, value) => TypeName::Map(boxed(key), boxed(value)),
        TypeName::Vector(element, dimension) => TypeName::Vector(boxed(element), *dimension),
        TypeName::Tuple(elements) => TypeName::Tuple(elements.iter().map(|e| freeze(normalize(e))).collect()),
        TypeName::Native(_) | TypeName::User(_) | TypeName::Custom(_) => name.clone(),
    }
}

/// Frozen, if it is something that can be.
fn freeze(name: TypeName<'_>) -> TypeName<'_> {
    let frozen = |inner| TypeName::Frozen(Box::new(inner));
    match name {
        TypeName::List(element) => frozen(TypeName::List(Box::new(freeze(*element)))),
        TypeName::Set(element) => frozen(TypeName::Set(Box::new(freeze(*element)))),
        TypeName::Map(key, value) => frozen(TypeName::Map(Box::new(freeze(*key)), Box::new(freeze(*value)))),
        TypeName::User(_) => frozen(name),
        other => other,
    }
}

/// Whether it is a user-defined type that is not frozen.
pub(super) fn is_unfrozen_user_type(name: &TypeName<'_>) -> bool {
    matches!(name, TypeName::User(_))
}

/// The type of a column or field in this keyspace. The name must be normalized.
pub(super) fn prepare(name: &TypeName<'_>, keyspace: &KeyspaceMetadata) -> Result<CqlType, CqlError> {
    Ok(match name {
        TypeName::Native(native) => native_type(*native),
        TypeName::Custom(class) => custom(class, keyspace)?,
        TypeName::User(name) => CqlType::Udt(user_type(name, keyspace)?, false),
        TypeName::Frozen(inner) => {
            if let TypeName::Set(element) = &**inner {
                check_parts(name, None, element)?;
            }
            prepare(inner, keyspace)?.freeze()
        }
        TypeName::List(element) => {
            check_parts(name, None, element)?;
            CqlType::List { element: Arc::new(prepare(element, keyspace)?), frozen: false }
        }
        TypeName::Set(element) => {
            check_parts(name, None, element)?;
            CqlType::Set { element: Arc::new(prepare(element, keyspace)?), frozen: false }
        }
        TypeName::Map(key, value) => {
            check_parts(name, Some(key), value)?;
            let (key, value) = (prepare(key, keyspace)?, prepare(value, keyspace)?);
            CqlType::Map { key: Arc::new(key), value: Arc::new(value), frozen: false }
        }
        TypeName::Tuple(elements) => {
            if elements.iter().any(TypeName::is_counter) {
                return Err(CqlError::invalid("Counters are not allowed inside tuples"));
            }
            let elements: Result<Vec<CqlType>, CqlError> = elements.iter().map(|e| prepare(e, keyspace)).collect();
            CqlType::Tuple(elements?.into())
        }
        TypeName::Vector(element, dimension) => {
            if *dimension <= 0 {
                return Err(CqlError::invalid(format!("vectors may only have positive dimensions; given {dimension}")));
            }
            if *dimension > VECTOR_DIMENSION_MAX {
                return Err(CqlError::invalid(format!(
                    "vectors may not have more than {VECTOR_DIMENSION_MAX} dimensions; given {dimension}"
                )));
            }
            CqlType::Vector {
                element: Arc::new(prepare(element, keyspace)?.freeze()),
                dimension: dimension.unsigned_abs(),
            }
        }
    })
}

/// Refuses types that may not be part of a collection: unfrozen collections and user types,
/// counters, and durations where values are ordered (in sets and as keys of maps).
fn check_parts(collection: &TypeName<'_>, key: Option<&TypeName<'_>>, value: &TypeName<'_>) -> Result<(), CqlError> {
    let refuse = |why: &str| Err(CqlError::invalid(format!("{why}: {collection}")));
    let unfrozen = |part: &TypeName<'_>| match part {
        TypeName::List(_) | TypeName::Set(_) | TypeName::Map(..) => {
            Some("Non-frozen collections are not allowed inside collections")
        }
        TypeName::User(_) => Some("Non-frozen UDTs are not allowed inside collections"),
        _ => None,
    };
    let is_duration = |part: &TypeName<'_>| matches!(part, TypeName::Native(NativeType::Duration));
    if let Some(why) = unfrozen(value) {
        return refuse(why);
    }
    if value.is_counter() || key.is_some_and(TypeName::is_counter) {
        return refuse("Counters are not allowed inside collections");
    }
    if is_duration(value) && matches!(collection, TypeName::Set(_) | TypeName::Frozen(_)) {
        return refuse("Durations are not allowed inside sets");
    }
    if key.is_some_and(is_duration) {
        return refuse("Durations are not allowed as map keys");
    }
    match key.and_then(unfrozen) {
        Some(why) => refuse(why),
        None => Ok(()),
    }
}

/// A type by its class. A user type must be the one of the keyspace.
fn custom(class: &str, keyspace: &KeyspaceMetadata) -> Result<CqlType, CqlError> {
    let refuse = |why: String| CqlError::Syntax(format!("Error setting type {class}: {why}"));
    let (ty, _) = types::class_name::parse(class).map_err(refuse)?;
    let is_stranger = |ty: &CqlType| match ty {
        CqlType::Udt(udt, _) => udt.keyspace != keyspace.name || keyspace.user_types.get(&udt.name) != Some(udt),
        _ => false,
    };
    if ty.any(&mut |ty| is_stranger(ty)) {
        return Err(refuse("it is made of a user type that the keyspace does not have in this form".to_owned()));
    }
    Ok(ty)
}

/// Whether the values of a clustering column of this type come in reversed order.
pub(super) fn is_reversed(name: &TypeName<'_>) -> bool {
    matches!(name, TypeName::Custom(class) if types::class_name::is_reversed(class))
}

/// The name with the keyspace before each user type: as Cassandra words it once it has looked the
/// types up.
pub(super) fn in_keyspace<'a>(name: &TypeName<'a>, keyspace: &'a str) -> TypeName<'a> {
    let boxed = |inner: &TypeName<'a>| Box::new(in_keyspace(inner, keyspace));
    match name {
        TypeName::User(user) => {
            let text = std::borrow::Cow::Borrowed(keyspace);
            let keyspace = Some(Ident { text, quoted: false, pos: user.name.pos });
            TypeName::User(Box::new(QualifiedName { keyspace, name: user.name.clone() }))
        }
        TypeName::Frozen(inner) => TypeName::Frozen(boxed(inner)),
        TypeName::List(element) => TypeName::List(boxed(element)),
        TypeName::Set(element) => TypeName::Set(boxed(element)),
        TypeName::Map(key, value) => TypeName::Map(boxed(key), boxed(value)),
        TypeName::Vector(element, dimension) => TypeName::Vector(boxed(element), *dimension),
        TypeName::Tuple(elements) => TypeName::Tuple(elements.iter().map(|e| in_keyspace(e, keyspace)).collect()),
        TypeName::Native(_) | TypeName::Custom(_) => name.clone(),
    }
}

fn user_type(name: &QualifiedName<'_>, keyspace: &KeyspaceMetadata) -> Result<Arc<types::UserType>, CqlError> {
    if let Some(other) = name.keyspace()
        && other != keyspace.name
    {
        return Err(CqlError::invalid(format!(
            "Statement on keyspace {} cannot refer to a user type in keyspace {other}; user types can only be used in \
             the keyspace they are defined in",
            keyspace.name
        )));
    }
    match keyspace.user_types.get(name.name.as_str()) {
        Some(udt) => Ok(Arc::clone(udt)),
        None => Err(CqlError::invalid(format!("Unknown type {}.{}", keyspace.name, name.name))),
    }
}

/// A type with a user type in its place of the one of the same name; None if it does not hold it.
pub(super) fn with_user_type(ty: &CqlType, udt: &Arc<types::UserType>) -> Option<CqlType> {
    if !ty.references_udt(&udt.keyspace, &udt.name) {
        return None;
    }
    let arc = |ty: &Arc<CqlType>| with_user_type(ty, udt).map_or_else(|| Arc::clone(ty), Arc::new);
    let plain = |ty: &CqlType| with_user_type(ty, udt).unwrap_or_else(|| ty.clone());
    Some(match ty {
        CqlType::List { element, frozen } => CqlType::List { element: arc(element), frozen: *frozen },
        CqlType::Set { element, frozen } => CqlType::Set { element: arc(element), frozen: *frozen },
        CqlType::Map { key, value, frozen } => CqlType::Map { key: arc(key), value: arc(value), frozen: *frozen },
        CqlType::Vector { element, dimension } => CqlType::Vector { element: arc(element), dimension: *dimension },
        CqlType::Tuple(elements) => CqlType::Tuple(elements.iter().map(plain).collect()),
        CqlType::Udt(own, frozen) if own.name == udt.name => CqlType::Udt(Arc::clone(udt), *frozen),
        CqlType::Udt(own, frozen) => CqlType::Udt(Arc::new(user_type_with(own, udt)), *frozen),
        other => other.clone(),
    })
}

/// A user type with another in place of the one of the same name in its fields.
pub(super) fn user_type_with(own: &types::UserType, udt: &Arc<types::UserType>) -> types::UserType {
    let field = |(name, ty): &(String, CqlType)| (name.clone(), with_user_type(ty, udt).unwrap_or_else(|| ty.clone()));
    types::UserType {
        keyspace: own.keyspace.clone(),
        name: own.name.clone(),
        fields: own.fields.iter().map(field).collect(),
    }
}
