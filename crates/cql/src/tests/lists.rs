//! Statements with tens of thousands of elements of one collection, of fields of one user type, or
//! of values of IN. Where each of them takes time in proportion to the others, these tests take
//! minutes.

use bytes::Bytes;
use types::BatchKind;

use super::memory::{Memory, block_on};
use super::{KEYSPACE, rows_of, run};
use crate::coordinator::Coordinator;
use crate::options::{ClientState, QueryOptions};
use crate::values::BoundValue;
use crate::{execute_batch, prepare};

const ELEMENTS: usize = 40_000;
/// The end of the sentence for a request whose values are too large.
const TOO_MUCH_MADE: &str = "would be larger than 4 MiB together: it must be divided into smaller requests";

fn joined(element: impl Fn(usize) -> String) -> String {
    (0..ELEMENTS).map(element).collect::<Vec<_>>().join(", ")
}

#[test]
fn elements_of_a_list_are_set_and_deleted_by_index() {
    let node = Memory::new();
    let all = joined(|at| at.to_string());
    // the last element comes first
    let set = joined(|at| format!("l[{}] = -{at}", ELEMENTS - 1 - at));
    let null = joined(|at| format!("l[0] = {}", if at + 2 < ELEMENTS { "null" } else { "7" }));
    let deleted = joined(|_| "l[0]".to_owned());
    let statements = [
        "CREATE TABLE t (k int PRIMARY KEY, l list<int>)".to_owned(),
        format!("INSERT INTO t (k, l) VALUES (1, [{all}])"),
        format!("UPDATE t SET {set} WHERE k = 1"),
        format!("UPDATE t SET {null} WHERE k = 1"),
        "SELECT l FROM t WHERE k = 1".to_owned(),
    ];
    let left = rows_of(&node, &statements.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(left.contains("[7, 0]"), "{left}");
    let taken = joined(|at| format!("l = l - [{}]", at / 2));
    let left = [
        format!("UPDATE t SET l = [{all}] WHERE k = 1"),
        format!("UPDATE t SET {taken}, l = l + [1, 2], l = l - [2, {}] WHERE k = 1", ELEMENTS - 1),
        "SELECT l FROM t WHERE k = 1".to_owned(),
    ];
    let left = rows_of(&node, &left.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(left.contains(&format!("[{}, ", ELEMENTS / 2)), "{left}");
    assert!(left.ends_with(&format!("{}, 1]", ELEMENTS - 2)), "{left}");
    let again = [
        format!("UPDATE t SET l = [{all}] WHERE k = 1"),
        format!("DELETE {deleted} FROM t WHERE k = 1"),
        "SELECT l FROM t WHERE k = 1".to_owned(),
    ];
    let left = rows_of(&node, &again.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(!left.contains('['), "{left}");
}

#[test]
fn entries_of_a_map_are_set_in_descending_order() {
    let node = Memory::new();
    let set = joined(|at| format!("m[{}] = {at}", ELEMENTS - at));
    let deleted = joined(|at| format!("m[{}]", ELEMENTS + 1 - at));
    let statements = [
        "CREATE TABLE t (k int PRIMARY KEY, m map<int, int>)".to_owned(),
        format!("UPDATE t SET {set} WHERE k = 1"),
        format!("DELETE {deleted} FROM t WHERE k = 1"),
        "SELECT m FROM t WHERE k = 1".to_owned(),
    ];
    let left = rows_of(&node, &statements.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(left.contains(&format!("{{1: {}}}", ELEMENTS - 1)), "{left}");
}

#[test]
fn conditions_on_the_elements_of_a_collection_do_not_pass_it_each() {
    let node = Memory::new();
    let (list, map) = (joined(|at| at.to_string()), joined(|at| format!("{at}: {at}")));
    let on = |name: &str| (0..ELEMENTS).map(|at| format!("{name}[{at}] = {at}")).collect::<Vec<_>>().join(" AND ");
    let update = |name: &str, conditions: &str| format!("UPDATE t SET v = '{name}' WHERE k = 1 IF {conditions}");
    let statements = [
        "CREATE TABLE t (k int PRIMARY KEY, v text, l list<int>, m map<int, int>)".to_owned(),
        format!("INSERT INTO t (k, l, m) VALUES (1, [{list}], {{{map}}})"),
        update("list", &on("l")),
        "SELECT v FROM t".to_owned(),
        update("map", &on("m")),
        "SELECT v FROM t".to_owned(),
    ];
    let statements: Vec<_> = statements.iter().map(String::as_str).collect();
    assert!(rows_of(&node, &statements[..4]).ends_with("'list'"));
    assert!(rows_of(&node, &statements[4..]).ends_with("'map'"));
    let beyond = [update("no", &format!("l[{ELEMENTS}] = 1")), "SELECT v FROM t".to_owned()];
    assert!(rows_of(&node, &beyond.iter().map(String::as_str).collect::<Vec<_>>()).ends_with("'map'"));
}

/// Comparing each row with each value of IN would take minutes here.
#[test]
fn rows_are_filtered_by_many_values() {
    const ROWS: usize = 16_000;
    let node = Memory::new();
    let rows = (0..ROWS).map(|row| row.to_string()).collect::<Vec<_>>().join(", ");
    let count = |test: &str, first: usize| {
        let values = (first..first + 2 * ELEMENTS).rev().map(|value| value.to_string()).collect::<Vec<_>>().join(", ");
        format!("SELECT count(*) FROM t WHERE b {test} ({values}) ALLOW FILTERING")
    };
    let statements = [
        "CREATE TABLE t (k int, a int, b int, v int, PRIMARY KEY (k, a, b))".to_owned(),
        format!("UPDATE t SET v = 1 WHERE k = 1 AND a IN ({rows}) AND b = 1"),
    ];
    rows_of(&node, &statements.iter().map(String::as_str).collect::<Vec<_>>());
    for (test, first, found) in [("IN", 0, ROWS), ("IN", 2, 0), ("NOT IN", 0, 0), ("NOT IN", 2, ROWS)] {
        let counted = rows_of(&node, &[&count(test, first)]);
        assert!(counted.ends_with(&format!("\n{found}")), "{test} {first}: {counted}");
    }
}

/// A static list gets its elements once for each row that a statement names, as in Cassandra, up to
/// a bound of what is written and of what is looked through. A static map is written once.
#[test]
fn static_lists_are_written_for_each_row_that_is_named() {
    let node = Memory::new();
    let update = |rows: usize, set: &str| {
        let rows: Vec<String> = (0..rows).map(|row| row.to_string()).collect();
        format!("UPDATE t SET {set}, v = 1 WHERE k = 1 AND c IN ({})", rows.join(", "))
    };
    let table = "CREATE TABLE t (k int, c int, v int, l list<int> static, m map<int, int> static, PRIMARY KEY (k, c))";
    let (list, map) = (update(3, "l = l + [1, 2]"), update(5_000, "m = m + {1: 1, 2: 2, 3: 3, 4: 4}"));
    let found = rows_of(&node, &[table, &list, &map, "SELECT DISTINCT l, m FROM t WHERE k = 1"]);
    assert!(found.ends_with("[1, 2, 1, 2, 1, 2] | {1: 1, 2: 2, 3: 3, 4: 4}"), "{found}");
    let elements = (0..200).map(|element| element.to_string()).collect::<Vec<_>>().join(", ");
    let (set, take) = (format!("UPDATE t SET l = [{elements}] WHERE k = 1"), update(3, "l = l - [7], l = l + [1]"));
    let found = rows_of(&node, &[set.as_str(), &take, "SELECT DISTINCT l FROM t WHERE k = 1"]);
    assert!(found.contains("[0, 1, 2, 3, 4, 5, 6, 8, ") && found.ends_with("198, 199, 1, 1, 1]"), "{found}");
    let hundred = format!("l = l + [{}]", vec!["1"; 100].join(", "));
    for too_many in [
        update(5_000, "l = l + [1, 2, 3, 4]"),
        update(100, "l = l - [7], l = l + [1]"),
        update(100, &hundred).replace("k = 1", "k IN (1, 2)"),
    ] {
        let refused = run(&node, &too_many, &[], &QueryOptions::default());
        let refused = refused.map(|_| ()).expect_err("too many elements").to_string();
        assert!(refused.ends_with("more than 16384 values together"), "{refused}");
    }
}

/// Each row that a statement names gets all elements. One row may have as many as a request has
/// room for.
#[test]
fn rows_of_in_have_bounded_values_together() {
    let node = Memory::new();
    let update = |first: usize, rows: usize| {
        let rows: Vec<String> = (first..first + rows).map(|row| row.to_string()).collect();
        let elements = vec!["1"; 100].join(", ");
        format!("UPDATE t SET l = l + [{elements}] WHERE k = 1 AND c IN ({})", rows.join(", "))
    };
    let batch = |rows: usize| format!("BEGIN BATCH {}; {}; APPLY BATCH", update(0, rows), update(rows, rows));
    let one_row = format!("UPDATE t SET l = [{}] WHERE k = 2 AND c = 1", vec!["1"; 1 << 17].join(", "));
    let table = "CREATE TABLE t (k int, c int, l list<int>, PRIMARY KEY (k, c))";
    let found = rows_of(&node, &[table, &one_row, &batch(300), "SELECT count(*) FROM t"]);
    assert!(found.ends_with("601"), "{found}");
    for too_many in [update(0, 700), batch(400), update(0, 400).replace("k = 1", "k IN (1, 2)")] {
        let refused = run(&node, &too_many, &[], &QueryOptions::default());
        let refused = refused.map(|_| ()).expect_err("too many values").to_string();
        assert!(refused.ends_with("more than 65536 values together"), "{refused}");
    }
}

/// Keys of about as many columns as a table may have are compared as a whole.
#[test]
fn keys_of_many_columns_are_compared() {
    const COLUMNS: usize = 30_000;
    let node = Memory::new();
    let names = (0..COLUMNS).map(|at| format!("c{at:05}")).collect::<Vec<_>>();
    let (declared, key, ones) = (names.join(" int, "), names.join(", "), vec!["1"; COLUMNS].join(", "));
    let statements = [
        format!("CREATE TABLE t (k int, {declared} int, PRIMARY KEY (k, {key}))"),
        format!("CREATE TABLE wide ({declared} int, PRIMARY KEY (({key})))"),
        format!("SELECT k FROM t WHERE k = 1 AND ({key}) > ({ones})"),
        format!("SELECT c00001 FROM wide WHERE token({key}) > 5"),
    ];
    let found = rows_of(&node, &statements.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(found, "c00001 int");
    let (first, others) = names.split_at(1);
    let twice = format!("SELECT c00001 FROM wide WHERE token({}, {key}) > 5", first[0]);
    let turned = format!("SELECT c00001 FROM wide WHERE token({}, {}) > 5", others.join(", "), first[0]);
    for (statement, why) in [(twice, "contains duplicate"), (turned, "arguments must be in the partition key order")] {
        let refused = run(&node, &statement, &[], &QueryOptions::default());
        let refused = refused.map(|_| ()).expect_err("other columns").to_string();
        assert!(refused.contains(why), "{refused:.100}");
    }
}

/// A statement names each field of a user type that has about as many as it may have.
#[test]
fn fields_of_a_wide_user_type_are_looked_up() {
    const FIELDS: usize = 30_000;
    let node = Memory::new();
    let all = |form: &dyn Fn(usize) -> String| (0..FIELDS).rev().map(form).collect::<Vec<_>>().join(", ");
    let statements = [
        format!("CREATE TYPE wide ({})", all(&|at| format!("f{at:05} int"))),
        "CREATE TABLE t (k int PRIMARY KEY, u wide, w frozen<wide>)".to_owned(),
        format!("UPDATE t SET {} WHERE k = 1", all(&|at| format!("u.f{at:05} = {at}"))),
        format!("UPDATE t SET w = {{{}}} WHERE k = 1", all(&|at| format!("f{at:05}: {at}"))),
        "SELECT u.f00007, w.f29999 FROM t WHERE k = 1".to_owned(),
    ];
    let found = rows_of(&node, &statements.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(found.ends_with("7 | 29999"), "{found}");
    let times = ["writetime(u)"; 10].join(", ");
    let update = "UPDATE t USING TIMESTAMP 5 SET u = {f00001: 1, f00003: 3} WHERE k = 2";
    let found = rows_of(&node, &[update, &format!("SELECT {times}, writetime(u.f00003) FROM t WHERE k = 2")]);
    // the last field is f00000
    assert!(found.ends_with(", null, 5, null, 5, null] | 5"), "{found}");
    assert!(rows_of(&node, &[&format!("SELECT {times} FROM t WHERE k = 1")]).len() > 10 * FIELDS);
}

/// The statement that makes a type of 30,000 fields.
fn create_wide() -> String {
    let fields: Vec<String> = (0..30_000).map(|at| format!("f{at:05} int")).collect();
    format!("CREATE TYPE wide ({})", fields.join(", "))
}

/// Each literal of a type of many fields takes the room of all fields, however few it names.
#[test]
fn fields_that_literals_leave_out_have_a_bound() {
    let node = Memory::new();
    let literals = |count: usize| vec!["{f00007: 7}"; count].join(", ");
    let statements = [
        create_wide(),
        "CREATE TABLE t (k int PRIMARY KEY, l list<frozen<wide>>)".to_owned(),
        format!("INSERT INTO t (k, l) VALUES (1, [{}])", literals(8)),
        "SELECT (wide){f00001: k} FROM t".to_owned(),
    ];
    for statement in statements {
        assert!(run(&node, &statement, &[], &QueryOptions::default()).is_ok(), "{}", &statement[..20]);
    }
    for too_many in [
        format!("INSERT INTO t (k, l) VALUES (1, [{}])", literals(150)),
        format!("SELECT {} FROM t", vec!["(wide){f00001: k}"; 40].join(", ")),
    ] {
        let refused = run(&node, &too_many, &[], &QueryOptions::default());
        let refused = refused.map(|_| ()).expect_err("too many fields").to_string();
        assert!(refused.ends_with("leave out fields that take more than 16 MiB together"), "{refused}");
    }
}

/// Each column of an object, and each object of a batch, may have a value of some megabytes.
#[test]
fn values_of_json_objects_have_a_bound_together() {
    let node = Memory::new();
    rows_of(&node, &[&create_wide(), "CREATE TABLE t (k int PRIMARY KEY, a list<frozen<wide>>, b list<frozen<wide>>)"]);
    let insert = |columns: &[&str], count: usize| {
        let objects = vec!["{}"; count].join(", ");
        let values: String = columns.iter().map(|column| format!(", \"{column}\": [{objects}]")).collect();
        format!("INSERT INTO t JSON '{{\"k\": 1{values}}}'")
    };
    let batch = format!("BEGIN BATCH {0}; {0}; APPLY BATCH", insert(&["a"], 20));
    assert!(run(&node, &insert(&["a", "b"], 2), &[], &QueryOptions::default()).is_ok());
    for too_large in [insert(&["a", "b"], 20), batch] {
        let refused = run(&node, &too_large, &[], &QueryOptions::default());
        let refused = refused.map(|_| ()).expect_err("4.8 MB").to_string();
        assert!(refused.ends_with(TOO_MUCH_MADE), "{refused:.200}");
    }
}

/// Of a few bytes that are bound to it, each execution of a statement makes a value of 120 kB or
/// more, and a batch holds all of them.
#[test]
fn values_that_a_request_makes_of_bound_ones_have_a_bound_together() {
    let node = Memory::new();
    let columns: Vec<String> = ["a", "b", "c", "d", "e"].map(|name| format!("{name} list<frozen<wide>>")).into();
    rows_of(
        &node,
        &[&create_wide(), &format!("CREATE TABLE t (k int PRIMARY KEY, w frozen<wide>, {})", columns.join(", "))],
    );
    let batch_of = |text: &str, values: &[BoundValue], count: usize| {
        let prepared = prepare(text, Some(KEYSPACE), &node.schema()).expect("a statement");
        let (statements, options) = (vec![(&prepared, values); count], QueryOptions::default());
        block_on(execute_batch(BatchKind::Unlogged, &statements, &options, &ClientState::default(), &node))
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    let bound = |bytes: &[u8]| BoundValue::Bytes(Bytes::copy_from_slice(bytes));
    let objects = |count: usize| format!("[{}]", vec!["{}"; count].join(", "));
    let (number, object) =
        (bound(&7_i32.to_be_bytes()), bound(format!("{{\"k\": 1, \"a\": {}}}", objects(20)).as_bytes()));
    let keys = (0..40).map(|key| key.to_string()).collect::<Vec<_>>().join(", ");
    let update = format!("UPDATE t SET w = {{f00001: ?}} WHERE k IN ({keys})");
    let eight = bound(objects(8).as_bytes());
    let calls = format!("INSERT INTO t (k, a, b, c, d, e) VALUES (1{})", ", from_json(?)".repeat(5));
    // with a number of executions that is refused, and one that has room
    for (text, values, too_many, few) in [
        ("INSERT INTO t (k, w) VALUES (1, {f00001: ?})", vec![number.clone()], 40, 4),
        ("INSERT INTO t (k, w) VALUES (2, {f00001: ?}) IF NOT EXISTS", vec![number.clone()], 40, 4),
        (update.as_str(), vec![number], 1, 0),
        ("INSERT INTO t JSON ?", vec![object], 2, 1),
        (calls.as_str(), vec![eight; 5], 1, 0),
    ] {
        let refused = batch_of(text, &values, too_many).expect_err(text);
        assert!(refused.ends_with(TOO_MUCH_MADE), "{text}: {refused:.200}");
        assert_eq!(batch_of(text, &values, few), Ok(()), "{text}");
    }
    // calls with literals are evaluated when the statement is prepared
    let literal = calls.replace('?', &format!("'{}'", objects(8)));
    let refused = prepare(&literal, Some(KEYSPACE), &node.schema()).map(|_| ()).expect_err("4.8 MB").to_string();
    assert!(refused.ends_with(TOO_MUCH_MADE), "{refused:.200}");
}
