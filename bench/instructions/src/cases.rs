//! The requests that are counted, and the tables and rows that they need.
//!
//! Everything follows from the number of a row, so that every run has the same data. Before the
//! count the node is shut down and started again: rows loaded before lie in SSTables, rows
//! written after in memtables.

use bench_lean::template::Request;
use serde_json::{Value, json};

/// Keyspace and tables. `small` has a row a partition; `wide` and `mixed` have [`WIDE_ROWS`].
pub const SCHEMA: [&str; 4] = [
    "CREATE KEYSPACE guard WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE guard.small (key bigint PRIMARY KEY, value blob)",
    "CREATE TABLE guard.wide (key bigint, name text, at double, value blob, PRIMARY KEY (key, name))",
    "CREATE TABLE guard.mixed (key bigint, name text, at double, value blob, PRIMARY KEY (key, name))",
];

/// Rows of a partition of `wide` and `mixed`.
const WIDE_ROWS: u64 = 1000;
/// Rows of a batch, while loading and in the case `batch`.
const BATCH: u64 = 256;

/// A request that is made `count` times, with the numbers from `first` on, `step` apart.
pub struct Case {
    /// Its name in the baseline.
    pub name: &'static str,
    /// The kind of request that is made.
    pub ask: Ask,
    /// The number of the first request.
    pub first: u64,
    /// From one request's number to the next one's.
    pub step: u64,
    /// How many requests.
    pub count: u64,
}

/// The request of a case.
pub enum Ask {
    /// A prepared statement, or an unlogged batch of it.
    Prepared(Request),
    /// A statement with literals, parsed and planned each time.
    Text(fn(u64) -> String),
}

fn prepared(request: Value) -> Ask {
    Ask::Prepared(serde_json::from_value(request).expect("a request of bench/lean"))
}

fn insert_small() -> Value {
    json!({"statement": "INSERT INTO guard.small (key, value) VALUES (?, ?)", "values": [{"quotient": 1}, {"blob": 100}]})
}

fn insert_wide(table: &str) -> Value {
    json!({
        "statement": format!("INSERT INTO guard.{table} (key, name, at, value) VALUES (?, ?, ?, ?)"),
        "values": [{"quotient": WIDE_ROWS}, {"name": 0}, "double", {"blob": 60}],
    })
}

fn in_batches(mut insert: Value) -> Ask {
    insert["batch"] = json!(BATCH);
    prepared(insert)
}

/// Fills the tables; these rows are flushed to SSTables before anything is counted.
pub fn loads() -> Vec<Case> {
    let load = |name, insert, rows: u64| Case {
        name,
        ask: in_batches(insert),
        first: 0,
        step: BATCH,
        count: rows.div_ceil(BATCH),
    };
    vec![
        load("load small", insert_small(), 2 * WIDE_ROWS),
        load("load wide", insert_wide("wide"), 4 * WIDE_ROWS),
        load("load mixed", insert_wide("mixed"), 4 * WIDE_ROWS),
    ]
}

/// Written after the restart: every tenth row of `mixed` again, so that reads merge memtable and
/// SSTable.
pub fn overwrites() -> Case {
    let ask = prepared(insert_wide("mixed"));
    Case { name: "overwrite", ask, first: 0, step: 10, count: 4 * WIDE_ROWS / 10 }
}

/// The cases that are counted, in this order.
pub fn cases() -> Vec<Case> {
    let slice = |table: &str| {
        let statement = format!("SELECT name, at, value FROM guard.{table} WHERE key = ? AND name >= ? LIMIT 100");
        prepared(json!({"statement": statement, "values": [{"quotient": WIDE_ROWS}, {"name": 0}], "rows": 100}))
    };
    let read = || {
        let statement = "SELECT key, value FROM guard.small WHERE key = ?";
        prepared(json!({"statement": statement, "values": [{"quotient": 1}], "rows": 1}))
    };
    let names = prepared(json!({
        "statement": "SELECT name, at, value FROM guard.wide WHERE key = ? AND name IN ?",
        "values": [{"quotient": WIDE_ROWS}, {"names_from": 20}],
        "rows": 20,
    }));
    let insert = |n| {
        format!(
            "INSERT INTO guard.wide (key, name, at, value) VALUES ({n}, 'name{n}', {n}.5, 0x00112233445566778899aabbccddeeff)"
        )
    };
    let behind = 4 * WIDE_ROWS;
    vec![
        // from one SSTable, chunks in the cache
        Case { name: "read", ask: read(), first: 1, step: 5, count: 400 },
        Case { name: "slice", ask: slice("wide"), first: 100, step: 110, count: 8 },
        Case { name: "names", ask: names, first: 100, step: 110, count: 8 },
        // from an SSTable and a memtable
        Case { name: "merged slice", ask: slice("mixed"), first: 100, step: 110, count: 8 },
        // to a memtable and the commit log
        Case { name: "write", ask: prepared(insert_small()), first: behind, step: 1, count: 400 },
        Case { name: "batch", ask: in_batches(insert_wide("wide")), first: 8 * WIDE_ROWS, step: BATCH, count: 16 },
        Case { name: "insert", ask: Ask::Text(insert), first: behind, step: 1, count: 400 },
        // from a memtable alone
        Case { name: "new read", ask: read(), first: behind, step: 1, count: 400 },
    ]
}
