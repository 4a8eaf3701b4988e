//! PAXOS_PREPARE_RSP: what a replica promises, and what it knows of earlier attempts.
//!
//! ```text
//! bool promised, commit in progress, commit most recent
//! ```
//!
//! Agrees with `org.apache.cassandra.service.paxos.PrepareResponse`.

use bytes::Bytes;

use super::Commit;
use crate::error::InternodeError;
use crate::payload::reader::{Reader, Tables};

/// The answer to PAXOS_PREPARE_REQ.
#[derive(Clone, PartialEq, Debug)]
pub struct PrepareAnswer {
    /// Whether the replica will accept nothing of earlier ballots.
    pub promised: bool,
    /// If promised: the proposal that the replica accepted last and does not know to be committed;
    /// [`Commit::none`]: there is none. If not promised: the ballot that was promised before, with
    /// the empty update of the request.
    pub in_progress: Commit,
    /// The latest commit that the replica knows; [`Commit::none`]: there is none.
    pub most_recent: Commit,
}

impl PrepareAnswer {
    /// The payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![u8::from(self.promised)];
        self.in_progress.put(&mut out);
        self.most_recent.put(&mut out);
        out
    }

    /// From a payload. `tables` finds the table.
    pub fn decode(payload: &Bytes, tables: &Tables<'_>) -> Result<Self, InternodeError> {
        Reader::whole(payload, |reader| {
            Ok(Self {
                promised: reader.cursor.bool()?,
                in_progress: Commit::read(reader, tables)?,
                most_recent: Commit::read(reader, tables)?,
            })
        })
    }
}
