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
//! States expire as [`PaxosPurging`] says. With a TTL cells live for gc_grace_seconds of the table,
//! at least three hours and at most 20 years. What was accepted or committed counts for
//! gc_grace_seconds from its ballot on, by the ballot of the request, so that all replicas forget
//! at the same moment (CASSANDRA-12043); therefore the state is read as of second 0, when no cell
//! has expired. Agrees with `org.apache.cassandra.db.SystemKeyspace.{load,save}Paxos*` and
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
use crate::paxos::PaxosPurging;

/// The least time for which a state is kept, seconds.
const TTL_MIN: u32 = 3 * 60 * 60;
/// The greatest time for which a state is kept, seconds: the greatest TTL of CQL, 20 years. The
/// gc_grace_seconds of a table may be more, and may be set back later, while a state that was
/// written with a TTL keeps it.
const TTL_MAX: u32 = 20 * 365 * 24 * 60 * 60;

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
    at: PaxosReadContext,
) -> Result<State, ReadError> {
    let columns = Columns { paxos, row };
    let promise = |name: &str| -> Result<Ballot, ReadError> {
        let ballot = columns.ballot(name)?.filter(|ballot| ballot.micros() >= at.oldest);
        Ok(ballot.unwrap_or(Ballot::NONE))
    };
    let (promised_write, promised) = (promise("in_progress_ballot")?, promise("in_progress_read_ballot")?);
    let commit = |name: &str, update: &str| -> Result<Option<Commit>, ReadError> {
        let Some(cell) = columns.cell(name).filter(|cell| !is_expired(cell, table, at)) else { return Ok(None) };
        let (ballot, update) = (ballot_of(cell)?, columns.update(update, table, key)?);
        Ok(Some(Commit { ballot, update }))
    };
    let committed = commit("most_recent_commit_at", "most_recent_commit")?;
    let committed = committed.unwrap_or_else(|| Commit::none(Arc::clone(table), key.clone()));
    let accepted = commit("proposal_ballot", "proposal")?.filter(|accepted| accepted.is_after(&committed));
    Ok(State { promised: promised_write.latest(promised), promised_write, accepted, committed })
}

/// The moment as of which a state is read, and what counts then.
#[derive(Clone, Copy)]
pub(super) struct PaxosReadContext {
    /// The ballot of the request.
    pub ballot: Ballot,
    /// How states expire.
    pub purging: PaxosPurging,
    /// Earliest time of a ballot that still counts, microseconds since 1970.
    pub oldest: i64,
}

/// Whether a ballot's cell no longer counts.
fn is_expired(cell: &Cell, table: &TableMetadata, at: PaxosReadContext) -> bool {
    let gc_grace = i64::from(table.params.gc_grace_seconds);
    let end = match at.purging {
        PaxosPurging::Legacy | PaxosPurging::GcGrace if gc_grace > 0 => {
            (cell.timestamp / 1_000_000).saturating_add(gc_grace)
        }
        PaxosPurging::GcGrace => cell.timestamp.div_euclid(1_000_000).saturating_add(1),
        _ if cell.timestamp < at.oldest => return true,
        _ if cell.is_expiring() => i64::from(cell.local_deletion_time),
        _ => return false,
    };
    at.ballot.micros() / 1_000_000 >= end
}

/// Earliest time of a state that still counts by its age alone, microseconds since 1970. `bound`:
/// the ballot up to which a repair has completed everything.
pub(super) fn oldest(purging: PaxosPurging, gc_grace_seconds: Option<i32>, now: u32, bound: Ballot) -> i64 {
    match purging {
        PaxosPurging::Legacy => i64::MIN,
        PaxosPurging::GcGrace => {
            let gc_grace = gc_grace_seconds.map_or(i64::from(TTL_MIN), i64::from);
            i64::from(now).saturating_sub(gc_grace).saturating_mul(1_000_000)
        }
        PaxosPurging::Repaired { .. } if bound == Ballot::NONE => i64::MIN,
        PaxosPurging::Repaired { grace } => {
            bound.micros().saturating_sub(i64::try_from(grace.as_micros()).unwrap_or(i64::MAX))
        }
    }
}

/// How rows are written.
#[derive(Clone)]
pub(super) struct PaxosWriteContext {
    /// `system.paxos`
    pub paxos: Arc<TableMetadata>,
    /// The messaging version in which updates are stored.
    pub version: MessagingVersion,
    /// The second from which a TTL counts.
    pub now: u32,
    /// Whether cells have a TTL.
    pub expires: bool,
}

/// The row that keeps a promise, to a write or to a read.
pub(super) fn promise(
    context: &PaxosWriteContext,
    table: &TableMetadata,
    key: &DecoratedKey,
    ballot: Ballot,
    is_for_write: bool,
) -> Mutation {
    let column = if is_for_write { "in_progress_ballot" } else { "in_progress_read_ballot" };
    let row = PaxosRow::new(context, table, key, ballot);
    row.set(column, Bytes::copy_from_slice(ballot.bytes())).finish()
}

/// The row that keeps what was accepted.
pub(super) fn proposal(context: &PaxosWriteContext, proposal: &Commit) -> Mutation {
    let (update, ballot) = (&proposal.update, proposal.ballot);
    let row = PaxosRow::new(context, &update.table, &update.key, ballot);
    row.set("proposal_ballot", Bytes::copy_from_slice(ballot.bytes()))
        .set("proposal", blob(update))
        .set("proposal_version", version_value(context.version))
        .finish()
}

/// The row that keeps what was committed.
pub(super) fn commit(context: &PaxosWriteContext, commit: &Commit) -> Mutation {
    let (update, ballot) = (&commit.update, commit.ballot);
    let row = PaxosRow::new(context, &update.table, &update.key, ballot);
    row.delete("proposal_ballot")
        .delete("proposal")
        .delete("proposal_version")
        .set("most_recent_commit_at", Bytes::copy_from_slice(ballot.bytes()))
        .set("most_recent_commit", blob(update))
        .set("most_recent_commit_version", version_value(context.version))
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
    /// Timestamp of the row's cells, microseconds since 1970.
    timestamp: i64,
    now: u32,
    /// TTL of the row's cells, seconds; None: they do not expire.
    ttl: Option<u32>,
}

impl PaxosRow {
    fn new(context: &PaxosWriteContext, table: &TableMetadata, key: &DecoratedKey, ballot: Ballot) -> Self {
        let ttl = u32::try_from(table.params.gc_grace_seconds).unwrap_or(0).clamp(TTL_MIN, TTL_MAX);
        Self {
            update: PartitionUpdate::new(Arc::clone(&context.paxos), context.paxos.decorate(key.key.clone())),
            row: Row::new(clustering(table)),
            timestamp: ballot.micros(),
            now: context.now,
            ttl: context.expires.then_some(ttl),
        }
    }

    fn set(mut self, name: &str, value: Bytes) -> Self {
        let column = self.update.table.column_by_name(name).expect("a column of system.paxos");
        let mut cell = Cell::live(column.id, self.timestamp, value);
        if let Some(ttl) = self.ttl {
            (cell.ttl, cell.local_deletion_time) = (ttl, self.now.saturating_add(ttl));
        }
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
