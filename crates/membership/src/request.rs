//! Requests to other nodes: the question, and the answer as a future.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use internode::{Envelope, Flags, Parameter, Verb};
use tokio::sync::oneshot;
use types::FailureReason;

/// A message that this node sends on its own account. The sender's clock and a new id are added
/// when it is sent.
#[derive(Clone, Debug)]
pub struct Request {
    /// The verb of the question.
    pub verb: Verb,
    /// The verb's payload.
    pub payload: Bytes,
    /// Time for which the sender waits for the answer.
    pub life: Duration,
    /// Flags of the message, such as whether a failure is to be told.
    pub flags: Flags,
    /// Parameters of the message, which are sent unchanged.
    pub parameters: Vec<Parameter>,
}

impl Request {
    /// A request whose receiver tells a failure.
    pub fn new(verb: Verb, payload: impl Into<Bytes>, life: Duration) -> Self {
        let flags = Flags::CALL_BACK_ON_FAILURE;
        Self { verb, payload: payload.into(), life, flags, parameters: Vec::new() }
    }

    /// The request without FAILURE_RSP: the asked node says nothing when it fails.
    pub fn without_failure_response(self) -> Self {
        Self { flags: Flags::default(), ..self }
    }
}

/// Why there is no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestFailure {
    /// The peer has failed, and says why.
    Failed(FailureReason),
    /// No answer came in time, or this node has left the ring.
    TimedOut,
    /// The message was not sent: the queue to this peer is full, or too many requests wait. No
    /// part of it reaches the peer.
    Refused,
}

impl RequestFailure {
    /// The reason in the form in which clients are told it.
    pub fn reason(self) -> FailureReason {
        match self {
            Self::Failed(reason) => reason,
            Self::TimedOut => FailureReason::Timeout,
            Self::Refused => FailureReason::Unknown,
        }
    }
}

impl fmt::Display for RequestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(reason) => write!(f, "the other node failed: {}", reason.name()),
            Self::TimedOut => f.write_str("no answer in time"),
            Self::Refused => f.write_str("not sent: too much waits already"),
        }
    }
}

/// The bytes that a callback keeps of a request until it has heard of every node that was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KeptBytes {
    /// Bytes of this request.
    pub bytes: usize,
    /// Bytes that may still be kept, for this request and all others together. A node that is late
    /// may have half of them; if it has more, a request to it is refused.
    pub left: usize,
}

/// Hears the outcome of a request that went to one node or several, even when the request that
/// caused it is over. So a replica that has not answered gets a hint.
///
/// Called once for each node that was asked: on the thread of links when an answer comes, on that
/// of gossip when none has come in time (up to a second after the request's life), on the caller's
/// own when the request cannot be sent. It must not wait, and no lock of membership is held. Not
/// called any more once this node has left the ring.
pub trait RequestCallback: Send + Sync {
    /// A node has answered, or will not.
    fn on_outcome(&self, peer: SocketAddr, answer: Result<Envelope, RequestFailure>);
}

/// The answer that is to come. It has no timer of its own: a missing answer is found at the next
/// round of gossip, up to a second after the end of the request's life. A caller with less time
/// stops waiting earlier.
#[must_use = "the answer is what was asked for"]
#[derive(Debug)]
pub struct Pending(State);

#[derive(Debug)]
enum State {
    Refused,
    Sent(oneshot::Receiver<Result<Envelope, RequestFailure>>),
}

impl Pending {
    pub(crate) fn refused() -> Self {
        Self(State::Refused)
    }

    pub(crate) fn sent(answer: oneshot::Receiver<Result<Envelope, RequestFailure>>) -> Self {
        Self(State::Sent(answer))
    }

    /// Whether the request was not sent.
    pub fn is_refused(&self) -> bool {
        matches!(self.0, State::Refused)
    }
}

impl Future for Pending {
    type Output = Result<Envelope, RequestFailure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            State::Refused => Poll::Ready(Err(RequestFailure::Refused)),
            State::Sent(answer) => {
                Pin::new(answer).poll(context).map(|told| told.unwrap_or(Err(RequestFailure::TimedOut)))
            }
        }
    }
}
