//! A network within the process: listeners are queues, connections are pipes.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use super::lock;
use super::random::SimRandom;
use crate::{Connecting, Listener, Network, Random, Stream};

/// Bytes in flight in each direction; a writer waits beyond.
const PIPE_BYTES: usize = 64 * 1024;

/// First port given to listeners on port 0 and to clients.
const PORT_FIRST: u16 = 40_000;

type Incoming = (Box<dyn Stream>, SocketAddr);

#[derive(Default)]
struct Backlog {
    waiting: VecDeque<Incoming>,
    waker: Option<Waker>,
    reuse_port: bool,
}

#[derive(Default)]
struct State {
    ports_given: u16,
    made: u64,
    listeners: BTreeMap<(SocketAddr, u64), Backlog>,
}

impl State {
    fn port(&mut self) -> u16 {
        self.ports_given = self.ports_given.wrapping_add(1) % 20_000;
        PORT_FIRST + self.ports_given
    }
}

pub(super) struct SimNetwork {
    state: Arc<Mutex<State>>,
    schedule: Arc<SimRandom>,
}

impl SimNetwork {
    pub(super) fn new(schedule: Arc<SimRandom>) -> Self {
        SimNetwork { state: Arc::default(), schedule }
    }

    pub(super) fn end_life(&self) {
        let ended = std::mem::take(&mut lock(&self.state).listeners);
        drop(ended);
    }

    fn connect_now(&self, address: SocketAddr) -> io::Result<Box<dyn Stream>> {
        let mut state = lock(&self.state);
        let client_address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), state.port());
        let keys: Vec<_> = state.listeners.range((address, 0)..=(address, u64::MAX)).map(|(key, _)| *key).collect();
        if keys.is_empty() {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let choice = usize::try_from(self.schedule.below(keys.len() as u64)).expect("below a usize");
        let key = keys.get(choice).expect("chosen among the keys");
        let backlog = state.listeners.get_mut(key).expect("listed under the same lock");
        let (client, server) = tokio::io::duplex(PIPE_BYTES);
        backlog.waiting.push_back((Box::new(server), client_address));
        let waker = backlog.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        Ok(Box::new(client))
    }
}

impl Network for SimNetwork {
    fn bind(&self, mut address: SocketAddr, reuse_port: bool) -> io::Result<Box<dyn Listener>> {
        let mut state = lock(&self.state);
        if address.port() == 0 {
            address.set_port(state.port());
        }
        let mut others = state.listeners.range((address, 0)..=(address, u64::MAX));
        if others.any(|(_, backlog)| !(backlog.reuse_port && reuse_port)) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        state.made += 1;
        let key = (address, state.made);
        state.listeners.insert(key, Backlog { reuse_port, ..Backlog::default() });
        Ok(Box::new(Bound { key, state: self.state.clone() }))
    }

    fn connect(&self, address: SocketAddr) -> Connecting {
        Box::pin(std::future::ready(self.connect_now(address)))
    }
}

struct Bound {
    key: (SocketAddr, u64),
    state: Arc<Mutex<State>>,
}

impl Listener for Bound {
    fn local_address(&self) -> io::Result<SocketAddr> {
        Ok(self.key.0)
    }

    fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Incoming>> {
        let mut state = lock(&self.state);
        let Some(backlog) = state.listeners.get_mut(&self.key) else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        if let Some(incoming) = backlog.waiting.pop_front() {
            return Poll::Ready(Ok(incoming));
        }
        backlog.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let ended = lock(&self.state).listeners.remove(&self.key);
        drop(ended);
    }
}
