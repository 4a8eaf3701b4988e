//! The ranges of which an endpoint is the first replica.
//!
//! Agrees with `StorageService.getPrimaryRanges` and `getLocalPrimaryRange`.

use types::Token;

use crate::endpoint::EndpointId;
use crate::placement::Placement;
use crate::snapshot::Ring;

/// Ranges of tokens, each from a token (excluded) to a token (included). Start and end being the
/// same means the whole ring.
pub type Ranges = Vec<(Token, Token)>;

impl Placement {
    /// The ranges whose primary replica is an endpoint.
    pub fn primary_ranges(&self, of: EndpointId) -> Ranges {
        let is_first = |replicas: &[EndpointId]| replicas.first() == Some(&of);
        self.ranges().filter(|(.., replicas)| is_first(replicas)).map(|(start, end, _)| (start, end)).collect()
    }
}

impl Ring {
    /// The ranges that end at tokens of this node, in the ring of the tokens of its data center
    /// alone.
    pub fn local_primary_ranges(&self) -> Ranges {
        let is_near = |owner: &EndpointId| self.endpoint(*owner).data_center == self.local_data_center();
        let tokens: Vec<_> = self.owners().iter().filter(|(_, owner)| is_near(owner)).collect();
        let starts = tokens.last().into_iter().chain(&tokens).map(|(token, _)| *token);
        let ranges = starts.zip(&tokens).filter(|(_, (_, owner))| *owner == self.local_id());
        ranges.map(|(start, (end, _))| (start, *end)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::{Endpoint, Replication, State};

    fn endpoint(number: u8, data_center: &str, tokens: &[i64]) -> Endpoint {
        let address = SocketAddr::from(([10, 0, 0, number], 7000));
        Endpoint {
            address,
            native: address,
            host_id: [number; 16],
            data_center: data_center.to_owned(),
            rack: "rack".to_owned(),
            tokens: tokens.iter().copied().map(Token).collect(),
            is_up: true,
            state: State::Normal,
        }
    }

    /// The data centers of the ring interleave: beside the ring of all tokens each has its own.
    #[test]
    fn ranges_of_the_ring_and_of_the_data_center() {
        let endpoints = vec![endpoint(1, "a", &[0, 20]), endpoint(2, "a", &[10]), endpoint(3, "b", &[1, 11, 21])];
        let factors = [("a".to_owned(), 1), ("b".to_owned(), 1)].into();
        let keyspaces = [
            ("simple".to_owned(), Ok(Replication::Simple { factor: 2 })),
            ("near".to_owned(), Ok(Replication::NetworkTopology { factors })),
        ];
        let ring = Ring::new(endpoints, EndpointId(0)).with_keyspaces(keyspaces);
        let ranges =
            |pairs: &[(i64, i64)]| pairs.iter().map(|(start, end)| (Token(*start), Token(*end))).collect::<Ranges>();
        let of = |keyspace: &str| ring.placement(keyspace).expect("placed").primary_ranges(EndpointId(0));
        assert_eq!(of("simple"), ranges(&[(21, 0), (11, 20)]));
        assert_eq!(of("near").len() + ring.placement("near").expect("placed").primary_ranges(EndpointId(2)).len(), 5);
        assert_eq!(ring.local_primary_ranges(), ranges(&[(20, 0), (10, 20)]));
        let alone = Ring::new(vec![endpoint(1, "a", &[7])], EndpointId(0));
        assert_eq!(alone.local_primary_ranges(), ranges(&[(7, 7)]));
    }
}
