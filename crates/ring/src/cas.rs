//! The replicas that decide a conditional statement by a majority.
//!
//! Nodes that are about to be replicas take part like the others, so that a majority before a
//! change of the ring and a majority after it have a replica in common. That is true only for one
//! such node: with two a statement is refused. Nodes that were replicas until a moment ago take
//! part too, and each of them is waited for beside the majority.
//!
//! Paxos v2 counts in another way: a majority of the replicas, and beside them each node that is
//! about to be one, of which there may be several ([`Ring::plan_promises`]). Agrees with
//! `org.apache.cassandra.locator.ReplicaPlans.forPaxos` and, for v2, with
//! `service.paxos.Paxos.Participants`.

use types::{Consistency, Token};

use crate::endpoint::EndpointId;
use crate::level::InsufficientReplicas;
use crate::placement::Placement;
use crate::plan::Replicas;
use crate::snapshot::Ring;

/// The replicas of one conditional statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CasPlan {
    /// SERIAL or LOCAL_SERIAL.
    pub level: Consistency,
    /// How many replicas must promise and accept: a majority of all, up or down, and one more for
    /// each node that was a replica until a moment ago.
    pub required: u32,
    /// Replicas that are up.
    pub live: Replicas,
}

/// The replicas of one conditional statement of Paxos v2, or of a read at SERIAL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PromisePlan {
    /// Replicas that are up, and nodes that are up and about to be replicas.
    pub live: Replicas,
    /// Nodes that are about to be replicas, up or down. They promise, but are not read.
    pub pending: Replicas,
    /// How many nodes must promise and accept: a majority of the replicas, and one more for each
    /// node in `pending`.
    pub required: u32,
    /// How many of the promises come with a read: a majority of the replicas.
    pub reads: u32,
}

impl Ring {
    /// The plan of a conditional statement of a partition, or of a read at SERIAL.
    pub fn plan_cas(
        &self,
        placement: &Placement,
        token: Token,
        level: Consistency,
    ) -> Result<CasPlan, InsufficientReplicas> {
        let takes_part = |id: &&EndpointId| {
            level != Consistency::LocalSerial || self.endpoint(**id).data_center == self.local_data_center()
        };
        let pending = placement.pending(token).iter().filter(takes_part).count();
        let all: Replicas =
            placement.natural(token).iter().chain(placement.pending(token)).filter(takes_part).copied().collect();
        let former: Replicas = self.live_endpoints(placement.former(token)).filter(|id| takes_part(&id)).collect();
        let live: Replicas = all.iter().filter(|id| self.endpoint(**id).is_up).chain(&former).copied().collect();
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let (participants, alive) = (count(all.len() + former.len()), count(live.len()));
        let required = count(all.len()) / 2 + 1 + count(former.len());
        if alive < required {
            return Err(InsufficientReplicas { required, alive });
        }
        if pending > 1 {
            // more than there are: no replica that comes up makes the statement possible
            return Err(InsufficientReplicas { required: participants + 1, alive });
        }
        assert!(participants < 2 * required, "two sets of replicas that promise have one in common");
        Ok(CasPlan { level, required, live })
    }

    /// The plan of the promises of Paxos v2 for a partition. The promises come with the data of
    /// the replicas.
    pub fn plan_promises(
        &self,
        placement: &Placement,
        token: Token,
        level: Consistency,
    ) -> Result<PromisePlan, InsufficientReplicas> {
        let takes_part = |id: &EndpointId| {
            level != Consistency::LocalSerial || self.endpoint(*id).data_center == self.local_data_center()
        };
        let those = |of: &[EndpointId]| of.iter().copied().filter(takes_part).collect::<Replicas>();
        let (natural, pending) = (those(placement.natural(token)), those(placement.pending(token)));
        let live: Replicas = natural.iter().chain(&pending).filter(|id| self.endpoint(**id).is_up).copied().collect();
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let reads = count(natural.len()) / 2 + 1;
        let (required, alive) = (reads + count(pending.len()), count(live.len()));
        if alive < required {
            return Err(InsufficientReplicas { required, alive });
        }
        let participants = count(natural.len() + pending.len());
        assert!(participants < 2 * required, "two sets of replicas that promise have one in common");
        Ok(PromisePlan { live, pending, required, reads })
    }
}
