//! The wait for the answers of a write's replicas: n of m, of which the log of this node is one.
//!
//! A node alone waits for its log and holds nothing else of the request: mutations, plan and future
//! are gone, so that as many writes as are under way hold little. Among several nodes
//! ([`replica_wait`]) the wait shares with membership what was sent to the peers
//! ([`super::pending_write`]).

pub(crate) mod replica_wait;

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use env::Sleep;
use types::{FailureReason, ReplicaFailure};

use super::error::RequestError;
use super::write_answers::{Progress, WriteAnswers};
use crate::replica::apply::{Logged, WriteError};
use replica_wait::ReplicaWait;

/// The wait for a write that is in the memtables of this node, where it is a replica, and was sent
/// to the other replicas. Completes when as many as the level needs have the write durable, when
/// too many have failed, or when its time is over.
#[must_use = "the write is durable only when this completes"]
pub struct Acknowledgement(Wait);

enum Wait {
    Log(LogWait),
    /// Boxed: a node alone, which has as many of these as requests in flight, does not pay for it.
    Replicas(Box<ReplicaWait>),
}

/// The wait of a node that is its only replica.
struct LogWait {
    log: Logged,
    /// Names this node in a failure.
    local: SocketAddr,
    answers: WriteAnswers,
    /// How long the wait may take from its begin on.
    rest: Duration,
    /// The timer of `rest`; None until the wait is polled for the first time.
    timer: Option<Sleep>,
}

impl Acknowledgement {
    /// The wait of a write that waits `rest` from now on for the log of this node, named `local`,
    /// and for no other node.
    pub(crate) fn of_log(log: Logged, local: SocketAddr, answers: WriteAnswers, rest: Duration) -> Self {
        Self(Wait::Log(LogWait { log, local, answers, rest, timer: None }))
    }

    /// Whether nothing but the commit log of this node is waited for. Such waits end in the order
    /// in which they began; waits for other nodes end in any order.
    pub fn is_of_log(&self) -> bool {
        matches!(self.0, Wait::Log(_))
    }

    /// The wait of a write among several nodes.
    pub(crate) fn of_replicas(replicas: ReplicaWait) -> Self {
        Self(Wait::Replicas(Box::new(replicas)))
    }
}

impl Future for Acknowledgement {
    type Output = Result<(), RequestError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Wait::Log(log) => Pin::new(log).poll(context),
            Wait::Replicas(replicas) => Pin::new(&mut **replicas).poll(context),
        }
    }
}

impl Future for LogWait {
    type Output = Result<(), RequestError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let cause = match Pin::new(&mut this.log).poll(context) {
            Poll::Ready(Ok(())) => {
                this.answers.receive();
                match this.answers.progress() {
                    Progress::Enough => return Poll::Ready(Ok(())),
                    // a level that this node cannot meet by itself is refused before anything is
                    // written
                    Progress::TooFew | Progress::Waiting => WriteError::Peers,
                }
            }
            Poll::Ready(Err(cause)) => {
                this.answers.fail(ReplicaFailure { endpoint: this.local, reason: FailureReason::Unknown });
                cause
            }
            Poll::Pending => {
                let (log, rest) = (&this.log, this.rest);
                let timer = this.timer.get_or_insert_with(|| log.sleep_until(rest));
                ready!(timer.as_mut().poll(context));
                WriteError::TimedOut
            }
        };
        Poll::Ready(Err(RequestError::of_write(cause, this.answers.clone())))
    }
}

#[cfg(test)]
mod tests;
