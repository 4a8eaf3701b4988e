//! One conditional statement on its way to an agreement: what all of its steps share.
//!
//! A step is a file beside this one. Replicas are asked side by side: this node by a call, the
//! others by messages.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use env::Instant;
use futures_util::stream::FuturesUnordered;
use internode::{Envelope, Verb};
use membership::Request;
use ring::{EndpointId, Replicas};
use schema::{TableId, TableMetadata};
use storage::StorageError;
use types::WriteKind;

use super::Cas;
use crate::cas_metrics::CasFigures;
use crate::coordinator::error::RequestError;
use crate::coordinator::plan::placement;
use crate::coordinator::write::distributed::RingPeers;
use crate::coordinator::write_answers::WriteAnswers;
use crate::node::Node;
use crate::traces;

/// The replicas that are asked in a round.
pub(super) struct Participants {
    /// The replicas of the partition that are up.
    pub live: Replicas,
    /// How many are a majority of all.
    pub required: u32,
}

/// The answers to come of a round; None: the replica has failed.
pub(super) type PendingAnswers<'a, T> = FuturesUnordered<Pin<Box<dyn Future<Output = (EndpointId, Option<T>)> + 'a>>>;

/// One statement on its way to an agreement.
pub(super) struct Agreement<'n> {
    pub node: &'n Node,
    pub others: RingPeers<'n>,
    pub cas: Cas<'n>,
    /// When the statement began: its time runs from there.
    pub begun: Instant,
    /// The time that a statement of v2 has, commits apart.
    pub limit: Duration,
    /// How often it was overtaken.
    pub contentions: u32,
    /// The figures in which the statement is counted.
    pub figures: &'n CasFigures,
    /// The next ballot is not before this time, microseconds.
    pub floor: i64,
}

impl<'n> Agreement<'n> {
    /// An agreement of which no replica has been asked yet.
    pub fn new(node: &'n Node, others: RingPeers<'n>, cas: Cas<'n>, begun: Instant, figures: &'n CasFigures) -> Self {
        let limit = node.timeouts().cas_contention;
        Self { node, others, cas, begun, limit, contentions: 0, figures, floor: i64::MIN }
    }

    /// The replicas that decide, as the ring is now. Refused where too few are up.
    pub fn participants(&mut self) -> Result<Participants, RequestError> {
        self.others.ring = self.node.ring();
        let Cas { table, key, serial, .. } = self.cas;
        let Some(placement) = placement(&self.others.ring, &table.keyspace)? else {
            let unknown = StorageError::UnknownTable { table: table.keyspace.clone() };
            return Err(RequestError::of_write(unknown.into(), WriteAnswers::of_one(serial, WriteKind::Cas)));
        };
        let plan = self.others.ring.plan_cas(placement, key.token, serial);
        let plan = plan.map_err(|shortage| RequestError::Unavailable { level: serial, shortage })?;
        Ok(Participants { live: plan.live, required: plan.required })
    }

    /// Answers that the serial level needs.
    pub fn block_for(&self) -> u32 {
        let Cas { table, key, serial, .. } = self.cas;
        let placement = self.others.ring.placement(&table.keyspace);
        let plan = placement.map(|placement| self.others.ring.plan_cas(placement, key.token, serial));
        match plan {
            Some(Ok(plan)) => plan.required,
            Some(Err(shortage)) => shortage.required,
            None => 1,
        }
    }

    /// Asks the replicas of a round: this node by a call, the others by a message.
    pub fn ask_all<'a, T: 'a, H: Future<Output = Option<T>> + 'a>(
        &'a self,
        participants: &Participants,
        request: &Request,
        here: impl Fn() -> H,
        decode: impl Fn(&Bytes) -> Option<T> + Copy + 'a,
    ) -> PendingAnswers<'a, T> {
        let ask = |replica: &EndpointId| -> Pin<Box<dyn Future<Output = (EndpointId, Option<T>)> + 'a>> {
            let replica = *replica;
            if replica == self.others.ring.local_id() {
                let here = here();
                return Box::pin(async move { (replica, here.await) });
            }
            let address = self.others.ring.endpoint(replica).address;
            self.trace_sending(request, address);
            let answer = self.others.messenger.request(address, request.clone());
            Box::pin(async move {
                let told = answer.await.ok().inspect(|envelope| self.trace_received(envelope, address));
                (replica, told.and_then(|envelope| decode(&envelope.payload)))
            })
        };
        participants.live.iter().map(ask).collect()
    }

    /// The table of an answer, if it is the statement's.
    pub fn table_of(&self, id: TableId) -> Option<Arc<TableMetadata>> {
        (id == self.cas.table.id).then(|| Arc::clone(self.cas.table))
    }

    /// A message of this statement, of which the session goes along if it is traced.
    pub fn request(&self, verb: Verb, payload: impl Into<Bytes>, life: Duration) -> Request {
        let parameters = traces::parameters(self.cas.trace);
        Request { parameters, ..Request::new(verb, payload, life) }
    }

    /// Traces a message that is about to be sent.
    pub fn trace_sending(&self, request: &Request, peer: SocketAddr) {
        self.trace(|| {
            let (verb, size) = (request.verb.name(), request.payload.len());
            format!("Sending {verb} message to /{peer} message size {size} bytes")
        });
    }

    /// Traces an answer.
    pub fn trace_received(&self, answer: &Envelope, peer: SocketAddr) {
        self.trace(|| format!("{} message received from /{peer}", answer.header.verb.name()));
    }

    /// Writes a trace line, if the request is traced.
    pub fn trace(&self, line: impl FnOnce() -> String) {
        if let Some(trace) = self.cas.trace {
            trace.event(line());
        }
    }
}
