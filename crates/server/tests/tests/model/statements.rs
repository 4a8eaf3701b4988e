//! Random statements on one table: as text for the node, as plain values for the twin.

use env::Random;
use env::sim::SimRandom;

use super::twin::{Change, Op, RowKey};

/// Made at the start of each life.
pub const KEYSPACE: &str =
    "CREATE KEYSPACE IF NOT EXISTS model WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
/// Made at the start of each life.
pub const TABLE: &str = "CREATE TABLE IF NOT EXISTS model.t (k int, c int, d text, s int static, v int, m map<int, int>, \
    PRIMARY KEY (k, c, d)) WITH CLUSTERING ORDER BY (c DESC, d ASC)";

const PARTITIONS: u64 = 4;
const CLUSTERINGS: u64 = 12;
const TEXTS: u64 = 3;

/// Writes with timestamps that are never the same twice.
pub struct Generator {
    dice: SimRandom,
    writes: i64,
}

/// Which rows of a partition, or of all.
#[derive(Clone, Debug)]
pub enum Where {
    /// Everything in the table.
    All,
    /// A partition.
    Partition(i32),
    /// Some partitions.
    Partitions(Vec<i32>),
    /// from <= c < to in a partition.
    Slice(i32, i32, i32),
    /// Some c of a partition.
    In(i32, Vec<i32>),
    /// (c, d) > (..) in a partition.
    After(i32, i32, String),
    /// One row.
    Row(RowKey),
}

/// A query.
#[derive(Clone, Debug)]
pub struct Query {
    /// Which rows.
    pub which: Where,
    /// ORDER BY c ASC, d DESC: against the table's order.
    pub reversed: bool,
    /// LIMIT
    pub limit: Option<usize>,
    /// PER PARTITION LIMIT
    pub per_partition: Option<usize>,
    /// Rows a page.
    pub page_size: Option<u32>,
    /// SELECT DISTINCT k, s.
    pub distinct: bool,
    /// SELECT count(*).
    pub count: bool,
}

impl Query {
    /// The whole table.
    pub fn everything() -> Self {
        let (limit, per_partition, page_size) = (None, None, None);
        let (reversed, distinct, count) = (false, false, false);
        Self { which: Where::All, reversed, limit, per_partition, page_size, distinct, count }
    }

    /// As CQL.
    pub fn text(&self) -> String {
        let list = |values: &[i32]| values.iter().map(i32::to_string).collect::<Vec<_>>().join(", ");
        let mut text = match (self.distinct, self.count) {
            (true, _) => "SELECT DISTINCT k, s FROM t".to_owned(),
            (_, true) => "SELECT count(*) FROM t".to_owned(),
            _ => "SELECT k, c, d, s, v, m FROM t".to_owned(),
        };
        text += &match &self.which {
            Where::All => String::new(),
            Where::Partition(k) => format!(" WHERE k = {k}"),
            Where::Partitions(keys) => format!(" WHERE k IN ({})", list(keys)),
            Where::Slice(k, from, to) => format!(" WHERE k = {k} AND c >= {from} AND c < {to}"),
            Where::In(k, values) => format!(" WHERE k = {k} AND c IN ({})", list(values)),
            Where::After(k, c, d) => format!(" WHERE k = {k} AND (c, d) > ({c}, '{d}')"),
            Where::Row(RowKey { k, c, d }) => format!(" WHERE k = {k} AND c = {c} AND d = '{d}'"),
        };
        if self.reversed {
            text += " ORDER BY c ASC, d DESC";
        }
        if let Some(limit) = self.per_partition {
            text += &format!(" PER PARTITION LIMIT {limit}");
        }
        if let Some(limit) = self.limit {
            text += &format!(" LIMIT {limit}");
        }
        text
    }
}

impl Generator {
    /// Drawing from `dice`.
    pub fn new(dice: SimRandom) -> Self {
        Self { dice, writes: 0 }
    }

    fn below(&self, end: u64) -> i32 {
        self.dice.below(end) as i32
    }

    fn row(&self) -> RowKey {
        let d = ["a", "b", "c"][self.dice.below(TEXTS) as usize].to_owned();
        RowKey { k: self.below(PARTITIONS), c: self.below(CLUSTERINGS), d }
    }

    /// Mostly now, sometimes long ago; tens, so that a deletion just before a write has a timestamp
    /// of its own.
    fn timestamp(&mut self) -> i64 {
        self.writes += 1;
        let at = if self.dice.chance(85) { self.writes } else { 1 + self.dice.below(self.writes as u64) as i64 };
        // never the same twice: the number of the write is part of it
        1_000_000_000_000_000 + at * 1_000_000_000 + self.writes * 10
    }

    /// A write at the time `now`, as text and as what the twin has to know.
    pub fn write(&mut self, now: u32) -> (String, Vec<Op>) {
        if self.dice.chance(8) {
            let mut text = "BEGIN BATCH ".to_owned();
            let mut ops = Vec::new();
            for _ in 0..=self.dice.below(4) {
                let (one, more) = self.single(now);
                text += &format!("{one}; ");
                ops.extend(more);
            }
            return (text + "APPLY BATCH", ops);
        }
        self.single(now)
    }

    fn single(&mut self, now: u32) -> (String, Vec<Op>) {
        let at = self.timestamp();
        let row = self.row();
        let RowKey { k, c, d } = row.clone();
        let key = format!("k = {k} AND c = {c} AND d = '{d}'");
        let ttl = self.dice.chance(15).then(|| 1 + self.dice.below(60) as u32);
        let expires = ttl.map(|ttl| now + ttl);
        let using = match ttl {
            Some(ttl) => format!("USING TIMESTAMP {at} AND TTL {ttl}"),
            None => format!("USING TIMESTAMP {at}"),
        };
        let plain = format!("USING TIMESTAMP {at}");
        let v = self.below(1000);
        let (text, change) = match self.dice.below(24) {
            0 => (format!("DELETE FROM t {plain} WHERE k = {k}"), Change::DeletePartition { k }),
            1 => {
                let to = c + self.below(5);
                (
                    format!("DELETE FROM t {plain} WHERE k = {k} AND c >= {c} AND c <= {to}"),
                    Change::DeleteRange { k, from: c, to },
                )
            }
            2 => {
                (format!("DELETE FROM t {plain} WHERE k = {k} AND c = {c}"), Change::DeleteRange { k, from: c, to: c })
            }
            3 => (format!("DELETE FROM t {plain} WHERE {key}"), Change::DeleteRow { row }),
            4 => (format!("DELETE v FROM t {plain} WHERE {key}"), Change::DeleteValue { row }),
            5 => (format!("DELETE m FROM t {plain} WHERE {key}"), Change::DeleteMap { row }),
            6 => (
                format!("DELETE m[{v}] FROM t {plain} WHERE {key}", v = v % 4),
                Change::DeleteEntry { row, key: v % 4 },
            ),
            7..=8 => (format!("UPDATE t {using} SET s = {v} WHERE k = {k}"), Change::Static { k, s: v, expires }),
            9..=10 => (format!("UPDATE t {using} SET v = {v} WHERE {key}"), Change::Value { row, v, expires }),
            11..=12 => {
                let entry = (v % 4, v);
                (
                    format!("UPDATE t {using} SET m[{}] = {} WHERE {key}", entry.0, entry.1),
                    Change::Entry { row, entry, expires },
                )
            }
            13 => (
                format!("UPDATE t {using} SET m = {{1: {v}, 2: {v}}} WHERE {key}"),
                Change::Map { row, map: vec![(1, v), (2, v)], expires },
            ),
            14 => (
                format!("INSERT INTO t (k, c, d, v) VALUES ({k}, {c}, '{d}', null) {using}"),
                Change::Insert { row, v: None, expires },
            ),
            _ => (
                format!("INSERT INTO t (k, c, d, v) VALUES ({k}, {c}, '{d}', {v}) {using}"),
                Change::Insert { row, v: Some(v), expires },
            ),
        };
        (text, vec![Op { at, change }])
    }

    /// A query.
    pub fn query(&self) -> Query {
        let row = self.row();
        let (k, c) = (row.k, row.c);
        let which = match self.dice.below(12) {
            0..=1 => Where::All,
            2 => Where::Partitions((0..PARTITIONS as i32).filter(|_| self.dice.chance(60)).chain([k]).collect()),
            3..=5 => Where::Slice(k, c, c + self.below(CLUSTERINGS)),
            6 => Where::In(k, (0..CLUSTERINGS as i32).filter(|_| self.dice.chance(30)).chain([c]).collect()),
            7 => Where::After(k, c, row.d.clone()),
            8..=9 => Where::Row(row),
            _ => Where::Partition(k),
        };
        let distinct = matches!(which, Where::All) && self.dice.chance(30);
        let one_partition = !matches!(which, Where::All | Where::Partitions(_));
        let plain = !distinct && self.dice.chance(90);
        Query {
            reversed: one_partition && self.dice.chance(40),
            limit: self.dice.chance(25).then(|| 1 + self.dice.below(8) as usize),
            per_partition: (!distinct && self.dice.chance(15)).then(|| 1 + self.dice.below(3) as usize),
            page_size: self.dice.chance(60).then(|| 1 + self.dice.below(9) as u32),
            distinct,
            count: !plain && !distinct,
            which,
        }
        .tidied()
    }
}

impl Query {
    /// Leaves out what Cassandra does not allow together.
    fn tidied(mut self) -> Self {
        if self.count {
            // limits would count the one row of the result, order has no meaning
            (self.limit, self.per_partition, self.reversed) = (None, None, false);
        }
        self
    }
}
