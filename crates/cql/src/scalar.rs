//! Functions of crate `types` that statements need for single values: names, checks, literals.

use bytes::Bytes;
use types::{CqlType, TypeError, literal};

use crate::error::CqlError;

impl From<TypeError> for CqlError {
    fn from(error: TypeError) -> Self {
        Self::Invalid(error.message().to_owned())
    }
}

/// A type as CQL writes it.
pub(crate) fn type_name(ty: &CqlType) -> String {
    ty.cql_name()
}

/// Refuses bytes that are no value of the type.
#[inline]
pub(crate) fn validate(ty: &CqlType, value: &[u8]) -> Result<(), CqlError> {
    Ok(types::validate(ty, value)?)
}

/// The value that a literal's text means for a type.
pub(crate) fn parse_text(ty: &CqlType, text: &str) -> Result<Bytes, CqlError> {
    Ok(literal::parse_text(ty, text)?.into())
}
