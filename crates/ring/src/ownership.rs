//! The share of the data that each endpoint has, as `nodetool status` and `ring` show it.
//!
//! Agrees with `Murmur3Partitioner.describeOwnership` and `StorageService.effectiveOwnership`,
//! except that nothing is rounded on the way.

use types::Token;

use crate::placement::Placement;
use crate::snapshot::Ring;

/// Number of tokens of the ring.
const RING: f64 = 18_446_744_073_709_551_616.0;

/// How far a sum of parts may be from the whole: each of a million parts is rounded by 2^-53 at
/// most.
const ROUNDING_MAX: f64 = 1e-6;

/// The part of the ring from a token (excluded) to another (included); the whole ring where they
/// are the same.
pub fn part(start: Token, end: Token) -> f64 {
    match end.0.wrapping_sub(start.0) as u64 {
        0 => 1.0,
        tokens => tokens as f64 / RING,
    }
}

impl Ring {
    /// The share of the ring, 0 to 1, that each endpoint's tokens stand for, by the position of
    /// the endpoint. The sum is 1.
    pub fn ownership(&self) -> Vec<f64> {
        let mut owned = vec![0.0; self.endpoints().len()];
        let last = self.owners().last().map(|(token, _)| *token);
        let starts = last.into_iter().chain(self.owners().iter().map(|(token, _)| *token));
        for (start, (end, owner)) in starts.zip(self.owners()) {
            owned[owner.index()] += part(start, *end);
        }
        let sum: f64 = owned.iter().sum();
        assert!(last.is_none() || (sum - 1.0).abs() < ROUNDING_MAX, "the parts of the endpoints are the ring");
        owned
    }

    /// The share of a keyspace's partitions, 0 to 1, that each endpoint has a copy of. The sum is
    /// the number of copies.
    pub fn effective_ownership(&self, placement: &Placement) -> Vec<f64> {
        let mut owned = vec![0.0; self.endpoints().len()];
        for (start, end, replicas) in placement.ranges() {
            for replica in replicas {
                owned[replica.index()] += part(start, end);
            }
        }
        owned
    }
}
