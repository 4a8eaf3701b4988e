//! The way out, for good or for a while: the status becomes `shutdown`, and all live nodes are
//! told.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use gossip::{Gossip, Status};
use internode::payload::gossip::{ApplicationState, EndpointState, Shutdown};
use internode::{Envelope, Header, LinkType, MessagingVersion, Verb};

use crate::local_states::LocalApplicationStates;
use crate::start::Membership;

/// Longest time that a node that stops gives its last message to leave
/// (`shutdown_announce_in_ms`). Once no bytes wait for a socket it is [`SHUTDOWN_LINGER`] at most.
const SHUTDOWN_ANNOUNCE_MAX: Duration = Duration::from_secs(2);

/// Time after which bytes that a socket has taken are on their way, on the other side's machine
/// too.
const SHUTDOWN_LINGER: Duration = Duration::from_millis(200);

/// Time between two looks at the bytes that still wait.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Life of GOSSIP_SHUTDOWN.
const SHUTDOWN_LIFE: Duration = Duration::from_secs(10);

impl Membership {
    /// Tells the others that this node stops, and gives the message time to leave.
    pub async fn leave(&self) {
        self.stop_gossip();
        let env = &self.shared.env;
        let begun = env.now();
        while env.elapsed(begun) < SHUTDOWN_ANNOUNCE_MAX && self.has_urgent() {
            env.sleep(POLL_INTERVAL).await;
        }
        env.sleep(SHUTDOWN_LINGER).await;
    }

    /// Whether urgent messages to a live peer still wait to be sent.
    fn has_urgent(&self) -> bool {
        let Some(links) = self.shared.links() else { return false };
        let alive: Vec<_> = self.shared.with_gossip(|gossip, _| alive(gossip));
        alive.into_iter().any(|peer| links.waiting(peer, LinkType::Urgent) != (0, 0))
    }

    /// Tells all live nodes that this node stops, and takes no part in gossip from now on
    /// (`nodetool disablegossip`). Links stay open.
    pub fn stop_gossip(&self) {
        if self.shared.is_leaving.swap(true, Ordering::AcqRel) {
            return;
        }
        let (version, now) = (self.shared.version, self.shared.now());
        // a node that has left, or has not come in yet, is none whose stop means anything: the
        // status `shutdown` would make it a member that is down
        let stays_silent = |status: Status| status.is_dead() || status.is_joining();
        if self.shared.with_gossip(|gossip, _| {
            let is_silent = Status::of(gossip.local.state()).is_none_or(stays_silent);
            gossip.is_enabled &= !is_silent;
            is_silent
        }) {
            return;
        }
        let (alive, state): (Vec<_>, EndpointState) = self.shared.with_gossip(|gossip, _| {
            gossip.local.set(ApplicationState::RpcReady, "false");
            for of in [ApplicationState::StatusWithPort, ApplicationState::Status] {
                gossip.local.set(of, "shutdown,true");
            }
            gossip.is_enabled = false;
            let with_version = |to| (to, version_of(gossip, to).min(version));
            (alive(gossip).into_iter().map(with_version).collect(), gossip.local.state().clone())
        });
        let shutdown = Shutdown { state: Some(state) };
        for (to, version) in alive {
            let payload = match shutdown.encode(version) {
                Ok(payload) => Bytes::from(payload),
                Err(error) => return tracing::error!(%error, "the others cannot be told that this node stops"),
            };
            let id = self.shared.state().callbacks.next_id();
            let header = Header::new(Verb::GossipShutdown, id, now.wall_millis, SHUTDOWN_LIFE.as_millis() as u64);
            self.shared.send(to, Envelope { header, payload });
        }
    }

    /// Takes part in gossip again, as a node that has been started anew: only a greater generation
    /// brings it back for the nodes that were told of its stop (`nodetool enablegossip`). A node
    /// whose stop was not told, because it is no member, tells what it told before.
    pub fn start_gossip(&self, local_states: &LocalApplicationStates, is_ready: bool) {
        if !self.shared.is_leaving.swap(false, Ordering::AcqRel) {
            return;
        }
        self.shared.with_gossip(|gossip, now| {
            let seconds = i32::try_from(now.wall_millis / 1000).unwrap_or(i32::MAX);
            // there is none behind the last one, which a directory may have and nobody believes
            if let Some(next) = gossip.local.state().generation.checked_add(1) {
                gossip.local.begin_generation(next.max(seconds));
            }
            gossip.local.set(ApplicationState::RpcReady, is_ready.to_string());
            if Status::of(gossip.local.state()) == Some(Status::Shutdown) {
                local_states.set_normal(&mut gossip.local);
            }
            gossip.enable();
        });
    }

    /// Whether this node takes part in gossip (`nodetool statusgossip`).
    pub fn is_gossiping(&self) -> bool {
        !self.shared.is_leaving.load(Ordering::Acquire)
    }
}

fn alive(gossip: &Gossip) -> Vec<SocketAddr> {
    gossip.peers().iter().filter(|(_, peer)| peer.is_alive).map(|(to, _)| *to).collect()
}

/// The messaging version that a peer tells: while a ring changes its version it has nodes of both,
/// and a link uses the lower version of its two nodes. A version that this node does not know is a
/// later one.
fn version_of(gossip: &Gossip, peer: SocketAddr) -> MessagingVersion {
    let told = gossip.state(peer).and_then(|state| state.value(ApplicationState::NetVersion));
    let number = told.and_then(|text| text.parse().ok());
    number.and_then(MessagingVersion::from_number).unwrap_or(MessagingVersion::V13)
}
