//! CQL types: encodings, orders, text forms, byte-comparable forms, tokens.
//!
//! A value is its serialized bytes, the same in SSTables, commit log, native protocol and partition
//! keys; a [`CqlType`] says what they mean. The words with which requests are described
//! (consistency levels, kinds of writes and batches) stand here too, because every crate above
//! shares them. This crate knows neither tables nor rows and does no I/O.

pub mod batch_kind;
pub mod byte_comparable;
pub mod calendar;
pub mod class_name;
pub mod collection;
pub mod compare;
pub mod composite;
pub mod consistency;
pub mod cql_name;
pub mod decimal;
pub mod duration;
pub mod error;
pub mod extent;
pub mod failure;
pub mod ident;
pub mod inet;
pub mod java_number;
pub mod json;
pub mod literal;
pub mod marshal;
pub mod number;
pub mod radix;
pub mod similarity;
pub mod temporal;
pub mod timeuuid;
pub mod token;
pub mod ty;
pub mod validate;
pub mod write_kind;

pub use batch_kind::BatchKind;
pub use compare::compare;
pub use consistency::Consistency;
pub use duration::Duration;
pub use error::TypeError;
pub use failure::{FailureReason, ReplicaFailure};
pub use literal::{parse_text, to_text};
pub use similarity::Similarity;
pub use token::{DecoratedKey, Token};
pub use ty::{CqlType, CustomType, UserType};
pub use validate::validate;
pub use write_kind::WriteKind;

#[cfg(test)]
mod agreement;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod random;
