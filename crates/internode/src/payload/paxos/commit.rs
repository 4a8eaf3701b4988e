//! A commit: a ballot and the change of one partition that the ballot would make.
//!
//! ```text
//! 16 bytes ballot, update: table id, partition
//! ```
//!
//! The update is laid out as within a MUTATION_REQ and may be empty: a prepare names the partition
//! with an empty update, and a proposal that changes nothing has one. Agrees with
//! `org.apache.cassandra.service.paxos.Commit.CommitSerializer`.

use std::sync::Arc;

use bytes::Bytes;
use rows::{Mutation, PartitionUpdate};
use schema::TableMetadata;
use types::DecoratedKey;

use super::{Ballot, read_ballot};
use crate::error::InternodeError;
use crate::payload::reader::{Reader, Tables};

/// A ballot and its change.
#[derive(Clone, PartialEq, Debug)]
pub struct Commit {
    /// The ballot.
    pub ballot: Ballot,
    /// The change, whose cells have the time of the ballot that first proposed it.
    pub update: PartitionUpdate,
}

impl Commit {
    /// A ballot that changes nothing: the request of a prepare.
    pub fn empty(ballot: Ballot, table: Arc<TableMetadata>, key: DecoratedKey) -> Self {
        Self { ballot, update: PartitionUpdate::new(table, key) }
    }

    /// The commit that stands where nothing was accepted or committed.
    pub fn none(table: Arc<TableMetadata>, key: DecoratedKey) -> Self {
        Self::empty(Ballot::NONE, table, key)
    }

    /// Whether the ballot is later than that of another commit.
    pub fn is_after(&self, other: &Self) -> bool {
        self.ballot.is_after(&other.ballot)
    }

    /// Whether one of the two is the other, proposed again with a later ballot. Paxos v2 leaves the
    /// change as it was then, so both make the same one. Never true of changes of nothing.
    ///
    /// Cassandra compares the earliest timestamps of the changes; equal changes have the same.
    pub fn is_reproposal_of(&self, other: &Self) -> bool {
        let (one, two) = (&self.update, &other.update);
        !one.is_empty()
            && one.table.id == two.table.id
            && (&one.key, &one.deletion, &one.static_row) == (&two.key, &two.deletion, &two.static_row)
            && (&one.rows, &one.range_deletions) == (&two.rows, &two.range_deletions)
    }

    /// The change as a write.
    pub fn mutation(&self) -> Mutation {
        Mutation::of(self.update.clone())
    }

    /// The payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(128);
        self.put(&mut out);
        out
    }

    /// From a payload. `tables` finds the table.
    pub fn decode(payload: &Bytes, tables: &Tables<'_>) -> Result<Self, InternodeError> {
        Reader::whole(payload, |reader| Self::read(reader, tables))
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.ballot.bytes());
        rows::codec::encode_update(out, &self.update);
    }

    pub(super) fn read(reader: &mut Reader<'_>, tables: &Tables<'_>) -> Result<Self, InternodeError> {
        let ballot = read_ballot(&mut reader.cursor)?;
        Ok(Self { ballot, update: reader.update(tables)? })
    }

    /// Writes a commit that may be missing, behind a bool.
    pub(super) fn put_nullable(commit: Option<&Self>, out: &mut Vec<u8>) {
        out.push(u8::from(commit.is_some()));
        commit.iter().for_each(|commit| commit.put(out));
    }

    pub(super) fn read_nullable(reader: &mut Reader<'_>, tables: &Tables<'_>) -> Result<Option<Self>, InternodeError> {
        if reader.cursor.bool()? { Self::read(reader, tables).map(Some) } else { Ok(None) }
    }
}
