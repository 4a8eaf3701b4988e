//! The histories that agree with everything that was read so far. There is one, until a machine
//! dies with statements under way: each of these has been executed then as a whole or not at all,
//! and what is read afterwards says which.

use super::statements::Query;
use super::twin::Op;
use super::{conditional, counters, twin};

/// The twins of all tables.
#[derive(Clone, Default)]
pub struct Twins {
    /// The table of writes with timestamps of their own.
    pub rows: twin::Twin,
    /// The table of conditional statements.
    pub conditional: conditional::Twin,
    /// The table of counters.
    pub counters: counters::Twin,
}

/// A statement as the twins know it.
#[derive(Clone, Debug)]
pub enum Write {
    /// A write, or a logged batch, of several partitions perhaps.
    Rows(Vec<Op>),
    /// A statement with conditions.
    Conditional(conditional::Statement),
    /// Increments.
    Counters(counters::Statement),
}

impl Twins {
    /// Gives whether anything changed.
    fn apply(&mut self, write: &Write) -> bool {
        match write {
            Write::Rows(ops) => self.rows.apply(ops.clone()),
            Write::Conditional(statement) => return self.conditional.apply(statement),
            Write::Counters(statement) => self.counters.apply(statement),
        }
        true
    }
}

/// All histories that are possible; at least one.
pub struct Histories {
    seed: u64,
    all: Vec<Twins>,
}

impl Histories {
    /// Of a machine on which nothing was written.
    pub fn new(seed: u64) -> Self {
        Self { seed, all: vec![Twins::default()] }
    }

    /// A statement was executed and acknowledged.
    pub fn apply(&mut self, write: &Write) {
        for twins in &mut self.all {
            twins.apply(write);
        }
    }

    /// A statement was under way when the machine died.
    pub fn apply_perhaps(&mut self, write: &Write) {
        let mut with = self.all.clone();
        with.retain_mut(|twins| twins.apply(write));
        self.all.extend(with);
    }

    /// A conditional statement was executed, and `[applied]` was answered.
    pub fn apply_conditional(&mut self, statement: &conditional::Statement, applied: bool) {
        self.all.retain_mut(|twins| twins.conditional.apply(statement) == applied);
        assert!(!self.all.is_empty(), "seed {}: {} answers {applied}", self.seed, statement.text());
    }

    /// The rows that a query of the first table gave.
    pub fn check_query(&mut self, query: &Query, now: u32, found: &[Vec<String>]) {
        let what = format!("{} (pages of {:?})", query.text(), query.page_size);
        self.check(&what, found, |twins| twins.rows.answer(query, now));
    }

    /// The rows that a read gave; `expected` is what a history gives.
    pub fn check(&mut self, what: &str, found: &[Vec<String>], expected: impl Fn(&Twins) -> Vec<Vec<String>>) {
        let one = expected(&self.all[0]);
        self.all.retain(|twins| expected(twins) == found);
        assert!(!self.all.is_empty(), "seed {}: {what}\n{found:?} is not {one:?}", self.seed);
    }

    /// The number of histories that are still possible.
    pub fn count(&self) -> usize {
        self.all.len()
    }
}
