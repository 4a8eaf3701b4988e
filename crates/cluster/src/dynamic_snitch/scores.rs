//! How bad each replica is, and the order that follows from it.
//!
//! Pure. The score of a replica is its median latency over the greatest one of all (which is at
//! least a millisecond), plus the severity that it tells of itself; less is better. Replicas stay
//! in the order of the snitch unless one of them is worse than the one that would stand at its
//! place by scores, by more than the badness threshold. Agrees with
//! `org.apache.cassandra.locator.DynamicEndpointSnitch` (`updateScores`, `sortedByProximity`).

use std::collections::HashMap;
use std::net::SocketAddr;

/// Severities by address; an endpoint that tells none has 0.
pub(crate) type Severities = HashMap<SocketAddr, f64>;

/// The scores at one moment.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Scores {
    by_address: HashMap<SocketAddr, f64>,
    /// The severities count also for replicas of which nothing was measured.
    severities: Severities,
    /// dynamic_snitch_badness_threshold; 0: scores alone count.
    badness_threshold: f64,
}

impl Scores {
    /// The scores of replicas whose median latencies in milliseconds are given.
    pub fn new(medians: &[(SocketAddr, f64)], severities: Severities, badness_threshold: f64) -> Self {
        let greatest = medians.iter().map(|(_, median)| *median).fold(1.0, f64::max);
        let severity = |address: &SocketAddr| severities.get(address).copied().unwrap_or_default();
        let score = |(address, median): &(SocketAddr, f64)| (*address, median / greatest + severity(address));
        let by_address = medians.iter().map(score).collect();
        Self { by_address, severities, badness_threshold }
    }

    /// The score of a replica.
    pub fn of(&self, address: SocketAddr) -> f64 {
        let unmeasured = || self.severities.get(&address).copied().unwrap_or_default();
        self.by_address.get(&address).copied().unwrap_or_else(unmeasured)
    }

    /// Orders replicas, nearest first. They come in the order of the snitch.
    pub fn order<T>(&self, near: &mut [T], address: impl Fn(&T) -> SocketAddr) {
        let score = |replica: &T| self.of(address(replica));
        if self.is_bad(&near.iter().map(score).collect::<Vec<_>>()) {
            // stable: the snitch decides among equal scores
            near.sort_by(|one, other| score(one).total_cmp(&score(other)));
        }
    }

    /// Whether scores in the order of the snitch are too far from the best order.
    fn is_bad(&self, scores: &[f64]) -> bool {
        let mut best = scores.to_vec();
        best.sort_by(f64::total_cmp);
        let most = 1.0 + self.badness_threshold;
        self.badness_threshold == 0.0 || scores.iter().zip(best).any(|(score, best)| *score > best * most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, number], 7000))
    }

    /// The order of the replicas 1, 2, 3 (as the snitch has them) with these medians.
    fn order(medians: [Option<u64>; 3], severities: &[(u8, f64)], threshold: f64) -> [u8; 3] {
        let severities = severities.iter().map(|(number, severity)| (address(*number), *severity)).collect();
        let measured = (1..).zip(medians).filter_map(|(number, median)| Some((address(number), median? as f64)));
        let scores = Scores::new(&measured.collect::<Vec<_>>(), severities, threshold);
        let mut near = [1, 2, 3];
        scores.order(&mut near, |number| address(*number));
        near
    }

    #[test]
    fn replicas_are_ordered_by_scores_beyond_the_threshold() {
        for (medians, severities, threshold, expected) in [
            ([None, None, None], &[][..], 1.0, [1, 2, 3]),
            // twice as slow is not bad enough, more than that is
            ([Some(20), Some(10), Some(10)], &[], 1.0, [1, 2, 3]),
            ([Some(21), Some(10), Some(10)], &[], 1.0, [2, 3, 1]),
            ([Some(11), Some(10), Some(10)], &[], 0.0, [2, 3, 1]),
            // below a millisecond all are alike
            ([Some(0), Some(0), Some(0)], &[], 0.0, [1, 2, 3]),
            // one that was not measured is worth a try
            ([Some(20), Some(10), None], &[], 1.0, [3, 2, 1]),
            // a severity counts beside the latency, and without one
            ([Some(10), Some(10), Some(10)], &[(1, 1.5)], 1.0, [2, 3, 1]),
            ([None, None, None], &[(2, 1.0)], 1.0, [1, 3, 2]),
            ([None, None, None], &[(3, -1.0)], 1.0, [3, 1, 2]),
        ] {
            assert_eq!(order(medians, severities, threshold), expected, "{medians:?} {severities:?} {threshold}");
        }
    }
}
