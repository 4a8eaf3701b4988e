//! Sending again what stands in the batch log without its removal, among several nodes.
//!
//! 1. A page of due records is read, and the mutations of each are sent to their replicas: applied
//!    here where this node is one, a hint kept for those that are down. The next page is read as
//!    soon as the throttle allows it, while not too many batches are on their way. A pass over the
//!    batch log begins only when all batches of the pass before are settled: it would find them
//!    again.
//! 2. A record goes when every replica has answered or has its hint, and the hints are durable.
//!    Hints are kept whatever the settings of hinted handoff are, and are as old as the batch;
//!    where there is no room for one the record stands, and is sent again. A mutation that is too
//!    large with its changes of views is applied here in parts; one that this node can never take,
//!    because it is too large by itself, is left out here, and one that it would send to nobody,
//!    for the same reason, is left out altogether. A record of a table or column that the schema
//!    of another node may still bring stands until then ([`super::replay`]).
//! 3. Records of changes of views that have reached everybody, some by a hint, go when the hints
//!    are durable (`crate::view_replicas`).
//!
//! If the node ends in between, the records stand and are sent again. Agrees with
//! `org.apache.cassandra.batchlog.BatchlogManager` (`ReplayingBatch`).

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use env::Instant;
use rows::Mutation;
use storage::StorageError;
use types::{Consistency, WriteKind};

use super::replay::{PAGE_BYTES_MAX, PAGE_RECORDS_MAX, PERIOD, Record, node_error, of_each};
use crate::coordinator::pending_write::PendingWrite;
use crate::coordinator::write::distributed::{PlannedWrite, RingPeers};
use crate::error::NodeError;
use crate::hints::HintsDurable;
use crate::node::Node;
use crate::replica::apply::WriteError;
use crate::system_rows;

/// Time between two looks at batches that were sent, where nothing wakes the task.
const SETTLE: Duration = Duration::from_secs(1);
/// Most batches that are on their way. A page that could exceed this number, or
/// [`WINDOW_BYTES_MAX`], is not read yet.
const WINDOW_RECORDS_MAX: usize = 1024;
/// See [`WINDOW_RECORDS_MAX`].
const WINDOW_BYTES_MAX: usize = 4 * PAGE_BYTES_MAX;
/// Records that are removed in one step.
const REMOVALS_MAX: usize = 128;

const _: () = assert!(WINDOW_RECORDS_MAX >= PAGE_RECORDS_MAX, "a page finds room");

/// The batches and records that the task has under way.
#[derive(Default)]
pub(super) struct ResendState {
    /// Batches that were sent and are not settled, oldest first.
    sent: Vec<ResentBatch>,
    /// Records that wait for hints, and the wait; None: no record does.
    hinted: Option<(Vec<[u8; 16]>, HintsDurable)>,
    /// The earliest time to read the next page. None: none was read yet.
    due: Option<Instant>,
}

impl ResendState {
    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.sent.is_empty() && self.hinted.is_none()
    }

    /// Time until the next page may be read.
    fn rest(&self, now: Instant) -> Duration {
        self.due.map_or(Duration::ZERO, |due| due.since(now))
    }

    /// Whether there is room for another page.
    fn has_room(&self) -> bool {
        let bytes: usize = self.sent.iter().map(|batch| batch.bytes).sum();
        self.sent.len() + PAGE_RECORDS_MAX <= WINDOW_RECORDS_MAX && bytes + PAGE_BYTES_MAX <= WINDOW_BYTES_MAX
    }
}

/// A batch whose mutations were sent again.
struct ResentBatch {
    record: Record,
    bytes: usize,
    sent: Vec<Arc<PendingWrite>>,
    /// The wait for the batch's hints to be durable; None while replicas are waited for.
    hints: Option<HintsDurable>,
}

/// The fate of a batch that was sent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ResendOutcome {
    /// Replicas or hints are still waited for.
    Nothing,
    /// Every replica has the batch, or a durable hint for it.
    Done,
    /// A hint could not be made durable, or there was no room for it. The record is sent again.
    Lost,
}

impl Node {
    /// A look while the node is one of several. Gives the time until the next one.
    pub(super) fn resend_due_batches(&self, others: &RingPeers<'_>, state: &mut ResendState) -> Duration {
        let waker = self.batch_replay.waker().unwrap_or_else(|| Waker::noop().clone());
        self.finish_resent(&mut state.sent, &waker);
        if !self.finish_hinted(&mut state.hinted, &waker) {
            // a page could have these records
            return SETTLE;
        }
        if state.rest(self.env.now()).is_zero() {
            if !state.has_room() || !(state.sent.is_empty() || self.is_within_pass()) {
                // the oldest batch wakes the task when it is settled
                return SETTLE;
            }
            self.resend_page(others, state);
        }
        let rest = state.rest(self.env.now());
        if state.sent.is_empty() { rest } else { rest.min(SETTLE) }
    }

    /// Whether the next page is not the first one of a pass.
    fn is_within_pass(&self) -> bool {
        self.batch_replay.behind.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Sends the mutations of a page of records, and notes when the next page may be read.
    fn resend_page(&self, others: &RingPeers<'_>, state: &mut ResendState) {
        // the limit is that of all nodes together
        let throttle = self.batch_replay.throttle.load(Ordering::Relaxed) / others.ring.endpoints().len() as u64;
        let pause = match self.due_records(self.timeouts().write * 2) {
            Ok((due, page)) => {
                let (sent, failed) = of_each(due, |record| self.resend(others, record));
                state.sent.extend(sent);
                assert!(state.sent.len() <= WINDOW_RECORDS_MAX, "the batches that are on their way have a bound");
                page.without(failed).pause(throttle)
            }
            Err(error) => {
                tracing::warn!(%error, "the batch log cannot be sent again now; it is tried again");
                PERIOD
            }
        };
        state.due = Some(self.env.now().plus(pause));
    }

    fn resend(&self, others: &RingPeers<'_>, record: Record) -> Result<ResentBatch, NodeError> {
        let mutations: Arc<[Mutation]> = self.due_mutations(&record)?.into();
        let timeout = self.timeouts().write;
        // any level would do: hints take the place of answers
        let plan =
            |position| self.plan_mutation(&others.ring, &mutations, position, Consistency::Any, WriteKind::Batch);
        let planned = (0..mutations.len()).filter_map(|position| match plan(position) {
            Ok(planned) => Some(planned),
            Err(error) => {
                tracing::error!(?error, "a mutation of a logged batch cannot be sent to its replicas, and is left out");
                None
            }
        });
        let planned: Vec<PlannedWrite> = planned.collect();
        let here: Vec<Mutation> =
            planned.iter().filter(|planned| planned.sent.is_here()).map(|planned| planned.mutation().clone()).collect();
        self.apply_own(&here).map_err(node_error)?;
        let written_millis = record.written_micros().unwrap_or_else(|| self.env.clock.now_micros()) / 1000;
        for planned in &planned {
            planned.sent.require_hints(written_millis);
            self.send_to_peers(others, planned, timeout);
        }
        let sent = planned.into_iter().map(|planned| planned.sent).collect();
        Ok(ResentBatch { bytes: record.bytes(), record, sent, hints: None })
    }

    /// Applies the mutations of a record that are of this node, each in parts where its changes of
    /// views are too large. A mutation that is larger than the commit log takes is left out, as a
    /// hint of such a size is. Otherwise each look would fail at it, and the record would stand
    /// until gc_grace has passed without its other mutations reaching anybody.
    fn apply_own(&self, mutations: &[Mutation]) -> Result<(), WriteError> {
        match self.replica.apply_now(mutations) {
            Err(WriteError::Storage(StorageError::MutationTooLarge { .. })) => {}
            applied => return applied.map(drop),
        }
        for mutation in mutations {
            match self.replica.apply_now_or_in_parts(std::slice::from_ref(mutation)) {
                Err(WriteError::Storage(error @ StorageError::MutationTooLarge { .. })) => {
                    tracing::warn!(%error, "a mutation of a logged batch is left out: this node can never take it");
                }
                applied => applied?,
            }
        }
        Ok(())
    }

    /// Removes the records of batches that are settled. The oldest batch that is not settled yet
    /// wakes `waker` when it is.
    fn finish_resent(&self, sent: &mut Vec<ResentBatch>, waker: &Waker) {
        let mut is_oldest = true;
        sent.retain_mut(|batch| {
            let waker = if is_oldest { waker } else { Waker::noop() };
            match self.resend_outcome(batch, &mut Context::from_waker(waker)) {
                ResendOutcome::Nothing => {
                    is_oldest = false;
                    true
                }
                ResendOutcome::Lost => false,
                ResendOutcome::Done => {
                    if let Err(error) = self.engine.apply(&[self.removal_of_record(&batch.record)]) {
                        tracing::warn!(%error, "the record of a batch stays, and its mutations will be sent again");
                    }
                    false
                }
            }
        });
    }

    /// Removes the records that have waited for hints. False: the hints are not durable yet.
    fn finish_hinted(&self, hinted: &mut Option<(Vec<[u8; 16]>, HintsDurable)>, waker: &Waker) -> bool {
        if hinted.is_none() {
            let ids = self.batch_replay.take_hinted();
            *hinted = (!ids.is_empty()).then(|| (ids, self.hints_durable()));
        }
        let Some((ids, durable)) = hinted.as_mut() else { return true };
        match Pin::new(durable).poll(&mut Context::from_waker(waker)) {
            Poll::Pending => return false,
            Poll::Ready(Ok(())) => self.remove_records(ids),
            // the records stand, and are sent again
            Poll::Ready(Err(_)) => {}
        }
        *hinted = None;
        true
    }

    fn remove_records(&self, ids: &[[u8; 16]]) {
        let table = self.batches_table();
        let removal =
            |id: &[u8; 16]| self.removal(&table, system_rows::partition_key(&table, &[id]), self.clock.next_micros());
        for ids in ids.chunks(REMOVALS_MAX) {
            let removals: Vec<Mutation> = ids.iter().map(removal).collect();
            if let Err(error) = self.engine.apply(&removals) {
                tracing::warn!(%error, "records of batches stay, and their mutations will be sent again");
                return;
            }
        }
    }

    fn resend_outcome(&self, batch: &mut ResentBatch, context: &mut Context<'_>) -> ResendOutcome {
        if !batch.sent.iter().all(|sent| sent.is_settled(context)) {
            return ResendOutcome::Nothing;
        }
        if batch.sent.iter().any(|sent| sent.lacks_hint()) {
            return ResendOutcome::Lost;
        }
        if !batch.sent.iter().any(|sent| sent.has_hint()) {
            return ResendOutcome::Done;
        }
        let hints = batch.hints.get_or_insert_with(|| self.hints_durable());
        match Pin::new(hints).poll(context) {
            Poll::Pending => ResendOutcome::Nothing,
            Poll::Ready(Ok(())) => ResendOutcome::Done,
            Poll::Ready(Err(_)) => ResendOutcome::Lost,
        }
    }
}
