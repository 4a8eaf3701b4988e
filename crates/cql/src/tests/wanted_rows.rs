//! The conditions of a SELECT that replicas may be told.

use super::memory::Memory;
use super::{KEYSPACE, run};
use crate::coordinator::Coordinator;
use crate::options::QueryOptions;
use crate::result::CqlResult;

/// The columns of the conditions that replicas are told for a statement; None: no conditions.
fn told(node: &Memory, text: &str) -> Option<String> {
    run(node, text, &[], &QueryOptions::default()).unwrap_or_else(|error| panic!("{text}: {error}"));
    let wanted_rows = node.wanted_rows.borrow().clone()?;
    let schema = node.schema();
    let table = schema.table(KEYSPACE, "t").expect("it was made");
    let columns = wanted_rows.expressions.iter().filter_map(|expression| table.column(expression.column()?));
    Some(columns.map(|column| column.name.as_str()).collect::<Vec<_>>().join(" "))
}

/// An IN of one column in parentheses filters rows as one without them does.
#[test]
fn parentheses_around_one_column_change_nothing() {
    let node = Memory::new();
    let go = |text: &str| {
        run(&node, text, &[], &QueryOptions::default()).unwrap_or_else(|error| panic!("{text}: {error}")).result
    };
    go("CREATE TABLE t (k int, c int, d int, PRIMARY KEY (k, c, d))");
    for d in 1..=4 {
        go(&format!("INSERT INTO t (k, c, d) VALUES (1, 0, {d})"));
    }
    for condition in ["d IN (1, 3)", "(d) IN ((1), (3))"] {
        let found = go(&format!("SELECT d FROM t WHERE k = 1 AND {condition} ALLOW FILTERING"));
        assert!(matches!(&found, CqlResult::Rows(rows) if rows.row_count == 2), "{condition}: {found:?}");
        assert_eq!(
            node.wanted_rows.borrow().as_ref().map(|wanted_rows| wanted_rows.expressions.len()),
            Some(1),
            "{condition}"
        );
    }
}

/// Slices apply a condition on the first clustering columns, and replicas need it to know what to
/// search the index for.
#[test]
fn what_an_index_answers_is_told_beside_slices() {
    let node = Memory::new();
    for text in ["CREATE TABLE t (k int, c int, d int, v int, PRIMARY KEY (k, c, d))", "CREATE INDEX by_c ON t (c)"] {
        run(&node, text, &[], &QueryOptions::default()).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    for (condition, columns) in [
        ("c = 1", Some("c")),
        ("(c, d) = (1, 2) ALLOW FILTERING", Some("c d")),
        ("token(k) > 5 AND c = 1", Some("c")),
        ("c = 1 AND v = 3 ALLOW FILTERING", Some("v c")),
        ("c = 1 AND d > 3 ALLOW FILTERING", Some("c d")),
        // no index is searched
        ("k = 1 AND c = 1", None),
        ("c > 1 ALLOW FILTERING", None),
    ] {
        assert_eq!(told(&node, &format!("SELECT v FROM t WHERE {condition}")).as_deref(), columns, "{condition}");
    }
}
