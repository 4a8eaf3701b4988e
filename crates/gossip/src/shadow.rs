//! The shadow round: a look at the ring before this node shows itself.
//!
//! A SYN without digests asks for all states that others know, and tells them nothing. The first
//! answer with states ends the round; an empty one says that its sender is at the same point. The
//! caller repeats [`Gossip::ask_seeds`] every five seconds, and gives up after a time of its own.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use internode::payload::gossip::tokens::tokens_of;
use internode::payload::gossip::{Ack, ApplicationState, EndpointState, States, VersionedValue};

use crate::local::put;
use crate::machine::{Gossip, Shadow};
use crate::status::Status;

/// Whether a state is hearsay: a node remembers it from before its restart, and the endpoint has
/// told nothing since. The endpoint was a member then, because only members are remembered.
pub fn is_hearsay(state: &EndpointState) -> bool {
    let has_told = Status::of(state).is_some() || state.generation != 0 || state.heartbeat != 0;
    !has_told && state.value(ApplicationState::Tokens).is_some()
}

/// The hearsay as the state of the member that the endpoint was.
pub fn as_member(mut state: EndpointState) -> EndpointState {
    let tokens = state.value(ApplicationState::Tokens).and_then(|text| tokens_of(text).ok());
    let first = tokens.and_then(|tokens| tokens.first().copied()).unwrap_or_default();
    let status = VersionedValue { value: format!("NORMAL,{first}"), version: 0 };
    state.values.iter_mut().for_each(|(_, value)| value.version = 0);
    state.values.sort_by_key(|(of, _)| *of);
    state.values.dedup_by_key(|(of, _)| *of);
    put(&mut state, ApplicationState::StatusWithPort, status);
    state
}

/// The hearsay that is told of an endpoint: its host id, its tokens, and its data center and rack.
pub(crate) fn hearsay_of(state: &EndpointState) -> EndpointState {
    use ApplicationState::{Dc, HostId, Rack, Tokens};
    let is_told = |of: ApplicationState| matches!(of, Dc | HostId | Rack | Tokens);
    let values = state.values.iter().filter(|(of, _)| is_told(*of)).cloned().collect();
    EndpointState { generation: 0, heartbeat: 0, values }
}

/// How a shadow round ended.
#[derive(Clone, PartialEq, Debug)]
pub enum ShadowRoundResult {
    /// The ring, as a node in it knows it.
    Ring(States),
    /// All seeds look for a ring themselves: there is none yet.
    NoRing,
}

impl Gossip {
    /// Begins a look at the ring.
    pub fn begin_shadow(&mut self) {
        assert!(!self.is_enabled, "a node looks at the ring before it shows itself");
        self.shadow = Some(Shadow::default());
    }

    /// Asks the seeds, and other nodes that storage knows.
    pub fn ask_seeds(&mut self, others: &[SocketAddr]) {
        let local = self.options.local;
        let asked: BTreeSet<_> = self.options.seeds.iter().chain(others).copied().filter(|to| *to != local).collect();
        for to in asked {
            let syn = self.syn(Vec::new());
            self.send(to, syn);
        }
    }

    pub(crate) fn on_shadow_ack(&mut self, from: SocketAddr, ack: Ack) {
        let local = self.options.local;
        let Some(shadow) = &mut self.shadow else { return };
        if ack.states.is_empty() && ack.digests.is_empty() {
            shadow.looking.insert(from);
            return;
        }
        // somebody who knows this node without its host id knows too little of the ring yet
        let own = ack.states.iter().find(|(endpoint, _)| *endpoint == local).map(|(_, state)| state);
        let is_incomplete = own.is_some_and(|state| {
            let is_dead = Status::of(state).is_some_and(|status| status.is_dead());
            state.value(ApplicationState::HostId).is_none() && !is_dead
        });
        if !is_incomplete && !ack.states.is_empty() && shadow.found.is_none() {
            shadow.found = Some(ack.states);
        }
    }

    /// How the look has ended; `None`: it has not ended yet.
    pub fn shadow_round_result(&self) -> Option<ShadowRoundResult> {
        let shadow = self.shadow.as_ref()?;
        if let Some(states) = &shadow.found {
            return Some(ShadowRoundResult::Ring(states.clone()));
        }
        let local = self.options.local;
        let seeds = || self.options.seeds.iter().filter(|seed| **seed != local);
        (seeds().all(|seed| shadow.looking.contains(seed))).then_some(ShadowRoundResult::NoRing)
    }

    /// Shows this node: from now on it answers SYNs, and begins rounds.
    pub fn enable(&mut self) {
        self.shadow = None;
        self.is_enabled = true;
    }

    /// Whether a member that should be up has not given a sign of life yet.
    pub fn is_settling(&self) -> bool {
        let is_awaited = |status: Option<Status>| !matches!(status, Some(Status::Shutdown));
        self.peers.values().any(|peer| peer.is_member() && !peer.is_alive && is_awaited(peer.status()))
    }
}
