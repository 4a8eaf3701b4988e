//! The round of gossip that runs every second: a heartbeat, SYNs to a few other nodes, a check of
//! all nodes.

use std::net::SocketAddr;

use internode::payload::gossip::Syn;

use crate::machine::{Gossip, Message, Now};
use crate::options::{LOCAL_PAUSE, PARTITIONER};

/// Draws a number below its argument, which is not 0.
pub type Draw<'a> = dyn FnMut(usize) -> usize + 'a;

impl Gossip {
    /// Runs one round; called every [`crate::options::ROUND`].
    pub fn tick(&mut self, now: Now, draw: &mut Draw<'_>) {
        if self.shadow.is_some() || !self.is_enabled {
            return;
        }
        self.local.increment_heartbeat();
        for to in self.partners(draw) {
            self.send_syn(to);
        }
        self.check(now);
    }

    pub(crate) fn syn(&self, digests: Vec<internode::payload::gossip::Digest>) -> Message {
        Message::Syn(Syn { cluster: self.options.cluster.clone(), partitioner: PARTITIONER.to_owned(), digests })
    }

    fn send_syn(&mut self, to: SocketAddr) {
        let syn = self.syn(self.digests());
        self.send(to, syn);
    }

    /// The nodes with which a round begins an exchange: one live peer, now and then an unreachable
    /// one, and a seed if that is needed to keep the ring from falling apart.
    fn partners(&self, draw: &mut Draw<'_>) -> Vec<SocketAddr> {
        let live: Vec<_> = self.peers.iter().filter(|(_, peer)| peer.is_alive).map(|(to, _)| *to).collect();
        let unreachable: Vec<_> = self.peers.iter().filter(|(_, peer)| !peer.is_alive).map(|(to, _)| *to).collect();
        let seeds: Vec<_> = self.options.seeds.iter().copied().filter(|seed| *seed != self.options.local).collect();
        let mut partners = Vec::with_capacity(3);
        let chosen = pick(&live, draw);
        partners.extend(chosen);
        // with probability unreachable / (live + 1)
        if !unreachable.is_empty() && draw(live.len() + 1) < unreachable.len() {
            partners.extend(pick(&unreachable, draw).filter(|to| !self.peers[to].is_dead_state()));
        }
        let met_seed = chosen.is_some_and(|chosen| seeds.contains(&chosen));
        if !seeds.is_empty() && (!met_seed || live.len() < seeds.len()) {
            let known = live.len() + unreachable.len();
            // with probability seeds / known, and always while nobody is alive
            if live.is_empty() || draw(known) < seeds.len() {
                partners.extend(pick(&seeds, draw));
            }
        }
        assert!(!partners.contains(&self.options.local), "a node begins no round with itself");
        partners
    }

    /// Convicts peers that are silent for too long, and forgets those that do not come back.
    fn check(&mut self, now: Now) {
        let paused = self.checked.is_some_and(|last| now.monotonic.saturating_sub(last) > LOCAL_PAUSE);
        self.checked = Some(now.monotonic);
        if paused {
            self.lenient_until = now.monotonic + LOCAL_PAUSE;
        }
        self.quarantined.retain(|_, quarantine| quarantine.until > now.monotonic);
        let is_known = |endpoint: &SocketAddr| self.peers.contains_key(endpoint);
        assert!(!self.quarantined.keys().any(is_known), "an endpoint that was removed is not known");
        if now.monotonic < self.lenient_until {
            return;
        }
        let threshold = self.options.convict_threshold;
        let silent =
            self.peers.iter().filter(|(_, peer)| peer.is_alive && peer.arrivals.phi(now.monotonic) > threshold);
        for endpoint in silent.map(|(endpoint, _)| *endpoint).collect::<Vec<_>>() {
            self.mark_dead(endpoint, now.monotonic);
        }
        let over = self.peers.iter().filter(|(_, peer)| peer.is_to_be_evicted(now.monotonic, now.wall_millis));
        for endpoint in over.map(|(endpoint, _)| *endpoint).collect::<Vec<_>>() {
            self.remove(endpoint, now);
        }
    }
}

fn pick(among: &[SocketAddr], draw: &mut Draw<'_>) -> Option<SocketAddr> {
    match among.len() {
        0 => None,
        count => {
            let place = draw(count);
            assert!(place < count, "a number is drawn below its bound");
            among.get(place).copied()
        }
    }
}
