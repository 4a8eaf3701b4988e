//! Levels: how many replicas must take part, and whether they are there.
//!
//! Agrees with `org.apache.cassandra.db.ConsistencyLevel.blockFor` and `locator.ReplicaPlans`, for a ring of this node alone.

use schema::{KeyspaceMetadata, Replication};
use types::Consistency;

/// Too few replicas.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shortage {
    /// How many are needed.
    pub required: u32,
    /// How many there are.
    pub alive: u32,
}

/// What is needed and there of a keyspace's replicas, where `data_center` has this node and nothing else exists.
pub fn check(keyspace: &KeyspaceMetadata, level: Consistency, data_center: &str) -> Result<u32, Shortage> {
    let required = block_for(&keyspace.replication, level, data_center);
    let alive = here(&keyspace.replication, data_center);
    if required <= alive || level == Consistency::Any { Ok(required) } else { Err(Shortage { required, alive }) }
}

/// Replicas that a level waits for.
pub fn block_for(replication: &Replication, level: Consistency, data_center: &str) -> u32 {
    let quorum = |factor: u32| factor / 2 + 1;
    let factor = replication.factor();
    let by_data_center = replication.short_class() == "NetworkTopologyStrategy";
    match level {
        Consistency::Any | Consistency::One | Consistency::LocalOne | Consistency::NodeLocal => 1,
        Consistency::Two => 2,
        Consistency::Three => 3,
        Consistency::Quorum | Consistency::Serial => quorum(factor),
        Consistency::LocalQuorum | Consistency::LocalSerial if by_data_center => {
            quorum(factor_in(replication, data_center))
        }
        Consistency::EachQuorum if by_data_center => {
            replication.options.keys().map(|name| quorum(factor_in(replication, name))).sum()
        }
        Consistency::LocalQuorum | Consistency::LocalSerial | Consistency::EachQuorum => quorum(factor),
        Consistency::All => factor,
    }
}

/// Copies in one data centre of a NetworkTopologyStrategy.
fn factor_in(replication: &Replication, data_center: &str) -> u32 {
    let text = replication.options.get(data_center).map_or("0", String::as_str);
    text.split('/').next().and_then(|all| all.parse().ok()).unwrap_or(0)
}

/// This node is a replica: 1, or 0 where the keyspace has none in its data centre.
fn here(replication: &Replication, data_center: &str) -> u32 {
    match replication.short_class() {
        "LocalStrategy" => 1,
        "NetworkTopologyStrategy" => factor_in(replication, data_center).min(1),
        _ => replication.factor().min(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_node_and_many_copies() {
        let simple = Replication::simple;
        let network = Replication::from_stored(
            [("class", "org.apache.cassandra.locator.NetworkTopologyStrategy"), ("datacenter1", "3"), ("dc2", "2")]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
        )
        .expect("has a class");
        let cases = [
            (Replication::local(), Consistency::Quorum, 1),
            (simple(1), Consistency::All, 1),
            (simple(1), Consistency::Two, 2),
            (simple(3), Consistency::Quorum, 2),
            (simple(3), Consistency::All, 3),
            (simple(3), Consistency::LocalQuorum, 2),
            (network.clone(), Consistency::LocalQuorum, 2),
            (network.clone(), Consistency::EachQuorum, 4),
            (network.clone(), Consistency::Quorum, 3),
        ];
        for (replication, level, required) in cases {
            assert_eq!(block_for(&replication, level, "datacenter1"), required, "{replication:?} {level:?}");
        }
        assert_eq!(here(&network, "datacenter1"), 1);
        assert_eq!(here(&network, "elsewhere"), 0);
    }
}
