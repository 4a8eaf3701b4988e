//! Listening sockets and the connections that wait to be accepted.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::stream::SimStream;
use super::{SimNetwork, State, address_of, lock};
use crate::{Listener, Stream};

#[derive(Default)]
pub(super) struct Backlog {
    /// Numbers of the sockets that were not accepted yet.
    pub(super) waiting: VecDeque<u64>,
    waker: Option<Waker>,
    reuse_port: bool,
}

impl State {
    /// A machine's listeners that answer at an address.
    pub(super) fn listeners_at(&self, machine: usize, address: SocketAddr) -> Vec<(usize, SocketAddr, u64)> {
        let answers = |bound: &SocketAddr| {
            bound.port() == address.port() && (bound.ip() == address.ip() || bound.ip().is_unspecified())
        };
        let of_machine = self.listeners.keys().filter(|(host, bound, _)| *host == machine && answers(bound));
        of_machine.copied().collect()
    }

    pub(super) fn push_accepted(&mut self, key: (usize, SocketAddr, u64), socket: u64) {
        let backlog = self.listeners.get_mut(&key).expect("the caller has found it under the same lock");
        backlog.waiting.push_back(socket);
        let waker = backlog.waker.take();
        self.wake(waker);
    }
}

impl SimNetwork {
    pub(super) fn listen(
        self: &Arc<Self>,
        machine: usize,
        life: u64,
        mut address: SocketAddr,
        reuse_port: bool,
    ) -> io::Result<Box<dyn Listener>> {
        let mut state = lock(&self.state);
        if state.hosts.get(machine).is_none_or(|host| host.life != life) {
            return Err(io::Error::other("this handle belongs to a process that is gone"));
        }
        let is_own = |ip: IpAddr| ip.is_loopback() || ip.is_unspecified() || ip == address_of(machine);
        if !is_own(address.ip()) {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        if address.port() == 0 {
            address.set_port(state.port());
        }
        let of_port = state.listeners.range((machine, address, 0)..=(machine, address, u64::MAX));
        if of_port.into_iter().any(|(_, backlog)| !(backlog.reuse_port && reuse_port)) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let key = (machine, address, state.next_number());
        state.listeners.insert(key, Backlog { reuse_port, ..Backlog::default() });
        Ok(Box::new(Bound { key, network: self.clone() }))
    }

    /// Ends a listener; connections that were not accepted are reset.
    pub(super) fn end_listener(&self, state: &mut State, now: u64, key: (usize, SocketAddr, u64)) {
        let Some(backlog) = state.listeners.remove(&key) else { return };
        state.to_drop.extend(backlog.waker);
        backlog.waiting.into_iter().for_each(|socket| self.remove_with_reset(state, now, socket));
    }
}

struct Bound {
    key: (usize, SocketAddr, u64),
    network: Arc<SimNetwork>,
}

impl Listener for Bound {
    fn local_address(&self) -> io::Result<SocketAddr> {
        Ok(self.key.1)
    }

    fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<io::Result<(Box<dyn Stream>, SocketAddr)>> {
        self.network.with(|state| {
            loop {
                let Some(backlog) = state.listeners.get_mut(&self.key) else {
                    return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
                };
                let Some(id) = backlog.waiting.pop_front() else {
                    let old = backlog.waker.replace(context.waker().clone());
                    state.to_drop.extend(old);
                    return Poll::Pending;
                };
                // A connection that failed while it waited is as if it had never been.
                if let Some(socket) = state.sockets.get(&id) {
                    let peer = socket.peer_address;
                    let stream: Box<dyn Stream> = Box::new(SimStream::new(self.network.clone(), self.key.0, id));
                    return Poll::Ready(Ok((stream, peer)));
                }
            }
        })
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let now = self.network.present(self.key.0);
        self.network.with(|state| self.network.end_listener(state, now, self.key));
    }
}
