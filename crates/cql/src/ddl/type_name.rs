//! Types of columns and fields: from the name as written to the type, with what may not stand in
//! what.
//!
//! Freezing goes inwards, as in Cassandra: `frozen<list<set<int>>>` is
//! `frozen<list<frozen<set<int>>>>`, and so it is printed in messages; what stands in a tuple is
//! frozen.
//!
//! Must agree with: `CQL3Type.Raw` and its `prepare`, `VectorType`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schema::KeyspaceMetadata;
use types::extent::{Extent, Extents};
use types::{CqlType, UserType};

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

/// The type of a column or field in this keyspace. The name must be normalized. The type may be of
/// any size: [`CheckedTypes`] refuses what is too large.
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

fn user_type(name: &QualifiedName<'_>, keyspace: &KeyspaceMetadata) -> Result<Arc<UserType>, CqlError> {
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

/// The types of one statement, which are refused where they are too large or too deep together.
/// Code that walks them comes behind that: a type may have billions of parts otherwise.
#[derive(Default)]
pub(super) struct CheckedTypes {
    extents: Extents,
    sum: Extent,
}

impl CheckedTypes {
    /// As [`prepare`], of one type more.
    pub fn prepare(&mut self, name: &TypeName<'_>, keyspace: &KeyspaceMetadata) -> Result<CqlType, CqlError> {
        let ty = prepare(name, keyspace)?;
        self.add([&ty])?;
        Ok(ty)
    }

    /// Adds types that there are already.
    pub fn add<'t>(&mut self, types: impl IntoIterator<Item = &'t CqlType>) -> Result<(), CqlError> {
        self.sum = self.sum.and(self.extents.of_all(types));
        check_extent(self.sum)
    }
}

/// Refuses types that are too large or too deep.
pub(super) fn check_extent(extent: Extent) -> Result<(), CqlError> {
    extent.check().map_err(|why| CqlError::invalid(why.to_string()))
}

/// The names of the user type of a name and of those that are made with it.
pub(super) fn types_using<'k>(keyspace: &'k KeyspaceMetadata, name: &'k str) -> BTreeSet<&'k str> {
    let mut users = BTreeSet::from([name]);
    loop {
        let names_one = |udt: &&Arc<UserType>| udt.fields.iter().any(|(_, ty)| names_one_of(ty, &users));
        let found: Vec<&str> = keyspace.user_types.values().filter(names_one).map(|udt| udt.name.as_str()).collect();
        let before = users.len();
        users.extend(found);
        if users.len() == before {
            return users;
        }
    }
}

/// Whether a type names one of these user types, as far as its text goes.
pub(super) fn names_one_of(ty: &CqlType, names: &BTreeSet<&str>) -> bool {
    ty.any_by_name(&mut |ty| matches!(ty, CqlType::Udt(udt, _) if names.contains(udt.name.as_str())))
}

/// User types by name that take the places of others.
pub(super) type TypeReplacements = BTreeMap<String, Arc<UserType>>;

/// A user type that has changed, and those of its keyspace that are made with it, with each other's
/// new forms inside. Each is made once, however often it stands in others.
pub(super) fn type_replacements(keyspace: &KeyspaceMetadata, udt: UserType) -> TypeReplacements {
    let name = udt.name.clone();
    let mut waiting = types_using(keyspace, &name);
    waiting.remove(name.as_str());
    let mut replacements = TypeReplacements::from([(name.clone(), Arc::new(udt))]);
    while !waiting.is_empty() {
        let waits = |udt: &UserType| udt.fields.iter().any(|(_, ty)| names_one_of(ty, &waiting));
        let users = waiting.iter().filter_map(|name| keyspace.user_types.get(*name));
        let ready: Vec<&Arc<UserType>> = users.filter(|udt| !waits(udt)).collect();
        assert!(!ready.is_empty(), "no user type is made with itself");
        for user in ready {
            waiting.remove(user.name.as_str());
            replacements.insert(user.name.clone(), Arc::new(user_type_with(user, &replacements)));
        }
    }
    replacements
}

fn user_type_with(own: &UserType, replacements: &TypeReplacements) -> UserType {
    let field = |(name, ty): &(String, CqlType)| {
        (name.clone(), with_replacements(ty, replacements).unwrap_or_else(|| ty.clone()))
    };
    UserType { keyspace: own.keyspace.clone(), name: own.name.clone(), fields: own.fields.iter().map(field).collect() }
}

/// A type with these user types in the places of those of their names; None: it names none.
pub(super) fn with_replacements(ty: &CqlType, replacements: &TypeReplacements) -> Option<CqlType> {
    let is_replaced = |ty: &CqlType| matches!(ty, CqlType::Udt(own, _) if replacements.contains_key(&own.name));
    if !ty.any_by_name(&mut |ty| is_replaced(ty)) {
        return None;
    }
    let arc = |ty: &Arc<CqlType>| with_replacements(ty, replacements).map_or_else(|| Arc::clone(ty), Arc::new);
    let plain = |ty: &CqlType| with_replacements(ty, replacements).unwrap_or_else(|| ty.clone());
    Some(match ty {
        CqlType::List { element, frozen } => CqlType::List { element: arc(element), frozen: *frozen },
        CqlType::Set { element, frozen } => CqlType::Set { element: arc(element), frozen: *frozen },
        CqlType::Map { key, value, frozen } => CqlType::Map { key: arc(key), value: arc(value), frozen: *frozen },
        CqlType::Vector { element, dimension } => CqlType::Vector { element: arc(element), dimension: *dimension },
        CqlType::Tuple(elements) => CqlType::Tuple(elements.iter().map(plain).collect()),
        CqlType::Udt(own, frozen) => CqlType::Udt(Arc::clone(replacements.get(&own.name).unwrap_or(own)), *frozen),
        other => other.clone(),
    })
}
