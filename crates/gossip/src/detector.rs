//! How long a silence is too long: the phi accrual failure detector.
//!
//! For each peer the times between arrivals of news about it are kept. From their mean follows
//! phi, which says how improbable the present silence is: `(now − last) / mean / ln 10`. A peer is
//! convicted above `phi_convict_threshold`: a silence of 18.4 means by default.
//! `org.apache.cassandra.gms.FailureDetector`, `ArrivalWindow`.

use std::collections::VecDeque;
use std::time::Duration;

use crate::options::ROUND;

/// Intervals that are remembered.
const SAMPLES_MAX: usize = 1000;

/// Longest interval that is a sample. In a longer one the peer was away, and its return says
/// nothing about its pace (`fd_max_interval_ms`). The first arrival counts as one such interval
/// (`fd_initial_value_ms`).
const INTERVAL_MAX: Duration = Duration::from_millis(2000);

const _: () = assert!(ROUND.as_millis() < INTERVAL_MAX.as_millis(), "the pace of rounds is a sample");

/// 1 / ln 10: phi counts powers of ten.
const PHI_FACTOR: f64 = std::f64::consts::LOG10_E;

/// Arrivals of news about one peer.
#[derive(Clone, Debug, Default)]
pub struct ArrivalWindow {
    intervals: VecDeque<Duration>,
    sum: Duration,
    /// When news came last, on the clock of [`crate::Now::monotonic`]; `None`: never.
    last: Option<Duration>,
}

impl ArrivalWindow {
    /// Notes that news has come.
    pub fn report(&mut self, now: Duration) {
        let interval = match self.last {
            None => Some(INTERVAL_MAX),
            Some(last) => Some(now.saturating_sub(last)).filter(|interval| *interval <= INTERVAL_MAX),
        };
        if let Some(interval) = interval {
            if self.intervals.len() == SAMPLES_MAX {
                self.sum -= self.intervals.pop_front().unwrap_or_default();
            }
            self.intervals.push_back(interval);
            self.sum += interval;
        }
        assert!(self.intervals.len() <= SAMPLES_MAX, "a window keeps a bounded number of intervals");
        self.last = Some(now);
    }

    /// Forgets the intervals of a peer that has been started anew: its former pace says nothing.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The phi of the present silence: how improbable it is. 0 before the first news.
    pub fn phi(&self, now: Duration) -> f64 {
        let Some(last) = self.last else { return 0.0 };
        let mean = self.sum.as_secs_f64() / self.intervals.len().max(1) as f64;
        match mean > 0.0 {
            true => now.saturating_sub(last).as_secs_f64() / mean * PHI_FACTOR,
            false => 0.0,
        }
    }

    /// When news came last; None: never.
    pub fn last(&self) -> Option<Duration> {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_of_eighteen_means_convicts() {
        let mut window = ArrivalWindow::default();
        assert_eq!(window.phi(Duration::from_secs(100)), 0.0);
        (0..2000).for_each(|second| window.report(Duration::from_secs(second)));
        assert_eq!(window.intervals.len(), SAMPLES_MAX);
        let silent = |seconds: f64| window.phi(Duration::from_secs_f64(1999.0 + seconds));
        assert!(silent(18.3) < 8.0 && silent(18.5) > 8.0, "{} {}", silent(18.3), silent(18.5));
    }

    #[test]
    fn a_return_after_an_absence_is_no_sample() {
        let mut window = ArrivalWindow::default();
        for second in [0, 1, 2, 50, 51] {
            window.report(Duration::from_secs(second));
        }
        // the first counts as 2 s; the way from 2 to 50 is left out
        assert_eq!(window.sum, Duration::from_secs(2 + 1 + 1 + 1));
        assert_eq!(window.last(), Some(Duration::from_secs(51)));
    }
}
