//! SimpleStrategy: the endpoints that follow each other on the ring, whatever their racks.
//! Agrees with `org.apache.cassandra.locator.SimpleStrategy.calculateNaturalReplicas`.

use super::Natural;
use crate::endpoint::EndpointId;

/// The first `factor` different owners on a walk.
pub(super) fn natural(walk: impl Iterator<Item = EndpointId>, factor: u32) -> Natural {
    let mut natural = Natural::new();
    for id in walk {
        if natural.len() >= factor as usize {
            break;
        }
        if !natural.contains(&id) {
            natural.push(id);
        }
    }
    natural
}
