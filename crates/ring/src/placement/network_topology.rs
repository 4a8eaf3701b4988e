//! NetworkTopologyStrategy: each data center has its own number of replicas, in different racks as
//! long as there are further racks.
//!
//! One walk around the ring serves all data centers. In each of them
//! 1. an endpoint of a rack that has no replica yet is taken;
//! 2. an endpoint of a rack that has one is taken only if racks are fewer than copies, and only as
//!    often as copies exceed racks. So every rack gets one, and repeats are the first that are met,
//!    even before a new rack;
//! 3. a data center with fewer endpoints than copies gives all of its endpoints.
//!
//! Agrees with `org.apache.cassandra.locator.NetworkTopologyStrategy.calculateNaturalReplicas`.

use std::collections::BTreeMap;

use super::Natural;
use crate::endpoint::{Endpoint, EndpointId};

/// The strategy among some members: data centers and racks are counted once for all ranges.
pub(super) struct NetworkTopology<'a> {
    endpoints: &'a [Endpoint],
    /// Data centers without a replica yet, which a walk fills.
    centers: Vec<DataCenterReplicas<'a>>,
}

/// A data center that is being filled with replicas.
#[derive(Clone)]
struct DataCenterReplicas<'a> {
    name: &'a str,
    /// Replicas still to be found.
    left: u32,
    /// Number of endpoints in racks that have a replica already which may still be taken.
    repeats: u32,
    /// Racks that have a replica.
    racks: Vec<&'a str>,
}

impl<'a> DataCenterReplicas<'a> {
    /// A data center before the walk; None: it has no endpoint.
    fn new(name: &'a str, factor: u32, members: &[EndpointId], endpoints: &'a [Endpoint]) -> Option<Self> {
        let here = members.iter().map(|id| &endpoints[id.index()]).filter(|endpoint| endpoint.data_center == name);
        let (mut nodes, mut racks) = (0u32, Vec::new());
        for endpoint in here {
            nodes += 1;
            if !racks.contains(&endpoint.rack.as_str()) {
                racks.push(endpoint.rack.as_str());
            }
        }
        let repeats = factor.saturating_sub(u32::try_from(racks.len()).unwrap_or(u32::MAX));
        (nodes > 0 && factor > 0).then_some(Self { name, left: factor.min(nodes), repeats, racks: Vec::new() })
    }

    /// Whether an endpoint that has no replica yet gets one.
    fn accepts(&mut self, endpoint: &'a Endpoint) -> bool {
        if self.left == 0 {
            return false;
        }
        if !self.racks.contains(&endpoint.rack.as_str()) {
            self.racks.push(&endpoint.rack);
        } else if self.repeats > 0 {
            self.repeats -= 1;
        } else {
            return false;
        }
        self.left -= 1;
        true
    }
}

impl<'a> NetworkTopology<'a> {
    /// The strategy over these endpoints. `members` are the endpoints that count for the size of
    /// data centers and racks.
    pub fn new(endpoints: &'a [Endpoint], members: &[EndpointId], factors: &'a BTreeMap<String, u32>) -> Self {
        let centers = factors
            .iter()
            .filter_map(|(name, factor)| DataCenterReplicas::new(name, *factor, members, endpoints))
            .collect();
        Self { endpoints, centers }
    }

    /// The replicas of a range. `walk` gives the owners of tokens, beginning at the range.
    pub fn natural(&self, walk: impl Iterator<Item = EndpointId>) -> Natural {
        let mut centers = self.centers.clone();
        let mut natural = Natural::new();
        for id in walk {
            if centers.iter().all(|center| center.left == 0) {
                break;
            }
            let endpoint = &self.endpoints[id.index()];
            let center = centers.iter_mut().find(|center| center.name == endpoint.data_center);
            if let Some(center) = center
                && !natural.contains(&id)
                && center.accepts(endpoint)
            {
                natural.push(id);
            }
        }
        natural
    }
}
