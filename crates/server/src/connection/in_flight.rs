//! Requests that wait: polled once where they were decoded, then kept until they are done or out of time.
//!
//! The boxes of futures are reused, so that a request which is answered at the first poll allocates nothing. A handler that
//! panics fails its request and nothing else.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use env::Instant;
use futures_util::stream::{FuturesUnordered, Stream};
use protocol::ResponseEnvelope;
use stdx::Taken;

/// Boxes kept for reuse by one connection.
const SPARE_MAX: usize = 16;

type Slot<F> = Pin<Box<Option<F>>>;

/// How a request ended.
#[derive(Debug)]
pub(super) enum Outcome {
    Done(ResponseEnvelope),
    Panicked,
    TimedOut,
}

/// A request that has ended.
#[derive(Debug)]
pub(super) struct Finished {
    pub stream: i16,
    /// Bytes of its body, which no longer count.
    pub size: usize,
    /// Room of its body, if that is large.
    pub room: Option<Taken>,
    pub outcome: Outcome,
}

/// The requests of a connection that wait for something.
pub(super) struct InFlight<F> {
    waiting: FuturesUnordered<Waiting<F>>,
    spare: Vec<Slot<F>>,
    /// Bytes of their bodies.
    bytes: usize,
}

struct Waiting<F> {
    /// `None` once it has ended and its box was taken for reuse.
    slot: Option<Slot<F>>,
    stream: i16,
    size: usize,
    room: Option<Taken>,
    started: Instant,
    expired: bool,
    waker: Option<Waker>,
}

impl<F> InFlight<F> {
    pub fn new() -> Self {
        Self { waiting: FuturesUnordered::new(), spare: Vec::new(), bytes: 0 }
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl<F: Future<Output = ResponseEnvelope>> InFlight<F> {
    /// Polls a new request once. `None`: it waits now, its bytes count, and it keeps the room of its body.
    pub fn start(
        &mut self,
        context: &mut Context<'_>,
        future: F,
        stream: i16,
        size: usize,
        room: &mut Option<Taken>,
        started: Instant,
    ) -> Option<Outcome> {
        let mut slot = self.spare.pop().unwrap_or_else(|| Box::pin(None));
        slot.as_mut().set(Some(future));
        match poll_slot(&mut slot, context) {
            Poll::Ready(outcome) => {
                self.keep(slot);
                Some(outcome)
            }
            Poll::Pending => {
                self.bytes += size;
                let slot = Some(slot);
                let room = room.take();
                self.waiting.push(Waiting { slot, stream, size, room, started, expired: false, waker: None });
                None
            }
        }
    }

    /// The next request that has ended; `Pending` if all wait, or there are none.
    pub fn poll_finished(&mut self, context: &mut Context<'_>) -> Poll<Finished> {
        match Pin::new(&mut self.waiting).poll_next(context) {
            Poll::Ready(Some((slot, finished))) => {
                self.bytes -= finished.size;
                self.keep(slot);
                Poll::Ready(finished)
            }
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    /// Marks the requests that started before `limit`, so that they end as timed out; says when the oldest other one started.
    pub fn expire(&mut self, limit: Instant) -> Option<Instant> {
        let mut oldest = None;
        for waiting in self.waiting.iter_mut() {
            if waiting.started >= limit {
                oldest = Some(oldest.map_or(waiting.started, |oldest: Instant| oldest.min(waiting.started)));
            } else if !waiting.expired {
                waiting.expired = true;
                waiting.waker.take().into_iter().for_each(Waker::wake);
            }
        }
        oldest
    }

    fn keep(&mut self, mut slot: Slot<F>) {
        if self.spare.len() < SPARE_MAX {
            slot.as_mut().set(None);
            self.spare.push(slot);
        }
    }
}

fn poll_slot<F>(slot: &mut Slot<F>, context: &mut Context<'_>) -> Poll<Outcome>
where
    F: Future<Output = ResponseEnvelope>,
{
    let future = slot.as_mut().as_pin_mut().expect("a slot is filled before it is polled");
    match catch_unwind(AssertUnwindSafe(|| future.poll(context))) {
        Ok(Poll::Ready(response)) => Poll::Ready(Outcome::Done(response)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(_) => Poll::Ready(Outcome::Panicked),
    }
}

impl<F: Future<Output = ResponseEnvelope>> Future for Waiting<F> {
    type Output = (Slot<F>, Finished);

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let slot = this.slot.as_mut().expect("not polled after its end");
        let outcome = if this.expired {
            Outcome::TimedOut
        } else {
            match poll_slot(slot, context) {
                Poll::Ready(outcome) => outcome,
                Poll::Pending => {
                    if !this.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
                        this.waker = Some(context.waker().clone());
                    }
                    return Poll::Pending;
                }
            }
        };
        let slot = this.slot.take().expect("there until now");
        Poll::Ready((slot, Finished { stream: this.stream, size: this.size, room: this.room.take(), outcome }))
    }
}
