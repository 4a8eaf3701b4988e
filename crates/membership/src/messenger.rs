//! The verbs of [`Messenger`]: ask, tell, answer.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use gossip::Gossip;
use internode::payload::failure;
use internode::payload::gossip::{Ack2, EndpointState};
use internode::{Envelope, Flags, Header, Parameter, Verb};
use links::{Distance, InboundCounts, OutboundCounts, Peer, StreamOpener};
use tokio::sync::oneshot;
use types::FailureReason;

use crate::request::{KeptBytes, Pending, Request, RequestCallback, RequestFailure};
use crate::shared::{Messenger, ResponseReceiver, State, Waiting};
use crate::verbs::VerbCounts;

impl Messenger {
    /// Asks a node.
    pub fn request(&self, to: SocketAddr, request: Request) -> Pending {
        self.request_through(to, &[], request).pop().expect("one node is asked").1
    }

    /// Asks a node, which passes the request on to `others` (FORWARD_TO); each answers this node.
    /// The answers are in the order `to`, `others`.
    pub fn request_through(
        &self,
        to: SocketAddr,
        others: &[SocketAddr],
        request: Request,
    ) -> Vec<(SocketAddr, Pending)> {
        let mut sent = Vec::with_capacity(1 + others.len());
        let refused = self.send_asked(to, others, request, KeptBytes::default(), |peer| {
            let (tell, told) = oneshot::channel();
            sent.push((peer, Pending::sent(told)));
            ResponseReceiver::Answer(tell)
        });
        let mut sent = sent.into_iter().filter(|(peer, _)| !refused.contains(peer));
        let pending = |peer| match refused.contains(&peer) {
            true => (peer, Pending::refused()),
            false => sent.next().expect("whoever is not refused is sent the request"),
        };
        let answers: Vec<_> = std::iter::once(to).chain(others.iter().copied()).map(pending).collect();
        assert!(sent.next().is_none(), "each answer that is waited for is given to the caller");
        answers
    }

    /// Asks a node, which passes the request on to `others`. `callback` is called exactly once for
    /// each of them; before this returns if the request cannot be sent.
    pub fn ask(&self, to: SocketAddr, others: &[SocketAddr], request: Request, callback: &Arc<dyn RequestCallback>) {
        self.ask_keeping(to, others, request, KeptBytes::default(), callback);
    }

    /// Does the work of [`Self::ask`] for a callback that keeps bytes of the request until it has
    /// heard of all nodes.
    pub fn ask_keeping(
        &self,
        to: SocketAddr,
        others: &[SocketAddr],
        request: Request,
        kept: KeptBytes,
        callback: &Arc<dyn RequestCallback>,
    ) {
        for peer in self.send_asked(to, others, request, kept, |_| ResponseReceiver::Callback(Arc::clone(callback))) {
            callback.on_outcome(peer, Err(RequestFailure::Refused));
        }
    }

    /// Whether a node that answers in time has used up its part of the bytes that callbacks keep.
    /// `left`: bytes that all nodes together may still have. A caller that can wait asks the node
    /// later; a request is not refused.
    pub fn is_busy(&self, peer: SocketAddr, left: usize) -> bool {
        let now = self.0.now().monotonic;
        self.0.state().callbacks.is_busy(peer, left, now)
    }

    /// Registers the callback, and sends. Gives the peers to which the request is not
    /// sent, and which are not registered: those for which too many requests wait already, or all
    /// if it cannot be sent, without those whose time was over, of which the callback has heard.
    /// If `to` is one of them the next peer passes the request on.
    fn send_asked(
        &self,
        to: SocketAddr,
        others: &[SocketAddr],
        request: Request,
        kept: KeptBytes,
        mut who: impl FnMut(SocketAddr) -> ResponseReceiver,
    ) -> Vec<SocketAddr> {
        let now = self.0.now();
        let time = now.monotonic..now.monotonic + request.life;
        let (verb, sent) = (request.verb, now.monotonic);
        let mut refused = Vec::new();
        let mut add = |state: &mut State, id, peer| {
            let waiting = || Waiting { verb, sent, receiver: who(peer) };
            let is_added = state.callbacks.add(id, peer, time.clone(), kept, waiting);
            if !is_added {
                refused.push(peer);
            }
            is_added
        };
        let mut state = self.0.state();
        let id = state.callbacks.next_id();
        let first = Some(to).filter(|to| add(&mut state, id, *to));
        let mut behind: Vec<SocketAddr> = others.iter().copied().filter(|peer| add(&mut state, id, *peer)).collect();
        drop(state);
        let first = match first {
            None if behind.is_empty() => return refused,
            None => behind.remove(0),
            Some(first) => first,
        };
        let mut header = self.header(&request, id);
        if !behind.is_empty() {
            // a node of 5.0 answers with the message's own id, whatever is listed
            let forward = behind.iter().map(|other| (*other, id)).collect();
            header.parameters.push(Parameter::ForwardTo(forward));
        }
        if !self.0.send(first, Envelope { header, payload: request.payload }) {
            let asked = std::iter::once(first).chain(behind);
            let mut state = self.0.state();
            let withdrawn: Vec<_> = asked.map(|peer| (peer, state.callbacks.withdraw(id, peer))).collect();
            drop(state);
            // who asks has heard already of a peer whose time was over in between
            refused.extend(withdrawn.into_iter().filter_map(|(peer, waited)| waited.map(|_| peer)));
        }
        refused
    }

    /// Tells a node something without an answer. False: the message was not sent.
    pub fn tell(&self, to: SocketAddr, request: Request) -> bool {
        let id = self.0.state().callbacks.next_id();
        let header = self.header(&request, id);
        self.0.send(to, Envelope { header, payload: request.payload })
    }

    fn header(&self, request: &Request, id: u64) -> Header {
        let life = u64::try_from(request.life.as_millis()).unwrap_or(u64::MAX);
        let header = Header::new(request.verb, id, self.0.now().wall_millis, life);
        Header { flags: request.flags, parameters: request.parameters.clone(), ..header }
    }

    /// Answers what a peer has asked: with the payload of the verb's answer, or with the reason
    /// why this node failed, if the peer wants to know it.
    pub fn answer(&self, from: &Peer, request: &Header, answer: Result<Bytes, FailureReason>) {
        self.answer_with(from, request, answer, Vec::new());
    }

    /// Does the work of `Messenger::answer`, with parameters beside those of the request.
    pub fn answer_with(
        &self,
        from: &Peer,
        request: &Header,
        answer: Result<Bytes, FailureReason>,
        parameters: Vec<Parameter>,
    ) {
        let (verb, payload) = match (answer, request.verb.answer()) {
            (Ok(payload), Some(verb)) => (verb, payload),
            (Ok(_), None) => return,
            (Err(_), _) if !request.flags.has(Flags::CALL_BACK_ON_FAILURE) => return,
            (Err(reason), _) => (Verb::FailureRsp, Bytes::from(failure::encode(reason))),
        };
        let mut header = request.answer(verb, self.0.now().wall_millis);
        header.parameters.extend(parameters);
        let to = request.respond_to().unwrap_or(from.address);
        let is_sent = self.0.send(to, Envelope { header, payload });
        // whoever asked is told at once that no answer comes: it may be larger than messages may be
        if !is_sent && verb != Verb::FailureRsp && request.flags.has(Flags::CALL_BACK_ON_FAILURE) {
            let header = request.answer(Verb::FailureRsp, self.0.now().wall_millis);
            self.0.send(to, Envelope { header, payload: failure::encode(FailureReason::Unknown).into() });
        }
    }

    /// Sends a message unchanged. False: it was not sent.
    pub fn send(&self, to: SocketAddr, message: Envelope) -> bool {
        self.0.send(to, message)
    }

    /// Opens links for streams; None: this node has left.
    pub fn streams(&self) -> Option<StreamOpener> {
        self.0.links().map(|links| links.streams())
    }

    /// The place of a node (same rack, data center or another), as gossip tells it.
    pub fn distance(&self, peer: SocketAddr) -> Distance {
        self.0.distance(peer)
    }

    /// Counters of the links that this node opens, by peer and link. Empty once the node has left.
    pub fn outbound_counts(&self) -> Vec<OutboundCounts> {
        self.0.links().map(|links| links.outbound_counts()).unwrap_or_default()
    }

    /// Counters of the links that others open, by peer and link. Empty once this node has left.
    pub fn inbound_counts(&self) -> Vec<InboundCounts> {
        self.0.links().map(|links| links.inbound_counts()).unwrap_or_default()
    }

    /// Counts of messages of other nodes by verb, in the order of the verbs' numbers.
    pub fn verb_counts(&self) -> Vec<VerbCounts> {
        self.0.verbs.counts()
    }

    /// Calls `act` with gossip, to look at the state of the others or to change what this node
    /// tells.
    pub fn with_gossip<T>(&self, act: impl FnOnce(&mut Gossip) -> T) -> T {
        self.0.with_gossip(|gossip, _| act(gossip))
    }

    /// Takes in what an endpoint tells of itself, outside of a round of gossip.
    pub fn apply_endpoint_state(&self, endpoint: SocketAddr, state: EndpointState) {
        self.0.with_gossip(|gossip, now| gossip.on_ack2(Ack2 { states: vec![(endpoint, state)] }, now));
    }

    /// Whether the sender of a request does not wait for its answer any more, by this node's
    /// clock.
    pub fn is_expired(&self, header: &Header) -> bool {
        header.is_expired(self.0.now().wall_millis)
    }
}
