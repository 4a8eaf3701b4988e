//! A machine's tasks without threads: ready steps, jobs and local workers wait until the simulation
//! runs them, one at a time, in an order drawn from the seed.
//!
//! The future of a local worker belongs to the simulation's thread ([`WORKERS`]), so a machine with
//! such workers stays on the thread on which they were started.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use super::clock::SimClock;
use super::lock;
use super::trace::Trace;
use crate::{
    BLOCKING_QUEUE_MAX, Clock, Joinable, LocalFuture, LocalFutureFactory, Next, Part, QueueFull, Step, Tasks, Wake,
    WakeTarget,
};

/// The error number of a system that has no thread left.
const EAGAIN: i32 = 11;

thread_local! {
    /// The futures of local workers, of all simulations on this thread.
    static WORKERS: RefCell<BTreeMap<u64, LocalFuture>> = const { RefCell::new(BTreeMap::new()) };
}

/// Number of keys of [`WORKERS`] given so far in this process. Nothing that a simulation shows
/// depends on it.
static WORKERS_MADE: AtomicU64 = AtomicU64::new(0);

struct Background {
    name: String,
    /// The step function; None while its step runs.
    step: Option<Step>,
    awake: bool,
    deadline: Option<u64>,
}

/// A worker that runs a future; the future is in [`WORKERS`].
struct LocalWorker {
    name: String,
    key: u64,
    awake: bool,
}

#[derive(Default)]
struct State {
    life: u64,
    made: u64,
    background: BTreeMap<u64, Background>,
    jobs: VecDeque<(String, Box<dyn FnOnce() + Send>)>,
    workers: BTreeMap<u64, LocalWorker>,
    /// True: the machine has no thread left for another background task or worker.
    lacks_threads: bool,
}

/// A task that can run now.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ready {
    /// A background task's step, by the task's number.
    Background(u64),
    /// A job, by its index in the queue.
    Job(usize),
    /// A local worker, by its number.
    Worker(u64),
}

/// All tasks of the machine.
pub(super) struct Queue {
    machine: usize,
    state: Arc<Mutex<State>>,
    clock: Arc<SimClock>,
    trace: Arc<Trace>,
}

impl Queue {
    pub(super) fn new(machine: usize, clock: Arc<SimClock>, trace: Arc<Trace>) -> Self {
        Queue { machine, state: Arc::default(), clock, trace }
    }

    pub(super) fn handle(&self) -> SimTasks {
        SimTasks { state: self.state.clone(), life: lock(&self.state).life }
    }

    pub(super) fn set_lack_of_threads(&self, lacks: bool) {
        lock(&self.state).lacks_threads = lacks;
    }

    /// The time on the timeline at which the first sleeping task is due; None: no task sleeps.
    pub(super) fn next_deadline(&self) -> Option<u64> {
        let deadline = lock(&self.state).background.values().filter_map(|task| task.deadline).min();
        deadline.map(|local| self.clock.when(local))
    }

    pub(super) fn end_life(&self) {
        let ended = {
            let mut state = lock(&self.state);
            state.life += 1;
            let (background, jobs) = (std::mem::take(&mut state.background), std::mem::take(&mut state.jobs));
            (background, jobs, std::mem::take(&mut state.workers))
        };
        let (background, jobs, workers) = ended;
        workers.into_values().for_each(|worker| drop(take_future(worker.key)));
        drop((background, jobs));
    }

    /// The tasks that can run now, in an order that follows from the run so far.
    pub(super) fn ready(&self) -> Vec<Ready> {
        let now = self.clock.monotonic_nanos();
        let state = lock(&self.state);
        let is_ready = |task: &Background| task.awake || task.deadline.is_some_and(|deadline| deadline <= now);
        let background = state.background.iter().filter(|(_, task)| is_ready(task));
        let workers = state.workers.iter().filter(|(_, worker)| worker.awake);
        let ready = background.map(|(id, _)| Ready::Background(*id)).chain((0..state.jobs.len()).map(Ready::Job));
        ready.chain(workers.map(|(id, _)| Ready::Worker(*id))).collect()
    }

    /// Runs one of the tasks that [`Self::ready`] gave; nothing else may have run in between.
    pub(super) fn run(&self, ready: Ready) {
        match ready {
            Ready::Background(id) => self.run_background(id),
            Ready::Job(place) => {
                let job = lock(&self.state).jobs.remove(place);
                let (name, job) = job.expect("what is ready stays so until something runs");
                self.trace.record(&name, &[self.machine as u64]);
                job();
            }
            Ready::Worker(id) => self.run_worker(id),
        }
    }

    fn run_background(&self, id: u64) {
        let mut state = lock(&self.state);
        let task = state.background.get_mut(&id).expect("what is ready stays so until something runs");
        task.awake = false;
        task.deadline = None;
        self.trace.record(&task.name, &[self.machine as u64, id]);
        let step = task.step.take();
        drop(state);
        if let Some(step) = step {
            self.run_step(id, step);
        }
    }

    fn run_worker(&self, id: u64) {
        let mut state = lock(&self.state);
        let worker = state.workers.get_mut(&id).expect("what is ready stays so until something runs");
        worker.awake = false;
        self.trace.record(&worker.name, &[self.machine as u64, id]);
        let key = worker.key;
        drop(state);
        if let Some(future) = take_future(key) {
            poll_worker(&self.state, id, key, future);
        }
    }

    fn run_step(&self, id: u64, mut step: Step) {
        let next = step();
        let now = self.clock.monotonic_nanos();
        let mut state = lock(&self.state);
        let Some(task) = state.background.get_mut(&id) else {
            drop(state);
            return;
        };
        match next {
            Next::Idle => {}
            Next::Again => task.awake = true,
            Next::After(duration) => {
                task.deadline = Some(now.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)));
            }
            Next::Done => {
                let ended = state.background.remove(&id);
                drop(state);
                drop(ended);
                return;
            }
        }
        task.step = Some(step);
    }
}

/// The tasks of one life of the machine.
pub(super) struct SimTasks {
    state: Arc<Mutex<State>>,
    life: u64,
}

impl SimTasks {
    fn push(&self, name: &str, job: Box<dyn FnOnce() + Send>) -> Result<(), QueueFull> {
        let mut state = lock(&self.state);
        if state.life != self.life || state.jobs.len() >= BLOCKING_QUEUE_MAX {
            return Err(QueueFull);
        }
        state.jobs.push_back((name.to_owned(), job));
        Ok(())
    }
}

impl Tasks for SimTasks {
    fn jobs_may_wait(&self) -> bool {
        false
    }

    fn try_background(&self, name: &str, step: Step) -> io::Result<Wake> {
        let mut state = lock(&self.state);
        if state.lacks_threads {
            return Err(io::Error::from_raw_os_error(EAGAIN));
        }
        state.made += 1;
        let id = state.made;
        if state.life == self.life {
            let task = Background { name: name.to_owned(), step: Some(step), awake: false, deadline: None };
            state.background.insert(id, task);
        }
        Ok(Wake::new(Arc::new(Waker { state: self.state.clone(), id })))
    }

    fn run(&self, name: &str, job: Box<dyn FnOnce() + Send>) -> Result<(), QueueFull> {
        self.push(name, job)
    }

    fn run_long(&self, name: &str, job: Box<dyn FnOnce() + Send>) -> Result<(), QueueFull> {
        self.push(name, job)
    }

    fn run_spare(&self, name: &str, job: Box<dyn FnOnce() + Send>) -> Result<(), QueueFull> {
        self.push(name, job)
    }

    /// Runs the parts one after the other.
    fn run_in_parallel(&self, _name: &str, parts: Vec<Part<'_>>) {
        parts.into_iter().for_each(|part| part());
    }

    /// Starts a worker, which is a job here and must end by itself. A worker that serves for long
    /// is a local worker.
    fn try_spawn_worker(&self, name: &str, worker: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn Joinable>> {
        if lock(&self.state).lacks_threads {
            return Err(io::Error::from_raw_os_error(EAGAIN));
        }
        Ok(Box::new(Started(self.push(name, worker))))
    }

    /// Starts a local worker. Its future is polled once at once, so that messages that it sends at
    /// its beginning are there when this returns.
    fn try_spawn_local_worker(&self, name: &str, make: LocalFutureFactory) -> io::Result<Box<dyn Joinable>> {
        let mut state = lock(&self.state);
        if state.life != self.life {
            return Ok(Box::new(Started(Err(QueueFull))));
        }
        if state.lacks_threads {
            return Err(io::Error::from_raw_os_error(EAGAIN));
        }
        state.made += 1;
        let (id, key) = (state.made, WORKERS_MADE.fetch_add(1, Ordering::Relaxed));
        state.workers.insert(id, LocalWorker { name: name.to_owned(), key, awake: false });
        drop(state);
        let future = make();
        let alone = async move { tokio::task::LocalSet::new().run_until(future).await };
        poll_worker(&self.state, id, key, Box::pin(alone));
        Ok(Box::new(Started(Ok(()))))
    }

    fn cores(&self) -> usize {
        2
    }

    fn pin_to_core(&self, _core: usize) {}
}

fn take_future(key: u64) -> Option<LocalFuture> {
    // The thread's futures are gone when the thread is about to end.
    WORKERS.try_with(|workers| workers.borrow_mut().remove(&key)).ok().flatten()
}

/// Polls a worker's future, and keeps it if it waits and its life has not ended meanwhile.
fn poll_worker(state: &Arc<Mutex<State>>, id: u64, key: u64, mut future: LocalFuture) {
    let waker = std::task::Waker::from(Arc::new(WorkerWaker { state: state.clone(), id }));
    if let Poll::Ready(()) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
        drop(lock(state).workers.remove(&id));
        return;
    }
    let lives = lock(state).workers.get(&id).is_some_and(|worker| worker.key == key);
    if lives {
        WORKERS.with(|workers| workers.borrow_mut().insert(key, future));
    }
}

struct WorkerWaker {
    state: Arc<Mutex<State>>,
    id: u64,
}

impl std::task::Wake for WorkerWaker {
    fn wake(self: Arc<Self>) {
        if let Some(worker) = lock(&self.state).workers.get_mut(&self.id) {
            worker.awake = true;
        }
    }
}

struct Waker {
    state: Arc<Mutex<State>>,
    id: u64,
}

impl WakeTarget for Waker {
    fn wake(&self) {
        if let Some(task) = lock(&self.state).background.get_mut(&self.id) {
            task.awake = true;
        }
    }
}

impl Drop for Waker {
    fn drop(&mut self) {
        let ended = lock(&self.state).background.remove(&self.id);
        drop(ended);
    }
}

struct Started(Result<(), QueueFull>);

/// There is nothing to wait for: the simulation runs a started worker when its turn comes.
impl Joinable for Started {
    fn join(self: Box<Self>) -> Result<(), String> {
        self.0.map_err(|full| full.to_string())
    }
}
