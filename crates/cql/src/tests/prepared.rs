//! Bind markers: what clients are told of them, and what null, unset and wrong values do. Batches
//! and their warnings.

use bytes::Bytes;
use types::{BatchKind, Consistency};

use super::memory::{Memory, block_on};
use super::{KEYSPACE, rows_of, run, spell};
use crate::coordinator::{Coordinator, EXPIRATION_MAX_CASSANDRA_4};
use crate::options::{ClientState, Limits, QueryOptions};
use crate::result::{Answer, CqlResult};
use crate::values::BoundValue;
use crate::{CqlError, PreparedStatement, bind_by_name, execute, execute_batch, prepare};

const TABLE: &str = "CREATE TABLE t (a int, b text, c int, d int, v int, l list<int>, m map<text, int>, s int static, PRIMARY KEY ((a, b), c, d))";

fn node() -> Memory {
    let node = Memory::new();
    run(&node, TABLE, &[], &QueryOptions::default()).expect("the table is made");
    node
}

fn prepared(node: &Memory, text: &str) -> PreparedStatement {
    prepare(text, Some(KEYSPACE), &node.schema()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn int(number: i32) -> BoundValue {
    BoundValue::Bytes(Bytes::copy_from_slice(&number.to_be_bytes()))
}

fn text(text: &str) -> BoundValue {
    BoundValue::Bytes(Bytes::copy_from_slice(text.as_bytes()))
}

fn ints(numbers: &[i32]) -> BoundValue {
    let elements: Vec<_> = numbers.iter().map(|number| number.to_be_bytes()).collect();
    BoundValue::Bytes(types::collection::build_list(&elements).into())
}

fn go(node: &Memory, text: &str, values: &[BoundValue]) -> Result<Answer, CqlError> {
    run(node, text, values, &QueryOptions::default())
}

fn shown(node: &Memory, text: &str, values: &[BoundValue]) -> String {
    spell::answer(&go(node, text, values))
}

#[test]
fn clients_are_told_names_types_and_places_of_markers() {
    let node = node();
    let cases = [
        ("INSERT INTO t (a, b, c, d, v) VALUES (?, ?, ?, ?, ?)", "a int, b text, c int, d int, v int", "0 1"),
        ("INSERT INTO t (v, d, c, b, a) VALUES (?, ?, ?, ?, ?)", "v int, d int, c int, b text, a int", "4 3"),
        ("INSERT INTO t (a, b, c, d) VALUES (1, ?, ?, ?)", "b text, c int, d int", ""),
        (
            "UPDATE t USING TIMESTAMP ? AND TTL ? SET v = ?, l[?] = ?, m[?] = ?, l = l + ? WHERE a = :x AND b = :y AND c = ? AND d = ?",
            "[timestamp] bigint, [ttl] int, v int, idx(l) int, value(l) int, key(m) text, value(m) int, l list<int>, x int, y text, c int, d int",
            "8 9",
        ),
        (
            "SELECT v FROM t WHERE a IN ? AND b = ? AND (c, d) > ? LIMIT ?",
            "in(a) list<int>, b text, (c,d) tuple<int, int>, [limit] int",
            "",
        ),
        (
            "SELECT v FROM t WHERE a = ? AND b = ? AND c IN ? PER PARTITION LIMIT ?",
            "a int, b text, in(c) list<int>, [per_partition_limit] int",
            "0 1",
        ),
        (
            "SELECT v FROM t WHERE token(a, b) > ? AND token(a, b) <= ?",
            "partition key token bigint, partition key token bigint",
            "",
        ),
        (
            "SELECT v FROM t WHERE l CONTAINS ? AND m CONTAINS KEY ? AND m[?] = ? ALLOW FILTERING",
            "value(l) int, key(m) text, key(m) text, value(m) int",
            "",
        ),
        (
            "DELETE m[?] FROM t USING TIMESTAMP ? WHERE a = ? AND b = ? AND c = ? AND d = ?",
            "key(m) text, [timestamp] bigint, a int, b text, c int, d int",
            "2 3",
        ),
        (
            "BEGIN BATCH USING TIMESTAMP ? INSERT INTO t (a, b, c, d) VALUES (?, ?, 1, 1) DELETE FROM t WHERE a = ? AND b = ? APPLY BATCH",
            "[timestamp] bigint, a int, b text, a int, b text",
            // the first marker belongs to no table
            "",
        ),
        ("SELECT v FROM t WHERE (a, b) IN ? ALLOW FILTERING", "", "error"),
    ];
    for (statement, markers, keys) in cases {
        let prepared = match prepare(statement, Some(KEYSPACE), &node.schema()) {
            Ok(prepared) => prepared,
            Err(error) => {
                assert_eq!(keys, "error", "{statement}: {error}");
                continue;
            }
        };
        let found: Vec<_> = prepared
            .bind_variables
            .iter()
            .map(|spec| {
                format!(
                    "{} {}",
                    spec.name,
                    spec.ty
                        .cql_name()
                        .replace("frozen<list<int>>", "list<int>")
                        .replace("frozen<tuple<int, int>>", "tuple<int, int>")
                )
            })
            .collect();
        assert_eq!(found.join(", "), markers, "{statement}");
        let found: Vec<_> = prepared.partition_key_bind_indexes.iter().map(ToString::to_string).collect();
        assert_eq!(found.join(" "), keys, "{statement}");
        assert!(!prepared.is_outdated(&node.schema()));
    }
}

#[test]
fn null_deletes_and_unset_leaves() {
    let node = node();
    let insert = "INSERT INTO t (a, b, c, d, v, l) VALUES (?, ?, ?, ?, ?, ?)";
    let key = [int(1), text("x"), int(1), int(1)];
    let with = |rest: &[BoundValue]| [&key[..], rest].concat();
    assert_eq!(shown(&node, insert, &with(&[int(5), ints(&[1, 2])])), "done");
    assert_eq!(shown(&node, insert, &with(&[BoundValue::Unset, BoundValue::Unset])), "done");
    assert_eq!(rows_of(&node, &["SELECT v, l FROM t"]), "v int | l list<int>\n5 | [1, 2]");
    assert_eq!(shown(&node, insert, &with(&[BoundValue::Null, BoundValue::Null])), "done");
    assert_eq!(rows_of(&node, &["SELECT v, l FROM t"]), "v int | l list<int>\nnull | null");
    let refused = [
        ([BoundValue::Null, text("x"), int(1), int(1)], "Invalid null value in condition for column a"),
        ([BoundValue::Unset, text("x"), int(1), int(1)], "Invalid unset value for column a"),
        ([int(1), text("x"), BoundValue::Null, int(1)], "Invalid null value in condition for column c"),
        ([int(1), text("x"), int(1), BoundValue::Unset], "Invalid unset value for column d"),
        ([text("longer"), text("x"), int(1), int(1)], "Expected 4 or 0 byte int (6)"),
    ];
    for (key, message) in refused {
        let values = [&key[..], &[int(1), BoundValue::Unset]].concat();
        assert_eq!(go(&node, insert, &values).expect_err(message), CqlError::invalid(message));
    }
    // of a list all values are read first, and null is told before unset (seen beside Cassandra)
    for (column, relations) in [("a", "a IN (?, ?) AND b = 'x' AND c = 1"), ("c", "a = 1 AND b = 'x' AND c IN (?, ?)")]
    {
        let update = format!("UPDATE t SET v = 1 WHERE {relations} AND d = 1");
        let null = format!("Invalid null value in condition for column {column}");
        for (values, message) in [
            ([BoundValue::Unset, BoundValue::Null], null.as_str()),
            ([BoundValue::Null, text("longer")], "Expected 4 or 0 byte int (6)"),
            ([BoundValue::Unset, int(1)], &format!("Invalid unset value for column {column}")),
        ] {
            assert_eq!(go(&node, &update, &values).expect_err(message), CqlError::invalid(message), "{update}");
        }
    }
    let update = "UPDATE t SET v = ? WHERE a = 1 AND b = 'x' AND c IN ? AND d = 1";
    assert_eq!(shown(&node, update, &[int(7), ints(&[3, 2, 3])]), "done");
    assert_eq!(
        rows_of(&node, &["SELECT c, v FROM t WHERE a = 1 AND b = 'x'"]),
        "c int | v int\n1 | null\n2 | 7\n3 | 7"
    );
    let select = "SELECT c FROM t WHERE a = 1 AND b = 'x' LIMIT ?";
    assert_eq!(shown(&node, select, &[int(1)]), "c int\n1");
    assert_eq!(shown(&node, select, &[BoundValue::Unset]), "c int\n1\n2\n3");
    assert_eq!(shown(&node, select, &[int(0)]), "error 2200 LIMIT must be strictly positive");
    assert_eq!(shown(&node, select, &[BoundValue::Null]), "error 2200 Invalid null value of limit");
    let deletes = [
        ("DELETE FROM t WHERE a = 1 AND b = 'x' AND c >= ?", "c"),
        ("DELETE FROM t WHERE a = 1 AND b = 'x' AND c < ?", "c"),
        ("DELETE FROM t WHERE a = 1 AND b = 'x' AND c = 1 AND d > ? AND d < 9", "d"),
    ];
    for (delete, column) in deletes {
        let message = format!("Invalid null value in condition for column {column}");
        let refused = go(&node, delete, &[BoundValue::Null]).expect_err(delete);
        assert_eq!(refused, CqlError::invalid(message), "{delete}");
        assert_eq!(shown(&node, delete, &[int(100)]), "done");
    }
    assert!(shown(&node, select, &[]).starts_with("error 2200 there were 1 markers(?) in CQL but 0 bound variables"));
}

/// A bound tuple may lack its last fields. Where it names rows, they are missed like null; at the
/// end of a range the first columns are compared.
#[test]
fn a_bound_tuple_that_lacks_fields_names_no_row() {
    let node = node();
    let tuple = |numbers: &[i32]| {
        let fields: Vec<_> = numbers.iter().map(|number| Some(number.to_be_bytes())).collect();
        Bytes::from(types::collection::build_tuple(&fields))
    };
    let short = BoundValue::Bytes(tuple(&[1]));
    let list = BoundValue::Bytes(types::collection::build_list(&[tuple(&[1, 1]), tuple(&[1])]).into());
    for c in 0..3 {
        let insert = "INSERT INTO t (a, b, c, d, v) VALUES (1, 'x', ?, ?, 1)";
        assert_eq!(shown(&node, insert, &[int(c), int(c)]), "done");
    }
    let missing = "error 2200 Invalid null value for column d";
    let missing_in_list = "error 2200 Invalid null value in condition for columns: [c, d]";
    for (relation, value, expected) in [
        ("(c, d) = ?", &short, missing),
        ("(c, d) = ?", &BoundValue::Bytes(Bytes::new()), "error 2200 Invalid null value for column c"),
        ("(c, d) IN (?)", &short, missing),
        ("(c, d) IN ((0, 0), ?)", &short, missing_in_list),
        ("(c, d) IN ?", &list, missing_in_list),
    ] {
        for statement in
            ["DELETE FROM t WHERE", "DELETE v FROM t WHERE", "UPDATE t SET v = 2 WHERE", "SELECT v FROM t WHERE"]
        {
            let statement = format!("{statement} a = 1 AND b = 'x' AND {relation}");
            assert_eq!(shown(&node, &statement, std::slice::from_ref(value)), expected, "{statement}");
        }
    }
    let ranges = [("(c, d) > ?", "c int\n2"), ("(c, d) >= ?", "c int\n1\n2"), ("(c, d) < ?", "c int\n0")];
    for (relation, expected) in ranges {
        let select = format!("SELECT c FROM t WHERE a = 1 AND b = 'x' AND {relation}");
        assert_eq!(shown(&node, &select, std::slice::from_ref(&short)), expected, "{relation}");
    }
    let delete = "DELETE FROM t WHERE a = 1 AND b = 'x' AND (c, d) >= ?";
    assert_eq!(shown(&node, delete, &[short]), "done");
    assert_eq!(shown(&node, "SELECT c FROM t", &[]), "c int\n0");
}

#[test]
fn ttl_and_timestamps_are_bound() {
    let node = node();
    let write = "INSERT INTO t (a, b, c, d, v) VALUES (1, 'x', 1, 1, 1) USING TTL ? AND TIMESTAMP ?";
    let timestamp = BoundValue::Bytes(Bytes::copy_from_slice(&5i64.to_be_bytes()));
    let options = QueryOptions { now_in_seconds: Some(1000), ..QueryOptions::default() };
    run(&node, write, &[int(10), timestamp.clone()], &options).expect("it is written");
    let read = |now| {
        let options = QueryOptions { now_in_seconds: Some(now), ..QueryOptions::default() };
        spell::answer(&run(&node, "SELECT v, ttl(v), writetime(v) FROM t", &[], &options))
    };
    let head = "v int | ttl(v) int | writetime(v) bigint";
    assert_eq!(read(1004), format!("{head}\n1 | 6 | 5"));
    assert_eq!(read(1009), format!("{head}\n1 | 1 | 5"));
    assert_eq!(read(1010), head);
    assert_eq!(
        shown(&node, write, &[int(-1), timestamp.clone()]),
        "error 2200 A TTL must be greater or equal to 0, but was -1"
    );
    assert_eq!(
        shown(&node, write, &[int(630_720_001), timestamp]),
        "error 2200 ttl is too large. requested (630720001) maximum (630720000)"
    );
}

/// Where nodes of Cassandra 4 have to understand what is written, nothing may expire after January
/// 2038.
#[test]
fn what_would_expire_too_late_is_refused() {
    let node = node();
    let refused = |of: &str, ttl: i32| {
        format!(
            "error 2200 Request on table {KEYSPACE}.t with {of}ttl of {ttl} seconds exceeds maximum supported expiration date of \
             2038-01-19T03:14:06+00:00. In order to avoid this use a lower TTL, change the expiration date overflow policy or \
             upgrade to a version where this limitation is fixed. See CASSANDRA-14092 and CASSANDRA-14227 for more details."
        )
    };
    let plain = "INSERT INTO t (a, b, c, d, v) VALUES (1, 'x', 1, 1, 1)";
    let (bound, conditional) = (format!("{plain} USING TTL ?"), format!("{plain} IF NOT EXISTS USING TTL ?"));
    // it is November 2023
    let (most, longest) = (630_720_000, 447_483_646);
    assert_eq!(shown(&node, &bound, &[int(most)]), "done", "it may end in 2043");
    node.latest_expiration.set(EXPIRATION_MAX_CASSANDRA_4);
    assert_eq!(shown(&node, &bound, &[int(most)]), refused("", most));
    assert_eq!(shown(&node, &bound, &[int(longest + 1)]), refused("", longest + 1));
    assert_eq!(shown(&node, &bound, &[int(longest)]), "done");
    let batch = format!("BEGIN BATCH {bound} APPLY BATCH");
    assert_eq!(shown(&node, &batch, &[int(most)]), refused("", most));

    go(&node, "ALTER TABLE t WITH default_time_to_live = 630720000", &[]).expect("the table may have it");
    assert_eq!(shown(&node, plain, &[]), refused("default ", most));
    assert_eq!(shown(&node, "DELETE FROM t WHERE a = 1 AND b = 'x'", &[]), "done");
    assert_eq!(shown(&node, &conditional, &[int(most)]), refused("", most));
    assert_eq!(shown(&node, &bound, &[BoundValue::Unset]), "done");
    assert_eq!(
        shown(&node, "SELECT ttl(v) FROM t", &[]),
        format!("ttl(v) int\n{longest}"),
        "it ends as late as it may"
    );
}

#[test]
fn values_are_bound_by_name() {
    let node = node();
    let insert = prepared(&node, "INSERT INTO t (a, b, c, d) VALUES (:a, :b, :one, :one)");
    let named = [("one", int(1)), ("b", text("x")), ("a", int(3)), ("other", int(9))];
    let values = bind_by_name(&insert, &named).expect("all are there");
    block_on(execute(&insert, &values, &QueryOptions::default(), &ClientState::default(), &node)).expect("written");
    assert_eq!(
        rows_of(&node, &["SELECT a, b, c, d FROM t"]),
        "a int | b text | c int | d int\n3 | 'x' | 1 | 1".replace("text", "varchar")
    );
    assert!(bind_by_name(&insert, &named[1..]).is_err());
}

#[test]
fn many_values_are_bound_by_name() {
    const COUNT: i32 = 100;
    let node = node();
    let names: Vec<String> = (0..COUNT).map(|number| format!("name_{number}")).collect();
    let markers: Vec<String> = names.iter().map(|name| format!(":{name}")).collect();
    let select = prepared(&node, &format!("SELECT c FROM t WHERE b = 'x' AND a IN ({})", markers.join(", ")));
    let mut named: Vec<_> = names.iter().map(String::as_str).zip((0..COUNT).map(int)).rev().collect();
    let values = bind_by_name(&select, &named).expect("all are there");
    assert_eq!(values, (0..COUNT).map(int).collect::<Vec<_>>());
    named.push((names[0].as_str(), int(-1)));
    assert_eq!(bind_by_name(&select, &named).expect("all are there")[0], int(0), "the first counts");
    named.remove(0);
    assert!(bind_by_name(&select, &named).is_err());
}

#[test]
fn batches_join_what_belongs_together_and_warn() {
    let node = node();
    let insert = prepared(&node, "INSERT INTO t (a, b, c, d, v) VALUES (?, 'x', 1, 1, ?)");
    let select = prepared(&node, "SELECT * FROM t");
    let values: Vec<_> = (0..12).map(|a| [int(a), int(a)]).collect();
    let statements: Vec<_> = values.iter().map(|values| (&insert, &values[..])).collect();
    let options = QueryOptions::default();
    let answer = block_on(execute_batch(BatchKind::Unlogged, &statements, &options, &ClientState::default(), &node))
        .expect("it is written");
    assert_eq!(answer.result, CqlResult::Void);
    assert_eq!(
        answer.warnings,
        [
            "Unlogged batch covering 12 partitions detected against table [answers.t]. You should use a logged batch for \
          atomicity, or asynchronous writes for performance."
        ]
    );
    assert_eq!(rows_of(&node, &["SELECT count(*) FROM t"]), "count bigint\n12");
    let small = Limits { batch_size_warn: 10, batch_size_fail: 1 << 20, ..Limits::default() };
    let limited = QueryOptions { limits: small, ..QueryOptions::default() };
    let answer = block_on(execute_batch(BatchKind::Logged, &statements, &limited, &ClientState::default(), &node))
        .expect("it is written");
    assert!(answer.warnings[0].starts_with("Batch for [answers.t] is of size "), "{:?}", answer.warnings);
    let none = QueryOptions { limits: Limits { batch_size_fail: 10, ..small }, ..QueryOptions::default() };
    let error = block_on(execute_batch(BatchKind::Logged, &statements, &none, &ClientState::default(), &node))
        .expect_err("it is too large");
    assert_eq!(error, CqlError::invalid("Batch too large"));
    // the operator is told, too
    let lines = node.large_batches.take();
    let [(warned, false), (refused, true)] = lines.as_slice() else { panic!("one line each: {lines:?}") };
    assert!(warned.ends_with("B."), "{warned}");
    assert!(refused.contains("exceeding specified threshold of 10B by "), "{refused}");
    assert!(refused.ends_with("B. (see batch_size_fail_threshold)"), "{refused}");
    let error = block_on(execute_batch(BatchKind::Logged, &[(&select, &[])], &options, &ClientState::default(), &node))
        .expect_err("a SELECT");
    assert!(error.to_string().contains("only UPDATE, INSERT and DELETE"));
}

/// The batch log does not bring back writes of tables whose gc_grace_seconds is 0: the client of a
/// logged batch is told, once for all of them.
#[test]
fn logged_batches_warn_of_tables_without_grace() {
    let node = node();
    let tables = ["CREATE TABLE n (k int PRIMARY KEY)", "CREATE TABLE \"N\" (k int PRIMARY KEY)"];
    rows_of(&node, &tables.map(|table| format!("{table} WITH gc_grace_seconds = 0")).each_ref().map(String::as_str));
    let batch = |kind: &str, tables: &[&str]| {
        let inserts: String = tables.iter().map(|table| format!("INSERT INTO {table} (k) VALUES (1); ")).collect();
        go(&node, &format!("BEGIN {kind} BATCH {inserts} APPLY BATCH"), &[]).expect("it is written").warnings
    };
    let warning = |tables: &str| {
        format!(
            "Executing a LOGGED BATCH on {tables}, configured with a gc_grace_seconds of 0. The gc_grace_seconds is \
             used to TTL batchlog entries, so setting gc_grace_seconds too low on tables involved in an atomic batch \
             might cause batchlog entries to expire before being replayed."
        )
    };
    assert_eq!(batch("", &["n", "n"]), [warning("table [answers.n]")]);
    assert_eq!(batch("", &["n", "\"N\""]), [warning("tables [answers.\"N\", answers.n]")]);
    assert_eq!(batch("UNLOGGED", &["n"]), [""; 0]);
}

#[test]
fn what_is_not_executed_says_so() {
    let node = node();
    let cases =
        [("CREATE FUNCTION f (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'x'", "functions are disabled")];
    for (statement, feature) in cases {
        let answer = shown(&node, statement, &[]);
        assert!(answer.starts_with("error 2200") && answer.contains(feature), "{statement}: {answer}");
    }
    assert_eq!(shown(&node, "USE nowhere", &[]), "error 2200 Keyspace 'nowhere' does not exist");
    assert_eq!(go(&node, "USE answers", &[]).expect("it is there").result, CqlResult::SetKeyspace("answers".into()));
    assert_eq!(
        rows_of(&node, &["INSERT INTO t (a, b, c, d) VALUES (1, 'x', 1, 1)", "TRUNCATE t", "SELECT v FROM t"]),
        "v int"
    );
}

/// The changes that end a statement are those of Cassandra.
#[test]
fn a_statement_ends_with_its_table() {
    let changes = [
        (false, "CREATE TABLE other (k int PRIMARY KEY)"),
        (false, "ALTER TABLE t WITH comment = 'x' AND compaction = {'class': 'LeveledCompactionStrategy'}"),
        (true, "ALTER TABLE t ADD more int"),
        (true, "ALTER TABLE t DROP v"),
        (true, "ALTER TABLE t RENAME a TO first"),
        (true, "ALTER TABLE t WITH default_time_to_live = 10"),
        (true, "ALTER TABLE t WITH gc_grace_seconds = 10"),
        (true, "CREATE INDEX ON t (v)"),
        (true, "DROP TABLE t"),
        (true, "DROP KEYSPACE answers"),
    ];
    for (ends, change) in changes {
        let node = node();
        let of_table = [
            "SELECT l FROM t",
            "DELETE FROM t WHERE a = 1 AND b = 'x'",
            "BEGIN BATCH DELETE FROM t WHERE a = 1 AND b = 'x'; APPLY BATCH",
            "EXPLAIN SELECT l FROM t",
        ]
        .map(|query| prepared(&node, query));
        let of_none = ["USE answers", "TRUNCATE t", "DESCRIBE KEYSPACES"].map(|query| prepared(&node, query));
        run(&node, change, &[], &QueryOptions::default()).unwrap_or_else(|error| panic!("{change}: {error}"));
        for statement in &of_table {
            assert_eq!(statement.is_outdated(&node.schema()), ends, "{} after {change}", statement.query);
        }
        assert!(of_none.iter().all(|statement| !statement.is_outdated(&node.schema())), "{change}");
    }
}

#[test]
fn rows_are_inserted_as_json() {
    let node = node();
    let key = r#""a": 1, "B": "x", "c": 1, "d": 1"#;
    let bound = |json: &str| [BoundValue::Bytes(Bytes::copy_from_slice(json.as_bytes()))];
    let all = "SELECT v, l, m FROM t";
    let head = "v int | l list<int> | m map<varchar, int>";
    let written = format!("INSERT INTO t JSON '{{{key}, \"v\": 5, \"l\": [1, 2], \"m\": {{\"y\": 2, \"x\": 1}}}}'");
    assert_eq!(rows_of(&node, &[&written, all]), format!("{head}\n5 | [1, 2] | {{'x': 1, 'y': 2}}"));
    let insert = "INSERT INTO t JSON ?";
    assert_eq!(prepared(&node, insert).bind_variables[0].name.as_ref(), "[json]");
    assert_eq!(shown(&node, "INSERT INTO t JSON ? DEFAULT UNSET", &bound(&format!("{{{key}, \"v\": 6}}"))), "done");
    assert_eq!(rows_of(&node, &[all]), format!("{head}\n6 | [1, 2] | {{'x': 1, 'y': 2}}"));
    assert_eq!(shown(&node, insert, &bound(&format!("{{{key}, \"v\": null, \"l\": [3]}}"))), "done");
    assert_eq!(rows_of(&node, &[all]), format!("{head}\nnull | [3] | null"));
    assert_eq!(
        rows_of(&node, &["SELECT JSON a, b, l AS \"Liste\" FROM t"]),
        "[json] varchar\n'{\"a\": 1, \"b\": \"x\", \"\\\"Liste\\\"\": [3]}'"
    );
    let refused = [
        (format!("{{{key}, \"nosuch\": 1}}"), "JSON values map contains unrecognized column: nosuch"),
        ("null".into(), "Got null for INSERT JSON values"),
        (r#"{"a": 1}"#.into(), "Invalid null value in condition for column b"),
        (format!("{{{key}, \"v\": \"x\"}}"), "Error decoding JSON value for v: "),
        (r#"{"a": 1, "nosuch": 1, "v": "x"}"#.into(), "Error decoding JSON value for v: "),
    ];
    for (json, message) in refused {
        let answer = shown(&node, insert, &bound(&json));
        assert!(answer.starts_with(&format!("error 2200 {message}")), "{json}: {answer}");
    }
    assert_eq!(
        rows_of(
            &node,
            &[
                "INSERT INTO t (a, b, c, d, l, m) VALUES (7, 'x', 1, 1, from_json('[1, 2]'), fromJson('{\"k\": 3}'))",
                "SELECT to_json(l), toJson(m), to_json(v) FROM t WHERE a = 7 AND b = 'x'"
            ]
        ),
        "system.to_json(l) varchar | system.tojson(m) varchar | system.to_json(v) varchar\n'[1, 2]' | '{\"k\": 3}' | 'null'"
    );
    assert!(shown(&node, insert, &bound("[1]")).contains("Could not decode JSON string as a map"));
    assert_eq!(
        shown(&node, insert, &[BoundValue::Unset]),
        "error 2200 Could not decode JSON string as a map: com.fasterxml.jackson.databind.exc.MismatchedInputException: No \
         content to map due to end-of-input\n at [Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` \
         disabled); line: 1]. (String was: )"
    );
}

/// As in Cassandra, a field that a user type does not have is told of behind mistakes in the
/// values of the others, whatever the literal is part of.
#[test]
fn unknown_fields_are_told_of_last() {
    let node = node();
    for statement in [
        "CREATE TYPE u (a int, b date)",
        "CREATE TYPE n (f frozen<u>)",
        "CREATE TABLE places (k int PRIMARY KEY, u u, n n, l list<frozen<u>>)",
    ] {
        assert!(!shown(&node, statement, &[]).starts_with("error"), "{statement}");
    }
    let unknown = "error 2200 Unknown field 'c' in value of user defined type u";
    for (column, value, message) in [
        ("n", "{f: {c: 1}}", unknown),
        ("l", "[{a: 1, c: 1}]", unknown),
        ("u", "{c: 1, a: 'x'}", "error 2200 Invalid user type literal for u: field a is not of type int"),
        ("u", "{c: 1, b: 'x'}", "error 2200 Unable to coerce 'x' to a formatted date"),
        ("u", "{c: 1, a: 1}", unknown),
    ] {
        let answer = shown(&node, &format!("INSERT INTO places (k, {column}) VALUES (1, {value})"), &[]);
        assert!(answer.starts_with(message), "{value}: {answer}");
    }
}

/// Cassandra refuses such bytes as a term and shows them as a selected value; here both are
/// refused.
#[test]
fn ends_of_milliseconds_that_no_time_uuid_has() {
    let node = node();
    assert_eq!(shown(&node, "CREATE TABLE times (k int PRIMARY KEY, u timeuuid, t timestamp)", &[]), "done");
    let refused = |function: &str, bytes: &str| {
        format!(
            "error 2200 Return of function system.{function} : (timestamp) -> timeuuid ({bytes}) is not a valid value for its \
             declared return type timeuuid"
        )
    };
    assert_eq!(
        shown(&node, "INSERT INTO times (k, u) VALUES (1, min_timeuuid('1500-01-01'))", &[]),
        refused("min_timeuuid", "738540002fa9ffa38080808080808080")
    );
    assert_eq!(shown(&node, "INSERT INTO times (k, t) VALUES (1, -12219292800001)", &[]), "done");
    assert_eq!(
        shown(&node, "SELECT k FROM times WHERE u > mintimeuuid(-12219292800001) ALLOW FILTERING", &[]),
        refused("mintimeuuid", "ffffd8f0ffffffff8080808080808080")
    );
    assert_eq!(
        shown(&node, "SELECT maxtimeuuid(t) FROM times", &[]),
        refused("maxtimeuuid", "ffffffffffffffff7f7f7f7f7f7f7f7f")
    );
    assert_eq!(shown(&node, "INSERT INTO times (k, t) VALUES (1, -12219292800000)", &[]), "done");
    assert!(!shown(&node, "SELECT mintimeuuid(t) FROM times", &[]).starts_with("error"));
}

/// Comparing each name with all before it would take hours here.
#[test]
fn an_insert_of_many_names_is_refused_at_once() {
    const NAMES: usize = 500_000;
    let node = node();
    let names: Vec<_> = (0..NAMES).map(|number| format!("n{number}")).collect();
    let values = vec!["1"; NAMES].join(",");
    let of = |names: &[String]| shown(&node, &format!("INSERT INTO t ({}) VALUES ({values})", names.join(",")), &[]);
    assert_eq!(of(&names), "error 2200 Undefined column name n0 in table answers.t");
    let mut twice = names;
    twice[NAMES - 1] = "n0".to_owned();
    assert_eq!(of(&twice), "error 2200 The column names contains duplicates");
}

/// Comparing each element with each that is to go would take minutes here.
#[test]
fn many_elements_are_taken_from_a_long_list_at_once() {
    const COUNT: i32 = 50_000;
    let node = node();
    let update = |operator: &str, range: std::ops::Range<i32>| {
        let statement = format!("UPDATE t SET l = l {operator} ? WHERE a = 1 AND b = 'x' AND c = 1 AND d = 1");
        assert_eq!(shown(&node, &statement, &[ints(&range.collect::<Vec<_>>())]), "done");
    };
    update("+", 0..COUNT);
    update("-", COUNT - 1..2 * COUNT);
    let left = rows_of(&node, &["SELECT collection_count(l) AS n FROM t"]);
    assert_eq!(left, format!("n int\n{}", COUNT - 1));
}

#[test]
fn writes_that_read_say_so_at_any() {
    let node = node();
    let options = QueryOptions { consistency: Consistency::Any, ..QueryOptions::default() };
    let refused = "error 2200 Write operation require a read but consistency ANY is not supported on reads";
    for (rows, set, expected) in
        [("c = 1", "l = l - [1]", refused), ("c IN ()", "l = l - [1]", "done"), ("c = 1", "l = l + [1]", "done")]
    {
        let statement = format!("UPDATE t SET {set} WHERE a = 1 AND b = 'x' AND {rows} AND d = 1");
        assert_eq!(spell::answer(&run(&node, &statement, &[], &options)), expected, "{statement}");
    }
}
