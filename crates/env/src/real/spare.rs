//! Where the next spare job runs: on the threads that get only what nobody else wants, or on those
//! of long jobs.
//!
//! On Linux a spare job's threads have the policy SCHED_IDLE: whoever else wakes on their core runs
//! at once, where beside a thread of the usual policy it waits for the end of that thread's slice,
//! however nice the other one is (3 ms by default since Linux 6.6). The price is that such a thread
//! has a three-hundredth of a core that others want without end. A repair that others starve would
//! not end. Threads of long jobs get a tenth there, so a spare job that saw less than that done
//! sends those of the next second to them. A job that waited for a slow disk looks the same, and
//! does no harm by that.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use thread_priority::unix::{NormalThreadSchedulePolicy, ThreadSchedulePolicy};
use thread_priority::{ThreadPriority, set_thread_priority_and_policy, thread_native_id};

/// A job that took no longer says nothing of how much others leave. A slice of a validation
/// computes for a few milliseconds.
pub(super) const LATE: Duration = Duration::from_millis(100);

/// The part of a core that threads of long jobs have beside others.
const PART_OF_LONG: u32 = 10;

/// How long spare jobs run as long ones after one was starved.
const DETOUR: Duration = Duration::from_secs(1);

/// Decides on which threads the spare jobs of one process run.
pub(super) struct Detour {
    /// Milliseconds after this point are what `until` counts.
    begun: Instant,
    /// Until then spare jobs run as long ones.
    until: AtomicU64,
    /// Nanoseconds for which spare jobs that have ended computed, on threads of their own.
    computed: AtomicU64,
}

/// A job that runs on a thread of spare jobs.
pub(super) struct Run {
    begun: Instant,
    /// For how long its thread had computed before.
    own: Duration,
    /// For how long all had.
    all: u64,
}

impl Detour {
    pub(super) fn new(begun: Instant) -> Self {
        Detour { begun, until: AtomicU64::new(0), computed: AtomicU64::new(0) }
    }

    /// Whether a spare job that is handed over now runs as a long one.
    pub(super) fn is_taken(&self, now: Instant) -> bool {
        self.millis(now) < self.until.load(Ordering::Relaxed)
    }

    /// A spare job begins on the calling thread.
    pub(super) fn begin(&self) -> Run {
        Run { begun: Instant::now(), own: computed(), all: self.computed.load(Ordering::Relaxed) }
    }

    /// The spare job that began as `run` has ended, on the same thread.
    pub(super) fn end(&self, run: &Run) {
        let own = u64::try_from(computed().saturating_sub(run.own).as_nanos()).unwrap_or(u64::MAX);
        let all = self.computed.fetch_add(own, Ordering::Relaxed).saturating_add(own);
        let now = Instant::now();
        self.judge(now - run.begun, Duration::from_nanos(all.saturating_sub(run.all)), now);
    }

    /// Spare jobs that ended while one ran that took so long computed for `computed` altogether.
    fn judge(&self, took: Duration, computed: Duration, now: Instant) {
        if took > LATE && computed.saturating_mul(PART_OF_LONG) < took {
            self.until.fetch_max(self.millis(now + DETOUR), Ordering::Relaxed);
        }
    }

    fn millis(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.begun).as_millis()).unwrap_or(u64::MAX)
    }
}

/// For how long the calling thread has computed.
fn computed() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
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
        let millis = Duration::from_millis;
        assert!(!detour.is_taken(at(0)));
        detour.judge(millis(100), millis(0), at(110));
        detour.judge(millis(500), millis(50), at(110));
        assert!(!detour.is_taken(at(110)), "as late as it may be");
        detour.judge(millis(500), millis(49), at(211));
        assert!(detour.is_taken(at(211)) && detour.is_taken(at(1210)));
        assert!(!detour.is_taken(at(1211)), "another attempt after a second");
        detour.judge(millis(200), millis(0), at(2000));
        detour.judge(millis(200), millis(0), at(1500));
        assert!(detour.is_taken(at(2999)), "the latest counts, in whichever order they end");
    }
}
