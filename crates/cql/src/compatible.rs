//! Whether values of one type are values of another as they are: what can be given to a column, an
//! argument or an element, what a dropped column may come back as, and what a function that is
//! replaced may return.
//!
//! Must agree with: `AbstractType.isSerializationCompatibleWith`, `isValueCompatibleWith` and
//! `isCompatibleWith` with what the types make of them.

use types::CqlType;
use types::cql_name::expand_user_types;

/// Whether a list, set, map or user type that is stored cell by cell is another type than the same
/// in frozen form.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Frozen {
    /// Yes: what counts is how the values are stored.
    Matters,
    /// No: the values are on their way, each of them as one.
    Ignored,
}

impl Frozen {
    /// Whether values of both types are compared as single values.
    fn are_single(self, new: &CqlType, old: &CqlType) -> bool {
        self == Self::Ignored || !(new.is_multi_cell() || old.is_multi_cell())
    }

    /// Whether values of both types are compared cell by cell.
    fn are_of_cells(self, new: &CqlType, old: &CqlType) -> bool {
        self == Self::Matters && new.is_multi_cell() && old.is_multi_cell()
    }
}

/// Values of the old type are values of the new, in the same form. `old` is as it is kept of
/// dropped columns, user types expanded.
pub(crate) fn reads_as(new: &CqlType, old: &CqlType) -> bool {
    same_form(&tuples(new), old)
}

/// Values of the old type are values of the new, and sort alike: what a function that is replaced
/// may return.
pub(crate) fn sorts_as(new: &CqlType, old: &CqlType) -> bool {
    new == old || same_order(new, old, Frozen::Matters)
}

/// A value of type `given` can be given to a receiver of type `ty` as it is.
pub(crate) fn takes(ty: &CqlType, given: &CqlType) -> bool {
    ty == given || same_values(ty, given, Frozen::Ignored)
}

/// The type with user types as tuples, their fields as they are declared.
fn tuples(ty: &CqlType) -> CqlType {
    match ty {
        CqlType::Udt(udt, _) => CqlType::Tuple(udt.fields.iter().map(|(_, ty)| tuples(ty)).collect()),
        CqlType::Tuple(elements) => CqlType::Tuple(elements.iter().map(tuples).collect()),
        other => expand_user_types(other),
    }
}

/// `isSerializationCompatibleWith`: of a list the elements are asked, too, and of a map the
/// values. Bytes are a form of simple values only.
fn same_form(new: &CqlType, old: &CqlType) -> bool {
    use CqlType as T;
    if *new == T::Blob && (old.is_collection() || matches!(old, T::Udt(..))) {
        return false;
    }
    let have_same_form = match (new, old) {
        (T::List { element: new, .. }, T::List { element: old, .. })
        | (T::Map { value: new, .. }, T::Map { value: old, .. }) => same_form(new, old),
        _ => new.fixed_length() == old.fixed_length(),
    };
    have_same_form && new.is_multi_cell() == old.is_multi_cell() && same_values(new, old, Frozen::Matters)
}

/// `isValueCompatibleWith`: bytes of the old mean something in the new. User types have to be of
/// one keyspace, their names and those of their fields may differ.
fn same_values(new: &CqlType, old: &CqlType, frozen: Frozen) -> bool {
    match (new, old) {
        (CqlType::Udt(a, _), CqlType::Udt(b, _)) => {
            // the same one is not walked: in full it may have hundreds of thousands of parts
            let are_alike =
                || a.keyspace == b.keyspace && each_field(new, old, |new, old| same_order(new, old, frozen));
            (frozen == Frozen::Ignored || new.is_multi_cell() == old.is_multi_cell()) && (a == b || are_alike())
        }
        (CqlType::Udt(..), _) => false,
        _ => same_element_values(new, old, frozen),
    }
}

/// `isValueCompatibleWithInternal`, which frozen lists ask of their elements: there user types are
/// but tuples.
fn same_element_values(new: &CqlType, old: &CqlType, frozen: Frozen) -> bool {
    use CqlType as T;
    let are_single = frozen.are_single(new, old);
    match (new, old) {
        (T::Blob, _) => true,
        (T::Uuid, T::TimeUuid) | (T::BigInt, T::Timestamp) | (T::Timestamp, T::BigInt) => true,
        (T::Varint, T::Int | T::BigInt | T::Timestamp) | (T::Date, T::Int) | (T::Time, T::BigInt) => true,
        (T::List { element: new, .. }, T::List { element: old, .. }) if are_single => {
            same_element_values(new, old, frozen)
        }
        // elements and keys lie in their order, which has to be the same
        (T::Set { element: new, .. }, T::Set { element: old, .. }) if are_single => same_order(new, old, frozen),
        (T::Map { key, value, .. }, T::Map { key: old_key, value: old_value, .. }) if are_single => {
            same_order(key, old_key, frozen) && same_values(value, old_value, frozen)
        }
        (T::Tuple(_) | T::Udt(..), T::Tuple(_) | T::Udt(..)) => {
            each_field(new, old, |new, old| same_values(new, old, frozen))
        }
        _ => same_order(new, old, frozen),
    }
}

/// `isCompatibleWith`: and they sort alike. User types are but tuples.
fn same_order(new: &CqlType, old: &CqlType, frozen: Frozen) -> bool {
    use CqlType as T;
    let (are_single, are_of_cells) = (frozen.are_single(new, old), frozen.are_of_cells(new, old));
    match (new, old) {
        (T::Blob | T::Text, T::Ascii) | (T::Blob, T::Text) => true,
        (T::List { element: new, .. }, T::List { element: old, .. }) if are_of_cells => same_form(new, old),
        (T::List { element: new, .. }, T::List { element: old, .. })
        | (T::Set { element: new, .. }, T::Set { element: old, .. })
            if are_single || are_of_cells =>
        {
            same_order(new, old, frozen)
        }
        (T::Map { key, value, .. }, T::Map { key: old_key, value: old_value, .. }) if are_of_cells => {
            same_order(key, old_key, frozen) && same_form(value, old_value)
        }
        (T::Map { key, value, .. }, T::Map { key: old_key, value: old_value, .. }) if are_single => {
            same_order(key, old_key, frozen) && same_order(value, old_value, frozen)
        }
        // elements are frozen, also where a type hint does not say so
        (T::Vector { element: new, dimension }, T::Vector { element: old, dimension: old_dimension })
            if frozen == Frozen::Ignored =>
        {
            dimension == old_dimension && new.freeze() == old.freeze()
        }
        // the same one is not walked
        (T::Udt(a, _), T::Udt(b, _)) if a == b => true,
        (T::Tuple(_) | T::Udt(..), T::Tuple(_) | T::Udt(..)) => {
            each_field(new, old, |new, old| same_order(new, old, frozen))
        }
        _ => new == old,
    }
}

/// Whether `test` is true for each field of the old tuple or user type and that of the new at its
/// place. The new may have more fields, and not fewer.
fn each_field(new: &CqlType, old: &CqlType, test: impl Fn(&CqlType, &CqlType) -> bool) -> bool {
    let mut fields = (0..).map_while(|at| field(old, at).map(|old| (field(new, at), old)));
    fields.all(|(new, old)| new.is_some_and(|new| test(new, old)))
}

/// The type of a field of a tuple or user type. None: the type has not so many.
fn field(ty: &CqlType, at: usize) -> Option<&CqlType> {
    match ty {
        CqlType::Tuple(types) => types.get(at),
        CqlType::Udt(udt, _) => udt.fields.get(at).map(|(_, ty)| ty),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use types::UserType;

    use super::*;

    fn list(element: CqlType, frozen: bool) -> CqlType {
        CqlType::List { element: Arc::new(element), frozen }
    }

    fn set(element: CqlType) -> CqlType {
        CqlType::Set { element: Arc::new(element), frozen: true }
    }

    fn map(key: CqlType, value: CqlType) -> CqlType {
        CqlType::Map { key: Arc::new(key), value: Arc::new(value), frozen: true }
    }

    fn tuple(element: CqlType) -> CqlType {
        CqlType::Tuple(vec![element].into())
    }

    fn vector(element: CqlType) -> CqlType {
        CqlType::Vector { element: Arc::new(element), dimension: 2 }
    }

    /// A frozen user type whose fields have the name of the type.
    fn user_type(keyspace: &str, name: &str, fields: &[CqlType]) -> CqlType {
        let fields = fields.iter().map(|ty| (name.to_owned(), ty.clone())).collect();
        CqlType::Udt(Arc::new(UserType { keyspace: keyspace.to_owned(), name: name.to_owned(), fields }), true)
    }

    /// A set of time UUIDs lies in the order of their times, which is not that of UUIDs: given as
    /// it is to a set of UUIDs, it would not be equal to the same set. Whether the elements of a
    /// vector stand with their lengths follows from their type.
    #[test]
    fn a_value_is_given_as_it_is() {
        use CqlType as T;
        let [one, other] = ["one", "other"].map(|name| user_type("ks", name, &[T::Int, T::Text]));
        let elsewhere = user_type("elsewhere", "one", &[T::Int, T::Text]);
        let longer = user_type("ks", "longer", &[T::Int, T::Text, T::Int]);
        let wider = user_type("ks", "wider", &[T::Varint, T::Text]);
        for (ty, given, expected) in [
            (list(T::Uuid, false), list(T::TimeUuid, true), true),
            (set(T::Uuid), set(T::TimeUuid), false),
            (set(T::Varint), set(T::Int), false),
            (set(T::Text), set(T::Ascii), true),
            (set(tuple(T::Text)), set(tuple(T::Ascii)), true),
            (set(tuple(T::Uuid)), set(tuple(T::TimeUuid)), false),
            (map(T::Uuid, T::Int), map(T::TimeUuid, T::Int), false),
            (map(T::Int, T::Uuid), map(T::Int, T::TimeUuid), true),
            (vector(T::Int), vector(T::Int), true),
            (vector(T::Varint), vector(T::Int), false),
            (vector(list(T::Int, true)), vector(list(T::Int, false)), true),
            (one.clone(), other, true),
            (one.clone(), elsewhere.clone(), false),
            (longer.clone(), one.clone(), true),
            (one.clone(), longer, false),
            (wider.clone(), one.clone(), false),
            (list(wider, true), list(one.clone(), true), true),
            (list(one.clone(), true), list(elsewhere.clone(), true), true),
            (set(one.clone()), set(elsewhere.clone()), true),
            (map(T::Int, one.clone()), map(T::Int, elsewhere), false),
            (CqlType::Tuple(vec![T::Int, T::Text].into()), one.clone(), true),
            (one, CqlType::Tuple(vec![T::Int, T::Text].into()), false),
        ] {
            assert_eq!(takes(&ty, &given), expected, "{ty:?} {given:?}");
        }
    }

    /// User types that are made of each other have more parts in full than can be walked; two that
    /// have the same types in them are compared at once.
    #[test]
    fn the_same_user_type_is_not_walked() {
        let pair = |name: &str, of: &CqlType| user_type("ks", name, &[of.clone(), of.clone()]);
        let deep = (0..64).fold(CqlType::Int, |inner, _| pair("inner", &inner));
        let [one, other] = ["one", "other"].map(|name| pair(name, &deep));
        assert!(takes(&one, &other) && takes(&list(one.clone(), true), &list(other.clone(), true)));
        assert!(sorts_as(&one, &other));
    }

    /// A function may return another type where both sort alike, and are stored alike.
    #[test]
    fn what_a_function_may_return_instead() {
        use CqlType as T;
        let of_ks = user_type("ks", "one", &[T::Ascii]);
        let elsewhere = user_type("elsewhere", "other", &[T::Text, T::Int]);
        for (new, old, expected) in [
            (T::Text, T::Ascii, true),
            (T::Varint, T::Int, false),
            (list(T::Blob, false), list(T::Text, false), true),
            (list(T::Blob, false), list(T::Int, false), false),
            (list(T::Blob, false), list(set(T::Text), false), false),
            (list(T::Text, true), list(T::Text, false), false),
            (elsewhere.clone(), of_ks.clone(), true),
            (of_ks, elsewhere, false),
        ] {
            assert_eq!(sorts_as(&new, &old), expected, "{new:?} {old:?}");
        }
    }
}
