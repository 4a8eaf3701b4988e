//! The replicas that decide a conditional statement by a majority.
//!
//! Those that are about to be replicas take part like the others, so that what a majority decided
//! before a change of the ring and what one decides after it have a replica in common. That holds
//! for one at a time: with two a statement is refused.
//! Agrees with `org.apache.cassandra.locator.ReplicaPlans.forPaxos`.

use types::{Consistency, Token};

use crate::endpoint::EndpointId;
use crate::level::Shortage;
use crate::placement::Placement;
use crate::plan::Replicas;
use crate::snapshot::Ring;

/// The replicas of one conditional statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CasPlan {
    /// SERIAL or LOCAL_SERIAL.
    pub level: Consistency,
    /// How many replicas must promise and accept: a majority of all, up or down.
    pub required: u32,
    /// Replicas that are up.
    pub live: Replicas,
}

impl Ring {
    /// The plan of a conditional statement of a partition, or of a read at SERIAL.
    pub fn plan_cas(&self, placement: &Placement, token: Token, level: Consistency) -> Result<CasPlan, Shortage> {
        let takes_part = |id: &&EndpointId| {
            level != Consistency::LocalSerial || self.endpoint(**id).data_center == self.local_data_center()
        };
        let pending = placement.pending(token).iter().filter(takes_part).count();
        let all: Replicas =
            placement.natural(token).iter().chain(placement.pending(token)).filter(takes_part).copied().collect();
        let live: Replicas = all.iter().filter(|id| self.endpoint(**id).is_up).copied().collect();
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let (participants, alive) = (count(all.len()), count(live.len()));
        let required = participants / 2 + 1;
        if alive < required {
            return Err(Shortage { required, alive });
        }
        if pending > 1 {
            // more than there are: no replica that comes up makes the statement possible
            return Err(Shortage { required: participants + 1, alive });
        }
        Ok(CasPlan { level, required, live })
    }
}
