//! Consistency levels: how many replicas they wait for, and whether enough are up.
//!
//! Agrees with `org.apache.cassandra.db.ConsistencyLevel.blockFor`, `blockForWrite` and
//! `locator.ReplicaPlans.assureSufficientLiveReplicas`.

use types::Consistency;

use crate::endpoint::{Endpoint, EndpointId};
use crate::replication::Replication;

/// Too few replicas are up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InsufficientReplicas {
    /// How many replicas the level needs, over all data centers or in the one that lacks them.
    pub required: u32,
    /// How many of these replicas are up.
    pub alive: u32,
}

/// A majority of `factor` replicas.
pub fn quorum(factor: u32) -> u32 {
    factor / 2 + 1
}

/// Number of replicas that a level waits for, without those that are about to be replicas.
pub fn block_for(level: Consistency, replication: &Replication, local_data_center: &str) -> u32 {
    match level {
        Consistency::Any | Consistency::One | Consistency::LocalOne | Consistency::NodeLocal => 1,
        Consistency::Two => 2,
        Consistency::Three => 3,
        Consistency::Quorum | Consistency::Serial => quorum(replication.factor()),
        Consistency::LocalQuorum | Consistency::LocalSerial => local_quorum(replication, local_data_center),
        Consistency::EachQuorum => match replication {
            Replication::NetworkTopology { factors } => {
                factors.values().fold(0u32, |sum, factor| sum.saturating_add(quorum(*factor)))
            }
            Replication::Local | Replication::Simple { .. } => quorum(replication.factor()),
        },
        Consistency::All => replication.factor(),
    }
}

/// A majority of the replicas of a data center; of all replicas if the strategy knows no data
/// centers.
fn local_quorum(replication: &Replication, data_center: &str) -> u32 {
    quorum(replication.factor_in(data_center).unwrap_or_else(|| replication.factor()))
}

/// Number of further replicas that a write waits for: one for each node that is about to be a
/// replica, because such a node does not count for the level yet.
pub(crate) fn more_for_pending(level: Consistency, pending: u32, pending_in_local: u32) -> u32 {
    match level {
        Consistency::Any => 0,
        _ if level.is_datacenter_local() => pending_in_local,
        _ => pending,
    }
}

/// Whether enough replicas are up for a level that waits for `block_for`.
pub(crate) fn check(
    level: Consistency,
    block_for: u32,
    replication: &Replication,
    live: &[EndpointId],
    endpoints: &[Endpoint],
    local_data_center: &str,
) -> Result<(), InsufficientReplicas> {
    let in_center = |name: &str| {
        let here = live.iter().filter(|id| endpoints[id.index()].data_center == name);
        u32::try_from(here.count()).unwrap_or(u32::MAX)
    };
    let enough = |required: u32, alive: u32| match alive >= required {
        true => Ok(()),
        false => Err(InsufficientReplicas { required, alive }),
    };
    match (level, replication) {
        // a hint that this node keeps is enough
        (Consistency::Any, _) => Ok(()),
        (Consistency::LocalOne, _) => match in_center(local_data_center) {
            alive if alive >= block_for => Ok(()),
            alive => Err(InsufficientReplicas { required: 1, alive }),
        },
        (Consistency::LocalQuorum | Consistency::LocalSerial, _) => enough(block_for, in_center(local_data_center)),
        (Consistency::EachQuorum, Replication::NetworkTopology { factors }) => {
            factors.iter().try_for_each(|(name, factor)| enough(quorum(*factor), in_center(name)))
        }
        _ => enough(block_for, u32::try_from(live.len()).unwrap_or(u32::MAX)),
    }
}
