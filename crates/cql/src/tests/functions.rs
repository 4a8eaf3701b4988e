//! User-defined functions and aggregates, from CREATE to the rows of a SELECT.

use super::memory::Memory;
use super::{run, spell};
use crate::options::{Limits, QueryOptions};
use crate::{Coordinator, UserFunctionLimits, ddl, prepare};

/// The answer of a node that has functions switched on, on one line.
fn answer(node: &Memory, statement: &str) -> String {
    UserFunctionLimits { enabled: true, fail_timeout_ms: 100, warn_timeout_ms: 0 }.put_in_force();
    let switches = ddl::Switches { user_functions: true, ..ddl::Switches::default() };
    let limits = Limits { switches, ..Limits::default() };
    let options = QueryOptions { limits, protocol_version: 5, ..QueryOptions::default() };
    spell::answer(&run(node, statement, &[], &options)).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn node() -> Memory {
    let node = Memory::new();
    for statement in [
        "CREATE TABLE t (k int, c int, v int, s text, l list<int>, PRIMARY KEY (k, c))",
        "INSERT INTO t (k, c, v, s, l) VALUES (1, 1, 10, 'a', [1, 2])",
        "INSERT INTO t (k, c, v, s) VALUES (1, 2, 20, 'bb')",
        "INSERT INTO t (k, c, s) VALUES (1, 3, 'ccc')",
        "CREATE FUNCTION twice (x int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return x == null ? -1 : x * 2;'",
        "CREATE FUNCTION twice (x text) RETURNS NULL ON NULL INPUT RETURNS text LANGUAGE java AS $$ return x + x; $$",
        "CREATE FUNCTION over (x int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE java AS 'return 100 / (x - 10);'",
        "CREATE FUNCTION plus (state int, x int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return x == null ? state : state + x;'",
        "CREATE FUNCTION words (state int) RETURNS NULL ON NULL INPUT RETURNS text LANGUAGE java AS 'return \"sum \" + state;'",
        "CREATE AGGREGATE total (int) SFUNC plus STYPE int INITCOND 5",
        "CREATE AGGREGATE told (int) SFUNC plus STYPE int FINALFUNC words INITCOND 0",
    ] {
        let answer = answer(&node, statement);
        assert!(!answer.starts_with("error"), "{statement}: {answer}");
    }
    node
}

#[test]
fn functions_are_called_where_values_stand() {
    let node = node();
    let cases = [
        ("SELECT twice(v) FROM t", "answers.twice(v) int 20 40 -1"),
        ("SELECT twice(s) FROM t WHERE k = 1 AND c = twice(1)", "answers.twice(s) varchar 'bbbb'"),
        ("SELECT answers.twice(twice(v)) AS f FROM t LIMIT 1", "f int 40"),
        ("SELECT total(v), told(v) FROM t", "answers.total(v) int | answers.told(v) varchar 35 | 'sum 30'"),
        ("SELECT total(v) FROM t WHERE k = 2", "answers.total(v) int 5"),
        (
            "SELECT c, told(v) FROM t GROUP BY k, c",
            "c int | answers.told(v) varchar 1 | 'sum 10' 2 | 'sum 20' 3 | 'sum 0'",
        ),
        ("SELECT over(v) FROM t", "error 1400 java.lang.ArithmeticException: / by zero"),
        ("SELECT twice(1.5) FROM t", "error 2200 Invalid call to function twice"),
        ("SELECT nothing(v) FROM t", "error 2200 Unknown function 'nothing'"),
    ];
    for (statement, expected) in cases {
        let found = answer(&node, statement);
        assert!(found.starts_with(expected), "{statement}\nexpected {expected}\nfound    {found}");
    }
    assert_eq!(answer(&node, "INSERT INTO t (k, c, v) VALUES (3, 1, twice(21))"), "done");
    assert_eq!(answer(&node, "SELECT v FROM t WHERE k = 3"), "v int 42");
}

#[test]
fn statements_on_functions_are_refused_as_in_cassandra() {
    let node = node();
    let create = "CREATE FUNCTION";
    let tail = "CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return 1;'";
    let cases = [
        (format!("{create} twice (x int) {tail}"), "Function 'twice' already exists"),
        (
            format!("CREATE OR REPLACE FUNCTION IF NOT EXISTS f (x int) {tail}"),
            "Cannot use both 'OR REPLACE' and 'IF NOT EXISTS' directives",
        ),
        (format!("{create} f (x int, x int) {tail}"), "Duplicate argument names for given function f"),
        (
            format!("{create} f (x frozen<list<int>>) {tail}"),
            "Argument 'frozen<list<int>>' cannot be frozen; remove frozen<> modifier",
        ),
        (format!("{create} nowhere.f (x int) {tail}"), "Keyspace 'nowhere' doesn't exist"),
        (
            format!("{create} f (x int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'int y = 1;\nreturn z;'"),
            "Java source compilation failed: Line 2: z cannot be resolved to a variable",
        ),
        (
            format!("{create} f (x int) CALLED ON NULL INPUT RETURNS int LANGUAGE lua AS 'return 1'"),
            "Currently only Java UDFs are available in Cassandra.",
        ),
        (
            "CREATE OR REPLACE FUNCTION twice (x int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE java AS 'return 1;'".into(),
            "Function 'twice' must have RETURNS NULL ON NULL INPUT directive",
        ),
        ("DROP FUNCTION twice".into(), "'DROP FUNCTION twice' matches multiple function definitions"),
        ("DROP FUNCTION plus".into(), "Function 'answers.plus' is still referenced by aggregates"),
        ("DROP FUNCTION none(int)".into(), "Function 'answers.none(int)' doesn't exist"),
        ("DROP AGGREGATE twice(int)".into(), "Aggregate 'answers.twice(int)' doesn't exist"),
        ("CREATE AGGREGATE a (int) SFUNC none STYPE int".into(), "State function answers.none(int, int) doesn't exist"),
        (
            "CREATE AGGREGATE a () SFUNC over STYPE int".into(),
            "Cannot create aggregate 'a' without INITCOND because state function answers.over does not accept",
        ),
        ("CREATE AGGREGATE total (int) SFUNC plus STYPE int".into(), "Aggregate 'total' already exists"),
    ];
    for (statement, expected) in cases {
        let found = answer(&node, &statement);
        assert!(
            found.starts_with(&format!("error 2200 {expected}")),
            "{statement}\nexpected {expected}\nfound    {found}"
        );
    }
    // the new values have to sort as the old ones
    let replace = |returns: &str, value: &str| {
        format!(
            "CREATE OR REPLACE FUNCTION other (x int) CALLED ON NULL INPUT RETURNS {returns} LANGUAGE java AS 'return {value};'"
        )
    };
    for (returns, expected) in [
        ("int", "done"),
        (
            "blob",
            "error 2200 Cannot replace function 'other', the new return type blob is not compatible with the return type \
             int",
        ),
    ] {
        let found = answer(&node, &replace(returns, "null"));
        assert!(found.starts_with(expected), "{returns}: {found}");
    }
    answer(&node, "DROP FUNCTION other");
    for returns in ["set<ascii>", "set<text>"] {
        assert_eq!(answer(&node, &replace(returns, "null")), "done", "{returns}");
    }
    assert_eq!(answer(&node, "DROP FUNCTION IF EXISTS none"), "done");
    assert_eq!(answer(&node, &format!("CREATE FUNCTION IF NOT EXISTS twice (x int) {tail}")), "done");
}

#[test]
fn statements_end_with_their_functions() {
    let node = node();
    let prepared = prepare("SELECT twice(v) FROM answers.t", None, &node.schema()).expect("valid");
    assert!(!prepared.is_outdated(&node.schema()));
    answer(&node, "CREATE FUNCTION other (x int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return 1;'");
    assert!(!prepared.is_outdated(&node.schema()));
    answer(
        &node,
        "CREATE OR REPLACE FUNCTION twice (x int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return 7;'",
    );
    assert!(prepared.is_outdated(&node.schema()));
    assert_eq!(answer(&node, "SELECT twice(v) FROM t LIMIT 1"), "answers.twice(v) int 7");
    answer(&node, "DROP AGGREGATE total");
    answer(&node, "DROP AGGREGATE told");
    answer(&node, "DROP FUNCTION plus");
    assert!(answer(&node, "SELECT plus(1, v) FROM t").starts_with("error 2200 Unknown function"));
}

/// An INITCOND is stored as text, with the names of the fields of its type.
#[test]
fn fields_of_initial_conditions_are_not_renamed() {
    let node = node();
    for (statement, expected) in [
        ("CREATE TYPE pair (a int, b int)", "done"),
        ("CREATE TYPE two (p frozen<pair>)", "done"),
        (
            "CREATE FUNCTION same (state two, x int) CALLED ON NULL INPUT RETURNS two LANGUAGE java AS 'return state;'",
            "done",
        ),
        ("CREATE AGGREGATE last (int) SFUNC same STYPE two INITCOND {p: {a: 1, b: 2}}", "done"),
        (
            "ALTER TYPE pair RENAME a TO c",
            "error 2200 Cannot alter user type answers.pair as it is still used in INITCOND by aggregates answers.last",
        ),
        ("DROP AGGREGATE last", "done"),
        ("CREATE AGGREGATE last (int) SFUNC same STYPE two", "done"),
        ("ALTER TYPE pair RENAME a TO c", "done"),
    ] {
        assert_eq!(answer(&node, statement), expected, "{statement}");
    }
}

/// Functions and aggregates are read from their rows as they were.
#[test]
fn functions_survive_their_rows() {
    let node = node();
    let schema = node.schema();
    let keyspace = schema.keyspace(super::KEYSPACE).expect("the keyspace");
    let rows = schema::system_schema::rows_of(keyspace);
    let loaded = schema::Schema::from_rows(rows, None);
    assert!(loaded.ignored.is_empty() && loaded.unreadable.is_empty(), "{:?}", loaded.ignored);
    let again = loaded.schema.keyspace(super::KEYSPACE).expect("the keyspace");
    assert_eq!(again.functions, keyspace.functions);
    assert_eq!(again.aggregates, keyspace.aggregates);
    assert_eq!(again.functions.len() + again.aggregates.len(), 7);
}

/// WebAssembly beside Java: in SELECT and as the state function of an aggregate.
#[test]
fn functions_in_webassembly() {
    let node = node();
    let sum = "(module (func (export \"call\") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))";
    let create = |name: &str, language: &str, body: &str| {
        format!(
            "CREATE FUNCTION {name} (a int, b int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE {language} AS $$ {body} $$"
        )
    };
    let cases = [
        (create("added", "wasm", sum), "done"),
        ("SELECT added(v, c) FROM t".to_owned(), "answers.added(v, c) int 11 22 null"),
        ("CREATE AGGREGATE of_all (int) SFUNC added STYPE int INITCOND 7".to_owned(), "done"),
        ("SELECT of_all(v) FROM t".to_owned(), "answers.of_all(v) int 37"),
        (
            create("none", "wasm", "(module)"),
            "error 2200 The WebAssembly module is refused: The module exports no function \"call\"",
        ),
        (
            create("script", "javascript", "1"),
            "error 2200 Currently only Java UDFs are available in Cassandra. For more information - CASSANDRA-18252 and \
             CASSANDRA-17281",
        ),
    ];
    for (statement, expected) in cases {
        assert_eq!(answer(&node, &statement), expected, "{statement}");
    }
}
