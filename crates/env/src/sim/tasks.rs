//! Tasks without threads: ready steps and jobs wait until the test runs them, one at a time, in an order drawn from the seed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use super::clock::SimClock;
use super::lock;
use super::random::SimRandom;
use super::trace::Trace;
use crate::{BLOCKING_QUEUE_MAX, Clock, Joinable, Next, Part, QueueFull, Random, Step, Tasks, Wake, WakeTarget};

struct Background {
    name: String,
    /// Absent while its step runs.
    step: Option<Step>,
    awake: bool,
    deadline: Option<u64>,
}

#[derive(Default)]
struct State {
    life: u64,
    made: u64,
    background: BTreeMap<u64, Background>,
    jobs: VecDeque<(String, Box<dyn FnOnce() + Send>)>,
}

/// All tasks of the machine.
pub(super) struct Queue {
    state: Arc<Mutex<State>>,
    clock: Arc<SimClock>,
    schedule: Arc<SimRandom>,
    trace: Arc<Trace>,
}

impl Queue {
    pub(super) fn new(clock: Arc<SimClock>, schedule: Arc<SimRandom>, trace: Arc<Trace>) -> Self {
        Queue { state: Arc::default(), clock, schedule, trace }
    }

    pub(super) fn handle(&self) -> SimTasks {
        SimTasks { state: self.state.clone(), life: lock(&self.state).life }
    }

    /// The earliest deadline of a sleeping task.
    pub(super) fn next_deadline(&self) -> Option<u64> {
        lock(&self.state).background.values().filter_map(|task| task.deadline).min()
    }

    pub(super) fn end_life(&self) {
        let ended = {
            let mut state = lock(&self.state);
            state.life += 1;
            (std::mem::take(&mut state.background), std::mem::take(&mut state.jobs))
        };
        drop(ended);
    }

    /// Runs one ready step or job; `false` when there is none.
    pub(super) fn step(&self) -> bool {
        let now = self.clock.monotonic_nanos();
        let mut state = lock(&self.state);
        let is_ready = |task: &Background| task.awake || task.deadline.is_some_and(|deadline| deadline <= now);
        let ready: Vec<u64> = state.background.iter().filter(|(_, task)| is_ready(task)).map(|(id, _)| *id).collect();
        let choices = ready.len() + state.jobs.len();
        if choices == 0 {
            return false;
        }
        let choice = usize::try_from(self.schedule.below(choices as u64)).expect("below a usize");
        let Some(id) = ready.get(choice) else {
            let (name, job) = state.jobs.remove(choice - ready.len()).expect("chosen among the jobs");
            drop(state);
            self.trace.record(&name, &[]);
            job();
            return true;
        };
        let task = state.background.get_mut(id).expect("chosen among the tasks");
        task.awake = false;
        task.deadline = None;
        self.trace.record(&task.name, &[*id]);
        let step = task.step.take();
        drop(state);
        if let Some(step) = step {
            self.run_step(*id, step);
        }
        true
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
    fn background(&self, name: &str, step: Step) -> Wake {
        let mut state = lock(&self.state);
        state.made += 1;
        let id = state.made;
        if state.life == self.life {
            let task = Background { name: name.to_owned(), step: Some(step), awake: false, deadline: None };
            state.background.insert(id, task);
        }
        Wake::new(Arc::new(Waker { state: self.state.clone(), id }))
    }

    fn run(&self, name: &str, job: Box<dyn FnOnce() + Send>) -> Result<(), QueueFull> {
        self.push(name, job)
    }

    fn run_long(&self, name: &str, job: Box<dyn FnOnce() + Send>) -> Result<(), QueueFull> {
        self.push(name, job)
    }

    /// One after the other.
    fn side_by_side(&self, _name: &str, parts: Vec<Part<'_>>) {
        parts.into_iter().for_each(|part| part());
    }

    /// A worker is a job here: it must end by itself.
    fn spawn_worker(&self, name: &str, worker: Box<dyn FnOnce() + Send>) -> Box<dyn Joinable> {
        let started = self.push(name, worker);
        Box::new(Started(started))
    }

    fn cores(&self) -> usize {
        2
    }

    fn pin_to_core(&self, _core: usize) {}
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

impl Joinable for Started {
    fn join(self: Box<Self>) -> Result<(), String> {
        self.0.map_err(|full| full.to_string())
    }
}
