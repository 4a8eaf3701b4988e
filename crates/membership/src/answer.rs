//! Messages that come from a neighbour, and what is answered.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use internode::payload::failure::FailureReason;
use internode::payload::gossip::{Ack, Ack2, Shutdown, Syn};
use internode::payload::simple::decode_ping;
use internode::{Envelope, Flags, InternodeError, LinkType, Verb};
use links::{Peer, Receiver};

use crate::shared::{Asked, Shared};

impl Receiver for Shared {
    fn received(&self, from: &Peer, link: LinkType, message: Envelope) {
        let now = self.now();
        if message.header.is_expired(now.wall_millis) {
            return;
        }
        let verb = message.header.verb;
        if let Err(error) = self.handle(from, link, message) {
            tracing::warn!(peer = %from.address, verb = verb.name(), %error, "a message of another node cannot be read");
        }
    }
}

impl Shared {
    fn handle(&self, from: &Peer, link: LinkType, message: Envelope) -> Result<(), InternodeError> {
        let (payload, peer) = (&message.payload, from.address);
        match message.header.verb {
            Verb::GossipDigestSyn => {
                let syn = Syn::decode(payload)?;
                self.with_gossip(|gossip, _| {
                    if !gossip.is_of_this_cluster(&syn) {
                        tracing::warn!(%peer, cluster = syn.cluster, "a node of another cluster or partitioner is not answered");
                    }
                    gossip.on_syn(peer, &syn);
                });
            }
            Verb::GossipDigestAck => {
                let ack = Ack::decode(payload)?;
                self.with_gossip(|gossip, now| gossip.on_ack(peer, ack, now));
            }
            Verb::GossipDigestAck2 => {
                let ack2 = Ack2::decode(payload)?;
                self.with_gossip(|gossip, now| gossip.on_ack2(ack2, now));
            }
            Verb::GossipShutdown => {
                let shutdown = Shutdown::decode(payload, from.version)?;
                self.with_gossip(|gossip, now| gossip.on_shutdown(peer, shutdown.state, now));
            }
            Verb::EchoReq => {
                if !self.is_leaving.load(Ordering::Acquire) {
                    self.answer(from, None, &message, Vec::new());
                }
            }
            Verb::PingReq => {
                let asked = decode_ping(payload)?;
                self.answer(from, Some(asked), &message, Vec::new());
            }
            Verb::SchemaVersionReq => self.answer(from, None, &message, self.follower.schema_version().to_vec()),
            verb if verb.is_answer() => {
                let now = self.now();
                let asked = self.state().callbacks.take(message.header.id, peer, now.monotonic);
                if let (Some(Asked::Echo), Verb::EchoRsp) = (asked, verb) {
                    self.with_gossip(|gossip, now| gossip.echoed(peer, now));
                }
            }
            _ => {
                let header = message.header.clone();
                if !self.follower.requested(from, link, message) && header.flags.has(Flags::CALL_BACK_ON_FAILURE) {
                    let answer = header.answer(Verb::FailureRsp, self.now().wall_millis);
                    let payload = Bytes::from(FailureReason::Unknown.encode());
                    self.send(header.respond_to().unwrap_or(peer), Envelope { header: answer, payload });
                }
            }
        }
        Ok(())
    }

    fn answer(&self, from: &Peer, link: Option<LinkType>, request: &Envelope, payload: Vec<u8>) {
        let Some(verb) = request.header.verb.answer() else { return };
        let header = request.header.answer(verb, self.now().wall_millis);
        self.send_on(from.address, link, Envelope { header, payload: Bytes::from(payload) });
    }
}
