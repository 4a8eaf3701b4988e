//! The handler: a worker hands it each decoded request that needs the database.
//!
//! The connection answers OPTIONS, STARTUP, AUTH_RESPONSE and REGISTER itself; QUERY, PREPARE,
//! EXECUTE and BATCH go to the handler. Each worker has a handler of its own, made on its thread:
//! nothing in it needs to be `Send`.

use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use env::Instant;
use protocol::{ProtocolVersion, RequestEnvelope, ResponseEnvelope};

use crate::ConnectionStats;

/// The facts about a connection when it becomes ready.
#[derive(Clone, Debug)]
pub struct ConnectionInfo {
    /// The client's address.
    pub peer: SocketAddr,
    /// The version of all further envelopes.
    pub version: ProtocolVersion,
    /// The role that the client logged in with; `None` if nobody has to log in.
    pub user: Option<Arc<str>>,
    /// The row of `system_views.clients`; the handler keeps the keyspace in it up to date.
    pub stats: Arc<ConnectionStats>,
}

/// The result of handling a request: its answer, or the last wait before it.
pub type Handled<L> = transport::Handled<ResponseEnvelope, L>;

/// Executes requests.
pub trait RequestHandler: 'static {
    /// The state that a connection keeps between requests: keyspace, user, version.
    type Client: 'static;

    /// The last wait of a request: see [`Handled::Last`]. It ends by itself, in bounded time.
    type Last: Future<Output = ResponseEnvelope> + Unpin + 'static;

    /// Called when a connection is ready; gives the state of its client.
    fn connect(&self, info: ConnectionInfo) -> Rc<Self::Client>;

    /// Called when a connection is gone; its requests in flight have been dropped.
    fn disconnect(&self, client: &Self::Client);

    /// Executes a request that was read at `received`. The future is polled once where the request
    /// was decoded, so that an answer without waiting costs no task. Requests of one connection
    /// run side by side and may finish in any order. The future is dropped when the connection
    /// closes or the request times out. The response's stream is set by the caller.
    fn handle(
        self: Rc<Self>,
        client: Rc<Self::Client>,
        request: RequestEnvelope,
        received: Instant,
    ) -> impl Future<Output = Handled<Self::Last>> + 'static;
}
