//! The naive twin: every write ever made, in a list; a read looks at all of them.

use std::collections::BTreeMap;

/// A write to the table of the model: (k, c) -> v, with a static s.
#[derive(Clone, Debug)]
pub enum Op {
    /// INSERT of a whole row.
    Insert { k: i32, c: i32, v: i32, at: i64 },
    /// UPDATE of the static column.
    Static { k: i32, s: i32, at: i64 },
    /// DELETE of a row.
    DeleteRow { k: i32, c: i32, at: i64 },
    /// DELETE of c >= from AND c <= to.
    DeleteRange { k: i32, from: i32, to: i32, at: i64 },
    /// DELETE of a partition.
    DeletePartition { k: i32, at: i64 },
    /// INSERT of a whole row with a TTL, which is over from the second `ends` on.
    Expiring { k: i32, c: i32, v: i32, at: i64, ends: u32 },
    /// TRUNCATE: every row that was written before is gone.
    Truncate,
    /// A TRUNCATE that failed: it takes effect with the next start, or never.
    PerhapsTruncate,
}

impl Op {
    /// The key of the partition that it touches; -1, which no partition has, for the whole table.
    pub fn k(&self) -> i32 {
        match self {
            Self::Truncate | Self::PerhapsTruncate => -1,
            Self::Insert { k, .. }
            | Self::Static { k, .. }
            | Self::DeleteRow { k, .. }
            | Self::DeleteRange { k, .. }
            | Self::DeletePartition { k, .. }
            | Self::Expiring { k, .. } => *k,
        }
    }
}

/// A partition as a query sees it: the static value and rows by clustering.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Partition {
    /// s
    pub s: Option<i32>,
    /// c -> v
    pub rows: BTreeMap<i32, i32>,
}

impl Partition {
    /// Nothing in it.
    pub fn is_empty(&self) -> bool {
        self.s.is_none() && self.rows.is_empty()
    }
}

/// The partition after these writes, at a second.
pub fn partition<'a>(k: i32, ops: impl Iterator<Item = &'a Op> + Clone, now: u32) -> Partition {
    let truncated = ops.clone().enumerate().filter(|(_, op)| matches!(op, Op::Truncate)).last();
    let ops = ops.skip(truncated.map_or(0, |(place, _)| place + 1)).filter(move |op| op.k() == k);
    let whole = ops
        .clone()
        .filter_map(|op| if let Op::DeletePartition { at, .. } = op { Some(*at) } else { None })
        .max()
        .unwrap_or(i64::MIN);
    let deleted_at = |clustering: i32| {
        ops.clone()
            .filter_map(|op| match op {
                Op::DeleteRow { c, at, .. } if *c == clustering => Some(*at),
                Op::DeleteRange { from, to, at, .. } if *from <= clustering && clustering <= *to => Some(*at),
                _ => None,
            })
            .max()
            .unwrap_or(i64::MIN)
            .max(whole)
    };
    // the newest of each row with its timestamp, its value, and when it ends
    let mut best: BTreeMap<i32, (i64, [u8; 4], u32)> = BTreeMap::new();
    let mut best_static: Option<(i64, [u8; 4])> = None;
    for op in ops.clone() {
        match op {
            Op::Insert { c, v, at, .. } if *at > deleted_at(*c) => {
                let found = (*at, v.to_be_bytes(), u32::MAX);
                let entry = best.entry(*c).or_insert(found);
                *entry = (*entry).max(found);
            }
            Op::Expiring { c, v, at, ends, .. } if *at > deleted_at(*c) => {
                let found = (*at, v.to_be_bytes(), *ends);
                let entry = best.entry(*c).or_insert(found);
                *entry = (*entry).max(found);
            }
            Op::Static { s, at, .. } if *at > whole => {
                let found = (*at, s.to_be_bytes());
                best_static = Some(best_static.map_or(found, |old| old.max(found)));
            }
            _ => {}
        }
    }
    Partition {
        s: best_static.map(|(_, bytes)| i32::from_be_bytes(bytes)),
        rows: best
            .into_iter()
            .filter(|(_, (.., ends))| *ends > now)
            .map(|(c, (_, bytes, _))| (c, i32::from_be_bytes(bytes)))
            .collect(),
    }
}
