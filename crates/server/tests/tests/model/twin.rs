//! The naive twin: all changes ever made, in a list. A query looks at each of them for each row.

use std::collections::{BTreeMap, BTreeSet};

use super::statements::{Query, Where};

/// A row's primary key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    /// Partition key.
    pub k: i32,
    /// First clustering column, DESC.
    pub c: i32,
    /// Second, ASC.
    pub d: String,
}

/// What a write does.
#[derive(Clone, Debug)]
pub enum Change {
    /// INSERT; None: null.
    Insert { place: Place, v: Option<i32>, expires: Option<u32> },
    /// UPDATE SET v
    Value { place: Place, v: i32, expires: Option<u32> },
    /// UPDATE SET s
    Static { k: i32, s: i32, expires: Option<u32> },
    /// UPDATE SET m[key] = value
    Entry { place: Place, entry: (i32, i32), expires: Option<u32> },
    /// UPDATE SET m = {…}
    Map { place: Place, map: Vec<(i32, i32)>, expires: Option<u32> },
    /// DELETE v
    DeleteValue { place: Place },
    /// DELETE m
    DeleteMap { place: Place },
    /// DELETE m[key]
    DeleteEntry { place: Place, key: i32 },
    /// DELETE of a row.
    DeleteRow { place: Place },
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
    /// What it does.
    pub change: Change,
}

/// Everything that was written.
#[derive(Default)]
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

    fn row_deleted_at(&self, place: &Place) -> i64 {
        let deletions = self.ops.iter().filter(|op| match &op.change {
            Change::DeleteRow { place: at } => at == place,
            Change::DeleteRange { k, from, to } => *k == place.k && *from <= place.c && place.c <= *to,
            _ => false,
        });
        deletions.map(|op| op.at).max().unwrap_or(i64::MIN).max(self.partition_deleted_at(place.k))
    }

    fn static_value(&self, k: i32, now: u32) -> Option<i32> {
        let deleted = self.partition_deleted_at(k);
        let values = self.ops.iter().filter(|op| op.at > deleted).filter_map(|op| match op.change {
            Change::Static { k: at, s, expires } if at == k => Some((op.at, s, expires)),
            _ => None,
        });
        alive(newest(values), now)
    }

    fn row(&self, place: &Place, now: u32) -> RowState {
        let deleted = self.row_deleted_at(place);
        let ops: Vec<&Op> = self.ops.iter().filter(|op| op.at > deleted).collect();
        let liveness = newest(ops.iter().filter_map(|op| match &op.change {
            Change::Insert { place: at, expires, .. } if at == place => Some((op.at, (), *expires)),
            _ => None,
        }));
        let v = newest(ops.iter().filter_map(|op| match &op.change {
            Change::Insert { place: at, v, expires } if at == place => {
                Some((op.at, *v, expires.filter(|_| v.is_some())))
            }
            Change::Value { place: at, v, expires } if at == place => Some((op.at, Some(*v), *expires)),
            Change::DeleteValue { place: at } if at == place => Some((op.at, None, None)),
            _ => None,
        }));
        let v = alive(v, now).flatten();
        let m = self.map(place, &ops, now);
        let there = alive(liveness, now).is_some() || v.is_some() || !m.is_empty();
        RowState { v, m, there }
    }

    fn map(&self, place: &Place, ops: &[&Op], now: u32) -> BTreeMap<i32, i32> {
        let deleted = ops.iter().filter_map(|op| match &op.change {
            Change::DeleteMap { place: at } if at == place => Some(op.at),
            // an overwrite deletes what was there, just before itself
            Change::Map { place: at, .. } if at == place => Some(op.at - 1),
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
                Change::Entry { place: at, entry, expires } if at == place => {
                    put(entry.0, (op.at, Some(entry.1), *expires));
                }
                Change::Map { place: at, map, expires } if at == place => {
                    map.iter().for_each(|(key, value)| put(*key, (op.at, Some(*value), *expires)));
                }
                Change::DeleteEntry { place: at, key } if at == place => put(*key, (op.at, None, None)),
                _ => {}
            }
        }
        cells.into_iter().filter_map(|(key, cell)| Some((key, alive(Some(cell), now)??))).collect()
    }

    fn places(&self) -> BTreeSet<Place> {
        let places = self.ops.iter().filter_map(|op| match &op.change {
            Change::Insert { place, .. }
            | Change::Value { place, .. }
            | Change::Entry { place, .. }
            | Change::Map { place, .. } => Some(place.clone()),
            _ => None,
        });
        places.collect()
    }

    /// Partition keys in ring order.
    fn keys(&self) -> Vec<i32> {
        let statics = self.ops.iter().filter_map(|op| match op.change {
            Change::Static { k, .. } => Some(k),
            _ => None,
        });
        let mut keys: Vec<i32> = statics.chain(self.places().into_iter().map(|place| place.k)).collect();
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
        let mut places: Vec<Place> = self.places().into_iter().filter(|place| place.k == k).collect();
        places.sort_by(|a, b| b.c.cmp(&a.c).then_with(|| a.d.cmp(&b.d)));
        if query.reversed {
            places.reverse();
        }
        let mut rows = Vec::new();
        for place in places.iter().filter(|place| wants_row(&query.which, place)) {
            let state = self.row(place, now);
            if !state.there {
                continue;
            }
            let entries: Vec<_> = state.m.iter().map(|(key, value)| format!("{key}: {value}")).collect();
            let m = if entries.is_empty() { "null".to_owned() } else { format!("{{{}}}", entries.join(", ")) };
            rows.push(vec![k.to_string(), place.c.to_string(), format!("'{}'", place.d), text(s), text(state.v), m]);
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
        Where::Row(place) => place.k == k,
    }
}

fn wants_row(which: &Where, place: &Place) -> bool {
    match which {
        Where::All | Where::Partition(_) | Where::Partitions(_) => true,
        Where::Slice(_, from, to) => *from <= place.c && place.c < *to,
        Where::In(_, values) => values.contains(&place.c),
        Where::After(_, c, d) => (place.c, &place.d) > (*c, d),
        Where::Row(wanted) => wanted == place,
    }
}
