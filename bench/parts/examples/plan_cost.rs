//! The cost of parsing and planning: statements with literals, as QUERY brings them, planned over
//! and over.
//!
//! `cargo run --release -p bench-parts --example plan_cost [TIMES]` prints nanoseconds for each.
//! Where time is noisy, count instructions: the difference of two runs under `valgrind
//! --tool=callgrind` with different TIMES, divided by the difference of TIMES.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // a program that measures

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use cql::ddl::restore::{RestoreOptions, restore};
use schema::{Schema, TableId};
use server::prepared::PlannedStatement;

const TABLES: &str = "CREATE KEYSPACE bench WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
CREATE TABLE bench.small (key bigint PRIMARY KEY, value blob);
CREATE TABLE bench.wide (key bigint, at bigint, name text, tags set<text>, value blob, PRIMARY KEY (key, at));";

fn schema() -> Arc<Schema> {
    let restoring = RestoreOptions { keyspace: None, now_micros: 1, id_of: &TableId::of_system_table };
    Arc::new(restore(TABLES, &restoring, schema::system::schema()).expect("statements").schema)
}

fn main() {
    let times: u64 = std::env::args().nth(1).and_then(|times| times.parse().ok()).unwrap_or(200_000);
    let only = std::env::args().nth(2);
    let schema = schema();
    let hex = "0123456789abcdef".repeat(12);
    let statements = [
        ("insert", format!("INSERT INTO bench.small (key, value) VALUES (-1234567890123456789, 0x{hex})")),
        ("select", "SELECT key, value FROM bench.small WHERE key = 123456".to_owned()),
        ("update", "UPDATE bench.wide SET name = 'a name', tags = {'a', 'b'} WHERE key = 1 AND at = 2".to_owned()),
        ("slice", "SELECT * FROM bench.wide WHERE key = 1 AND at > 5 ORDER BY at DESC LIMIT 10".to_owned()),
    ];
    for (name, text) in statements.iter().filter(|(name, _)| only.as_ref().is_none_or(|only| only == name)) {
        let begun = Instant::now();
        for _ in 0..times {
            let planned = PlannedStatement::plan(black_box(text), None, &schema).expect("a statement");
            black_box(&planned);
        }
        println!("{name:<8} {:>8.0} ns", begun.elapsed().as_nanos() as f64 / times as f64);
    }
}
