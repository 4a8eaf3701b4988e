//! The network between simulated machines: connections that keep the order of bytes and lose none,
//! as TCP's do, over links that are not reliable.
//!
//! A link is one way, from a machine to another. It has a delay drawn for each segment, may be
//! slow, may lose segments and may be blocked. A lost or blocked segment is sent again later, so
//! the connection stalls. If it is not acknowledged for [`GIVE_UP`] the sender's side fails with
//! `TimedOut`, and the other side is not told. Each side has a bounded send buffer and a bounded
//! receive buffer, so a reader that does not read stops the writer.
//!
//! How sockets end: dropping a stream sends the written bytes and then FIN, or RST when it had
//! unread bytes. A killed process leaves that to its kernel. A machine without power sends
//! nothing: its peers find out by a timeout, or by the RST that they get when they send to it
//! after it has its power again. A hung connection moves nothing any more; the kernel of a client
//! that asked for that ends its side when bytes are not acknowledged for as long as it said
//! (TCP_USER_TIMEOUT), and any other side never ends by itself.
//!
//! Connections are independent of each other: bytes that are sent later on another connection may
//! arrive earlier. Time comes from the timeline, chance from a stream of its own. Not simulated:
//! addresses of more than one network, UDP, keepalive probes.

mod deliver;
mod dial;
mod faults;
mod link;
mod listen;
mod socket;
mod stream;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Duration;

use super::clock::{SimClock, Timeline};
use super::lock;
use super::random::SimRandom;
use super::trace::Trace;
use crate::{Connecting, Listener, Network, SocketOptions};

pub use link::Link;
use listen::Backlog;
use socket::Socket;

/// Most bytes that a side may have written without an acknowledgement of the other side; beyond
/// this a writer waits.
pub const SEND_BUFFER_MAX: usize = 64 * 1024;

/// Most bytes that have arrived and are not read. Beyond this the other side sends no more, except
/// the segment under way.
pub const RECEIVE_BUFFER_MAX: usize = 64 * 1024;

/// Most connections of a listener that were not accepted yet. Further ones are not answered, and
/// their clients try again.
const BACKLOG_MAX: usize = 1024;

/// How long a segment is sent again and again before its sender gives the connection up.
pub const GIVE_UP: Duration = Duration::from_secs(30);

/// How long a client tries to connect.
pub const CONNECT_MAX: Duration = Duration::from_secs(20);

/// The first wait before a segment is sent again; doubled each time up to [`RETRY_MAX`].
const RETRY_FIRST: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(3);

/// First port given to listeners on port 0 and to clients.
const PORT_FIRST: u16 = 40_000;
const PORTS: u16 = 20_000;

/// An event on the network, which happens at its time.
enum Event {
    /// The first outgoing segment of a socket reaches the other side, if the link lets it pass.
    Arrive { socket: u64 },
    /// A socket hears that so many of its bytes have arrived. `since`: when the acknowledgement
    /// was first sent.
    Acknowledge { socket: u64, bytes: usize, since: u64 },
    /// A socket hears that the other side is gone.
    Reset { socket: u64 },
    /// A client's request to connect reaches the other machine.
    Ask { dial: u64 },
    /// The answer to a request to connect comes back.
    Answer { dial: u64, result: Result<u64, io::ErrorKind> },
}

/// A machine on the network.
struct Host {
    /// Processes that this machine has had.
    life: u64,
    /// Whether the machine has power. False from a power cut until the machine is started again.
    is_on: bool,
}

/// Counts of the network that a test's judges may read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkFigures {
    /// Connections that were accepted by the other machine.
    pub connected: u64,
    /// Segments that reached the other side.
    pub delivered: u64,
    /// Segments that had to be sent again.
    pub retried: u64,
    /// Connections that ended with a reset, by side.
    pub resets: u64,
    /// Connections given up after [`GIVE_UP`], by side.
    pub given_up: u64,
    /// The most bytes that a side had written and not acknowledged.
    pub unacknowledged_most: usize,
    /// The most bytes that had arrived at a side and were not read.
    pub unread_most: usize,
}

#[derive(Default)]
struct State {
    hosts: Vec<Host>,
    links: BTreeMap<(usize, usize), Link>,
    /// Properties of links that stay, such as those of a long way; [`SimNetwork::heal`] does not
    /// change them.
    lasting: BTreeMap<(usize, usize), Link>,
    /// Properties of all links that have none of their own.
    usual: Link,
    blocked: BTreeSet<(usize, usize)>,
    ports_given: u16,
    made: u64,
    listeners: BTreeMap<(usize, SocketAddr, u64), Backlog>,
    sockets: BTreeMap<u64, Socket>,
    dials: BTreeMap<u64, dial::Dial>,
    events: BTreeMap<(u64, u64), Event>,
    figures: NetworkFigures,
    /// Wakers to call, and others to drop, when the lock is released: both may run foreign code
    /// that needs the lock.
    to_wake: Vec<Waker>,
    to_drop: Vec<Waker>,
}

/// The simulated network: see the head of this file.
pub struct SimNetwork {
    state: Mutex<State>,
    timeline: Arc<Timeline>,
    /// The clocks of each machine. Bytes leave at the sender's time, which may be ahead of the
    /// timeline.
    clocks: Vec<Arc<SimClock>>,
    random: SimRandom,
    trace: Arc<Trace>,
}

impl State {
    fn next_number(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    fn port(&mut self) -> u16 {
        self.ports_given = (self.ports_given + 1) % PORTS;
        PORT_FIRST + self.ports_given
    }

    fn schedule(&mut self, at: u64, event: Event) {
        let number = self.next_number();
        self.events.insert((at, number), event);
    }

    fn wake(&mut self, waker: Option<Waker>) {
        self.to_wake.extend(waker);
    }
}

/// The address of a machine: 10.0.0.1 is the first.
pub fn address_of(machine: usize) -> IpAddr {
    let number = u16::try_from(machine + 1).expect("a simulation has fewer machines");
    let [high, low] = number.to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(10, 0, high, low))
}

impl SimNetwork {
    pub(super) fn new(
        clocks: Vec<Arc<SimClock>>,
        usual: Link,
        timeline: Arc<Timeline>,
        random: SimRandom,
        trace: Arc<Trace>,
    ) -> Self {
        let hosts = clocks.iter().map(|_| Host { life: 0, is_on: true }).collect();
        let state = State { hosts, usual, ..State::default() };
        SimNetwork { state: Mutex::new(state), timeline, clocks, random, trace }
    }

    /// The present time of a machine on the timeline.
    fn present(&self, machine: usize) -> u64 {
        self.clocks.get(machine).expect("a machine of this world").present()
    }

    /// Changes the state, then wakes and drops the wakers that it left for that.
    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = lock(&self.state);
        let result = change(&mut state);
        let (to_wake, to_drop) = (std::mem::take(&mut state.to_wake), std::mem::take(&mut state.to_drop));
        drop(state);
        to_wake.into_iter().for_each(Waker::wake);
        drop(to_drop);
        result
    }

    /// The counts so far.
    pub fn figures(&self) -> NetworkFigures {
        lock(&self.state).figures
    }

    /// The time of the next event; None: there is none.
    pub(super) fn next_event(&self) -> Option<u64> {
        lock(&self.state).events.first_key_value().map(|((at, _), _)| *at)
    }

    /// Lets all due events happen; gives their number.
    pub(super) fn run_due(&self) -> usize {
        let now = self.timeline.nanos();
        let mut count = 0;
        self.with(|state| {
            while let Some(entry) = state.events.first_entry().filter(|entry| entry.key().0 <= now) {
                let event = entry.remove();
                count += 1;
                self.happen(state, now, event);
            }
        });
        count
    }

    fn happen(&self, state: &mut State, now: u64, event: Event) {
        match event {
            Event::Arrive { socket } => self.arrive(state, now, socket),
            Event::Acknowledge { socket, bytes, since } => self.acknowledge(state, now, socket, bytes, since),
            Event::Reset { socket } => self.hear_reset(state, socket),
            Event::Ask { dial } => self.asked(state, now, dial),
            Event::Answer { dial, result } => self.answered(state, now, dial, result),
        }
    }

    /// Whether a segment that is sent from one machine reaches the other.
    fn passes(&self, state: &State, from: usize, to: usize) -> bool {
        if from == to {
            return true;
        }
        let link = state.link(from, to);
        let is_lost = link.loss_percent > 0 && self.random.chance(link.loss_percent);
        !is_lost && !state.blocked.contains(&(from, to)) && state.hosts.get(to).is_some_and(|host| host.is_on)
    }

    /// Nanoseconds for which a segment is under way from one machine to the other.
    fn delay(&self, state: &State, from: usize, to: usize) -> u64 {
        if from == to { 0 } else { state.link(from, to).draw_delay(&self.random) }
    }
}

/// The network as one life of a machine sees it.
pub(super) struct HostNetwork {
    network: Arc<SimNetwork>,
    machine: usize,
    life: u64,
}

impl HostNetwork {
    pub(super) fn new(network: Arc<SimNetwork>, machine: usize) -> Self {
        let life = lock(&network.state).hosts.get(machine).expect("a machine of this world").life;
        HostNetwork { network, machine, life }
    }
}

impl Network for HostNetwork {
    fn bind_with(&self, address: SocketAddr, reuse_port: bool, _: SocketOptions) -> io::Result<Box<dyn Listener>> {
        self.network.listen(self.machine, self.life, address, reuse_port)
    }

    fn connect_with(&self, address: SocketAddr, options: SocketOptions) -> Connecting {
        dial::connect(self.network.clone(), self.machine, self.life, address, options.user_timeout)
    }
}

#[cfg(test)]
mod tests;
