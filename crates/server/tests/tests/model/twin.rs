//! The naive twin: all changes ever made, in a list. A query looks at each of them for each row.

use std::collections::{BTreeMap, BTreeSet};

use super::statements::{Query, Where};

/// A row's primary key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RowKey {
    /// Partition key.
    pub k: i32,
    /// First clustering column, DESC.
    pub c: i32,
    /// Second, ASC.
    pub d: String,
}

/// The effect of a write.
#[derive(Clone, Debug)]
pub enum Change {
    /// INSERT; None: null.
    Insert { row: RowKey, v: Option<i32>, expires: Option<u32> },
    /// UPDATE SET v
    Value { row: RowKey, v: i32, expires: Option<u32> },
    /// UPDATE SET s
    Static { k: i32, s: i32, expires: Option<u32> },
    /// UPDATE SET m[key] = value
    Entry { row: RowKey, entry: (i32, i32), expires: Option<u32> },
    /// UPDATE SET m = {…}
    Map { row: RowKey, map: Vec<(i32, i32)>, expires: Option<u32> },
    /// DELETE v
    DeleteValue { row: RowKey },
    /// DELETE m
    DeleteMap { row: RowKey },
    /// DELETE m[key]
    DeleteEntry { row: RowKey, key: i32 },
    /// DELETE of a row.
    DeleteRow { row: RowKey },
    /// DELETE of from <= c <= to.
    DeleteRange { k: i32, from: i32, to: i32 },
    /// DELETE of a partition.
    DeletePartition { k: i32 },
}

/// A change at its timestamp. No two have the same.
#[derive(Clone, Debug)]
pub struct Op {
    /// Microseconds.
    pub at: i64,
    /// The effect.
    pub change: Change,
}

/// Everything that was written.
#[derive(Clone, Default)]
pub struct Twin {
    ops: Vec<Op>,
}

/// A value with its timestamp and its end.
type Timed<T> = (i64, T, Option<u32>);

#[derive(Clone, Debug, Default)]
struct RowState {
    v: Option<i32>,
    m: BTreeMap<i32, i32>,
    there: bool,
}

fn newest<T: Clone>(candidates: impl Iterator<Item = Timed<T>>) -> Option<Timed<T>> {
    candidates.max_by_key(|(at, ..)| *at)
}

fn alive<T>(found: Option<Timed<T>>, now: u32) -> Option<T> {
    found.filter(|(_, _, expires)| expires.is_none_or(|end| now < end)).map(|(_, value, _)| value)
}

impl Twin {
    /// Notes what was written.
    pub fn apply(&mut self, ops: Vec<Op>) {
        self.ops.extend(ops);
    }

    fn partition_deleted_at(&self, k: i32) -> i64 {
        let deletions = self.ops.iter().filter(|op| matches!(op.change, Change::DeletePartition { k: at } if at == k));
        deletions.map(|op| op.at).max().unwrap_or(i64::MIN)
    }

    fn row_deleted_at(&self, row: &RowKey) -> i64 {
        let deletions = self.ops.iter().filter(|op| match &op.change {
            Change::DeleteRow { row: at } => at == row,
            Change::DeleteRange { k, from, to } => *k == row.k && *from <= row.c && row.c <= *to,
            _ => false,
        });
        deletions.map(|op| op.at).max().unwrap_or(i64::MIN).max(self.partition_deleted_at(row.k))
    }

    fn static_value(&self, k: i32, now: u32) -> Option<i32> {
        let deleted = self.partition_deleted_at(k);
        let values = self.ops.iter().filter(|op| op.at > deleted).filter_map(|op| match op.change {
            Change::Static { k: at, s, expires } if at == k => Some((op.at, s, expires)),
            _ => None,
        });
        alive(newest(values), now)
    }

    fn row(&self, row: &RowKey, now: u32) -> RowState {
        let deleted = self.row_deleted_at(row);
        let ops: Vec<&Op> = self.ops.iter().filter(|op| op.at > deleted).collect();
        let liveness = newest(ops.iter().filter_map(|op| match &op.change {
            Change::Insert { row: at, expires, .. } if at == row => Some((op.at, (), *expires)),
            _ => None,
        }));
        let v = newest(ops.iter().filter_map(|op| match &op.change {
            Change::Insert { row: at, v, expires } if at == row => Some((op.at, *v, expires.filter(|_| v.is_some()))),
            Change::Value { row: at, v, expires } if at == row => Some((op.at, Some(*v), *expires)),
            Change::DeleteValue { row: at } if at == row => Some((op.at, None, None)),
            _ => None,
        }));
        let v = alive(v, now).flatten();
        let m = self.map(row, &ops, now);
        let there = alive(liveness, now).is_some() || v.is_some() || !m.is_empty();
        RowState { v, m, there }
    }

    fn map(&self, row: &RowKey, ops: &[&Op], now: u32) -> BTreeMap<i32, i32> {
        let deleted = ops.iter().filter_map(|op| match &op.change {
            Change::DeleteMap { row: at } if at == row => Some(op.at),
            // an overwrite deletes what was there, just before itself
            Change::Map { row: at, .. } if at == row => Some(op.at - 1),
            _ => None,
        });
        let deleted = deleted.max().unwrap_or(i64::MIN);
        let mut cells: BTreeMap<i32, Timed<Option<i32>>> = BTreeMap::new();
        let mut put = |key: i32, cell: Timed<Option<i32>>| {
            let entry = cells.entry(key).or_insert(cell);
            if cell.0 > entry.0 {
                *entry = cell;
            }
        };
        for op in ops.iter().filter(|op| op.at > deleted) {
            match &op.change {
                Change::Entry { row: at, entry, expires } if at == row => {
                    put(entry.0, (op.at, Some(entry.1), *expires));
                }
                Change::Map { row: at, map, expires } if at == row => {
                    map.iter().for_each(|(key, value)| put(*key, (op.at, Some(*value), *expires)));
                }
                Change::DeleteEntry { row: at, key } if at == row => put(*key, (op.at, None, None)),
                _ => {}
            }
        }
        cells.into_iter().filter_map(|(key, cell)| Some((key, alive(Some(cell), now)??))).collect()
    }

    fn row_keys(&self) -> BTreeSet<RowKey> {
        let row_keys = self.ops.iter().filter_map(|op| match &op.change {
            Change::Insert { row, .. }
            | Change::Value { row, .. }
            | Change::Entry { row, .. }
            | Change::Map { row, .. } => Some(row.clone()),
            _ => None,
        });
        row_keys.collect()
    }

    /// Partition keys in ring order.
    fn keys(&self) -> Vec<i32> {
        let statics = self.ops.iter().filter_map(|op| match op.change {
            Change::Static { k, .. } => Some(k),
            _ => None,
        });
        let mut keys: Vec<i32> = statics.chain(self.row_keys().into_iter().map(|row| row.k)).collect();
        keys.sort_by_key(|k| types::Token::of_key(&k.to_be_bytes()));
        keys.dedup();
        keys
    }

    /// The answer of the query at `now`, values as text.
    pub fn answer(&self, query: &Query, now: u32) -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        let mut keys = self.keys();
        if matches!(query.which, Where::Partitions(_)) {
            // IN gives partitions in the order of the values
            keys.sort_unstable();
        }
        for k in keys.into_iter().filter(|k| wants(&query.which, *k)) {
            let mut of_partition = self.partition(query, k, now);
            of_partition.truncate(query.per_partition.unwrap_or(usize::MAX));
            if query.distinct {
                of_partition.truncate(1);
                of_partition.iter_mut().for_each(|row| *row = vec![row[0].clone(), row[3].clone()]);
            }
            rows.extend(of_partition);
        }
        if query.count {
            return vec![vec![rows.len().to_string()]];
        }
        rows.truncate(query.limit.unwrap_or(usize::MAX));
        rows
    }

    fn partition(&self, query: &Query, k: i32, now: u32) -> Vec<Vec<String>> {
        let text = |value: Option<i32>| value.map_or_else(|| "null".to_owned(), |value| value.to_string());
        let s = self.static_value(k, now);
        let mut row_keys: Vec<RowKey> = self.row_keys().into_iter().filter(|row| row.k == k).collect();
        row_keys.sort_by(|a, b| b.c.cmp(&a.c).then_with(|| a.d.cmp(&b.d)));
        if query.reversed {
            row_keys.reverse();
        }
        let mut rows = Vec::new();
        for row in row_keys.iter().filter(|row| wants_row(&query.which, row)) {
            let state = self.row(row, now);
            if !state.there {
                continue;
            }
            let entries: Vec<_> = state.m.iter().map(|(key, value)| format!("{key}: {value}")).collect();
            let m = if entries.is_empty() { "null".to_owned() } else { format!("{{{}}}", entries.join(", ")) };
            rows.push(vec![k.to_string(), row.c.to_string(), format!("'{}'", row.d), text(s), text(state.v), m]);
        }
        let whole = matches!(query.which, Where::All | Where::Partition(_) | Where::Partitions(_));
        if rows.is_empty() && whole && s.is_some() {
            let null = || "null".to_owned();
            rows.push(vec![k.to_string(), null(), null(), text(s), null(), null()]);
        }
        rows
    }
}

fn wants(which: &Where, k: i32) -> bool {
    match which {
        Where::All => true,
        Where::Partitions(keys) => keys.contains(&k),
        Where::Partition(key) | Where::Slice(key, ..) | Where::In(key, _) | Where::After(key, ..) => *key == k,
        Where::Row(row) => row.k == k,
    }
}

fn wants_row(which: &Where, row: &RowKey) -> bool {
    match which {
        Where::All | Where::Partition(_) | Where::Partitions(_) => true,
        Where::Slice(_, from, to) => *from <= row.c && row.c < *to,
        Where::In(_, values) => values.contains(&row.c),
        Where::After(_, c, d) => (row.c, &row.d) > (*c, d),
        Where::Row(wanted) => wanted == row,
    }
}
