//! TCP: tokio's sockets, `SO_REUSEPORT` through socket2. Nagle's algorithm is off, because
//! responses are coalesced before they are written.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustix::io::Errno;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::{Connecting, Detached, Env, FileSender, Listener, Network, ReadFile, SendingFile, SocketOptions, Stream};

/// Connections that wait to be accepted; the kernel refuses further ones (and bounds this by
/// `somaxconn`).
const BACKLOG: i32 = 1024;

/// An address that no host has (TEST-NET-1), and a port.
const OUTSIDE: ([u8; 4], u16) = ([192, 0, 2, 1], 9);

pub(super) struct Tcp;

impl Network for Tcp {
    /// Listens. The kernel gives the options of a listening socket to the connections that it
    /// accepts.
    fn bind_with(
        &self,
        address: SocketAddr,
        reuse_port: bool,
        options: SocketOptions,
    ) -> io::Result<Box<dyn Listener>> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(reuse_port)?;
        socket.set_nonblocking(true)?;
        set(&socket, options)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(Box::new(TcpListener::from_std(socket.into())?))
    }

    fn connect_with(&self, address: SocketAddr, options: SocketOptions) -> Connecting {
        Box::pin(async move {
            let socket = match address {
                SocketAddr::V4(_) => TcpSocket::new_v4()?,
                SocketAddr::V6(_) => TcpSocket::new_v6()?,
            };
            // the size of a buffer is part of what TCP agrees on when it connects
            set(&SockRef::from(&socket), options)?;
            let stream = socket.connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }

    fn file_sender(&self, stream: &dyn Stream) -> Option<Box<dyn FileSender>> {
        let stream = stream.as_any().downcast_ref::<TcpStream>()?;
        Some(Box::new(Kernel::of(stream).ok()?))
    }

    fn address_outwards(&self) -> Option<IpAddr> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).ok()?;
        // a socket of datagrams is only given its own address, by the route to the other one
        socket.connect(&SocketAddr::from(OUTSIDE).into()).ok()?;
        Some(socket.local_addr().ok()?.as_socket()?.ip())
    }

    fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        Ok(in_order((host, 0).to_socket_addrs()?.map(|found| found.ip())))
    }
}

/// Addresses, each once: those of IPv4 first, otherwise in the order in which they were found.
fn in_order(found: impl Iterator<Item = IpAddr>) -> Vec<IpAddr> {
    let mut addresses: Vec<IpAddr> = Vec::new();
    for address in found {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses.sort_by_key(IpAddr::is_ipv6);
    addresses
}

fn set(socket: &Socket, options: SocketOptions) -> io::Result<()> {
    let SocketOptions { keepalive, user_timeout, send_buffer, receive_buffer } = options;
    if keepalive {
        socket.set_keepalive(true)?;
    }
    if !user_timeout.is_zero() {
        socket.set_tcp_user_timeout(Some(user_timeout))?;
    }
    if send_buffer > 0 {
        socket.set_send_buffer_size(send_buffer)?;
    }
    if receive_buffer > 0 {
        socket.set_recv_buffer_size(receive_buffer)?;
    }
    Ok(())
}

/// Sends files into a connection by `sendfile`.
struct Kernel {
    /// The connection by a descriptor of its own. Jobs hold it too. Otherwise its number could
    /// belong to another file when a connection is closed in the middle of a call.
    stream: Arc<TcpStream>,
}

/// Bytes that are sent outside of a job, because the job before has brought them into memory.
const TRIED_LENGTH: u64 = 4096;

impl Kernel {
    fn of(stream: &TcpStream) -> io::Result<Self> {
        let own = std::net::TcpStream::from(stream.as_fd().try_clone_to_owned()?);
        Ok(Self { stream: Arc::new(TcpStream::from_std(own)?) })
    }

    /// Sends until the connection is full, or all bytes are sent.
    async fn send_now(&self, env: &Env, file: &Arc<dyn ReadFile>, offset: u64, length: u64) -> io::Result<u64> {
        let (stream, of_job) = (Arc::clone(&self.stream), Arc::clone(file));
        let job = move || send_some(&stream, &*of_job, offset, length);
        let sent = env.blocking_long("stream", job).await;
        let count = sent.map_err(|full| io::Error::other(full.to_string()))??;
        if count == length {
            return Ok(count);
        }
        // the runtime learns only from a call of its own that the connection is full, and then
        // waits until there is room
        let tried = self.stream.try_io(Interest::WRITABLE, || {
            match send_some(&self.stream, &**file, offset + count, (length - count).min(TRIED_LENGTH))? {
                0 => Err(io::ErrorKind::WouldBlock.into()),
                more => Ok(more),
            }
        });
        match tried {
            Ok(more) => Ok(count + more),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(count),
            Err(error) => Err(error),
        }
    }
}

impl FileSender for Kernel {
    fn send<'a>(&'a self, env: &'a Env, file: &'a Arc<dyn ReadFile>, offset: u64, length: u64) -> SendingFile<'a> {
        Box::pin(async move {
            loop {
                self.stream.writable().await?;
                let count = self.send_now(env, file, offset, length).await?;
                if count > 0 {
                    return Ok(count);
                }
            }
        })
    }
}

/// As many bytes as the connection takes at once; less than `length`: it takes no more now.
fn send_some(socket: &TcpStream, file: &dyn ReadFile, offset: u64, length: u64) -> io::Result<u64> {
    let from = file.descriptor().ok_or(io::ErrorKind::Unsupported)?;
    let (mut at, end) = (offset, offset + length);
    while at < end {
        let count = usize::try_from(end - at).unwrap_or(usize::MAX);
        match rustix::fs::sendfile(socket, from, Some(&mut at), count) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => break,
            Err(Errno::IO) => return Err(io::Error::other("the disk does not give the bytes of a file")),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(at - offset)
}

impl Listener for TcpListener {
    fn local_address(&self) -> io::Result<SocketAddr> {
        self.local_addr()
    }

    fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<io::Result<(Box<dyn Stream>, SocketAddr)>> {
        TcpListener::poll_accept(self, context).map_ok(|(stream, peer)| {
            // Fails only when the peer is already gone, which the first read tells as well.
            let _ = stream.set_nodelay(true);
            (Box::new(stream) as Box<dyn Stream>, canonical(peer))
        })
    }

    fn poll_accept_detached(&mut self, context: &mut Context<'_>) -> Poll<io::Result<(Box<dyn Detached>, SocketAddr)>> {
        TcpListener::poll_accept(self, context).map(|accepted| {
            let (stream, peer) = accepted?;
            let _ = stream.set_nodelay(true);
            Ok((Box::new(stream.into_std()?) as Box<dyn Detached>, canonical(peer)))
        })
    }
}

/// The address of a peer. A socket that listens on `::` has the addresses of IPv4 in their mapped
/// form (`::ffff:10.0.0.1`), under which nobody looks for a client.
fn canonical(peer: SocketAddr) -> SocketAddr {
    match peer.ip().to_canonical() {
        address @ IpAddr::V4(_) => SocketAddr::new(address, peer.port()),
        // an address of IPv6 keeps its scope
        IpAddr::V6(_) => peer,
    }
}

impl Detached for std::net::TcpStream {
    fn attach(self: Box<Self>) -> io::Result<Box<dyn Stream>> {
        Ok(Box::new(TcpStream::from_std(*self)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_a_host_begin_with_those_of_ipv4() {
        let parse = |text: &str| text.parse::<IpAddr>().expect("an address");
        let found = ["::1", "10.0.0.2", "::1", "fe80::1", "10.0.0.1", "10.0.0.2"].map(parse);
        let expected = ["10.0.0.2", "10.0.0.1", "::1", "fe80::1"].map(parse);
        assert_eq!(in_order(found.into_iter()), expected);
    }

    #[test]
    fn a_peer_has_the_address_by_which_it_is_known() {
        for (found, known) in [
            ("10.0.0.1:5", "10.0.0.1:5"),
            ("[::ffff:10.0.0.1]:5", "10.0.0.1:5"),
            ("[::1]:5", "[::1]:5"),
            ("[fe80::1%3]:5", "[fe80::1%3]:5"),
        ] {
            let parse = |text: &str| text.parse::<SocketAddr>().expect("an address");
            assert_eq!(canonical(parse(found)), parse(known));
        }
    }
}
