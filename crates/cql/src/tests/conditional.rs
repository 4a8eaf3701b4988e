//! Conditional statements: what drivers are told when they are prepared, levels, bound values,
//! times.

use bytes::Bytes;
use types::Consistency;

use super::{KEYSPACE, Memory, rows_of, run, spell};
use crate::options::QueryOptions;
use crate::values::BoundValue;
use crate::{Coordinator, prepare};

fn node() -> Memory {
    let node = Memory::new();
    rows_of(
        &node,
        &[
            "CREATE TYPE place (street text, number int)",
            "CREATE TABLE t (k int, c int, v int, s int static, l list<int>, m map<text, int>, e set<text>, p place, \
             n tinyint, PRIMARY KEY (k, c))",
            "INSERT INTO t (k, c, v, l, m) VALUES (1, 1, 1, [1], {'a': 1})",
        ],
    );
    node
}

fn markers(statement: &str) -> String {
    let node = node();
    let prepared = prepare(statement, Some(KEYSPACE), &node.schema()).unwrap_or_else(|error| panic!("{error}"));
    assert!(prepared.result_metadata.columns.is_empty(), "the columns of the answer depend on what is there");
    let text = prepared.bind_variables.iter().map(|spec| format!("{} {}", spec.name, spec.ty.cql_name()));
    text.collect::<Vec<_>>().join(", ")
}

#[test]
fn markers_of_conditions() {
    let of = |condition: &str| markers(&format!("UPDATE t SET v = ? WHERE k = ? AND c = ? IF {condition}"));
    let head = "v int, k int, c int, ";
    for (condition, found) in [
        ("v = ? AND s < ?", "v int, s int"),
        ("v IN (?, ?)", "v int, v int"),
        ("v IN ?", "in(v) frozen<list<int>>"),
        ("l[?] = ?", "idx(l) int, value(l) int"),
        ("m[?] IN ?", "key(m) text, in(value(m)) frozen<list<int>>"),
        ("m CONTAINS ? AND m CONTAINS KEY ?", "value(m) int, key(m) text"),
        ("e CONTAINS ?", "value(e) text"),
        ("p.number = ?", "p.number int"),
    ] {
        assert_eq!(of(condition), format!("{head}{found}"), "{condition}");
    }
    assert_eq!(markers("UPDATE t SET n = n + ? WHERE k = 1 AND c = 1 IF EXISTS"), "n tinyint");
}

fn answer(node: &Memory, statement: &str, values: &[BoundValue], options: &QueryOptions) -> String {
    spell::answer(&run(node, statement, values, options)).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn levels() {
    let node = node();
    let update = "UPDATE t SET v = 1 WHERE k = 1 AND c = 1 IF EXISTS";
    let with = |serial: Option<Consistency>, consistency: Consistency| {
        let options = QueryOptions { serial_consistency: serial, consistency, ..QueryOptions::default() };
        answer(&node, update, &[], &options)
    };
    let applied = "[applied] boolean True";
    assert_eq!(with(None, Consistency::Any), applied);
    assert_eq!(with(Some(Consistency::LocalSerial), Consistency::Quorum), applied);
    assert_eq!(
        with(Some(Consistency::Quorum), Consistency::One),
        "error 2200 Invalid consistency for conditional update. Must be one of SERIAL or LOCAL_SERIAL"
    );
    assert!(with(None, Consistency::Serial).starts_with(
        "error 2200 SERIAL is not supported as conditional update commit consistency. Use ANY if you mean"
    ));
    assert_eq!(
        with(None, Consistency::EachQuorum),
        "error 2200 consistency level EACH_QUORUM not compatible with replication strategy \
         (org.apache.cassandra.locator.SimpleStrategy)"
    );
}

#[test]
fn null_and_unset_values() {
    let node = node();
    let options = QueryOptions::default();
    let with = |condition: &str, value: BoundValue| {
        let statement = format!("UPDATE t SET s = 5 WHERE k = 1 AND c = 1 IF {condition}");
        answer(&node, &statement, &[value], &options)
    };
    let applied = "[applied] boolean True";
    assert_eq!(with("v = ?", BoundValue::Null), "[applied] boolean | v int False | 1");
    assert_eq!(with("v != ?", BoundValue::Null), applied);
    assert_eq!(with("v = ?", BoundValue::Unset), "error 2200 Invalid 'unset' value in condition");
    assert_eq!(with("v IN ?", BoundValue::Null), "error 2200 Invalid null list in IN condition");
    assert_eq!(with("v IN ?", BoundValue::Unset), "error 2200 Invalid 'unset' value in condition");
    assert_eq!(with("v IN (1, ?)", BoundValue::Unset), applied);
    let list = Bytes::from_static(&[0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 1]);
    assert_eq!(with("v IN ?", BoundValue::Bytes(list)), applied);
    assert_eq!(with("m[?] = 1", BoundValue::Null), "error 2200 Invalid null value for map element access");
    assert_eq!(with("m[?] = null", BoundValue::Unset), applied);
    assert_eq!(with("l[?] = 1", BoundValue::Unset), "error 2200 Invalid null value for list element access");
}

/// A conditional write is later than all that it saw, whatever time that was written with.
#[test]
fn what_is_applied_is_seen() {
    let node = node();
    rows_of(&node, &["INSERT INTO t (k, c, v) VALUES (2, 1, 1) USING TIMESTAMP 5000000000000000"]);
    let set = ["UPDATE t SET v = 2 WHERE k = 2 AND c = 1 IF v = 1", "SELECT v FROM t WHERE k = 2"];
    assert!(rows_of(&node, &set).ends_with("\n2"));
    rows_of(&node, &["DELETE FROM t USING TIMESTAMP 6000000000000000 WHERE k = 2"]);
    let insert = ["INSERT INTO t (k, c, v) VALUES (2, 1, 3) IF NOT EXISTS", "SELECT v FROM t WHERE k = 2"];
    assert!(rows_of(&node, &insert).ends_with("\n3"));
}

/// Ballots ascend although the clocks of coordinators are set back; what is added to a list follows
/// them.
#[test]
fn lists_follow_the_order_of_transactions() {
    let node = node();
    let batch = "BEGIN BATCH UPDATE t SET l = [-1] + l WHERE k = 1 AND c = 1 IF v = 4; \
                 UPDATE t SET l = [-3, -2] + l WHERE k = 1 AND c = 1; UPDATE t SET l = l + [5] WHERE k = 1 AND c = 1; \
                 UPDATE t SET l = l + [6, 7], v = 5 WHERE k = 1 AND c = 1; APPLY BATCH";
    for statement in [
        "UPDATE t SET l = l + [2], v = 2 WHERE k = 1 AND c = 1 IF v = 1",
        "UPDATE t SET l = l + [3, 4], v = 3 WHERE k = 1 AND c = 1 IF v = 2",
        "UPDATE t SET l = [0] + l, v = 4 WHERE k = 1 AND c = 1 IF v = 3",
        batch,
    ] {
        let applied = rows_of(&node, &[statement]);
        assert!(applied.ends_with("True"), "{statement}: {applied}");
        node.clock.set(node.clock.get() - 3_600_000_000);
    }
    assert_eq!(
        rows_of(&node, &["SELECT l FROM t WHERE k = 1 AND c = 1"]),
        "l list<int>\n[-3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7]"
    );
}
