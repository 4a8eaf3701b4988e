//! The naive twin of a wide table: every write ever made, with its clock; a read looks at all of
//! them.
//!
//! Every write has a timestamp of its own, so that which of two wins is never a matter of values.

use std::collections::{BTreeMap, BTreeSet};

/// A column's new content. `ttl`: seconds.
#[derive(Clone, Debug)]
pub enum CellOp {
    /// A simple column gets a value.
    Set { value: i32, ttl: Option<u32> },
    /// A simple column is deleted.
    Unset,
    /// An element of a collection.
    Put { element: i32, value: i32, ttl: Option<u32> },
    /// An element is deleted.
    Remove { element: i32 },
    /// The whole collection is replaced: deleted one microsecond before.
    Overwrite { elements: Vec<(i32, i32)> },
    /// The whole collection is deleted.
    Clear,
}

/// Rows of a partition, by clustering (a, b).
#[derive(Clone, Debug)]
pub enum Range {
    /// a =
    Prefix(i32),
    /// a = AND b >= AND b <=
    Within { a: i32, from: i32, to: i32 },
    /// a >= AND a <=
    Outer { from: i32, to: i32 },
}

impl Range {
    /// The row lies in it.
    pub fn covers(&self, a: i32, b: i32) -> bool {
        match *self {
            Self::Prefix(prefix) => a == prefix,
            Self::Within { a: prefix, from, to } => a == prefix && (from..=to).contains(&b),
            Self::Outer { from, to } => (from..=to).contains(&a),
        }
    }
}

/// The effect of a write on its partition.
#[derive(Clone, Debug)]
pub enum What {
    /// Cells of a row; `insert`: with primary-key liveness of that TTL.
    Row { a: i32, b: i32, insert: Option<Option<u32>>, cells: Vec<(&'static str, CellOp)> },
    /// Cells of the static row.
    Static { cells: Vec<(&'static str, CellOp)> },
    /// DELETE of a row.
    DeleteRow { a: i32, b: i32 },
    /// DELETE of a range.
    DeleteRange(Range),
    /// DELETE of the partition.
    DeletePartition,
}

/// A write.
#[derive(Clone, Debug)]
pub struct Write {
    /// Partition.
    pub k: i32,
    /// Timestamp.
    pub at: i64,
    /// Seconds of the server's clock.
    pub now: u32,
    /// Content.
    pub what: What,
}

/// A column as a query sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// One value.
    Simple(i32),
    /// Elements in order.
    Elements(Vec<(i32, i32)>),
}

/// Columns that have a value.
pub type Columns = BTreeMap<&'static str, Value>;

/// A partition as a query sees it.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Partition {
    /// Static columns.
    pub statics: Columns,
    /// Rows by (a, b).
    pub rows: BTreeMap<(i32, i32), Columns>,
}

/// All writes, and when columns were dropped.
#[derive(Clone, Default)]
pub struct History {
    /// In order.
    pub writes: Vec<Write>,
    /// Column name and the timestamp up to which its cells are gone.
    pub dropped: Vec<(&'static str, i64)>,
}

/// A winner: timestamp, end (seconds; None: never), value (None: deleted).
type Best = (i64, Option<u32>, Option<i32>);

#[derive(Default)]
struct Column {
    deleted: i64,
    simple: Option<Best>,
    elements: BTreeMap<i32, Best>,
}

impl History {
    fn of(&self, k: i32) -> impl Iterator<Item = &Write> {
        self.writes.iter().filter(move |write| write.k == k)
    }

    /// The partition at a second.
    pub fn partition(&self, k: i32, now: u32, columns: &[&'static str]) -> Partition {
        let whole = self.of(k).filter(|write| matches!(write.what, What::DeletePartition)).map(|write| write.at);
        let whole = whole.max().unwrap_or(i64::MIN);
        let cells = |write: &'_ Write| match &write.what {
            What::Static { cells } => cells.clone(),
            _ => Vec::new(),
        };
        let statics = self.columns(self.of(k).map(|write| (write, cells(write))), whole, now, columns);
        let rows: BTreeSet<(i32, i32)> = self
            .of(k)
            .filter_map(|write| if let What::Row { a, b, .. } = write.what { Some((a, b)) } else { None })
            .collect();
        let rows = rows.into_iter().filter_map(|(a, b)| Some(((a, b), self.row(k, a, b, whole, now, columns)?)));
        Partition { statics, rows: rows.collect() }
    }

    fn row(&self, k: i32, a: i32, b: i32, whole: i64, now: u32, columns: &[&'static str]) -> Option<Columns> {
        let deletions = self.of(k).filter(|write| match &write.what {
            What::DeleteRow { a: row_a, b: row_b } => (a, b) == (*row_a, *row_b),
            What::DeleteRange(range) => range.covers(a, b),
            _ => false,
        });
        let deleted = deletions.map(|write| write.at).max().unwrap_or(i64::MIN).max(whole);
        let mine = self.of(k).filter_map(|write| match &write.what {
            What::Row { a: row_a, b: row_b, insert, cells } if (a, b) == (*row_a, *row_b) => {
                Some((write, *insert, cells.clone()))
            }
            _ => None,
        });
        let mine: Vec<_> = mine.collect();
        let liveness = mine
            .iter()
            .filter_map(|(write, insert, _)| Some((write.at, insert.as_ref()?.map(|ttl| write.now + ttl))))
            .max_by_key(|(at, _)| *at);
        let live = liveness.is_some_and(|(at, end)| at > deleted && end.is_none_or(|end| now < end));
        let found = self.columns(mine.into_iter().map(|(write, _, cells)| (write, cells)), deleted, now, columns);
        (live || !found.is_empty()).then_some(found)
    }

    fn columns<'a>(
        &self,
        writes: impl Iterator<Item = (&'a Write, Vec<(&'static str, CellOp)>)>,
        deleted: i64,
        now: u32,
        wanted: &[&'static str],
    ) -> Columns {
        let mut columns: BTreeMap<&'static str, Column> = BTreeMap::new();
        for (write, cells) in writes {
            for (name, op) in cells {
                let gone = self.dropped.iter().any(|(dropped, at)| *dropped == name && write.at <= *at);
                if gone || !wanted.contains(&name) {
                    continue;
                }
                let column = columns.entry(name).or_insert_with(|| Column { deleted, ..Column::default() });
                column.apply(write, op);
            }
        }
        columns.into_iter().filter_map(|(name, column)| Some((name, column.view(now)?))).collect()
    }
}

impl Column {
    fn apply(&mut self, write: &Write, op: CellOp) {
        let end = |ttl: Option<u32>| ttl.map(|ttl| write.now + ttl);
        let newer = |best: Best, old: Option<Best>| old.map_or(best, |old| if old.0 > best.0 { old } else { best });
        let mut element = |element: i32, best: Best| {
            let best = newer(best, self.elements.get(&element).copied());
            self.elements.insert(element, best);
        };
        match op {
            CellOp::Set { value, ttl } => self.simple = Some(newer((write.at, end(ttl), Some(value)), self.simple)),
            CellOp::Unset => self.simple = Some(newer((write.at, None, None), self.simple)),
            CellOp::Put { element: path, value, ttl } => element(path, (write.at, end(ttl), Some(value))),
            CellOp::Remove { element: path } => element(path, (write.at, None, None)),
            CellOp::Overwrite { elements } => {
                elements.into_iter().for_each(|(path, value)| element(path, (write.at, None, Some(value))));
                self.deleted = self.deleted.max(write.at - 1);
            }
            CellOp::Clear => self.deleted = self.deleted.max(write.at),
        }
    }

    fn view(&self, now: u32) -> Option<Value> {
        let live = |best: &Best| {
            let (at, end, value) = *best;
            value.filter(|_| at > self.deleted && end.is_none_or(|end| now < end))
        };
        if let Some(best) = &self.simple {
            return live(best).map(Value::Simple);
        }
        let elements: Vec<_> = self.elements.iter().filter_map(|(path, best)| Some((*path, live(best)?))).collect();
        (!elements.is_empty()).then_some(Value::Elements(elements))
    }
}
