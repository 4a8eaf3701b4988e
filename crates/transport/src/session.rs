//! The interface of a protocol to its connections.
//!
//! [`Protocol`] names the types that its workers and connections share; [`Service`] is a worker's
//! part of the protocol and opens a [`Session`] for each connection. A session is bytes and values:
//! it finds messages in the read buffer, turns them into requests, makes the futures that execute
//! them, and appends their answers to [`Output`]. It never waits, and reads and writes no socket.
//!
//! Everything here is resolved when the program is compiled: no call through a table per message.

use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use env::Instant;

use crate::control::Link;
use crate::output::Output;
use crate::protocol::Protocol;
use crate::stats::{ConnectionStats, TooManyConnections};

/// A worker's part of a protocol. Made on the worker's thread: nothing in it needs to be `Send`.
pub trait Service: 'static {
    /// The protocol.
    type Protocol: Protocol;

    /// Called when a connection has been accepted and its TLS handshake is done; gives its
    /// session.
    fn open(self: Rc<Self>, opened: Opened<Self::Protocol>) -> impl Session<Protocol = Self::Protocol>;
}

/// A new connection, as its session gets it.
pub struct Opened<P: Protocol> {
    /// The address of the other side.
    pub peer: SocketAddr,
    /// The connection's entry in the registry.
    pub stats: Arc<ConnectionStats<P::Details>>,
    /// The handle by which the session reaches its connection.
    pub link: Link<P>,
}

/// The result of handling a request.
#[derive(Debug)]
pub enum Handled<R, L> {
    /// The request is answered.
    Answered(R),
    /// Only the last wait is left, which gives the answer and holds little memory: the request
    /// itself, and everything that was made of it, is gone. The last waits of one connection must
    /// end in the order in which they began, or nearly so: only the first of them is polled.
    Last(L),
}

/// The message, or the part of one, at the start of the read buffer.
#[derive(Debug)]
pub enum NextMessage<H> {
    /// Not enough bytes for anything: more have to be read.
    Nothing,
    /// The beginning of a message whose body has [`crate::limits::LARGE_BODY`] bytes or more. The
    /// connection has it read on ([`Session::admit`]) or thrown away ([`Session::discard_body`]).
    Large(H),
    /// A whole message. Its body may still have to be decompressed.
    Message(H, Bytes),
    /// A message that was refused, which the session has answered; the connection goes on.
    Refused,
    /// Bytes after which no message can be found any more. The session has answered as far as it
    /// can; the connection closes.
    Broken,
}

/// The meaning of a message.
#[derive(Debug)]
pub enum Received<R> {
    /// A request, to be executed.
    Request(R),
    /// Something that the session has answered itself.
    Answered,
    /// A message that breaks the protocol. The session has answered it; the connection goes on.
    Refused,
    /// A message that breaks the protocol so that the bytes behind it cannot be understood. The
    /// session has answered it; the connection closes when the answer is written.
    Broken,
}

/// Why a request is not executed, or not to its end.
#[derive(Clone, Copy, Debug)]
pub enum Refusal<'a> {
    /// The handler of the request panicked.
    Panicked,
    /// The request took longer than this.
    TimedOut(Duration),
    /// The request has waited for too long before it could be executed.
    Late,
    /// There are too many bytes in flight, and the client asked to be told so.
    Overloaded {
        /// Bytes in flight now.
        in_flight: usize,
        /// The limit.
        limit: usize,
    },
    /// The server stops, and this request came too late.
    Draining,
    /// The connection breaks a limit of connections.
    TooMany(&'a TooManyConnections),
}

/// One connection's side of a protocol.
///
/// The connection calls [`Session::next`] until the read buffer holds no whole message, and
/// [`Session::receive`] for each message. Answers may be given in any order.
pub trait Session: 'static {
    /// The protocol.
    type Protocol: Protocol;
    /// The part of a message before its body; it says how long the body is.
    type Header: Copy;
    /// The id by which the other side finds the request that an answer belongs to.
    type Id: Copy + Unpin;
    /// A request that is executed.
    type Request;
    /// Its answer.
    type Response;
    /// The last wait of a request: see [`Handled::Last`]. It ends by itself, in bounded time.
    type Last: Future<Output = Self::Response> + Unpin;
    /// A request being executed. It is polled once where it was decoded. Requests of one connection
    /// run side by side. Dropped when the connection closes or the request has no time left.
    type Running: Future<Output = Handled<Self::Response, Self::Last>>;

    /// Takes the message at the start of the read buffer.
    fn next(&mut self, buffer: &mut BytesMut, out: &mut Output) -> NextMessage<Self::Header>;

    /// Bytes that are missing of the message at the start of the buffer; 0: unknown, or none. A
    /// session must not say more than the limit of a message that it will take.
    fn missing(&self, buffer: &BytesMut) -> usize;

    /// Bytes of a message's body, as its header says.
    fn body_size(&self, header: &Self::Header) -> usize;

    /// Called when the large message that [`Session::next`] has found may be read.
    fn admit(&mut self, header: &Self::Header);

    /// Called when the large message that [`Session::next`] has found is to be thrown away as it
    /// comes.
    fn discard_body(&mut self, header: &Self::Header, buffer: &mut BytesMut);

    /// Bytes that a body takes once it is decompressed, as far as the session would take it.
    fn decoded_size(&self, header: &Self::Header, body: &Bytes) -> usize;

    /// Decodes a message. A message that is no request is answered here.
    fn receive(&mut self, header: &Self::Header, body: Bytes, out: &mut Output) -> Received<Self::Request>;

    /// Bytes for which a request of `size` decoded bytes counts while it waits, with everything
    /// that is made of it.
    fn weight(&self, request: &Self::Request, size: usize) -> usize;

    /// Begins to execute a request that was read at `received`.
    fn execute(&mut self, request: Self::Request, received: Instant) -> Self::Running;

    /// The id by which the answer of a message is found.
    fn id_of_header(&self, header: &Self::Header) -> Self::Id;

    /// The id by which the answer of a request is found.
    fn id(&self, request: &Self::Request) -> Self::Id;

    /// Appends the answer of a request.
    fn answer(&mut self, id: Self::Id, response: Self::Response, out: &mut Output);

    /// Appends the answer of a request that is not executed.
    fn refuse(&mut self, id: Self::Id, why: Refusal<'_>, out: &mut Output);

    /// Appends an event.
    fn tell(&mut self, event: &<Self::Protocol as Protocol>::Event, out: &mut Output);

    /// Goes on with a wait of the session itself, such as a login. `false`: the connection has to
    /// be closed when everything is written.
    fn poll(&mut self, context: &mut Context<'_>, out: &mut Output) -> bool;

    /// Whether the session itself waits for something. Nothing further is executed until that is
    /// done.
    fn is_waiting(&self) -> bool;

    /// Whether the client wants an error on overload instead of waiting.
    fn throws_on_overload(&self) -> bool;
}
