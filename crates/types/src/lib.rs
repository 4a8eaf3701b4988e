//! CQL types: encodings, orders, text forms, byte-comparable forms, tokens.
//!
//! A value is its serialized bytes, the same in SSTables, commit log, native protocol and partition keys; a [`CqlType`]
//! says what they mean. Nothing here knows tables or rows.

pub mod byte_comparable;
pub mod compare;
pub mod marshal;
pub mod token;
pub mod ty;

pub use compare::compare;
pub use token::{DecoratedKey, Token};
pub use ty::{CqlType, CustomType, UserType};

#[cfg(test)]
mod golden;
