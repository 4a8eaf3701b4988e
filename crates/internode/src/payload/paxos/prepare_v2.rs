//! PAXOS2_PREPARE_REQ and PAXOS2_COMMIT_AND_PREPARE_REQ: a promise is asked for, usually with the
//! read that decides about the statement.
//!
//! ```text
//! PREPARE: ballot, electorate, u8 flags: 01 has a read, 02 is not for a write
//!          [01] read command; else table id, u8 0, short-bytes partition key
//! COMMIT_AND_PREPARE: commit, then as PREPARE
//! ```
//!
//! Cassandra 5.0.8 reads flag 02 the other way round where there is no read. Here the field is what
//! the sender means. Agrees with `org.apache.cassandra.service.paxos.PaxosPrepare` and
//! `PaxosCommitAndPrepare`.

use std::sync::Arc;

use bytes::Bytes;
use schema::{TableId, TableMetadata};
use stdx::put_short_bytes;
use types::DecoratedKey;

use super::{Ballot, Commit, Electorate, read_ballot};
use crate::error::InternodeError;
use crate::payload::read_request::{Partitions, ReadRequest};
use crate::payload::reader::{Reader, Tables};

const HAS_READ: u8 = 0x01;
const NOT_FOR_WRITE: u8 = 0x02;
/// The kind of a position that is a partition key.
const ROW_KEY: u8 = 0;

/// The partition that a promise is about, with the read of it if there is one.
#[derive(Clone, PartialEq, Debug)]
pub enum Prepared {
    /// A partition that is read after the promise is made.
    Read(Box<ReadRequest>),
    /// A partition that is not read.
    Key(Arc<TableMetadata>, DecoratedKey),
}

impl Prepared {
    /// The table.
    pub fn table(&self) -> &Arc<TableMetadata> {
        match self {
            Self::Read(read) => &read.table,
            Self::Key(table, _) => table,
        }
    }

    /// The partition.
    pub fn key(&self) -> DecoratedKey {
        match self {
            Self::Read(read) => match &read.partitions {
                Partitions::Key(key) => read.table.decorate(key.clone()),
                Partitions::Range { .. } => unreachable!("a prepare reads one partition"),
            },
            Self::Key(_, key) => key.clone(),
        }
    }
}

/// The request of a promise.
#[derive(Clone, PartialEq, Debug)]
pub struct PrepareV2 {
    /// The ballot.
    pub ballot: Ballot,
    /// The nodes that decide, as the coordinator knows them.
    pub electorate: Electorate,
    /// Whether the coordinator may propose something with this ballot that changes the partition.
    pub is_for_write: bool,
    /// The partition, and what of it is read.
    pub prepared: Prepared,
}

impl PrepareV2 {
    /// The payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        self.put(&mut out);
        out
    }

    /// From a payload. `tables` finds the table.
    pub fn decode(payload: &Bytes, tables: &Tables<'_>) -> Result<Self, InternodeError> {
        Reader::whole(payload, |reader| Self::read(reader, tables))
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.ballot.bytes());
        self.electorate.put(out);
        let not_for_write = if self.is_for_write { 0 } else { NOT_FOR_WRITE };
        match &self.prepared {
            Prepared::Read(read) => {
                out.push(HAS_READ | not_for_write);
                out.extend_from_slice(&read.encode());
            }
            Prepared::Key(table, key) => {
                out.push(not_for_write);
                out.extend_from_slice(&table.id.0);
                put_key(out, key);
            }
        }
    }

    fn read(reader: &mut Reader<'_>, tables: &Tables<'_>) -> Result<Self, InternodeError> {
        let ballot = read_ballot(&mut reader.cursor)?;
        let electorate = Electorate::read(&mut reader.cursor)?;
        let flags = reader.cursor.u8()?;
        let prepared = if flags & HAS_READ != 0 {
            let read = ReadRequest::read(reader, tables)?;
            if !matches!(read.partitions, Partitions::Key(_)) {
                return Err(InternodeError::Unsupported("a promise about a range of partitions"));
            }
            Prepared::Read(Box::new(read))
        } else {
            let (table, key) = read_partition(reader, tables)?;
            Prepared::Key(table, key)
        };
        Ok(Self { ballot, electorate, is_for_write: flags & NOT_FOR_WRITE == 0, prepared })
    }
}

/// A commit, and the request of the next promise.
#[derive(Clone, PartialEq, Debug)]
pub struct CommitAndPrepare {
    /// The commit that the replica applies first.
    pub commit: Commit,
    /// The prepare that follows, of the same partition.
    pub prepare: PrepareV2,
}

impl CommitAndPrepare {
    /// The payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.commit.encode();
        self.prepare.put(&mut out);
        out
    }

    /// From a payload. `tables` finds the table.
    pub fn decode(payload: &Bytes, tables: &Tables<'_>) -> Result<Self, InternodeError> {
        Reader::whole(payload, |reader| {
            let commit = Commit::read(reader, tables)?;
            let prepare = PrepareV2::read(reader, tables)?;
            let is_same = prepare.prepared.table().id == commit.update.table.id;
            match is_same && prepare.prepared.key() == commit.update.key {
                true => Ok(Self { commit, prepare }),
                false => Err(InternodeError::Unsupported("a commit of one partition and a prepare of another")),
            }
        })
    }
}

pub(super) fn put_key(out: &mut Vec<u8>, key: &DecoratedKey) {
    out.push(ROW_KEY);
    put_short_bytes(out, &key.key);
}

/// Reads a table's id and a partition key.
pub(super) fn read_partition(
    reader: &mut Reader<'_>,
    tables: &Tables<'_>,
) -> Result<(Arc<TableMetadata>, DecoratedKey), InternodeError> {
    let id = TableId(reader.array()?);
    let table = tables(id).ok_or(InternodeError::UnknownTable(id))?;
    match reader.cursor.u8()? {
        ROW_KEY => {
            let key = table.decorate(reader.short_bytes()?);
            Ok((table, key))
        }
        other => Err(InternodeError::Value { part: "the kind of a partition key", found: i64::from(other) }),
    }
}
