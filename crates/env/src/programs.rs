//! Other programs, run to their end: commands that an administrator names in the configuration.

use std::io;
use std::time::Duration;

/// Most bytes of a program's output that are kept; the rest is read and dropped.
pub const PROGRAM_OUTPUT_MAX: usize = 4 << 10;

/// How a program ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramOutcome {
    /// Whether the program ended with status 0.
    pub is_success: bool,
    /// The exit status or signal, in words.
    pub status: String,
    /// The text that the program wrote on both of its outputs, up to [`PROGRAM_OUTPUT_MAX`].
    pub output: String,
}

/// Runs other programs.
pub trait Programs: Send + Sync {
    /// Runs a program with its arguments (no shell looks at them) and waits for its end, so it is
    /// for background tasks and the blocking pool. The program's input is empty. After `time_max`
    /// it is killed together with the programs that it started: `TimedOut`.
    fn run(&self, program: &str, arguments: &[String], time_max: Duration) -> io::Result<ProgramOutcome>;
}
