//! The plan of a request: its replicas, and how many of them it waits for.
//!
//! A plan does not say to which replica a request is sent first: the snitch and the coordinator
//! decide that. Agrees with `org.apache.cassandra.locator.ReplicaPlans` (`forWrite`, `forRead`,
//! `forRangeRead`).

use smallvec::SmallVec;
use types::{Consistency, Token};

use crate::endpoint::EndpointId;
use crate::level::{self, InsufficientReplicas};
use crate::placement::Placement;
use crate::snapshot::Ring;

/// Some replicas of a range, in the order of the ring.
pub type Replicas = SmallVec<[EndpointId; 6]>;

/// The replicas of one request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplicaPlan {
    /// The level that the client asked for.
    pub level: Consistency,
    /// How many replicas must answer.
    pub block_for: u32,
    /// Replicas that are up. In the plan of a write also those that are about to be replicas, or
    /// were replicas until a moment ago.
    pub live: Replicas,
    /// Endpoints that are about to be replicas, up or down, and those that were until a moment ago
    /// and are up; empty in the plan of a read.
    pub pending: Replicas,
    /// Replicas that are down: a write leaves them a hint.
    pub down: Replicas,
}

impl Ring {
    /// The plan of a write to a partition.
    pub fn plan_write(
        &self,
        placement: &Placement,
        token: Token,
        level: Consistency,
    ) -> Result<ReplicaPlan, InsufficientReplicas> {
        let (pending, former) = (placement.pending(token), placement.former(token));
        if former.is_empty() {
            return self.plan(placement, level, placement.natural(token), pending);
        }
        let pending: Replicas = pending.iter().copied().chain(self.live_endpoints(former)).collect();
        self.plan(placement, level, placement.natural(token), &pending)
    }

    /// The endpoints that were replicas until a moment ago and may still be read, because they are
    /// up.
    pub(crate) fn live_endpoints<'a>(&'a self, former: &'a [EndpointId]) -> impl Iterator<Item = EndpointId> + 'a {
        former.iter().copied().filter(|id| self.endpoint(*id).is_up)
    }

    /// The plan of a read of a partition.
    pub fn plan_read(
        &self,
        placement: &Placement,
        token: Token,
        level: Consistency,
    ) -> Result<ReplicaPlan, InsufficientReplicas> {
        self.plan(placement, level, placement.natural(token), &[])
    }

    /// The plans of a read of the range from `start` (excluded) to `end` (included): one for each
    /// range of the ring in it, in the order of the ring. Err: too few replicas of that range are
    /// up. Start and end being the same means the whole ring. Each plan is made when the iterator
    /// comes to it, because a read may need only the first few of thousands.
    pub fn plan_range(
        &self,
        placement: &Placement,
        start: Token,
        end: Token,
        level: Consistency,
    ) -> impl Iterator<Item = (Token, Token, Result<ReplicaPlan, InsufficientReplicas>)> {
        let mut last = start;
        placement.ends_between(start, end).chain([end]).map(move |to| {
            let from = std::mem::replace(&mut last, to);
            (from, to, self.plan_read(placement, to, level))
        })
    }

    fn plan(
        &self,
        placement: &Placement,
        level: Consistency,
        natural: &[EndpointId],
        pending: &[EndpointId],
    ) -> Result<ReplicaPlan, InsufficientReplicas> {
        let mut block_for = level::block_for(level, &placement.replication, self.local_data_center());
        if !pending.is_empty() {
            let local = pending.iter().filter(|id| self.endpoint(**id).data_center == self.local_data_center());
            let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
            let more = level::more_for_pending(level, count(pending.len()), count(local.count()));
            block_for = block_for.saturating_add(more);
        }
        let (mut live, mut down) = (Replicas::new(), Replicas::new());
        for id in natural.iter().chain(pending) {
            match self.endpoint(*id).is_up {
                true => live.push(*id),
                false => down.push(*id),
            }
        }
        let is_repeated = |(at, id): (usize, &EndpointId)| live[..at].contains(id) || down.contains(id);
        debug_assert!(!live.iter().enumerate().any(is_repeated), "the replicas of a plan are distinct");
        level::check(level, block_for, &placement.replication, &live, self.endpoints(), self.local_data_center())?;
        // ANY is content with a hint, and EACH_QUORUM was judged by data center
        let is_judged_by_all = !matches!(level, Consistency::Any | Consistency::EachQuorum);
        assert!(
            !is_judged_by_all || block_for as usize <= live.len(),
            "a plan waits for replicas that are up: {level:?}"
        );
        Ok(ReplicaPlan { level, block_for, live, pending: pending.into(), down })
    }
}
