//! Payloads of a few fields: PING_REQ, TRUNCATE_REQ and its answer, BATCH_REMOVE_REQ, SNAPSHOT_REQ.

use crate::error::InternodeError;
use crate::handshake::LinkType;
use crate::payload::whole;
use crate::text::{put_utf, read_utf};

/// PING_REQ: asks whether a link of a type works. The answer comes on a link of that type.
pub fn encode_ping(link: LinkType) -> Vec<u8> {
    vec![link.number()]
}

/// The type of link that a PING_REQ asks about.
pub fn decode_ping(payload: &[u8]) -> Result<LinkType, InternodeError> {
    whole(payload, |cursor| {
        let number = cursor.u8()?;
        let bad = InternodeError::Value { part: "the type of a link", found: i64::from(number) };
        LinkType::from_number(number).ok_or(bad)
    })
}

/// TRUNCATE_REQ: the table whose data goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Truncation {
    /// Name of the keyspace.
    pub keyspace: String,
    /// Name of the table.
    pub table: String,
}

impl Truncation {
    /// The payload.
    pub fn encode(&self) -> Result<Vec<u8>, InternodeError> {
        let mut out = Vec::new();
        put_utf(&mut out, &self.keyspace)?;
        put_utf(&mut out, &self.table)?;
        Ok(out)
    }

    /// From a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, InternodeError> {
        whole(payload, |cursor| Ok(Self { keyspace: read_utf(cursor)?, table: read_utf(cursor)? }))
    }
}

/// TRUNCATE_RSP: the table, and whether its data is gone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Truncated {
    /// The truncation that was asked for.
    pub of: Truncation,
    /// Whether it was done.
    pub success: bool,
}

impl Truncated {
    /// The payload.
    pub fn encode(&self) -> Result<Vec<u8>, InternodeError> {
        let mut out = self.of.encode()?;
        out.push(u8::from(self.success));
        Ok(out)
    }

    /// From a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, InternodeError> {
        whole(payload, |cursor| {
            let of = Truncation { keyspace: read_utf(cursor)?, table: read_utf(cursor)? };
            Ok(Self { of, success: cursor.bool()? })
        })
    }
}

/// Payloads that are one UUID: SCHEMA_VERSION_RSP, BATCH_REMOVE_REQ.
pub fn decode_uuid(payload: &[u8]) -> Result<[u8; 16], InternodeError> {
    whole(payload, |cursor| {
        let bytes = cursor.take(16)?;
        Ok(*bytes.first_chunk().expect("sixteen bytes were taken"))
    })
}

/// SNAPSHOT_REQ: take or clear a snapshot of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SnapshotRequest {
    /// Name of the keyspace.
    pub keyspace: String,
    /// Name of the table.
    pub table: String,
    /// Name of the snapshot.
    pub tag: String,
    /// Clear it instead of taking it.
    pub clear: bool,
}

impl SnapshotRequest {
    /// The payload.
    pub fn encode(&self) -> Result<Vec<u8>, InternodeError> {
        let mut out = Vec::new();
        for text in [&self.keyspace, &self.table, &self.tag] {
            put_utf(&mut out, text)?;
        }
        out.push(u8::from(self.clear));
        Ok(out)
    }

    /// From a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, InternodeError> {
        whole(payload, |cursor| {
            let (keyspace, table, tag) = (read_utf(cursor)?, read_utf(cursor)?, read_utf(cursor)?);
            Ok(Self { keyspace, table, tag, clear: cursor.bool()? })
        })
    }
}
