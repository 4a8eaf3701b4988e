//! How far the log is durable, and the writes that wait for it.
//!
//! A position is packed into 64 bits (segments counted from the first of this process), so that the
//! common check is one atomic load. The writer stores the new position *before* it looks at the
//! list, a waiter checks again *after* it is on the list: so that no waiter is missed.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::{LogError, LogPosition, Shared};
use env::defects::{Defect, is_on};
use env::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use env::sync::{Mutex, MutexGuard};

/// Most ranges remembered as lost under the `Ignore` policy. Older ones are forgotten, since their
/// waiters were told at once.
const LOST_RANGES_MAX: usize = 1024;

pub(super) struct Durability {
    /// The first segment of this process; moved once, before the first record.
    first_segment: AtomicU64,
    /// Everything up to this position is durable, except lost ranges.
    position: AtomicU64,
    stopped: AtomicBool,
    /// Whether `shortage` is set.
    is_short: AtomicBool,
    /// The shortage ([`LogError::is_shortage`]) during which nothing becomes durable. None: there
    /// is none.
    shortage: Mutex<Option<LogError>>,
    any_lost: AtomicBool,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    tickets: u64,
    waiters: Vec<Waiter>,
    /// Positions from (exclusive) and to (inclusive) that a failed write or sync lost.
    lost: Vec<(u64, u64)>,
}

struct Waiter {
    ticket: u64,
    position: u64,
    waker: Waker,
}

impl Durability {
    pub(super) fn new(first_segment: u64) -> Self {
        Durability {
            first_segment: AtomicU64::new(first_segment),
            position: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            is_short: AtomicBool::new(false),
            shortage: Mutex::default(),
            any_lost: AtomicBool::new(false),
            waiting: Mutex::default(),
        }
    }

    /// Sets the id of the first segment of this process.
    pub(super) fn begin(&self, first_segment: u64) {
        let position = self.position.load(Ordering::Acquire);
        assert_eq!(position, 0, "the first segment has its id before anything is durable");
        self.first_segment.store(first_segment, Ordering::Release);
    }

    /// Packs a position into 64 bits; a position of an earlier process, which is durable, is 0.
    fn pack(&self, position: LogPosition) -> u64 {
        match position.segment.checked_sub(self.first_segment.load(Ordering::Acquire)) {
            Some(number) => (number << 32) | u64::from(position.offset),
            None => 0,
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    pub(super) fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Acquire)
    }

    /// Begins a shortage: nothing becomes durable until what is lacking is there, and the waiters
    /// are told.
    pub(super) fn begin_shortage(&self, error: LogError) {
        assert!(error.is_shortage(), "a failure of the log is no shortage: {error}");
        *self.lock_shortage() = Some(error);
        self.is_short.store(true, Ordering::Release);
        self.release();
    }

    /// Ends the shortage.
    pub(super) fn end_shortage(&self) {
        self.is_short.store(false, Ordering::Release);
        *self.lock_shortage() = None;
    }

    /// The present shortage; None: there is none.
    pub(super) fn shortage(&self) -> Option<LogError> {
        if self.is_short() { self.lock_shortage().clone() } else { None }
    }

    fn lock_shortage(&self) -> MutexGuard<'_, Option<LogError>> {
        self.shortage.lock().expect("no step under the shortage's mutex panics")
    }

    #[cfg(test)]
    pub(super) fn reaches(&self, position: LogPosition) -> bool {
        self.position.load(Ordering::Acquire) >= self.pack(position)
    }

    pub(super) fn waiting(&self) -> u64 {
        self.lock().waiters.len() as u64
    }

    /// Notes that everything up to `position` is durable.
    pub(super) fn advance(&self, position: LogPosition) {
        let (before, position) = (self.position.load(Ordering::Acquire), self.pack(position));
        assert!(before <= position, "what is durable stays so: {position} before {before}");
        if is_on(Defect::ReleaseFirst) {
            self.release();
        }
        self.position.store(position, Ordering::Release);
        if !is_on(Defect::ReleaseFirst) {
            self.release();
        }
    }

    /// Notes that everything after the durable position and up to `to` is lost.
    pub(super) fn lose(&self, to: LogPosition) {
        let range = (self.position.load(Ordering::Acquire), self.pack(to));
        assert!(range.0 <= range.1, "a durable record is not lost: {range:?}");
        let mut waiting = self.lock();
        if waiting.lost.len() >= LOST_RANGES_MAX {
            waiting.lost.remove(0);
        }
        waiting.lost.push(range);
        drop(waiting);
        self.any_lost.store(true, Ordering::Release);
        // Later records are measured from here: lost records are settled too.
        self.position.store(range.1, Ordering::Release);
        self.release();
    }

    /// Notes that nothing will become durable any more.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.release();
    }

    fn release(&self) {
        let released: Vec<Waiter> = {
            let mut waiting = self.lock();
            let reached = self.position.load(Ordering::Acquire);
            let is_over = self.is_stopped() || self.is_short();
            waiting.waiters.extract_if(.., |waiter| is_over || waiter.position <= reached).collect()
        };
        released.into_iter().for_each(|waiter| waiter.waker.wake());
    }

    fn settled(&self, position: u64) -> Option<Result<(), LogError>> {
        if self.position.load(Ordering::Acquire) >= position {
            let is_lost = self.any_lost.load(Ordering::Acquire)
                && self.lock().lost.iter().any(|(from, to)| *from < position && position <= *to);
            return Some(if is_lost { Err(LogError::WriteFailed) } else { Ok(()) });
        }
        self.is_stopped().then_some(Err(LogError::Stopped))
    }

    /// Whether a shortage keeps a position from being durable.
    pub(super) fn is_held_up(&self, position: LogPosition) -> bool {
        self.is_short() && self.settled(self.pack(position)).is_none()
    }

    /// The result of the wait for a position; None: it goes on.
    fn answer(&self, position: u64) -> Option<Result<(), LogError>> {
        self.settled(position).or_else(|| self.shortage().map(Err))
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().expect("no step under the waiters' mutex panics")
    }
}

/// Completes when a position of the log is durable; see [`super::CommitLog::wait_durable`].
/// Dropping it waits no longer.
#[must_use = "the write is durable only when this completes"]
pub struct WaitDurable {
    shared: Arc<Shared>,
    position: u64,
    ticket: Option<u64>,
    /// True: the mode of sync asks for no sync before the answer.
    is_enough: bool,
}

impl WaitDurable {
    pub(super) fn new(shared: Arc<Shared>, position: LogPosition, is_enough: bool) -> Self {
        let position = shared.durability.pack(position);
        WaitDurable { shared, position, ticket: None, is_enough }
    }
}

impl WaitDurable {
    /// The result of the future, if that is known without waiting.
    pub fn now(&self) -> Option<Result<(), LogError>> {
        let answer = self.shared.durability.answer(self.position);
        answer.or_else(|| self.is_enough.then_some(Ok(())))
    }
}

impl Future for WaitDurable {
    type Output = Result<(), LogError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let durability = &this.shared.durability;
        if let Some(result) = durability.answer(this.position) {
            this.ticket = None;
            return Poll::Ready(result);
        }
        if this.is_enough {
            return Poll::Ready(Ok(()));
        }
        let mut waiting = durability.lock();
        let registered = waiting.waiters.iter_mut().find(|waiter| Some(waiter.ticket) == this.ticket);
        match registered {
            Some(waiter) => waiter.waker.clone_from(context.waker()),
            None => {
                waiting.tickets += 1;
                let waiter =
                    Waiter { ticket: waiting.tickets, position: this.position, waker: context.waker().clone() };
                this.ticket = Some(waiter.ticket);
                waiting.waiters.push(waiter);
            }
        }
        drop(waiting);
        if is_on(Defect::NoSecondLook) {
            return Poll::Pending;
        }
        // The writer may have passed between the check and the registration.
        match durability.answer(this.position) {
            Some(result) => Poll::Ready(result),
            None => Poll::Pending,
        }
    }
}

impl Drop for WaitDurable {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.shared.durability.lock().waiters.retain(|waiter| waiter.ticket != ticket);
        }
    }
}
