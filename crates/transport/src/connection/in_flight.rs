//! Requests that wait: polled once where they were decoded, then kept until they are done or out of time.
//!
//! The boxes of futures are reused, so that a request which is answered at the first poll allocates nothing. A handler that
//! panics fails its request and nothing else.
//!
//! Those of which only the last wait is left ([`Handled::Last`]) stand in a queue, and only the first is polled: writes that wait for the commit
//! log come through with one sync in the order in which they went there, so that one of them is told and the others look.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use env::Instant;
use futures_util::stream::{FuturesUnordered, Stream};
use protocol::ResponseEnvelope;
use stdx::Taken;

use crate::handler::Handled;

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

/// How a request went on when it was first polled.
pub(super) enum Started {
    Ended(Outcome),
    /// It waits, and so many bytes count for it.
    Waits(usize),
}

/// The requests of a connection that wait for something.
pub(super) struct InFlight<F, L> {
    waiting: FuturesUnordered<Waiting<F>>,
    last: VecDeque<Last<L>>,
    spare: Vec<Slot<F>>,
    /// Bytes of their bodies.
    bytes: usize,
}

/// A request in its last wait.
struct Last<L> {
    wait: L,
    stream: i16,
    size: usize,
    room: Option<Taken>,
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

impl<F, L> InFlight<F, L> {
    pub fn new() -> Self {
        Self { waiting: FuturesUnordered::new(), last: VecDeque::new(), spare: Vec::new(), bytes: 0 }
    }

    pub fn len(&self) -> usize {
        self.waiting.len() + self.last.len()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl<F: Future<Output = Handled<L>>, L: Future<Output = ResponseEnvelope> + Unpin> InFlight<F, L> {
    /// Polls a new request once. If it waits, its bytes count and it keeps the room of its body; in its last wait it takes neither.
    pub fn start(
        &mut self,
        context: &mut Context<'_>,
        future: F,
        stream: i16,
        size: usize,
        room: &mut Option<Taken>,
        started: Instant,
    ) -> Started {
        let mut slot = self.spare.pop().unwrap_or_else(|| Box::pin(None));
        slot.as_mut().set(Some(future));
        let size = match poll_slot(&mut slot, context) {
            Poll::Ready(ended) => {
                self.keep(slot);
                match ended {
                    Ended::Now(outcome) => return Started::Ended(outcome),
                    Ended::ButFor(wait) => {
                        let size = size_of::<Last<L>>();
                        self.last.push_back(Last { wait, stream, size, room: None });
                        size
                    }
                }
            }
            Poll::Pending => {
                let (slot, room) = (Some(slot), room.take());
                self.waiting.push(Waiting { slot, stream, size, room, started, expired: false, waker: None });
                size
            }
        };
        self.bytes += size;
        Started::Waits(size)
    }

    /// The next request that has ended; `Pending` if all wait, or there are none.
    pub fn poll_finished(&mut self, context: &mut Context<'_>) -> Poll<Finished> {
        while let Poll::Ready(Some((slot, waited))) = Pin::new(&mut self.waiting).poll_next(context) {
            self.keep(slot);
            let Waited { stream, size, room, ended } = waited;
            match ended {
                Ended::Now(outcome) => {
                    self.bytes -= size;
                    return Poll::Ready(Finished { stream, size, room, outcome });
                }
                Ended::ButFor(wait) => self.last.push_back(Last { wait, stream, size, room }),
            }
        }
        self.poll_last(context)
    }

    fn poll_last(&mut self, context: &mut Context<'_>) -> Poll<Finished> {
        let Some(first) = self.last.front_mut() else { return Poll::Pending };
        let outcome = match catch_unwind(AssertUnwindSafe(|| Pin::new(&mut first.wait).poll(context))) {
            Ok(Poll::Ready(response)) => Outcome::Done(response),
            Ok(Poll::Pending) => return Poll::Pending,
            Err(_) => Outcome::Panicked,
        };
        let Some(Last { stream, size, room, .. }) = self.last.pop_front() else { return Poll::Pending };
        self.bytes -= size;
        Poll::Ready(Finished { stream, size, room, outcome })
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

/// How a request's future ended.
enum Ended<L> {
    Now(Outcome),
    /// But for its last wait.
    ButFor(L),
}

/// A request whose future has ended.
struct Waited<L> {
    stream: i16,
    size: usize,
    room: Option<Taken>,
    ended: Ended<L>,
}

fn poll_slot<F, L>(slot: &mut Slot<F>, context: &mut Context<'_>) -> Poll<Ended<L>>
where
    F: Future<Output = Handled<L>>,
{
    let future = slot.as_mut().as_pin_mut().expect("a slot is filled before it is polled");
    match catch_unwind(AssertUnwindSafe(|| future.poll(context))) {
        Ok(Poll::Ready(Handled::Answered(response))) => Poll::Ready(Ended::Now(Outcome::Done(response))),
        Ok(Poll::Ready(Handled::Last(wait))) => Poll::Ready(Ended::ButFor(wait)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(_) => Poll::Ready(Ended::Now(Outcome::Panicked)),
    }
}

impl<L, F: Future<Output = Handled<L>>> Future for Waiting<F> {
    type Output = (Slot<F>, Waited<L>);

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let slot = this.slot.as_mut().expect("not polled after its end");
        let ended = if this.expired {
            Ended::Now(Outcome::TimedOut)
        } else {
            match poll_slot(slot, context) {
                Poll::Ready(ended) => ended,
                Poll::Pending => {
                    if !this.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
                        this.waker = Some(context.waker().clone());
                    }
                    return Poll::Pending;
                }
            }
        };
        let slot = this.slot.take().expect("there until now");
        Poll::Ready((slot, Waited { stream: this.stream, size: this.size, room: this.room.take(), ended }))
    }
}
