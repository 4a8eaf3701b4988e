//! BETWEEN and NOT IN, which Cassandra 5.0 does not have: drawn conditions against a twin that
//! checks each row by itself, the values that they refuse, and their words as names.

use bytes::Bytes;

use super::memory::Memory;
use super::{KEYSPACE, run, spell};
use crate::ddl::Switches;
use crate::options::{Limits, QueryOptions};
use crate::result::CqlResult;
use crate::values::BoundValue;

/// A generator of numbers (xorshift): the same seed, the same conditions.
struct Random(u64);

impl Random {
    fn next(&mut self, end: u64) -> i32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        i32::try_from((self.0 >> 11) % end).expect("small")
    }

    fn values(&mut self) -> Vec<i32> {
        (0..self.next(4)).map(|_| self.next(4)).collect()
    }
}

/// A row: `k`, `c`, `d`, `e`, `v`; some rows have no `v`.
type Row = (i32, i32, i32, i32, Option<i32>);

/// A condition as text, and as the twin understands it.
struct Condition {
    text: String,
    holds: Box<dyn Fn(&Row) -> bool>,
    /// A range on the clustering, which DELETE may have too.
    is_range: bool,
}

fn go(node: &Memory, text: &str, values: &[BoundValue], page_size: Option<u32>) -> Vec<String> {
    let mut options = QueryOptions { page_size, ..QueryOptions::default() };
    let mut lines = Vec::new();
    loop {
        let answer = run(node, text, values, &options).unwrap_or_else(|error| panic!("{text}: {error}"));
        let CqlResult::Rows(rows) = &answer.result else { return lines };
        options.paging_state = rows.paging_state.clone().map(Bytes::from);
        lines.extend(spell::answer(&Ok(answer)).lines().skip(1).map(ToOwned::to_owned));
        if options.paging_state.is_none() {
            return lines;
        }
    }
}

fn error(node: &Memory, text: &str, values: &[BoundValue]) -> String {
    match run(node, text, values, &QueryOptions::default()) {
        Ok(_) => panic!("{text} was taken"),
        Err(error) => error.to_string(),
    }
}

const TABLE: &str = "CREATE TABLE t (k int, c int, d int, e int, v int, PRIMARY KEY (k, c, d, e)) WITH CLUSTERING ORDER BY (c ASC, d DESC, e ASC)";

/// Three partitions with every clustering of a small space, in the order of the table.
fn filled() -> (Memory, Vec<Row>) {
    let node = Memory::new();
    go(&node, TABLE, &[], None);
    let mut rows = Vec::new();
    for k in 0..2 {
        for c in 0..3 {
            for d in (0..3).rev() {
                for e in 0..3 {
                    let v = (c + d + e != 4).then_some((c * 2 + d + e) % 5);
                    let value = v.map_or("null".to_owned(), |v| v.to_string());
                    go(
                        &node,
                        &format!("INSERT INTO t (k, c, d, e, v) VALUES ({k}, {c}, {d}, {e}, {value})"),
                        &[],
                        None,
                    );
                    rows.push((k, c, d, e, v));
                }
            }
        }
    }
    (node, rows)
}

fn listed(values: &[i32]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn drawn(random: &mut Random) -> Condition {
    let (a, b, x, y) = (random.next(4), random.next(4), random.next(4), random.next(4));
    let few = random.values();
    let tuples: Vec<(i32, i32)> = random.values().into_iter().zip(random.values()).collect();
    let tuple_text = tuples.iter().map(|(c, d)| format!("({c}, {d})")).collect::<Vec<_>>().join(", ");
    let few_text = listed(&few);
    let range = |text: String, holds: Box<dyn Fn(&Row) -> bool>| Condition { text, holds, is_range: true };
    let filter = |text: String, holds: Box<dyn Fn(&Row) -> bool>| Condition { text, holds, is_range: false };
    match random.next(11) {
        0 => range(format!("c BETWEEN {a} AND {b}"), Box::new(move |row| a <= row.1 && row.1 <= b)),
        1 => range(
            format!("(c, d) BETWEEN ({a}, {x}) AND ({b}, {y})"),
            Box::new(move |row| (a, x) <= (row.1, row.2) && (row.1, row.2) <= (b, y)),
        ),
        2 => range(
            format!("(c, d, e) BETWEEN ({a}, {x}, 1) AND ({b}, {y}, 1)"),
            Box::new(move |row| (a, x, 1) <= (row.1, row.2, row.3) && (row.1, row.2, row.3) <= (b, y, 1)),
        ),
        3 => range(format!("c NOT IN ({few_text})"), Box::new(move |row| !few.contains(&row.1))),
        4 => range(format!("(c, d) NOT IN ({tuple_text})"), Box::new(move |row| !tuples.contains(&(row.1, row.2)))),
        5 => range(
            format!("c NOT IN ({few_text}) AND c > {a} AND (c, d) NOT IN ({tuple_text}) AND c <= {b}"),
            Box::new(move |row| !few.contains(&row.1) && a < row.1 && row.1 <= b && !tuples.contains(&(row.1, row.2))),
        ),
        6 => range(
            format!("c IN ({a}, {b}) AND d NOT IN ({few_text})"),
            Box::new(move |row| (row.1 == a || row.1 == b) && !few.contains(&row.2)),
        ),
        7 => range(
            format!("c = {a} AND d BETWEEN {x} AND {y}"),
            Box::new(move |row| row.1 == a && x <= row.2 && row.2 <= y),
        ),
        8 => filter(
            format!("v BETWEEN {a} AND {b} AND c NOT IN ({few_text})"),
            Box::new(move |row| row.4.is_some_and(|v| a <= v && v <= b) && !few.contains(&row.1)),
        ),
        9 => filter(
            format!("v NOT IN ({few_text}) AND d NOT IN ({a}, {b}) AND v > {x}"),
            Box::new(move |row| row.4.is_some_and(|v| !few.contains(&v) && v > x) && row.2 != a && row.2 != b),
        ),
        _ => filter(
            format!("d BETWEEN {a} AND {b} AND v NOT IN ({few_text})"),
            Box::new(move |row| a <= row.2 && row.2 <= b && row.4.is_some_and(|v| !few.contains(&v))),
        ),
    }
}

fn shown(rows: &[Row], wanted: impl Fn(&Row) -> bool) -> Vec<String> {
    rows.iter().filter(|row| wanted(row)).map(|(k, c, d, e, _)| format!("{k} | {c} | {d} | {e}")).collect()
}

#[test]
fn conditions_select_the_rows_for_which_they_hold() {
    let (node, rows) = filled();
    for seed in 1..=400u64 {
        let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (seed << 32) ^ seed);
        let condition = drawn(&mut random);
        let k = random.next(2);
        let page = Some(u32::try_from(random.next(5) + 1).expect("small"));
        let ending = if condition.is_range { "" } else { " ALLOW FILTERING" };
        let text = format!("SELECT k, c, d, e FROM t WHERE k = {k} AND {}{ending}", condition.text);
        let expected = shown(&rows, |row| row.0 == k && (condition.holds)(row));
        assert_eq!(go(&node, &text, &[], page), expected, "seed {seed}: {text}");
        if condition.is_range && seed % 4 == 0 {
            let (copy, rows) = filled();
            go(&copy, &format!("DELETE FROM t WHERE k = {k} AND {}", condition.text), &[], None);
            let left = shown(&rows, |row| row.0 == k && !(condition.holds)(row));
            assert_eq!(go(&copy, &format!("SELECT k, c, d, e FROM t WHERE k = {k}"), &[], None), left, "seed {seed}");
        }
    }
}

#[test]
fn conditions_on_the_partition_key() {
    let node = Memory::new();
    go(&node, "CREATE TABLE p (k int PRIMARY KEY, v int)", &[], None);
    (0..20).for_each(|k| drop(go(&node, &format!("INSERT INTO p (k, v) VALUES ({k}, {k})"), &[], None)));
    let all = go(&node, "SELECT token(k), k FROM p", &[], None);
    let pairs: Vec<(i64, i32)> = all
        .iter()
        .map(|line| line.split_once(" | ").expect("two columns"))
        .map(|(token, k)| (token.parse().expect("a token"), k.parse().expect("a key")))
        .collect();
    let keys = |from: i64, to: i64| -> Vec<String> {
        pairs.iter().filter(|(token, _)| from <= *token && *token <= to).map(|(_, k)| k.to_string()).collect()
    };
    let (low, high) = (pairs[3].0, pairs[11].0);
    for (from, to) in [(low, high), (high, low), (low, low), (i64::MIN, high), (low, i64::MIN), (i64::MIN, i64::MIN)] {
        let text = format!("SELECT k FROM p WHERE token(k) BETWEEN {from} AND {to}");
        assert_eq!(go(&node, &text, &[], Some(3)), keys(from, to), "{text}");
        let list = (0..20).map(|k| k.to_string()).collect::<Vec<_>>().join(", ");
        let named = format!("{text} AND k IN ({list})");
        let mut found = go(&node, &named, &[], None);
        let mut expected = keys(from, to);
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{named}");
    }
    let mut found =
        go(&node, "SELECT k FROM p WHERE k NOT IN (1, 2, 3) AND k BETWEEN 0 AND 5 ALLOW FILTERING", &[], None);
    found.sort();
    assert_eq!(found, ["0", "4", "5"]);
    let needs = error(&node, "SELECT k FROM p WHERE k NOT IN (1, 2)", &[]);
    assert!(needs.contains("use ALLOW FILTERING"), "{needs}");
    let refused = error(&node, "DELETE FROM p WHERE k BETWEEN 1 AND 2", &[]);
    assert!(refused.contains("Only EQ and IN relation are supported on the partition key"), "{refused}");
}

fn int(number: i32) -> BoundValue {
    BoundValue::Bytes(Bytes::copy_from_slice(&number.to_be_bytes()))
}

fn ints(numbers: &[i32]) -> BoundValue {
    let elements: Vec<_> = numbers.iter().map(|number| number.to_be_bytes()).collect();
    BoundValue::Bytes(types::collection::build_list(&elements).into())
}

#[test]
fn markers_null_and_unset() {
    let (node, rows) = filled();
    let between = "SELECT k, c, d, e FROM t WHERE k = 0 AND c BETWEEN ? AND ?";
    assert_eq!(go(&node, between, &[int(1), int(2)], None), shown(&rows, |row| row.0 == 0 && row.1 >= 1));
    let not_in = "SELECT k, c, d, e FROM t WHERE k = 0 AND c NOT IN ?";
    assert_eq!(go(&node, not_in, &[ints(&[0, 2])], None), shown(&rows, |row| row.0 == 0 && row.1 == 1));
    assert_eq!(go(&node, not_in, &[ints(&[])], None), shown(&rows, |row| row.0 == 0));
    let unset = "Invalid unset value for column";
    let null = "Invalid null value";
    for (text, values, words) in [
        (between, [BoundValue::Null, int(1)].as_slice(), null),
        (between, &[int(1), BoundValue::Null], null),
        (between, &[int(1), BoundValue::Unset], unset),
        (not_in, &[BoundValue::Null], null),
        (not_in, &[BoundValue::Unset], unset),
        ("SELECT k FROM t WHERE k = 0 AND c NOT IN (1, ?)", &[BoundValue::Null], null),
        ("SELECT k FROM t WHERE k = 0 AND v NOT IN (1, ?) ALLOW FILTERING", &[BoundValue::Null], null),
        ("SELECT k FROM t WHERE k = 0 AND v NOT IN (1, ?) ALLOW FILTERING", &[BoundValue::Unset], unset),
        (
            "SELECT k FROM t WHERE k = 0 AND v BETWEEN 1 AND ? ALLOW FILTERING",
            &[BoundValue::Null],
            "Unsupported null value",
        ),
        ("DELETE FROM t WHERE k = 0 AND c BETWEEN ? AND 3", &[BoundValue::Null], null),
        ("SELECT k FROM t WHERE token(k) BETWEEN ? AND 3", &[BoundValue::Null], "Invalid null token value"),
    ] {
        let found = error(&node, text, values);
        assert!(found.contains(words), "{text}: {found}");
    }
}

#[test]
fn what_is_refused() {
    let (node, _) = filled();
    for (text, words) in [
        (
            "SELECT k FROM t WHERE k = 0 AND c BETWEEN 1 AND 2 AND c > 1",
            "More than one restriction was found for the start bound on c",
        ),
        ("SELECT k FROM t WHERE k = 0 AND c = 1 AND c NOT IN (1)", "if it includes an Equal"),
        ("SELECT k FROM t WHERE k = 0 AND c NOT IN (1) AND c = 1", "both an equality and an inequality"),
        ("SELECT k FROM t WHERE k = 0 AND c NOT IN (1) AND d = 1", "is restricted by a non-EQ relation"),
        ("SELECT k FROM t WHERE k = 0 AND v NOT IN (1)", "use ALLOW FILTERING"),
        ("UPDATE t SET v = 1 WHERE k = 0 AND c BETWEEN 1 AND 2", "Slice restrictions are not supported"),
        ("UPDATE t SET v = 1 WHERE k = 0 AND c = 1 AND d = 1 AND e NOT IN (1)", "Slice restrictions are not supported"),
        ("DELETE v FROM t WHERE k = 0 AND c = 1 AND d = 1 AND e NOT IN (1)", "Range deletions are not supported"),
    ] {
        let found = error(&node, text, &[]);
        assert!(found.contains(words), "{text}: {found}");
    }
}

#[test]
fn views_keep_comparisons_and_refuse_not_in() {
    let (node, _) = filled();
    let switches = Switches { views: true, ..Switches::default() };
    let options = QueryOptions { limits: Limits { switches, ..Limits::default() }, ..QueryOptions::default() };
    let view = |name: &str, test: &str| {
        let text = format!(
            "CREATE MATERIALIZED VIEW {name} AS SELECT k, c, d, e FROM t WHERE k IS NOT NULL AND {test} AND d IS NOT NULL \
             AND e IS NOT NULL PRIMARY KEY (c, k, d, e)"
        );
        run(&node, &text, &[], &options)
    };
    let refused = view("x", "c NOT IN (1)").expect_err("no node of Cassandra could read it");
    assert!(refused.to_string().contains("NOT IN cannot be used when defining a materialized view"), "{refused}");
    view("y", "c BETWEEN 1 AND 2").expect("the view is made");
    let table = node.schema.borrow().table(KEYSPACE, "y").cloned().expect("it is there");
    let text = table.view.as_ref().map(|view| view.where_clause.as_str());
    assert_eq!(text, Some("k IS NOT NULL AND c >= 1 AND c <= 2 AND d IS NOT NULL AND e IS NOT NULL"));
}

#[test]
fn conditions_of_updates() {
    let node = Memory::new();
    go(&node, "CREATE TABLE q (k int PRIMARY KEY, v int, m map<text, int>, s set<int>)", &[], None);
    go(&node, "INSERT INTO q (k, v, m, s) VALUES (1, 5, {'a': 5}, {1, 2})", &[], None);
    let applied = |condition: &str, values: &[BoundValue]| -> bool {
        go(&node, &format!("UPDATE q SET v = 5 WHERE k = 1 IF {condition}"), values, None)[0].starts_with("True")
    };
    for (condition, holds) in [
        ("v BETWEEN 5 AND 6", true),
        ("v BETWEEN 4 AND 5", true),
        ("v BETWEEN 6 AND 4", false),
        ("v BETWEEN 6 AND 9", false),
        ("v NOT IN (1, 2)", true),
        ("v NOT IN (1, 5)", false),
        ("v NOT IN ()", true),
        ("m['a'] BETWEEN 1 AND 5", true),
        ("m['a'] NOT IN (5)", false),
        ("m['b'] NOT IN (5)", true),
        ("s NOT IN ({1}, {2})", true),
        ("s NOT IN ({2, 1})", false),
    ] {
        assert_eq!(applied(condition, &[]), holds, "{condition}");
    }
    assert!(applied("m[?] BETWEEN ? AND ?", &[BoundValue::Bytes(Bytes::from_static(b"a")), int(5), int(5)]));
    assert!(!applied("v NOT IN ?", &[ints(&[5])]));
    let null = error(&node, "UPDATE q SET v = 5 WHERE k = 1 IF v BETWEEN null AND 3", &[]);
    assert!(null.contains("Invalid comparison with null"), "{null}");
}

#[test]
fn the_word_is_a_name_as_before() {
    let node = Memory::new();
    go(&node, "CREATE TABLE between (between int PRIMARY KEY, \"in\" int)", &[], None);
    go(&node, "INSERT INTO between (between, \"in\") VALUES (1, 2)", &[], None);
    let text = "SELECT \"in\" AS between FROM between WHERE between BETWEEN 1 AND 1 ALLOW FILTERING";
    assert_eq!(go(&node, text, &[], None), ["2"]);
    let applied = go(&node, "UPDATE between SET \"in\" = 3 WHERE between = 1 IF \"in\" BETWEEN 1 AND 2", &[], None);
    assert_eq!(applied, ["True"]);
}

/// Comparing each condition with all before it would take minutes here.
#[test]
fn many_conditions_on_one_column_take_no_time() {
    let node = Memory::new();
    let table = "CREATE TABLE t (k int, c int, l list<int>, f frozen<set<int>>, v int, PRIMARY KEY (k, c, f))";
    let rows = ["INSERT INTO t (k, c, f) VALUES (1, 3, {1})", "INSERT INTO t (k, c, f) VALUES (1, 5, {1})"];
    for statement in std::iter::once(table).chain(rows) {
        run(&node, statement, &[], &QueryOptions::default()).expect("it is taken");
    }
    for condition in ["l CONTAINS 1", "f CONTAINS 1", "v NOT IN (1)"] {
        let conditions = vec![condition; 60_000].join(" AND ");
        let select = format!("SELECT c FROM t WHERE {conditions} ALLOW FILTERING");
        crate::prepare(&select, Some(KEYSPACE), &crate::Coordinator::schema(&node)).expect(condition);
    }
    // the row with 5 is left out
    let left_out = (4..6_000).map(|c| format!("c NOT IN ({c})")).collect::<Vec<_>>().join(" AND ");
    assert_eq!(go(&node, &format!("SELECT c FROM t WHERE k = 1 AND {left_out}"), &[], None), ["3"]);
    assert_eq!(go(&node, &format!("SELECT c FROM t WHERE k = 1 AND c > 3 AND {left_out}"), &[], None), [""; 0]);
}
