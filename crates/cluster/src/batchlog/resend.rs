//! Sending again what stands in the batch log without its removal, among several nodes.
//!
//! 1. A page of due records is read, and the mutations of each are sent to their replicas: applied
//!    here where this node is one, a hint kept for those that are down.
//! 2. A record goes when every replica has answered or has its hint, and the hints are durable.
//!    Until then no further page is read. Hints are kept whatever the settings of hinted handoff
//!    are, and are as old as the batch; where there is no room for one the record stands, and is
//!    sent again.
//!
//! If the node ends in between, the records stand and are sent again. Agrees with
//! `org.apache.cassandra.batchlog.BatchlogManager` (`ReplayingBatch`).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rows::Mutation;
use types::{Consistency, WriteKind};

use super::replay::{PERIOD, Record, node_error, of_each};
use crate::coordinator::sent::Sent;
use crate::coordinator::write::among::Others;
use crate::error::NodeError;
use crate::hints::HintsDurable;
use crate::node::Node;

/// Time between two looks at what was sent.
const SETTLE: Duration = Duration::from_secs(1);

/// A batch whose mutations were sent again.
pub(super) struct Resent {
    record: Record,
    sent: Vec<Arc<Sent>>,
    /// The wait for hints, once no replica is waited for.
    hints: Option<HintsDurable>,
}

/// The fate of a batch that was sent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Came {
    /// Replicas or hints are still waited for.
    Nothing,
    /// Every replica has it, or will have it.
    Done,
    /// A hint is not durable, or there was no room for it. The record is sent again.
    Lost,
}

impl Node {
    /// A look while the node is one of several. Gives the time until the next one.
    /// `resent` are the batches of former looks that are waited for.
    pub(super) fn resend_due_batches(&self, others: &Others<'_>, resent: &mut Vec<Resent>) -> Duration {
        self.finish_resent(resent);
        if !resent.is_empty() {
            return SETTLE;
        }
        let count = others.ring.endpoints().len() as u64;
        let throttle = self.batch_replay.throttle.load(Ordering::Relaxed);
        match self.resend_page(others, resent) {
            // the limit is that of all nodes together
            Ok((0, pause)) => pause(throttle / count),
            Ok((_, pause)) => pause(throttle / count).max(SETTLE),
            Err(error) => {
                tracing::warn!(%error, "the batch log cannot be sent again now; it is tried again");
                PERIOD
            }
        }
    }

    /// Sends the mutations of a page of records. Gives how many batches are waited for, and how
    /// long to rest.
    fn resend_page(
        &self,
        others: &Others<'_>,
        resent: &mut Vec<Resent>,
    ) -> Result<(usize, impl Fn(u64) -> Duration + use<>), NodeError> {
        let (due, page) = self.due_records(self.timeouts().write * 2)?;
        let (sent, failed) = of_each(due, |record| self.resend(others, record));
        let (count, page) = (sent.len(), page.without(failed));
        resent.extend(sent);
        Ok((count, move |throttle| page.pause(throttle)))
    }

    fn resend(&self, others: &Others<'_>, record: Record) -> Result<Resent, NodeError> {
        let mutations: Arc<[Mutation]> = self.due_mutations(&record).into();
        let timeout = self.timeouts().write;
        // any level would do: hints take the place of answers
        let planned = self.plan_among(&others.ring, mutations, Consistency::Any, WriteKind::Batch);
        let planned = planned.unwrap_or_else(|error| {
            tracing::error!(?error, "a batch in system.batches cannot be sent to its replicas, and is dropped");
            Vec::new()
        });
        let here: Vec<Mutation> =
            planned.iter().filter(|planned| planned.sent.is_here()).map(|planned| planned.mutation().clone()).collect();
        self.replica.apply_now(&here).map_err(node_error)?;
        let written_millis = record.written_micros().unwrap_or_else(|| self.env.clock.now_micros()) / 1000;
        for planned in &planned {
            planned.sent.must_reach_all(written_millis);
            self.send_to_peers(others, planned, timeout);
        }
        let sent = planned.into_iter().map(|planned| planned.sent).collect();
        Ok(Resent { record, sent, hints: None })
    }

    /// Removes the records of batches that are settled.
    fn finish_resent(&self, resent: &mut Vec<Resent>) {
        resent.retain_mut(|batch| match self.came_of(batch) {
            Came::Nothing => true,
            Came::Lost => false,
            Came::Done => {
                if let Err(error) = self.engine.apply(&[self.removal_of_record(&batch.record)]) {
                    tracing::warn!(%error, "the record of a batch stays, and its mutations will be sent again");
                }
                false
            }
        });
    }

    fn came_of(&self, batch: &mut Resent) -> Came {
        if !batch.sent.iter().all(|sent| sent.is_settled()) {
            return Came::Nothing;
        }
        if batch.sent.iter().any(|sent| sent.lacks_hint()) {
            return Came::Lost;
        }
        if !batch.sent.iter().any(|sent| sent.has_hint()) {
            return Came::Done;
        }
        let hints = batch.hints.get_or_insert_with(|| self.hints_durable());
        match Pin::new(hints).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => Came::Nothing,
            Poll::Ready(Ok(())) => Came::Done,
            Poll::Ready(Err(_)) => Came::Lost,
        }
    }
}
