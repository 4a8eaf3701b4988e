//! Why a verb did not do what it was asked: a line for people, and the exit code of the program.

use std::fmt;

use rows::ReadError;
use sstable::Error;

/// Exit code when the verb has done what it was asked.
pub const DONE: u8 = 0;
/// Exit code when the verb refused or failed, or found damage.
pub const FAILED: u8 = 1;
/// Exit code when the arguments are wrong.
pub const USAGE: u8 = 2;

/// Why a verb ends early.
#[derive(Debug)]
pub struct Failure {
    /// The line for standard error; empty if nobody is left to read it, because the reader of our
    /// output has gone.
    pub message: String,
    /// The exit code of the program.
    pub code: u8,
}

impl Failure {
    /// The verb refused or failed.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: FAILED }
    }

    /// The arguments are wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: USAGE }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::new(error.to_string())
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<std::io::Error> for Failure {
    /// Our own output could not be written. A closed pipe is no error that needs a line.
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::new(""),
            _ => Self::new(format!("the output cannot be written: {error}")),
        }
    }
}
