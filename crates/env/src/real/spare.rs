//! The choice of the threads for the next spare job: those that only get CPU time that no other
//! thread wants, or those of long jobs.
//!
//! On Linux a spare job's threads have the policy SCHED_IDLE: another thread that wakes on their
//! core runs at once. Beside a thread of the usual policy, however nice, it would wait for the end
//! of that thread's slice (3 ms by default since Linux 6.6). The price is that such a thread gets
//! only a three-hundredth of a core that others want all the time, so that a repair could starve
//! and never end. Threads of long jobs get a tenth of such a core. So when a spare job finds that
//! less than a tenth was computed while it ran, the spare jobs of the next second run on threads
//! of long jobs. A job that waited for a slow disk has the same effect, which does no harm.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use thread_priority::unix::{NormalThreadSchedulePolicy, ThreadSchedulePolicy};
use thread_priority::{ThreadPriority, set_thread_priority_and_policy, thread_native_id};

/// Time of a job below which it says nothing about the CPU time that others leave. A slice of a
/// validation computes for a few milliseconds.
pub(super) const LATE: Duration = Duration::from_millis(100);

/// One part in so many of a core that threads of long jobs get beside others.
const PART_OF_LONG: u32 = 10;

/// Time for which spare jobs run as long ones after one was starved.
const DETOUR: Duration = Duration::from_secs(1);

/// Decides on which threads the spare jobs of one process run.
pub(super) struct Detour {
    /// The time from which `until` counts.
    begun: Instant,
    /// Milliseconds after `begun` until which spare jobs run as long ones.
    until: AtomicU64,
    /// Nanoseconds of CPU time of all spare jobs that have ended on threads of their own.
    computed: AtomicU64,
}

/// A job that runs on a thread of spare jobs.
pub(super) struct Run {
    begun: Instant,
    /// CPU time of the thread before the job.
    own: Duration,
    /// [`Detour::computed`] before the job.
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

    /// Called when a spare job begins on the calling thread.
    pub(super) fn begin(&self) -> Run {
        Run { begun: Instant::now(), own: computed(), all: self.computed.load(Ordering::Relaxed) }
    }

    /// Called when the spare job that began as `run` has ended, on the same thread.
    pub(super) fn end(&self, run: &Run) {
        let own = u64::try_from(computed().saturating_sub(run.own).as_nanos()).unwrap_or(u64::MAX);
        let all = self.computed.fetch_add(own, Ordering::Relaxed).saturating_add(own);
        let now = Instant::now();
        self.judge(now - run.begun, Duration::from_nanos(all.saturating_sub(run.all)), now);
    }

    /// Decides whether spare jobs are starved: a job took the time `took`, in which it and the
    /// spare jobs that ended computed for `computed` altogether.
    fn judge(&self, took: Duration, computed: Duration, now: Instant) {
        if took > LATE && computed.saturating_mul(PART_OF_LONG) < took {
            self.until.fetch_max(self.millis(now + DETOUR), Ordering::Relaxed);
        }
    }

    fn millis(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.begun).as_millis()).unwrap_or(u64::MAX)
    }
}

/// CPU time of the calling thread so far.
fn computed() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Makes the calling thread run only when no other thread wants its core. If the system refuses,
/// the thread stays as it is.
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
