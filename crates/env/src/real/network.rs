//! TCP: tokio's sockets, `SO_REUSEPORT` through socket2. Nagle's algorithm is off: responses are
//! coalesced by us.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::{TcpListener, TcpStream};

use crate::{Connecting, Detached, Listener, Network, Stream};

/// Connections that wait to be accepted; the kernel refuses further ones (and bounds this by
/// `somaxconn`).
const BACKLOG: i32 = 1024;

pub(super) struct Tcp;

impl Network for Tcp {
    fn bind(&self, address: SocketAddr, reuse_port: bool) -> io::Result<Box<dyn Listener>> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(reuse_port)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(Box::new(TcpListener::from_std(socket.into())?))
    }

    fn connect(&self, address: SocketAddr) -> Connecting {
        self.connect_within(address, Duration::ZERO)
    }

    fn connect_within(&self, address: SocketAddr, user_timeout: Duration) -> Connecting {
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            if !user_timeout.is_zero() {
                SockRef::from(&stream).set_tcp_user_timeout(Some(user_timeout))?;
            }
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }

    fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let mut addresses: Vec<IpAddr> = Vec::new();
        for found in (host, 0).to_socket_addrs()? {
            if !addresses.contains(&found.ip()) {
                addresses.push(found.ip());
            }
        }
        Ok(addresses)
    }
}

impl Listener for TcpListener {
    fn local_address(&self) -> io::Result<SocketAddr> {
        self.local_addr()
    }

    fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<io::Result<(Box<dyn Stream>, SocketAddr)>> {
        TcpListener::poll_accept(self, context).map_ok(|(stream, peer)| {
            // Fails only when the peer is already gone, which the first read tells as well.
            let _ = stream.set_nodelay(true);
            (Box::new(stream) as Box<dyn Stream>, peer)
        })
    }

    fn poll_accept_detached(&mut self, context: &mut Context<'_>) -> Poll<io::Result<(Box<dyn Detached>, SocketAddr)>> {
        TcpListener::poll_accept(self, context).map(|accepted| {
            let (stream, peer) = accepted?;
            let _ = stream.set_nodelay(true);
            Ok((Box::new(stream.into_std()?) as Box<dyn Detached>, peer))
        })
    }
}

impl Detached for std::net::TcpStream {
    fn attach(self: Box<Self>) -> io::Result<Box<dyn Stream>> {
        Ok(Box::new(TcpStream::from_std(*self)?))
    }
}
