//! A connection: one task that reads, decodes, executes and writes.
//!
//! Each turn of [`Connection::poll`] executes every request in the read buffer, collects what has
//! finished, and writes all responses with one call; then it reads again. A request is polled once
//! where it is decoded; one that waits is kept aside and answered when it finishes.
//!
//! A connection stops reading when too many requests or bytes are in flight or the client does not
//! take its responses, and so hands the pressure to TCP. A broken message is answered and ends this
//! connection, nothing else.
//!
//! Its parts: [`crate::input`] and [`crate::output`] are the buffers, [`crate::in_flight`] the
//! requests that wait, [`crate::control`] the wishes of the worker to the connection, and the
//! [`Session`] is the part that knows the protocol.
//!
//! What must hold: every byte that is charged to the bytes in flight is released once, at the
//! latest when the connection is dropped; the limits of one connection are looked at before each
//! request. Agrees with `CQLMessageHandler`, `PreV5Handlers` and `InitialConnectionHandler` as far
//! as the wire shows it.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use env::{Instant, Stream};
use stdx::ByteReservation;
use tokio::io::{AsyncReadExt, AsyncWrite};

use crate::control::{CloseReason, Control};
use crate::in_flight::{Finished, FirstPoll, InFlight, Outcome};
use crate::input::Input;
use crate::limits::{LARGE_BODY, LINGER_SIZE_MAX, READ_SIZE, TURN_LOOK_EVERY, TURN_MAX, TURN_READ_MAX, WAITING_SIZE};
use crate::output::{Flushed, Output};
use crate::protocol::Protocol;
use crate::session::{NextMessage, Received, Refusal, Session};
use crate::stats::{ConnectionStats, TooManyConnections};
use crate::worker_core::WorkerCore;

/// Where a connection comes from, and the worker that it belongs to.
pub(crate) struct Origin<P: Protocol> {
    pub core: Rc<WorkerCore<P>>,
    pub control: Rc<Control<P>>,
    pub stats: Arc<ConnectionStats<P::Details>>,
    pub peer: SocketAddr,
    /// The limit that this connection breaks: its first request is answered with that. None: it
    /// breaks none.
    pub refusal: Option<TooManyConnections>,
}

/// How a connection comes to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    No,
    /// The server stops: further requests are refused. Close when those in flight are answered and
    /// the socket has nothing more.
    Draining,
    /// No more requests are taken; close when those in flight are answered.
    AfterInFlight,
    /// Close when the out buffer is written and the client has read it.
    AfterFlush,
    /// Everything is written: the connection waits for the client to hang up.
    Lingering,
}

/// Why no further message was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopped {
    /// The read buffer holds no whole message.
    NeedInput,
    /// A limit is reached, or the connection closes.
    Limit,
    /// Other connections have waited long enough.
    Yielded,
}

/// Whether there is room for a large request.
enum Room {
    Taken,
    /// There is no room, and the client prefers an error to waiting.
    Refused,
    /// The connection waits for room.
    Awaited,
}

/// A message that waits for room.
enum Held<S: Session> {
    /// A request, and the bytes for which it counts. Its body keeps its room, if it has some.
    Request(Box<S::Request>, usize),
    /// A short body that claims to be long when it is decompressed.
    Compressed(S::Header, Bytes),
}

/// A connection: see the head of this file.
pub(crate) struct Connection<S: Session> {
    origin: Origin<S::Protocol>,
    stream: Box<dyn Stream>,
    input: Input,
    output: Output,
    in_flight: InFlight<S::Running, S::Last, S::Id>,
    /// Declared behind the requests in flight, so that these are dropped first.
    session: S,
    /// The room of a large request that is being read, waits to grow, or is executed; None: there
    /// is none.
    admitted: Option<ByteReservation>,
    /// A large request that waits for room; None: none does.
    held: Option<Held<S>>,
    closing: Closing,
    /// True: a request was refused because the server stops.
    has_refused: bool,
    /// Bytes read since the last response was written; at most [`LINGER_SIZE_MAX`].
    lingered: usize,
    /// Bytes read since other connections had their turn; at most [`TURN_READ_MAX`] and one read.
    read_in_turn: usize,
    /// When the last bytes were read.
    now: Instant,
    /// True: the content of the read buffer has waited for too long to be executed. Determined
    /// once in a turn.
    is_late: bool,
}

/// Serves a connection to its end.
pub(crate) async fn serve<S: Session>(origin: Origin<S::Protocol>, session: S, stream: Box<dyn Stream>) {
    let mut connection = Connection::new(origin, session, stream);
    std::future::poll_fn(|context| connection.poll(context)).await;
}

impl<S: Session> Connection<S> {
    fn new(origin: Origin<S::Protocol>, session: S, stream: Box<dyn Stream>) -> Self {
        let now = origin.control.opened;
        let output = Output::new(Arc::clone(&origin.core.shared.results));
        Self {
            origin,
            stream,
            input: Input::new(),
            output,
            in_flight: InFlight::new(),
            session,
            admitted: None,
            held: None,
            closing: Closing::No,
            has_refused: false,
            lingered: 0,
            read_in_turn: 0,
            now,
            is_late: false,
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.origin.control.set_waker(context.waker());
        self.read_in_turn = 0;
        if !self.follow_close_reason() {
            return Poll::Ready(());
        }
        loop {
            let stopped = self.execute_buffered(context);
            let is_all = self.collect(context);
            if self.flush(context).is_err() {
                return Poll::Ready(());
            }
            // a response that has finished and found no room wakes nobody again
            let has_room_again = !is_all && self.has_room();
            if stopped == Stopped::Yielded || has_room_again {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            match self.closing {
                Closing::No | Closing::Draining if stopped == Stopped::NeedInput => match self.poll_read(context) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(_)) => return Poll::Ready(()),
                    Poll::Pending if self.closing == Closing::Draining && self.is_done() => self.end_drain(),
                    Poll::Pending => return Poll::Pending,
                },
                Closing::No | Closing::Draining if self.may_execute() && !self.origin.control.paused.get() => {}
                Closing::No | Closing::Draining => return Poll::Pending,
                Closing::AfterInFlight if self.is_done() => return Poll::Ready(()),
                Closing::AfterInFlight => return Poll::Pending,
                Closing::AfterFlush if self.output.pending() == 0 => {
                    self.closing = Closing::Lingering;
                    self.origin.control.lingering.set(Some(self.origin.core.shared.env.now()));
                }
                Closing::AfterFlush => return Poll::Pending,
                Closing::Lingering => return self.poll_linger(context),
            }
        }
    }

    /// Follows the reason of the worker. `false`: close at once.
    fn follow_close_reason(&mut self) -> bool {
        match self.origin.control.close_reason.get() {
            None => true,
            Some(CloseReason::Drain) => {
                if self.closing == Closing::No {
                    self.closing = Closing::Draining;
                }
                true
            }
            Some(CloseReason::TricklingReader) => {
                let (peer, untaken) = (self.origin.peer, self.output.pending());
                tracing::warn!(%peer, untaken, "connection closed: its client takes answers far too slowly");
                false
            }
            Some(close_reason) => {
                tracing::debug!(peer = %self.origin.peer, verdict = ?close_reason, "connection closed");
                false
            }
        }
    }

    /// Called when everything is answered and the socket held nothing more. A client that was
    /// refused may still be sending; closing at once could reset the connection before it has read
    /// the refusal, so it is waited for.
    fn end_drain(&mut self) {
        self.closing = if self.has_refused { Closing::AfterFlush } else { Closing::AfterInFlight };
    }

    /// Whether the connection has only to be closed.
    fn is_done(&self) -> bool {
        self.in_flight.len() == 0 && !self.session.is_waiting() && self.output.pending() == 0
    }

    /// Whether another request may be executed now.
    fn may_execute(&self) -> bool {
        let limits = &self.origin.core.shared.limits;
        matches!(self.closing, Closing::No | Closing::Draining)
            && !self.session.is_waiting()
            && self.has_room()
            && !self.output.is_scarce()
            && self.in_flight.len() < limits.connection_requests_max
            && self.in_flight.bytes() < limits.connection_bytes_max
    }

    /// Executes requests in the read buffer, as far as limits and the turns of other connections
    /// allow.
    fn execute_buffered(&mut self, context: &mut Context<'_>) -> Stopped {
        let begun = self.origin.core.shared.env.now();
        self.is_late = begun.since(self.now) > self.origin.core.shared.limits.queue_timeout;
        let mut executed = 0_u32;
        loop {
            if executed.is_multiple_of(TURN_LOOK_EVERY)
                && executed > 0
                && self.origin.core.shared.env.elapsed(begun) > TURN_MAX
            {
                return Stopped::Yielded;
            }
            executed += 1;
            if !self.may_execute() || (self.admitted.is_none() && self.must_pause()) {
                return Stopped::Limit;
            }
            if let Some(held) = self.held.take() {
                match held {
                    Held::Request(request, weight) => self.execute_weighed(context, *request, weight),
                    Held::Compressed(header, body) => self.receive(context, header, body),
                }
                self.end_body();
                if self.held.is_some() {
                    return Stopped::Limit;
                }
                continue;
            }
            match self.session.next(&mut self.input.buffer, &mut self.output) {
                NextMessage::Nothing => return Stopped::NeedInput,
                NextMessage::Large(header) => {
                    if !self.admit(&header) {
                        return Stopped::Limit;
                    }
                }
                NextMessage::Message(header, body) => {
                    self.accept(context, header, body);
                    if self.held.is_some() {
                        return Stopped::Limit;
                    }
                }
                NextMessage::Refused => self.origin.core.stats.protocol_errors.add(1),
                NextMessage::Broken => self.close_broken(),
            }
        }
    }

    /// Whether to wait until other requests have finished.
    fn must_pause(&self) -> bool {
        let shared = &self.origin.core.shared;
        let is_over = if self.in_flight.len() == 0 { shared.is_full() } else { shared.is_overloaded() };
        let pause = !self.session.throws_on_overload() && is_over && self.closing != Closing::Draining;
        if pause != self.origin.control.paused.get() {
            self.origin.control.paused.set(pause);
        }
        pause
    }

    fn accept(&mut self, context: &mut Context<'_>, header: S::Header, body: Bytes) {
        self.origin.stats.requests.add(1);
        self.origin.core.stats.requests.add(1);
        if let Some(refusal) = self.origin.refusal.take() {
            self.refuse(self.session.id_of_header(&header), Refusal::TooMany(&refusal));
            self.closing = Closing::AfterFlush;
            return;
        }
        if self.closing == Closing::Draining {
            self.refuse_for_drain(&header);
        } else {
            self.receive(context, header, body);
        }
        self.end_body();
    }

    fn receive(&mut self, context: &mut Context<'_>, header: S::Header, body: Bytes) {
        let size = self.session.decoded_size(&header, &body);
        if size > body.len() && size >= LARGE_BODY {
            match self.room_of(size) {
                Room::Taken => {}
                Room::Refused => return self.refuse_overload(self.session.id_of_header(&header)),
                Room::Awaited => {
                    self.held = Some(Held::Compressed(header, body));
                    return;
                }
            }
        }
        match self.session.receive(&header, body, &mut self.output) {
            Received::Request(request) => self.execute(context, request, size),
            Received::Answered => {}
            Received::Refused => self.origin.core.stats.protocol_errors.add(1),
            Received::Broken => self.close_broken(),
        }
    }

    fn close_broken(&mut self) {
        self.origin.core.stats.protocol_errors.add(1);
        self.closing = Closing::AfterFlush;
    }

    /// Looks for room for a request that takes so many bytes before it is executed.
    fn room_of(&mut self, bytes: usize) -> Room {
        let shared = &self.origin.core.shared;
        match &mut self.admitted {
            Some(taken) => taken.set(bytes),
            None if !shared.has_many_large() => self.admitted = Some(shared.large_bodies.take(bytes)),
            None => return self.no_room(),
        }
        Room::Taken
    }

    /// Looks for room for a request that takes so many bytes while it is executed. If its body has
    /// room among large bodies, the room is moved to that of grown requests. Many bodies that have
    /// room together may be far more than the limit when all have grown, such as batches of many
    /// texts.
    fn room_to_execute(&mut self, bytes: usize) -> Room {
        match &mut self.admitted {
            None => return self.room_of(bytes),
            Some(taken) if bytes <= taken.bytes() => taken.set(bytes),
            Some(taken) => match self.origin.core.shared.grown.take_if_any(bytes) {
                Some(grown) => *taken = grown,
                None => return self.no_room(),
            },
        }
        Room::Taken
    }

    fn no_room(&self) -> Room {
        if self.session.throws_on_overload() {
            return Room::Refused;
        }
        self.origin.control.paused.set(true);
        Room::Awaited
    }

    /// Called when the body that was read is executed, or is held back and keeps its room.
    fn end_body(&mut self) {
        self.origin.control.body_begun.set(None);
        if self.held.is_none() && self.admitted.take().is_some() {
            self.origin.core.wake_paused();
        }
    }

    /// Counts a large body before it is read. `false`: it waits for room.
    fn admit(&mut self, header: &S::Header) -> bool {
        if self.closing == Closing::Draining {
            self.session.discard_body(header, &mut self.input.buffer);
            self.refuse_for_drain(header);
            return true;
        }
        let shared = &self.origin.core.shared;
        if shared.has_many_large() {
            if self.session.throws_on_overload() {
                self.session.discard_body(header, &mut self.input.buffer);
                self.refuse_overload(self.session.id_of_header(header));
                return true;
            }
            self.origin.control.paused.set(true);
            return false;
        }
        assert!(self.admitted.is_none(), "one large body is read at a time");
        self.admitted = Some(shared.large_bodies.take(self.session.body_size(header)));
        // not the time of the last read: the wait for room is not the client's
        self.origin.control.body_begun.set(Some(shared.env.now()));
        self.session.admit(header);
        true
    }

    fn refuse(&mut self, id: S::Id, why: Refusal<'_>) {
        self.session.refuse(id, why, &mut self.output);
    }

    fn refuse_for_drain(&mut self, header: &S::Header) {
        self.has_refused = true;
        self.refuse(self.session.id_of_header(header), Refusal::Draining);
    }

    fn refuse_overload(&mut self, id: S::Id) {
        self.origin.core.stats.overloaded.add(1);
        let shared = &self.origin.core.shared;
        let why = Refusal::Overloaded { in_flight: shared.bytes_in_flight(), limit: shared.limits.total_bytes_max };
        self.refuse(id, why);
    }

    fn execute(&mut self, context: &mut Context<'_>, request: S::Request, size: usize) {
        let weight = self.session.weight(&request, size);
        self.execute_weighed(context, request, weight);
    }

    fn execute_weighed(&mut self, context: &mut Context<'_>, request: S::Request, weight: usize) {
        let id = self.session.id(&request);
        if self.is_late {
            self.origin.core.stats.timed_out.add(1);
            return self.refuse(id, Refusal::Late);
        }
        if self.session.throws_on_overload() && self.origin.core.shared.is_overloaded() {
            return self.refuse_overload(id);
        }
        if weight >= LARGE_BODY {
            match self.room_to_execute(weight) {
                Room::Taken => {}
                Room::Refused => return self.refuse_overload(id),
                Room::Awaited => {
                    self.held = Some(Held::Request(Box::new(request), weight));
                    return;
                }
            }
        }
        assert!(
            self.in_flight.len() < self.origin.core.shared.limits.connection_requests_max,
            "a connection has no more requests in flight than its limit"
        );
        let size = WAITING_SIZE + size_of::<S::Running>() + if self.admitted.is_some() { 0 } else { weight };
        let future = self.session.execute(request, self.now);
        match self.in_flight.start(context, future, id, size, &mut self.admitted, self.now) {
            FirstPoll::Ended(outcome) => self.answer(id, outcome),
            FirstPoll::Waits(size) => {
                self.origin.core.shared.charge(size);
                self.origin.core.stats.waited.add(1);
                if self.origin.control.oldest_request.get().is_none() {
                    self.origin.control.oldest_request.set(Some(self.now));
                }
            }
        }
    }

    fn has_room(&self) -> bool {
        self.output.pending() < self.origin.core.shared.limits.out_size_max
    }

    /// Appends the responses of requests that have finished, and events. `false`: there was no
    /// room for all of them.
    fn collect(&mut self, context: &mut Context<'_>) -> bool {
        if !self.session.poll(context, &mut self.output) && self.closing != Closing::Lingering {
            self.closing = Closing::AfterFlush;
        }
        if self.origin.control.check_requests.take() {
            self.expire_requests();
        }
        let mut freed = 0;
        while self.has_room() {
            let Poll::Ready(Finished { id, size, room, outcome }) = self.in_flight.poll_finished(context) else {
                break;
            };
            freed += size;
            if room.is_some() {
                drop(room);
                self.origin.core.wake_paused();
            }
            self.answer(id, outcome);
        }
        if freed > 0 {
            self.origin.core.release(freed);
        }
        if self.in_flight.len() == 0 && self.origin.control.oldest_request.get().is_some() {
            self.origin.control.oldest_request.set(None);
        }
        while self.has_room() {
            let Some(event) = self.origin.control.next_event() else {
                break;
            };
            self.session.tell(&event, &mut self.output);
        }
        self.has_room()
    }

    /// Ends the requests whose time is over, and notes when the oldest other one started.
    fn expire_requests(&mut self) {
        let shared = &self.origin.core.shared;
        let timeout = shared.limits.request_timeout.as_nanos() as u64;
        let limit = Instant::from_nanos(shared.env.now().as_nanos().saturating_sub(timeout));
        self.origin.control.oldest_request.set(self.in_flight.expire(limit));
    }

    fn answer(&mut self, id: S::Id, outcome: Outcome<S::Response>) {
        match outcome {
            Outcome::Done(response) => self.session.answer(id, response, &mut self.output),
            Outcome::Panicked => {
                self.origin.core.stats.panics.add(1);
                tracing::error!(peer = %self.origin.peer, "a request panicked");
                self.refuse(id, Refusal::Panicked);
            }
            Outcome::TimedOut => {
                self.origin.core.stats.timed_out.add(1);
                self.refuse(id, Refusal::TimedOut(self.origin.core.shared.limits.request_timeout));
            }
        }
    }

    fn flush(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if self.output.pending() == 0 {
            return Ok(());
        }
        let core = &self.origin.core;
        let flushed = self.output.poll_flush(context, &mut *self.stream, &core.stats)?;
        let control = &self.origin.control;
        if !matches!(flushed, Flushed::Blocked(0)) {
            control.has_written.set(true);
        }
        match flushed {
            Flushed::All | Flushed::Yielded => control.end_write_block(),
            Flushed::Blocked(taken) => control.note_write_block(taken, || core.shared.env.now()),
        }
        Ok(())
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.read_in_turn >= TURN_READ_MAX {
            // a large body that comes as fast as it is read: others first
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let idle = self.origin.control.shrink.get();
        if idle {
            self.input.shrink();
            self.output.shrink();
        }
        self.input.reserve(idle, self.session.missing(&self.input.buffer));
        let read = pin!(self.stream.read_buf(&mut self.input.buffer)).poll(context);
        let Poll::Ready(result) = read else {
            return Poll::Pending;
        };
        let size = result?;
        if size == 0 {
            self.closing = Closing::AfterInFlight;
            self.origin.control.hung_up.set(Some(self.origin.core.shared.env.now()));
            return Poll::Ready(Ok(()));
        }
        self.input.has_read();
        self.read_in_turn += size;
        let core = &self.origin.core;
        core.stats.reads.add(1);
        core.stats.bytes_read.add(size as u64);
        self.now = core.shared.env.now();
        self.origin.control.last_read.set(self.now);
        self.origin.control.shrink.set(false);
        Poll::Ready(Ok(()))
    }

    /// Reads further bytes and drops them, so that closing with unread bytes does not reset the
    /// connection before the client has read the last response.
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if Pin::new(&mut self.stream).poll_shutdown(context).is_pending() {
            return Poll::Pending;
        }
        while self.lingered < LINGER_SIZE_MAX {
            self.input.buffer.clear();
            self.input.buffer.reserve(READ_SIZE);
            match pin!(self.stream.read_buf(&mut self.input.buffer)).poll(context) {
                Poll::Ready(Ok(size)) if size > 0 => self.lingered += size,
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(())
    }
}

impl<S: Session> Drop for Connection<S> {
    fn drop(&mut self) {
        if self.in_flight.bytes() > 0 {
            self.origin.core.release(self.in_flight.bytes());
        }
    }
}
