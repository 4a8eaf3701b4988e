//! The connections of the admin port: how many there may be, and for how long one may keep the node
//! waiting.
//!
//! A connection takes one of [`CONNECTIONS_MAX`] places before it is accepted, and gives it back at
//! its end. Beyond that connections wait in the kernel. So that nobody holds a place by doing
//! nothing, a connection is closed when the head of its next request is not there in time, which
//! also ends idle ones; the body of a request has a time of its own
//! ([`super::caller`]), and so has an answer of which the caller takes nothing
//! ([`super::secured`]). The time between request and answer has no bound: a call lasts as long as
//! its work.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use env::ADMIN_THREADS_MAX;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::sync::Semaphore;

use super::secured::Accept;

/// Connections at a time.
const CONNECTIONS_MAX: usize = 256;
const _: () = assert!(CONNECTIONS_MAX > 2 * ADMIN_THREADS_MAX, "callers who wait for a thread leave places to others");

/// The time in which the head of a request must be there. Longer than the pause of a minute between
/// two scrapes, so that Prometheus keeps its connection.
const HEAD_TIME: Duration = Duration::from_secs(75);

/// The time in which the body of a request must be there, counted from its head.
const BODY_TIME: Duration = Duration::from_secs(30);

/// The bounds of connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// The time in which the head of a request must be there, counted from the beginning of its
    /// connection, or from the end of the answer before it.
    pub head: Duration,
    /// The time in which the body of a request must be there, counted from its head.
    pub body: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: CONNECTIONS_MAX, head: HEAD_TIME, body: BODY_TIME }
    }
}

/// Answers the requests of all connections until the future is dropped.
pub(super) async fn serve(mut accept: Accept, router: Router, limits: Limits) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(limits.connections));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head);
    loop {
        let place = Arc::clone(&places).acquire_owned().await.map_err(io::Error::other)?;
        let (connection, peer) = accept.accept().await;
        let service = TowerToHyperService::new(router.clone());
        let served = http.serve_connection(TokioIo::new(connection), service);
        drop(tokio::spawn(async move {
            if let Err(error) = served.await {
                tracing::debug!(%peer, %error, "admin port: a connection has ended");
            }
            drop(place);
        }));
    }
}
