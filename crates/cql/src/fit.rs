//! Types among themselves: how well a value of one can be given to another, and the types of native
//! names.
//!
//! Agrees with `org.apache.cassandra.cql3.AssignmentTestable` and `AbstractType.testAssignment`.

use types::CqlType;

use crate::ast::NativeType;
use crate::compatible::takes;

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
    } else if takes(ty, given) {
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
