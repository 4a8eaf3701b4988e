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

use env::{Listener, Stream};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tls::Tls;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Handshakes at a time.
const HANDSHAKES_MAX: usize = 64;

type Handshake = Pin<Box<dyn Future<Output = (io::Result<Box<dyn Stream>>, SocketAddr)> + Send>>;

/// Lets axum accept from a listener of `env`.
pub(super) struct Accept {
    listener: Box<dyn Listener>,
    /// None: connections are not encrypted.
    tls: Option<Tls>,
    handshakes: FuturesUnordered<Handshake>,
}

impl Accept {
    /// Over a listener.
    pub fn new(listener: Box<dyn Listener>, tls: Option<Tls>) -> Self {
        Self { listener, tls, handshakes: FuturesUnordered::new() }
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
                accepted = env::accept(self.listener.as_mut()), if has_room => match (accepted, &self.tls) {
                    (Ok((stream, peer)), None) => return (Connection(stream), peer),
                    (Ok((stream, peer)), Some(tls)) => {
                        let tls = tls.clone();
                        self.handshakes.push(Box::pin(async move { (tls.accept(stream).await, peer) }));
                    }
                    (Err(error), _) => tracing::warn!(%error, "admin port: cannot accept a connection"),
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
