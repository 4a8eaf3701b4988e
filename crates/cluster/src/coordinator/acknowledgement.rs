//! The wait for the answers of a write's replicas: n of m, of which the log of this node is one.
//!
//! Nothing else of the request is needed any more: mutations, plan and future are gone, so that as many writes as
//! are under way hold little. What was sent to a replica gives its answer in one of two ways: this node's is the
//! commit log that becomes durable, a peer's is a future that its message completes.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use env::Sleep;
use types::{FailureReason, ReplicaFailure};

use super::answers::{Answers, Progress};
use super::error::RequestError;
use crate::replica::apply::{Logged, WriteError};

/// A peer's answer to a write: it has the write, or why it has not.
pub type PeerAnswer = Pin<Box<dyn Future<Output = Result<(), FailureReason>> + Send>>;

/// The wait for a write that is in the memtables of this node and was sent to the other replicas. Completes when as
/// many as the level needs have the write durable, when too many have failed, or when its time is over.
#[must_use = "the write is durable only when this completes"]
pub struct Acknowledgement {
    /// This node's answer.
    log: Logged,
    /// This node's answer has come.
    is_logged: bool,
    /// Names this node in a failure.
    local: SocketAddr,
    /// Answers of peers that have not come.
    peers: Vec<(SocketAddr, PeerAnswer)>,
    answers: Answers,
    /// Why this node failed, if it did.
    cause: Option<WriteError>,
    /// How long the wait may take from its begin on.
    rest: Duration,
    /// Made when somebody waits for the first time.
    timer: Option<Sleep>,
}

impl Acknowledgement {
    /// Of a write that waits `rest` from now on for the log of this node, named `local`, and for peers.
    pub(crate) fn new(
        log: Logged,
        local: SocketAddr,
        peers: Vec<(SocketAddr, PeerAnswer)>,
        answers: Answers,
        rest: Duration,
    ) -> Self {
        Self { log, is_logged: false, local, peers, answers, cause: None, rest, timer: None }
    }

    fn poll_log(&mut self, context: &mut Context<'_>) {
        if self.is_logged {
            return;
        }
        let Poll::Ready(durable) = Pin::new(&mut self.log).poll(context) else { return };
        self.is_logged = true;
        match durable {
            Ok(()) => self.answers.receive(),
            Err(cause) => {
                self.answers.fail(ReplicaFailure { endpoint: self.local, reason: FailureReason::Unknown });
                self.cause = Some(cause);
            }
        }
    }

    fn poll_peers(&mut self, context: &mut Context<'_>) {
        let answers = &mut self.answers;
        self.peers.retain_mut(|(endpoint, answer)| match answer.as_mut().poll(context) {
            Poll::Pending => true,
            Poll::Ready(Ok(())) => {
                answers.receive();
                false
            }
            Poll::Ready(Err(reason)) => {
                answers.fail(ReplicaFailure { endpoint: *endpoint, reason });
                false
            }
        });
    }

    fn failed(&self, cause: WriteError) -> RequestError {
        RequestError::of_write(cause, self.answers.clone())
    }
}

impl Future for Acknowledgement {
    type Output = Result<(), RequestError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        this.poll_log(context);
        this.poll_peers(context);
        match this.answers.progress() {
            Progress::Enough => return Poll::Ready(Ok(())),
            Progress::TooFew => {
                let cause = this.cause.take().unwrap_or(WriteError::Peers);
                return Poll::Ready(Err(this.failed(cause)));
            }
            Progress::Waiting => {}
        }
        let (log, rest) = (&this.log, this.rest);
        let timer = this.timer.get_or_insert_with(|| log.sleep_until(rest));
        timer.as_mut().poll(context).map(|()| Err(this.failed(WriteError::TimedOut)))
    }
}

#[cfg(test)]
mod tests;
