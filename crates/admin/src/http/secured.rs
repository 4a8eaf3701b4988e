//! The listener of the admin port: connections as they come, or behind TLS.
//!
//! Handshakes run side by side, so that a peer which takes its time keeps nobody waiting. At
//! [`HANDSHAKES_MAX`] the next connection waits in the kernel until one of them ends; `tls` gives
//! each ten seconds.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use env::{Env, Instant, Listener, Stream};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tls::Tls;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Handshakes at a time.
const HANDSHAKES_MAX: usize = 64;

/// How long the listener is left alone after an error of accept (too many open files).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The least time between two lines of the log about such errors.
const TELL_PAUSE: Duration = Duration::from_secs(60);

type Handshake = Pin<Box<dyn Future<Output = (io::Result<Box<dyn Stream>>, SocketAddr)> + Send>>;

/// Lets axum accept from a listener of `env`.
pub(super) struct Accept {
    env: Env,
    listener: Box<dyn Listener>,
    /// None: connections are not encrypted.
    tls: Option<Tls>,
    handshakes: FuturesUnordered<Handshake>,
    /// When an error of accept was told last; None: never.
    told: Option<Instant>,
}

impl Accept {
    /// Over a listener.
    pub fn new(env: Env, listener: Box<dyn Listener>, tls: Option<Tls>) -> Self {
        Self { env, listener, tls, handshakes: FuturesUnordered::new(), told: None }
    }

    /// The next connection cannot be accepted for a reason that may last: while a connection waits
    /// in the kernel, accept fails again at once.
    async fn pause(&mut self, error: &io::Error) {
        let now = self.env.now();
        match self.told.is_none_or(|told| now.since(told) >= TELL_PAUSE) {
            true => {
                self.told = Some(now);
                tracing::warn!(%error, "admin port: cannot accept connections");
            }
            false => tracing::debug!(%error, "admin port: cannot accept connections"),
        }
        self.env.sleep(ACCEPT_PAUSE).await;
    }
}

/// A connection of `env` with a type of its own.
pub(super) struct Connection(Box<dyn Stream>);

impl axum::serve::Listener for Accept {
    type Io = Connection;
    type Addr = SocketAddr;

    /// Errors of single connections are theirs: the next one may come.
    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            let has_room = self.handshakes.len() < HANDSHAKES_MAX;
            tokio::select! {
                Some((shaken, peer)) = self.handshakes.next() => match shaken {
                    Ok(stream) => return (Connection(stream), peer),
                    Err(error) => tracing::debug!(%peer, %error, "admin port: the TLS handshake failed"),
                },
                accepted = env::accept(self.listener.as_mut()), if has_room => match accepted {
                    Ok((stream, peer)) => match self.tls.clone() {
                        None => return (Connection(stream), peer),
                        Some(tls) => self.handshakes.push(Box::pin(async move { (tls.accept(stream).await, peer) })),
                    },
                    Err(error) => self.pause(&error).await,
                },
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_address()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::serve::Listener as _;
    use env::sim::Sim;

    use super::*;

    /// A listener of a process that has no descriptor left, and the number of its calls.
    struct Failing(Arc<AtomicUsize>);

    impl Listener for Failing {
        fn local_address(&self) -> io::Result<SocketAddr> {
            Ok(SocketAddr::from(([127, 0, 0, 1], 1)))
        }

        fn poll_accept(&mut self, _: &mut Context<'_>) -> Poll<io::Result<(Box<dyn Stream>, SocketAddr)>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Poll::Ready(Err(io::Error::other("too many open files")))
        }
    }

    #[test]
    fn a_listener_that_fails_is_left_alone() {
        let (sim, calls) = (Sim::new(1), Arc::new(AtomicUsize::new(0)));
        let mut accept = Accept::new(sim.env(), Box::new(Failing(Arc::clone(&calls))), None);
        let accepted = sim.block_on(sim.env().timeout(Duration::from_secs(1), accept.accept()));
        assert!(accepted.is_err(), "there is no connection");
        let calls = calls.load(Ordering::Relaxed);
        assert!((9..=11).contains(&calls), "{calls} calls in a second");
    }
}
