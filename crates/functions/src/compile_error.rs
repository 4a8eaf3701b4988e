//! Why a body is refused when it is compiled, and where.

use std::fmt;

/// A place in a body; both numbers begin at 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

/// The reason why a body is not compiled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompileError {
    /// The line of the body, from 1.
    pub line: u32,
    /// The column, from 1, in characters.
    pub column: u32,
    /// The reason, as a sentence that names what is refused.
    pub text: String,
}

impl CompileError {
    /// An error at a place.
    pub(crate) fn new(place: Place, text: impl Into<String>) -> Self {
        Self { line: place.line, column: place.column, text: text.into() }
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Line {}: {}", self.line, self.text)
    }
}
