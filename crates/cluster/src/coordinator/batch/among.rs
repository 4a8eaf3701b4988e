//! Logged batches among several nodes: two peers keep the record.
//!
//! 1. All mutations are planned; where the replicas of one are too few nothing is sent.
//! 2. The record is stored by two live nodes of this data centre, in racks other than this node's
//!    where there are such; by one where there is no second, by this node where it is the only one
//!    of the data centre. If they do not all answer, nothing of the batch is written (write type
//!    BATCH_LOG).
//! 3. The mutations are sent to their replicas (write type BATCH).
//! 4. When all have their answers the record is removed. If they do not come, it stays, and its
//!    hosts send the mutations again ([`crate::batchlog`]).
//!
//! Agrees with `org.apache.cassandra.service.StorageProxy.mutateAtomically` and
//! `locator.ReplicaPlans.forBatchlogWrite` (`batchlog_endpoint_strategy: random_remote`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use env::Random;
use env::defects::{Defect, is_on};
use env::rare::{Rare, happens};
use internode::Verb;
use internode::payload::batch::StoredBatch;
use membership::{Asker, Request};
use ring::{EndpointId, Ring, Shortage};
use rows::Mutation;
use types::{Consistency, WriteKind};

use crate::coordinator::acknowledgement::Acknowledgement;
use crate::coordinator::acknowledgement::among::{Among, WhenDone};
use crate::coordinator::answers::{Answers, Counted};
use crate::coordinator::error::RequestError;
use crate::coordinator::sent::Sent;
use crate::coordinator::write::among::Others;
use crate::node::Node;
use crate::traces;

/// How many nodes keep the record of a batch, where there are as many.
const HOSTS: usize = 2;

impl Node {
    /// See [`Node::write_batch`].
    pub(super) async fn write_batch_among(
        &self,
        others: Others<'_>,
        mutations: Vec<Mutation>,
        level: Consistency,
    ) -> Result<Option<Acknowledgement>, RequestError> {
        let (begun, timeout) = (self.env.now(), self.timeouts().write);
        let planned = self.plan_among(&others.ring, mutations.into(), level, WriteKind::Batch)?;
        let mut hosts = hosts(&others.ring, &*self.env.random);
        if hosts.is_empty() {
            if level != Consistency::Any {
                let shortage = Shortage { required: HOSTS as u32, alive: 0 };
                return Err(RequestError::Unavailable { level: Consistency::Two, shortage });
            }
            hosts.push(others.ring.local_id());
        }
        if is_on(Defect::SplitBatch) && self.env.random.below(4) == 0 {
            let part = planned.into_iter().take(1).collect();
            return self.send_among(&others, part, timeout).await.unless_done();
        }
        let id = self.uuids.next();
        let mutations = planned.iter().map(|planned| planned.payload.clone()).collect();
        let batch = StoredBatch { id, created_micros: self.clock.next_micros(), mutations };
        self.store_record(&others, &hosts, &batch, timeout).await?;
        let rest = timeout.saturating_sub(self.env.elapsed(begun));
        let wait = self.send_among(&others, planned, rest).await;
        wait.when_done(self.removal_of(&others, &hosts, id, timeout)).unless_done()
    }

    /// Has the record of a batch stored; durable on all hosts when this returns.
    pub(crate) async fn store_record(
        &self,
        others: &Others<'_>,
        hosts: &[EndpointId],
        batch: &StoredBatch,
        timeout: Duration,
    ) -> Result<(), RequestError> {
        let begun = self.env.now();
        let level = if hosts.len() == 1 { Consistency::One } else { Consistency::Two };
        let count = u32::try_from(hosts.len()).expect("at most two");
        let answers = Answers { block_for: count, outstanding: count, ..Answers::of_one(level, WriteKind::BatchLog) };
        let replicas = hosts.iter().map(|host| (*host, Counted::All)).collect();
        let sent = Arc::new(Sent::without_hints(Arc::clone(&others.ring), replicas, answers));
        let asker: Arc<dyn Asker> = Arc::clone(&sent) as Arc<dyn Asker>;
        let request = others.request_to(sent.peers(), Verb::BatchStoreReq, batch.encode(), timeout);
        for host in sent.peers() {
            others.messenger.ask(others.ring.endpoint(host).address, &[], request.clone(), &asker);
        }
        let logged = match sent.is_here() {
            true => self.apply_here(&[self.record_of(batch)], &[], timeout).await,
            false => Ok(None),
        };
        Among::new(&self.env, vec![sent], logged, begun, timeout).await
    }

    /// Has the record of a batch removed. Nobody waits for that: a record that stays is sent again,
    /// which changes nothing.
    fn removal_of(&self, others: &Others<'_>, hosts: &[EndpointId], id: [u8; 16], life: Duration) -> WhenDone {
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
            let request = Request::new(Verb::BatchRemoveReq, Bytes::copy_from_slice(&id), life).silent();
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

/// The nodes that keep a record. Empty: no other node of the data centre is up.
fn hosts(ring: &Ring, random: &dyn Random) -> Vec<EndpointId> {
    let all = (0u32..).map(EndpointId).zip(ring.endpoints());
    let members: Vec<EndpointId> = all
        .filter(|(_, endpoint)| endpoint.data_center == ring.local_data_center() && endpoint.owns_tokens())
        .map(|(id, _)| id)
        .collect();
    if members == [ring.local_id()] {
        return members;
    }
    let mut racks: BTreeMap<&str, Vec<EndpointId>> = BTreeMap::new();
    for id in members.into_iter().filter(|id| *id != ring.local_id() && ring.endpoint(*id).is_up) {
        racks.entry(&ring.endpoint(id).rack).or_default().push(id);
    }
    let count = |racks: &BTreeMap<&str, Vec<EndpointId>>| racks.values().map(Vec::len).sum::<usize>();
    let here = racks.get(ring.local().rack.as_str()).map_or(0, Vec::len);
    if count(&racks) > HOSTS && count(&racks) - here >= HOSTS {
        racks.remove(ring.local().rack.as_str());
    }
    let draw = |bound: usize| random.below(bound as u64) as usize;
    let mut racks: Vec<Vec<EndpointId>> = racks.into_values().collect();
    let mut chosen = Vec::with_capacity(HOSTS);
    // one of each rack, and a second of a rack that is the only one
    while chosen.len() < HOSTS && !racks.is_empty() {
        let rack = draw(racks.len());
        let node = draw(racks[rack].len());
        chosen.push(racks[rack].swap_remove(node));
        if racks.len() > 1 || racks[rack].is_empty() {
            racks.swap_remove(rack);
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use env::sim::World;
    use ring::{Endpoint, State};

    use super::*;

    /// Nodes as `dc/rack`, those that are down with a `-` before them; this node is the first.
    fn chosen(nodes: &[&str]) -> BTreeSet<Vec<u32>> {
        let endpoint = |(number, text): (u8, &&str)| {
            let (data_center, rack) = text.trim_start_matches('-').split_once('/').expect("dc/rack");
            Endpoint {
                address: ([127, 0, 0, number], 7000).into(),
                native: ([127, 0, 0, number], 9042).into(),
                host_id: [number; 16],
                data_center: data_center.to_owned(),
                rack: rack.to_owned(),
                tokens: Vec::new(),
                is_up: !text.starts_with('-'),
                state: State::Normal,
            }
        };
        let ring = Ring::new((0..).zip(nodes).map(endpoint).collect(), EndpointId(0));
        let random = World::new(1, 1).dice();
        let draws = (0..200).map(|_| {
            let mut hosts: Vec<u32> = hosts(&ring, &random).into_iter().map(|id| id.0).collect();
            hosts.sort_unstable();
            hosts
        });
        draws.collect()
    }

    #[test]
    fn a_record_lies_in_two_racks_away_from_its_coordinator() {
        let all = |sets: &[&[u32]]| sets.iter().map(|set| set.to_vec()).collect::<BTreeSet<_>>();
        // alone in its data centre; with one other; with others that are down
        assert_eq!(chosen(&["a/1", "b/1", "b/1"]), all(&[&[0]]));
        assert_eq!(chosen(&["a/1", "a/1", "b/1"]), all(&[&[1]]));
        assert_eq!(chosen(&["a/1", "-a/1", "-a/2"]), all(&[&[]]));
        assert_eq!(chosen(&["a/1", "-a/1", "a/1"]), all(&[&[2]]));
        // two others, whatever their racks
        assert_eq!(chosen(&["a/1", "a/1", "a/2"]), all(&[&[1, 2]]));
        // one rack: any two
        assert_eq!(chosen(&["a/1", "a/1", "a/1", "a/1"]), all(&[&[1, 2], &[1, 3], &[2, 3]]));
        // two racks, the coordinator's left out because the other has enough
        assert_eq!(chosen(&["a/1", "a/1", "a/2", "a/2"]), all(&[&[2, 3]]));
        // three racks: one each of the two others
        assert_eq!(chosen(&["a/1", "a/1", "a/2", "a/2", "a/3"]), all(&[&[2, 4], &[3, 4]]));
        // the other racks have one: the coordinator's is needed
        assert_eq!(chosen(&["a/1", "a/1", "a/1", "a/2"]), all(&[&[1, 3], &[2, 3]]));
    }
}
