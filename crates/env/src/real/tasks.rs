//! Threads: one for each background task and worker, and pools for blocking jobs, admin jobs, long
//! ones and spare ones, which grow to their limits and shrink when they are idle.
//!
//! A wake is one atomic swap, and an unpark only if the task was asleep.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::thread::CpuSet;

use super::spare::{self, Detour};
use crate::defects::{Defect, is_on};
use crate::sync::atomic::{AtomicU8, Ordering};
use crate::sync::{Condvar, Mutex};
use crate::threads::{self as thread, Deadline, JoinHandle, Thread};
use crate::{
    ADMIN_QUEUE_MAX, ADMIN_THREADS_MAX, BLOCKING_QUEUE_MAX, BLOCKING_THREADS_MAX, Joinable, LONG_NICENESS,
    LONG_QUEUE_MAX, LONG_THREADS_MAX, LocalFutureFactory, Next, Part, QueueFull, SPARE_QUEUE_MAX, SPARE_THREADS_MAX,
    Step, Tasks, Wake, WakeTarget,
};

/// How long a thread of the blocking pool waits for a job before it ends.
const POOL_IDLE: Duration = Duration::from_secs(10);

const ASLEEP: u8 = 0;
const AWAKE: u8 = 1;
const CLOSED: u8 = 2;

pub(crate) struct Threads {
    pool: Arc<Pool>,
    admin: Arc<Pool>,
    long: Arc<Pool>,
    spare: Arc<Pool>,
    detour: Arc<Detour>,
}

impl Threads {
    pub(crate) fn new() -> Self {
        let pool = |name, threads, queue, priority| Pool::new(name, threads, queue, priority, Box::new(try_spawn));
        Threads {
            pool: pool("blocking", BLOCKING_THREADS_MAX, BLOCKING_QUEUE_MAX, Priority::Own),
            admin: pool("admin", ADMIN_THREADS_MAX, ADMIN_QUEUE_MAX, Priority::Own),
            long: pool("long", LONG_THREADS_MAX, LONG_QUEUE_MAX, Priority::Nice(LONG_NICENESS)),
            spare: pool("spare", SPARE_THREADS_MAX, SPARE_QUEUE_MAX, Priority::Last),
            detour: Arc::new(Detour::new(Instant::now())),
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        for pool in [&self.pool, &self.admin, &self.long, &self.spare] {
            pool.state.lock().unwrap_or_else(PoisonError::into_inner).is_over = true;
            pool.available.notify_all();
        }
    }
}

impl Tasks for Threads {
    fn try_background(&self, name: &str, step: Step) -> io::Result<Wake> {
        let signal = Arc::new(Signal { state: AtomicU8::new(ASLEEP), thread: OnceLock::new() });
        let of_thread = signal.clone();
        let body = move || run_background(&of_thread, step);
        let handle = spawn(name, body)?;
        signal.thread.set(handle.thread().clone()).expect("set once, here");
        Ok(Wake::new(Arc::new(Sender(signal))))
    }

    fn run(&self, _name: &str, job: Box<dyn FnOnce() + Send>) -> Result<(), QueueFull> {
        self.pool.submit(job)
    }

    fn run_admin(&self, _name: &str, job: Box<dyn FnOnce() + Send>) -> Result<(), QueueFull> {
        self.admin.submit(job)
    }

    fn run_long(&self, _name: &str, job: Box<dyn FnOnce() + Send>) -> Result<(), QueueFull> {
        self.long.submit(job)
    }

    fn run_spare(&self, _name: &str, job: Box<dyn FnOnce() + Send>) -> Result<(), QueueFull> {
        if self.detour.is_taken(Instant::now()) {
            return self.long.submit(job);
        }
        let detour = Arc::clone(&self.detour);
        self.spare.submit(Box::new(move || {
            let run = detour.begin();
            job();
            detour.end(&run);
        }))
    }

    fn run_in_parallel(&self, name: &str, parts: Vec<Part<'_>>) {
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
                thread::spawn_scoped(scope, name, work);
            }
            work();
        });
    }

    fn try_spawn_worker(&self, name: &str, worker: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn Joinable>> {
        Ok(Box::new(Worker(spawn(name, worker)?)))
    }

    fn try_spawn_local_worker(&self, name: &str, make: LocalFutureFactory) -> io::Result<Box<dyn Joinable>> {
        Ok(Box::new(Worker(spawn(name, move || run_local(make))?)))
    }

    fn cores(&self) -> usize {
        thread::cores()
    }

    fn pin_to_core(&self, core: usize) {
        let mut set = CpuSet::new();
        set.set(core);
        // In a container the core may not be ours: then the thread stays where the kernel puts it.
        let _ = rustix::thread::sched_setaffinity(None, &set);
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(body)
}

fn try_spawn(name: String, body: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    thread::Builder::new().name(name).spawn(body).map(drop)
}

/// Runs a future to its end on a runtime of the calling thread.
fn run_local(make: LocalFutureFactory) {
    let options = tokio::runtime::LocalOptions::default();
    match tokio::runtime::Builder::new_current_thread().enable_all().build_local(options) {
        Ok(runtime) => runtime.block_on(async { make().await }),
        // The future is dropped without having run, and its senders with it; their receivers learn
        // from that that nothing will come.
        Err(error) => tracing::error!(%error, "a worker has no runtime"),
    }
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
            Err(panic) => {
                tracing::error!(task = thread::current().name(), "a background task panicked: the process ends");
                thread::end_of_panic(panic)
            }
        }
        if is_on(Defect::ForgetWake) {
            let _ = signal.state.compare_exchange(AWAKE, ASLEEP, Ordering::AcqRel, Ordering::Acquire);
        }
    }
}

/// Waits as the last step asked. `false`: all wakers are gone.
fn wait(signal: &Signal, next: Next) -> bool {
    let deadline = match next {
        Next::After(duration) => Some(Deadline::after(duration)),
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
                let left = deadline.left();
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
    /// Jobs that no thread has taken yet. While there are any, `threads` is not 0.
    jobs: VecDeque<Box<dyn FnOnce() + Send>>,
    /// Threads that are alive.
    threads: usize,
    /// Threads of the pool that wait for a job.
    idle: usize,
    /// True: no job can be submitted any more. Only threads of a build for tests, which have no
    /// time, look at this; other threads end after they have waited for [`POOL_IDLE`].
    is_over: bool,
}

/// How important a pool's threads are.
#[derive(Clone, Copy)]
enum Priority {
    /// As important as the process.
    Own,
    /// Less important: nicer than the process by this number.
    Nice(i32),
    /// The least important: the threads run when no other thread wants their core.
    Last,
}

/// Starts a thread of a pool; fails where the system has none left (EAGAIN).
type Spawn = Box<dyn Fn(String, Box<dyn FnOnce() + Send>) -> io::Result<()> + Send + Sync>;

/// A pool of threads. The mutex guards the queue and the counts; no job runs under it. A thread is
/// started under it, so that a start that fails leaves neither a count without a thread nor a job
/// that no thread takes.
struct Pool {
    name: &'static str,
    threads_max: usize,
    queue_max: usize,
    priority: Priority,
    spawn: Spawn,
    state: Mutex<PoolState>,
    available: Condvar,
}

impl Pool {
    fn new(name: &'static str, threads_max: usize, queue_max: usize, priority: Priority, spawn: Spawn) -> Arc<Self> {
        let (state, available) = (Mutex::new(PoolState::default()), Condvar::new());
        Arc::new(Pool { name, threads_max, queue_max, priority, spawn, state, available })
    }

    fn submit(self: &Arc<Self>, job: Box<dyn FnOnce() + Send>) -> Result<(), QueueFull> {
        if is_on(Defect::NotifyFirst) {
            self.available.notify_one();
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.jobs.len() >= self.queue_max {
            return Err(QueueFull);
        }
        if state.idle <= state.jobs.len() && state.threads < self.threads_max && !self.grow(&mut state) {
            // a job without a thread would wait for ever
            return Err(QueueFull);
        }
        assert!(state.threads > 0, "a job of a pool has a thread that comes to it");
        state.jobs.push_back(job);
        drop(state);
        if !is_on(Defect::NotifyFirst) {
            self.available.notify_one();
        }
        Ok(())
    }

    /// Starts one more thread. If the system has none left, the threads of the pool do its share.
    /// `false`: the pool has no thread.
    fn grow(self: &Arc<Self>, state: &mut PoolState) -> bool {
        let name = format!("{}-{}", self.name, state.threads + 1);
        let pool = self.clone();
        let body = move || {
            pool.give_way();
            pool.work();
        };
        match (self.spawn)(name, Box::new(body)) {
            Ok(()) => state.threads += 1,
            Err(error) => tracing::warn!(%error, pool = self.name, threads = state.threads, "no thread to be had"),
        }
        state.threads > 0
    }

    /// Gives the calling thread the pool's priority: on Linux niceness belongs to a thread.
    fn give_way(&self) {
        match self.priority {
            Priority::Own => {}
            Priority::Nice(niceness) => {
                let own = rustix::process::getpriority_process(None).unwrap_or(0);
                // where that is refused the thread is as important as others
                let _ = rustix::process::setpriority_process(None, own + niceness);
            }
            Priority::Last => spare::take_what_is_left(),
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
            let is_over = |state: &PoolState| state.is_over;
            let (guard, is_late) = thread::wait_timeout(&self.available, &self.state, state, POOL_IDLE, is_over);
            state = guard;
            state.idle -= 1;
            if is_late && (state.jobs.is_empty() || is_on(Defect::LeaveJobs)) {
                state.threads -= 1;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc;

    use super::*;

    /// A pool whose first `failing` starts of a thread fail.
    fn pool(failing: usize) -> Arc<Pool> {
        let left = AtomicUsize::new(failing);
        let spawn = move |name, body| match left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
        {
            Ok(_) => Err(io::Error::from_raw_os_error(rustix::io::Errno::AGAIN.raw_os_error())),
            Err(_) => try_spawn(name, body),
        };
        Pool::new("test", 2, 100, Priority::Own, Box::new(spawn))
    }

    #[test]
    fn a_pool_that_got_no_thread_refuses_and_gets_one_later() {
        let pool = pool(5);
        let (sender, receiver) = mpsc::channel();
        let submit = |number: usize| {
            let sender = sender.clone();
            pool.submit(Box::new(move || sender.send(number).expect("the test listens")))
        };
        for number in 0..5 {
            assert_eq!(submit(number), Err(QueueFull), "job {number} has no thread");
        }
        assert_eq!(submit(5), Ok(()));
        assert_eq!(receiver.recv_timeout(Duration::from_secs(60)), Ok(5), "what was refused does not run");
    }

    #[test]
    fn a_pool_that_cannot_grow_works_with_the_threads_it_has() {
        let left = AtomicUsize::new(1);
        let spawn = move |name, body| match left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
        {
            Ok(_) => try_spawn(name, body),
            Err(_) => Err(io::ErrorKind::WouldBlock.into()),
        };
        let pool = Pool::new("test", 2, 100, Priority::Own, Box::new(spawn));
        let (sender, receiver) = mpsc::channel();
        let (open, gate) = mpsc::channel::<()>();
        pool.submit(Box::new(move || gate.recv().expect("the test opens the gate"))).expect("the first thread");
        for number in 0..3 {
            let sender = sender.clone();
            pool.submit(Box::new(move || sender.send(number).expect("the test listens"))).expect("a thread is there");
        }
        open.send(()).expect("the job waits");
        let done: Vec<usize> = (0..3).map(|_| receiver.recv_timeout(Duration::from_secs(60)).expect("runs")).collect();
        assert_eq!(done, [0, 1, 2]);
    }
}
