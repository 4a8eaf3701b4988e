//! The pace of sending hints and streams: a limit of the bytes a second.
//!
//! A sender that takes bytes waits until the time for the bytes that it took before is over. A
//! sender that has sent nothing for a while gets no credit for that. Agrees with Guava's
//! `RateLimiter`, as `HintsDispatchExecutor` and `StreamManager` use it.

use std::time::Duration;

use env::{Env, Instant};

/// The time at which the next bytes may be sent.
pub struct Pace {
    free_at: Instant,
}

impl Pace {
    /// A pace that has no bytes to wait for.
    pub fn new(env: &Env) -> Self {
        Self { free_at: env.now() }
    }

    /// Takes bytes at `rate` bytes a second (0: without a limit), and gives how long to wait before
    /// they are sent.
    pub fn take(&mut self, now: Instant, bytes: usize, rate: u64) -> Duration {
        let wait = self.free_at.since(now);
        if rate == 0 {
            self.free_at = now;
            return Duration::ZERO;
        }
        let begin = if self.free_at > now { self.free_at } else { now };
        self.free_at = begin.plus(Duration::from_secs_f64(bytes as f64 / rate as f64));
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_wait_for_those_before_them() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let mut pace = Pace { free_at: at(0) };
        let mut take = |now, bytes, rate| pace.take(at(now), bytes, rate).as_millis();
        assert_eq!(take(0, 500, 1000), 0);
        assert_eq!(take(0, 500, 1000), 500);
        assert_eq!(take(600, 100, 1000), 400);
        // no credit for the time in which nothing was sent
        assert_eq!(take(9000, 500, 1000), 0);
        assert_eq!(take(9000, 500, 1000), 500);
        assert_eq!(take(9000, 500, 0), 0);
        assert_eq!(take(9000, 500, 1000), 0);
    }
}
