//! [`Gossip`], its inputs and outputs. The verbs stand in modules of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use internode::payload::gossip::{Ack, Ack2, ApplicationState, EndpointState, States, Syn};

use crate::local::Local;
use crate::options::Options;
use crate::peer::Peer;
use crate::presence::{Absence, Watch};

/// The time at which something happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Now {
    /// A clock that only grows, from any origin.
    pub monotonic: Duration,
    /// The wall clock, milliseconds since 1970.
    pub wall_millis: i64,
}

/// A message of gossip.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // the names are those of the protocol
pub enum Message {
    Syn(Syn),
    Ack(Ack),
    Ack2(Ack2),
    /// ECHO_REQ. The caller gives its answer to [`Gossip::on_echo_response`].
    Echo,
}

/// A change of the ring as this node sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// An endpoint is new, or has started anew.
    Joined(SocketAddr),
    /// A value of an endpoint has changed.
    Changed(SocketAddr, ApplicationState),
    /// An endpoint can be reached.
    Up(SocketAddr),
    /// An endpoint is silent for too long, or said that it stops.
    Down(SocketAddr),
    /// An endpoint is forgotten.
    Removed(SocketAddr),
}

/// An act that the machine asks of its caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send a message. It may be lost.
    Send(SocketAddr, Message),
    /// Tell those who follow the ring.
    Notify(Event),
    /// Warn of an endpoint whose state is refused because its start lies too far in the future;
    /// its generation, seconds since 1970.
    WarnOfFutureGeneration(SocketAddr, i64),
}

/// The answers of a shadow round so far.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Shadow {
    /// Seeds that are in a shadow round themselves.
    pub(crate) looking: BTreeSet<SocketAddr>,
    pub(crate) found: Option<States>,
}

/// An endpoint that was removed: gossip about it is ignored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quarantine {
    /// Monotonic time until which gossip about the endpoint is ignored.
    pub until: Duration,
    /// The generation that was removed. Gossip of a later generation counts at once.
    pub generation: i32,
}

/// The state machine of gossip: all endpoints that this node knows, itself included.
#[derive(Debug)]
pub struct Gossip {
    pub(crate) options: Options,
    /// The state that this node tells of itself.
    pub local: Local,
    pub(crate) peers: BTreeMap<SocketAddr, Peer>,
    /// Endpoints that were removed.
    pub(crate) quarantined: BTreeMap<SocketAddr, Quarantine>,
    /// Whether SYNs are answered. False during the shadow round and after `nodetool
    /// disablegossip`.
    pub is_enabled: bool,
    /// When all peers were checked last; None: they were not yet.
    pub(crate) checked: Option<Duration>,
    /// Time before which no peer is convicted.
    pub(crate) lenient_until: Duration,
    pub(crate) shadow: Option<Shadow>,
    /// The watch over silences of members; None: none has begun.
    pub(crate) watch: Option<Watch>,
    pub(crate) outputs: Vec<Output>,
}

impl Gossip {
    /// Sets the addresses of the seeds.
    pub fn set_seeds(&mut self, seeds: Vec<SocketAddr>) {
        self.options.seeds = seeds;
    }

    /// A node that knows no other one yet.
    pub fn new(options: Options, local: Local) -> Self {
        Self {
            options,
            local,
            peers: BTreeMap::new(),
            quarantined: BTreeMap::new(),
            is_enabled: false,
            checked: None,
            lenient_until: Duration::ZERO,
            shadow: None,
            watch: None,
            outputs: Vec::new(),
        }
    }

    /// The identity of this node in gossip, and its constants.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The other nodes, by address.
    pub fn peers(&self) -> &BTreeMap<SocketAddr, Peer> {
        &self.peers
    }

    /// The state of an endpoint, this node included; None: the endpoint is not known.
    pub fn state(&self, endpoint: SocketAddr) -> Option<&EndpointState> {
        match endpoint == self.options.local {
            true => Some(self.local.state()),
            false => self.peers.get(&endpoint).map(|peer| &peer.state),
        }
    }

    /// Takes the acts that the machine has asked for since the last call. The caller does so after
    /// every other call.
    pub fn take_outputs(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    /// Takes an endpoint that storage knows from before the restart: it is down until it is heard
    /// of. The state has generation 0, so that any news replaces it.
    pub fn remember(&mut self, endpoint: SocketAddr, state: EndpointState, now: Now) {
        if endpoint != self.options.local {
            let remembered = || Peer { is_remembered: true, ..Peer::new(state, now.monotonic) };
            self.peers.entry(endpoint).or_insert_with(remembered);
        }
    }

    /// Called when this node tells that it joins. From now on the silences of members count,
    /// because a member may forget this node during one.
    pub fn watch_presence(&mut self, now: Now) {
        self.watch = Some(Watch::new(now.monotonic));
    }

    /// A silence in which a member may have forgotten that this node joins, since the watch began.
    /// None: there was none, or no watch has begun.
    pub fn absence(&self, now: Now) -> Option<Absence> {
        self.watch?.absence(self.peers.iter(), now.monotonic)
    }

    pub(crate) fn send(&mut self, to: SocketAddr, message: Message) {
        self.outputs.push(Output::Send(to, message));
    }

    pub(crate) fn notify(&mut self, event: Event) {
        self.outputs.push(Output::Notify(event));
    }
}
