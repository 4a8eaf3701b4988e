//! QUERY: a statement's text with its parameters.

use super::QueryParameters;
use crate::decode_error::DecodeError;
use crate::version::ProtocolVersion;
use crate::wire::{Reader, Text};

/// A statement to execute as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// The statement.
    pub query: Text,
    /// Everything else.
    pub parameters: QueryParameters,
}

impl Query {
    pub(super) fn decode(reader: &mut Reader<'_>, version: ProtocolVersion) -> Result<Self, DecodeError> {
        let query = reader.long_string("a query")?;
        Ok(Self { query, parameters: QueryParameters::decode(reader, version)? })
    }
}
