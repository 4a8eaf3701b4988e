//! The wait for the answers of a write's replicas: n of m, of which the log of this node is one.
//!
//! A node alone waits for its log and holds nothing else of the request: mutations, plan and future
//! are gone, so that as many writes as are under way hold little. Among several nodes ([`among`])
//! the wait shares with membership what was sent to the peers ([`super::sent`]).

pub(crate) mod among;

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use env::Sleep;
use types::{FailureReason, ReplicaFailure};

use super::answers::{Answers, Progress};
use super::error::RequestError;
use crate::replica::apply::{Logged, WriteError};
use among::Among;

/// The wait for a write that is in the memtables of this node, where it is a replica, and was sent
/// to the other replicas. Completes when as many as the level needs have the write durable, when
/// too many have failed, or when its time is over.
#[must_use = "the write is durable only when this completes"]
pub struct Acknowledgement(Wait);

enum Wait {
    Alone(Alone),
    /// Boxed: a node alone, which has as many of these as requests in flight, does not pay for it.
    Among(Box<Among>),
}

/// The wait of a node that is its only replica.
struct Alone {
    log: Logged,
    /// Names this node in a failure.
    local: SocketAddr,
    answers: Answers,
    /// How long the wait may take from its begin on.
    rest: Duration,
    /// The timer of `rest`; None until the wait is polled for the first time.
    timer: Option<Sleep>,
}

impl Acknowledgement {
    /// The wait of a write that waits `rest` from now on for the log of this node, named `local`,
    /// and for no other node.
    pub(crate) fn alone(log: Logged, local: SocketAddr, answers: Answers, rest: Duration) -> Self {
        Self(Wait::Alone(Alone { log, local, answers, rest, timer: None }))
    }

    /// Whether nothing but the commit log of this node is waited for. Such waits end in the order
    /// in which they began; waits for other nodes end in any order.
    pub fn is_of_log(&self) -> bool {
        matches!(self.0, Wait::Alone(_))
    }

    /// The wait of a write among several nodes.
    pub(crate) fn among(among: Among) -> Self {
        Self(Wait::Among(Box::new(among)))
    }
}

impl Future for Acknowledgement {
    type Output = Result<(), RequestError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Wait::Alone(alone) => Pin::new(alone).poll(context),
            Wait::Among(among) => Pin::new(&mut **among).poll(context),
        }
    }
}

impl Future for Alone {
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
