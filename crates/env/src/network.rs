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

/// Sends bytes of a file into a connection by the kernel, without copying them into this process.
/// Nothing else may be written to the connection meanwhile.
pub trait FileSender {
    /// Sends at most `length` bytes of a file from `offset` on, as many as the connection takes at
    /// once; gives their number. Waits until the connection takes some. Waits for the disk are
    /// done in jobs. Errors of the kinds `Other` and `UnexpectedEof` are those of this machine and
    /// of the file, all others those of the connection.
    fn send<'a>(&'a self, env: &'a Env, file: &'a Arc<dyn ReadFile>, offset: u64, length: u64) -> SendingFile<'a>;
}

/// A connection to a listener, while it is being made.
pub type Connecting = Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>> + Send>>;

/// Options of a connection's socket.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SocketOptions {
    /// True: the kernel asks a peer that is silent for hours for a sign of life, and ends the
    /// connection if there is none (SO_KEEPALIVE).
    pub keepalive: bool,
    /// Time without an acknowledgement of the peer after which the kernel ends the connection
    /// (TCP_USER_TIMEOUT); zero: the kernel's own time, a quarter of an hour.
    pub user_timeout: Duration,
    /// Bytes of the kernel's buffer for sending (SO_SNDBUF); zero: the kernel chooses.
    pub send_buffer: usize,
    /// Bytes of the kernel's buffer for received bytes (SO_RCVBUF); zero: the kernel chooses.
    pub receive_buffer: usize,
}

impl SocketOptions {
    /// Options of which only SO_KEEPALIVE is set.
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

    /// Does the work of [`Network::bind`]; each accepted connection has these options. A simulated
    /// network has no options.
    fn bind_with(&self, address: SocketAddr, reuse_port: bool, options: SocketOptions)
    -> io::Result<Box<dyn Listener>>;

    /// Connects to a listener.
    fn connect(&self, address: SocketAddr) -> Connecting {
        self.connect_with(address, SocketOptions::default())
    }

    /// Connects to a listener, with these options. A simulated network only knows the user
    /// timeout.
    fn connect_with(&self, address: SocketAddr, options: SocketOptions) -> Connecting;

    /// A sender of files into a connection by the kernel; None: there is none, because the bytes
    /// are encrypted in this process, or the machine is simulated.
    fn file_sender(&self, stream: &dyn Stream) -> Option<Box<dyn FileSender>> {
        let _ = stream;
        None
    }

    /// The address of this machine from which it reaches hosts outside of its networks. Nothing is
    /// sent. None: the machine has no way there. A simulated network has no outside.
    fn address_outwards(&self) -> Option<IpAddr> {
        None
    }

    /// The addresses of a host, those of IPv4 first. A caller that takes one address takes the
    /// first, as Cassandra does: all keys and options then name a host by the same address. Blocks
    /// while name servers are asked. A simulated network has no names.
    fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        match host.parse() {
            Ok(address) => Ok(vec![address]),
            Err(_) => Err(io::Error::new(io::ErrorKind::NotFound, format!("{host}: there is no such host"))),
        }
    }

    /// The first address of a host. None: there is no such host. Blocks as [`Network::resolve`]
    /// does.
    fn resolve_one(&self, host: &str) -> Option<IpAddr> {
        self.resolve(host).ok()?.into_iter().next()
    }
}

/// A listening socket.
pub trait Listener: Send {
    /// The address listened on, with the port that was chosen.
    fn local_address(&self) -> io::Result<SocketAddr>;

    /// The next incoming connection and its peer's address.
    fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<io::Result<(Box<dyn Stream>, SocketAddr)>>;

    /// Does the work of [`Listener::poll_accept`] for a connection that another thread may serve.
    fn poll_accept_detached(&mut self, context: &mut Context<'_>) -> Poll<io::Result<(Box<dyn Detached>, SocketAddr)>> {
        self.poll_accept(context).map_ok(|(stream, peer)| (Box::new(stream) as Box<dyn Detached>, peer))
    }
}

/// An accepted connection that belongs to no thread's runtime yet, so that it can be handed to the
/// thread that has least to do.
pub trait Detached: Send {
    /// Makes the connection one of the calling thread's runtime.
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
