//! The state of Paxos as rows of `system.paxos`, which are Cassandra's.
//!
//! ```text
//! partition key row_key: the key of the partition; clustering cf_id: the table's id
//! in_progress_ballot             the latest promise to a write
//! in_progress_read_ballot        the latest promise to a read
//! proposal_ballot, proposal, proposal_version          what was accepted last
//! most_recent_commit_at, most_recent_commit, most_recent_commit_version
//! ```
//!
//! A cell has the time of its ballot for its timestamp, so that a late request changes nothing that
//! a later one wrote. Updates are laid out as in messages of the version beside them; all versions
//! since 3.0 lay them out alike. A commit deletes the proposal that it makes obsolete.
//!
//! States expire (`paxos_state_purging: legacy`): cells live for gc_grace_seconds of the table, at
//! least three hours. What was accepted or committed counts for gc_grace_seconds from its ballot
//! on, by the ballot of whoever asks, so that all replicas forget at the same moment
//! (CASSANDRA-12043); therefore the state is read as of second 0, when no cell has expired. Agrees
//! with `org.apache.cassandra.db.SystemKeyspace.{load,save}Paxos*` and
//! `service.paxos.uncommitted.PaxosRows`.

use std::sync::Arc;

use bytes::Bytes;
use internode::MessagingVersion;
use internode::payload::paxos::{Ballot, Commit};
use rows::codec::{decode_update, encode_update};
use rows::{
    Cell, ClusteringValues, ColumnData, ColumnFilter, DataLimits, Mutation, PartitionRange, PartitionUpdate,
    ReadCommand, ReadError, Row, Slice, Slices,
};
use schema::TableMetadata;
use types::DecoratedKey;

use super::acceptor::State;

/// The least time for which a state is kept, seconds.
const TTL_MIN: u32 = 3 * 60 * 60;

/// Reads the row of a partition.
pub(super) fn command(paxos: &Arc<TableMetadata>, table: &TableMetadata, key: &DecoratedKey) -> ReadCommand {
    ReadCommand {
        table: Arc::clone(paxos),
        range: PartitionRange::Key(paxos.decorate(key.key.clone())),
        slices: Slices::normalized(vec![Slice::of_prefix(clustering(table))], &paxos.comparator),
        reversed: false,
        columns: ColumnFilter::All,
        now: 0,
        limits: DataLimits::NONE,
        indexes: Vec::new(),
    }
}

/// The state in a row, as of the time of a ballot. `row` None: nothing is stored.
pub(super) fn state(
    paxos: &TableMetadata,
    row: Option<&Row>,
    table: &Arc<TableMetadata>,
    key: &DecoratedKey,
    ballot: Ballot,
) -> Result<State, ReadError> {
    let columns = Columns { paxos, row };
    let promised_write = columns.ballot("in_progress_ballot")?.unwrap_or(Ballot::NONE);
    let promised = columns.ballot("in_progress_read_ballot")?.unwrap_or(Ballot::NONE);
    let commit = |at: &str, update: &str| -> Result<Option<Commit>, ReadError> {
        let Some(cell) = columns.cell(at).filter(|cell| !is_expired(cell, table, ballot)) else { return Ok(None) };
        let (ballot, update) = (ballot_of(cell)?, columns.update(update, table, key)?);
        Ok(Some(Commit { ballot, update }))
    };
    let committed = commit("most_recent_commit_at", "most_recent_commit")?;
    let committed = committed.unwrap_or_else(|| Commit::none(Arc::clone(table), key.clone()));
    let accepted = commit("proposal_ballot", "proposal")?.filter(|accepted| accepted.is_after(&committed));
    Ok(State { promised: promised_write.latest(promised), promised_write, accepted, committed })
}

/// Whether a ballot's cell no longer counts at the time of a request's ballot.
fn is_expired(cell: &Cell, table: &TableMetadata, at: Ballot) -> bool {
    let end = match i64::from(table.params.gc_grace_seconds) {
        0 if cell.is_expiring() => i64::from(cell.local_deletion_time),
        0 => return false,
        gc_grace => (cell.timestamp / 1_000_000).saturating_add(gc_grace),
    };
    at.micros() / 1_000_000 >= end
}

/// The row that keeps a promise, to a write or to a read.
pub(super) fn promise(
    paxos: &Arc<TableMetadata>,
    table: &TableMetadata,
    key: &DecoratedKey,
    ballot: Ballot,
    is_for_write: bool,
    now: u32,
) -> Mutation {
    let column = if is_for_write { "in_progress_ballot" } else { "in_progress_read_ballot" };
    let row = PaxosRow::new(paxos, table, key, ballot, now);
    row.set(column, Bytes::copy_from_slice(ballot.bytes())).finish()
}

/// The row that keeps what was accepted.
pub(super) fn proposal(paxos: &Arc<TableMetadata>, proposal: &Commit, version: MessagingVersion, now: u32) -> Mutation {
    let (update, ballot) = (&proposal.update, proposal.ballot);
    let row = PaxosRow::new(paxos, &update.table, &update.key, ballot, now);
    row.set("proposal_ballot", Bytes::copy_from_slice(ballot.bytes()))
        .set("proposal", blob(update))
        .set("proposal_version", version_value(version))
        .finish()
}

/// The row that keeps what was committed.
pub(super) fn commit(paxos: &Arc<TableMetadata>, commit: &Commit, version: MessagingVersion, now: u32) -> Mutation {
    let (update, ballot) = (&commit.update, commit.ballot);
    let row = PaxosRow::new(paxos, &update.table, &update.key, ballot, now);
    row.delete("proposal_ballot")
        .delete("proposal")
        .delete("proposal_version")
        .set("most_recent_commit_at", Bytes::copy_from_slice(ballot.bytes()))
        .set("most_recent_commit", blob(update))
        .set("most_recent_commit_version", version_value(version))
        .finish()
}

fn blob(update: &PartitionUpdate) -> Bytes {
    let mut out = Vec::with_capacity(128);
    encode_update(&mut out, update);
    out.into()
}

fn version_value(version: MessagingVersion) -> Bytes {
    Bytes::copy_from_slice(&i32::from(version.number()).to_be_bytes())
}

fn clustering(table: &TableMetadata) -> ClusteringValues {
    [Some(Bytes::copy_from_slice(&table.id.0))].into_iter().collect()
}

/// A row of `system.paxos` that is being put together, as UPDATE would.
struct PaxosRow {
    update: PartitionUpdate,
    row: Row,
    /// The timestamp of its cells, microseconds.
    timestamp: i64,
    now: u32,
    /// For how long its cells live, seconds.
    ttl: u32,
}

impl PaxosRow {
    fn new(paxos: &Arc<TableMetadata>, table: &TableMetadata, key: &DecoratedKey, ballot: Ballot, now: u32) -> Self {
        Self {
            update: PartitionUpdate::new(Arc::clone(paxos), paxos.decorate(key.key.clone())),
            row: Row::new(clustering(table)),
            timestamp: ballot.micros(),
            now,
            ttl: u32::try_from(table.params.gc_grace_seconds).unwrap_or(0).max(TTL_MIN),
        }
    }

    fn set(mut self, name: &str, value: Bytes) -> Self {
        let column = self.update.table.column_by_name(name).expect("a column of system.paxos");
        let mut cell = Cell::live(column.id, self.timestamp, value);
        (cell.ttl, cell.local_deletion_time) = (self.ttl, self.now.saturating_add(self.ttl));
        self.row.add_cell(cell);
        self
    }

    fn delete(mut self, name: &str) -> Self {
        let column = self.update.table.column_by_name(name).expect("a column of system.paxos");
        self.row.add_cell(Cell::tombstone(column.id, self.timestamp, self.now));
        self
    }

    fn finish(mut self) -> Mutation {
        self.update.add_row(self.row);
        Mutation::of(self.update)
    }
}

/// The cells of a row by the names of their columns.
struct Columns<'a> {
    paxos: &'a TableMetadata,
    row: Option<&'a Row>,
}

impl Columns<'_> {
    /// A cell with a value; None: there is none, or it is deleted.
    fn cell(&self, name: &str) -> Option<&Cell> {
        match self.row?.column(self.paxos.column_by_name(name)?.id)? {
            ColumnData::Simple(cell) if !cell.is_tombstone() => Some(cell),
            _ => None,
        }
    }

    fn ballot(&self, name: &str) -> Result<Option<Ballot>, ReadError> {
        self.cell(name).map(ballot_of).transpose()
    }

    /// The update in a cell that stands beside a ballot.
    fn update(&self, name: &str, table: &Arc<TableMetadata>, key: &DecoratedKey) -> Result<PartitionUpdate, ReadError> {
        let value = self.cell(name).map(|cell| cell.value.clone()).unwrap_or_default();
        let table_of = |id| (id == table.id).then(|| Arc::clone(table));
        match decode_update(&value, 0, &table_of) {
            Ok((Some(update), _)) if update.key == *key => Ok(update),
            Ok(_) => malformed(format!("system.paxos.{name} is about another partition")),
            Err(error) => malformed(format!("system.paxos.{name}: {error}")),
        }
    }
}

fn ballot_of(cell: &Cell) -> Result<Ballot, ReadError> {
    match cell.value[..].try_into() {
        Ok(bytes) => Ok(Ballot::from_bytes(bytes)),
        Err(_) => malformed(format!("a ballot in system.paxos has {} bytes", cell.value.len())),
    }
}

fn malformed<T>(what: String) -> Result<T, ReadError> {
    Err(ReadError::Malformed { offset: 0, what })
}
