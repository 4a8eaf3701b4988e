//! COUNTER_MUTATION_REQ: increments that a replica applies as the leader of the write.
//!
//! ```text
//! mutation, utf name of the consistency level
//! ```
//!
//! A mutation's own layout is that of MUTATION_REQ and belongs to the data model; here it stays
//! bytes. The mutation does not say its size; the level is what the payload ends with, and no
//! mutation ends like one: its last byte is 1. `org.apache.cassandra.db.CounterMutation`.

use bytes::Bytes;
use types::Consistency;

use crate::error::InternodeError;

/// Increments, and how many replicas must have them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CounterMutation {
    /// The mutation, in the layout of MUTATION_REQ.
    pub mutation: Bytes,
    /// The level of the request.
    pub level: Consistency,
}

/// The bytes with which a payload of a level ends.
fn end_of(level: Consistency) -> Vec<u8> {
    let name = level.name().as_bytes();
    let length = u16::try_from(name.len()).expect("names of levels are short");
    [&length.to_be_bytes(), name].concat()
}

impl CounterMutation {
    /// The payload.
    pub fn encode(&self) -> Vec<u8> {
        let payload = [&self.mutation[..], &end_of(self.level)].concat();
        debug_assert!(
            Self::decode(&Bytes::copy_from_slice(&payload)).is_ok_and(|read| read == *self),
            "increments are read as they are written"
        );
        payload
    }

    /// From a payload. The mutation is a slice of it.
    pub fn decode(payload: &Bytes) -> Result<Self, InternodeError> {
        let level = Consistency::all().find(|level| payload.ends_with(&end_of(*level)));
        let last = payload.last().copied().map_or(-1, i64::from);
        let level = level.ok_or(InternodeError::Value { part: "the consistency level of a counter", found: last })?;
        let size = payload.len() - end_of(level).len();
        Ok(Self { mutation: payload.slice(..size), level })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_is_found_behind_its_mutation() {
        for level in Consistency::all() {
            let sent = CounterMutation { mutation: Bytes::from_static(&[9, 8, 1]), level };
            assert_eq!(CounterMutation::decode(&Bytes::from(sent.encode())), Ok(sent));
        }
        for broken in [&b""[..], b"\x01", b"\x01\x00\x03TWO\x00", b"\x01\x00\x04TWO"] {
            assert!(CounterMutation::decode(&Bytes::copy_from_slice(broken)).is_err(), "{broken:?}");
        }
    }
}
