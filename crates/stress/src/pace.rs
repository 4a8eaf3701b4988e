//! Which operation comes next, and when.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;

use crate::settings::population::Population;

/// Numbers of operations, given out to all threads until it is enough.
pub struct Source {
    population: Population,
    next: AtomicU64,
    limit: u64,
    stopped: AtomicBool,
}

impl Source {
    /// Gives out `limit` numbers, or goes on until it is stopped.
    pub fn new(population: Population, limit: Option<u64>) -> Self {
        Self { population, next: AtomicU64::new(0), limit: limit.unwrap_or(u64::MAX), stopped: AtomicBool::new(false) }
    }

    /// The next partition's seed.
    pub fn seed(&self, random: &mut SmallRng) -> Option<u64> {
        if self.stopped.load(Ordering::Relaxed) {
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if number >= self.limit {
            return None;
        }
        self.population.seed(number, random).map(|seed| seed as u64)
    }

    /// No more.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether it was stopped before its end.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// Moments at which operations should begin, at equal distances.
pub struct Pace {
    begin: Instant,
    distance: Duration,
    next: AtomicU64,
}

impl Pace {
    /// So many a second, from now on.
    pub fn new(per_second: f64) -> Self {
        Self { begin: Instant::now(), distance: Duration::from_secs_f64(1.0 / per_second), next: AtomicU64::new(0) }
    }

    /// When the next one should begin.
    pub fn next(&self) -> Instant {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let nanos = (self.distance.as_nanos() as u64).saturating_mul(number);
        self.begin + Duration::from_nanos(nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn a_sequence_ends_at_its_count_or_where_it_may_not_begin_again() {
        let mut random = SmallRng::seed_from_u64(1);
        let mut all = |wrap, limit| {
            let source = Source::new(Population::Sequence { first: 5, last: 7, wrap }, limit);
            std::iter::from_fn(|| source.seed(&mut random)).collect::<Vec<u64>>()
        };
        assert_eq!(all(true, Some(5)), [5, 6, 7, 5, 6]);
        assert_eq!(all(false, None), [5, 6, 7]);
    }

    #[test]
    fn moments_lie_at_equal_distances() {
        let pace = Pace::new(1000.0);
        let (first, _, third) = (pace.next(), pace.next(), pace.next());
        assert_eq!(third - first, Duration::from_millis(2));
    }
}
