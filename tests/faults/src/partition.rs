//! The naive twin of a partition, and what is done to it. A client sees of both the same.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Clusterings of a partition are below this.
pub const NUMBERS: i32 = 40;
/// Keys of a row's map are below this.
const KEYS: i32 = 5;

/// One statement on one partition.
#[derive(Clone, Debug)]
pub enum Action {
    /// INSERT of a row's value.
    Insert(i32, String),
    /// A value under a key of a row's map.
    Put(i32, i32, String),
    /// A key of a row's map.
    Take(i32, i32),
    /// The static column.
    Fix(String),
    /// A row's value.
    DeleteCell(i32),
    /// A row.
    DeleteRow(i32),
    /// Rows from the first to before the second.
    DeleteRange(i32, i32),
    /// All of it.
    DeletePartition,
}

/// A row as a client sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// It was inserted, so it is there without a value too.
    inserted: bool,
    /// The value.
    pub value: Option<String>,
    /// The map; empty is null.
    pub parts: BTreeMap<i32, String>,
}

/// A partition as a client sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partition {
    /// The static column.
    pub fixed: Option<String>,
    /// The rows by their clustering.
    pub rows: BTreeMap<i32, Row>,
}

impl Partition {
    /// Does it.
    pub fn apply(&mut self, action: &Action) {
        match action {
            Action::Insert(number, text) => {
                let row = self.rows.entry(*number).or_default();
                row.inserted = true;
                row.value = Some(text.clone());
            }
            Action::Put(number, key, text) => {
                self.rows.entry(*number).or_default().parts.insert(*key, text.clone());
            }
            Action::Take(number, key) => self.change(*number, |row| {
                row.parts.remove(key);
            }),
            Action::Fix(text) => self.fixed = Some(text.clone()),
            Action::DeleteCell(number) => self.change(*number, |row| row.value = None),
            Action::DeleteRow(number) => {
                self.rows.remove(number);
            }
            Action::DeleteRange(from, to) => self.rows.retain(|number, _| !(*from..*to).contains(number)),
            Action::DeletePartition => *self = Self::default(),
        }
    }

    fn change(&mut self, number: i32, change: impl FnOnce(&mut Row)) {
        if let Some(row) = self.rows.get_mut(&number) {
            change(row);
            if *row == Row::default() {
                self.rows.remove(&number);
            }
        }
    }

    /// Whether an answer, rows of (clustering, static column, value, map), is this partition.
    pub fn is(&self, answer: &[Answer]) -> bool {
        if self.rows.is_empty() {
            return match &self.fixed {
                Some(_) => matches!(answer, [(None, fixed, None, None)] if *fixed == self.fixed),
                None => answer.is_empty(),
            };
        }
        let same = |(number, row): (&i32, &Row), (seen, fixed, value, parts): &Answer| {
            *seen == Some(*number)
                && *fixed == self.fixed
                && *value == row.value
                && parts.clone().unwrap_or_default() == row.parts
        };
        self.rows.len() == answer.len() && self.rows.iter().zip(answer).all(|(row, seen)| same(row, seen))
    }

    /// In few words, for a report.
    pub fn brief(&self) -> String {
        let rows: Vec<String> =
            self.rows.iter().map(|(number, row)| brief_row(*number, row.value.as_deref(), &row.parts)).collect();
        format!("static {} rows {}", self.fixed.as_deref().map_or("null", head), rows.join(" "))
    }
}

/// A row of an answer: clustering, static column, value, map.
pub type Answer = (Option<i32>, Option<String>, Option<String>, Option<BTreeMap<i32, String>>);

/// An answer in few words.
pub fn brief_answer(answer: &[Answer]) -> String {
    let row = |(number, _, value, parts): &Answer| match number {
        Some(number) => brief_row(*number, value.as_deref(), &parts.clone().unwrap_or_default()),
        None => String::new(),
    };
    let fixed = answer.first().and_then(|(_, fixed, ..)| fixed.as_deref());
    format!("static {} rows {}", fixed.map_or("null", head), answer.iter().map(row).collect::<Vec<_>>().join(" "))
}

fn brief_row(number: i32, value: Option<&str>, parts: &BTreeMap<i32, String>) -> String {
    let parts: Vec<String> = parts.iter().map(|(key, text)| format!("{key}:{}", head(text))).collect();
    format!("{number}={}{{{}}}", value.map_or("null", head), parts.join(","))
}

fn head(text: &str) -> &str {
    text.get(..8).unwrap_or(text)
}

/// CQL of an action on `table`, where the partition is `part`.
pub fn statement(action: &Action, table: &str, part: i32) -> String {
    let delete = |what: &str, rest: &str| format!("DELETE {what} FROM {table} WHERE part = {part}{rest}");
    match action {
        Action::Insert(number, text) => {
            format!("INSERT INTO {table} (part, number, value) VALUES ({part}, {number}, '{text}')")
        }
        Action::Put(number, key, text) => {
            format!("UPDATE {table} SET parts[{key}] = '{text}' WHERE part = {part} AND number = {number}")
        }
        Action::Take(number, key) => delete(&format!("parts[{key}]"), &format!(" AND number = {number}")),
        Action::Fix(text) => format!("UPDATE {table} SET fixed = '{text}' WHERE part = {part}"),
        Action::DeleteCell(number) => delete("value", &format!(" AND number = {number}")),
        Action::DeleteRow(number) => delete("", &format!(" AND number = {number}")),
        Action::DeleteRange(from, to) => delete("", &format!(" AND number >= {from} AND number < {to}")),
        Action::DeletePartition => delete("", ""),
    }
}

/// Any action.
pub fn any_action(random: &mut StdRng) -> Action {
    let number = random.random_range(0..NUMBERS);
    match random.random_range(0..100) {
        0..60 => Action::Insert(number, any_text(random)),
        60..70 => Action::Put(number, random.random_range(0..KEYS), any_text(random)),
        70..74 => Action::Take(number, random.random_range(0..KEYS)),
        74..77 => Action::Fix(any_text(random)),
        77..82 => Action::DeleteCell(number),
        82..92 => Action::DeleteRow(number),
        92..98 => Action::DeleteRange(number, number + random.random_range(1..NUMBERS / 2)),
        _ => Action::DeletePartition,
    }
}

/// Hexadecimal digits; some of them fit into a batch.
pub fn short_text(random: &mut StdRng) -> String {
    text(random.random_range(8..8000), random)
}

/// Hexadecimal digits, most often few, seldom more than a page of a socket's buffer takes.
pub fn any_text(random: &mut StdRng) -> String {
    let size = match random.random_range(0..200) {
        0 => random.random_range(100_000..300_000),
        1..6 => random.random_range(4_000..30_000),
        _ => random.random_range(8..200),
    };
    text(size, random)
}

fn text(size: usize, random: &mut StdRng) -> String {
    let mut random = StdRng::seed_from_u64(random.random());
    let mut text = String::with_capacity(size + 16);
    while text.len() < size {
        text.push_str(&format!("{:016x}", random.random::<u64>()));
    }
    text.truncate(size);
    text
}
