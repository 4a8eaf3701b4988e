//! The replicas of a plan that a read asks, nearest first.
//!
//! Nearest is this node, then replicas of its data center and rack, then of its data center, then
//! the others, each in the order of the ring; unless the dynamic snitch knows that this order is
//! much slower than another ([`crate::dynamic_snitch`]). Agrees with
//! `org.apache.cassandra.locator.ReplicaPlans.contactForRead` and `AbstractNetworkTopologySnitch`.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use env::defects::{Defect, is_on};
use ring::{Endpoint, EndpointId, InsufficientReplicas, ReplicaPlan, Replication, Ring};
use types::Consistency;

use crate::dynamic_snitch::Scores;

/// A replica that is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Contact {
    /// The address by which the others know it.
    pub address: SocketAddr,
    /// Whether the replica is this node.
    pub is_local: bool,
}

/// The replicas that a read asks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Contacts {
    /// The replicas that are asked at first: as many as the level waits for.
    pub asked: Vec<Contact>,
    /// The others that could be asked instead of one that does not answer, nearest first.
    pub spare: Vec<Contact>,
    /// Too few replicas are up: nobody is asked, and a read that comes here is refused. None: there
    /// are enough.
    pub shortage: Option<InsufficientReplicas>,
    /// False: nobody has been chosen yet ([`Self::unplanned`]).
    pub is_planned: bool,
}

impl Contacts {
    /// The replicas of `plan`, which is of a keyspace replicated like this. `scores`: those of the
    /// dynamic snitch, if there is one.
    pub fn of(ring: &Ring, replication: &Replication, plan: &ReplicaPlan, scores: Option<&Scores>) -> Self {
        let mut near: Vec<EndpointId> = plan.live.to_vec();
        // stable: equally near ones stay in the order of the ring
        near.sort_by_key(|id| distance(ring, *id));
        if let Some(scores) = scores {
            scores.order(&mut near, |id| ring.endpoint(*id).address);
        }
        near.retain(|id| counts(ring, plan.level, *id));
        let asked = match (plan.level, replication) {
            (Consistency::EachQuorum, Replication::NetworkTopology { factors }) => {
                let mut wanted: BTreeMap<&str, u32> =
                    factors.iter().map(|(name, factor)| (name.as_str(), ring::level::quorum(*factor))).collect();
                let is_wanted = |id: &EndpointId| {
                    let wanted = wanted.get_mut(ring.endpoint(*id).data_center.as_str()).filter(|left| **left > 0);
                    wanted.map(|left| *left -= 1).is_some()
                };
                near.iter().copied().filter(is_wanted).collect::<Vec<_>>()
            }
            _ if is_on(Defect::ReadOne) => near.iter().copied().take(1).collect(),
            _ => near.iter().copied().take(plan.block_for as usize).collect(),
        };
        // of EACH_QUORUM each data center has its number; NODE_LOCAL asks this node, which may hold
        // nothing
        let has_a_number =
            !matches!(plan.level, Consistency::EachQuorum | Consistency::NodeLocal) && !is_on(Defect::ReadOne);
        assert!(!has_a_number || asked.len() == plan.block_for as usize, "a read asks as many as it waits for");
        let contact = |id: EndpointId| Contact { address: ring.endpoint(id).address, is_local: id == ring.local_id() };
        let spare = match plan.level {
            // another one may be of a data center that has its quorum already
            Consistency::EachQuorum => Vec::new(),
            _ => near.iter().copied().filter(|id| !asked.contains(id)).map(contact).collect(),
        };
        Self { asked: asked.into_iter().map(contact).collect(), spare, shortage: None, is_planned: true }
    }

    /// The contacts for tokens of which too few replicas are up.
    pub fn too_few(shortage: InsufficientReplicas) -> Self {
        Self { asked: Vec::new(), spare: Vec::new(), shortage: Some(shortage), is_planned: true }
    }

    /// The contacts for the rest of a range: replicas are chosen when the read comes there.
    pub fn unplanned() -> Self {
        Self { asked: Vec::new(), spare: Vec::new(), shortage: None, is_planned: false }
    }

    /// Whether this node alone is asked.
    pub fn is_local(&self) -> bool {
        matches!(self.asked[..], [contact] if contact.is_local)
    }
}

/// Whether the answer of a replica counts for a level.
pub(super) fn counts(ring: &Ring, level: Consistency, id: EndpointId) -> bool {
    match level {
        Consistency::NodeLocal => id == ring.local_id(),
        level if level.is_datacenter_local() => ring.endpoint(id).data_center == ring.local_data_center(),
        _ => true,
    }
}

/// How far a replica is from this node: a smaller value is nearer.
pub(super) fn distance(ring: &Ring, id: EndpointId) -> (bool, bool, bool) {
    let (there, here): (&Endpoint, &Endpoint) = (ring.endpoint(id), ring.local());
    (id != ring.local_id(), there.data_center != here.data_center, there.rack != here.rack)
}

#[cfg(test)]
mod tests;
