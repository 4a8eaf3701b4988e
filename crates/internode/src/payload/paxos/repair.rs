//! PAXOS2_REPAIR_REQ and PAXOS2_REPAIR_RSP: the state of Paxos of one partition, for whoever
//! completes what others have begun.
//!
//! ```text
//! request: table id, u8 0, short-bytes partition key
//! answer:  ballot latest witnessed, bool, [commit accepted], commit latest
//! ```
//!
//! Agrees with `org.apache.cassandra.service.paxos.PaxosRepair`.

use std::sync::Arc;

use bytes::Bytes;
use schema::TableMetadata;
use types::DecoratedKey;

use super::prepare_v2::{put_key, read_partition};
use super::{Ballot, Commit, read_ballot};
use crate::error::InternodeError;
use crate::payload::reader::{Reader, Tables};

/// The partition whose state is asked for.
#[derive(Clone, PartialEq, Debug)]
pub struct RepairRequest {
    /// The table.
    pub table: Arc<TableMetadata>,
    /// The partition.
    pub key: DecoratedKey,
}

impl RepairRequest {
    /// The payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.table.id.0.to_vec();
        put_key(&mut out, &self.key);
        out
    }

    /// From a payload. `tables` finds the table.
    pub fn decode(payload: &Bytes, tables: &Tables<'_>) -> Result<Self, InternodeError> {
        Reader::whole(payload, |reader| {
            let (table, key) = read_partition(reader, tables)?;
            Ok(Self { table, key })
        })
    }
}

/// The state of a partition.
#[derive(Clone, PartialEq, Debug)]
pub struct RepairAnswer {
    /// The latest ballot that was promised, accepted or committed, or the low bound of a repair.
    pub latest_witnessed: Ballot,
    /// The proposal that was accepted last and is not known to be committed.
    pub accepted: Option<Commit>,
    /// The latest commit; that of [`Ballot::NONE`] if there is none.
    pub committed: Commit,
}

impl RepairAnswer {
    /// The payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.latest_witnessed.bytes().to_vec();
        Commit::put_nullable(self.accepted.as_ref(), &mut out);
        self.committed.put(&mut out);
        out
    }

    /// From a payload. `tables` finds the table.
    pub fn decode(payload: &Bytes, tables: &Tables<'_>) -> Result<Self, InternodeError> {
        Reader::whole(payload, |reader| {
            Ok(Self {
                latest_witnessed: read_ballot(&mut reader.cursor)?,
                accepted: Commit::read_nullable(reader, tables)?,
                committed: Commit::read(reader, tables)?,
            })
        })
    }
}
