//! The scripts of tests/answers: what Cassandra 5.0.8 was recorded to answer, asked of plans and
//! their execution alone.

use super::memory::Memory;
use super::{run, spell};
use crate::ddl::Switches;
use crate::options::{Limits, QueryOptions};

/// Statements, each with what Cassandra answered.
fn recorded(text: &str) -> Vec<(&str, &str)> {
    let parts = text.strip_prefix("> ").expect("it begins with a statement").split("\n> ");
    parts.map(|part| part.split_once('\n').unwrap_or((part, ""))).collect()
}

/// The code and the text of an error as a driver words it.
fn error_text(answer: &str) -> Option<String> {
    if let Some(what) = answer.strip_prefix("error AlreadyExists ") {
        let (_, name) = what.split_once('\'')?;
        return Some(match name.split_once('\'')?.0.split_once('.') {
            Some((keyspace, table)) => {
                format!("error 2400 Cannot add already existing table \"{table}\" to keyspace \"{keyspace}\"")
            }
            None => format!("error 2400 Cannot add existing keyspace \"{}\"", name.split_once('\'')?.0),
        });
    }
    let code = answer.split("code=").nth(1)?.get(..4)?;
    let message = answer.split_once("message=\"")?.1.trim_end();
    let message = message.strip_suffix("\">").or(message.strip_suffix('"'))?;
    Some(format!("error {code} {message}"))
}

fn check(name: &str, text: &str, excused: &[&str]) {
    check_with(name, text, excused, Switches::default());
}

fn check_with(name: &str, text: &str, excused: &[&str], switches: Switches) {
    let node = Memory::new();
    let limits = Limits { switches, ..Limits::default() };
    let options = QueryOptions { page_size: Some(5000), protocol_version: 5, limits, ..QueryOptions::default() };
    let mut wrong = Vec::new();
    let mut total = 0;
    for (statement, expected) in recorded(text) {
        // with values or in pages, as only a driver runs statements
        if expected.starts_with("|| ") {
            continue;
        }
        total += 1;
        let found = spell::answer(&run(&node, statement, &[], &options));
        let expected = error_text(expected).unwrap_or_else(|| expected.trim_end().to_owned());
        let same = if expected.starts_with("error 2000") {
            found.starts_with("error 2000")
        } else {
            found.split_whitespace().eq(expected.split_whitespace())
        };
        if !same && !excused.iter().any(|excuse| statement.contains(excuse)) {
            wrong.push(format!("> {statement}\nexpected: {expected}\nfound:    {found}\n"));
        }
    }
    assert!(wrong.is_empty(), "{name}: {} of {total} differ\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn where_clauses() {
    check("where", include_str!("../../../../tests/answers/where.txt"), &[]);
}

#[test]
fn writes() {
    check("writes", include_str!("../../../../tests/answers/writes.txt"), &[]);
}

#[test]
fn deletions() {
    check("deletions", include_str!("../../../../tests/answers/deletions.txt"), &[]);
}

#[test]
fn collections() {
    check(
        "collections",
        include_str!("../../../../tests/answers/collections.txt"),
        &["CREATE TABLE bad", "TYPE place", "floor", "house", "lp, p", "SELECT p"],
    );
}

#[test]
fn literals() {
    // Cassandra names its Java exception
    check("literals", include_str!("../../../../tests/answers/literals.txt"), &["'é'"]);
}

#[test]
fn aggregates() {
    // the signatures in the message come in the order of a hash map
    check("aggregates", include_str!("../../../../tests/answers/aggregates.txt"), &["sum(t)", "avg(w)"]);
}

#[test]
fn counters() {
    check("counters", include_str!("../../../../tests/answers/counters.txt"), &[]);
}

#[test]
fn conditions() {
    check("conditions", include_str!("../../../../tests/answers/conditions.txt"), &[]);
}

#[test]
fn schema() {
    // the tables of the schema are the node's
    check(
        "schema",
        include_str!("../../../../tests/answers/schema.txt"),
        &["system_schema", "system_virtual_schema", "system_views.settings", "system.local"],
    );
}

/// The rows of a read may be more than those that an index finds, as those of a scan: here they are
/// all rows. Empty numbers, which have no entries in storage-attached indexes, are left out.
#[test]
fn empty_values_beside_indexes() {
    let recorded = include_str!("../../../../tests/answers/nulls_beside_indexes.txt");
    let begin = recorded.find("> CREATE TABLE empties").expect("the last part of it");
    check("nulls_beside_indexes", &recorded[begin..], &[]);
}

#[test]
fn sasi() {
    // the tables of the schema need a server
    check_with(
        "sasi",
        include_str!("../../../../tests/answers/sasi.txt"),
        &["system_schema", "DESCRIBE"],
        Switches { sasi: true, ..Switches::default() },
    );
}
