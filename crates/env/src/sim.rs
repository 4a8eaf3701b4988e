//! Machines computed from a seed: the same seed and the same program give the same run, fault by
//! fault.
//!
//! Nothing runs by itself. The test's thread drives tasks, jobs and workers in an order drawn from
//! the seed; time stands still until the test, or a wait, moves it. [`World`] is several machines
//! over one network; [`Sim`] is one machine that is alone: its steps cost no time, and a slow call
//! of its disk moves the time at once.
//!
//! A machine has successive *lives*, each with its own [`Env`]:
//! - a kill ends the process: tasks, locks and timers are gone, and files keep everything that was
//!   written;
//! - a power cut ends the machine: files also lose data that was not synced, see [`SimDisk`].
//!
//! Handles of an earlier life fail with an I/O error and change nothing. The trace is a digest of
//! everything that happened; two runs of one seed must agree on it.

mod clock;
mod disk;
mod faults;
mod inode;
mod network;
mod programs;
mod random;
mod tasks;
mod trace;
mod world;

use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::Env;

pub use disk::SimDisk;
pub use faults::{EIO, EMFILE, ENOSPC, Fault, Op, Stall};
pub use network::{
    CONNECT_MAX, GIVE_UP, Link, NetworkFigures, RECEIVE_BUFFER_MAX, SEND_BUFFER_MAX, SimNetwork, address_of,
};
pub use random::SimRandom;
pub use world::World;

/// A directory that exists, durably, on every new machine.
pub const DATA: &str = "/data";

/// A simulated machine that is alone.
pub struct Sim(World);

impl Sim {
    /// A new machine with an empty disk.
    pub fn new(seed: u64) -> Self {
        Sim(World::alone(seed))
    }

    /// The seed this machine is computed from.
    pub fn seed(&self) -> u64 {
        self.0.seed()
    }

    /// The environment of the present life.
    pub fn env(&self) -> Env {
        self.0.env(0)
    }

    /// The disk, to inject faults and to look at it.
    pub fn disk(&self) -> &SimDisk {
        self.0.disk(0)
    }

    /// Numbers for the test itself, drawn from the seed.
    pub fn dice(&self) -> SimRandom {
        self.0.dice()
    }

    /// Runs one ready step or job, chosen by the seed; `false` when none is ready.
    pub fn step(&self) -> bool {
        self.0.step()
    }

    /// Runs steps and jobs until none is ready at the present time; gives their number.
    ///
    /// # Panics
    /// When a million steps do not suffice: some task asks for `Again` for ever.
    pub fn run_until_idle(&self) -> usize {
        for count in 0..1_000_000 {
            if !self.step() {
                return count;
            }
        }
        panic!("seed {}: background tasks never become idle", self.seed());
    }

    /// Moves both clocks; timers and tasks that are due become ready.
    pub fn advance(&self, duration: Duration) {
        self.0.advance(duration);
    }

    /// Moves the wall clock alone, as an administrator or NTP does.
    pub fn shift_wall_clock(&self, micros: i64) {
        self.0.shift_wall_clock(0, micros);
    }

    /// Whether the system has no thread left for another task or worker, until this is called
    /// again.
    pub fn set_lack_of_threads(&self, lacks: bool) {
        self.0.set_lack_of_threads(0, lacks);
    }

    /// Completes `future`, running steps and jobs between its polls, and moving time to the next
    /// timer when all wait.
    ///
    /// # Panics
    /// When the future waits for something that nothing is going to do.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.0.block_on(future)
    }

    /// Ends the process: memory, tasks, locks and timers are gone; the disk keeps all that was
    /// written.
    pub fn kill(&self) {
        self.0.kill(0);
    }

    /// Ends the machine: does the work of [`Sim::kill`], and the disk loses or tears data that was
    /// not synced.
    pub fn power_cut(&self) {
        self.0.power_cut(0);
    }

    /// A digest of every disk operation, step and crash so far, with its count.
    pub fn trace(&self) -> (u64, u64) {
        self.0.trace()
    }
}

/// Locks. A test that has panicked elsewhere has its own message, so a panic of another holder is
/// ignored here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
