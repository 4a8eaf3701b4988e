//! Other programs, run to their end: what an administrator names in the configuration.

use std::io;
use std::time::Duration;

/// Bytes of a program's output that are kept; the rest is read and dropped.
pub const PROGRAM_OUTPUT_MAX: usize = 4 << 10;

/// How a program ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// With status 0.
    pub is_success: bool,
    /// Its status in words.
    pub status: String,
    /// The text that the program wrote on both of its outputs, up to [`PROGRAM_OUTPUT_MAX`].
    pub output: String,
}

/// Runs other programs.
pub trait Programs: Send + Sync {
    /// Runs a program with its arguments (no shell looks at them) and waits for its end: for
    /// background tasks and the blocking pool. It reads nothing. After `time_max` it is killed,
    /// with those that it started: `TimedOut`.
    fn run(&self, program: &str, arguments: &[String], time_max: Duration) -> io::Result<Ended>;
}
