//! Which nodes keep the record of a logged batch.
//!
//! Two live nodes of this data center other than this one: of two racks where there are such, and
//! away from this node's rack unless `batchlog_endpoint_strategy` prefers it. They are drawn, or,
//! where the strategy goes by latency, the fastest by the scores of the dynamic snitch.
//!
//! Agrees with `org.apache.cassandra.locator.ReplicaPlans.filterBatchlogEndpoints`, with one
//! difference: of a data center of two nodes the other one alone keeps the record. There Cassandra
//! takes both, and refuses batches while the other is down.

use std::collections::BTreeMap;

use env::Random;
use ring::{EndpointId, Ring};

use crate::coordinator::contacts::distance;
use crate::dynamic_snitch::Scores;

/// How many nodes keep the record of a batch, where there are as many.
pub(super) const HOSTS: usize = 2;

/// A choice of hosts.
pub(super) struct Hosts<'a> {
    /// The nodes there are.
    pub ring: &'a Ring,
    /// See [`crate::BatchHosts::prefers_own_rack`].
    pub prefers_own_rack: bool,
    /// Scores of the dynamic snitch, if they decide.
    pub scores: Option<&'a Scores>,
}

impl Hosts<'_> {
    /// The nodes that keep a record. Empty: no other node of the data center is up.
    pub fn choose(&self, random: &dyn Random) -> Vec<EndpointId> {
        let ring = self.ring;
        let all = (0u32..).map(EndpointId).zip(ring.endpoints());
        let mut members: Vec<EndpointId> = all
            .filter(|(_, endpoint)| endpoint.data_center == ring.local_data_center() && endpoint.owns_tokens())
            .map(|(id, _)| id)
            .collect();
        if members == [ring.local_id()] {
            return members;
        }
        members.retain(|id| *id != ring.local_id() && ring.endpoint(*id).is_up);
        let is_away = |id: &EndpointId| ring.endpoint(*id).rack != ring.local().rack;
        let away = members.iter().filter(|id| is_away(id)).count();
        if members.len() > HOSTS && away >= HOSTS && !self.prefers_own_rack {
            members.retain(is_away);
        }
        let chosen = match self.scores {
            Some(scores) => self.fastest(members, scores),
            None => self.drawn(members, random),
        };
        assert!(chosen.len() <= HOSTS && !chosen.contains(&ring.local_id()), "two other nodes at most keep a record");
        assert!(!matches!(chosen[..], [one, other] if one == other), "the hosts of a record are distinct");
        chosen
    }

    /// Two of different racks, and a second of a rack that is the only one.
    fn drawn(&self, members: Vec<EndpointId>, random: &dyn Random) -> Vec<EndpointId> {
        let draw = |bound: usize| random.below(bound as u64) as usize;
        let mut racks: BTreeMap<&str, Vec<EndpointId>> = BTreeMap::new();
        for id in members {
            racks.entry(&self.ring.endpoint(id).rack).or_default().push(id);
        }
        let own = self.prefers_own_rack.then(|| racks.remove(self.ring.local().rack.as_str())).flatten();
        let mut racks: Vec<Vec<EndpointId>> = racks.into_values().collect();
        let mut chosen = Vec::with_capacity(HOSTS);
        if let Some(mut own) = own {
            chosen.push(own.swap_remove(draw(own.len())));
            if racks.is_empty() && !own.is_empty() {
                racks.push(own);
            }
        }
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

    /// The fastest, and the fastest of another rack than its own where there is one.
    fn fastest(&self, mut members: Vec<EndpointId>, scores: &Scores) -> Vec<EndpointId> {
        // stable: equally near ones stay in the order of the ring
        members.sort_by_key(|id| distance(self.ring, *id));
        scores.order(&mut members, |id| self.ring.endpoint(*id).address);
        let Some((first, others)) = members.split_first() else { return Vec::new() };
        let rack = |id: &EndpointId| self.ring.endpoint(*id).rack.as_str();
        let second = others.iter().find(|id| rack(id) != rack(first)).or(others.first());
        std::iter::once(*first).chain(second.copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashMap};

    use env::sim::World;
    use ring::{Endpoint, State};

    use super::*;

    /// Nodes as `dc/rack`, those that are down with a `-` before them; this node is the first.
    fn ring(nodes: &[&str]) -> Ring {
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
        Ring::new((0..).zip(nodes).map(endpoint).collect(), EndpointId(0))
    }

    /// The hosts that two hundred draws give.
    fn drawn(nodes: &[&str], prefers_own_rack: bool) -> BTreeSet<Vec<u32>> {
        let (ring, random) = (ring(nodes), World::new(1, 1).dice());
        let draws = (0..200).map(|_| {
            let hosts = Hosts { ring: &ring, prefers_own_rack, scores: None }.choose(&random);
            let mut hosts: Vec<u32> = hosts.into_iter().map(|id| id.0).collect();
            hosts.sort_unstable();
            hosts
        });
        draws.collect()
    }

    fn all(sets: &[&[u32]]) -> BTreeSet<Vec<u32>> {
        sets.iter().map(|set| set.to_vec()).collect()
    }

    #[test]
    fn a_record_lies_in_two_racks_away_from_its_coordinator() {
        let chosen = |nodes: &[&str]| drawn(nodes, false);
        // alone in its data center; with one other; with others that are down
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
    #[test]
    fn a_strategy_may_prefer_the_own_rack() {
        let chosen = |nodes: &[&str]| drawn(nodes, true);
        // one of the own rack and one of another
        assert_eq!(chosen(&["a/1", "a/1", "a/2", "a/2"]), all(&[&[1, 2], &[1, 3]]));
        assert_eq!(chosen(&["a/1", "a/1", "a/2", "a/3", "b/1"]), all(&[&[1, 2], &[1, 3]]));
        // nobody else is in it, or nobody else is elsewhere
        assert_eq!(chosen(&["a/1", "a/2", "a/3"]), all(&[&[1, 2]]));
        assert_eq!(chosen(&["a/1", "a/1", "a/1", "a/1"]), all(&[&[1, 2], &[1, 3], &[2, 3]]));
        assert_eq!(chosen(&["a/1"]), all(&[&[0]]));
    }

    #[test]
    fn a_strategy_may_go_by_latency() {
        // medians in milliseconds; of nodes that are not listed nothing is known, which is fastest
        let fastest = |nodes: &[&str], prefers_own_rack: bool, medians: &[(u8, f64)]| {
            let ring = ring(nodes);
            let medians: Vec<_> = medians.iter().map(|(id, ms)| (([127, 0, 0, *id], 7000).into(), *ms)).collect();
            let scores = Scores::new(&medians, HashMap::new(), 0.0);
            let hosts = Hosts { ring: &ring, prefers_own_rack, scores: Some(&scores) };
            hosts.choose(&World::new(1, 1).dice()).into_iter().map(|id| id.0).collect::<Vec<_>>()
        };
        let two_racks = ["a/1", "a/1", "a/2", "a/2", "a/2"];
        // the own rack is left out; the only other rack gives both
        let medians = [(1, 1.0), (2, 9.0), (3, 5.0), (4, 7.0)];
        assert_eq!(fastest(&two_racks, false, &medians), [3, 4]);
        // or it is a rack like others, and its second place is another rack's
        assert_eq!(fastest(&two_racks, true, &medians), [1, 3]);
        assert_eq!(fastest(&["a/1", "a/2", "a/2", "a/3"], false, &[(1, 1.0), (2, 2.0), (3, 3.0)]), [1, 3]);
        assert_eq!(fastest(&["a/1", "-a/2", "a/2"], false, &[(2, 2.0)]), [2]);
        assert_eq!(fastest(&["a/1", "-a/2"], false, &[]), [0; 0]);
    }
}
