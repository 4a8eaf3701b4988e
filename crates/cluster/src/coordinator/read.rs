//! Reads: planned by the ring, answered by replicas. Where this node alone is asked it reads what
//! it has; otherwise [`super::distributed_read`] asks the others, too.
//!
//! A read at SERIAL or LOCAL_SERIAL first lets the conditional statements of its partition come to
//! their end, and reads at QUORUM or LOCAL_QUORUM then. On a node alone it waits until what it has
//! seen is durable instead ([`super::cas`]).

use std::sync::Arc;
use std::time::Duration;

use rows::command::ReadStats;
use rows::{Build, PartitionRange, ReadCommand};
use schema::TableMetadata;
use types::{Consistency, DecoratedKey};

use super::cas::{Cas, quorum_of};
use super::distributed_read::DistributedRead;
use super::error::{FailedAnswers, FailedCas, FailedRead, RequestError};
use super::write_answers::WriteAnswers;
use crate::node::Node;
use crate::replica::apply::WriteError;
use crate::replica::read::{ReadFigures, ReadOutcome, ReadRequest, is_of_range};
use crate::thresholds::{Exceeding, Measure};

impl Node {
    /// Builds something from the stream of a read at a level, and adds what it took to `figures`.
    pub async fn read<B: Build>(
        &self,
        request: ReadRequest,
        level: Consistency,
        figures: &ReadFigures,
        build: B,
    ) -> Result<B::Built, FailedRead<B::Error>> {
        if !level.is_serial() {
            return self.read_now(request, level, figures, build).await;
        }
        let Some((table, key)) = request.commands.first().and_then(partition_of) else {
            return self.read_now(request, level, figures, build).await;
        };
        if let Some(others) = self.paxos_peers(&table).map_err(FailedRead::Refused)? {
            let quorum = quorum_of(level);
            let trace = request.trace.clone();
            let cas = Cas { table: &table, key: &key, serial: level, commit: quorum, trace: trace.as_deref() };
            if self.paxos().variant.is_v2 && request.open.is_none() {
                return Box::pin(self.read_agreed(others, cas, request, figures, build)).await;
            }
            // boxed, as below
            let proposes = self.paxos().variant.settles_reads;
            Box::pin(self.settle_partition(others, cas, proposes)).await.map_err(of_unsettled)?;
            return self.read_now(request, quorum, figures, build).await;
        }
        let built = self.read_now(request, level, figures, build).await?;
        let waited = self.wait_for_what_was_read(&table, &key).await;
        waited.map_err(|cause| FailedRead::Serial { cause, level, endpoint: self.identity.broadcast })?;
        Ok(built)
    }

    /// As `Node::read`, for a statement that holds the lock of the partition: reads the rows that
    /// are there, whether they are durable or not.
    pub async fn read_now<B: Build>(
        &self,
        mut request: ReadRequest,
        level: Consistency,
        figures: &ReadFigures,
        build: B,
    ) -> Result<B::Built, FailedRead<B::Error>> {
        if let Some(messenger) = self.messenger()
            && request.open.is_none()
            && let Some(parts) =
                self.plan_parts_if_distributed(&request.commands, level).map_err(FailedRead::Refused)?
        {
            // boxed: by value it would make the future of every request larger, which is moved
            // several times
            let (limit, trace) = (self.read_limit(&request.commands), request.trace.clone());
            let distributed_read = DistributedRead::new(self, messenger, level, limit, &figures.warnings, trace);
            let distributed_read = distributed_read.waiting_for(&parts).looking_for(request.wanted_rows.clone());
            return Box::pin(distributed_read.read(parts, request, figures, build)).await;
        }
        let block_for = self.plan_read(&request.commands, level).map_err(FailedRead::Refused)?;
        let limit = self.read_limit(&request.commands);
        let begun = self.messenger().map(|_| self.env.now());
        request.measures = self.tracks_thresholds();
        let measures = request.measures;
        let read = self.replica.read(request, limit, figures, build).await;
        // a read that takes too long counts, too: else this node would be asked alone for ever
        if let (Ok(_) | Err(ReadOutcome::TimedOut), Some(begun)) = (&read, begun) {
            self.record_local_latency(begun);
        }
        if measures {
            self.note_sizes(figures);
        }
        self.note_indexes(figures, read.is_ok(), measures);
        read.map_err(|outcome| self.failed_read(outcome, level, block_for))
    }

    /// Notes the thresholds on sizes that a read of this node alone has exceeded.
    fn note_sizes(&self, figures: &ReadFigures) {
        let Some(sizes) = self.replica.read_sizes.get() else { return };
        let [local, row_index] = [&figures.local_size, &figures.row_index_size].map(ReadStats::get);
        for Exceeding { measure, is_failure, number } in sizes.exceeded(local, row_index) {
            figures.warnings.findings.add(self.identity.broadcast, measure, is_failure, number);
        }
    }

    /// Notes that a search of this node alone looked into many indexes, or would have looked into
    /// too many, which counts where thresholds are tracked.
    fn note_indexes(&self, figures: &ReadFigures, is_answered: bool, tracks: bool) {
        let number = ReadStats::get(&figures.indexes);
        let is_failure = number > self.engine.options.guards.values().searches.fail;
        if number > 0 && is_failure != is_answered && (tracks || !is_failure) {
            figures.warnings.findings.add(self.identity.broadcast, Measure::Indexes, is_failure, number);
        }
    }

    pub(crate) fn failed_read<E>(
        &self,
        outcome: crate::replica::read::ReadOutcome<E>,
        level: Consistency,
        block_for: u32,
    ) -> FailedRead<E> {
        FailedRead::Failed { outcome, level, block_for, received: 0, endpoint: self.identity.broadcast }
    }

    /// How long a read of these commands may take.
    pub(crate) fn read_limit(&self, commands: &[ReadCommand]) -> Duration {
        let timeouts = self.timeouts();
        if is_of_range(commands) { timeouts.range } else { timeouts.read }
    }
}

/// A read at SERIAL whose partition could not be settled, as clients are told of it: a read does
/// not time out or fail as a write. Agrees with `StorageProxy.legacyReadWithPaxos`.
pub(super) fn of_unsettled<E>(error: RequestError) -> FailedRead<E> {
    match error {
        RequestError::Cas(FailedCas::TimedOut { level, block_for, .. }) => FailedRead::of_answers(FailedAnswers {
            level,
            block_for,
            received: 0,
            data_present: false,
            failures: Vec::new(),
            timed_out: true,
        }),
        RequestError::Cas(FailedCas::Violated { level, received, block_for }) => {
            let (data_present, failures, timed_out) = (false, Vec::new(), false);
            FailedRead::of_answers(FailedAnswers { level, block_for, received, data_present, failures, timed_out })
        }
        RequestError::Write(failed) if failed.cause == WriteError::Peers => {
            let WriteAnswers { level, block_for, received, failures, .. } = failed.answers;
            FailedRead::of_answers(FailedAnswers {
                level,
                block_for,
                received,
                data_present: false,
                failures,
                timed_out: false,
            })
        }
        other => FailedRead::Refused(other),
    }
}

/// The partition that a command reads; None: it reads a range.
fn partition_of(command: &ReadCommand) -> Option<(Arc<TableMetadata>, DecoratedKey)> {
    match &command.range {
        PartitionRange::Key(key) => Some((Arc::clone(&command.table), key.clone())),
        PartitionRange::Range { .. } => None,
    }
}
