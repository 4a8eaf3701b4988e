//! Whether values of one type can be read as another's: what a dropped column may come back as,
//! and what a function that is replaced may return.
//!
//! Must agree with: `AbstractType.isSerializationCompatibleWith`, `isValueCompatibleWith` and
//! `isCompatibleWith` with what the types make of them.

use types::CqlType;
use types::cql_name::expand_user_types;

/// Values of the old type are values of the new, in the same form. `old` is as it is kept of
/// dropped columns, user types expanded.
pub(super) fn reads_as(new: &CqlType, old: &CqlType) -> bool {
    same_form(&tuples(new), old)
}

/// Values of the old type are values of the new, and sort alike: what a function that is replaced
/// may return.
pub(super) fn sorts_as(new: &CqlType, old: &CqlType) -> bool {
    new == old || same_order(&tuples(new), &tuples(old))
}

/// The type with user types as tuples, their fields as they are declared.
fn tuples(ty: &CqlType) -> CqlType {
    match ty {
        CqlType::Udt(udt, _) => CqlType::Tuple(udt.fields.iter().map(|(_, ty)| tuples(ty)).collect()),
        CqlType::Tuple(elements) => CqlType::Tuple(elements.iter().map(tuples).collect()),
        other => expand_user_types(other),
    }
}

/// `isSerializationCompatibleWith`: of a list the elements are asked, too, and of a map the values.
fn same_form(new: &CqlType, old: &CqlType) -> bool {
    use CqlType as T;
    let have_same_form = match (new, old) {
        (T::List { element: new, .. }, T::List { element: old, .. })
        | (T::Map { value: new, .. }, T::Map { value: old, .. }) => same_form(new, old),
        _ => new.fixed_length() == old.fixed_length(),
    };
    have_same_form && new.is_multi_cell() == old.is_multi_cell() && same_values(new, old)
}

/// `isValueCompatibleWith`: bytes of the old mean something in the new.
fn same_values(new: &CqlType, old: &CqlType) -> bool {
    use CqlType as T;
    match (new, old) {
        (T::Blob, _) => true,
        (T::Uuid, T::TimeUuid) | (T::BigInt, T::Timestamp) | (T::Timestamp, T::BigInt) => true,
        (T::Varint, T::Int | T::BigInt | T::Timestamp) | (T::Date, T::Int) | (T::Time, T::BigInt) => true,
        (T::List { element: new, frozen: true }, T::List { element: old, frozen: true }) => same_values(new, old),
        (T::Set { element: new, frozen: true }, T::Set { element: old, frozen: true }) => same_order(new, old),
        (T::Map { key, value, frozen: true }, T::Map { key: old_key, value: old_value, frozen: true }) => {
            same_order(key, old_key) && same_values(value, old_value)
        }
        (T::Tuple(new), T::Tuple(old)) => {
            new.len() >= old.len() && new.iter().zip(old.iter()).all(|(new, old)| same_values(new, old))
        }
        _ => same_order(new, old),
    }
}

/// `isCompatibleWith`: and they sort alike.
fn same_order(new: &CqlType, old: &CqlType) -> bool {
    use CqlType as T;
    match (new, old) {
        (T::Blob | T::Text, T::Ascii) | (T::Blob, T::Text) => true,
        (T::List { element: new, frozen: true }, T::List { element: old, frozen: true })
        | (T::Set { element: new, frozen: true }, T::Set { element: old, frozen: true }) => same_order(new, old),
        (T::Map { key, value, frozen: true }, T::Map { key: old_key, value: old_value, frozen: true }) => {
            same_order(key, old_key) && same_order(value, old_value)
        }
        (T::List { element: new, frozen: false }, T::List { element: old, frozen: false }) => same_form(new, old),
        (T::Set { element: new, frozen: false }, T::Set { element: old, frozen: false }) => same_order(new, old),
        (T::Map { key, value, frozen: false }, T::Map { key: old_key, value: old_value, frozen: false }) => {
            same_order(key, old_key) && same_form(value, old_value)
        }
        (T::Tuple(new), T::Tuple(old)) => {
            new.len() >= old.len() && new.iter().zip(old.iter()).all(|(new, old)| same_order(new, old))
        }
        _ => new == old,
    }
}
