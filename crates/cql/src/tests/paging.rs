//! Pages put together must be what is read at once: every size of page, every way to go.

use bytes::Bytes;

use super::memory::Memory;
use super::{run, spell};
use crate::options::{Limits, QueryOptions};
use crate::result::{Answer, CqlResult};
use crate::values::BoundValue;

fn node() -> Memory {
    let node = Memory::new();
    let all = QueryOptions::default();
    let mut statements = vec![
        "CREATE TABLE t (k int, c int, d int, v int, s int static, PRIMARY KEY (k, c, d)) WITH CLUSTERING ORDER BY (c ASC, d DESC)".to_owned(),
        "CREATE TABLE u (k int PRIMARY KEY, v int)".to_owned(),
    ];
    for k in 0..4 {
        statements.push(format!("INSERT INTO u (k, v) VALUES ({k}, {k})"));
        for c in 0..3 {
            for d in 0..3 {
                if (k + c + d) % 4 != 0 {
                    statements.push(format!("INSERT INTO t (k, c, d, v) VALUES ({k}, {c}, {d}, {})", c * d));
                }
            }
        }
    }
    statements.push("INSERT INTO t (k, s) VALUES (2, 22)".into());
    statements.push("INSERT INTO t (k, s) VALUES (9, 99)".into());
    statements.push("INSERT INTO t (k, s) VALUES (8, 88)".into());
    for statement in statements {
        run(&node, &statement, &[], &all).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    node
}

/// Lines of all pages, without the heads.
fn pages(node: &Memory, statement: &str, page_size: Option<u32>) -> Vec<String> {
    let mut options = QueryOptions { page_size, protocol_version: 5, ..QueryOptions::default() };
    let mut lines = Vec::new();
    loop {
        let answer = run(node, statement, &[], &options).unwrap_or_else(|error| panic!("{statement}: {error}"));
        let CqlResult::Rows(rows) = &answer.result else { panic!("{statement} gives rows") };
        if let Some(size) = page_size {
            assert!(rows.row_count <= size, "{statement}: a page of {} rows", rows.row_count);
        }
        let state = rows.paging_state.clone();
        lines.extend(spell::answer(&Ok::<Answer, _>(answer)).lines().skip(1).map(ToOwned::to_owned));
        match state {
            Some(state) => options.paging_state = Some(Bytes::from(state)),
            None => return lines,
        }
    }
}

#[test]
fn pages_of_every_size_give_the_same_rows() {
    let node = node();
    let statements = [
        "SELECT * FROM t",
        "SELECT k, c, d FROM t WHERE k = 1",
        "SELECT c, d FROM t WHERE k = 1 ORDER BY c DESC, d ASC",
        "SELECT c, d FROM t WHERE k = 1 AND c >= 1 ORDER BY c DESC",
        "SELECT c, d FROM t WHERE k = 1 AND c IN (0, 2)",
        "SELECT c, d FROM t WHERE k = 1 AND (c, d) > (0, 1)",
        "SELECT k, c, d FROM t WHERE k IN (3, 1, 9, 7)",
        "SELECT k, s FROM t WHERE k IN (8, 9)",
        "SELECT k, c, d FROM t PER PARTITION LIMIT 2",
        "SELECT k, c, d FROM t LIMIT 7",
        "SELECT k, c, d FROM t PER PARTITION LIMIT 3 LIMIT 8",
        "SELECT k, c, d FROM t WHERE k IN (0, 1, 2) PER PARTITION LIMIT 2 LIMIT 5",
        "SELECT DISTINCT k, s FROM t",
        "SELECT DISTINCT k FROM t LIMIT 3",
        "SELECT DISTINCT k, count(k), sum(s) FROM t GROUP BY k",
        "SELECT DISTINCT k, count(s) FROM t GROUP BY k LIMIT 3",
        "SELECT DISTINCT k, count(k) FROM t WHERE k IN (9, 1, 3) GROUP BY k",
        "SELECT DISTINCT count(k), sum(s) FROM t",
        "SELECT k, c, d FROM t WHERE v = 2 ALLOW FILTERING",
        "SELECT k, c FROM t WHERE s = 22 ALLOW FILTERING",
        "SELECT k, c, count(*), max(d) FROM t GROUP BY k, c",
        "SELECT k, count(*) FROM t GROUP BY k",
        "SELECT k, c, count(*) FROM t GROUP BY k, c LIMIT 5",
        "SELECT k, c, sum(d) FROM t GROUP BY k, c PER PARTITION LIMIT 2",
        "SELECT count(*) FROM t",
        "SELECT * FROM u",
        "SELECT * FROM u WHERE k IN (1, 2, 3)",
        "SELECT * FROM u WHERE token(k) > -5000000000000000000 AND token(k) <= 5000000000000000000",
        "SELECT JSON k, v FROM u",
    ];
    for statement in statements {
        let whole = pages(&node, statement, None);
        assert!(!whole.is_empty(), "{statement}");
        for size in 1..12 {
            assert_eq!(pages(&node, statement, Some(size)), whole, "{statement} in pages of {size}");
        }
    }
}

#[test]
fn the_last_page_may_be_followed_by_an_empty_one_only_where_cassandra_does_so() {
    let node = node();
    let state_after = |statement: &str, size: u32| {
        let options = QueryOptions { page_size: Some(size), ..QueryOptions::default() };
        match run(&node, statement, &[], &options).expect("it runs").result {
            CqlResult::Rows(rows) => rows.paging_state.is_some(),
            _ => panic!("rows"),
        }
    };
    // a full page may not be the last; a page that is not full is
    assert!(state_after("SELECT * FROM t WHERE k = 1", 7));
    assert!(!state_after("SELECT * FROM t WHERE k = 1", 8));
    // nothing can follow: the one row of the partition, the LIMIT
    assert!(!state_after("SELECT * FROM u WHERE k = 1", 1));
    assert!(!state_after("SELECT * FROM t LIMIT 3", 3));
    assert!(!state_after("SELECT * FROM t WHERE k = 1 PER PARTITION LIMIT 2", 2));
}

/// As in Cassandra groups go on from the state, whatever the size of the next page.
#[test]
fn groups_go_on_from_a_state_also_without_paging() {
    let node = node();
    let statement = "SELECT k, c, count(*) FROM t GROUP BY k, c LIMIT 5";
    let all = pages(&node, statement, None);
    let read = |page_size, paging_state| {
        let options = QueryOptions { page_size, paging_state, protocol_version: 5, ..QueryOptions::default() };
        run(&node, statement, &[], &options).expect("it runs")
    };
    let CqlResult::Rows(first) = read(Some(2), None).result else { panic!("rows") };
    let state = Bytes::from(first.paging_state.expect("there are more groups"));
    for size in [None, Some(2), Some(5), Some(100)] {
        let rest = spell::answer(&Ok(read(size, Some(state.clone()))));
        let end = size.map_or(5, |size| 5.min(2 + size as usize));
        assert_eq!(rest.lines().skip(1).collect::<Vec<_>>(), all[2..end], "{size:?}");
    }
}

/// Partitions of which only the static row is there have no clustering.
#[test]
fn partitions_without_rows_are_first_in_the_order_of_the_table() {
    let node = Memory::new();
    for (table, reversed) in [("ASC", "DESC"), ("DESC", "ASC")] {
        for statement in [
            format!(
                "CREATE TABLE {table}_t (k int, c int, s int static, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c {table})"
            ),
            format!("INSERT INTO {table}_t (k, s) VALUES (1, 7)"),
            format!("INSERT INTO {table}_t (k, c) VALUES (2, 5)"),
        ] {
            run(&node, &statement, &[], &QueryOptions::default())
                .unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
        let read = |order: &str| {
            pages(&node, &format!("SELECT k, c, s FROM {table}_t WHERE k IN (1, 2) ORDER BY c {order}"), None)
        };
        assert_eq!(read(table), ["1 | null | 7", "2 | 5 | null"], "{table}");
        assert_eq!(read(reversed), ["2 | 5 | null", "1 | null | 7"], "{table}");
    }
}

/// Cassandra reads what it aggregates in pages, and counts tombstones in each.
#[test]
fn aggregates_count_tombstones_page_by_page() {
    let node = Memory::new();
    let all = QueryOptions::default();
    run(&node, "CREATE TABLE d (k int, c int, PRIMARY KEY (k, c))", &[], &all).expect("the table is made");
    for c in 0..30 {
        let statement = match c % 3 {
            0 => format!("INSERT INTO d (k, c) VALUES (1, {c})"),
            _ => format!("DELETE FROM d WHERE k = 1 AND c = {c}"),
        };
        run(&node, &statement, &[], &all).expect("it is written");
    }
    let limits = Limits { tombstone_failure: 5, ..Limits::default() };
    let statements =
        ["SELECT count(*) FROM d", "SELECT count(*) FROM d WHERE k = 1", "SELECT k, count(*) FROM d GROUP BY k"];
    for statement in statements {
        for (page_size, is_answered) in [(Some(1), true), (Some(2), true), (Some(4), false), (None, false)] {
            let options = QueryOptions { page_size, limits, ..QueryOptions::default() };
            let answer = run(&node, statement, &[], &options);
            assert_eq!(answer.is_ok(), is_answered, "{statement} {page_size:?}: {answer:?}");
        }
    }
}

#[test]
fn a_state_that_is_none_is_refused() {
    let node = node();
    let paging_state = Some(Bytes::from_static(b"what is this"));
    let options = QueryOptions { page_size: Some(2), paging_state, ..QueryOptions::default() };
    let error = run(&node, "SELECT * FROM t", &[], &options).expect_err("it is refused");
    assert_eq!((error.code(), error.to_string().as_str()), (0x000A, "Invalid value for the paging state"));
}

/// States that no server made: nothing may break, whatever they say.
#[test]
fn forged_states_do_no_harm() {
    let node = node();
    let statements = [
        "SELECT * FROM t",
        "SELECT * FROM t WHERE k = 1",
        "SELECT * FROM t WHERE k = 1 ORDER BY c DESC",
        "SELECT * FROM t WHERE k IN (1, 2) PER PARTITION LIMIT 2",
        "SELECT k, c, count(*) FROM t GROUP BY k, c PER PARTITION LIMIT 1",
        "SELECT DISTINCT k FROM t",
        "SELECT * FROM u",
    ];
    let key = Bytes::from_static(&[0, 0, 0, 1]);
    let mut seed = 7u64;
    for statement in statements {
        let real = [0, 1, 2, 3, 4, 5, 8].map(|size| {
            let options = QueryOptions { page_size: Some(size), ..QueryOptions::default() };
            match run(&node, statement, &[], &options).expect("it runs").result {
                CqlResult::Rows(rows) => rows.paging_state.unwrap_or_default(),
                _ => panic!("rows"),
            }
        });
        let zeros = [vec![0; 4], [&[4][..], &key, &[0, 0, 0]].concat(), [&[4][..], &key, &[0, 9, 0]].concat()];
        // a row (0, 1) of no partition, behind which its partition has none left
        let row_alone = [&[0, 11, 0, 4][..], &[0; 4], &[4], &key, &[9, 0]].concat();
        for state in real.iter().chain(&zeros).chain([&row_alone]) {
            for change in 0..200 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let mut forged = state.clone();
                if change > 0 && !forged.is_empty() {
                    let at = usize::try_from(seed >> 40).expect("small") % forged.len();
                    forged[at] ^= 1 << ((seed >> 33) % 8);
                }
                let paging_state = Some(Bytes::from(forged));
                let options = QueryOptions { page_size: Some(2), paging_state, ..QueryOptions::default() };
                let _ = run(&node, statement, &[], &options);
            }
        }
    }
}

#[test]
fn pages_end_by_bytes_too() {
    let node = Memory::new();
    let all = QueryOptions::default();
    run(&node, "CREATE TABLE b (k int, c int, v text, PRIMARY KEY (k, c))", &[], &all).expect("it is made");
    let value = "x".repeat(1 << 20);
    for c in 0..20 {
        run(&node, &format!("INSERT INTO b (k, c, v) VALUES (1, {c}, '{value}')"), &[], &all).expect("it is written");
    }
    let options = QueryOptions { page_size: Some(100), ..all };
    let answer = run(&node, "SELECT c, v FROM b WHERE k = 1", &[], &options).expect("it is read");
    let CqlResult::Rows(rows) = answer.result else { panic!("rows") };
    assert_eq!(rows.row_count, 8);
    assert!(rows.paging_state.is_some());
    assert_eq!(pages(&node, "SELECT c FROM b WHERE k = 1", Some(100)).len(), 20);
    assert_eq!(pages(&node, "SELECT c, v FROM b WHERE k = 1", Some(100)).len(), 20);
}

#[test]
fn too_many_combinations_are_refused() {
    let node = node();
    let list = (0..600).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let half = (0..120).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let update = format!("UPDATE t SET v = 1 WHERE k IN ({half}) AND c IN ({half}) AND d = 1");
    for statement in [
        format!("SELECT * FROM t WHERE k = 1 AND c IN ({list}) AND d IN ({list})"),
        format!("UPDATE t SET v = 1 WHERE k IN ({list}) AND c IN ({list}) AND d = 1"),
        format!("DELETE FROM t WHERE k IN ({list}) AND c IN ({list})"),
        format!("BEGIN UNLOGGED BATCH {update}; {update}; APPLY BATCH"),
    ] {
        let error = run(&node, &statement, &[], &QueryOptions::default()).expect_err("it is refused");
        assert!(error.to_string().contains("combinations"), "{error}");
    }
}

#[test]
fn values_of_functions_have_a_greatest_size() {
    let node = Memory::new();
    let answer = |text: &str, values: &[BoundValue]| spell::answer(&run(&node, text, values, &QueryOptions::default()));
    let (w, t) = ("vector<vector<int, 16777216>, 16777216>", "tuple<vector<int, 200000>, vector<int, 200000>>");
    assert_eq!(answer(&format!("CREATE TABLE b (k int PRIMARY KEY, v text, w {w}, t {t})"), &[]), "done");
    let quotes = BoundValue::Bytes(vec![b'"'; 600 << 10].into());
    assert_eq!(answer("INSERT INTO b (k, v) VALUES (1, ?)", &[quotes]), "done");
    for (selected, error) in [
        ("v + v", "The value of function system._add is larger than 1 MiB"),
        ("to_json(to_json(v))", "The value of function system.to_json is larger than 1 MiB"),
        ("mask_default(w)", "There isn't a defined masked value for type "),
        // each field alone is small enough
        ("mask_default(t)", "There isn't a defined masked value for type "),
    ] {
        let found = answer(&format!("SELECT {selected} FROM b"), &[]);
        assert!(found.starts_with(&format!("error 2200 {error}")), "{selected}: {found:.200}");
    }
}

/// Without a bound each row would take the memory of all its values before its size is looked at.
#[test]
fn a_column_that_is_named_many_times_fills_no_memory() {
    let node = Memory::new();
    let answer = |text: &str, values: &[BoundValue]| spell::answer(&run(&node, text, values, &QueryOptions::default()));
    assert_eq!(answer("CREATE TABLE b (k int PRIMARY KEY, v text)", &[]), "done");
    let value = BoundValue::Bytes(vec![b'x'; 512 << 10].into());
    assert_eq!(answer("INSERT INTO b (k, v) VALUES (1, ?)", &[value]), "done");
    let part = "A collection, tuple or vector of the statement is larger than 1 MiB";
    let columns = ["v"; 64].join(", ");
    for (selected, error) in [
        (columns.clone(), "A row of the result is larger than 16 MiB: ask for less"),
        (format!("JSON {columns}"), "A row of the result is larger than 16 MiB: ask for less"),
        ("(v, v, v)".to_owned(), part),
        ("[v, v, v]".to_owned(), part),
    ] {
        let found = answer(&format!("SELECT {selected} FROM b"), &[]);
        assert_eq!(found, format!("error 2200 {error}"), "{selected}");
    }
}

#[test]
fn a_marker_in_many_places_of_a_value_fills_no_memory() {
    let node = Memory::new();
    let answer = |text: &str, values: &[BoundValue]| spell::answer(&run(&node, text, values, &QueryOptions::default()));
    let table = "CREATE TABLE b (k int PRIMARY KEY, v vector<text, 3>, t tuple<text, text, text>)";
    assert_eq!(answer(table, &[]), "done");
    let value = BoundValue::Bytes(vec![b'x'; 512 << 10].into());
    let values = [value.clone(), value.clone(), value];
    for statement in ["INSERT INTO b (k, v) VALUES (1, [?, ?, ?])", "INSERT INTO b (k, t) VALUES (1, (?, ?, ?))"] {
        let refused = "error 2200 A collection, tuple or vector of the statement is larger than 1 MiB";
        assert_eq!(answer(statement, &values), refused, "{statement}");
    }
}

/// Markers may not stand in these, but calls may, and a call makes a value as large from a few
/// letters.
#[test]
fn a_collection_of_large_parts_fills_no_memory() {
    let node = Memory::new();
    let answer = |text: &str| spell::answer(&run(&node, text, &[], &QueryOptions::default()));
    let table = "CREATE TABLE b (k int PRIMARY KEY, l list<text>, s set<text>, m map<text, text>)";
    assert_eq!(answer(table), "done");
    let part = |letter: &str| format!("'{}'", letter.repeat(600 << 10));
    let (x, y) = (part("x"), part("y"));
    for (column, value) in
        [("l", format!("[{x}, {y}]")), ("s", format!("{{{x}, {y}}}")), ("m", format!("{{{x}: {y}}}"))]
    {
        let refused = "error 2200 A collection, tuple or vector of the statement is larger than 1 MiB";
        assert_eq!(answer(&format!("INSERT INTO b (k, {column}) VALUES (1, {value})")), refused, "{column}");
    }
}
