//! Messages that come from a neighbour, and the answers to them.

use std::net::SocketAddr;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use bytes::{Bytes, BytesMut};
use env::Stream;
use env::defects::{Defect, is_on};
use gossip::Now;
use internode::payload::failure;
use internode::payload::gossip::{Ack, Ack2, ApplicationState, Shutdown, States, Syn};
use internode::payload::simple::decode_ping;
use internode::{Envelope, InternodeError, LinkType, Verb};
use links::{Distance, Peer, Receiver};
use types::FailureReason;

use crate::request::RequestFailure;
use crate::shared::{Messenger, ResponseReceiver, Waiting};

impl Receiver for Messenger {
    fn distance(&self, peer: SocketAddr) -> Distance {
        self.0.distance(peer)
    }

    fn route(&self, peer: SocketAddr) -> SocketAddr {
        self.0.route(peer)
    }

    fn received(&self, from: &Peer, link: LinkType, message: Envelope) -> Result<(), InternodeError> {
        self.0.verbs.receive(message.header.verb);
        self.handle(from, link, message)
    }

    fn expired(&self, verb: Verb) {
        self.0.verbs.drop(verb);
    }

    fn stream(&self, from: &Peer, stream: Box<dyn Stream>, input: BytesMut) {
        self.0.handler.stream(from, stream, input);
    }
}

/// Loses a value of a received message. Only in a build for tests that has switched this defect
/// on.
fn lose_one_value(states: &mut States) {
    if is_on(Defect::DeafToGossip) {
        let forgotten = ApplicationState::SstableVersions;
        states.iter_mut().for_each(|(_, told)| told.values.retain(|(state, _)| *state != forgotten));
    }
}

impl Messenger {
    fn warn_of_other_cluster(&self, peer: SocketAddr, difference: &str, now: Now) {
        let mut logged_nodes = self.0.logged_nodes.lock().unwrap_or_else(PoisonError::into_inner);
        if logged_nodes.is_to_be_logged(peer, now.monotonic) {
            tracing::warn!(%peer, "a node of another ring is not answered: {difference}");
        }
    }

    fn handle(&self, from: &Peer, link: LinkType, message: Envelope) -> Result<(), InternodeError> {
        let (payload, peer) = (&message.payload, from.address);
        match message.header.verb {
            Verb::GossipDigestSyn => {
                let syn = Syn::decode(payload)?;
                self.0.with_gossip(|gossip, now| {
                    if let Some(difference) = gossip.difference(&syn) {
                        self.warn_of_other_cluster(peer, &difference, now);
                    }
                    gossip.on_syn(peer, &syn);
                });
            }
            Verb::GossipDigestAck => {
                let mut ack = Ack::decode(payload)?;
                lose_one_value(&mut ack.states);
                self.0.with_gossip(|gossip, now| gossip.on_ack(peer, ack, now));
            }
            Verb::GossipDigestAck2 => {
                let mut ack2 = Ack2::decode(payload)?;
                lose_one_value(&mut ack2.states);
                self.0.with_gossip(|gossip, now| gossip.on_ack2(ack2, now));
            }
            Verb::GossipShutdown => {
                let shutdown = Shutdown::decode(payload, from.version)?;
                self.0.with_gossip(|gossip, now| gossip.on_shutdown(peer, shutdown.state, now));
            }
            Verb::EchoReq => {
                if !self.0.is_leaving.load(Ordering::Acquire) {
                    self.answer_on(from, None, &message, Vec::new());
                }
            }
            Verb::PingReq => {
                let asked = decode_ping(payload)?;
                self.answer_on(from, Some(asked), &message, Vec::new());
            }
            Verb::SchemaVersionReq => self.answer_on(from, None, &message, self.0.handler.schema_version().to_vec()),
            verb if verb.is_answer() => {
                let now = self.0.now();
                let waiting = self.0.state().callbacks.take(message.header.id, peer, now.monotonic);
                let Some(Waiting { verb: question, sent, receiver }) = waiting else { return Ok(()) };
                if verb != Verb::FailureRsp && !matches!(receiver, ResponseReceiver::Echo) {
                    self.0.handler.measured(peer, question, now.monotonic.saturating_sub(sent));
                }
                match (receiver, verb) {
                    (ResponseReceiver::Echo, Verb::EchoRsp) => {
                        self.0.with_gossip(|gossip, now| gossip.on_echo_response(peer, now));
                    }
                    (ResponseReceiver::Answer(waits), Verb::FailureRsp) => {
                        // who has asked may have stopped waiting
                        drop(waits.send(Err(RequestFailure::Failed(failure::decode(payload)?))));
                    }
                    (ResponseReceiver::Answer(waits), _) => drop(waits.send(Ok(message))),
                    (ResponseReceiver::Callback(callback), Verb::FailureRsp) => {
                        // a reason that cannot be read is a failure all the same
                        let reason = failure::decode(payload).unwrap_or(FailureReason::Unknown);
                        callback.on_outcome(peer, Err(RequestFailure::Failed(reason)));
                    }
                    (ResponseReceiver::Callback(callback), _) => callback.on_outcome(peer, Ok(message)),
                    (ResponseReceiver::Echo, _) => {}
                }
            }
            _ => {
                let header = message.header.clone();
                if !self.0.handler.requested(self, from, link, message) {
                    self.answer(from, &header, Err(FailureReason::Unknown));
                }
            }
        }
        Ok(())
    }

    /// Answers a question of membership itself, on a link of the asker's choice.
    fn answer_on(&self, from: &Peer, link: Option<LinkType>, request: &Envelope, payload: Vec<u8>) {
        let Some(verb) = request.header.verb.answer() else { return };
        let header = request.header.answer(verb, self.0.now().wall_millis);
        self.0.send_on(from.address, link, Envelope { header, payload: Bytes::from(payload) });
    }
}
