//! Network: listeners and byte streams, TCP in production, pipes in the simulator.

use std::any::Any;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::{Env, ReadFile};

/// A connection: reads and writes of bytes; dropping closes it.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// The connection as its machine made it, for [`Network::file_sender`].
    fn as_any(&self) -> &dyn Any;
}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for T {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Bytes of a file on their way into a connection.
pub type SendingFile<'a> = Pin<Box<dyn Future<Output = io::Result<u64>> + 'a>>;

/// The kernel's way from a file into a connection, which copies nothing into this process. Nothing
/// else may be written to the connection meanwhile.
pub trait FileSender {
    /// Sends `length` bytes of a file from `offset` on, or as many of them as the connection takes
    /// at once; gives how many. Waits until the connection takes any. Jobs wait for the disk.
    /// Errors of the kinds `Other` and `UnexpectedEof` are those of this machine and of the file,
    /// all others those of the connection.
    fn send<'a>(&'a self, env: &'a Env, file: &'a Arc<dyn ReadFile>, offset: u64, length: u64) -> SendingFile<'a>;
}

/// An outgoing connection being made.
pub type Connecting = Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>> + Send>>;

/// Options of a connection's socket.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SocketOptions {
    /// The kernel asks a peer that is silent for hours for a sign of life, and ends the connection
    /// when there is none (SO_KEEPALIVE).
    pub keepalive: bool,
    /// The kernel ends the connection when the peer has acknowledged nothing for so long
    /// (TCP_USER_TIMEOUT); zero: the kernel's own time, which is a quarter of an hour.
    pub user_timeout: Duration,
    /// Bytes of the kernel's buffer of what is sent (SO_SNDBUF); zero: the kernel chooses.
    pub send_buffer: usize,
    /// Bytes of the kernel's buffer of what has come (SO_RCVBUF); zero: the kernel chooses.
    pub receive_buffer: usize,
}

impl SocketOptions {
    /// Options without any but SO_KEEPALIVE.
    pub fn keepalive(keepalive: bool) -> Self {
        Self { keepalive, ..Self::default() }
    }
}

/// A machine's network.
pub trait Network: Send + Sync {
    /// Listens on an address (port 0 = any free one). With `reuse_port` several listeners may share
    /// it, and the kernel spreads connections among them. Call it within the runtime that will
    /// accept.
    fn bind(&self, address: SocketAddr, reuse_port: bool) -> io::Result<Box<dyn Listener>> {
        self.bind_with(address, reuse_port, SocketOptions::default())
    }

    /// As [`Network::bind`]; each connection that is accepted has these options. A simulated
    /// network has no options.
    fn bind_with(&self, address: SocketAddr, reuse_port: bool, options: SocketOptions)
    -> io::Result<Box<dyn Listener>>;

    /// Connects to a listener.
    fn connect(&self, address: SocketAddr) -> Connecting {
        self.connect_with(address, SocketOptions::default())
    }

    /// Connects to a listener, with these options. A simulated network knows the user timeout
    /// alone.
    fn connect_with(&self, address: SocketAddr, options: SocketOptions) -> Connecting;

    /// The kernel's way for bytes of files into a connection; None: there is none, since the bytes
    /// are encrypted here, or the machine is simulated.
    fn file_sender(&self, stream: &dyn Stream) -> Option<Box<dyn FileSender>> {
        let _ = stream;
        None
    }

    /// The addresses of a host. Blocks while name servers are asked. A simulated network has no
    /// names.
    fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        match host.parse() {
            Ok(address) => Ok(vec![address]),
            Err(_) => Err(io::Error::new(io::ErrorKind::NotFound, format!("{host}: there is no such host"))),
        }
    }
}

/// A listening socket.
pub trait Listener: Send {
    /// The address listened on, with the port that was chosen.
    fn local_address(&self) -> io::Result<SocketAddr>;

    /// The next incoming connection and its peer's address.
    fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<io::Result<(Box<dyn Stream>, SocketAddr)>>;

    /// As [`Listener::poll_accept`], of a connection that another thread may serve.
    fn poll_accept_detached(&mut self, context: &mut Context<'_>) -> Poll<io::Result<(Box<dyn Detached>, SocketAddr)>> {
        self.poll_accept(context).map_ok(|(stream, peer)| (Box::new(stream) as Box<dyn Detached>, peer))
    }
}

/// An accepted connection that belongs to no thread's runtime yet, so that it can be handed to the
/// one that has least to do.
pub trait Detached: Send {
    /// Makes it a connection of the calling thread's runtime.
    fn attach(self: Box<Self>) -> io::Result<Box<dyn Stream>>;
}

/// A stream that any thread may poll.
impl Detached for Box<dyn Stream> {
    fn attach(self: Box<Self>) -> io::Result<Box<dyn Stream>> {
        Ok(*self)
    }
}

/// Awaits the next incoming connection without binding it to this thread.
pub async fn accept_detached(listener: &mut dyn Listener) -> io::Result<(Box<dyn Detached>, SocketAddr)> {
    std::future::poll_fn(|context| listener.poll_accept_detached(context)).await
}

/// Awaits the next incoming connection.
pub async fn accept(listener: &mut dyn Listener) -> io::Result<(Box<dyn Stream>, SocketAddr)> {
    std::future::poll_fn(|context| listener.poll_accept(context)).await
}
