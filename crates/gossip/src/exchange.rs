//! The exchange of a round, SYN, ACK and ACK2: each node learns what the other one knows better.

use std::net::SocketAddr;

use internode::payload::gossip::{Ack, Ack2, Digest, EndpointState, States, Syn};

use crate::machine::{Gossip, Message, Now};
use crate::options::PARTITIONER;
use crate::peer::Peer;
use crate::shadow::hearsay_of;

impl Gossip {
    /// Called when a node begins a round with this one.
    ///
    /// Nothing is answered to another cluster or partitioner: this is how such a node is refused.
    /// The caller logs it ([`Gossip::difference`]).
    pub fn on_syn(&mut self, from: SocketAddr, syn: &Syn) {
        if self.difference(syn).is_some() {
            return;
        }
        self.note_knowledge(from, &syn.digests);
        let ack = match (self.is_enabled, syn.digests.is_empty()) {
            (true, true) => Ack { digests: Vec::new(), states: self.all_states() },
            (true, false) => self.compare(&syn.digests),
            // this node looks at the ring itself: an empty answer says so
            (false, true) if self.shadow.is_some() => Ack::default(),
            (false, _) => return,
        };
        self.send(from, Message::Ack(ack));
    }

    /// Notes how much of this node's state a peer has, by the digest of it that the peer has sent.
    /// The digest has the version that the peer knows, or above which it asks for more.
    fn note_knowledge(&mut self, from: SocketAddr, digests: &[Digest]) {
        let local = self.options.local;
        let known = digests.iter().find(|digest| digest.endpoint == local);
        if let (Some(digest), Some(peer)) = (known, self.peers.get_mut(&from)) {
            peer.knows = peer.knows.max((digest.generation, digest.max_version));
        }
    }

    /// Peers that are alive and have not shown yet that they know this node's state up to a
    /// version. A peer shows it when it begins a round with this node, or asks this one for more.
    pub fn unaware_of(&self, version: i32) -> impl Iterator<Item = SocketAddr> {
        let generation = self.local.state().generation;
        let is_unaware = move |peer: &Peer| peer.is_alive && peer.knows < (generation, version);
        self.peers.iter().filter(move |(_, peer)| is_unaware(peer)).map(|(address, _)| *address)
    }

    /// The words for the log why the sender of a SYN is a node of another ring; None: it is of
    /// this ring.
    pub fn difference(&self, syn: &Syn) -> Option<String> {
        let own = &self.options.cluster;
        if syn.cluster != *own {
            return Some(format!("its cluster_name is '{}', and this node's is '{own}'", syn.cluster));
        }
        (syn.partitioner != PARTITIONER)
            .then(|| format!("its partitioner is {}, and this node's is {PARTITIONER}", syn.partitioner))
    }

    /// The answer to a SYN of this node.
    pub fn on_ack(&mut self, from: SocketAddr, ack: Ack, now: Now) {
        if self.shadow.is_some() {
            return self.on_shadow_ack(from, ack);
        }
        if !self.is_enabled {
            return;
        }
        self.note_knowledge(from, &ack.digests);
        self.apply(ack.states, now);
        let asked = ack.digests.iter().filter_map(|digest| self.requested_state(digest));
        let states: States = asked.take(self.states_max()).collect();
        self.send(from, Message::Ack2(Ack2 { states }));
    }

    /// Takes the states that this node asked for in its ACK.
    pub fn on_ack2(&mut self, ack2: Ack2, now: Now) {
        if self.is_enabled {
            self.apply(ack2.states, now);
        }
    }

    /// The digests of all known endpoints, this node first.
    pub(crate) fn digests(&self) -> Vec<Digest> {
        self.states().map(|(endpoint, state)| digest_of(endpoint, state)).collect()
    }

    /// The digest of one endpoint; None: it is not known.
    pub(crate) fn digest(&self, endpoint: SocketAddr) -> Option<Digest> {
        self.state(endpoint).map(|state| digest_of(endpoint, state))
    }

    fn states(&self) -> impl Iterator<Item = (SocketAddr, &EndpointState)> {
        let peers = self.peers.iter().map(|(endpoint, peer)| (*endpoint, &peer.state));
        std::iter::once((self.options.local, self.local.state())).chain(peers)
    }

    /// All states, for a node that looks at the ring. The state of an endpoint that is only
    /// remembered from before this node's restart is told without a status, as hearsay
    /// ([`crate::shadow::is_hearsay`]): a node that is down could not be replaced otherwise once
    /// all others had been restarted (CASSANDRA-16213). `Gossiper.examineShadowState`.
    fn all_states(&self) -> States {
        let told = |(endpoint, state): (SocketAddr, &EndpointState)| match self.is_remembered(endpoint) {
            true => (endpoint, hearsay_of(state)),
            false => (endpoint, state.clone()),
        };
        self.states().map(told).collect()
    }

    fn is_remembered(&self, endpoint: SocketAddr) -> bool {
        self.peers.get(&endpoint).is_some_and(|peer| peer.is_remembered)
    }

    /// Most states of an answer: one of each endpoint that is known. A message with more digests
    /// than that repeats some, and would get an answer a hundred times its size.
    fn states_max(&self) -> usize {
        self.peers.len() + 1
    }

    /// The digests to ask for and the states to send unasked. Endpoints that the digests leave out
    /// are not volunteered.
    fn compare(&self, digests: &[Digest]) -> Ack {
        let mut ack = Ack::default();
        for digest in digests {
            let Some(known) = self.state(digest.endpoint) else {
                ack.digests.push(Digest { max_version: 0, ..*digest });
                continue;
            };
            if ack.states.len() == self.states_max() {
                continue;
            }
            let (generation, max_version) = (known.generation, known.max_version());
            let is_local = digest.endpoint == self.options.local;
            if digest.generation == generation && digest.max_version == max_version {
                continue;
            }
            if is_local || digest.generation < generation {
                ack.states.push((digest.endpoint, known.clone()));
            } else if digest.generation > generation {
                ack.digests.push(Digest { max_version: 0, ..*digest });
            } else if digest.max_version > max_version {
                ack.digests.push(Digest { max_version, ..*digest });
            } else {
                ack.states.push((digest.endpoint, newer_than(known, digest.max_version)));
            }
        }
        ack
    }

    /// The state of one endpoint that a digest in an ACK asks for; None: there is nothing newer.
    fn requested_state(&self, digest: &Digest) -> Option<(SocketAddr, EndpointState)> {
        let known = self.state(digest.endpoint).filter(|_| !self.is_remembered(digest.endpoint))?;
        let is_local = digest.endpoint == self.options.local;
        let state = match is_local || digest.generation < known.generation {
            true => known.clone(),
            false => newer_than(known, digest.max_version),
        };
        Some((digest.endpoint, state))
    }
}

fn digest_of(endpoint: SocketAddr, state: &EndpointState) -> Digest {
    Digest { endpoint, generation: state.generation, max_version: state.max_version() }
}

/// The part of a state that is newer than a version: the heartbeat, and the values above the
/// version.
fn newer_than(state: &EndpointState, version: i32) -> EndpointState {
    let values = state.values.iter().filter(|(_, value)| value.version > version).cloned().collect();
    EndpointState { values, ..*state }
}
