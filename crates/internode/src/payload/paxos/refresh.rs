//! PAXOS2_PREPARE_REFRESH_REQ: a commit that a replica lacks, and the promise that it has given.
//!
//! ```text
//! 16 bytes ballot promised, commit missing
//! ```
//!
//! Agrees with `org.apache.cassandra.service.paxos.PaxosPrepareRefresh`.

use bytes::Bytes;

use super::{Ballot, Commit, read_ballot};
use crate::error::InternodeError;
use crate::payload::reader::{Reader, Tables};

/// A commit that a replica lacks.
#[derive(Clone, PartialEq, Debug)]
pub struct Refresh {
    /// The ballot that the replica has promised. The coordinator asks whether that still holds.
    pub promised: Ballot,
    /// The commit.
    pub missing: Commit,
}

impl Refresh {
    /// The payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.promised.bytes().to_vec();
        self.missing.put(&mut out);
        out
    }

    /// From a payload. `tables` finds the table.
    pub fn decode(payload: &Bytes, tables: &Tables<'_>) -> Result<Self, InternodeError> {
        Reader::whole(payload, |reader| {
            Ok(Self { promised: read_ballot(&mut reader.cursor)?, missing: Commit::read(reader, tables)? })
        })
    }
}
