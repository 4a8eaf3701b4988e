//! The real machine: system clock, file system, kernel randomness, TCP, threads.

mod child_program;
mod clock;
mod descriptors;
mod disk;
mod heap;
mod network;
mod programs;
mod random;
mod spare;
mod streamed;
mod tasks;

use std::sync::Arc;

use crate::Env;

pub use child_program::{ChildProgram, start_program, terminate_program};
pub use descriptors::raise_descriptor_limit;
pub use heap::give_back_free_memory;
#[cfg(feature = "shuttle")]
pub(crate) use tasks::Threads;

/// The environment of a production process.
pub fn env() -> Env {
    Env {
        clock: Arc::new(clock::SystemClock::new()),
        disk: Arc::new(disk::FileSystem),
        random: Arc::new(random::ThreadRandom),
        network: Arc::new(network::Tcp),
        tasks: Arc::new(tasks::Threads::new()),
        programs: Arc::new(programs::Children),
    }
}

#[cfg(test)]
mod tests;
