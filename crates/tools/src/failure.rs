//! Why a verb ends without having done what it was asked: a line for people, and the exit code.

use std::fmt;

use rows::ReadError;
use sstable::Error;

/// Done.
pub const DONE: u8 = 0;
/// Refused, failed, or damage was found.
pub const FAILED: u8 = 1;
/// Wrong usage.
pub const USAGE: u8 = 2;

/// What is printed, and the exit code.
#[derive(Debug)]
pub struct Failure {
    /// A line; empty: nothing is to be said (the reader of our output has gone).
    pub message: String,
    /// Exit code.
    pub code: u8,
}

impl Failure {
    /// Refused or failed.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: FAILED }
    }

    /// Asked wrongly.
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
    /// Of our own output.
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::new(""),
            _ => Self::new(format!("the output cannot be written: {error}")),
        }
    }
}
