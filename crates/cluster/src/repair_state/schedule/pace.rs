//! The pace of scheduled repairs, by the latency of clients: the 99th percentile of a window of
//! requests beside that of windows without repairs, which moves slowly.

use metrics::Snapshot;

/// Requests that a window needs to have a percentile. With fewer requests there are no clients
/// that a repair could disturb.
const REQUESTS_MIN: u64 = 100;
/// Weight of a new window without repairs in the base, 0 to 1.
const MOVES: f64 = 0.1;

/// The latency of clients, as scheduled repairs see it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Pace {
    /// All requests up to the end of the last window; None: before the first one.
    last: Option<Snapshot>,
    /// The moving mean of the percentile in windows without repairs, microseconds; None: there was
    /// no such window with enough requests.
    base: Option<f64>,
    /// The percentile of the last window, microseconds; 0: it had too few requests.
    latest: u64,
}

impl Pace {
    /// Called when a window has ended. `is_quiet`: no repair ran in it.
    pub fn window(&mut self, now: Snapshot, is_quiet: bool) {
        let window = self.last.as_ref().map(|last| now.since(last));
        self.last = Some(now);
        let Some(window) = window else { return };
        self.latest = if window.count() < REQUESTS_MIN { 0 } else { window.percentile(0.99) };
        if is_quiet && self.latest > 0 {
            let latest = self.latest as f64;
            self.base = Some(self.base.map_or(latest, |base| base + MOVES * (latest - base)));
        }
    }

    /// Whether clients wait for longer than `factor` times what they are used to.
    pub fn is_slow(&self, factor: f64) -> bool {
        self.base.is_some_and(|base| self.latest as f64 > base * factor)
    }

    /// The base and the last window's percentile, microseconds; 0: not known.
    pub fn micros(&self) -> (u64, u64) {
        (self.base.unwrap_or(0.0) as u64, self.latest)
    }
}

#[cfg(test)]
mod tests {
    use metrics::Histogram;

    use super::*;

    #[test]
    fn slow_is_beside_what_clients_are_used_to() {
        let (histogram, mut pace) = (Histogram::default(), Pace::default());
        let window = |count: usize, micros: u64, is_quiet: bool, pace: &mut Pace| {
            (0..count).for_each(|_| histogram.record(micros));
            pace.window(histogram.snapshot(), is_quiet);
        };
        window(500, 90_000, true, &mut pace);
        assert_eq!(pace.micros(), (0, 0), "what was before the first window does not count");
        window(1000, 1000, true, &mut pace);
        let (base, latest) = pace.micros();
        assert!(base == latest && (1000..1300).contains(&base), "{base}");
        window(1000, 5000, false, &mut pace);
        assert!(pace.is_slow(2.0) && !pace.is_slow(9.0));
        assert_eq!(pace.micros().0, base, "a window with a repair is no base");
        window(10, 90_000, false, &mut pace);
        assert!(!pace.is_slow(2.0), "too few requests");
        for _ in 0..100 {
            window(200, 5000, true, &mut pace);
        }
        window(200, 5000, false, &mut pace);
        assert!(!pace.is_slow(2.0), "the base has moved");
    }
}
