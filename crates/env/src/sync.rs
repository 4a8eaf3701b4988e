//! Locks, condition variables and atomic numbers that threads share.
//!
//! They are those of the standard library. In a build with the feature `shuttle`, which only tests
//! have, they are shuttle's: its scheduler decides at each of them which thread goes on, so a test
//! meets orders of steps that a real machine shows once in years ([`crate::interleaved`]). A crate
//! whose threads are tested in that way names this module and not `std::sync`: a lock of the
//! standard library that is held while another thread runs would stop the scheduler's only thread
//! for ever.
//!
//! Not here: `Arc`, `Weak`, `OnceLock` and `Notify`, at which no thread waits for another.

#[cfg(not(feature = "shuttle"))]
pub use std::sync::{Condvar, Mutex, MutexGuard, atomic};

#[cfg(feature = "shuttle")]
pub use shuttle::sync::{Condvar, Mutex, MutexGuard, atomic};
