//! Threads: one per background task and worker, a pool for blocking jobs and one for long ones, which grow to their limits and
//! shrink when idle.
//!
//! A wake is one atomic swap, and an unpark only when the task was asleep.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use rustix::thread::CpuSet;

use crate::{
    BLOCKING_QUEUE_MAX, BLOCKING_THREADS_MAX, Joinable, LONG_NICENESS, LONG_QUEUE_MAX, LONG_THREADS_MAX, Next, Part,
    QueueFull, Step, Tasks, Wake, WakeTarget,
};

/// How long a thread of the blocking pool waits for a job before it ends.
const POOL_IDLE: Duration = Duration::from_secs(10);

const ASLEEP: u8 = 0;
const AWAKE: u8 = 1;
const CLOSED: u8 = 2;

pub(super) struct Threads {
    pool: Arc<Pool>,
    long: Arc<Pool>,
}

impl Threads {
    pub(super) fn new() -> Self {
        Threads {
            pool: Pool::new("blocking", BLOCKING_THREADS_MAX, BLOCKING_QUEUE_MAX, 0),
            long: Pool::new("long", LONG_THREADS_MAX, LONG_QUEUE_MAX, LONG_NICENESS),
        }
    }
}

impl Tasks for Threads {
    fn background(&self, name: &str, step: Step) -> Wake {
        let signal = Arc::new(Signal { state: AtomicU8::new(ASLEEP), thread: OnceLock::new() });
        let of_thread = signal.clone();
        let handle = spawn(name, move || run_background(&of_thread, step));
        signal.thread.set(handle.thread().clone()).expect("set once, here");
        Wake::new(Arc::new(Sender(signal)))
    }

    fn run(&self, _name: &str, job: Box<dyn FnOnce() + Send>) -> Result<(), QueueFull> {
        self.pool.submit(job)
    }

    fn run_long(&self, _name: &str, job: Box<dyn FnOnce() + Send>) -> Result<(), QueueFull> {
        self.long.submit(job)
    }

    fn side_by_side(&self, name: &str, parts: Vec<Part<'_>>) {
        let helpers = self.cores().min(parts.len()).saturating_sub(1);
        let parts = Mutex::new(parts.into_iter());
        let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || {
            while let Some(part) = next() {
                part();
            }
        };
        thread::scope(|scope| {
            for _ in 0..helpers {
                // where the system has no thread left the others do its share
                let _ = thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, work);
            }
            work();
        });
    }

    fn spawn_worker(&self, name: &str, worker: Box<dyn FnOnce() + Send>) -> Box<dyn Joinable> {
        Box::new(Worker(spawn(name, worker)))
    }

    fn cores(&self) -> usize {
        thread::available_parallelism().map_or(1, usize::from)
    }

    fn pin_to_core(&self, core: usize) {
        let mut set = CpuSet::new();
        set.set(core);
        // In a container the core may not be ours: then the thread stays where the kernel puts it.
        let _ = rustix::thread::sched_setaffinity(None, &set);
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    thread::Builder::new().name(name.to_owned()).spawn(body).expect("the system has a thread left for this process")
}

struct Worker(JoinHandle<()>);

impl Joinable for Worker {
    fn join(self: Box<Self>) -> Result<(), String> {
        self.0.join().map_err(|panic| {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panicked".to_owned())
        })
    }
}

/// Shared by a task's thread and its wakers.
struct Signal {
    state: AtomicU8,
    thread: OnceLock<Thread>,
}

/// The wakers' side; the last one to go closes the task.
struct Sender(Arc<Signal>);

impl WakeTarget for Sender {
    fn wake(&self) {
        if self.0.state.swap(AWAKE, Ordering::AcqRel) == ASLEEP {
            self.0.unpark();
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.0.state.store(CLOSED, Ordering::Release);
        self.0.unpark();
    }
}

impl Signal {
    fn unpark(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

fn run_background(signal: &Signal, mut step: Step) {
    // The name is set by the spawner right after the start; until then a wake only sets the state.
    let mut next = Next::Idle;
    while wait(signal, next) {
        match catch_unwind(AssertUnwindSafe(&mut step)) {
            Ok(Next::Done) => return,
            Ok(wanted) => next = wanted,
            Err(_) => {
                tracing::error!(task = thread::current().name(), "a background task panicked: the process ends");
                std::process::abort();
            }
        }
    }
}

/// Waits as the last step asked; `false` when all wakers are gone.
fn wait(signal: &Signal, next: Next) -> bool {
    let deadline = match next {
        Next::After(duration) => Some(std::time::Instant::now() + duration),
        _ => None,
    };
    loop {
        match signal.state.compare_exchange(AWAKE, ASLEEP, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return true,
            Err(CLOSED) => return false,
            Err(_) if next == Next::Again => return true,
            Err(_) => {}
        }
        match deadline {
            None if signal.thread.get().is_none() => thread::yield_now(),
            None => thread::park(),
            Some(deadline) => {
                let left = deadline.saturating_duration_since(std::time::Instant::now());
                if left.is_zero() {
                    return true;
                }
                thread::park_timeout(left);
            }
        }
    }
}

#[derive(Default)]
struct PoolState {
    jobs: VecDeque<Box<dyn FnOnce() + Send>>,
    threads: usize,
    idle: usize,
}

/// A pool. The mutex guards a queue's push and pop, never a job.
struct Pool {
    name: &'static str,
    threads_max: usize,
    queue_max: usize,
    /// More than that of the process.
    niceness: i32,
    state: Mutex<PoolState>,
    available: Condvar,
}

impl Pool {
    fn new(name: &'static str, threads_max: usize, queue_max: usize, niceness: i32) -> Arc<Self> {
        let (state, available) = (Mutex::new(PoolState::default()), Condvar::new());
        Arc::new(Pool { name, threads_max, queue_max, niceness, state, available })
    }

    fn submit(self: &Arc<Self>, job: Box<dyn FnOnce() + Send>) -> Result<(), QueueFull> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.jobs.len() >= self.queue_max {
            return Err(QueueFull);
        }
        state.jobs.push_back(job);
        if state.idle >= state.jobs.len() || state.threads >= self.threads_max {
            drop(state);
            self.available.notify_one();
            return Ok(());
        }
        state.threads += 1;
        let name = format!("{}-{}", self.name, state.threads);
        drop(state);
        let pool = self.clone();
        spawn(&name, move || {
            pool.give_way();
            pool.work();
        });
        Ok(())
    }

    /// The calling thread takes the pool's priority: on Linux niceness is a thread's.
    fn give_way(&self) {
        if self.niceness > 0 {
            let own = rustix::process::getpriority_process(None).unwrap_or(0);
            // where that is refused the thread is as important as others
            let _ = rustix::process::setpriority_process(None, own + self.niceness);
        }
    }

    fn work(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                if catch_unwind(AssertUnwindSafe(job)).is_err() {
                    tracing::error!("a blocking job panicked; its request fails");
                }
                state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.idle += 1;
            let (guard, waited) = self.available.wait_timeout(state, POOL_IDLE).unwrap_or_else(PoisonError::into_inner);
            state = guard;
            state.idle -= 1;
            if waited.timed_out() && state.jobs.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }
}
