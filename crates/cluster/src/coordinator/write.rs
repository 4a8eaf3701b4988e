//! Writes: what is applied here and sent to others is waited for in one way.
//!
//! A node that is alone, or has not joined a ring of several nodes yet, takes these steps:
//!
//! 1. The ring's plan says how many replicas must answer; where too few are up nothing is written.
//! 2. The mutations are applied here, within the timeout of the request.
//! 3. What is left is the wait for the log ([`Acknowledgement`]): the caller keeps nothing of the
//!    mutations for it. There is none where nothing is to be waited for (periodic sync,
//!    `durable_writes = false`).
//!
//! Among several nodes ([`distributed`]) each mutation goes to its own replicas. Batches, counters
//! and conditional statements differ in what they apply and under which locks.

pub(crate) mod distributed;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rows::Mutation;
use rows::command::TraceSink;
use storage::StorageError;
use storage::commitlog::LogPosition;
use types::{Consistency, FailureReason, ReplicaFailure, WriteKind};

use super::acknowledgement::Acknowledgement;
use super::error::RequestError;
use super::write_answers::WriteAnswers;
use crate::node::Node;
use crate::replica::apply::{WriteError, more_time, within};
use crate::stripes::StripeGuards;

impl Node {
    /// Writes mutations; those of which this node is a replica as one step. The wait for their
    /// replicas is given, unless there is nothing to wait for.
    pub async fn write(
        &self,
        mutations: Vec<Mutation>,
        level: Consistency,
    ) -> Result<Option<Acknowledgement>, RequestError> {
        let kind = kind_of(&mutations);
        if let Some(others) = self.ring_peers() {
            // boxed: the future of a node alone stays as small as it is
            return Box::pin(self.write_distributed(others, mutations, level, kind)).await;
        }
        let answers = self.plan_write(&mutations, level, kind)?;
        let timeout = self.timeouts().write + more_time(&mutations);
        let sent = self.send(answers, timeout, self.replica.apply(&mutations, StripeGuards::new())).await;
        sent.map_err(|error| error.of_mutations(&mutations))
    }

    /// As `Node::write`, for a traced request, in whose session the replicas have a share.
    pub async fn write_traced(
        &self,
        mutations: Vec<Mutation>,
        level: Consistency,
        trace: Arc<dyn TraceSink>,
    ) -> Result<Option<Acknowledgement>, RequestError> {
        let Some(others) = self.ring_peers() else { return self.write(mutations, level).await };
        let kind = kind_of(&mutations);
        self.write_distributed(others.traced(Some(trace)), mutations, level, kind).await
    }

    /// The end of every write of a node alone. Waits for `applied`, which gives the log position
    /// that this node must have durable. The wait for that position is given to the caller; both
    /// share the timeout.
    pub(super) async fn send(
        &self,
        mut answers: WriteAnswers,
        timeout: Duration,
        applied: impl Future<Output = Result<Option<LogPosition>, WriteError>>,
    ) -> Result<Option<Acknowledgement>, RequestError> {
        let begun = self.env.now();
        let applied = within(&self.env, timeout, applied).await.unwrap_or(Err(WriteError::TimedOut));
        let logged = applied.and_then(|position| match position {
            Some(position) => self.replica.logged(position),
            None => Ok(None),
        });
        let local = self.identity.broadcast;
        match logged {
            Ok(None) => Ok(None),
            Ok(Some(log)) => {
                let rest = timeout.saturating_sub(self.env.elapsed(begun));
                Ok(Some(Acknowledgement::of_log(log, local, answers, rest)))
            }
            Err(cause) => {
                // a mutation that is too large is the client's mistake, and nothing was written
                let is_refused = matches!(cause, WriteError::Storage(StorageError::MutationTooLarge { .. }));
                if cause != WriteError::TimedOut && !is_refused {
                    answers.fail(ReplicaFailure { endpoint: local, reason: FailureReason::Unknown });
                }
                Err(RequestError::of_write(cause, answers))
            }
        }
    }
}

fn kind_of(mutations: &[Mutation]) -> WriteKind {
    if mutations.len() > 1 { WriteKind::UnloggedBatch } else { WriteKind::Simple }
}

#[cfg(test)]
mod tests;
