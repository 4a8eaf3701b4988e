//! Many gossip machines in one loop, without sockets: measures how many rounds news needs, and the
//! bytes of a round. `main.rs` beside this file prints the figures; `tests/scale.rs` holds a small
//! ring to its bounds.
//!
//! Every message is written and read again as on a link, and arrives within its round. The order
//! of nodes within a round, and their choice of partners, is drawn from a seed.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use gossip::{Gossip, Local, Message, Now, Options, Output};
use internode::payload::gossip::tokens::text_of;
use internode::payload::gossip::{Ack, Ack2, ApplicationState, Syn};

/// Number of nodes that every node has as its seeds.
const SEEDS: usize = 3;

/// Number of tokens of a node (`num_tokens`).
const TOKENS: usize = 16;

/// A ring of gossip machines.
pub struct Ring {
    nodes: Vec<Gossip>,
    seconds: u64,
    dice: u64,
    wire: VecDeque<(usize, usize, Message)>,
    /// Bytes of all messages so far, headers and frames not included.
    pub bytes: u64,
    /// Number of messages so far, without the answers to ECHO_REQ.
    pub messages: u64,
}

fn address(number: usize) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::from(0x0a00_0001 + number as u32).into(), 7000)
}

fn number_of(address: SocketAddr) -> usize {
    match address {
        SocketAddr::V4(address) => (u32::from(*address.ip()) - 0x0a00_0001) as usize,
        SocketAddr::V6(_) => unreachable!("nodes have IPv4 addresses"),
    }
}

/// A node with all the values that a Cassandra 5.0 node tells of itself.
fn node(number: usize) -> Gossip {
    use ApplicationState as S;
    let mut local = Local::new(1_700_000_000);
    let own = address(number);
    let tokens: Vec<i64> = (0..TOKENS).map(|token| (number * TOKENS + token) as i64 * 7_919_000_000_003).collect();
    for (of, value) in [
        (S::NetVersion, "13".to_owned()),
        (S::HostId, format!("00000000-0000-4000-8000-{number:012x}")),
        (S::NativeAddressAndPort, format!("{}:9042", own.ip())),
        (S::RpcAddress, own.ip().to_string()),
        (S::InternalAddressAndPort, own.to_string()),
        (S::InternalIp, own.ip().to_string()),
        (S::ReleaseVersion, "5.0.8".to_owned()),
        (S::SstableVersions, "big-nb,bti-da".to_owned()),
        (S::Dc, format!("dc{}", number % 3)),
        (S::Rack, format!("rack{}", number % 9)),
        (S::Load, "123456789.0".to_owned()),
        (S::Schema, "59adb24e-f3cd-3e02-97f0-5b395827453f".to_owned()),
        (S::Tokens, text_of(&tokens)),
        (S::StatusWithPort, format!("NORMAL,{}", tokens[0])),
        (S::Status, format!("NORMAL,{}", tokens[0])),
        (S::RpcReady, "true".to_owned()),
    ] {
        local.set(of, value);
    }
    let mut gossip = Gossip::new(Options::new(own, "scale", (0..SEEDS).map(address).collect()), local);
    gossip.enable();
    gossip
}

impl Ring {
    /// So many nodes, none of which knows another one.
    pub fn new(count: usize, seed: u64) -> Self {
        let nodes = (0..count).map(node).collect();
        Self { nodes, seconds: 0, dice: seed * 2 + 1, wire: VecDeque::new(), bytes: 0, messages: 0 }
    }

    /// Adds a node that knows no other one.
    pub fn add(&mut self) {
        self.nodes.push(node(self.nodes.len()));
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    fn now(&self) -> Now {
        let wall_millis = 1_700_000_000_000 + self.seconds as i64 * 1000;
        Now { monotonic: Duration::from_secs(self.seconds), wall_millis }
    }

    /// Runs one round of every node, with all messages that follow from it.
    pub fn round(&mut self) {
        self.seconds += 1;
        for number in 0..self.nodes.len() {
            let now = self.now();
            let dice = &mut self.dice;
            self.nodes[number].tick(now, &mut |bound| below(dice, bound));
            self.collect(number);
            while let Some((from, to, message)) = self.wire.pop_front() {
                self.deliver(from, to, message);
            }
        }
    }

    /// Runs rounds until `holds` is true, and gives their number; None: it was not within `limit`
    /// rounds.
    pub fn rounds_until(&mut self, limit: usize, holds: impl Fn(&Self) -> bool) -> Option<usize> {
        (1..=limit).find(|_| {
            self.round();
            holds(self)
        })
    }

    fn collect(&mut self, number: usize) {
        for output in self.nodes[number].take_outputs() {
            if let Output::Send(to, message) = output {
                self.wire.push_back((number, number_of(to), message));
            }
        }
    }

    fn deliver(&mut self, from: usize, to: usize, message: Message) {
        let now = self.now();
        self.messages += 1;
        let sender = address(from);
        match message {
            Message::Syn(syn) => {
                let bytes = syn.encode().expect("a SYN is written");
                self.bytes += bytes.len() as u64;
                self.nodes[to].on_syn(sender, &Syn::decode(&bytes).expect("it is read"));
            }
            Message::Ack(ack) => {
                let bytes = ack.encode().expect("an ACK is written");
                self.bytes += bytes.len() as u64;
                self.nodes[to].on_ack(sender, Ack::decode(&bytes).expect("it is read"), now);
            }
            Message::Ack2(ack2) => {
                let bytes = ack2.encode().expect("an ACK2 is written");
                self.bytes += bytes.len() as u64;
                self.nodes[to].on_ack2(Ack2::decode(&bytes).expect("it is read"), now);
            }
            Message::Echo => {
                self.nodes[from].on_echo_response(address(to), now);
                self.collect(from);
            }
        }
        self.collect(to);
    }

    /// Whether each node takes each other one for alive.
    pub fn is_whole(&self) -> bool {
        let others = self.nodes.len() - 1;
        self.nodes.iter().all(|node| node.peers().values().filter(|peer| peer.is_alive).count() == others)
    }

    /// Whether each node takes this one for alive.
    pub fn all_see(&self, number: usize) -> bool {
        let others = self.nodes.iter().enumerate().filter(|(other, _)| *other != number);
        others.map(|(_, node)| node).all(|node| node.peers().get(&address(number)).is_some_and(|peer| peer.is_alive))
    }

    /// Has a node tell another version of its schema.
    pub fn change_schema(&mut self, number: usize, version: &str) {
        self.nodes[number].local.set(ApplicationState::Schema, version);
    }

    /// Whether each node knows this version of a node's schema.
    pub fn all_know_schema(&self, number: usize, version: &str) -> bool {
        let known = |node: &Gossip| {
            let state = node.state(address(number));
            state.and_then(|state| state.value(ApplicationState::Schema)).is_some_and(|known| known == version)
        };
        self.nodes.iter().all(known)
    }
}

/// A number below `bound` (xorshift).
fn below(dice: &mut u64, bound: usize) -> usize {
    *dice ^= *dice << 13;
    *dice ^= *dice >> 7;
    *dice ^= *dice << 17;
    (*dice % bound as u64) as usize
}
