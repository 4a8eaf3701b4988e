//! Writes among several nodes: each mutation goes to its own replicas and has its own answers.
//!
//! 1. All mutations are planned; where the replicas of one are too few nothing is sent.
//! 2. While a replica that answers in time has its part of the bytes that may be unanswered, the
//!    request waits: its client is held back, and no write is refused.
//! 3. Each is sent to its live peers: one message to each of this data center, and one to each
//!    other data center, where the receiver passes it on. Replicas that are down get a hint.
//! 4. Those of which this node is a replica are applied here, as one step.
//! 5. The wait for the answers is given ([`super::super::acknowledgement::replica_wait`]).
//!
//! Agrees with `org.apache.cassandra.service.StorageProxy` (`mutate`, `sendToHintedReplicas`).

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use internode::Verb;
use membership::{Messenger, Request, RequestCallback};
use ring::{EndpointId, Replication, Ring};
use rows::Mutation;
use rows::codec::encode_mutation;
use rows::command::TraceSink;
use storage::StorageError;
use storage::write::room_of;
use types::{Consistency, WriteKind};

use crate::coordinator::acknowledgement::Acknowledgement;
use crate::coordinator::acknowledgement::replica_wait::ReplicaWait;
use crate::coordinator::error::RequestError;
use crate::coordinator::pending_write::PendingWrite;
use crate::coordinator::plan::placement;
use crate::coordinator::write_answers::WriteAnswers;
use crate::hints::Hintable;
use crate::node::Node;
use crate::replica::apply::{Logged, WriteError, more_time, within};
use crate::stripes::StripeGuards;
use crate::traces;

/// One part in so many of the bytes that may be unanswered. While fewer bytes are unanswered no
/// peer can have reached its own limit, which is half of the bytes that are left.
const SCARCE_PART: usize = 3;

/// Time between two looks whether a request has room.
const ROOM_LOOK: Duration = Duration::from_millis(10);

/// A request waits for room for at most this part of its timeout; then it is sent all the same.
const ROOM_WAIT_PART: u32 = 2;

/// The other nodes of the ring, and the way to them.
pub(crate) struct RingPeers<'n> {
    /// Sends messages to the other nodes.
    pub messenger: &'n Messenger,
    /// The ring: this node and at least one more.
    pub ring: Arc<Ring>,
    /// The sink of trace lines, whose session is named in messages to other nodes; None: the
    /// request is not traced.
    pub trace: Option<Arc<dyn TraceSink>>,
}

/// A mutation before it is sent.
pub(crate) struct PlannedWrite {
    /// The mutation and its live replicas.
    pub sent: Arc<PendingWrite>,
    /// Replicas that are down.
    pub down: Vec<EndpointId>,
    /// The mutation as it is sent.
    pub payload: Bytes,
    /// The mutations of the request, and the position of this one.
    of: (Arc<[Mutation]>, usize),
}

impl PlannedWrite {
    /// The mutation.
    pub fn mutation(&self) -> &Mutation {
        let (mutations, position) = &self.of;
        &mutations[*position]
    }
}

impl RingPeers<'_> {
    /// These nodes, asked for a request that may be traced.
    pub fn traced(self, trace: Option<Arc<dyn TraceSink>>) -> Self {
        Self { trace, ..self }
    }

    /// A message of the request, of which the session goes along if it is traced. Nothing is sent
    /// yet.
    pub fn request_to(
        &self,
        peers: impl Iterator<Item = EndpointId>,
        verb: Verb,
        payload: impl Into<Bytes>,
        life: Duration,
    ) -> Request {
        let parameters = traces::parameters(self.trace.as_deref());
        let request = Request { parameters, ..Request::new(verb, payload, life) };
        if let Some(trace) = &self.trace {
            for peer in peers {
                let (address, size) = (self.ring.endpoint(peer).address, request.payload.len());
                trace.event(format!("Sending {} message to /{address} message size {size} bytes", verb.name()));
            }
        }
        request
    }
}

impl Node {
    /// The other nodes of the ring. None: this node is alone.
    pub(crate) fn ring_peers(&self) -> Option<RingPeers<'_>> {
        let messenger = self.messenger()?;
        let ring = self.ring();
        (ring.endpoints().len() > 1).then_some(RingPeers { messenger, ring, trace: None })
    }

    /// Whether the ring has no other node, so that this one applies every write.
    pub fn is_alone(&self) -> bool {
        self.ring_peers().is_none()
    }

    /// See [`Node::write`].
    pub(super) async fn write_distributed(
        &self,
        others: RingPeers<'_>,
        mutations: Vec<Mutation>,
        level: Consistency,
        kind: WriteKind,
    ) -> Result<Option<Acknowledgement>, RequestError> {
        let timeout = self.timeouts().write + more_time(&mutations);
        let planned = self.plan_mutations(&others.ring, mutations.into(), level, kind)?;
        let waited = self.wait_for_room(&others, &planned, timeout).await;
        let wait = self.send_mutations(&others, planned, timeout.saturating_sub(waited)).await;
        wait.into_acknowledgement()
    }

    /// Waits while a peer that answers in time has its part of the bytes that writes may keep until
    /// they are answered; gives for how long. The request counts as one in flight meanwhile, so
    /// that its client is held back. Called where neither bytes of the share nor locks are held:
    /// answers to earlier writes are waited for, which wait for nothing that this request has.
    pub(in crate::coordinator) async fn wait_for_room(
        &self,
        others: &RingPeers<'_>,
        planned: &[PlannedWrite],
        timeout: Duration,
    ) -> Duration {
        let unanswered = self.unanswered();
        if unanswered.used() < unanswered.limit() / SCARCE_PART {
            return Duration::ZERO;
        }
        // boxed: it is seldom, and would make the future of every write larger
        Box::pin(self.wait_until_none_is_busy(others, planned, timeout / ROOM_WAIT_PART)).await
    }

    async fn wait_until_none_is_busy(
        &self,
        others: &RingPeers<'_>,
        planned: &[PlannedWrite],
        limit: Duration,
    ) -> Duration {
        let peers = planned.iter().flat_map(|planned| planned.sent.peers());
        let peers: BTreeSet<SocketAddr> = peers.map(|peer| others.ring.endpoint(peer).address).collect();
        let is_busy = |peer: &SocketAddr| others.messenger.is_busy(*peer, self.unanswered().left());
        let begun = self.env.now();
        while self.env.elapsed(begun) < limit && peers.iter().any(is_busy) {
            self.env.sleep(ROOM_LOOK).await;
        }
        self.env.elapsed(begun)
    }

    /// The messages of mutations, planned. Refused where the replicas of one are too few, or it is
    /// too large.
    pub(crate) fn plan_mutations(
        &self,
        ring: &Arc<Ring>,
        mutations: Arc<[Mutation]>,
        level: Consistency,
        kind: WriteKind,
    ) -> Result<Vec<PlannedWrite>, RequestError> {
        (0..mutations.len()).map(|position| self.plan_mutation(ring, &mutations, position, level, kind)).collect()
    }

    /// The message of the mutation at a position of a request, planned.
    pub(crate) fn plan_mutation(
        &self,
        ring: &Arc<Ring>,
        mutations: &Arc<[Mutation]>,
        position: usize,
        level: Consistency,
        kind: WriteKind,
    ) -> Result<PlannedWrite, RequestError> {
        let mutation = &mutations[position];
        let keyspace = mutation.updates.first().map_or("", |update| update.table.keyspace.as_str());
        let placement = placement(ring, keyspace)?;
        let Some(placement) = placement else {
            let unknown = StorageError::UnknownTable { table: keyspace.to_owned() };
            return Err(RequestError::of_write(unknown.into(), WriteAnswers::of_one(level, kind)));
        };
        let plan = ring.plan_write(placement, mutation.key.token, level);
        let plan = plan.map_err(|shortage| RequestError::Unavailable { level, shortage })?;
        let (answers, counted) =
            WriteAnswers::of_data_centers(ring, &quorums(level, &placement.replication), &plan, kind);
        let refusal = |cause| RequestError::of_write(cause, answers.clone()).of_mutations(slice::from_ref(mutation));
        let payload = self.encode(mutation).map_err(refusal)?;
        let replicas = plan.live.iter().copied().zip(counted).collect();
        let hintable = Some(Hintable::new(mutation, payload.clone()));
        let sent = Arc::new(PendingWrite::new(self.weak(), Arc::clone(ring), replicas, hintable, answers));
        Ok(PlannedWrite { sent, down: plan.down.to_vec(), payload, of: (Arc::clone(mutations), position) })
    }

    /// A mutation as it is sent. Refused if no node would take it.
    fn encode(&self, mutation: &Mutation) -> Result<Bytes, WriteError> {
        let mut payload = Vec::with_capacity(mutation.updates.iter().map(room_of).sum());
        encode_mutation(&mut payload, mutation);
        let size_max = self.mutation_size_max();
        match payload.len() > size_max {
            true => Err(StorageError::MutationTooLarge { size: payload.len(), size_max }.into()),
            false => Ok(payload.into()),
        }
    }

    /// The size of the largest mutation that nodes with the options of this one take, bytes.
    pub(in crate::coordinator) fn mutation_size_max(&self) -> usize {
        self.engine.options.commitlog.largest_mutation()
    }

    /// Sends mutations to their peers, applies those that are of this node, and gives the wait.
    pub(crate) async fn send_mutations(
        &self,
        others: &RingPeers<'_>,
        planned: Vec<PlannedWrite>,
        timeout: Duration,
    ) -> ReplicaWait {
        let begun = self.env.now();
        planned.iter().for_each(|planned| self.send_to_peers(others, planned, timeout));
        let here: Vec<&PlannedWrite> = planned.iter().filter(|planned| planned.sent.is_here()).collect();
        if let Some(trace) = &others.trace {
            here.iter().for_each(|one| traces::describe_write(self, &**trace, one.mutation()));
        }
        // the commit log takes the bytes that the peers are sent
        let applied = match here[..] {
            [] => Ok(None),
            [one] => {
                let (mutation, encoded) = (one.mutation(), &one.payload);
                self.apply_here(slice::from_ref(mutation), slice::from_ref(encoded), timeout).await
            }
            _ => {
                let mutations: Vec<Mutation> = here.iter().map(|one| one.mutation().clone()).collect();
                let encoded: Vec<Bytes> = here.iter().map(|one| one.payload.clone()).collect();
                self.apply_here(&mutations, &encoded, timeout).await
            }
        };
        let sent = planned.into_iter().map(|planned| planned.sent).collect();
        ReplicaWait::new(&self.env, sent, applied, begun, timeout)
    }

    /// Applies mutations as one step; gives the wait for the log, if there is one. `encoded`: as
    /// for `Replica::apply_encoded`.
    pub(crate) async fn apply_here(
        &self,
        mutations: &[Mutation],
        encoded: &[Bytes],
        timeout: Duration,
    ) -> Result<Option<Logged>, WriteError> {
        let applied =
            within(&self.env, timeout, self.replica.apply_encoded(mutations, encoded, StripeGuards::new())).await;
        match applied.unwrap_or(Err(WriteError::TimedOut))? {
            Some(position) => self.replica.logged(position),
            None => Ok(None),
        }
    }

    /// Sends a mutation to its live peers, and keeps hints for replicas that are down.
    pub(crate) fn send_to_peers(&self, others: &RingPeers<'_>, planned: &PlannedWrite, timeout: Duration) {
        let PlannedWrite { sent, down, payload, .. } = planned;
        down.iter().for_each(|replica| sent.hint(*replica));
        let kept = sent.keep(self.unanswered());
        let request = others.request_to(sent.peers(), Verb::MutationReq, payload.clone(), timeout);
        let callback: Arc<dyn RequestCallback> = Arc::clone(sent) as Arc<dyn RequestCallback>;
        let mut far: BTreeMap<&str, Vec<SocketAddr>> = BTreeMap::new();
        for peer in sent.peers() {
            let endpoint = others.ring.endpoint(peer);
            match endpoint.data_center == others.ring.local_data_center() {
                true => others.messenger.ask_keeping(endpoint.address, &[], request.clone(), kept, &callback),
                false => far.entry(&endpoint.data_center).or_default().push(endpoint.address),
            }
        }
        for addresses in far.into_values() {
            let (first, rest) = self.chosen_to_forward(addresses);
            others.messenger.ask_keeping(first, &rest, request.clone(), kept, &callback);
        }
    }

    /// The node of another data center that passes a message on, and those that it passes it to:
    /// chosen among those that tell no severity of themselves, if there are some.
    fn chosen_to_forward(&self, mut addresses: Vec<SocketAddr>) -> (SocketAddr, Vec<SocketAddr>) {
        let severities = self.membership_state.severities.load();
        let sound = |address: &SocketAddr| !severities.contains_key(address);
        // the sound ones first
        addresses.sort_by_key(|address| !sound(address));
        let count = addresses.iter().filter(|address| sound(address)).count();
        let count = if count == 0 { addresses.len() } else { count };
        let first = addresses.swap_remove(self.env.random.below(count as u64) as usize);
        (first, addresses)
    }
}

/// At EACH_QUORUM over data centers, how many replicas of each must answer. Empty at other levels.
fn quorums(level: Consistency, replication: &Replication) -> Vec<(&str, u32)> {
    match (level, replication) {
        (Consistency::EachQuorum, Replication::NetworkTopology { factors }) => {
            factors.iter().map(|(name, factor)| (name.as_str(), ring::quorum(*factor))).collect()
        }
        _ => Vec::new(),
    }
}
