//! The latencies of one replica of late: at most [`SIZE`] of them, of which recent ones are more
//! likely to be kept and weigh more.
//!
//! Pure: the caller gives time and random numbers. A latency of time `t` (in seconds) has the
//! weight `exp(ALPHA * t)`, and the priority `weight / u` for a random `u` in (0, 1]; those with
//! the greatest priorities are kept. Weights are held as logarithms, so they never overflow. Agrees
//! with `com.codahale.metrics.ExponentiallyDecayingReservoir` and `WeightedSnapshot.getMedian`, as
//! `org.apache.cassandra.locator.DynamicEndpointSnitch` uses them.

use std::time::Duration;

/// Latencies that are kept (`DynamicEndpointSnitch.WINDOW_SIZE`).
pub(super) const SIZE: usize = 100;

/// How much faster than linear the weight of latencies grows with their time
/// (`DynamicEndpointSnitch.ALPHA`): a latency weighs half as much as one that is 0.92 s younger.
const ALPHA: f64 = 0.75;

/// The latencies of one replica of late.
#[derive(Default)]
pub(super) struct Sample {
    kept: Vec<WeightedLatency>,
}

struct WeightedLatency {
    /// Natural logarithm of the weight.
    weight: f64,
    /// Natural logarithm of the priority.
    priority: f64,
    /// The latency in whole milliseconds: replicas that are faster are all alike.
    millis: u64,
}

impl Sample {
    /// Takes a latency that was measured `at` (monotonic time). `random`: any number.
    pub fn add(&mut self, latency: Duration, at: Duration, random: u64) {
        // 53 random bits, in (0, 1]
        let share = ((random >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        let weight = ALPHA * at.as_secs_f64();
        let millis = u64::try_from(latency.as_millis()).unwrap_or(u64::MAX);
        let new = WeightedLatency { weight, priority: weight - share.ln(), millis };
        if self.kept.len() < SIZE {
            self.kept.push(new);
            return;
        }
        let least = self.kept.iter_mut().min_by(|one, other| one.priority.total_cmp(&other.priority));
        if let Some(least) = least.filter(|least| least.priority < new.priority) {
            *least = new;
        }
        assert!(self.kept.len() <= SIZE, "a sample has its size at most");
    }

    /// The weighted median in milliseconds; None: there are no latencies.
    pub fn median(&self) -> Option<f64> {
        let newest = self.kept.iter().map(|kept| kept.weight).fold(f64::NEG_INFINITY, f64::max);
        let mut weighed: Vec<(u64, f64)> =
            self.kept.iter().map(|kept| (kept.millis, (kept.weight - newest).exp())).collect();
        weighed.sort_by_key(|(millis, _)| *millis);
        let half = weighed.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
        let mut below = 0.0;
        // the last one below which no more than half of the weight lies
        let median = weighed.iter().take_while(|(_, weight)| {
            let is_within = below <= half;
            below += weight;
            is_within
        });
        median.last().map(|(millis, _)| *millis as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    #[test]
    fn the_median_of_one_moment_is_the_middle() {
        let mut sample = Sample::default();
        assert_eq!(sample.median(), None);
        for millis in [9, 1, 5, 7, 3] {
            sample.add(MILLI * millis, Duration::ZERO, u64::from(millis) << 60);
        }
        assert_eq!(sample.median(), Some(5.0));
    }

    /// Three late latencies outweigh a hundred of ten seconds before; a clock far from its origin
    /// does not overflow.
    #[test]
    fn late_latencies_weigh_more() {
        let mut sample = Sample::default();
        let begun = Duration::from_secs(1 << 40);
        for number in 0..150_u64 {
            sample.add(MILLI * 2, begun, number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        }
        assert_eq!((sample.median(), sample.kept.len()), (Some(2.0), SIZE));
        for _ in 0..3 {
            sample.add(MILLI * 40, begun + Duration::from_secs(10), u64::MAX / 2);
        }
        assert_eq!((sample.median(), sample.kept.len()), (Some(40.0), SIZE));
    }
}
