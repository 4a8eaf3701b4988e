//! Clock: wall time for write timestamps and expiry, monotonic time for latencies, timers.
//!
//! Wall time may jump either way; monotonic time only grows and means nothing across processes.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// A timer's future.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The clocks of a machine.
pub trait Clock: Send + Sync {
    /// Wall time, microseconds since the Unix epoch (the unit of write timestamps).
    fn now_micros(&self) -> i64;

    /// Wall time, seconds since the Unix epoch (the unit of local deletion times).
    fn now_seconds(&self) -> u32 {
        u32::try_from(self.now_micros().max(0) / 1_000_000).unwrap_or(u32::MAX)
    }

    /// Monotonic time in nanoseconds from an arbitrary origin.
    fn monotonic_nanos(&self) -> u64;

    /// Completes after `duration` of monotonic time.
    fn sleep(&self, duration: Duration) -> Sleep;
}

/// A point of monotonic time; compare only within one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// A point of monotonic time, from the value of [`Clock::monotonic_nanos`].
    pub fn from_nanos(nanos: u64) -> Self {
        Instant(nanos)
    }

    /// Nanoseconds from the clock's origin.
    pub fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time from `earlier` to this point; zero when `earlier` is later.
    pub fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// This point moved forward.
    pub fn plus(self, duration: Duration) -> Instant {
        Instant(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// A timeout passed before the future completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed;

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("timed out")
    }
}

impl std::error::Error for Elapsed {}
