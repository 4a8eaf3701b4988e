//! Conditional statements on a table of their own, and their naive twin.
//!
//! The node gives these writes their timestamps, so a statement sees all that was executed before
//! it, also before a crash. The twin is therefore the present rows alone, and each statement is
//! a function of them that gives whether it applies.
//!
//! Checked: `[applied]` of each statement; the content; of a batch with conditions all or nothing.

use std::collections::BTreeMap;
use std::fmt::Write;

use env::Random;
use env::sim::SimRandom;

/// Made at the start of each life.
pub const TABLE: &str = "CREATE TABLE IF NOT EXISTS model.c (k int, c int, s int static, v int, PRIMARY KEY (k, c))";

/// Partition keys are below this number.
pub const PARTITIONS: u64 = 3;
const CLUSTERINGS: u64 = 4;
/// Values are below this number, so that conditions on them often hold.
const VALUES: u64 = 3;

/// A change of one row, or of the static column, with its condition.
#[derive(Clone, Debug)]
enum Step {
    /// INSERT, with IF NOT EXISTS if `is_new`.
    Insert { c: i32, v: i32, is_new: bool },
    /// UPDATE SET v; `only_if` is the condition.
    Update { c: i32, v: Option<i32>, only_if: Condition },
    /// DELETE of a row; `only_if` is the condition.
    Delete { c: i32, only_if: Condition },
    /// UPDATE SET s IF s = `only_if`.
    Static { s: i32, only_if: Option<i32> },
}

#[derive(Clone, Copy, Debug)]
enum Condition {
    None,
    Exists,
    /// IF v = this; None: null.
    Value(Option<i32>),
}

/// A statement of one partition: one step, or a batch of them.
#[derive(Clone, Debug)]
pub struct Statement {
    /// The partition.
    pub k: i32,
    steps: Vec<Step>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Row {
    /// An INSERT made the row, so it is there without `v` too.
    is_inserted: bool,
    v: Option<i32>,
}

/// A partition as it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Partition {
    s: Option<i32>,
    rows: BTreeMap<i32, Row>,
}

/// The table as it is.
#[derive(Clone, Debug, Default)]
pub struct Twin {
    partitions: BTreeMap<i32, Partition>,
}

fn literal(value: Option<i32>) -> String {
    value.map_or_else(|| "null".to_owned(), |value| value.to_string())
}

impl Condition {
    fn text(self) -> String {
        match self {
            Self::None => String::new(),
            Self::Exists => " IF EXISTS".to_owned(),
            Self::Value(value) => format!(" IF v = {}", literal(value)),
        }
    }
}

impl Step {
    fn draw(dice: &SimRandom, c: i32) -> Self {
        let value = || dice.below(VALUES) as i32;
        let maybe = || dice.chance(75).then(value);
        let condition = || match dice.below(5) {
            0 => Condition::None,
            1 => Condition::Exists,
            _ => Condition::Value(maybe()),
        };
        match dice.below(8) {
            0..=2 => Self::Insert { c, v: value(), is_new: dice.chance(75) },
            3..=4 => Self::Update { c, v: maybe(), only_if: condition() },
            5..=6 => Self::Delete { c, only_if: condition() },
            _ => Self::Static { s: value(), only_if: maybe() },
        }
    }

    fn text(&self, k: i32) -> String {
        match self {
            Self::Insert { c, v, is_new } => {
                let condition = if *is_new { " IF NOT EXISTS" } else { "" };
                format!("INSERT INTO c (k, c, v) VALUES ({k}, {c}, {v}){condition}")
            }
            Self::Update { c, v, only_if } => {
                format!("UPDATE c SET v = {} WHERE k = {k} AND c = {c}{}", literal(*v), only_if.text())
            }
            Self::Delete { c, only_if } => format!("DELETE FROM c WHERE k = {k} AND c = {c}{}", only_if.text()),
            Self::Static { s, only_if } => format!("UPDATE c SET s = {s} WHERE k = {k} IF s = {}", literal(*only_if)),
        }
    }

    fn is_conditional(&self) -> bool {
        match self {
            Self::Insert { is_new, .. } => *is_new,
            Self::Update { only_if, .. } | Self::Delete { only_if, .. } => !matches!(only_if, Condition::None),
            Self::Static { .. } => true,
        }
    }

    fn holds(&self, partition: &Partition) -> bool {
        let is = |c: &i32, condition: &Condition| match condition {
            Condition::None => true,
            Condition::Exists => partition.rows.contains_key(c),
            Condition::Value(value) => partition.rows.get(c).and_then(|row| row.v) == *value,
        };
        match self {
            Self::Insert { c, is_new, .. } => !is_new || !partition.rows.contains_key(c),
            Self::Update { c, only_if, .. } | Self::Delete { c, only_if } => is(c, only_if),
            Self::Static { only_if, .. } => partition.s == *only_if,
        }
    }

    fn apply(&self, partition: &mut Partition) {
        match self {
            Self::Insert { c, v, .. } => {
                partition.rows.insert(*c, Row { is_inserted: true, v: Some(*v) });
            }
            Self::Update { c, v, .. } => partition.rows.entry(*c).or_default().v = *v,
            Self::Delete { c, .. } => {
                partition.rows.remove(c);
            }
            Self::Static { s, .. } => partition.s = Some(*s),
        }
        partition.rows.retain(|_, row| row.is_inserted || row.v.is_some());
    }
}

impl Statement {
    /// A statement on the partition `k`.
    pub fn draw(dice: &SimRandom, k: i32) -> Self {
        let c = || dice.below(CLUSTERINGS) as i32;
        if dice.chance(75) {
            return Self { k, steps: vec![Step::draw(dice, c())] };
        }
        // one step a row: the steps of a batch have one timestamp
        let mut steps: Vec<Step> =
            (0..CLUSTERINGS as i32).filter(|_| dice.chance(50)).map(|c| Step::draw(dice, c)).collect();
        let mut is_static_set = false;
        steps.retain(|step| !matches!(step, Step::Static { .. }) || !std::mem::replace(&mut is_static_set, true));
        if steps.is_empty() {
            steps.push(Step::draw(dice, c()));
        }
        Self { k, steps }
    }

    /// As CQL.
    pub fn text(&self) -> String {
        if let [step] = self.steps.as_slice() {
            return step.text(self.k);
        }
        let mut text = "BEGIN BATCH ".to_owned();
        for step in &self.steps {
            write!(text, "{}; ", step.text(self.k)).expect("memory takes it");
        }
        text + "APPLY BATCH"
    }

    /// Whether the answer says `[applied]`.
    pub fn is_conditional(&self) -> bool {
        self.steps.iter().any(Step::is_conditional)
    }
}

impl Twin {
    /// Executes a statement; gives whether it applies.
    pub fn apply(&mut self, statement: &Statement) -> bool {
        let partition = self.partitions.entry(statement.k).or_default();
        let applies = statement.steps.iter().all(|step| step.holds(partition));
        if applies {
            statement.steps.iter().for_each(|step| step.apply(partition));
        }
        applies
    }

    /// The rows (k, c, s, v) of the partition `k` as text.
    pub fn rows(&self, k: i32) -> Vec<Vec<String>> {
        let Some(partition) = self.partitions.get(&k) else { return Vec::new() };
        let row = |c, v| vec![k.to_string(), literal(c), literal(partition.s), literal(v)];
        if partition.rows.is_empty() && partition.s.is_some() {
            return vec![row(None, None)];
        }
        partition.rows.iter().map(|(c, found)| row(Some(*c), found.v)).collect()
    }
}
