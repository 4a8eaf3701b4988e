//! Questions to the replicas of a round of Paxos v2, and the errors where too few answer.
//!
//! This node is asked by a call, the others by messages, which a traced statement's session goes
//! along with.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use membership::Request;
use ring::EndpointId;
use types::{FailureReason, ReplicaFailure, WriteKind};

use super::electors::Electors;
use crate::coordinator::cas::agreement::Agreement;
use crate::coordinator::error::{FailedCas, RequestError};
use crate::coordinator::write_answers::WriteAnswers;
use crate::replica::apply::WriteError;

/// The answer that a replica will give, or why it will not.
pub(super) type PendingAnswer<'a, T> = Pin<Box<dyn Future<Output = (EndpointId, Result<T, FailureReason>)> + 'a>>;

/// The answers of a round that were too few.
pub(super) struct TooFew {
    /// Answers that were what was asked for.
    pub received: usize,
    /// Replicas that were asked.
    pub asked: usize,
    /// Answers that are enough.
    pub required: usize,
    /// Replicas that have failed. The others have not answered in time.
    pub failures: Vec<ReplicaFailure>,
}

impl Agreement<'_> {
    /// Time that the statement still has.
    pub(super) fn total_time_left(&self) -> Duration {
        self.limit.saturating_sub(self.node.env.elapsed(self.begun))
    }

    /// Asks one replica. A peer is sent its message before this returns.
    pub(super) fn ask_elector<'a, T: 'a>(
        &'a self,
        electors: &Electors,
        id: EndpointId,
        request: Request,
        here: impl Future<Output = Option<T>> + 'a,
        decode: impl Fn(&Bytes) -> Option<T> + 'a,
    ) -> PendingAnswer<'a, T> {
        let contact = electors.contact(id);
        if contact.is_local {
            return Box::pin(async move { (id, here.await.ok_or(FailureReason::Unknown)) });
        }
        self.trace_sending(&request, contact.address);
        let sent = self.others.messenger.request(contact.address, request);
        Box::pin(async move {
            let told = match sent.await {
                Err(unanswered) => Err(unanswered.reason()),
                Ok(envelope) => {
                    let (verb, peer) = (envelope.header.verb.name(), contact.address);
                    self.trace_received(&envelope, peer);
                    decode(&envelope.payload).ok_or_else(|| {
                        tracing::warn!(%peer, verb, "the answer of another node cannot be read");
                        FailureReason::Unknown
                    })
                }
            };
            (id, told)
        })
    }

    /// The error of a round that too few have answered: a failure where those that are left could
    /// not have been enough, a timeout otherwise.
    pub(super) fn too_few(&self, too_few: TooFew) -> RequestError {
        let TooFew { received, asked, required, failures } = too_few;
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let failed = failures.iter().filter(|failure| failure.reason != FailureReason::Timeout).count();
        let (level, kind, received, block_for) = (self.cas.serial, WriteKind::Cas, count(received), count(required));
        if failed + required > asked {
            let answers =
                WriteAnswers { block_for, received, failures, outstanding: 0, ..WriteAnswers::of_one(level, kind) };
            return RequestError::of_write(WriteError::Peers, answers);
        }
        let contentions = self.contentions;
        RequestError::Cas(FailedCas::TimedOut { level, kind, received, block_for, contentions })
    }

    /// The error of a round that a violation of linearizability ends.
    pub(super) fn violated(&self, received: usize, required: usize) -> RequestError {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let (received, block_for) = (count(received), count(required));
        RequestError::Cas(FailedCas::Violated { level: self.cas.serial, received, block_for })
    }

    /// The time to try is over, and no replica has told anything that counts.
    pub(super) fn contention_timeout_at(&self, block_for: u32) -> RequestError {
        let (level, kind, contentions) = (self.cas.serial, WriteKind::Cas, self.contentions);
        RequestError::Cas(FailedCas::TimedOut { level, kind, received: 0, block_for, contentions })
    }
}
