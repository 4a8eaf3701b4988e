//! Tests of statements as a whole: a node in memory, kept as simple as can be, and scripts run on
//! it.

mod access;
mod answers;
mod conditional;
mod extensions;
mod functions;
mod lists;
mod memory;
mod model;
mod paging;
mod prepared;
mod spell;
mod wanted_rows;

use memory::Memory;

use crate::options::{ClientState, QueryOptions};
use crate::result::Answer;
use crate::values::BoundValue;
use crate::{CqlError, execute, prepare};

/// The keyspace that scripts run in.
const KEYSPACE: &str = "answers";

/// Prepares and executes one statement.
fn run(node: &Memory, text: &str, values: &[BoundValue], options: &QueryOptions) -> Result<Answer, CqlError> {
    let prepared = prepare(text, Some(KEYSPACE), &crate::Coordinator::schema(node))?;
    memory::block_on(execute(&prepared, values, options, &ClientState::default(), node))
}

/// Runs statements that must succeed; gives the rows of the last as text.
fn rows_of(node: &Memory, statements: &[&str]) -> String {
    let mut last = String::new();
    for text in statements {
        let answer = run(node, text, &[], &QueryOptions::default()).unwrap_or_else(|error| panic!("{text}: {error}"));
        last = spell::answer(&Ok(answer));
    }
    last
}
