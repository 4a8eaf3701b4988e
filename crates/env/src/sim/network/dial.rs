//! Connecting: a client asks, the other machine answers, and lost messages are sent again.
//!
//! The accepting side has its connection when the question arrives; the client when the answer has
//! come back. If the answer is lost, the accepting side has a connection that is never used.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::deliver::{nanos, retry_wait};
use super::socket::Socket;
use super::stream::SimStream;
use super::{BACKLOG_MAX, CONNECT_MAX, Event, SimNetwork, State, address_of};
use crate::{Connecting, Random, Stream};

/// Factor by which a question waits longer than data before it is sent again: the first wait is a
/// second.
const ASK_AGAIN_TIMES: u64 = 5;

/// A client that is connecting.
pub(super) struct Dial {
    pub(super) machine: usize,
    address: SocketAddr,
    /// See [`Socket::user_timeout`].
    user_timeout: u64,
    since: u64,
    tries: u32,
    outcome: Option<Result<u64, io::ErrorKind>>,
    waker: Option<Waker>,
}

/// Connects; the kernel ends the client's side of a hung connection after `user_timeout`, unless
/// that is zero.
pub(super) fn connect(
    network: Arc<SimNetwork>,
    machine: usize,
    life: u64,
    address: SocketAddr,
    user_timeout: Duration,
) -> Connecting {
    Box::pin(Dialing { network, machine, life, address, user_timeout: nanos(user_timeout), dial: None })
}

struct Dialing {
    network: Arc<SimNetwork>,
    machine: usize,
    life: u64,
    address: SocketAddr,
    /// See [`Socket::user_timeout`].
    user_timeout: u64,
    /// The number of the dial; None: it has not begun.
    dial: Option<u64>,
}

impl Future for Dialing {
    type Output = io::Result<Box<dyn Stream>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let now = this.network.present(this.machine);
        let network = &this.network;
        let outcome = network.with(|state| {
            if state.hosts.get(this.machine).is_none_or(|host| host.life != this.life) {
                return Some(Err(io::ErrorKind::ConnectionAborted));
            }
            let begin = || network.begin_dial(state, now, this.machine, this.address, this.user_timeout);
            let dial = *this.dial.get_or_insert_with(begin);
            let Some(known) = state.dials.get_mut(&dial) else { return Some(Err(io::ErrorKind::ConnectionAborted)) };
            let Some(outcome) = known.outcome else {
                let old = known.waker.replace(context.waker().clone());
                state.to_drop.extend(old);
                return None;
            };
            state.dials.remove(&dial);
            Some(outcome)
        });
        match outcome {
            None => Poll::Pending,
            Some(Ok(socket)) => {
                let stream = SimStream::new(this.network.clone(), this.machine, socket);
                Poll::Ready(Ok(Box::new(stream)))
            }
            Some(Err(kind)) => Poll::Ready(Err(kind.into())),
        }
    }
}

impl Drop for Dialing {
    fn drop(&mut self) {
        let Some(dial) = self.dial else { return };
        let now = self.network.present(self.machine);
        self.network.with(|state| {
            let Some(dial) = state.dials.remove(&dial) else { return };
            state.to_drop.extend(dial.waker);
            if let Some(Ok(socket)) = dial.outcome {
                self.network.drop_socket(state, now, socket);
            }
        });
    }
}

impl SimNetwork {
    fn begin_dial(&self, state: &mut State, now: u64, machine: usize, address: SocketAddr, user_timeout: u64) -> u64 {
        let number = state.next_number();
        let dial = Dial { machine, address, user_timeout, since: now, tries: 0, outcome: None, waker: None };
        state.dials.insert(number, dial);
        let delay = state.machine_at(machine, address.ip()).map_or(0, |to| self.delay(state, machine, to));
        state.schedule(now.saturating_add(delay), Event::Ask { dial: number });
        number
    }

    /// Called when the question reaches the other machine, if the link lets it pass.
    pub(super) fn asked(&self, state: &mut State, now: u64, number: u64) {
        let Some(dial) = state.dials.get(&number) else { return };
        let (from, address, since) = (dial.machine, dial.address, dial.since);
        let Some(to) = state.machine_at(from, address.ip()) else {
            return settle(state, number, Err(io::ErrorKind::HostUnreachable));
        };
        if now.saturating_sub(since) >= nanos(CONNECT_MAX) {
            return settle(state, number, Err(io::ErrorKind::TimedOut));
        }
        if !self.passes(state, from, to) {
            return self.ask_again(state, now, number);
        }
        let listeners = state.listeners_at(to, address);
        if listeners.is_empty() {
            let at = now.saturating_add(self.delay(state, to, from));
            return state.schedule(at, Event::Answer { dial: number, result: Err(io::ErrorKind::ConnectionRefused) });
        }
        let with_room = |key: &(usize, SocketAddr, u64)| {
            state.listeners.get(key).is_some_and(|backlog| backlog.waiting.len() < BACKLOG_MAX)
        };
        let listeners: Vec<_> = listeners.into_iter().filter(with_room).collect();
        if listeners.is_empty() {
            return self.ask_again(state, now, number);
        }
        let choice = usize::try_from(self.random.below(listeners.len() as u64)).expect("below a usize");
        let listener = *listeners.get(choice).expect("chosen among them");
        let client = self.open_pair(state, from, to, address, listener);
        let user_timeout = state.dials.get(&number).map_or(0, |dial| dial.user_timeout);
        state.sockets.get_mut(&client).expect("opened above").user_timeout = user_timeout;
        let at = now.saturating_add(self.delay(state, to, from));
        state.schedule(at, Event::Answer { dial: number, result: Ok(client) });
    }

    fn ask_again(&self, state: &mut State, now: u64, number: u64) {
        let dial = state.dials.get_mut(&number).expect("the caller has looked it up");
        let wait = retry_wait(dial.tries).saturating_mul(ASK_AGAIN_TIMES);
        dial.tries += 1;
        state.schedule(now.saturating_add(wait), Event::Ask { dial: number });
    }

    /// Makes both sockets of a new connection; gives the number of the client's.
    fn open_pair(
        &self,
        state: &mut State,
        from: usize,
        to: usize,
        address: SocketAddr,
        listener: (usize, SocketAddr, u64),
    ) -> u64 {
        let (client, server) = (state.next_number(), state.next_number());
        let ip = if from == to { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { address_of(from) };
        let client_address = SocketAddr::new(ip, state.port());
        state.sockets.insert(client, Socket::new(from, server, to, address));
        state.sockets.insert(server, Socket::new(to, client, from, client_address));
        state.push_accepted(listener, server);
        state.figures.connected += 1;
        self.trace.record("connected", &[from as u64, to as u64, client]);
        client
    }

    pub(super) fn answered(&self, state: &mut State, now: u64, number: u64, result: Result<u64, io::ErrorKind>) {
        let Some(dial) = state.dials.get(&number) else {
            if let Ok(socket) = result {
                self.drop_socket(state, now, socket);
            }
            return;
        };
        let (from, since) = (dial.machine, dial.since);
        let to = state.machine_at(from, dial.address.ip()).expect("it was asked there");
        if self.passes(state, to, from) {
            return settle(state, number, result);
        }
        if now.saturating_sub(since) < nanos(CONNECT_MAX) {
            let at = now.saturating_add(nanos(Duration::from_secs(1)));
            return state.schedule(at, Event::Answer { dial: number, result });
        }
        if let Ok(socket) = result {
            state.sockets.remove(&socket);
        }
        settle(state, number, Err(io::ErrorKind::TimedOut));
    }
}

fn settle(state: &mut State, number: u64, outcome: Result<u64, io::ErrorKind>) {
    if let Some(dial) = state.dials.get_mut(&number) {
        dial.outcome = Some(outcome);
        let waker = dial.waker.take();
        state.wake(waker);
    }
}

impl State {
    /// The machine that has an address, for a machine that asks; None: no machine has it.
    fn machine_at(&self, asking: usize, ip: IpAddr) -> Option<usize> {
        if ip.is_loopback() {
            return Some(asking);
        }
        (0..self.hosts.len()).find(|machine| address_of(*machine) == ip)
    }
}
