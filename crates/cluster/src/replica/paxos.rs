//! Paxos as a replica takes part in it: what is promised, accepted and committed of one partition.
//!
//! 1. The lock of the partition is taken: nobody else changes its state between 2 and 4.
//! 2. The state is read from `system.paxos` ([`stored`]).
//! 3. The acceptor's rules say what comes of the request ([`acceptor`]).
//! 4. The new state goes to the commit log and the memtables, then the lock is released.
//! 5. The answer waits until the log is durable: a promise that a power cut takes back would let a
//!    second value be chosen.
//!
//! A request that changes nothing is answered at once where it is refused, since a refusal is
//! always safe. The functions serve this node as coordinator and, through [`crate::serve`], all
//! others. Agrees with `org.apache.cassandra.service.paxos.PaxosState`, which keeps recent states
//! in memory; here memtables and the chunk cache do that.

mod acceptor;
mod bounds;
mod history;
mod stored;
pub(crate) mod trace_lines;
mod uncommitted;

use std::sync::Arc;
use std::time::Duration;

use env::Instant;
use env::defects::{Defect, is_on};
use internode::MessagingVersion;
use internode::payload::paxos::{Ballot, Commit, PrepareAnswer};
use metrics::Histogram;
use rows::codec::encode_mutation;
use rows::views::View;
use rows::{ClusteringValues, Mutation, PartitionStream, PartitionUpdate, ReadError, Row, Unfiltered};
use schema::{TableId, TableMetadata};
use sstable::Version;
use storage::commitlog::LogPosition;
use storage::metrics::TableMetrics;
use storage::write::room_of;
use storage::{StorageError, TableStore};
use types::{DecoratedKey, Token};

use super::Replica;
use super::apply::{Logged, WriteError};
use super::read::{ReadFigures, ReadOutcome, ReadRequest};
use crate::paxos::PaxosPurging;
use crate::stripes::{StripeGuards, Stripes};
use acceptor::Acceptance;
use stored::{PaxosReadContext, PaxosWriteContext};

pub(crate) use acceptor::{Promise, State};
pub(crate) use bounds::Bounds;
pub(crate) use history::merged as merged_histories;
pub(crate) use uncommitted::{Uncommitted, bounds as uncommitted_bounds};

/// Longest time that the read of a partition's state may take. A caller usually waits for less.
const READ_MAX: Duration = Duration::from_secs(10);

/// Bytes for the record of a commit beside the update and a key; also for a change of a view that
/// follows from it. It is an upper bound.
const RECORD_ROOM: usize = 1024;

/// Bytes of a segment of the commit log that a group of records cannot use. It is an upper bound.
const SEGMENT_ROOM: usize = 1024;

/// Bytes by which a mutation may be larger than the update of a partition that it commits.
pub(crate) fn record_room(key: &DecoratedKey) -> usize {
    RECORD_ROOM + key.key.len()
}

/// Bytes of the group of records that commits a row of an update with its entries in views, or a
/// few more. Columns that are stored already are not counted: an entry that would be too large
/// because of them is left out (`super::views::parts`).
fn room_with_views(update: &PartitionUpdate, row: &Row, views: &[Arc<View>]) -> usize {
    let record = record_room(&update.key);
    // an entry that ends has the key once more
    let of_view = |view: &Arc<View>| view.room_of(row) + record + update.key.key.len();
    let shown = views.iter().filter(|view| view.selects(&update.key, &row.clustering));
    row.encoded_room() + record + shown.map(of_view).sum::<usize>()
}

/// The outcome of a prepare, and the state before it.
pub(crate) struct Promised {
    /// Whether the ballot is promised.
    pub promise: Promise,
    /// The state before the promise.
    pub state: State,
}

impl Replica {
    /// Promises a ballot if nothing of the same time or later was witnessed. The answer of v1.
    pub(crate) async fn paxos_prepare(
        &self,
        table: &Arc<TableMetadata>,
        key: &DecoratedKey,
        ballot: Ballot,
    ) -> Result<PrepareAnswer, WriteError> {
        let Promised { promise, state } = self.paxos_promise(table, key, ballot, true).await?;
        match promise {
            Promise::Promised => {
                let none = || Commit::none(Arc::clone(table), key.clone());
                let in_progress = state.accepted.unwrap_or_else(none);
                Ok(PrepareAnswer { promised: true, in_progress, most_recent: state.committed })
            }
            // A coordinator of v1 begins again with a ballot after the one that it is told.
            // Cassandra tells the last promise; that is not late enough where this node has
            // accepted or committed something that it had not promised.
            Promise::ReadPermitted { superseded_by } | Promise::Rejected { superseded_by } => {
                let in_progress = Commit::empty(superseded_by, Arc::clone(table), key.clone());
                Ok(PrepareAnswer { promised: false, in_progress, most_recent: state.committed })
            }
        }
    }

    /// Promises a ballot, to a write or to a read, if nothing of the same time or later was
    /// witnessed. The promise is durable.
    pub(crate) async fn paxos_promise(
        &self,
        table: &Arc<TableMetadata>,
        key: &DecoratedKey,
        ballot: Ballot,
        is_for_write: bool,
    ) -> Result<Promised, WriteError> {
        let _took = self.timed(table, |metrics| &metrics.cas_prepare_latency);
        let held = self.lock_paxos(table, key).await;
        let state = self.paxos_state(table, key, ballot).await?;
        let promise = state.promise(&ballot, self.paxos_low_bound());
        if promise == Promise::Promised {
            self.paxos_bounds.note(&ballot);
            let row = stored::promise(&self.paxos_write_context(), table, key, ballot, is_for_write);
            self.apply_and_log(&[row], held).await?;
        }
        Ok(Promised { promise, state })
    }

    /// Accepts a proposal unless something later was witnessed. None: it is accepted; otherwise the
    /// ballot that supersedes it.
    pub(crate) async fn paxos_propose(&self, proposal: &Commit) -> Result<Option<Ballot>, WriteError> {
        let (table, key) = (&proposal.update.table, &proposal.update.key);
        let _took = self.timed(table, |metrics| &metrics.cas_propose_latency);
        let held = self.lock_paxos(table, key).await;
        let state = self.paxos_state(table, key, proposal.ballot).await?;
        self.check_proposal(proposal)?;
        match state.accept(&proposal.ballot, self.paxos_low_bound()) {
            Acceptance::Superseded { by } if !is_on(Defect::BreakPromise) => return Ok(Some(by)),
            Acceptance::Committed => {
                drop(held);
                self.wait_for_paxos(key).await?;
            }
            Acceptance::Accepted | Acceptance::Superseded { .. } => {
                self.paxos_bounds.note(&proposal.ballot);
                let accepted = stored::proposal(&self.paxos_write_context(), proposal);
                self.apply_and_log(&[accepted], held).await?;
            }
        }
        Ok(None)
    }

    /// Applies what was agreed on, and records it. An older commit than the one on record changes
    /// neither that record nor newer cells.
    pub(crate) async fn paxos_commit(&self, commit: &Commit) -> Result<(), WriteError> {
        match self.paxos_commit_applied(commit).await? {
            Some(log) => log.await,
            None => Ok(()),
        }
    }

    /// Does the work of [`Self::paxos_commit`] without the wait for the log, which is given to the
    /// caller. None: there is nothing to wait for.
    pub(crate) async fn paxos_commit_applied(&self, commit: &Commit) -> Result<Option<Logged>, WriteError> {
        let (table, key) = (&commit.update.table, &commit.update.key);
        let _took = self.timed(table, |metrics| &metrics.cas_commit_latency);
        let held = self.lock_paxos(table, key).await;
        self.paxos_bounds.note(&commit.ballot);
        let record = stored::commit(&self.paxos_write_context(), commit);
        let mut mutations = Vec::with_capacity(2);
        if self.applies_paxos(commit) && !commit.update.is_empty() {
            mutations.push(commit.mutation());
        }
        mutations.push(record);
        let position = match self.apply(&mutations, held).await {
            Err(WriteError::Storage(StorageError::MutationTooLarge { .. })) if mutations.len() > 1 => {
                Box::pin(self.paxos_commit_in_two_groups(table, key, &mutations)).await?
            }
            applied => applied?,
        };
        match position {
            Some(position) => self.logged(position),
            None => Ok(None),
        }
    }

    /// Applies what was agreed on, and then its record, which are more than one group of the commit
    /// log may be. A crash in between leaves the proposal accepted: it is found, and committed
    /// again.
    async fn paxos_commit_in_two_groups(
        &self,
        table: &TableMetadata,
        key: &DecoratedKey,
        mutations: &[Mutation],
    ) -> Result<Option<LogPosition>, WriteError> {
        let (record, agreed) = mutations.split_last().expect("the record is the last one");
        let held = self.lock_paxos(table, key).await;
        let applied = self.apply_or_in_parts(agreed, &[], StripeGuards::new()).await?;
        Ok(self.apply(std::slice::from_ref(record), held).await?.or(applied))
    }

    /// Refuses a proposal whose commit would be larger than the commit log takes: the proposal
    /// could be decided, and never be committed. A proposal of several rows is looked at row by
    /// row, because each could be committed by itself (`super::views::parts`).
    fn check_proposal(&self, proposal: &Commit) -> Result<(), WriteError> {
        let views = self.engine.views();
        if let Some(of_base) = views.of_base(proposal.update.table.id) {
            let of_row = |row: &Row| room_with_views(&proposal.update, row, &of_base.views);
            let size = proposal.update.rows.iter().map(of_row).max().unwrap_or(0);
            let size_max = (self.engine.options.commitlog.segment_size as usize).saturating_sub(SEGMENT_ROOM);
            if size > size_max {
                return Err(StorageError::MutationTooLarge { size, size_max }.into());
            }
        }
        let size_max = self.engine.options.commitlog.largest_mutation();
        if room_of(&proposal.update) + record_room(&proposal.update.key) <= size_max {
            return Ok(());
        }
        let mut record = Vec::new();
        encode_mutation(&mut record, &stored::commit(&self.paxos_write_context(), proposal));
        match record.len() {
            size if size > size_max => Err(StorageError::MutationTooLarge { size, size_max }.into()),
            _ => Ok(()),
        }
    }

    /// Whether what was agreed on goes to its table: a table that was truncated since the proposal
    /// began gets nothing of it back.
    pub(crate) fn applies_paxos(&self, commit: &Commit) -> bool {
        let truncated = self.engine.table(commit.update.table.id).and_then(|store| store.truncated_at_millis());
        truncated.is_none_or(|millis| commit.ballot.micros() / 1000 >= millis)
    }

    /// The ballot before which nothing is promised or accepted: that of the last repair of Paxos.
    pub(crate) fn paxos_low_bound(&self) -> Ballot {
        self.paxos_bounds.low_bound()
    }

    fn timed(&self, table: &TableMetadata, histogram: fn(&TableMetrics) -> &Histogram) -> Timed<'_> {
        Timed { replica: self, store: self.engine.table(table.id), histogram, begun: self.env.now() }
    }

    async fn lock_paxos(&self, table: &TableMetadata, key: &DecoratedKey) -> StripeGuards {
        self.paxos_locks.lock(vec![Stripes::of((table.id, &key.key))]).await
    }

    /// The state of a partition as of the time of a ballot.
    pub(crate) async fn paxos_state(
        &self,
        table: &Arc<TableMetadata>,
        key: &DecoratedKey,
        ballot: Ballot,
    ) -> Result<State, WriteError> {
        let command = stored::command(&self.paxos_table(), table, key);
        let at = self.paxos_read_context(table, key.token, ballot);
        let (paxos, table, key) = (self.paxos_table(), Arc::clone(table), key.clone());
        let build = move |stream: &mut dyn PartitionStream| -> Result<State, ReadError> {
            let row = match stream.next_partition()? {
                Some(_) => first_row(stream)?,
                None => None,
            };
            stored::state(&paxos, row.as_ref(), &table, &key, at)
        };
        let request = ReadRequest::of(vec![command]);
        self.read(request, READ_MAX, &ReadFigures::default(), build).await.map_err(read_error)
    }

    /// Applies mutations as one step under a lock, and waits until they are durable.
    async fn apply_and_log(&self, mutations: &[Mutation], held: StripeGuards) -> Result<(), WriteError> {
        let Some(position) = self.apply(mutations, held).await? else { return Ok(()) };
        match self.logged(position)? {
            Some(log) => log.await,
            None => Ok(()),
        }
    }

    /// Waits until what was read of a partition's state is durable.
    async fn wait_for_paxos(&self, key: &DecoratedKey) -> Result<(), WriteError> {
        let Some(position) = self.position_of(&self.paxos_table(), key) else { return Ok(()) };
        match self.logged(position)? {
            Some(log) => log.await,
            None => Ok(()),
        }
    }

    /// The table `system.paxos`.
    fn paxos_table(&self) -> Arc<TableMetadata> {
        let schema = self.engine.schema();
        Arc::clone(schema.table("system", "paxos").expect("a built-in table is always there"))
    }

    /// The messaging version that stands beside updates in `system.paxos`.
    fn blob_version(&self) -> MessagingVersion {
        match self.engine.options.sstable_version {
            Version::NB => MessagingVersion::V12,
            _ => MessagingVersion::V13,
        }
    }

    fn paxos_write_context(&self) -> PaxosWriteContext {
        PaxosWriteContext {
            paxos: self.paxos_table(),
            version: self.blob_version(),
            now: self.env.clock.now_seconds(),
            expires: **self.paxos_purging.load() == PaxosPurging::Legacy,
        }
    }

    /// The moment of a request, for the state of a partition.
    fn paxos_read_context(&self, table: &TableMetadata, token: Token, ballot: Ballot) -> PaxosReadContext {
        let purging = **self.paxos_purging.load();
        // the age of what was accepted is counted from the ballot, not from this node's clock
        let oldest = match purging {
            PaxosPurging::Repaired { .. } => stored::oldest(purging, None, 0, self.paxos_bound_of(table, token)),
            PaxosPurging::Legacy | PaxosPurging::GcGrace => i64::MIN,
        };
        PaxosReadContext { ballot, purging, oldest }
    }

    /// Sets how long states are kept from now on.
    pub(crate) fn set_paxos_purging(&self, purging: PaxosPurging) {
        self.paxos_purging.store(Arc::new(purging));
        let (engine, purging) = (Arc::downgrade(&self.engine), Arc::clone(&self.paxos_purging));
        let bounds = Arc::clone(&self.paxos_bounds);
        let oldest = move |_: &TableMetadata, key: &DecoratedKey, clustering: &ClusteringValues| {
            let (purging, Some(engine)) = (**purging.load(), engine.upgrade()) else { return i64::MIN };
            let id = clustering.first().and_then(|value| value.as_deref()?.try_into().ok()).map(TableId);
            let table = id.and_then(|id| engine.schema().table_by_id(id).cloned());
            let bound = table.as_ref().map_or(Ballot::NONE, |table| bounds.of(table, key.token));
            let gc_grace = table.map(|table| table.params.gc_grace_seconds);
            stored::oldest(purging, gc_grace, engine.env.clock.now_seconds(), bound)
        };
        // the function that was set first sees every later change
        let _ = self.engine.paxos_oldest.set(Arc::new(oldest));
    }
}

fn read_error(outcome: ReadOutcome<ReadError>) -> WriteError {
    match outcome {
        ReadOutcome::Failed(error) => WriteError::Read(error),
        ReadOutcome::Overloaded => WriteError::Overloaded,
        ReadOutcome::TimedOut => WriteError::TimedOut,
    }
}

/// Records in a histogram of a table how long this value existed.
struct Timed<'a> {
    replica: &'a Replica,
    store: Option<Arc<TableStore>>,
    histogram: fn(&TableMetrics) -> &Histogram,
    begun: Instant,
}

impl Drop for Timed<'_> {
    fn drop(&mut self) {
        let micros = u64::try_from(self.replica.env.elapsed(self.begun).as_micros()).unwrap_or(u64::MAX);
        self.store.iter().for_each(|store| (self.histogram)(&store.metrics).record(micros));
    }
}

/// The first row of a partition; None: it has none.
fn first_row(stream: &mut dyn PartitionStream) -> Result<Option<Row>, ReadError> {
    while let Some(unfiltered) = stream.next_unfiltered()? {
        if let Unfiltered::Row(row) = unfiltered {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
