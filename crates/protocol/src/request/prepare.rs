//! PREPARE: the text of a statement and, from version 5 on, its keyspace.

use crate::decode_error::DecodeError;
use crate::version::ProtocolVersion;
use crate::wire::{Reader, Text};

const KEYSPACE: u32 = 0x01;

/// A PREPARE.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepare {
    /// The text of the statement.
    pub query: Text,
    /// The keyspace in place of the connection's.
    pub keyspace: Option<Text>,
}

impl Prepare {
    pub(super) fn decode(reader: &mut Reader<'_>, version: ProtocolVersion) -> Result<Self, DecodeError> {
        let query = reader.long_string("a query")?;
        let flags = if version >= ProtocolVersion::V5 { reader.u32("the flags of PREPARE")? } else { 0 };
        let keyspace = if flags & KEYSPACE != 0 { Some(reader.string("a keyspace")?) } else { None };
        Ok(Self { query, keyspace })
    }
}
