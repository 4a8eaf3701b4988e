//! The state that a connection's task shares with its worker and with its session.
//!
//! The worker's ticker looks for timeouts here, its event task brings events, and a drain ends the
//! connection. The session says through [`Link`] that its handshake is done and which events it
//! asks for. Everything happens on one thread.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use env::Instant;

use crate::limits::{
    BODY_TIMEOUTS, CONNECTION_EVENTS_MAX, HUNG_UP_PATIENCE, LINGER, SHRINK_AFTER, SLOW_READER_BYTES_PER_SECOND,
    SLOW_READER_TIMEOUTS, ServerLimits,
};
use crate::protocol::Protocol;

/// Why the worker wants a connection to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    /// A large request has begun, and no more of it has come, or not all of it in a long time.
    Stalled,
    /// Neither side has sent anything for too long.
    Idle,
    /// STARTUP and authentication took too long.
    StartupTimeout,
    /// The client does not take its responses.
    SlowReader,
    /// The client takes its responses, but so slowly that it would keep their room for hours.
    TricklingReader,
    /// The client takes too long to hang up after the last response.
    Lingering,
    /// The client has closed its side, and its last requests take long: it is taken to be gone.
    HungUp,
    /// There are more events than the client takes.
    TooManyEvents,
    /// The server stops: finish the requests in flight, then close.
    Drain,
    /// The server stops, and its time for a drain is over.
    Stop,
}

/// The state of a connection: see the head of this file.
pub(crate) struct Control<P: Protocol> {
    /// When the connection was accepted.
    pub opened: Instant,
    /// When the last bytes of the client came.
    pub last_read: Cell<Instant>,
    /// Whether the socket has taken bytes since the ticker looked. It is a mark and no time, so
    /// that writing an answer reads no clock.
    pub has_written: Cell<bool>,
    /// When the ticker last saw that the socket had taken bytes.
    last_written: Cell<Instant>,
    /// True: the handshake is done.
    pub ready: Cell<bool>,
    /// Since when the socket has taken nothing of a non-empty out buffer; None: it takes bytes, or
    /// the buffer is empty.
    pub write_blocked: Cell<Option<Instant>>,
    /// When the ticker began to count what the client takes of a non-empty out buffer, and the
    /// bytes taken since. None: the buffer is empty, or the ticker has not looked since it was.
    progress: Cell<Option<(Instant, u64)>>,
    /// Since when the connection only waits for the client to hang up; None: it does not.
    pub lingering: Cell<Option<Instant>>,
    /// Since when the client has closed its side; None: it has not.
    pub hung_up: Cell<Option<Instant>>,
    /// Since when a large body is on its way, and counted; None: none is.
    pub body_begun: Cell<Option<Instant>>,
    /// When the oldest waiting request started, or earlier; None: no request waits.
    pub oldest_request: Cell<Option<Instant>>,
    /// Set by the ticker when `oldest_request` is too old.
    pub check_requests: Cell<bool>,
    /// Set by the ticker when buffers could be given back; cleared by the next read.
    pub shrink: Cell<bool>,
    /// True: the connection waits until there are bytes left of the server's total.
    pub paused: Cell<bool>,
    /// Why the worker wants the connection to end; None: it may go on.
    pub close_reason: Cell<Option<CloseReason>>,
    /// A bit for each kind of events that the session asked for.
    registered: Cell<u8>,
    /// Events that are not in the out buffer yet; at most [`CONNECTION_EVENTS_MAX`].
    events: RefCell<VecDeque<Arc<P::Event>>>,
    /// The waker of the connection's task.
    waker: RefCell<Option<Waker>>,
}

impl<P: Protocol> Control<P> {
    pub fn new(now: Instant) -> Self {
        Self {
            opened: now,
            last_read: Cell::new(now),
            has_written: Cell::new(false),
            last_written: Cell::new(now),
            ready: Cell::new(false),
            write_blocked: Cell::new(None),
            progress: Cell::new(None),
            lingering: Cell::new(None),
            hung_up: Cell::new(None),
            body_begun: Cell::new(None),
            oldest_request: Cell::new(None),
            check_requests: Cell::new(false),
            shrink: Cell::new(false),
            paused: Cell::new(false),
            close_reason: Cell::new(None),
            registered: Cell::new(0),
            events: RefCell::default(),
            waker: RefCell::default(),
        }
    }

    /// Sets the waker. Called when the connection's task waits.
    pub fn set_waker(&self, waker: &Waker) {
        let mut known = self.waker.borrow_mut();
        if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *known = Some(waker.clone());
        }
    }

    pub fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    /// Ends the connection. The first reason stays; only [`CloseReason::Drain`] may be replaced by
    /// another.
    pub fn close(&self, close_reason: CloseReason) {
        if matches!(self.close_reason.get(), None | Some(CloseReason::Drain)) {
            self.close_reason.set(Some(close_reason));
            self.wake();
        }
    }

    fn ask_for(&self, kind: u8) {
        assert!(kind < u8::BITS as u8, "a kind of events has a bit");
        self.registered.set(self.registered.get() | 1 << kind);
    }

    pub fn is_registered(&self) -> bool {
        self.registered.get() != 0
    }

    /// Gives the connection an event, if it has asked for its kind.
    pub fn notify(&self, event: &Arc<P::Event>) {
        if self.registered.get() & 1 << P::kind(event) == 0 {
            return;
        }
        let mut events = self.events.borrow_mut();
        if events.len() >= CONNECTION_EVENTS_MAX {
            self.close(CloseReason::TooManyEvents);
        } else {
            events.push_back(event.clone());
            self.wake();
        }
    }

    pub fn next_event(&self) -> Option<Arc<P::Event>> {
        self.events.borrow_mut().pop_front()
    }

    /// The socket has taken the whole out buffer, or as much as one turn may write.
    pub fn end_write_block(&self) {
        self.write_blocked.set(None);
        self.progress.set(None);
    }

    /// The socket has taken so many bytes of the out buffer, and takes no more now. `now` is asked
    /// for the time where it is needed.
    pub fn note_write_block(&self, taken: usize, now: impl FnOnce() -> Instant) {
        if taken > 0 || self.write_blocked.get().is_none() {
            self.write_blocked.set(Some(now()));
        }
        if let Some((since, before)) = self.progress.get() {
            self.progress.set(Some((since, before + taken as u64)));
        }
    }

    /// Whether the client takes its answers, and far too slowly.
    fn is_trickling(&self, now: Instant, limits: &ServerLimits) -> bool {
        if self.write_blocked.get().is_none() {
            return false;
        }
        let span = limits.write_timeout * SLOW_READER_TIMEOUTS;
        let least = u128::from(SLOW_READER_BYTES_PER_SECOND) * span.as_millis() / 1000;
        match self.progress.get() {
            Some((since, _)) if now.since(since) < span => false,
            Some((_, taken)) if u128::from(taken) < least => true,
            _ => {
                self.progress.set(Some((now, 0)));
                false
            }
        }
    }

    /// Looks at all timeouts.
    pub fn tick(&self, now: Instant, limits: &ServerLimits) {
        if self.has_written.take() {
            self.last_written.set(now);
        }
        let over = |since: Instant, limit| now.since(since) >= limit;
        if self.lingering.get().is_some_and(|since| over(since, LINGER)) {
            self.close(CloseReason::Lingering);
        } else if self.write_blocked.get().is_some_and(|since| over(since, limits.write_timeout)) {
            self.close(CloseReason::SlowReader);
        } else if self.is_trickling(now, limits) {
            self.close(CloseReason::TricklingReader);
        } else if self.hung_up.get().is_some_and(|since| over(since, HUNG_UP_PATIENCE))
            && self.oldest_request.get().is_some()
            && self.write_blocked.get().is_none()
        {
            self.close(CloseReason::HungUp);
        } else if self.body_begun.get().is_some_and(|since| {
            over(self.last_read.get(), limits.write_timeout) || over(since, limits.write_timeout * BODY_TIMEOUTS)
        }) {
            self.close(CloseReason::Stalled);
        } else if !self.ready.get() && over(self.opened, limits.startup_timeout) {
            self.close(CloseReason::StartupTimeout);
        }
        match self.oldest_request.get() {
            Some(oldest) if over(oldest, limits.request_timeout) => {
                self.check_requests.set(true);
                self.wake();
            }
            Some(_) => {}
            None => self.tick_idle(now, limits),
        }
    }

    fn tick_idle(&self, now: Instant, limits: &ServerLimits) {
        let silent = now.since(self.last_read.get());
        // of a client that takes nothing of its answers write_timeout decides
        let is_writing = self.write_blocked.get().is_some();
        let idle = silent.min(now.since(self.last_written.get()));
        if limits.idle_timeout.is_some_and(|limit| idle >= limit) && !is_writing {
            self.close(CloseReason::Idle);
        } else if silent >= SHRINK_AFTER && !self.shrink.get() {
            self.shrink.set(true);
            self.wake();
        }
    }
}

/// The handle by which a session reaches its connection.
pub struct Link<P: Protocol>(Rc<Control<P>>);

impl<P: Protocol> Link<P> {
    pub(crate) fn new(control: &Rc<Control<P>>) -> Self {
        Self(Rc::clone(control))
    }

    /// Called when the handshake is done: its timeout no longer counts.
    pub fn set_ready(&self) {
        self.0.ready.set(true);
    }

    /// Asks for events of this kind from now on.
    pub fn ask_for(&self, kind: u8) {
        self.0.ask_for(kind);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::protocol::Silent;

    /// A client sends a byte of a large body now and then, and would keep the room of the body.
    #[test]
    fn a_body_that_trickles_in_has_an_end() {
        let limits = ServerLimits { write_timeout: Duration::from_secs(1), ..ServerLimits::default() };
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let control = Control::<Silent>::new(at(0));
        control.ready.set(true);
        control.body_begun.set(Some(at(1)));
        let ends = (1..100).find(|seconds| {
            control.last_read.set(at(*seconds));
            control.tick(at(*seconds), &limits);
            control.close_reason.get().is_some()
        });
        assert_eq!(
            (ends, control.close_reason.get()),
            (Some(1 + u64::from(BODY_TIMEOUTS)), Some(CloseReason::Stalled))
        );
    }
}
