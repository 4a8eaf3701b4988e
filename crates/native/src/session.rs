//! One connection's side of the native protocol.
//!
//! Finds envelopes ([`crate::framing`]), decodes them, answers what belongs to the connection
//! itself ([`handshake`]), gives everything else to the handler, and encodes the answers.
//!
//! The methods that each request passes are `#[inline]`: they are small, and stand in another crate
//! than the connection that calls them.
//!
//! What must hold: before STARTUP each envelope is answered in its own version, afterwards all of
//! them in the version of STARTUP; a request goes to the handler only when the connection is ready.

use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Context;

use bytes::{Bytes, BytesMut};
use env::Instant;
use protocol::frame::{Header, encode_header_error, flags};
use protocol::response::Event;
use protocol::{
    Compression, DecodeError, ErrorMessage, ProtocolVersion, Request, RequestEnvelope, Response, ResponseEnvelope,
};
use transport::limits::OUT_LARGE;
use transport::{NextMessage, Opened, Output, Received, Refusal, ServerLimits, Service, Session};

use crate::authenticator::Authenticator;
use crate::details::{Native, Stage};
use crate::framing::{Framing, RequestSizes, UnusableFrame};
use crate::handler::{Handled, RequestHandler};
use crate::limits::{COMPRESSED_APART, UNKNOWN_FRAME_SIZE_MAX};
use crate::weight;

mod handshake;

use handshake::Login;

/// The state that the sessions of all workers share.
pub(crate) struct Shared {
    pub limits: ServerLimits,
    pub authenticator: Arc<dyn Authenticator>,
    /// The options of SUPPORTED.
    pub supported: Vec<(String, Vec<String>)>,
}

impl Shared {
    /// The sizes of the largest requests of a client that is known.
    pub fn sizes(&self) -> RequestSizes {
        RequestSizes { frame_max: self.limits.frame_size_max, message_max: self.limits.message_size_max }
    }
}

/// A worker's handler, and the state that its sessions share.
pub(crate) struct NativeService<H> {
    handler: Rc<H>,
    shared: Arc<Shared>,
}

impl<H> NativeService<H> {
    pub fn new(handler: H, shared: Arc<Shared>) -> Self {
        Self { handler: Rc::new(handler), shared }
    }
}

impl<H: RequestHandler> Service for NativeService<H> {
    type Protocol = Native;

    fn open(self: Rc<Self>, opened: Opened<Native>) -> impl Session<Protocol = Native> {
        let handler = self.handler.clone();
        let make = move |client, request, received| handler.clone().handle(client, request, received);
        NativeSession::new(self.handler.clone(), make, self.shared.clone(), opened)
    }
}

/// The session of a connection: see the head of this file. `M` makes the future of a request.
pub(crate) struct NativeSession<H: RequestHandler, M> {
    shared: Arc<Shared>,
    handler: Rc<H>,
    make: M,
    opened: Opened<Native>,
    framing: Framing,
    /// The compression of bodies in versions 3 and 4; None: they are not compressed.
    compression: Option<Compression>,
    /// The handler's state of the connection; None: the connection is not ready yet.
    client: Option<Rc<H::Client>>,
    /// The version of STARTUP; `None` before it.
    version: Option<ProtocolVersion>,
    throw_on_overload: bool,
    login: Login,
}

/// The stream and version in which a request is answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplyTarget {
    stream: i16,
    /// The version of the request, in which it is answered before STARTUP.
    version: ProtocolVersion,
}

impl<H: RequestHandler, M> NativeSession<H, M> {
    fn new(handler: Rc<H>, make: M, shared: Arc<Shared>, opened: Opened<Native>) -> Self {
        let sizes = shared.sizes().at_most(UNKNOWN_FRAME_SIZE_MAX);
        Self {
            shared,
            handler,
            make,
            opened,
            framing: Framing::new(sizes),
            compression: None,
            client: None,
            version: None,
            throw_on_overload: false,
            login: Login::default(),
        }
    }

    /// Appends a response on a connection whose version is known.
    #[inline]
    fn push(&mut self, response: &ResponseEnvelope, out: &mut Output) {
        let version = self.version.unwrap_or(ProtocolVersion::CURRENT);
        self.push_as(response, version, out);
    }

    /// Appends a response in this version. Pages of many rows are copied slice by slice; a page
    /// that is compressed has to be encoded at once, and stands apart.
    #[inline]
    fn push_as(&mut self, response: &ResponseEnvelope, version: ProtocolVersion, out: &mut Output) {
        let compression = self.compression;
        if compression.is_none() {
            let mut head = BytesMut::new();
            if let Some(rows) = response.encode_without_rows(&mut head, version, OUT_LARGE) {
                return out.append_in_slices(head, rows);
            }
        } else if response.response.size_hint() >= COMPRESSED_APART {
            let mut envelope = BytesMut::new();
            response.encode(&mut envelope, version, compression);
            return out.append_counted(envelope);
        }
        out.append(|buffer| response.encode(buffer, version, compression));
    }

    fn push_error(&mut self, to: ReplyTarget, error: ErrorMessage, out: &mut Output) {
        let version = self.version.unwrap_or(to.version);
        self.push_as(&ResponseEnvelope::new(to.stream, error), version, out);
    }

    #[inline]
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
        let compression = self.compression.ok_or(not_agreed)?;
        let limit = self.framing.body_size_max();
        RequestEnvelope::decode(header, &compression.decompress(body, limit)?)
    }

    /// Answers a request that cannot be decoded.
    fn refuse_broken(&mut self, header: &Header, error: &DecodeError, out: &mut Output) -> Received<RequestEnvelope> {
        self.push_error(reply_target(header), ErrorMessage::protocol(error.to_string()), out);
        // a client that has not begun has no other requests on the connection
        if error.is_fatal() || self.client.is_none() {
            tracing::debug!(peer = %self.opened.peer, %error, "connection closed: broken request");
            return Received::Broken;
        }
        Received::Refused
    }

    /// Answers an envelope that cannot be decoded, or may not be.
    #[cold]
    fn refuse_unusable(&mut self, unusable: &UnusableFrame, out: &mut Output) -> NextMessage<Header> {
        match unusable {
            UnusableFrame::TooLarge(header) => {
                let text = self.framing.too_large(header);
                self.push_error(reply_target(header), ErrorMessage::invalid(text), out);
                NextMessage::Refused
            }
            UnusableFrame::Broken(refused) => {
                let error = &refused.error;
                tracing::debug!(peer = %self.opened.peer, %error, "connection closed: broken frame");
                out.append(|buffer| encode_header_error(buffer, refused));
                NextMessage::Broken
            }
        }
    }
}

impl<H, M, F> Session for NativeSession<H, M>
where
    H: RequestHandler,
    M: Fn(Rc<H::Client>, RequestEnvelope, Instant) -> F + 'static,
    F: Future<Output = Handled<H::Last>> + 'static,
{
    type Protocol = Native;
    type Header = Header;
    type Id = ReplyTarget;
    type Request = RequestEnvelope;
    type Response = ResponseEnvelope;
    type Last = H::Last;
    type Running = F;

    #[inline]
    fn next(&mut self, buffer: &mut BytesMut, out: &mut Output) -> NextMessage<Header> {
        self.framing.next(buffer).unwrap_or_else(|unusable| self.refuse_unusable(&unusable, out))
    }

    #[inline]
    fn missing(&self, buffer: &BytesMut) -> usize {
        self.framing.missing(buffer)
    }

    #[inline]
    fn body_size(&self, header: &Header) -> usize {
        header.body_size as usize
    }

    fn admit(&mut self, header: &Header) {
        self.framing.admit(header);
    }

    fn discard_body(&mut self, header: &Header, buffer: &mut BytesMut) {
        self.framing.discard_body(header, buffer);
    }

    /// Bytes of a body once it is decompressed, as the body claims; a claim beyond the size that
    /// the decoder takes is not counted, because such a body is refused.
    #[inline]
    fn decoded_size(&self, header: &Header, body: &Bytes) -> usize {
        let is_compressed = header.flags & flags::COMPRESSED != 0 && !header.version.has_segments();
        let claimed = self.compression.filter(|_| is_compressed).map(|agreed| agreed.decompressed_size(body));
        let taken = claimed.filter(|size| *size <= self.framing.body_size_max());
        taken.map_or(body.len(), |size| size.max(body.len()))
    }

    #[inline]
    fn receive(&mut self, header: &Header, body: Bytes, out: &mut Output) -> Received<RequestEnvelope> {
        let envelope = match self.decode(header, &body) {
            Ok(envelope) => envelope,
            Err(error) => return self.refuse_broken(header, &error, out),
        };
        debug_assert_eq!(
            self.client.is_some(),
            self.opened.stats.stage() == Stage::Ready,
            "a connection has its client once it is ready"
        );
        match envelope.request {
            Request::Query(_) | Request::Prepare(_) | Request::Execute(_) | Request::Batch(_)
                if self.client.is_some() =>
            {
                Received::Request(envelope)
            }
            _ => self.handshake(envelope, out),
        }
    }

    #[inline]
    fn weight(&self, request: &RequestEnvelope, size: usize) -> usize {
        weight::of(&request.request, size)
    }

    #[inline]
    fn execute(&mut self, request: RequestEnvelope, received: Instant) -> F {
        let client = self.client.clone().expect("a request goes to the handler of a ready connection");
        (self.make)(client, request, received)
    }

    #[inline]
    fn id_of_header(&self, header: &Header) -> ReplyTarget {
        reply_target(header)
    }

    #[inline]
    fn id(&self, request: &RequestEnvelope) -> ReplyTarget {
        ReplyTarget { stream: request.stream, version: request.version }
    }

    #[inline]
    fn answer(&mut self, id: ReplyTarget, mut response: ResponseEnvelope, out: &mut Output) {
        response.stream = id.stream;
        self.push(&response, out);
    }

    fn refuse(&mut self, id: ReplyTarget, why: Refusal<'_>, out: &mut Output) {
        self.push_error(id, refusal(why), out);
    }

    fn tell(&mut self, event: &Event, out: &mut Output) {
        self.push(&ResponseEnvelope::new(-1, Response::Event(Box::new(event.clone()))), out);
    }

    #[inline]
    fn poll(&mut self, context: &mut Context<'_>, out: &mut Output) -> bool {
        self.poll_login(context, out)
    }

    #[inline]
    fn is_waiting(&self) -> bool {
        self.login.is_begun()
    }

    #[inline]
    fn throws_on_overload(&self) -> bool {
        self.throw_on_overload
    }
}

fn reply_target(header: &Header) -> ReplyTarget {
    ReplyTarget { stream: header.stream, version: header.version }
}

/// The error of a request that is not executed. OVERLOADED is what drivers try on another node, and
/// says that nothing was executed; the protocol has no error for a node that stops. Texts of
/// `Late`, `Overloaded` and `Draining` are Cassandra's.
fn refusal(why: Refusal<'_>) -> ErrorMessage {
    match why {
        Refusal::Panicked => ErrorMessage::server("Internal error: the request failed on a broken invariant"),
        Refusal::TimedOut(limit) => {
            ErrorMessage::overloaded(format!("Request did not finish within {} ms", limit.as_millis()))
        }
        Refusal::Late => ErrorMessage::overloaded("Query timed out before it could start"),
        Refusal::Overloaded { in_flight, limit } => ErrorMessage::overloaded(format!(
            "Request breached limit on bytes in flight. (Global: {in_flight}/{limit} bytes.) \
             Server is currently in an overloaded state and cannot accept more requests."
        )),
        Refusal::Draining => ErrorMessage::overloaded("Server is shutting down"),
        Refusal::TooMany(limit) => ErrorMessage::overloaded(limit.to_string()),
    }
}

impl<H: RequestHandler, M> Drop for NativeSession<H, M> {
    fn drop(&mut self) {
        if let Some(client) = &self.client {
            self.handler.disconnect(client);
        }
    }
}
