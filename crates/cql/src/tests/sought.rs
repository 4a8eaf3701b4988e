//! The conditions of a SELECT that replicas may be told.

use super::memory::Memory;
use super::{KEYSPACE, run};
use crate::coordinator::Coordinator;
use crate::options::QueryOptions;

/// The columns of the conditions that replicas are told for a statement; None: no conditions.
fn told(node: &Memory, text: &str) -> Option<String> {
    run(node, text, &[], &QueryOptions::default()).unwrap_or_else(|error| panic!("{text}: {error}"));
    let sought = node.sought.borrow().clone()?;
    let schema = node.schema();
    let table = schema.table(KEYSPACE, "t").expect("it was made");
    let columns = sought.expressions.iter().filter_map(|expression| table.column(expression.column()?));
    Some(columns.map(|column| column.name.as_str()).collect::<Vec<_>>().join(" "))
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
