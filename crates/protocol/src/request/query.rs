//! QUERY: the text of a statement with its parameters.

use super::QueryParameters;
use crate::decode_error::DecodeError;
use crate::version::ProtocolVersion;
use crate::wire::{Reader, Text};

/// A QUERY.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// The text of the statement.
    pub query: Text,
    /// The parameters.
    pub parameters: QueryParameters,
}

impl Query {
    pub(super) fn decode(reader: &mut Reader<'_>, version: ProtocolVersion) -> Result<Self, DecodeError> {
        let query = reader.long_string("a query")?;
        Ok(Self { query, parameters: QueryParameters::decode(reader, version)? })
    }
}
