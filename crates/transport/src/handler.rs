//! What a worker hands a decoded request to.
//!
//! The connection layer answers OPTIONS, STARTUP, AUTH_RESPONSE and REGISTER itself; QUERY, PREPARE, EXECUTE and BATCH go to
//! the handler. One handler a worker, made on its thread: nothing in it needs to be `Send`.

use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use env::Instant;
use protocol::{ProtocolVersion, RequestEnvelope, ResponseEnvelope};

use crate::stats::ConnectionStats;

/// What is known of a connection when it becomes ready.
#[derive(Clone, Debug)]
pub struct ConnectionInfo {
    /// The client's address.
    pub peer: SocketAddr,
    /// The version of all further envelopes.
    pub version: ProtocolVersion,
    /// Who authenticated; `None` if nobody has to.
    pub user: Option<Arc<str>>,
    /// What `system_views.clients` shows; the handler keeps the keyspace in it up to date.
    pub stats: Arc<ConnectionStats>,
}

/// What became of a request.
#[derive(Debug)]
pub enum Handled<L> {
    /// It is answered.
    Answered(ResponseEnvelope),
    /// Only the last wait is left, which gives the answer and needs little: the request itself, and all that was made of it, is gone. Waits of
    /// one connection end in the order in which they began, or so nearly that nobody is kept long by the one before.
    Last(L),
}

/// Executes requests.
pub trait RequestHandler: 'static {
    /// What a connection needs to remember between requests: keyspace, user, version.
    type Client: 'static;

    /// See [`Handled::Last`]. Ends by itself, in bounded time.
    type Last: Future<Output = ResponseEnvelope> + Unpin + 'static;

    /// A connection is ready.
    fn connect(&self, info: ConnectionInfo) -> Rc<Self::Client>;

    /// A connection is gone; its requests in flight have been dropped.
    fn disconnect(&self, client: &Self::Client);

    /// Executes a request that was read at `received`. Polled once at once: what can be answered without waiting costs no
    /// task. Requests of one connection run side by side and may finish in any order. The future is dropped when the
    /// connection closes or the request times out. The response's stream is set by the caller.
    fn handle(
        self: Rc<Self>,
        client: Rc<Self::Client>,
        request: RequestEnvelope,
        received: Instant,
    ) -> impl Future<Output = Handled<Self::Last>> + 'static;
}
