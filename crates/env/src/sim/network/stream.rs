//! A stream: the handle by which an application holds a socket.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::SimNetwork;
use super::socket::{Segment, Socket};
use crate::Random;
use crate::rare::{Rare, happens};

/// Percentage of the writes that take only a part of their bytes.
const SHORT_WRITES_PERCENT: u64 = 10;

/// A stream of the simulated network: see the head of this file.
pub(super) struct SimStream {
    network: Arc<SimNetwork>,
    machine: usize,
    socket: u64,
}

impl SimStream {
    pub(super) fn new(network: Arc<SimNetwork>, machine: usize, socket: u64) -> Self {
        SimStream { network, machine, socket }
    }
}

/// The socket, as long as its process lives.
fn alive(socket: Option<&mut Socket>) -> io::Result<&mut Socket> {
    socket.filter(|socket| !socket.is_dropped).ok_or_else(|| io::ErrorKind::ConnectionAborted.into())
}

impl AsyncRead for SimStream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let (network, id) = (&self.network, self.socket);
        let now = network.present(self.machine);
        network.with(|state| {
            let socket = alive(state.sockets.get_mut(&id))?;
            if socket.incoming.is_empty() {
                if let Some(failure) = socket.failure {
                    return Poll::Ready(Err(failure.into()));
                }
                if socket.is_finished || buffer.remaining() == 0 {
                    return Poll::Ready(Ok(()));
                }
                let old = socket.reader.replace(context.waker().clone());
                state.to_drop.extend(old);
                return Poll::Pending;
            }
            let most = if happens(Rare::ByteByByte) { 1 } else { buffer.remaining() };
            let count = most.min(buffer.remaining()).min(socket.incoming.len());
            let (first, second) = socket.incoming.as_slices();
            let of_first = count.min(first.len());
            buffer.put_slice(first.get(..of_first).expect("not longer than the slice"));
            buffer.put_slice(second.get(..count - of_first).expect("the rest is in the second slice"));
            socket.incoming.drain(..count);
            if socket.has_room_to_receive() {
                network.make_room(state, now, id);
            }
            Poll::Ready(Ok(()))
        })
    }
}

impl AsyncWrite for SimStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let (network, id) = (&self.network, self.socket);
        let now = network.present(self.machine);
        network.with(|state| {
            let socket = alive(state.sockets.get_mut(&id))?;
            if let Some(failure) = socket.failure {
                return Poll::Ready(Err(failure.into()));
            }
            if socket.is_shut {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
            let fits = socket.room_to_send().min(data.len());
            if fits == 0 && !data.is_empty() {
                let old = socket.writer.replace(context.waker().clone());
                state.to_drop.extend(old);
                return Poll::Pending;
            }
            let count = network.draw_short(fits);
            let written = data.get(..count).expect("not longer than the data");
            network.send(state, now, id, Segment::Data(Bytes::copy_from_slice(written)));
            Poll::Ready(Ok(count))
        })
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let (network, id) = (&self.network, self.socket);
        let now = network.present(self.machine);
        network.with(|state| {
            let socket = alive(state.sockets.get_mut(&id))?;
            if socket.failure.is_none() && !std::mem::replace(&mut socket.is_shut, true) {
                network.send(state, now, id, Segment::Fin);
            }
            Poll::Ready(Ok(()))
        })
    }
}

impl Drop for SimStream {
    fn drop(&mut self) {
        let now = self.network.present(self.machine);
        self.network.with(|state| {
            // Its process may have been killed: then the kernel has let go of the socket already.
            if state.sockets.get(&self.socket).is_some_and(|socket| !socket.is_dropped) {
                self.network.drop_socket(state, now, self.socket);
            }
        });
    }
}

impl SimNetwork {
    /// Draws how many bytes of a write are taken.
    fn draw_short(&self, bytes: usize) -> usize {
        if bytes > 1 && self.random.chance(SHORT_WRITES_PERCENT) {
            usize::try_from(1 + self.random.below(bytes as u64 - 1)).expect("below a usize")
        } else {
            bytes
        }
    }
}
