//! EXECUTE: a prepared statement's id with parameters.

use bytes::Bytes;

use super::QueryParameters;
use crate::decode_error::DecodeError;
use crate::version::ProtocolVersion;
use crate::wire::Reader;

/// An EXECUTE.
#[derive(Clone, Debug, PartialEq)]
pub struct Execute {
    /// The id that PREPARE returned.
    pub id: Bytes,
    /// The id of the result metadata that the client knows; Some from version 5 on.
    pub result_metadata_id: Option<Bytes>,
    /// The parameters.
    pub parameters: QueryParameters,
}

impl Execute {
    pub(super) fn decode(reader: &mut Reader<'_>, version: ProtocolVersion) -> Result<Self, DecodeError> {
        let id = reader.short_bytes("a statement id")?;
        let result_metadata_id =
            if version >= ProtocolVersion::V5 { Some(reader.short_bytes("a result metadata id")?) } else { None };
        Ok(Self { id, result_metadata_id, parameters: QueryParameters::decode(reader, version)? })
    }
}
