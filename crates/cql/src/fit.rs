//! Types among themselves: how well a value of one can be given to another, and the types of native
//! names.
//!
//! Agrees with `org.apache.cassandra.cql3.AssignmentTestable` and
//! `AbstractType.isValueCompatibleWith`.

use types::CqlType;

use crate::ast::NativeType;

/// How well a value can be given to something of a type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fit {
    /// The value is of this type.
    Exact,
    /// The value can be taken for one.
    Weak,
    /// The value cannot be given.
    No,
}

/// How well a value of type `given` can be given to a receiver of type `ty`.
pub(crate) fn fit_type(ty: &CqlType, given: &CqlType) -> Fit {
    if ty == given || ty.freeze() == *given {
        Fit::Exact
    } else if is_value_compatible(ty, given) {
        Fit::Weak
    } else {
        Fit::No
    }
}

/// How well several fit together: as well as the worst of them.
pub(crate) fn fit_all(fits: impl Iterator<Item = Fit>) -> Fit {
    let mut all = Fit::Exact;
    for fit in fits {
        match fit {
            Fit::Exact => {}
            Fit::Weak => all = Fit::Weak,
            Fit::No => return Fit::No,
        }
    }
    all
}

/// Values of `value` are values of `ty` as they are.
pub(crate) fn is_value_compatible(ty: &CqlType, value: &CqlType) -> bool {
    use CqlType as T;
    match (ty, value) {
        (a, b) if a == b => true,
        (T::Blob, _) => true,
        (T::Text, T::Ascii)
        | (T::Uuid, T::TimeUuid)
        | (T::Varint, T::Int | T::BigInt | T::Timestamp)
        | (T::BigInt | T::Timestamp, T::BigInt | T::Timestamp)
        | (T::Date, T::Int)
        | (T::Time, T::BigInt) => true,
        (T::List { element: a, .. }, T::List { element: b, .. }) => is_value_compatible(a, b),
        // elements and keys lie in their order, which has to be the same
        (T::Set { element: a, .. }, T::Set { element: b, .. }) => is_order_compatible(a, b),
        (T::Map { key: a, value: c, .. }, T::Map { key: b, value: d, .. }) => {
            is_order_compatible(a, b) && is_value_compatible(c, d)
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

/// Values of `value` are values of `ty` as they are, and have the same order. Agrees with
/// `AbstractType.isCompatibleWith`.
fn is_order_compatible(ty: &CqlType, value: &CqlType) -> bool {
    use CqlType as T;
    match (ty, value) {
        (a, b) if a == b => true,
        (T::Blob | T::Text, T::Ascii) | (T::Blob, T::Text) => true,
        (T::List { element: a, .. }, T::List { element: b, .. })
        | (T::Set { element: a, .. }, T::Set { element: b, .. }) => is_order_compatible(a, b),
        (T::Map { key: a, value: c, .. }, T::Map { key: b, value: d, .. }) => {
            is_order_compatible(a, b) && is_order_compatible(c, d)
        }
        (T::Tuple(a), T::Tuple(b)) => {
            b.len() <= a.len() && a.iter().zip(b.iter()).all(|(a, b)| is_order_compatible(a, b))
        }
        (T::Udt(a, _), T::Udt(b, _)) => a == b,
        (T::Vector { element: a, dimension: m }, T::Vector { element: b, dimension: n }) => {
            m == n && is_order_compatible(a, b)
        }
        _ => false,
    }
}

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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// A set of time UUIDs lies in the order of their times, which is not that of UUIDs: given as
    /// it is to a set of UUIDs, it would not be equal to the same set.
    #[test]
    fn elements_of_sets_and_keys_of_maps_keep_their_order() {
        use CqlType as T;
        let list = |element| T::List { element: Arc::new(element), frozen: true };
        let set = |element| T::Set { element: Arc::new(element), frozen: true };
        let map = |key, value| T::Map { key: Arc::new(key), value: Arc::new(value), frozen: true };
        let tuple = |element| T::Tuple(vec![element].into());
        for (ty, value, expected) in [
            (list(T::Uuid), list(T::TimeUuid), true),
            (set(T::Uuid), set(T::TimeUuid), false),
            (set(T::Varint), set(T::Int), false),
            (set(T::Text), set(T::Ascii), true),
            (set(tuple(T::Text)), set(tuple(T::Ascii)), true),
            (set(tuple(T::Uuid)), set(tuple(T::TimeUuid)), false),
            (map(T::Uuid, T::Int), map(T::TimeUuid, T::Int), false),
            (map(T::Int, T::Uuid), map(T::Int, T::TimeUuid), true),
        ] {
            assert_eq!(is_value_compatible(&ty, &value), expected, "{ty:?} {value:?}");
        }
    }
}
