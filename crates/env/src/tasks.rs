//! Tasks: background work, blocking jobs, worker threads.
//!
//! - A *background task* is a step function that runs after it was woken and does bounded work each
//!   time; wakes coalesce. In production it has a thread of its own (the log writer, flush,
//!   compaction), so a step may wait for the device.
//! - A *job* runs once on the blocking pool: cold reads. It never waits for another job of that
//!   pool: as many such jobs as the pool has threads would wait for ever.
//! - An *admin job* runs once on threads for operations of operators. It may wait for jobs of the
//!   blocking pool, and for hours; no other job waits for an admin job.
//! - A *long job* runs once on threads of lower priority: scans. While workers have something to do
//!   it gets what they leave and a small share besides; while they have nothing it gets all.
//! - A *spare job* runs once on threads that get the CPU time that no other thread wants: a slice
//!   of a validation, for which no client waits. It computes for milliseconds. Where others leave
//!   nothing, spare jobs run as long ones by turns, so that they come to an end.
//! - The *parts* of a computation run side by side while its caller waits for all of them: replay.
//! - A *worker* is a named thread that runs a request loop.
//! - A *local worker* is a named thread that runs a future, which may start further tasks of the
//!   same thread.
//!
//! A panic in a background task ends the process: replaying the log is the recovery path, a
//! half-dead node is none.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// Most threads of the blocking pool. Further jobs wait in its queue.
pub const BLOCKING_THREADS_MAX: usize = 16;

/// Most jobs that wait for a thread of the blocking pool. At the limit [`Tasks::run`] refuses with
/// [`QueueFull`], and the caller answers with an overload error or waits.
pub const BLOCKING_QUEUE_MAX: usize = 16_384;

/// Most threads for admin jobs. Further jobs wait in their queue.
pub const ADMIN_THREADS_MAX: usize = 64;

/// Most admin jobs that wait for a thread. At the limit [`Tasks::run_admin`] refuses with
/// [`QueueFull`].
pub const ADMIN_QUEUE_MAX: usize = 1024;

/// Most threads for long jobs. Further jobs take turns with them by waiting in the queue.
pub const LONG_THREADS_MAX: usize = 16;

/// Most long jobs that wait for a thread. At the limit [`Tasks::run_long`] refuses with
/// [`QueueFull`].
pub const LONG_QUEUE_MAX: usize = 1024;

/// The niceness that is added to threads of long jobs. Beside a worker that never rests such a
/// thread gets a tenth of a core.
pub const LONG_NICENESS: i32 = 10;

/// Most threads for spare jobs. Further jobs take turns with them by waiting in the queue.
pub const SPARE_THREADS_MAX: usize = 16;

/// Most spare jobs that wait for a thread. At the limit [`Tasks::run_spare`] refuses with
/// [`QueueFull`].
pub const SPARE_QUEUE_MAX: usize = 1024;

/// The next action of a background task after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The task has nothing to do until it is woken.
    Idle,
    /// The task has more to do at once, after other tasks had their turn.
    Again,
    /// The task runs again after this time, or when it is woken before.
    After(Duration),
    /// The task never runs again, and its step function is dropped.
    Done,
}

/// A background task's step.
pub type Step = Box<dyn FnMut() -> Next + Send>;

/// A part of a computation that is split.
pub type Part<'a> = Box<dyn FnOnce() + Send + 'a>;

/// The future that a local worker runs. Bound to its thread.
pub type LocalFuture = Pin<Box<dyn Future<Output = ()>>>;

/// Makes the future of a local worker, on the worker's thread.
pub type LocalFutureFactory = Box<dyn FnOnce() -> LocalFuture + Send>;

/// Starts work outside the request path.
pub trait Tasks: Send + Sync {
    /// Registers a background task while the process starts. If the system has no thread for it
    /// the process ends with a sentence and exit code 1, because it could not serve without the
    /// task.
    fn background(&self, name: &str, step: Step) -> Wake {
        self.try_background(name, step).unwrap_or_else(|error| crate::tasks::end_without_thread(name, &error))
    }

    /// Registers a background task. Its first step runs after the first wake. The task ends with
    /// [`Next::Done`], or when the last clone of its [`Wake`] is dropped. An error: the system has
    /// no thread left, and there is no task.
    fn try_background(&self, name: &str, step: Step) -> io::Result<Wake>;

    /// Runs a job once on the blocking pool.
    fn run(&self, name: &str, job: Box<dyn FnOnce() + Send>) -> Result<(), QueueFull>;

    /// Runs a job of an operator once, on threads that no other kind of job needs: it may wait for
    /// jobs of the blocking pool. The simulated machine has one queue for all jobs.
    fn run_admin(&self, name: &str, job: Box<dyn FnOnce() + Send>) -> Result<(), QueueFull> {
        self.run(name, job)
    }

    /// Runs a job once, with less priority than threads that must not wait for it: the job may use
    /// the CPU for long.
    fn run_long(&self, name: &str, job: Box<dyn FnOnce() + Send>) -> Result<(), QueueFull>;

    /// Runs a job once, while no other thread wants a core: it computes for a few milliseconds.
    fn run_spare(&self, name: &str, job: Box<dyn FnOnce() + Send>) -> Result<(), QueueFull>;

    /// Whether a job may wait for another thread. False on the simulated machine, which has one
    /// thread.
    fn jobs_may_wait(&self) -> bool {
        true
    }

    /// Runs the parts of a computation on as many threads as there are cores, the calling one among
    /// them, each taking the first part that was not begun yet; returns when all have ended. A
    /// panic in one of them is passed on.
    fn run_in_parallel(&self, name: &str, parts: Vec<Part<'_>>);

    /// Starts a worker thread. An error: the system has no thread left, and the worker is dropped.
    fn try_spawn_worker(&self, name: &str, worker: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn Joinable>>;

    /// Does the work of [`Tasks::try_spawn_worker`] while the process starts or ends. Without a
    /// thread the process ends, as in [`Tasks::background`].
    fn spawn_worker(&self, name: &str, worker: Box<dyn FnOnce() + Send>) -> Box<dyn Joinable> {
        self.try_spawn_worker(name, worker).unwrap_or_else(|error| crate::tasks::end_without_thread(name, &error))
    }

    /// Starts a worker thread that runs a future to its end, within which
    /// `tokio::task::spawn_local` starts more on that thread. They may only wait for futures of
    /// [`crate::Env`]: the simulated machine has no runtime with timers and sockets of its own. An
    /// error: the system has no thread left, and the future is not made.
    fn try_spawn_local_worker(&self, name: &str, make: LocalFutureFactory) -> io::Result<Box<dyn Joinable>>;

    /// Does the work of [`Tasks::try_spawn_local_worker`] while the process starts. Without a
    /// thread the process ends, as in [`Tasks::background`].
    fn spawn_local_worker(&self, name: &str, make: LocalFutureFactory) -> Box<dyn Joinable> {
        self.try_spawn_local_worker(name, make).unwrap_or_else(|error| crate::tasks::end_without_thread(name, &error))
    }

    /// CPU cores this process may use (at least 1).
    fn cores(&self) -> usize;

    /// Binds the calling thread to a core. Does nothing if the system does not allow it.
    fn pin_to_core(&self, core: usize);
}

/// A worker that can be waited for.
pub trait Joinable: Send {
    /// Waits for the end of the worker; `Err`: it panicked.
    fn join(self: Box<Self>) -> Result<(), String>;
}

/// Wakes one background task; clones wake the same task. Cheap if the task is awake already.
#[derive(Clone)]
pub struct Wake(Arc<dyn WakeTarget>);

/// The task that a [`Wake`] wakes; its drop ends the task.
pub trait WakeTarget: Send + Sync {
    /// Makes the task run a step soon.
    fn wake(&self);
}

impl Wake {
    /// A handle on a task, for implementations of [`Tasks`].
    pub fn new(target: Arc<dyn WakeTarget>) -> Self {
        Wake(target)
    }

    /// Makes the task run a step soon; several calls before that step are one.
    pub fn wake(&self) {
        self.0.wake();
    }
}

impl fmt::Debug for Wake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wake")
    }
}

/// A queue of jobs is at its limit, such as [`BLOCKING_QUEUE_MAX`] or [`LONG_QUEUE_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueFull;

impl fmt::Display for QueueFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too many blocking jobs wait")
    }
}

impl std::error::Error for QueueFull {}

/// Ends a process that lacks a thread which it cannot do without. Called while the process starts
/// or ends, when there is no caller that could handle an error, and a panic would look like a
/// defect.
pub(crate) fn end_without_thread(name: &str, error: &io::Error) -> ! {
    eprintln!("helenus: the system gives this process no thread for {name}: {error} (ulimit -u, ulimit -v, pids.max)");
    std::process::exit(1)
}
