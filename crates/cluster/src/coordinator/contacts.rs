//! Whom a read asks: the replicas of a plan, nearest first.
//!
//! Nearest is this node, then replicas of its data centre and rack, then of its data centre, then
//! the others, each in the order of the ring. Agrees with
//! `org.apache.cassandra.locator.ReplicaPlans.contactForRead` and `AbstractNetworkTopologySnitch`.
//! The order does not follow measured latencies (no dynamic snitch).

use std::net::SocketAddr;

use ring::{Endpoint, EndpointId, ReplicaPlan, Replication, Ring};
use types::Consistency;

/// A replica that is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Contact {
    /// The address by which the others know it.
    pub address: SocketAddr,
    /// Whether the replica is this node.
    pub is_local: bool,
}

/// The replicas that a read asks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Contacts {
    /// As many as the level waits for.
    pub asked: Vec<Contact>,
    /// The others that could be asked instead of one that does not answer, nearest first.
    pub spare: Vec<Contact>,
}

impl Contacts {
    /// The replicas of `plan`, which is of a keyspace replicated like this.
    pub fn of(ring: &Ring, replication: &Replication, plan: &ReplicaPlan) -> Self {
        let mut near: Vec<EndpointId> = plan.live.iter().copied().filter(|id| counts(ring, plan.level, *id)).collect();
        // stable: equally near ones stay in the order of the ring
        near.sort_by_key(|id| distance(ring, *id));
        let asked = match (plan.level, replication) {
            (Consistency::EachQuorum, Replication::NetworkTopology { factors }) => {
                let of_center = |(name, factor): (&String, &u32)| {
                    let there = near.iter().copied().filter(|id| ring.endpoint(*id).data_center == *name);
                    there.take(ring::level::quorum(*factor) as usize).collect::<Vec<_>>()
                };
                let mut asked: Vec<EndpointId> = factors.iter().flat_map(of_center).collect();
                asked.sort_by_key(|id| distance(ring, *id));
                asked
            }
            _ => near.iter().copied().take(plan.block_for as usize).collect(),
        };
        let contact = |id: EndpointId| Contact { address: ring.endpoint(id).address, is_local: id == ring.local_id() };
        let spare = match plan.level {
            // another one may be of a data centre that has its quorum already
            Consistency::EachQuorum => Vec::new(),
            _ => near.iter().copied().filter(|id| !asked.contains(id)).map(contact).collect(),
        };
        Self { asked: asked.into_iter().map(contact).collect(), spare }
    }

    /// Whether this node alone is asked.
    pub fn is_local(&self) -> bool {
        matches!(self.asked[..], [contact] if contact.is_local)
    }
}

/// Whether the answer of a replica counts for a level.
fn counts(ring: &Ring, level: Consistency, id: EndpointId) -> bool {
    match level {
        Consistency::NodeLocal => id == ring.local_id(),
        level if level.is_datacenter_local() => ring.endpoint(id).data_center == ring.local_data_center(),
        _ => true,
    }
}

/// How far a replica is: less is nearer.
fn distance(ring: &Ring, id: EndpointId) -> (bool, bool, bool) {
    let (there, here): (&Endpoint, &Endpoint) = (ring.endpoint(id), ring.local());
    (id != ring.local_id(), there.data_center != here.data_center, there.rack != here.rack)
}
