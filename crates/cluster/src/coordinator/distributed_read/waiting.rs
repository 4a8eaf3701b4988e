//! The wait for replicas that were asked the same question, and the replicas that are asked
//! instead of those that fail or are late.

use std::sync::Arc;
use std::time::Duration;

use env::Instant;
use env::rare::{Rare, happens};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use internode::payload::read_answer::AnswerKind;
use internode::payload::read_request::ReadRequest as Question;
use types::{FailureReason, ReplicaFailure};

use super::replies::{PendingReply, Reply};
use super::{DistributedRead, count};
use crate::coordinator::contacts::Contact;
use crate::coordinator::error::FailedAnswers;
use crate::coordinator::part_read::PartRead;
use crate::coordinator::speculation;
use crate::replica::apply::within;

/// Replicas that were asked the same question, and those that can still be asked it.
pub(super) struct PendingReplies<'a> {
    distributed_read: &'a DistributedRead<'a>,
    asked: &'a PartRead,
    question: &'a Arc<Question>,
    answers: FuturesUnordered<PendingReply<'a>>,
    /// Replicas that have not been asked, nearest first.
    spare: &'a [Contact],
    /// The time when the first replicas had been asked.
    pub begun: Instant,
    /// The time after `begun` at which a spare replica is asked beside the late ones; None: none
    /// is asked for that reason, or one was.
    patience: Option<Duration>,
    /// Whether a replica that is asked beside late ones counts as a speculative retry of the
    /// table.
    pub counts_retries: bool,
    /// Replicas that failed, in the order in which they said so.
    failures: Vec<ReplicaFailure>,
}

/// The end of a wait: no further answer comes.
pub(super) struct End {
    /// The time of the read is over, or that of all replicas that failed.
    timed_out: bool,
}

impl<'a> PendingReplies<'a> {
    /// Asks the first replicas a question, each for what is wanted of it.
    pub fn new(
        distributed_read: &'a DistributedRead<'a>,
        asked: &'a PartRead,
        question: &'a Arc<Question>,
        spare: &'a [Contact],
        first: impl Iterator<Item = (Contact, AnswerKind)>,
    ) -> Self {
        let answers = first.map(|(contact, kind)| distributed_read.ask(contact, question, kind)).collect();
        let begun = distributed_read.node.env.now();
        let patience = if spare.is_empty() { None } else { distributed_read.patience(asked) };
        Self {
            distributed_read,
            asked,
            question,
            answers,
            spare,
            begun,
            patience,
            counts_retries: false,
            failures: Vec::new(),
        }
    }

    /// The next answer. A replica that fails is replaced by a spare one, and so is, once in a
    /// wait, a replica that takes longer than `speculative_retry` lets the read wait. `kind`:
    /// what a spare one is asked for.
    pub async fn next(&mut self, kind: AnswerKind) -> Result<(Contact, Reply), End> {
        loop {
            let env = &self.distributed_read.node.env;
            let patient = self.patience.map(|delay| delay.saturating_sub(env.elapsed(self.begun)));
            let wait = self.distributed_read.time_left().min(patient.unwrap_or(Duration::MAX));
            match within(env, wait, self.answers.next()).await {
                None if self.patience.take().is_some() && !self.distributed_read.time_left().is_zero() => {
                    self.count_retry();
                    self.ask_spare(kind);
                }
                None => return Err(End { timed_out: true }),
                Some(None) => {
                    let timed_out = self.failures.iter().all(|failure| failure.reason == FailureReason::Timeout);
                    return Err(End { timed_out });
                }
                Some(Some((contact, Ok(reply)))) => return Ok((contact, reply)),
                Some(Some((contact, Err(reason)))) => {
                    self.failures.push(ReplicaFailure { endpoint: contact.address, reason });
                    self.ask_spare(kind);
                }
            }
        }
    }

    /// The error of a read whose wait has ended after `received` of `block_for` answers.
    pub fn failed(self, end: End, block_for: usize, received: usize, data_present: bool) -> FailedAnswers {
        FailedAnswers {
            level: self.distributed_read.level,
            block_for: count(block_for),
            received: count(received),
            data_present,
            failures: self.failures,
            timed_out: end.timed_out,
        }
    }

    /// Asks the nearest spare replica, if there is one.
    fn ask_spare(&mut self, kind: AnswerKind) {
        let Some((other, rest)) = self.spare.split_first() else { return };
        self.spare = rest;
        self.patience = self.patience.filter(|_| !rest.is_empty());
        self.answers.push(self.distributed_read.ask(*other, self.question, kind));
    }

    fn count_retry(&self) {
        let store = self.distributed_read.node.engine.table(self.asked.part.command.table.id);
        if let Some(store) = store.filter(|_| self.counts_retries) {
            store.metrics.speculative_retries.add(1);
        }
    }
}

impl DistributedRead<'_> {
    /// How long the replicas of a part may take before another one is asked; None: none is.
    fn patience(&self, asked: &PartRead) -> Option<Duration> {
        if asked.part.is_of_range() {
            return None;
        }
        if happens(Rare::SpeculateNow) {
            return Some(Duration::ZERO);
        }
        let table = &asked.part.command.table;
        let store = self.node.engine.table(table.id)?;
        let percentile = |share| {
            // an allocation of a kilobyte, beside the messages of the read
            let latencies = store.metrics.coordinator_read_latency.snapshot();
            match latencies.count() {
                0 => self.node.timeouts().read / 2,
                _ => Duration::from_micros(latencies.percentile(share)),
            }
        };
        speculation::delay(&table.params.speculative_retry, &percentile)
    }
}
