//! Limits lines of the log that a peer can cause with each message: one a minute at most, or as
//! few as the caller says.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use env::Instant;

/// The least time between two lines.
const PAUSE: Duration = Duration::from_secs(60);

/// When the last line of a kind was written.
#[derive(Default, Debug)]
pub(crate) struct LogLimiter(AtomicU64);

impl LogLimiter {
    /// Whether a line may be written now. If so, no other may for a minute.
    pub fn is_due(&self, now: Instant) -> bool {
        self.is_due_after(now, PAUSE)
    }

    /// Does the work of [`Self::is_due`] with another least time between two lines.
    pub fn is_due_after(&self, now: Instant, pause: Duration) -> bool {
        // 0 stands for never
        let now = now.as_nanos().max(1);
        let pause = u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX);
        let due = |last: u64| (last == 0 || now.saturating_sub(last) >= pause).then_some(now);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, due).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_a_minute() {
        let (seldom, at) = (LogLimiter::default(), |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000));
        let due: Vec<u64> = (1..200).filter(|second| seldom.is_due(at(*second))).collect();
        assert_eq!(due, [1, 61, 121, 181]);
    }
}
