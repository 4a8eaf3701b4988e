//! Counters, and their naive twin: sums. An increment that is applied twice shows, one that is lost
//! too.

use std::collections::BTreeMap;
use std::fmt::Write;

use env::Random;
use env::sim::SimRandom;

/// Made at the start of each life.
pub const TABLE: &str = "CREATE TABLE IF NOT EXISTS model.n (k int, c int, n counter, PRIMARY KEY (k, c))";

const PARTITIONS: u64 = 2;
const CLUSTERINGS: u64 = 3;

/// Additions to counters of one partition: an UPDATE, or a counter batch.
#[derive(Clone, Debug)]
pub struct Statement {
    k: i32,
    /// Clustering and addend.
    additions: Vec<(i32, i64)>,
}

/// The counters that were ever written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Twin {
    sums: BTreeMap<(i32, i32), i64>,
}

impl Statement {
    /// Draws a statement.
    pub fn draw(dice: &SimRandom) -> Self {
        let count = if dice.chance(70) { 1 } else { 2 + dice.below(2) };
        let addition = |_| (dice.below(CLUSTERINGS) as i32, dice.below(2001) as i64 - 1000);
        Self { k: dice.below(PARTITIONS) as i32, additions: (0..count).map(addition).collect() }
    }

    /// As CQL.
    pub fn text(&self) -> String {
        let one = |(c, addend): &(i32, i64)| {
            let (sign, amount) = if *addend < 0 { ('-', -addend) } else { ('+', *addend) };
            format!("UPDATE n SET n = n {sign} {amount} WHERE k = {} AND c = {c}", self.k)
        };
        if let [addition] = self.additions.as_slice() {
            return one(addition);
        }
        let mut text = "BEGIN COUNTER BATCH ".to_owned();
        for addition in &self.additions {
            write!(text, "{}; ", one(addition)).expect("memory takes it");
        }
        text + "APPLY BATCH"
    }
}

impl Twin {
    /// Executes a statement.
    pub fn apply(&mut self, statement: &Statement) {
        for (c, addend) in &statement.additions {
            *self.sums.entry((statement.k, *c)).or_default() += addend;
        }
    }

    /// The rows (k, c, n) as text, ascending by k and c.
    pub fn rows(&self) -> Vec<Vec<String>> {
        self.sums.iter().map(|((k, c), n)| vec![k.to_string(), c.to_string(), n.to_string()]).collect()
    }
}
