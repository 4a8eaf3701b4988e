//! Network: listeners and byte streams, TCP in production, pipes in the simulator.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite};

/// A connection: reads and writes of bytes; dropping closes it.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// An outgoing connection being made.
pub type Connecting = Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>> + Send>>;

/// A machine's network.
pub trait Network: Send + Sync {
    /// Listens on an address (port 0 = any free one). With `reuse_port` several listeners may share it, and the kernel spreads
    /// connections among them. Call it within the runtime that will accept.
    fn bind(&self, address: SocketAddr, reuse_port: bool) -> io::Result<Box<dyn Listener>>;

    /// Connects to a listener.
    fn connect(&self, address: SocketAddr) -> Connecting;
}

/// A listening socket.
pub trait Listener: Send {
    /// The address listened on, with the port that was chosen.
    fn local_address(&self) -> io::Result<SocketAddr>;

    /// The next incoming connection and its peer's address.
    fn poll_accept(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<(Box<dyn Stream>, SocketAddr)>>;
}

/// Awaits the next incoming connection.
pub async fn accept(listener: &mut dyn Listener) -> io::Result<(Box<dyn Stream>, SocketAddr)> {
    std::future::poll_fn(|context| listener.poll_accept(context)).await
}
