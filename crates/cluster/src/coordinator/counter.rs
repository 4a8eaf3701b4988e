//! Counters: what a statement adds becomes this node's shard, as one step for each row.
//!
//! 1. The locks of all rows are taken, in the order of their table ([`Stripes`]): a time limit ends
//!    the wait.
//! 2. What is there is read like any other read: on the worker, and in the background where that
//!    would wait.
//! 3. The increments become global shards under the host id (`rows::counter::settle`), and are
//!    applied. The log holds the shards, not the increments: replaying it twice adds nothing.
//! 4. The locks go as soon as memtables have the shards; then the write waits to be durable. The
//!    next statement on the row reads this shard and writes one with a greater clock behind it in
//!    the log: if that one is durable, so is this one.
//!
//! Among several nodes the leader of each mutation does that, one of its replicas, and sends the
//! shards to the others ([`distributed`]).
//!
//! Agrees with `org.apache.cassandra.db.CounterMutation`; there is no counter cache.

pub(crate) mod distributed;

use std::sync::Arc;

use env::defects::{Defect, is_on};
use rows::command::TraceSink;
use rows::live::TombstoneLimits;
use rows::{
    ClusteringValues, ColumnData, ColumnFilter, DataLimits, LiveRows, Mutation, PartitionRange, PartitionStream,
    PartitionUpdate, ReadCommand, ReadError, Row, Slice, Slices, counter,
};
use schema::ColumnId;
use storage::commitlog::LogPosition;
use types::{Consistency, WriteKind};

use super::acknowledgement::Acknowledgement;
use super::error::RequestError;
use crate::node::Node;
use crate::replica::apply::WriteError;
use crate::replica::read::{Open, ReadFigures, ReadOutcome, ReadRequest};
use crate::stripes::{StripeGuards, Stripes};

/// Live rows of a partition before a write: the static one, and others.
type RowsBefore = (Option<Row>, Vec<Row>);

impl Node {
    /// Adds the increments of mutations to what is there. Its reads are opened by `open`; None: as
    /// reads usually are. `trace`: where trace lines go; None: the request is not traced.
    pub async fn add_to_counters(
        &self,
        mutations: Vec<Mutation>,
        level: Consistency,
        open: Option<Arc<Open>>,
        trace: Option<Arc<dyn TraceSink>>,
    ) -> Result<Option<Acknowledgement>, RequestError> {
        if let Some(others) = self.ring_peers() {
            return Box::pin(self.count_distributed(others.traced(trace), mutations, level, open)).await;
        }
        let answers = self.plan_write(&mutations, level, WriteKind::Counter)?;
        let timeout = self.timeouts().counter_write;
        self.send(answers, timeout, self.apply_increments(mutations, open)).await
    }

    async fn apply_increments(
        &self,
        mut mutations: Vec<Mutation>,
        open: Option<Arc<Open>>,
    ) -> Result<Option<LogPosition>, WriteError> {
        if is_on(Defect::CountTwice) {
            let (mut first, open) = (mutations.clone(), open.clone());
            let held = self.settle_increments(&mut first, open).await?;
            self.replica.apply(&first, held).await?;
        }
        let held = self.settle_increments(&mut mutations, open).await?;
        self.replica.apply(&mutations, held).await
    }

    /// Turns the increments of mutations into shards of this node, under locks that are held until
    /// the shards are in the memtables.
    async fn settle_increments(
        &self,
        mutations: &mut [Mutation],
        open: Option<Arc<Open>>,
    ) -> Result<StripeGuards, WriteError> {
        let updates = || mutations.iter().flat_map(|mutation| &mutation.updates);
        let place = |update: &PartitionUpdate, row: Option<&ClusteringValues>| {
            Stripes::of((update.table.id, &update.key.key, row.map(|values| values.as_slice())))
        };
        let places = updates().flat_map(|update| counter::incremented_rows(update).map(|row| place(update, row)));
        let held = self.counter_locks.lock(places.collect()).await;
        for update in mutations.iter_mut().flat_map(|mutation| &mut mutation.updates) {
            let (static_row, rows) = self.read_before(update, open.clone()).await?;
            let table = Arc::clone(&update.table);
            counter::settle(update, self.identity.host_id, self.clock.next_micros(), |clustering| match clustering {
                None => static_row.as_ref(),
                Some(wanted) => {
                    let found = rows.binary_search_by(|row| table.comparator.compare_values(&row.clustering, wanted));
                    found.ok().map(|index| &rows[index])
                }
            });
        }
        Ok(held)
    }

    /// The rows that an update counts in, as they are.
    async fn read_before(&self, update: &PartitionUpdate, open: Option<Arc<Open>>) -> Result<RowsBefore, WriteError> {
        let now = self.env.clock.now_seconds();
        let Some(command) = command_of(update, now) else { return Ok((None, Vec::new())) };
        let table = Arc::clone(&update.table);
        let build = move |stream: &mut dyn PartitionStream| -> Result<RowsBefore, ReadError> {
            let mut live = LiveRows::new(stream, Arc::clone(&table), now, TombstoneLimits::NONE);
            let Some(partition) = live.next_partition()? else { return Ok((None, Vec::new())) };
            let mut rows = Vec::new();
            while let Some(row) = live.next_row()? {
                rows.push(row);
            }
            Ok((partition.static_row, rows))
        };
        let request = ReadRequest { open, ..ReadRequest::of(vec![command]) };
        let (limit, figures) = (self.timeouts().read, ReadFigures::default());
        self.replica.read(request, limit, &figures, build).await.map_err(|outcome| match outcome {
            ReadOutcome::Failed(error) => WriteError::Read(error),
            ReadOutcome::Overloaded => WriteError::Overloaded,
            ReadOutcome::TimedOut => WriteError::TimedOut,
        })
    }
}

/// Reads the rows that an update counts in. None: it counts in none.
pub fn command_of(update: &PartitionUpdate, now: u32) -> Option<ReadCommand> {
    let rows: Vec<_> = counter::incremented_rows(update).collect();
    if rows.is_empty() {
        return None;
    }
    let slices = rows.iter().filter_map(|row| row.cloned()).map(Slice::of_prefix).collect();
    Some(ReadCommand {
        table: Arc::clone(&update.table),
        range: PartitionRange::Key(update.key.clone()),
        slices: Slices::normalized(slices, &update.table.comparator),
        reversed: false,
        columns: ColumnFilter::Some(columns_of(update)),
        now,
        limits: DataLimits::NONE,
        indexes: Vec::new(),
    })
}

fn columns_of(update: &PartitionUpdate) -> Arc<[ColumnId]> {
    let rows = update.static_row.iter().chain(&update.rows);
    let mut columns: Vec<_> = rows.flat_map(|row| row.columns.iter().map(ColumnData::column)).collect();
    columns.sort_unstable();
    columns.dedup();
    columns.into()
}
