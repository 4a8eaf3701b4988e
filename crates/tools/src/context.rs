//! The context that every verb is given: the machine, and where results and notes go.

use std::io::Write;

use env::Env;

/// The machine and the outputs of a verb.
pub struct Context<'a> {
    /// The machine.
    pub env: &'a Env,
    /// Where results go.
    pub out: &'a mut dyn Write,
    /// Where notes and errors go.
    pub err: &'a mut dyn Write,
}
