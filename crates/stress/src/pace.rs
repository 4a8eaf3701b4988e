//! The moments at which operations should begin.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Moments at equal distances at which operations should begin.
pub struct Pace {
    begin: Instant,
    distance: Duration,
    next: AtomicU64,
}

impl Pace {
    /// This many moments a second, from now on.
    pub fn new(per_second: f64) -> Self {
        Self { begin: Instant::now(), distance: Duration::from_secs_f64(1.0 / per_second), next: AtomicU64::new(0) }
    }

    /// The next moment.
    pub fn next(&self) -> Instant {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let nanos = (self.distance.as_nanos() as u64).saturating_mul(number);
        self.begin + Duration::from_nanos(nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_lie_at_equal_distances() {
        let pace = Pace::new(1000.0);
        let (first, _, third) = (pace.next(), pace.next(), pace.next());
        assert_eq!(third - first, Duration::from_millis(2));
    }
}
