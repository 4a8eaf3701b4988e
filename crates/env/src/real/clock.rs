//! The system's clocks; timers are tokio's and need its runtime.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::{Clock, Sleep};

pub(super) struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    pub(super) fn new() -> Self {
        SystemClock { origin: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now_micros(&self) -> i64 {
        let signed = |duration: Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => signed(after),
            Err(before) => -signed(before.duration()),
        }
    }

    fn monotonic_nanos(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn sleep(&self, duration: Duration) -> Sleep {
        Box::pin(tokio::time::sleep(duration))
    }
}
