//! Threads as `real::tasks` needs them: the system's, or in a build with the feature `shuttle`
//! those of shuttle, which has one thread of the system and changes between its own at locks,
//! atomic numbers and operations of the disk.
//!
//! Shuttle knows no time. A wait with a limit lasts until another thread wakes the waiter; a wait
//! of a pool's thread for a job may also be over at once, as often as the schedule says, and is
//! over when the pool has no user left.

#[cfg(not(feature = "shuttle"))]
pub(crate) use system::*;

#[cfg(feature = "shuttle")]
pub(crate) use interleaved::*;

#[cfg(not(feature = "shuttle"))]
mod system {
    use std::sync::PoisonError;
    use std::thread::Scope;
    pub(crate) use std::thread::{Builder, JoinHandle, Thread, current, park, park_timeout, scope, yield_now};
    use std::time::{Duration, Instant};

    use crate::sync::{Condvar, Mutex, MutexGuard};

    /// CPU cores that this process may use.
    pub(crate) fn cores() -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    /// Starts a thread of a scope. If the system has none left nothing is started.
    pub(crate) fn spawn_scoped<'scope>(
        scope: &'scope Scope<'scope, '_>,
        name: &str,
        body: impl FnOnce() + Send + 'scope,
    ) {
        let _ = Builder::new().name(name.to_owned()).spawn_scoped(scope, body);
    }

    /// A point of time at which a wait ends.
    #[derive(Clone, Copy)]
    pub(crate) struct Deadline(Instant);

    impl Deadline {
        pub(crate) fn after(duration: Duration) -> Self {
            Self(Instant::now() + duration)
        }

        /// The time that is left; zero: the deadline has passed.
        pub(crate) fn left(self) -> Duration {
            self.0.saturating_duration_since(Instant::now())
        }
    }

    /// Waits for a notification until a deadline. True: the deadline has passed.
    pub(crate) fn wait_timeout<'a, T>(
        condvar: &Condvar,
        _mutex: &'a Mutex<T>,
        guard: MutexGuard<'a, T>,
        limit: Duration,
        _is_over: impl Fn(&T) -> bool,
    ) -> (MutexGuard<'a, T>, bool) {
        let (guard, waited) = condvar.wait_timeout(guard, limit).unwrap_or_else(PoisonError::into_inner);
        (guard, waited.timed_out())
    }

    /// Ends the process, because a background task has panicked.
    pub(crate) fn end_of_panic(_panic: Box<dyn std::any::Any + Send>) -> ! {
        std::process::abort()
    }
}

#[cfg(feature = "shuttle")]
mod interleaved {
    use std::sync::PoisonError;
    use std::time::Duration;

    use shuttle::rand::RngCore;
    use shuttle::thread::Scope;
    pub(crate) use shuttle::thread::{Builder, JoinHandle, Thread, current, park, park_timeout, scope, yield_now};

    use crate::sync::{Condvar, Mutex, MutexGuard};

    /// One wait in so many of a pool's thread is over at once.
    const OVER_AT_ONCE: u64 = 4;

    pub(crate) fn cores() -> usize {
        2
    }

    pub(crate) fn spawn_scoped<'scope>(
        scope: &'scope Scope<'scope, '_>,
        _name: &str,
        body: impl FnOnce() + Send + 'scope,
    ) {
        drop(scope.spawn(body));
    }

    /// A deadline. Time stands still here, so it keeps the whole duration.
    #[derive(Clone, Copy)]
    pub(crate) struct Deadline(Duration);

    impl Deadline {
        pub(crate) fn after(duration: Duration) -> Self {
            Self(duration)
        }

        pub(crate) fn left(self) -> Duration {
            self.0
        }
    }

    /// Waits for a notification. `is_over`: the pool has no user any more.
    pub(crate) fn wait_timeout<'a, T>(
        condvar: &Condvar,
        mutex: &'a Mutex<T>,
        guard: MutexGuard<'a, T>,
        _limit: Duration,
        is_over: impl Fn(&T) -> bool,
    ) -> (MutexGuard<'a, T>, bool) {
        if is_over(&guard) {
            return (guard, true);
        }
        if shuttle::rand::thread_rng().next_u64() % OVER_AT_ONCE == 0 {
            drop(guard);
            yield_now();
            return (mutex.lock().unwrap_or_else(PoisonError::into_inner), true);
        }
        let guard = condvar.wait(guard).unwrap_or_else(PoisonError::into_inner);
        let is_over = is_over(&guard);
        (guard, is_over)
    }

    /// Passes the panic of a background task on to the test.
    pub(crate) fn end_of_panic(panic: Box<dyn std::any::Any + Send>) -> ! {
        std::panic::resume_unwind(panic)
    }
}
