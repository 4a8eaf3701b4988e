//! Takes the states that peers send.

use std::net::SocketAddr;
use std::time::Duration;

use internode::payload::gossip::{ApplicationState, EndpointState, States, VersionedValue};

use crate::local::put;
use crate::machine::{Event, Gossip, Message, Now, Output, Quarantine};
use crate::options::{ECHO_LIFE, GENERATION_AHEAD_MAX, QUARANTINE};
use crate::peer::Peer;
use crate::status::Status;

impl Gossip {
    /// Takes the result of a look at the ring (the shadow round), so that the nodes in it need not
    /// be found again in rounds of gossip. Nodes that answer are alive. Endpoints that are only
    /// known from before the restart are greeted: chance would choose each of them only after some
    /// rounds.
    pub fn apply_shadow_round(&mut self, ring: States, now: Now) {
        assert!(self.is_enabled, "a node adopts the ring when it shows itself");
        self.apply(ring, now);
        let unheard = self.peers.iter().filter(|(_, peer)| peer.is_remembered).map(|(endpoint, _)| *endpoint);
        for endpoint in unheard.collect::<Vec<_>>() {
            self.greet(endpoint);
        }
    }

    /// Takes the states that others know. States of this node in them are ignored, because only
    /// this node changes them.
    pub(crate) fn apply(&mut self, mut states: States, now: Now) {
        // joining nodes last: their tokens are compared with those of all others
        let is_joining = |state: &EndpointState| Status::of(state).is_some_and(|status| status.is_joining());
        states.sort_by_key(|(endpoint, state)| (is_joining(state), state.generation, *endpoint));
        for (endpoint, state) in states {
            if endpoint == self.options.local || self.disbelieves(endpoint, &state, now) {
                continue;
            }
            match self.quarantined.get(&endpoint) {
                Some(quarantine) if state.generation <= quarantine.generation => continue,
                // it has been started since
                Some(_) => drop(self.quarantined.remove(&endpoint)),
                None => {}
            }
            self.apply_one(endpoint, state, now);
        }
    }

    fn apply_one(&mut self, endpoint: SocketAddr, state: EndpointState, now: Now) {
        let Some(peer) = self.peers.get_mut(&endpoint) else {
            let mut peer = Peer::new(EndpointState::default(), now.monotonic);
            peer.arrivals.report(now.monotonic);
            self.peers.insert(endpoint, peer);
            return self.apply_major_state_change(endpoint, state, now);
        };
        match state.generation.cmp(&peer.state.generation) {
            std::cmp::Ordering::Greater => {
                if !peer.is_alive {
                    peer.arrivals.clear();
                }
                peer.arrivals.report(now.monotonic);
                self.apply_major_state_change(endpoint, state, now);
            }
            std::cmp::Ordering::Equal => {
                let known = peer.state.max_version();
                if state.heartbeat > known {
                    peer.arrivals.report(now.monotonic);
                }
                if state.max_version() > known {
                    if let Some(watch) = &mut self.watch {
                        watch.hear(endpoint, peer, now.monotonic);
                    }
                    peer.updated = now.monotonic;
                    self.apply_new_states(endpoint, state);
                }
                self.probe(endpoint, now.monotonic);
            }
            std::cmp::Ordering::Less => {}
        }
    }

    /// Whether a state is of a start in the far future. No later start of the endpoint would count
    /// otherwise. The caller is asked to say so in the log.
    fn disbelieves(&mut self, endpoint: SocketAddr, state: &EndpointState, now: Now) -> bool {
        let started = i64::from(state.generation);
        let is_too_late = started > now.wall_millis / 1000 + GENERATION_AHEAD_MAX;
        if is_too_late {
            self.outputs.push(Output::WarnOfFutureGeneration(endpoint, started));
        }
        is_too_late
    }

    /// Replaces the state of an endpoint that is new here, or has been restarted.
    fn apply_major_state_change(&mut self, endpoint: SocketAddr, mut state: EndpointState, now: Now) {
        state.values.sort_by_key(|(of, _)| *of);
        state.values.dedup_by_key(|(of, _)| *of);
        let Some(peer) = self.peers.get_mut(&endpoint) else { return };
        peer.state = state;
        peer.is_remembered = false;
        peer.updated = now.monotonic;
        peer.echo_sent = None;
        let was_alive = std::mem::replace(&mut peer.is_alive, false);
        if was_alive {
            peer.since = now.monotonic;
            self.notify(Event::Down(endpoint));
        }
        self.notify(Event::Joined(endpoint));
        self.probe(endpoint, now.monotonic);
    }

    /// Takes the heartbeat and the values that are newer, the status first.
    fn apply_new_states(&mut self, endpoint: SocketAddr, state: EndpointState) {
        let Some(peer) = self.peers.get_mut(&endpoint) else { return };
        peer.state.heartbeat = peer.state.heartbeat.max(state.heartbeat);
        let mut values = state.values;
        values.sort_by_key(|(of, _)| (!is_status(*of), *of));
        let mut changed = Vec::new();
        for (of, value) in values {
            let known = peer.state.values.iter().find(|(known, _)| *known == of).map_or(i32::MIN, |(_, v)| v.version);
            if value.version > known {
                put(&mut peer.state, of, value);
                changed.push(of);
            }
        }
        for of in changed {
            self.notify(Event::Changed(endpoint, of));
        }
    }

    /// Asks an endpoint that is not alive for a sign of life: it is alive when it can be reached
    /// and can reach back.
    pub(crate) fn probe(&mut self, endpoint: SocketAddr, now: Duration) {
        let Some(peer) = self.peers.get_mut(&endpoint) else { return };
        let is_waiting = peer.echo_sent.is_some_and(|sent| now.saturating_sub(sent) < ECHO_LIFE);
        if peer.is_alive || peer.is_dead_state() || is_waiting {
            return;
        }
        peer.echo_sent = Some(now);
        self.send(endpoint, Message::Echo);
    }

    /// Called when an endpoint has answered an ECHO_REQ.
    pub fn on_echo_response(&mut self, endpoint: SocketAddr, now: Now) {
        let Some(peer) = self.peers.get_mut(&endpoint) else { return };
        if peer.echo_sent.take().is_none() || peer.is_alive || peer.is_dead_state() {
            return;
        }
        peer.is_alive = true;
        peer.since = now.monotonic;
        peer.arrivals.report(now.monotonic);
        self.notify(Event::Up(endpoint));
        self.greet(endpoint);
    }

    /// Greets a peer that is alive now: tells it of this node, with a SYN of two digests: this
    /// node's and the peer's.
    ///
    /// Two nodes that hear of each other from a third one know each other at once, not when one of
    /// their rounds happens to reach the other. A SYN may list any endpoints, so Cassandra answers
    /// this one like those of a round.
    fn greet(&mut self, endpoint: SocketAddr) {
        let digests = [self.options.local, endpoint].into_iter().filter_map(|of| self.digest(of)).collect();
        let syn = self.syn(digests);
        self.send(endpoint, syn);
    }

    pub(crate) fn mark_dead(&mut self, endpoint: SocketAddr, now: Duration) {
        let Some(peer) = self.peers.get_mut(&endpoint).filter(|peer| peer.is_alive) else { return };
        assert!(peer.echo_sent.is_none(), "an endpoint that is alive is asked for no sign of life");
        peer.is_alive = false;
        peer.since = now;
        self.notify(Event::Down(endpoint));
    }

    /// Called when an endpoint says that it stops. From version 13 on it sends its last state
    /// along. By that it is recognised if the message is about an earlier start: it may come when
    /// the endpoint has been started again.
    pub fn on_shutdown(&mut self, endpoint: SocketAddr, state: Option<EndpointState>, now: Now) {
        if state.as_ref().is_some_and(|state| self.disbelieves(endpoint, state, now)) {
            return;
        }
        let Some(peer) = self.peers.get_mut(&endpoint) else { return };
        match state {
            Some(state) if state.generation < peer.state.generation => return,
            Some(state) if Status::of(&state) == Some(Status::Shutdown) => {
                peer.state = EndpointState { values: Vec::new(), ..state };
                state.values.into_iter().for_each(|(of, value)| put(&mut peer.state, of, value));
            }
            Some(_) => return,
            None => {
                let version = peer.state.max_version().saturating_add(1);
                for of in [ApplicationState::Status, ApplicationState::StatusWithPort] {
                    put(&mut peer.state, of, VersionedValue { value: "shutdown,true".to_owned(), version });
                }
                let not_ready = VersionedValue { value: "false".to_owned(), version };
                put(&mut peer.state, ApplicationState::RpcReady, not_ready);
            }
        }
        // nothing that others still tell of this generation revives it
        peer.state.heartbeat = i32::MAX;
        peer.updated = now.monotonic;
        self.notify(Event::Changed(endpoint, ApplicationState::StatusWithPort));
        self.mark_dead(endpoint, now.monotonic);
    }

    /// Forgets an endpoint that nobody has told of since the restart. A node that knows it may
    /// bring it back; then the remembered state was out of date.
    pub fn forget_remembered(&mut self, endpoint: SocketAddr) {
        if self.peers.get(&endpoint).is_some_and(|peer| peer.is_remembered) {
            self.peers.remove(&endpoint);
            self.notify(Event::Removed(endpoint));
        }
    }

    /// Forgets an endpoint. Gossip about it is ignored for a while, because others would bring it
    /// back otherwise. Gossip about a later start is not ignored: a node that died while it joined
    /// may come again within the minute, and a node that ignored it would not write to it.
    /// Cassandra ignores that gossip, too.
    pub fn remove(&mut self, endpoint: SocketAddr, now: Now) {
        if let Some(peer) = self.peers.remove(&endpoint) {
            let generation = peer.state.generation;
            self.quarantined.insert(endpoint, Quarantine { until: now.monotonic + QUARANTINE, generation });
            self.notify(Event::Removed(endpoint));
        }
    }
}

fn is_status(state: ApplicationState) -> bool {
    matches!(state, ApplicationState::Status | ApplicationState::StatusWithPort)
}
