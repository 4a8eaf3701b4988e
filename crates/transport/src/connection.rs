//! A connection: one task that reads, decodes, executes and writes.
//!
//! Each turn of [`Connection::poll`] executes every request in the read buffer, collects what has finished, and writes all
//! responses with one call; then it reads again. Requests are polled once where they are decoded; those that wait are kept aside and answered in the
//! order in which they finish.
//!
//! It stops reading when too many requests or bytes are in flight or the client does not take its responses, and so hands the
//! pressure to TCP. A broken frame is answered and ends this connection, nothing else.
//!
//! Its parts: [`input`] and [`output`] are the buffers with their framing, [`in_flight`] the requests that wait, [`handshake`]
//! the requests answered here, [`control`] what the worker wants of it.
//! Agrees with `CQLMessageHandler`, `PreV5Handlers` and `InitialConnectionHandler` as far as the wire shows it.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use env::{Instant, Stream};
use protocol::frame::{Header, HeaderError, encode_header_error, flags};
use protocol::{DecodeError, ErrorMessage, ProtocolVersion, Request, RequestEnvelope, Response, ResponseEnvelope};
use stdx::Taken;
use tokio::io::{AsyncReadExt, AsyncWrite};

use crate::authenticator::AuthOutcome;
use crate::handler::{Handled, RequestHandler};
use crate::limits::{
    LARGE_BODY, LINGER_SIZE_MAX, PARSED_MAX, PARSED_TIMES, ServerLimits, TURN_LOOK_EVERY, TURN_MAX, TURN_READ_MAX,
    UNKNOWN_FRAME_SIZE_MAX, VALUE_TIMES, WAITING_SIZE,
};
use crate::stats::{ConnectionStats, Stage};
use crate::worker::WorkerCore;

pub(crate) mod control;
mod handshake;
mod in_flight;
mod input;
mod output;

use control::{Control, Verdict};
use in_flight::{Finished, InFlight, Outcome, Started};
use input::{Found, Input, Sizes};
use output::{Flushed, Output};

/// Where a connection comes from and belongs.
pub(crate) struct Origin {
    pub core: Rc<WorkerCore>,
    pub control: Rc<Control>,
    pub stats: Arc<ConnectionStats>,
    pub peer: SocketAddr,
    /// Over a limit: the answer to whatever it asks first.
    pub refusal: Option<ErrorMessage>,
}

/// How a connection comes to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    No,
    /// The server goes: requests that still come are answered that it does. Close when those in
    /// flight are answered and the socket has nothing more.
    Draining,
    /// No more requests; close when those in flight are answered.
    AfterInFlight,
    /// Close when the out buffer is written, and not before the client has read it.
    AfterFlush,
    /// Everything is written: wait for the client to hang up.
    Lingering,
}

/// Why no further envelope was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopped {
    /// The read buffer holds no whole one.
    NeedInput,
    /// A limit is reached, or the connection closes.
    Limit,
    /// Other connections have waited long enough.
    Yielded,
}

/// Whether there is room for a large request.
enum Room {
    Taken,
    /// Its client would rather hear that there is none.
    Refused,
    /// The connection waits.
    Awaited,
}

/// What waits for room.
enum Held {
    /// A request, and the size of its body.
    Request(Box<RequestEnvelope>, usize),
    /// A body that is short and says that it is long when it is decompressed.
    Compressed(Header, Bytes),
}

type AuthFuture = Pin<Box<dyn Future<Output = AuthOutcome>>>;

/// See the module. `M` makes the future `F` of a request.
pub(crate) struct Connection<H: RequestHandler, M, F> {
    origin: Origin,
    handler: Rc<H>,
    make: M,
    stream: Box<dyn Stream>,
    input: Input,
    output: Output,
    in_flight: InFlight<F, H::Last>,
    /// The room of a large request that is being read or executed.
    admitted: Option<Taken>,
    /// A large request that waits for room.
    held: Option<Held>,
    client: Option<Rc<H::Client>>,
    /// Of STARTUP; before it each envelope is answered in its own.
    version: Option<ProtocolVersion>,
    throw_on_overload: bool,
    auth: Option<(i16, AuthFuture)>,
    failed_logins: u32,
    closing: Closing,
    /// A request was refused because the server goes.
    has_refused: bool,
    lingered: usize,
    /// Bytes since others had their turn.
    read_in_turn: usize,
    /// When the last batch was read.
    now: Instant,
}

/// Serves a connection to its end.
pub(crate) async fn serve<H: RequestHandler>(origin: Origin, handler: Rc<H>, stream: Box<dyn Stream>) {
    let to_make = handler.clone();
    let make = move |client, request, received| to_make.clone().handle(client, request, received);
    let mut connection = Connection::new(origin, handler, make, stream);
    std::future::poll_fn(|context| connection.poll(context)).await;
}

impl<H, M, F> Connection<H, M, F>
where
    H: RequestHandler,
    M: Fn(Rc<H::Client>, RequestEnvelope, Instant) -> F,
    F: Future<Output = Handled<H::Last>>,
{
    fn new(origin: Origin, handler: Rc<H>, make: M, stream: Box<dyn Stream>) -> Self {
        let shared = &origin.core.shared;
        let known = shared.authenticator.class_name().is_none();
        let sizes = sizes(&shared.limits);
        let sizes = if known { sizes } else { sizes.at_most(UNKNOWN_FRAME_SIZE_MAX) };
        let now = origin.control.opened;
        let output = Output::new(Arc::clone(&shared.results));
        Self {
            origin,
            handler,
            make,
            stream,
            input: Input::new(sizes),
            output,
            in_flight: InFlight::new(),
            admitted: None,
            held: None,
            client: None,
            version: None,
            throw_on_overload: false,
            auth: None,
            failed_logins: 0,
            closing: Closing::No,
            has_refused: false,
            lingered: 0,
            read_in_turn: 0,
            now,
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.origin.control.set_waker(context.waker());
        self.read_in_turn = 0;
        if !self.obey_verdict() {
            return Poll::Ready(());
        }
        loop {
            let stopped = self.execute_buffered(context);
            let is_all = self.collect(context);
            if self.flush(context).is_err() {
                return Poll::Ready(());
            }
            // what has finished and found no room wakes nobody again
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

    /// `false`: close at once.
    fn obey_verdict(&mut self) -> bool {
        match self.origin.control.verdict.get() {
            None => true,
            Some(Verdict::Drain) => {
                if self.closing == Closing::No {
                    self.closing = Closing::Draining;
                }
                true
            }
            Some(verdict) => {
                tracing::debug!(peer = %self.origin.peer, ?verdict, "connection closed");
                false
            }
        }
    }

    /// Everything is answered, and the socket held nothing more. Who was refused may be sending
    /// still: closing at once could reset the connection under the refusal, so that client is
    /// waited for.
    fn end_drain(&mut self) {
        self.closing = if self.has_refused { Closing::AfterFlush } else { Closing::AfterInFlight };
    }

    /// Whether nothing is left to do but to close.
    fn is_done(&self) -> bool {
        self.in_flight.len() == 0 && self.auth.is_none() && self.output.pending() == 0
    }

    /// Whether another request may be executed now.
    fn may_execute(&self) -> bool {
        let limits = &self.origin.core.shared.limits;
        matches!(self.closing, Closing::No | Closing::Draining)
            && self.auth.is_none()
            && self.has_room()
            && !self.output.is_scarce()
            && self.in_flight.len() < limits.connection_requests_max
            && self.in_flight.bytes() < limits.connection_bytes_max
    }

    /// Executes what lies in the read buffer, as far as limits and the patience of other connections allow.
    fn execute_buffered(&mut self, context: &mut Context<'_>) -> Stopped {
        let begun = self.origin.core.shared.env.now();
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
                    Held::Request(envelope, size) => self.execute(context, *envelope, size),
                    Held::Compressed(header, body) => self.decode_and_execute(context, &header, body),
                }
                self.end_body();
                if self.held.is_some() {
                    return Stopped::Limit;
                }
                continue;
            }
            match self.input.next() {
                Found::Nothing => return Stopped::NeedInput,
                Found::Large(header) => {
                    if !self.admit(&header) {
                        return Stopped::Limit;
                    }
                }
                Found::Envelope(header, body) => {
                    self.accept(context, &header, body);
                    if self.held.is_some() {
                        return Stopped::Limit;
                    }
                }
                Found::TooLarge(header) => self.refuse_too_large(&header),
                Found::Broken(error) => self.refuse_header(&error),
            }
        }
    }

    /// Whether to wait until other requests have finished.
    fn must_pause(&self) -> bool {
        let shared = &self.origin.core.shared;
        let is_over = if self.in_flight.len() == 0 { shared.is_full() } else { shared.is_overloaded() };
        let pause = !self.throw_on_overload && is_over && self.closing != Closing::Draining;
        if pause != self.origin.control.paused.get() {
            self.origin.control.paused.set(pause);
        }
        pause
    }

    fn accept(&mut self, context: &mut Context<'_>, header: &Header, body: Bytes) {
        self.origin.stats.requests.add(1);
        self.origin.core.stats.requests.add(1);
        if let Some(refusal) = self.origin.refusal.take() {
            self.push_error(header.stream, header.version, refusal);
            self.closing = Closing::AfterFlush;
            return;
        }
        if self.closing == Closing::Draining {
            self.refuse_for_drain(header);
        } else {
            self.decode_and_execute(context, header, body);
        }
        self.end_body();
    }

    fn decode_and_execute(&mut self, context: &mut Context<'_>, header: &Header, body: Bytes) {
        let size = self.size_of(header, &body);
        if size > body.len() && size >= LARGE_BODY && size <= self.input.body_size_max() {
            match self.room_of(size) {
                Room::Taken => {}
                Room::Refused => return self.refuse_overload(header.stream, header.version),
                Room::Awaited => {
                    self.held = Some(Held::Compressed(*header, body));
                    return;
                }
            }
        }
        match self.decode(header, &body) {
            Ok(envelope) => {
                drop(body);
                self.execute(context, envelope, size);
            }
            Err(error) => self.refuse(header, &error),
        }
    }

    /// Bytes of a body, decompressed; what it claims is believed as far as the decoder will.
    fn size_of(&self, header: &Header, body: &Bytes) -> usize {
        let is_compressed = header.flags & flags::COMPRESSED != 0 && !header.version.has_segments();
        let compression = self.output.compression().filter(|_| is_compressed);
        compression.map_or(body.len(), |compression| compression.decompressed_size(body).max(body.len()))
    }

    /// Room for a request that takes so many bytes.
    fn room_of(&mut self, bytes: usize) -> Room {
        let large = &self.origin.core.shared.large_bodies;
        match &mut self.admitted {
            Some(taken) => taken.set(bytes),
            None if !large.is_used_up() => self.admitted = Some(large.take(bytes)),
            None if self.throw_on_overload => return Room::Refused,
            None => {
                self.origin.control.paused.set(true);
                return Room::Awaited;
            }
        }
        Room::Taken
    }

    /// What was read is executed, waits with its room, or is held back.
    fn end_body(&mut self) {
        self.origin.control.body_begun.set(false);
        if self.admitted.take().is_some() {
            self.origin.core.wake_paused();
        }
    }

    /// A large body is on its way: it is counted before it is read. `false`: it waits for room.
    fn admit(&mut self, header: &Header) -> bool {
        if self.closing == Closing::Draining {
            self.input.refuse(header);
            self.refuse_for_drain(header);
            return true;
        }
        let large = &self.origin.core.shared.large_bodies;
        if large.is_used_up() {
            if self.throw_on_overload {
                self.input.refuse(header);
                self.refuse_overload(header.stream, header.version);
                return true;
            }
            self.origin.control.paused.set(true);
            return false;
        }
        self.admitted = Some(large.take(header.body_size as usize));
        self.origin.control.body_begun.set(true);
        self.input.admit(header);
        true
    }

    /// OVERLOADED is what drivers try on another node, and it says that nothing was executed; the
    /// protocol has no word for a node that goes. The text is Cassandra's.
    fn refuse_for_drain(&mut self, header: &Header) {
        self.has_refused = true;
        self.push_error(header.stream, header.version, ErrorMessage::overloaded("Server is shutting down"));
    }

    fn refuse_overload(&mut self, stream: i16, version: ProtocolVersion) {
        let shared = &self.origin.core.shared;
        self.origin.core.stats.overloaded.add(1);
        let limit = shared.limits.total_bytes_max;
        let text = format!(
            "Request breached limit on bytes in flight. (Global: {}/{limit} bytes.) \
             Server is currently in an overloaded state and cannot accept more requests.",
            shared.bytes_in_flight.load(Ordering::Relaxed)
        );
        self.push_error(stream, version, ErrorMessage::overloaded(text));
    }

    fn decode(&self, header: &Header, body: &Bytes) -> Result<RequestEnvelope, DecodeError> {
        if let Some(version) = self.version.filter(|version| *version != header.version) {
            let got = header.version;
            return Err(DecodeError::Version(format!(
                "Invalid message version. Got {got} but previous messages on this connection had version {version}"
            )));
        }
        if header.flags & flags::COMPRESSED == 0 || header.version.has_segments() {
            return RequestEnvelope::decode(header, body);
        }
        let not_agreed = DecodeError::Compression("Compressed frame without a compression agreed on in STARTUP");
        let compression = self.output.compression().ok_or(not_agreed)?;
        let limit = self.input.body_size_max();
        RequestEnvelope::decode(header, &compression.decompress(body, limit)?)
    }

    fn execute(&mut self, context: &mut Context<'_>, envelope: RequestEnvelope, size: usize) {
        let (stream, version) = (envelope.stream, envelope.version);
        let client = match (&self.client, &envelope.request) {
            (Some(client), Request::Query(_) | Request::Prepare(_) | Request::Execute(_) | Request::Batch(_)) => {
                Rc::clone(client)
            }
            _ => return self.handshake(envelope),
        };
        if self.throw_on_overload && self.origin.core.shared.is_overloaded() {
            return self.refuse_overload(stream, version);
        }
        let weight = weight(&envelope.request, size);
        if weight >= LARGE_BODY {
            match self.room_of(weight) {
                Room::Taken => {}
                Room::Refused => return self.refuse_overload(stream, version),
                Room::Awaited => {
                    self.held = Some(Held::Request(Box::new(envelope), size));
                    return;
                }
            }
        }
        let size = WAITING_SIZE + size_of::<F>() + if self.admitted.is_some() { 0 } else { weight };
        let future = (self.make)(client, envelope, self.now);
        match self.in_flight.start(context, future, stream, size, &mut self.admitted, self.now) {
            Started::Ended(outcome) => self.push_outcome(stream, outcome),
            Started::Waits(size) => {
                self.origin.core.shared.bytes_in_flight.fetch_add(size, Ordering::Relaxed);
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

    /// Appends the responses of what has finished, and events. `false`: there was no room for all of them.
    fn collect(&mut self, context: &mut Context<'_>) -> bool {
        self.collect_auth(context);
        if self.origin.control.check_requests.take() {
            let env = &self.origin.core.shared.env;
            let timeout = self.origin.core.shared.limits.request_timeout;
            let now = env.now();
            let limit = Instant::from_nanos(now.as_nanos().saturating_sub(timeout.as_nanos() as u64));
            self.origin.control.oldest_request.set(self.in_flight.expire(limit));
        }
        let mut freed = 0;
        while self.has_room() {
            let Poll::Ready(Finished { stream, size, room, outcome }) = self.in_flight.poll_finished(context) else {
                break;
            };
            freed += size;
            if room.is_some() {
                drop(room);
                self.origin.core.wake_paused();
            }
            self.push_outcome(stream, outcome);
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
            let response = Response::Event(Box::new((*event).clone()));
            self.push(&ResponseEnvelope::new(-1, response));
        }
        self.has_room()
    }

    fn push_outcome(&mut self, stream: i16, outcome: Outcome) {
        match outcome {
            Outcome::Done(mut response) => {
                response.stream = stream;
                self.push(&response);
            }
            Outcome::Panicked => {
                self.origin.core.stats.panics.add(1);
                tracing::error!(peer = %self.origin.peer, stream, "a request panicked");
                let error = ErrorMessage::server("Internal error: the request failed on a broken invariant");
                self.push(&ResponseEnvelope::new(stream, error));
            }
            Outcome::TimedOut => {
                self.origin.core.stats.timed_out.add(1);
                let limit = self.origin.core.shared.limits.request_timeout.as_millis();
                let error = ErrorMessage::overloaded(format!("Request did not finish within {limit} ms"));
                self.push(&ResponseEnvelope::new(stream, error));
            }
        }
    }

    /// Appends a response on a connection whose version is known.
    fn push(&mut self, response: &ResponseEnvelope) {
        let version = self.version.unwrap_or(ProtocolVersion::CURRENT);
        self.output.push(response, version);
    }

    fn push_error(&mut self, stream: i16, version: ProtocolVersion, error: ErrorMessage) {
        self.output.push(&ResponseEnvelope::new(stream, error), self.version.unwrap_or(version));
    }

    /// The request cannot be decoded: answered, and the end of the connection if nothing after it can be trusted.
    fn refuse(&mut self, header: &Header, error: &DecodeError) {
        self.origin.core.stats.protocol_errors.add(1);
        self.push_error(header.stream, header.version, ErrorMessage::protocol(error.to_string()));
        if error.is_fatal() {
            tracing::debug!(peer = %self.origin.peer, %error, "connection closed: broken request");
            self.closing = Closing::AfterFlush;
        }
    }

    fn refuse_too_large(&mut self, header: &Header) {
        self.origin.core.stats.protocol_errors.add(1);
        let text = self.input.too_large(header);
        self.push_error(header.stream, header.version, ErrorMessage::invalid(text));
    }

    fn refuse_header(&mut self, refused: &HeaderError) {
        self.origin.core.stats.protocol_errors.add(1);
        tracing::debug!(peer = %self.origin.peer, error = %refused.error, "connection closed: broken frame");
        let mut envelope = BytesMut::new();
        encode_header_error(&mut envelope, refused);
        self.output.push_encoded(&envelope);
        self.closing = Closing::AfterFlush;
    }

    fn flush(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if self.output.pending() == 0 {
            return Ok(());
        }
        let core = &self.origin.core;
        let flushed = self.output.poll_flush(context, &mut *self.stream, &core.stats)?;
        let blocked = &self.origin.control.write_blocked;
        match flushed {
            Flushed::All | Flushed::Yielded => blocked.set(None),
            Flushed::Blocked(taken) => {
                if taken > 0 || blocked.get().is_none() {
                    blocked.set(Some(core.shared.env.now()));
                }
            }
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
        self.input.reserve(idle);
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

    /// Reads on without looking, so that closing with unread bytes does not reset the connection under the last response.
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if Pin::new(&mut self.stream).poll_shutdown(context).is_pending() {
            return Poll::Pending;
        }
        while self.lingered < LINGER_SIZE_MAX {
            self.input.buffer.clear();
            self.input.buffer.reserve(crate::limits::READ_SIZE);
            match pin!(self.stream.read_buf(&mut self.input.buffer)).poll(context) {
                Poll::Ready(Ok(size)) if size > 0 => self.lingered += size,
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(())
    }

    fn stage(&self) -> Stage {
        self.origin.stats.stage()
    }
}

fn sizes(limits: &ServerLimits) -> Sizes {
    Sizes { frame_max: limits.frame_size_max, message_max: limits.message_size_max }
}

/// What a request takes with a body of so many bytes, once its texts are parsed and its values are on their way.
fn weight(request: &Request, size: usize) -> usize {
    let parsed = match request {
        Request::Query(_) | Request::Prepare(_) => (size * PARSED_TIMES).min(PARSED_MAX),
        _ => 0,
    };
    if size >= LARGE_BODY { size * VALUE_TIMES + parsed } else { size + parsed }
}

impl<H: RequestHandler, M, F> Drop for Connection<H, M, F> {
    fn drop(&mut self) {
        if self.in_flight.bytes() > 0 {
            self.origin.core.release(self.in_flight.bytes());
        }
        if let Some(client) = &self.client {
            self.handler.disconnect(client);
        }
    }
}
