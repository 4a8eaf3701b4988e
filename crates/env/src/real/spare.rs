//! Where the next spare job runs: on the threads that get only what nobody else wants, or on those
//! of long jobs.
//!
//! On Linux a spare job's threads have the policy SCHED_IDLE: whoever else wakes on their core runs
//! at once, where beside a thread of the usual policy it waits for the end of that thread's slice,
//! however nice the other one is (3 ms by default since Linux 6.6). The price is that such a thread
//! has a three-hundredth of a core that others want without end. A repair that others starve would
//! not end, so a spare job that came back late sends those of the next second to the threads of long
//! jobs, which get a tenth.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use thread_priority::unix::{NormalThreadSchedulePolicy, ThreadSchedulePolicy};
use thread_priority::{ThreadPriority, set_thread_priority_and_policy, thread_native_id};

/// A spare job that took longer, from when it was handed over to its end, was starved. A slice of a
/// validation computes for a few milliseconds.
pub(super) const LATE: Duration = Duration::from_millis(100);

/// How long spare jobs run as long ones after one was starved.
const DETOUR: Duration = Duration::from_secs(1);

/// Decides it for one process.
pub(super) struct Detour {
    /// Milliseconds after this point are what `until` counts.
    begun: Instant,
    /// Until then spare jobs run as long ones.
    until: AtomicU64,
}

impl Detour {
    pub(super) fn new(begun: Instant) -> Self {
        Detour { begun, until: AtomicU64::new(0) }
    }

    /// Whether a spare job that is handed over now runs as a long one.
    pub(super) fn is_taken(&self, now: Instant) -> bool {
        self.millis(now) < self.until.load(Ordering::Relaxed)
    }

    /// A spare job that was handed over at `submitted`, to the threads of spare jobs, has ended.
    pub(super) fn ended(&self, submitted: Instant, now: Instant) {
        if now.saturating_duration_since(submitted) > LATE {
            self.until.fetch_max(self.millis(now + DETOUR), Ordering::Relaxed);
        }
    }

    fn millis(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.begun).as_millis()).unwrap_or(u64::MAX)
    }
}

/// Makes the calling thread one that runs when no other wants its core. Where that is refused it
/// stays as it is.
pub(super) fn take_what_is_left() {
    let policy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_starved_job_sends_those_of_the_next_second_another_way() {
        let begun = Instant::now();
        let at = |millis| begun + Duration::from_millis(millis);
        let detour = Detour::new(begun);
        assert!(!detour.is_taken(at(0)));
        detour.ended(at(10), at(110));
        assert!(!detour.is_taken(at(110)), "as late as it may be");
        detour.ended(at(110), at(211));
        assert!(detour.is_taken(at(211)) && detour.is_taken(at(1210)));
        assert!(!detour.is_taken(at(1211)), "another attempt after a second");
        detour.ended(at(200), at(2000));
        detour.ended(at(200), at(1500));
        assert!(detour.is_taken(at(2999)), "the latest counts, in whichever order they end");
    }
}
