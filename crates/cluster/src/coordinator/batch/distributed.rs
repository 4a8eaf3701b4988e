//! Logged batches among several nodes: two peers keep the record.
//!
//! 1. All mutations are planned; where the replicas of one are too few nothing is sent. While
//!    replicas that answer in time have much unanswered the batch waits.
//! 2. The record is stored by two live nodes of this data center ([`super::hosts`]); by one where
//!    there is no second, by this node where it is the only one of the data center. If they do not
//!    all answer, nothing of the batch is written (write type BATCH_LOG).
//! 3. The mutations are sent to their replicas (write type BATCH).
//! 4. When all have their answers the record is removed. If they do not come, or this node has not
//!    applied its own part, it stays, and its hosts send the mutations again ([`crate::batchlog`]).
//!
//! Agrees with `org.apache.cassandra.service.StorageProxy.mutateAtomically`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use env::defects::{Defect, is_on};
use env::rare::{Rare, happens};
use internode::Verb;
use internode::payload::batch::StoredBatch;
use membership::{Request, RequestCallback};
use ring::{EndpointId, InsufficientReplicas, Ring};
use rows::Mutation;
use types::{Consistency, WriteKind};

use crate::coordinator::acknowledgement::Acknowledgement;
use crate::coordinator::acknowledgement::replica_wait::{CompletionHook, ReplicaWait};
use crate::coordinator::batch::hosts::{HOSTS, Hosts};
use crate::coordinator::error::RequestError;
use crate::coordinator::pending_write::PendingWrite;
use crate::coordinator::write::distributed::RingPeers;
use crate::coordinator::write_answers::{AnswerScope, WriteAnswers};
use crate::dynamic_snitch::DynamicSnitch;
use crate::node::Node;
use crate::traces;

impl Node {
    /// See [`Node::write_batch`].
    pub(super) async fn write_batch_distributed(
        &self,
        others: RingPeers<'_>,
        mutations: Vec<Mutation>,
        level: Consistency,
    ) -> Result<Option<Acknowledgement>, RequestError> {
        let timeout = self.timeouts().write;
        let planned = self.plan_mutations(&others.ring, mutations.into(), level, WriteKind::Batch)?;
        let timeout = timeout.saturating_sub(self.wait_for_room(&others, &planned, timeout).await);
        let begun = self.env.now();
        let mut hosts = self.batch_hosts(&others.ring);
        if hosts.is_empty() {
            if level != Consistency::Any {
                let shortage = InsufficientReplicas { required: HOSTS as u32, alive: 0 };
                return Err(RequestError::Unavailable { level: Consistency::Two, shortage });
            }
            hosts.push(others.ring.local_id());
        }
        if is_on(Defect::SplitBatch) && self.env.random.below(4) == 0 {
            let part = planned.into_iter().take(1).collect();
            return self.send_mutations(&others, part, timeout).await.into_acknowledgement();
        }
        let id = self.uuids.next();
        let mutations = planned.iter().map(|planned| planned.payload.clone()).collect();
        let batch = StoredBatch { id, created_micros: self.clock.next_micros(), mutations };
        self.store_record(&others, &hosts, &batch, timeout).await?;
        let rest = timeout.saturating_sub(self.env.elapsed(begun));
        let wait = self.send_mutations(&others, planned, rest).await;
        wait.on_completion(self.removal_of(&others, &hosts, id, timeout)).into_acknowledgement()
    }

    /// The nodes that keep the record of a batch, as `batchlog_endpoint_strategy` says. Empty: no
    /// other node of the data center is up.
    pub(crate) fn batch_hosts(&self, ring: &Ring) -> Vec<EndpointId> {
        let strategy = self.membership_state.batch_hosts.get().copied().unwrap_or_default();
        let snitch = self.membership_state.dynamic_snitch.get().filter(|_| strategy.by_latency);
        let scores = snitch.map(DynamicSnitch::scores);
        Hosts { ring, prefers_own_rack: strategy.prefers_own_rack, scores: scores.as_deref() }.choose(&*self.env.random)
    }

    /// Has the record of a batch stored; durable on all hosts when this returns.
    pub(crate) async fn store_record(
        &self,
        others: &RingPeers<'_>,
        hosts: &[EndpointId],
        batch: &StoredBatch,
        timeout: Duration,
    ) -> Result<(), RequestError> {
        let begun = self.env.now();
        let level = if hosts.len() == 1 { Consistency::One } else { Consistency::Two };
        let count = u32::try_from(hosts.len()).expect("at most two");
        let answers =
            WriteAnswers { block_for: count, outstanding: count, ..WriteAnswers::of_one(level, WriteKind::BatchLog) };
        let replicas = hosts.iter().map(|host| (*host, AnswerScope::All)).collect();
        let sent = Arc::new(PendingWrite::without_hints(Arc::clone(&others.ring), replicas, answers));
        let callback: Arc<dyn RequestCallback> = Arc::clone(&sent) as Arc<dyn RequestCallback>;
        let request = others.request_to(sent.peers(), Verb::BatchStoreReq, batch.encode(), timeout);
        for host in sent.peers() {
            others.messenger.ask(others.ring.endpoint(host).address, &[], request.clone(), &callback);
        }
        let logged = match sent.is_here() {
            true => {
                let applied = self.apply_here(&[self.record_of(batch)], &[], timeout).await;
                self.batch_replay.expect_records();
                applied
            }
            false => Ok(None),
        };
        ReplicaWait::new(&self.env, vec![sent], logged, begun, timeout).await
    }

    /// Has the record of a batch removed. Nobody waits for that: a record that stays is sent again,
    /// which changes nothing.
    fn removal_of(&self, others: &RingPeers<'_>, hosts: &[EndpointId], id: [u8; 16], life: Duration) -> CompletionHook {
        let (messenger, node, local) = (others.messenger.clone(), self.weak(), others.ring.local_id());
        let is_here = hosts.contains(&local);
        let peers: Vec<_> = hosts.iter().filter(|host| **host != local).copied().collect();
        let peers: Vec<_> = peers.into_iter().map(|host| others.ring.endpoint(host).address).collect();
        let trace = others.trace.clone();
        Box::new(move || {
            if happens(Rare::BatchStays) {
                return;
            }
            let parameters = traces::parameters(trace.as_deref());
            let request =
                Request::new(Verb::BatchRemoveReq, Bytes::copy_from_slice(&id), life).without_failure_response();
            let request = Request { parameters, ..request };
            for peer in peers {
                messenger.tell(peer, request.clone());
            }
            if let Some(node) = node.upgrade().filter(|_| is_here) {
                node.remove_record(&id);
            }
        })
    }
}
