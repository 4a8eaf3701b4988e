//! What is wrong with a configuration: every problem at once, each with its key.

use std::fmt;

/// A configuration that cannot be started with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    /// One line a problem, the key first.
    pub problems: Vec<String>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problems.join("\n"))
    }
}

impl std::error::Error for ConfigError {}
