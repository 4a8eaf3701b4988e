//! The listener of the admin port: connections as they come, or behind TLS.
//!
//! Handshakes run side by side, so that a peer which takes its time keeps nobody waiting. At
//! [`HANDSHAKES_MAX`] the next connection waits in the kernel until one of them ends; `tls` gives
//! each ten seconds. A peer that takes none of the bytes of an answer for [`STALL_MAX`] loses its
//! connection.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use env::{Env, Instant, Listener, Sleep, Stream};
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

/// How long a peer may take nothing of what it is sent.
const STALL_MAX: Duration = Duration::from_secs(60);

type Handshake = Pin<Box<dyn Future<Output = (io::Result<Box<dyn Stream>>, SocketAddr)> + Send>>;

/// Accepts from a listener of `env`.
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

    /// The next connection. Errors of single connections are theirs: the next one may come.
    pub async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            let has_room = self.handshakes.len() < HANDSHAKES_MAX;
            tokio::select! {
                Some((shaken, peer)) = self.handshakes.next() => match shaken {
                    Ok(stream) => return (Connection::new(&self.env, stream), peer),
                    Err(error) => tracing::debug!(%peer, %error, "admin port: the TLS handshake failed"),
                },
                accepted = env::accept(self.listener.as_mut()), if has_room => match accepted {
                    Ok((stream, peer)) => match self.tls.clone() {
                        None => return (Connection::new(&self.env, stream), peer),
                        Some(tls) => self.handshakes.push(Box::pin(async move { (tls.accept(stream).await, peer) })),
                    },
                    Err(error) => self.pause(&error).await,
                },
            }
        }
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

/// A connection whose peer takes what it is sent.
pub(super) struct Connection {
    stream: Box<dyn Stream>,
    env: Env,
    /// Runs while the peer takes nothing; None: what was written last was taken.
    stall: Option<Sleep>,
}

impl Connection {
    fn new(env: &Env, stream: Box<dyn Stream>) -> Self {
        Self { stream, env: env.clone(), stall: None }
    }

    /// The outcome of a write: one that waits fails when it has waited for too long.
    fn bounded<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stall = None;
            return written;
        }
        let stall = self.stall.get_or_insert_with(|| self.env.sleep(STALL_MAX));
        stall.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.bounded(written, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.bounded(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.bounded(shut, context)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use env::sim::Sim;
    use tokio::io::AsyncWriteExt;

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

    /// An answer of which nothing is taken would hold the place of its connection for ever.
    #[test]
    fn a_peer_that_takes_nothing_loses_its_connection() {
        let sim = Sim::new(2);
        let (near, far) = tokio::io::duplex(8);
        let mut connection = Connection::new(&sim.env(), Box::new(near));
        sim.block_on(connection.write_all(b"12345678")).expect("there is room");
        let refused = sim.block_on(sim.env().timeout(2 * STALL_MAX, connection.write_all(b"9")));
        let error = refused.expect("it ends").expect_err("nobody takes it");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(far);
    }
}
