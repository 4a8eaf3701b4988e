//! The only way to clock, disk, network, randomness and tasks, real and simulated.
//!
//! All other crates receive an [`Env`] and do not name the outside by themselves: no `std::fs`, no
//! `Instant::now`, no `thread::spawn`, no socket, no random number (the workspace's `clippy.toml`
//! refuses them and names the method of this crate to use instead). [`real::env`] is the machine;
//! [`sim::Sim`] is a whole machine computed from a seed, whose disk forgets what was not synced
//! when its power is cut.
//!
//! The traits are small and blocking on purpose: a caller that must not block calls
//! [`ReadFile::read_at_nowait`] first, and hands work that would block to [`Env::blocking`].
//!
//! `unsafe` occurs once in the workspace: a call of the allocator in `real/heap.rs`.

// This crate is made of the calls that `clippy.toml` refuses in all others.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod clock;
pub mod defects;
mod disk;
#[cfg(feature = "shuttle")]
pub mod interleaved;
mod network;
mod programs;
mod random;
pub mod rare;
mod read_only;
pub mod real;
mod run_to_completion;
pub mod sim;
pub mod sync;
mod tasks;
mod threads;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

pub use clock::{Clock, Elapsed, Instant, Sleep};
pub use disk::{DirEntry, Disk, Lock, ReadFile, STREAMED_ALIGNMENT, WriteFile, lacks_descriptors};
pub use network::{
    Connecting, Detached, FileSender, Listener, Network, SendingFile, SocketOptions, Stream, accept, accept_detached,
};
pub use programs::{PROGRAM_OUTPUT_MAX, ProgramOutcome, Programs};
pub use random::Random;
pub use read_only::read_only;
pub use run_to_completion::RunToCompletion;
pub use tasks::{
    ADMIN_QUEUE_MAX, ADMIN_THREADS_MAX, BLOCKING_QUEUE_MAX, BLOCKING_THREADS_MAX, Joinable, LONG_NICENESS,
    LONG_QUEUE_MAX, LONG_THREADS_MAX, LocalFuture, LocalFutureFactory, Next, Part, QueueFull, SPARE_QUEUE_MAX,
    SPARE_THREADS_MAX, Step, Tasks, Wake, WakeTarget,
};

/// Handles to everything outside the process; cheap to clone.
#[derive(Clone)]
pub struct Env {
    /// Wall clock, monotonic clock, timers.
    pub clock: Arc<dyn Clock>,
    /// Files and directories.
    pub disk: Arc<dyn Disk>,
    /// Random numbers.
    pub random: Arc<dyn Random>,
    /// Sockets.
    pub network: Arc<dyn Network>,
    /// Threads and background work.
    pub tasks: Arc<dyn Tasks>,
    /// Other programs.
    pub programs: Arc<dyn Programs>,
}

impl Env {
    /// The monotonic clock's present reading.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(self.clock.monotonic_nanos())
    }

    /// Time passed since `earlier`.
    pub fn elapsed(&self, earlier: Instant) -> Duration {
        self.now().since(earlier)
    }

    /// Completes after `duration`.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        self.clock.sleep(duration)
    }

    /// Awaits `future` for at most `duration`; at the limit the future is dropped.
    pub async fn timeout<F: Future>(&self, duration: Duration, future: F) -> Result<F::Output, Elapsed> {
        let mut future = std::pin::pin!(future);
        let mut sleep = self.clock.sleep(duration);
        std::future::poll_fn(move |context| {
            if let std::task::Poll::Ready(output) = future.as_mut().poll(context) {
                return std::task::Poll::Ready(Ok(output));
            }
            sleep.as_mut().poll(context).map(|()| Err(Elapsed))
        })
        .await
    }

    /// Has `future` run to its end once it has begun, even if its caller goes away. The caller
    /// bounds the number of such futures at a time.
    pub fn run_to_completion<T: Send + 'static>(
        &self,
        name: &'static str,
        future: impl Future<Output = T> + Send + 'static,
    ) -> RunToCompletion<T> {
        RunToCompletion::new(self, name, Box::pin(future))
    }

    /// Runs `job` on the blocking pool and gives its result. [`QueueFull`] when the pool's queue is
    /// at its limit (or the job was dropped because its machine was killed).
    pub async fn blocking<T: Send + 'static>(
        &self,
        name: &str,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, QueueFull> {
        result_of(|job| self.tasks.run(name, job), job).await
    }

    /// Runs `job` as `blocking` does, on threads for operations of operators: for a job that may
    /// wait for jobs of the blocking pool, or for hours.
    pub async fn blocking_admin<T: Send + 'static>(
        &self,
        name: &str,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, QueueFull> {
        result_of(|job| self.tasks.run_admin(name, job), job).await
    }

    /// Runs `job` as `blocking` does, on threads of lower priority: for a job that may use the CPU
    /// for long.
    pub async fn blocking_long<T: Send + 'static>(
        &self,
        name: &str,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, QueueFull> {
        result_of(|job| self.tasks.run_long(name, job), job).await
    }

    /// Runs `job` as `blocking` does, while no other thread wants a core: for a job of a few
    /// milliseconds for which no client waits.
    pub async fn blocking_spare<T: Send + 'static>(
        &self,
        name: &str,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, QueueFull> {
        result_of(|job| self.tasks.run_spare(name, job), job).await
    }
}

/// Hands a job over by `run`, and waits for its result.
async fn result_of<T: Send + 'static>(
    run: impl FnOnce(Box<dyn FnOnce() + Send>) -> Result<(), QueueFull>,
    job: impl FnOnce() -> T + Send + 'static,
) -> Result<T, QueueFull> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    run(Box::new(move || drop(sender.send(job()))))?;
    receiver.await.map_err(|_| QueueFull)
}
