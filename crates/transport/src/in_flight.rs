//! Requests that wait: polled once where they were decoded, then kept until they are done or out of
//! time.
//!
//! The boxes of futures are reused, so that a request which is answered at the first poll allocates
//! nothing. A handler that panics fails its request and nothing else.
//!
//! Requests of which only the last wait is left ([`Handled::Last`]) stand in a queue, and only the
//! first is polled. Writes that wait for the commit log become durable in the order in which they
//! went there, so when the head completes, every completed one behind it is popped.
//!
//! What must hold: the bytes of a request are counted from [`InFlight::start`] until it comes out
//! of [`InFlight::poll_finished`]; without requests there are no bytes.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use env::Instant;
use futures_util::stream::{FuturesUnordered, Stream};
use stdx::ByteReservation;

use crate::limits::SPARE_BOXES_MAX;
use crate::session::Handled;

type Slot<F> = Pin<Box<Option<F>>>;

/// How a request ended.
#[derive(Debug)]
pub(crate) enum Outcome<R> {
    Done(R),
    Panicked,
    TimedOut,
}

/// A request that has ended.
#[derive(Debug)]
pub(crate) struct Finished<I, R> {
    /// The id by which the client finds the request of an answer.
    pub id: I,
    /// The bytes that were counted for the request, and are counted no longer.
    pub size: usize,
    /// The room of the request's body, if that is large; None: it is not.
    pub room: Option<ByteReservation>,
    pub outcome: Outcome<R>,
}

/// How a request went on when it was first polled.
pub(crate) enum FirstPoll<R> {
    Ended(Outcome<R>),
    /// The request waits, and counts for so many bytes.
    Waits(usize),
}

/// The requests of a connection that wait for something.
pub(crate) struct InFlight<F, L, I> {
    waiting: FuturesUnordered<Waiting<F, I>>,
    /// Requests in their last wait, in the order in which that began.
    last: VecDeque<Last<L, I>>,
    /// Empty boxes for reuse; at most [`SPARE_BOXES_MAX`].
    spare: Vec<Slot<F>>,
    /// Bytes that are counted for all waiting requests.
    bytes: usize,
}

/// A request in its last wait.
struct Last<L, I> {
    wait: L,
    id: I,
    size: usize,
    room: Option<ByteReservation>,
}

struct Waiting<F, I> {
    /// The request; `None` once it has ended and its box was taken for reuse.
    slot: Option<Slot<F>>,
    id: I,
    size: usize,
    room: Option<ByteReservation>,
    started: Instant,
    expired: bool,
    waker: Option<Waker>,
}

impl<F, L, I> InFlight<F, L, I> {
    pub fn new() -> Self {
        Self { waiting: FuturesUnordered::new(), last: VecDeque::new(), spare: Vec::new(), bytes: 0 }
    }

    pub fn len(&self) -> usize {
        self.waiting.len() + self.last.len()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn release(&mut self, size: usize) {
        assert!(self.bytes >= size, "a request's bytes are released once");
        self.bytes -= size;
        assert!(self.bytes == 0 || self.len() > 0, "without requests in flight there are no bytes");
    }
}

impl<F, L, I, R> InFlight<F, L, I>
where
    F: Future<Output = Handled<R, L>>,
    L: Future<Output = R> + Unpin,
    I: Copy + Unpin,
{
    /// Polls a new request once. If it waits, its bytes count and it keeps the room of its body; in
    /// its last wait it takes neither.
    pub fn start(
        &mut self,
        context: &mut Context<'_>,
        future: F,
        id: I,
        size: usize,
        room: &mut Option<ByteReservation>,
        started: Instant,
    ) -> FirstPoll<R> {
        let mut slot = self.spare.pop().unwrap_or_else(|| Box::pin(None));
        slot.as_mut().set(Some(future));
        let size = match poll_slot(&mut slot, context) {
            Poll::Ready(ended) => {
                self.keep(slot);
                match ended {
                    FutureEnd::Now(outcome) => return FirstPoll::Ended(outcome),
                    FutureEnd::ExceptLastWait(wait) => {
                        let size = size_of::<Last<L, I>>();
                        self.last.push_back(Last { wait, id, size, room: None });
                        size
                    }
                }
            }
            Poll::Pending => {
                let (slot, room) = (Some(slot), room.take());
                self.waiting.push(Waiting { slot, id, size, room, started, expired: false, waker: None });
                size
            }
        };
        self.bytes += size;
        FirstPoll::Waits(size)
    }

    /// The next request that has ended; `Pending` if all wait, or there are none.
    pub fn poll_finished(&mut self, context: &mut Context<'_>) -> Poll<Finished<I, R>> {
        while let Poll::Ready(Some((slot, waited))) = Pin::new(&mut self.waiting).poll_next(context) {
            self.keep(slot);
            let EndedRequest { id, size, room, ended } = waited;
            match ended {
                FutureEnd::Now(outcome) => {
                    self.release(size);
                    return Poll::Ready(Finished { id, size, room, outcome });
                }
                FutureEnd::ExceptLastWait(wait) => self.last.push_back(Last { wait, id, size, room }),
            }
        }
        self.poll_last(context)
    }

    fn poll_last(&mut self, context: &mut Context<'_>) -> Poll<Finished<I, R>> {
        let Some(first) = self.last.front_mut() else { return Poll::Pending };
        let outcome = match catch_unwind(AssertUnwindSafe(|| Pin::new(&mut first.wait).poll(context))) {
            Ok(Poll::Ready(response)) => Outcome::Done(response),
            Ok(Poll::Pending) => return Poll::Pending,
            Err(_) => Outcome::Panicked,
        };
        let Some(Last { id, size, room, .. }) = self.last.pop_front() else { return Poll::Pending };
        self.release(size);
        Poll::Ready(Finished { id, size, room, outcome })
    }

    /// Marks the requests that started before `limit`, so that they end as timed out; says when the
    /// oldest other one started.
    pub fn expire(&mut self, limit: Instant) -> Option<Instant> {
        let mut oldest = None;
        let mut bytes: usize = self.last.iter().map(|last| last.size).sum();
        for waiting in self.waiting.iter_mut() {
            bytes += waiting.size;
            if waiting.started >= limit {
                oldest = Some(oldest.map_or(waiting.started, |oldest: Instant| oldest.min(waiting.started)));
            } else if !waiting.expired {
                waiting.expired = true;
                waiting.waker.take().into_iter().for_each(Waker::wake);
            }
        }
        assert_eq!(bytes, self.bytes, "the bytes in flight are those of the requests that wait");
        oldest
    }

    fn keep(&mut self, mut slot: Slot<F>) {
        if self.spare.len() < SPARE_BOXES_MAX {
            slot.as_mut().set(None);
            self.spare.push(slot);
        }
    }
}

/// How a request's future ended.
enum FutureEnd<R, L> {
    Now(Outcome<R>),
    /// The request has ended except for its last wait.
    ExceptLastWait(L),
}

/// A request whose future has ended.
struct EndedRequest<R, L, I> {
    id: I,
    size: usize,
    room: Option<ByteReservation>,
    ended: FutureEnd<R, L>,
}

fn poll_slot<F, R, L>(slot: &mut Slot<F>, context: &mut Context<'_>) -> Poll<FutureEnd<R, L>>
where
    F: Future<Output = Handled<R, L>>,
{
    let future = slot.as_mut().as_pin_mut().expect("a slot is filled before it is polled");
    match catch_unwind(AssertUnwindSafe(|| future.poll(context))) {
        Ok(Poll::Ready(Handled::Answered(response))) => Poll::Ready(FutureEnd::Now(Outcome::Done(response))),
        Ok(Poll::Ready(Handled::Last(wait))) => Poll::Ready(FutureEnd::ExceptLastWait(wait)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(_) => Poll::Ready(FutureEnd::Now(Outcome::Panicked)),
    }
}

impl<R, L, I: Copy + Unpin, F: Future<Output = Handled<R, L>>> Future for Waiting<F, I> {
    type Output = (Slot<F>, EndedRequest<R, L, I>);

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let slot = this.slot.as_mut().expect("not polled after its end");
        let ended = if this.expired {
            FutureEnd::Now(Outcome::TimedOut)
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
        Poll::Ready((slot, EndedRequest { id: this.id, size: this.size, room: this.room.take(), ended }))
    }
}
