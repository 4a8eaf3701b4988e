//! Lines of the log that a peer can cause with each message: at most one a minute.

use std::sync::atomic::{AtomicU64, Ordering};

use env::Instant;

/// The least time between two lines, nanoseconds.
const PAUSE: u64 = 60 * 1_000_000_000;

/// When the last line of a kind was written.
#[derive(Default, Debug)]
pub(crate) struct Seldom(AtomicU64);

impl Seldom {
    /// Whether a line may be written now; if so the next one may in a minute.
    pub fn is_due(&self, now: Instant) -> bool {
        // 0 stands for never
        let now = now.as_nanos().max(1);
        let due = |last: u64| (last == 0 || now.saturating_sub(last) >= PAUSE).then_some(now);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, due).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_a_minute() {
        let (seldom, at) = (Seldom::default(), |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000));
        let due: Vec<u64> = (1..200).filter(|second| seldom.is_due(at(*second))).collect();
        assert_eq!(due, [1, 61, 121, 181]);
    }
}
