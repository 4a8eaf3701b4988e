//! Counters among several nodes: one replica of a mutation leads it.
//!
//! 1. This node leads where it is a replica. Otherwise a random live replica of its data center
//!    does, and if there is none the first live one, unless the level is of the data center. A node
//!    that does not take drivers yet (RPC_READY) leads nothing: it may still be starting.
//! 2. The leader turns increments into its shards, applies them, and sends the result, which can be
//!    applied any number of times, to the other replicas.
//! 3. The leader answers when its level is met and its own log has the shards: it goes on counting
//!    from what its disk has, with a greater clock, so what it has not kept would be lost on all
//!    replicas. A coordinator that has sent its increments to another leader waits for that answer
//!    alone.
//!
//! Agrees with `org.apache.cassandra.service.StorageProxy` (`mutateCounter`, `findSuitableReplica`)
//! and `db.CounterMutationVerbHandler`.

use std::sync::Arc;
use std::time::Duration;

use internode::Verb;
use internode::payload::counter::CounterMutation;
use membership::RequestCallback;
use ring::{EndpointId, InsufficientReplicas, Ring};
use rows::Mutation;
use rows::codec::encode_mutation;
use rows::command::TraceSink;
use storage::StorageError;
use types::{Consistency, FailureReason, ReplicaFailure, WriteKind};

use crate::coordinator::acknowledgement::Acknowledgement;
use crate::coordinator::acknowledgement::replica_wait::ReplicaWait;
use crate::coordinator::error::RequestError;
use crate::coordinator::pending_write::PendingWrite;
use crate::coordinator::plan::placement;
use crate::coordinator::write::distributed::RingPeers;
use crate::coordinator::write_answers::{AnswerScope, WriteAnswers};
use crate::node::Node;
use crate::replica::apply::{Logged, WriteError, within};
use crate::replica::read::Open;

impl Node {
    /// See [`Node::add_to_counters`].
    pub(super) async fn count_distributed(
        &self,
        others: RingPeers<'_>,
        mutations: Vec<Mutation>,
        level: Consistency,
        open: Option<Arc<Open>>,
    ) -> Result<Option<Acknowledgement>, RequestError> {
        let timeout = self.timeouts().counter_write;
        let (mut led_here, mut led_by_others) = (Vec::new(), Vec::new());
        for mutation in mutations {
            match self.leader_of(&others.ring, &mutation, level)? {
                leader if leader == others.ring.local_id() => led_here.push(mutation),
                leader => led_by_others.push((leader, mutation)),
            }
        }
        let begun = self.env.now();
        let ask = |(leader, mutation): (EndpointId, Mutation)| self.ask_leader(&others, leader, &mutation, level);
        let asked: Vec<_> = led_by_others.into_iter().map(ask).collect();
        let wait = match led_here.is_empty() {
            true => ReplicaWait::new(&self.env, Vec::new(), Ok(None), begun, timeout),
            false => self.lead(&others, led_here, level, open, timeout).await?,
        };
        wait.with_mutations(asked).into_acknowledgement()
    }

    /// Serves increments of which another node has made this one the leader. Refused where it is no
    /// replica. `trace`: where trace lines go.
    pub(crate) async fn count_as_leader(
        &self,
        mutation: Mutation,
        level: Consistency,
        timeout: Duration,
        trace: Option<Arc<dyn TraceSink>>,
    ) -> Result<(), RequestError> {
        let unled = || RequestError::of_write(WriteError::Peers, WriteAnswers::of_one(level, WriteKind::Counter));
        let others = self.ring_peers().ok_or_else(unled)?.traced(trace);
        if self.leader_of(&others.ring, &mutation, level)? != others.ring.local_id() {
            return Err(unled());
        }
        self.lead(&others, vec![mutation], level, None, timeout).await?.await
    }

    /// The replica that leads a mutation. Refused where its replicas are too few for the level.
    fn leader_of(&self, ring: &Ring, mutation: &Mutation, level: Consistency) -> Result<EndpointId, RequestError> {
        let keyspace = mutation.updates.first().map_or("", |update| update.table.keyspace.as_str());
        let Some(placement) = placement(ring, keyspace)? else {
            let unknown = StorageError::UnknownTable { table: keyspace.to_owned() };
            return Err(RequestError::of_write(unknown.into(), WriteAnswers::of_one(level, WriteKind::Counter)));
        };
        let unavailable = |shortage| RequestError::Unavailable { level, shortage };
        let plan = ring.plan_write(placement, mutation.key.token, level).map_err(unavailable)?;
        let natural = placement.natural(mutation.key.token);
        let live: Vec<EndpointId> = plan.live.iter().filter(|id| natural.contains(id)).copied().collect();
        if live.contains(&ring.local_id()) {
            return Ok(ring.local_id());
        }
        let unready = self.membership_state.unready.load();
        let live: Vec<EndpointId> =
            live.into_iter().filter(|id| !unready.contains(&ring.endpoint(*id).address)).collect();
        let is_near = |id: &&EndpointId| ring.endpoint(**id).data_center == ring.local_data_center();
        let near: Vec<EndpointId> = live.iter().filter(is_near).copied().collect();
        let nobody = unavailable(InsufficientReplicas { required: plan.block_for, alive: 0 });
        match (near.as_slice(), live.as_slice()) {
            ([], [first, ..]) if !level.is_datacenter_local() => Ok(*first),
            ([], _) => Err(nobody),
            (near, _) => Ok(near[self.env.random.below(near.len() as u64) as usize]),
        }
    }

    /// Sends increments to their leader. Nobody knows whether a leader that does not answer has
    /// counted them: they are not sent again, and leave no hint.
    fn ask_leader(
        &self,
        others: &RingPeers<'_>,
        leader: EndpointId,
        mutation: &Mutation,
        level: Consistency,
    ) -> Arc<PendingWrite> {
        let mut bytes = Vec::new();
        encode_mutation(&mut bytes, mutation);
        let payload = CounterMutation { mutation: bytes.into(), level }.encode();
        let answers = WriteAnswers::of_one(Consistency::One, WriteKind::Counter);
        let sent = PendingWrite::without_hints(Arc::clone(&others.ring), vec![(leader, AnswerScope::All)], answers);
        let sent = Arc::new(sent);
        let callback: Arc<dyn RequestCallback> = Arc::clone(&sent) as Arc<dyn RequestCallback>;
        let life = self.timeouts().counter_write;
        let request = others.request_to(std::iter::once(leader), Verb::CounterMutationReq, payload, life);
        others.messenger.ask(others.ring.endpoint(leader).address, &[], request, &callback);
        sent
    }

    /// Counts as the leader: increments become shards of this node, and these go to the other
    /// replicas.
    async fn lead(
        &self,
        others: &RingPeers<'_>,
        mut mutations: Vec<Mutation>,
        level: Consistency,
        open: Option<Arc<Open>>,
        timeout: Duration,
    ) -> Result<ReplicaWait, RequestError> {
        let begun = self.env.now();
        let counted = within(&self.env, timeout, self.count_here(&mut mutations, open)).await;
        let planned = self.plan_mutations(&others.ring, mutations.into(), level, WriteKind::Counter)?;
        let logged = counted.unwrap_or(Err(WriteError::TimedOut)).map_err(|cause| {
            let first = planned.first().map(|planned| planned.sent.answers());
            let mut answers = first.unwrap_or_else(|| WriteAnswers::of_one(level, WriteKind::Counter));
            if cause != WriteError::TimedOut {
                let endpoint = self.identity.broadcast;
                answers.failures.push(ReplicaFailure { endpoint, reason: FailureReason::Unknown });
            }
            RequestError::of_write(cause, answers)
        })?;
        planned.iter().for_each(|planned| self.send_to_peers(others, planned, timeout));
        let sent = planned.into_iter().map(|planned| planned.sent).collect();
        Ok(ReplicaWait::new(&self.env, sent, Ok(logged), begun, timeout).requiring_log())
    }

    /// Turns increments into shards that are in the memtables when this returns; gives the wait
    /// for the log, if there is one.
    async fn count_here(
        &self,
        mutations: &mut [Mutation],
        open: Option<Arc<Open>>,
    ) -> Result<Option<Logged>, WriteError> {
        let held = self.settle_increments(mutations, open).await?;
        match self.replica.apply(mutations, held).await? {
            Some(position) => self.replica.logged(position),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests;
