//! The error of a configuration: all problems together, each with its key.

use std::fmt;

/// A configuration with which the node cannot start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    /// A line for each problem, beginning with the key.
    pub problems: Vec<String>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problems.join("\n"))
    }
}

impl std::error::Error for ConfigError {}
