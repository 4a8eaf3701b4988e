//! A machine computed from a seed: the same seed and the same program give the same run, fault by fault.
//!
//! Nothing runs by itself. The test's thread drives background tasks and jobs ([`Sim::step`], [`Sim::run_until_idle`],
//! [`Sim::block_on`]), in an order drawn from the seed; time stands still until the test, or a wait in `block_on`, moves it.
//!
//! A machine has successive *lives*, each with its own [`Env`] from [`Sim::env`]:
//! - [`Sim::kill`] ends the process: tasks, locks and timers are gone, and files keep all that was written;
//! - [`Sim::power_cut`] ends the machine: files also lose what was not synced, see [`SimDisk`].
//!
//! Handles of an earlier life fail with an I/O error and change nothing. [`Sim::trace`] digests all that happened; two runs of
//! one seed must agree on it.
//!
//! Not simulated: preemption inside a step, the memory model, clocks that drift, networks that lose or delay.

mod clock;
mod disk;
mod faults;
mod inode;
mod network;
mod programs;
mod random;
mod tasks;
mod trace;

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use crate::Env;

pub use disk::SimDisk;
pub use faults::{EIO, ENOSPC, Fault, Op};
pub use random::SimRandom;

/// A directory that exists, durably, on every new machine.
pub const DATA: &str = "/data";

/// A simulated machine.
pub struct Sim {
    seed: u64,
    clock: Arc<clock::SimClock>,
    disk: Arc<SimDisk>,
    random: Arc<SimRandom>,
    schedule: Arc<SimRandom>,
    network: Arc<network::SimNetwork>,
    tasks: Arc<tasks::Queue>,
    trace: Arc<trace::Trace>,
}

impl Sim {
    /// A new machine with an empty disk.
    pub fn new(seed: u64) -> Self {
        let trace = Arc::new(trace::Trace::default());
        let clock = Arc::new(clock::SimClock::new());
        // Separate streams, so that a fault drawn does not change the numbers that the program sees.
        let disk = Arc::new(SimDisk::new(SimRandom::new(seed, 1), clock.clone(), trace.clone()));
        let schedule = Arc::new(SimRandom::new(seed, 2));
        Sim {
            seed,
            random: Arc::new(SimRandom::new(seed, 0)),
            network: Arc::new(network::SimNetwork::new(schedule.clone())),
            tasks: Arc::new(tasks::Queue::new(clock.clone(), schedule.clone(), trace.clone())),
            schedule,
            clock,
            disk,
            trace,
        }
    }

    /// The seed this machine is computed from.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The environment of the present life.
    pub fn env(&self) -> Env {
        Env {
            clock: self.clock.clone(),
            disk: Arc::new(self.disk.handle()),
            random: self.random.clone(),
            network: self.network.clone(),
            tasks: Arc::new(self.tasks.handle()),
            programs: Arc::new(programs::SimPrograms { disk: Arc::new(self.disk.handle()) }),
        }
    }

    /// The disk, to inject faults and to look at it.
    pub fn disk(&self) -> &SimDisk {
        &self.disk
    }

    /// Numbers for the test itself, drawn from the seed.
    pub fn dice(&self) -> SimRandom {
        SimRandom::new(self.seed, 3)
    }

    /// Runs one ready step or job, chosen by the seed; `false` when none is ready.
    pub fn step(&self) -> bool {
        self.tasks.step()
    }

    /// Runs steps and jobs until none is ready at the present time; the number run.
    ///
    /// # Panics
    /// When a million steps do not suffice: some task asks for `Again` for ever.
    pub fn run_until_idle(&self) -> usize {
        for count in 0..1_000_000 {
            if !self.step() {
                return count;
            }
        }
        panic!("seed {}: background tasks never become idle", self.seed);
    }

    /// Moves both clocks; timers and tasks that are due become ready.
    pub fn advance(&self, duration: Duration) {
        self.clock.advance(duration);
    }

    /// Moves the wall clock alone, as an administrator or NTP does.
    pub fn shift_wall_clock(&self, micros: i64) {
        self.clock.shift_wall(micros);
    }

    /// Completes `future`, running steps and jobs between its polls, and moving time to the next timer when all wait.
    ///
    /// # Panics
    /// When the future waits for something that nothing is going to do.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let flag = Arc::new(Flag(AtomicBool::new(true)));
        let waker = Waker::from(flag.clone());
        let mut context = Context::from_waker(&waker);
        let mut future = pin!(future);
        loop {
            let woken = flag.0.load(Ordering::Acquire);
            if woken && !(self.schedule.chance(50) && self.step()) {
                flag.0.store(false, Ordering::Release);
                if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                    return output;
                }
            } else if !woken && !self.step() && !self.clock.advance_to(self.tasks.next_deadline()) {
                let woken = flag.0.load(Ordering::Acquire);
                assert!(woken, "seed {}: the future waits and nothing is going to wake it", self.seed);
            }
        }
    }

    /// Ends the process: memory, tasks, locks and timers are gone; the disk keeps all that was written.
    pub fn kill(&self) {
        self.trace.record("kill", &[]);
        self.disk.end_life(false);
        self.tasks.end_life();
        self.clock.end_life();
        self.network.end_life();
    }

    /// Ends the machine: as [`Sim::kill`], and the disk loses or tears what was not synced.
    pub fn power_cut(&self) {
        self.trace.record("power cut", &[]);
        self.disk.end_life(true);
        self.tasks.end_life();
        self.clock.end_life();
        self.network.end_life();
    }

    /// A digest of every disk operation, step and crash so far, with its count.
    pub fn trace(&self) -> (u64, u64) {
        self.trace.digest()
    }
}

/// Task closures hold environments, which hold the task queue: the circle is cut here.
impl Drop for Sim {
    fn drop(&mut self) {
        self.tasks.end_life();
        self.clock.end_life();
        self.network.end_life();
    }
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

/// A test that panicked elsewhere has its own message; its neighbours need none from us.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
