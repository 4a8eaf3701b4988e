//! The state that the threads of membership share.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use env::{Env, Stream};
use gossip::options::ECHO_LIFE;
use gossip::{Event, Gossip, Message, Now, Output, Status};
use internode::payload::gossip::ApplicationState;
use internode::{Envelope, Header, LinkType, MessagingVersion, Verb};
use links::{Distance, Links, Peer};

use tokio::sync::oneshot;

use crate::callbacks::Callbacks;
use crate::logged_nodes::LoggedNodes;
use crate::request::{KeptBytes, RequestCallback, RequestFailure};
use crate::verbs::VerbCounters;

/// Life of gossip's messages.
const GOSSIP_LIFE: Duration = Duration::from_secs(300);

/// Follows the ring, and answers the requests that membership does not answer itself. Called on
/// the threads of membership: it must not wait.
pub trait MembershipHandler: Send + Sync {
    /// Called when nodes have come, changed, gone up or down, or are forgotten. The events of one
    /// message or round come together: in a large ring one message tells of many nodes with many
    /// values each.
    fn ring_changed(&self, gossip: &Gossip, events: &[Event]);

    /// The version of this node's schema.
    fn schema_version(&self) -> [u8; 16];

    /// The addresses that the seeds have by their names now; None: they have no names. Blocks while
    /// name servers are asked.
    fn seeds(&self) -> Option<Vec<SocketAddr>> {
        None
    }

    /// Called when a node has answered a request of another family, or has not answered in time,
    /// with the time that it took. Not called for a node that tells a failure. Called whether a
    /// caller waits for the answer or not.
    fn measured(&self, _peer: SocketAddr, _verb: Verb, _latency: Duration) {}

    /// A peer has opened a link for a stream; `input` holds the bytes that have come behind the
    /// handshake. Dropping the stream closes it.
    fn stream(&self, _from: &Peer, _stream: Box<dyn Stream>, _input: BytesMut) {}

    /// A request of another family. True: it is taken, and the handler answers it through
    /// [`Messenger::answer`]. False: its sender is told that it failed.
    fn requested(&self, via: &Messenger, from: &Peer, link: LinkType, message: Envelope) -> bool;
}

/// The way to other nodes, for asking and answering them. Clones share it. After the node has left
/// the ring it sends nothing any more. Its verbs are in [`crate::messenger`].
#[derive(Clone)]
pub struct Messenger(pub(crate) Arc<Shared>);

/// A request that waits for its answer.
pub(crate) struct Waiting {
    /// The question.
    pub verb: Verb,
    /// When the request was sent, in monotonic time.
    pub sent: Duration,
    pub receiver: ResponseReceiver,
}

/// The receiver of the answer to a request.
pub(crate) enum ResponseReceiver {
    /// Gossip, for its ECHO_REQ.
    Echo,
    /// A future that waits for the answer to a request of another family.
    Answer(oneshot::Sender<Result<Envelope, RequestFailure>>),
    /// A callback, for a request of another family.
    Callback(Arc<dyn RequestCallback>),
}

pub(crate) struct State {
    pub(crate) gossip: Gossip,
    pub(crate) callbacks: Callbacks<Waiting>,
}

pub(crate) struct Shared {
    pub(crate) env: Env,
    pub(crate) version: MessagingVersion,
    pub(crate) state: Mutex<State>,
    /// The links. None before they are open, and after the node has left.
    pub(crate) links: Mutex<Option<Arc<Links>>>,
    pub(crate) handler: Arc<dyn MembershipHandler>,
    /// Nodes of other rings that the log has named.
    pub(crate) logged_nodes: Mutex<LoggedNodes>,
    /// Counts of messages of other nodes by verb.
    pub(crate) verbs: VerbCounters,
    /// True: links to peers of the own data center go to their internal addresses
    /// (`prefer_local`).
    pub(crate) prefers_local: bool,
    /// True: ECHO is not answered any more, because one late answer would bring the node up again
    /// at its neighbours.
    pub(crate) is_leaving: AtomicBool,
}

impl Shared {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The links; None before they are open, and after the node has left.
    pub(crate) fn links(&self) -> Option<Arc<Links>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn now(&self) -> Now {
        let monotonic = Duration::from_nanos(self.env.clock.monotonic_nanos());
        Now { monotonic, wall_millis: self.env.clock.now_micros() / 1000 }
    }

    /// Looks the seeds up again. If no name has an address the known ones stay.
    pub(crate) async fn renew_seeds(&self) {
        let handler = self.handler.clone();
        let found = self.env.blocking("seeds", move || handler.seeds()).await;
        if let Some(seeds) = found.ok().flatten().filter(|seeds| !seeds.is_empty()) {
            self.with_gossip(|gossip, _| gossip.set_seeds(seeds));
        }
    }

    /// Tells callbacks that no answer has come in time.
    pub(crate) fn expire(&self) {
        let now = self.now();
        let late = self.state().callbacks.expire(now.monotonic);
        for (peer, Waiting { verb, sent, receiver }) in late {
            if !matches!(receiver, ResponseReceiver::Echo) {
                self.handler.measured(peer, verb, now.monotonic.saturating_sub(sent));
            }
            // a future finds its sender gone; gossip asks again by itself
            if let ResponseReceiver::Callback(callback) = receiver {
                callback.on_outcome(peer, Err(RequestFailure::TimedOut));
            }
        }
    }

    /// The place of a peer (same rack, data center or another), as gossip tells it.
    pub(crate) fn distance(&self, peer: SocketAddr) -> Distance {
        let state = self.state();
        let local = state.gossip.local.state();
        let Some(known) = state.gossip.state(peer) else { return Distance::OtherDataCenter };
        let same = |of| known.value(of).is_some() && known.value(of) == local.value(of);
        match (same(ApplicationState::Dc), same(ApplicationState::Rack)) {
            (true, true) => Distance::SameRack,
            (true, false) => Distance::OtherRack,
            (false, _) => Distance::OtherDataCenter,
        }
    }

    /// The address to which a link to a peer is opened: the one that the peer tells for its own
    /// data center, if this node is in it too and prefers that.
    pub(crate) fn route(&self, peer: SocketAddr) -> SocketAddr {
        if !self.prefers_local || self.distance(peer) == Distance::OtherDataCenter {
            return peer;
        }
        let state = self.state();
        let told = |of| state.gossip.state(peer).and_then(|known| known.value(of));
        let with_port = told(ApplicationState::InternalAddressAndPort).and_then(|text| text.parse().ok());
        let alone = || Some(SocketAddr::new(told(ApplicationState::InternalIp)?.parse().ok()?, peer.port()));
        with_port.or_else(alone).unwrap_or(peer)
    }

    pub(crate) fn send(&self, to: SocketAddr, message: Envelope) -> bool {
        self.send_on(to, None, message)
    }

    /// Sends a message on a link. False: it is not sent.
    pub(crate) fn send_on(&self, to: SocketAddr, link: Option<LinkType>, message: Envelope) -> bool {
        let Some(links) = self.links() else { return false };
        let verb = message.header.verb;
        let sent = match link {
            Some(link) => links.send_on(to, link, message),
            None => links.send(to, message),
        };
        if let Err(error) = &sent {
            tracing::debug!(%to, verb = verb.name(), %error, "a message is not sent");
        }
        sent.is_ok()
    }

    /// Logs a node whose clock was set far ahead when it started.
    fn warn_of_future_generation(&self, endpoint: SocketAddr, started: i64, now: Now) {
        let mut logged_nodes = self.logged_nodes.lock().unwrap_or_else(PoisonError::into_inner);
        if logged_nodes.is_to_be_logged(endpoint, now.monotonic) {
            let own = now.wall_millis / 1000;
            tracing::warn!(
                %endpoint,
                started,
                own,
                "a node is left out: it says that it was started more than a year ahead of this node's clock (seconds \
                 since 1970); set its clock, or this one's, and start it again"
            );
        }
    }

    /// Calls `act` with gossip, then sends the resulting messages and tells the resulting events.
    pub(crate) fn with_gossip<T>(&self, act: impl FnOnce(&mut Gossip, Now) -> T) -> T {
        let now = self.now();
        let mut state = self.state();
        let result = act(&mut state.gossip, now);
        let (mut messages, mut events, mut dead, mut gone) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for output in state.gossip.take_outputs() {
            match output {
                Output::WarnOfFutureGeneration(endpoint, started) => {
                    self.warn_of_future_generation(endpoint, started, now)
                }
                Output::Send(to, message) => messages.extend(envelope(&mut state, to, message, now).map(|e| (to, e))),
                Output::Notify(event) => {
                    if let Event::Up(endpoint) | Event::Down(endpoint) | Event::Removed(endpoint) = &event {
                        tracing::info!(%endpoint, ?event, "the ring has changed");
                    }
                    match event {
                        Event::Down(endpoint) => dead.push(endpoint),
                        Event::Removed(endpoint) => gone.push(endpoint),
                        Event::Joined(_) | Event::Changed(..) | Event::Up(_) => {}
                    }
                    if let Event::Joined(endpoint) = &event {
                        warn_of_duplicate_host_id(&state.gossip, *endpoint);
                    }
                    events.push(event);
                }
            }
        }
        if !events.is_empty() {
            self.handler.ring_changed(&state.gossip, &events);
        }
        drop(state);
        if let Some(links) = self.links().filter(|_| !dead.is_empty() || !gone.is_empty()) {
            dead.into_iter().for_each(|peer| links.reset(peer));
            gone.into_iter().for_each(|peer| links.forget(peer));
        }
        for (to, message) in messages {
            self.send(to, message);
        }
        result
    }
}

/// Warns of another node with the host id of this one: both were started on copies of one
/// directory, or this node has moved to another address and the old one is still remembered. As in
/// Cassandra this node stays, and the others keep the one that was started last.
fn warn_of_duplicate_host_id(gossip: &Gossip, endpoint: SocketAddr) {
    if let Some(host_id) = duplicate_host_id(gossip, endpoint) {
        tracing::warn!(
            %endpoint,
            host_id,
            "another node shows the host id of this one: is its directory a copy? The ring keeps the one that was started last"
        );
    }
}

/// The host id of this node, if an endpoint that is not leaving shows it too.
pub(crate) fn duplicate_host_id(gossip: &Gossip, endpoint: SocketAddr) -> Option<&str> {
    let shown = gossip.state(endpoint).filter(|state| !Status::of(state).is_some_and(|status| status.is_dead()))?;
    let own = gossip.local.state().value(ApplicationState::HostId)?;
    (shown.value(ApplicationState::HostId) == Some(own)).then_some(own)
}

/// The envelope of a message of gossip. `None`: it cannot be written, or too many wait for an
/// answer; gossip tries again by itself.
fn envelope(state: &mut State, to: SocketAddr, message: Message, now: Now) -> Option<Envelope> {
    let id = state.callbacks.next_id();
    let (verb, life, payload) = match &message {
        Message::Syn(syn) => (Verb::GossipDigestSyn, GOSSIP_LIFE, syn.encode()),
        Message::Ack(ack) => (Verb::GossipDigestAck, GOSSIP_LIFE, ack.encode()),
        Message::Ack2(ack2) => (Verb::GossipDigestAck2, GOSSIP_LIFE, ack2.encode()),
        Message::Echo => {
            let waiting = Waiting { verb: Verb::EchoReq, sent: now.monotonic, receiver: ResponseReceiver::Echo };
            let time = now.monotonic..now.monotonic + ECHO_LIFE;
            if !state.callbacks.add(id, to, time, KeptBytes::default(), || waiting) {
                return None;
            }
            (Verb::EchoReq, ECHO_LIFE, Ok(Vec::new()))
        }
    };
    match payload {
        Ok(payload) => {
            let header = Header::new(verb, id, now.wall_millis, life.as_millis() as u64);
            Some(Envelope { header, payload: Bytes::from(payload) })
        }
        Err(error) => {
            tracing::error!(%to, verb = verb.name(), %error, "a message of gossip cannot be written");
            None
        }
    }
}
