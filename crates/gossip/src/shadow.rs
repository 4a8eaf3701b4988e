//! The shadow round: a look at the ring before this node shows itself.
//!
//! A SYN without digests asks for all that others know, and tells them nothing. The first answer
//! with states ends the round; an empty one says that its sender is at the same point. The caller
//! repeats [`Gossip::ask_seeds`] every five seconds, and gives up after a time of its own.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use internode::payload::gossip::{Ack, ApplicationState, States};

use crate::machine::{Gossip, Shadow};
use crate::status::Status;

/// How a shadow round ended.
#[derive(Clone, PartialEq, Debug)]
pub enum Seen {
    /// The ring as somebody in it knows it.
    Ring(States),
    /// All seeds look for a ring: there is none yet.
    Nobody,
}

impl Gossip {
    /// Begins the look.
    pub fn begin_shadow(&mut self) {
        assert!(!self.is_enabled, "a node looks at the ring before it shows itself");
        self.shadow = Some(Shadow::default());
    }

    /// Asks the seeds, and others whom storage knows.
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

    /// How the look has ended; `None`: not yet.
    pub fn seen(&self) -> Option<Seen> {
        let shadow = self.shadow.as_ref()?;
        if let Some(states) = &shadow.found {
            return Some(Seen::Ring(states.clone()));
        }
        let local = self.options.local;
        let seeds = || self.options.seeds.iter().filter(|seed| **seed != local);
        (seeds().all(|seed| shadow.looking.contains(seed))).then_some(Seen::Nobody)
    }

    /// Shows this node: from now on it answers, and begins rounds.
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
