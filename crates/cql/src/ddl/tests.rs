//! `testdata/ddl.txt`: statements over one schema, each after `> `, with the event it gives,
//! `nothing`, or the code and text of its error. The texts of errors in the first part are those
//! that Cassandra 5.0.8 gave to the same statements.

use std::collections::BTreeMap;

use schema::{LeftOutTable, Schema, TableId, system};

use super::{DdlContext, Switches, apply};
use crate::error::CqlError;
use crate::result::{SchemaChangeKind, SchemaTarget};

fn context(number: u8) -> DdlContext {
    DdlContext {
        keyspace: Some("answers".to_owned()),
        now_micros: 1_700_000_000_000_000,
        new_table_id: TableId([number; 16]),
        datacenters: BTreeMap::from([("datacenter1".to_owned(), 1)]),
        moving: Vec::new(),
        default_index: Some(crate::coordinator::LEGACY_INDEX.to_owned()),
        default_compaction: std::sync::Arc::new(schema::TableParams::default().compaction),
        restoring: false,
        switches: Switches::default(),
        guardrails: None,
    }
}

fn answer(statement: &str, number: u8, schema: &mut Schema) -> String {
    let applied = crate::parse(statement)
        .map_err(CqlError::from)
        .and_then(|parsed| apply(&parsed.statement, &context(number), schema));
    match applied {
        Ok(None) => "nothing".to_owned(),
        Ok(Some((after, event))) => {
            *schema = after;
            format!("{:?} {:?} {} {}", event.change, event.target, event.keyspace, event.name).trim_end().to_owned()
        }
        Err(error) => format!("error {:04x} {error}", error.code()),
    }
}

#[test]
fn statements_change_the_schema_or_are_refused() {
    let mut schema = system::schema();
    let file = include_str!("../../testdata/ddl.txt");
    let mut lines = file.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut number = 0;
    let mut wrong = Vec::new();
    while let Some(line) = lines.next() {
        let statement = line.strip_prefix("> ").expect("a statement");
        let expected = lines.next().expect("its answer");
        number += 1;
        let is = answer(statement, number, &mut schema);
        if is != expected {
            wrong.push(format!("{statement}\n  is:       {is}\n  expected: {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(number > 100, "{number}");
}

fn changed(schema: &Schema, statement: &str) -> Schema {
    let parsed = crate::parse(statement).expect(statement);
    let (after, _) = apply(&parsed.statement, &context(9), schema).expect(statement).expect("a change");
    after
}

/// Tables of which the schema has nothing but that they are left out.
#[test]
fn what_is_left_out_can_be_dropped() {
    let left_out = |id: u8, base: Option<u8>| LeftOutTable {
        id: TableId([id; 16]),
        is_view: base.is_some(),
        base_id: base.map(|id| TableId([id; 16])),
        allow_auto_snapshot: None,
    };
    let mut schema = changed(
        &system::schema(),
        "CREATE KEYSPACE answers WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    );
    for (keyspace, name, table) in [
        ("answers", "base", left_out(100, None)),
        ("answers", "v", left_out(101, Some(100))),
        ("answers", "t", left_out(102, None)),
        ("unread", "t", left_out(103, None)),
    ] {
        schema.left_out.insert((keyspace.to_owned(), name.to_owned()), table);
    }
    for (statement, expected) in [
        ("DROP TABLE base", "error 2200 Cannot drop a table when materialized views still depend on it (answers)"),
        ("DROP MATERIALIZED VIEW base", "error 2200 Materialized view 'answers.base' doesn't exist"),
        ("DROP MATERIALIZED VIEW v", "Dropped Table answers v"),
        ("DROP TABLE base", "Dropped Table answers base"),
        ("DROP TABLE IF EXISTS base", "nothing"),
        ("DROP KEYSPACE unread", "Dropped Keyspace unread"),
        ("DROP KEYSPACE IF EXISTS unread", "nothing"),
        ("DROP KEYSPACE answers", "Dropped Keyspace answers"),
    ] {
        assert_eq!(answer(statement, 1, &mut schema), expected, "{statement}");
    }
    assert!(schema.left_out.is_empty());
}

/// Conditions on several columns that neither slices nor filters can apply, as Cassandra words it
/// at each write of the base table.
#[test]
fn a_view_of_rows_that_cannot_be_chosen_is_refused() {
    let schema = changed(
        &system::schema(),
        "CREATE KEYSPACE answers WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    );
    let schema = changed(&schema, "CREATE TABLE t (k int, a int, b int, c int, v int, PRIMARY KEY (k, a, b, c))");
    let context = DdlContext { switches: Switches { views: true, ..Switches::default() }, ..context(10) };
    for (condition, refused) in [
        ("(b, c) > (1, 2)", Some("Multi-column slice restrictions cannot be used for filtering.")),
        ("(b, c) IN ((1, 2), (3, 4))", Some("Multicolumn IN filters are not supported")),
        ("(b, c) = (1, 2)", None),
        ("b > 1 AND c IN (1, 2)", None),
    ] {
        let statement = format!(
            "CREATE MATERIALIZED VIEW m AS SELECT * FROM t WHERE k IS NOT NULL AND a IS NOT NULL AND {condition} \
             PRIMARY KEY (a, k, b, c)"
        );
        let parsed = crate::parse(&statement).expect("it is CQL");
        let error = apply(&parsed.statement, &context, &schema).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), refused, "{condition}");
    }
}

#[test]
fn the_script_of_describe_makes_its_schema() {
    let mut schema = system::schema();
    for (number, statement) in include_str!("../../testdata/describe/schema.cql").split(";\n").enumerate() {
        let text = statement.trim();
        let done_elsewhere = ["CREATE INDEX", "CREATE MATERIALIZED", "CREATE FUNCTION", "CREATE AGGREGATE"];
        if text.is_empty() || done_elsewhere.iter().any(|start| text.starts_with(start)) {
            continue;
        }
        let parsed = crate::parse(text).expect(text);
        if !super::is_ddl(&parsed.statement) {
            continue;
        }
        let context = DdlContext { new_table_id: TableId([number as u8; 16]), ..context(0) };
        match apply(&parsed.statement, &context, &schema) {
            Ok(Some((after, _))) => schema = after,
            Ok(None) => panic!("{text} changes nothing"),
            Err(error) => assert!(error.to_string().contains("not supported"), "{text}: {error}"),
        }
    }
    assert!(schema.table("shop", "every_type").is_some());
}

#[test]
fn an_altered_type_is_altered_where_it_is_used() {
    let mut schema = system::schema();
    for statement in [
        "CREATE KEYSPACE answers WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TYPE inner (a int)",
        "CREATE TYPE outer (i frozen<inner>)",
        "CREATE TABLE t (k int PRIMARY KEY, o frozen<outer>, l list<frozen<inner>>, n int)",
        "ALTER TYPE inner ADD b text",
    ] {
        schema = changed(&schema, statement);
    }
    let table = schema.table("answers", "t").expect("a table");
    for column in ["o", "l"] {
        let ty = &table.column_by_name(column).expect("a column").ty;
        let fields = |ty: &types::CqlType| matches!(ty, types::CqlType::Udt(udt, _) if udt.fields.len() == 2);
        assert!(ty.any(&mut |inner| fields(inner)), "{column}: {ty:?}");
    }
}

#[test]
fn columns_keep_their_ids_when_others_change() {
    let mut schema = system::schema();
    for statement in [
        "CREATE KEYSPACE answers WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE t (k int PRIMARY KEY, a int, c int)",
    ] {
        schema = changed(&schema, statement);
    }
    let id = |schema: &Schema, column: &str| {
        schema.table("answers", "t").expect("a table").column_by_name(column).expect("a column").id
    };
    let (a, c) = (id(&schema, "a"), id(&schema, "c"));
    let after = changed(&changed(&schema, "ALTER TABLE t ADD b int"), "ALTER TABLE t DROP a");
    assert_eq!(id(&after, "c"), c);
    let again = changed(&after, "ALTER TABLE t ADD a int");
    // memtables may hold cells of it that are newer than the drop
    assert_eq!(id(&again, "a"), a);
    assert_eq!(after.table("answers", "t").expect("a table").dropped_column_id("a"), Some(a));
    let dropped = &again.table("answers", "t").expect("a table").dropped["a"];
    assert_eq!(dropped.dropped_time, 1_700_000_000_000_000);
}

#[test]
fn events_say_what_happened() {
    let schema = system::schema();
    let parsed = crate::parse("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy'}").expect("valid");
    let (_, event) = apply(&parsed.statement, &context(1), &schema).expect("valid").expect("a change");
    assert_eq!((event.change, event.target), (SchemaChangeKind::Created, SchemaTarget::Keyspace));
    assert_eq!((event.keyspace.as_str(), event.name.as_str()), ("k", ""));
}

#[test]
fn no_replication_changes_while_nodes_move() {
    let schema = changed(
        &system::schema(),
        "CREATE KEYSPACE answers WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    );
    let parsed = crate::parse("ALTER KEYSPACE answers WITH durable_writes = false").expect("valid");
    let moving = DdlContext { moving: vec!["/127.0.0.2:7000".to_owned()], ..context(1) };
    let error = apply(&parsed.statement, &moving, &schema).expect_err("refused");
    let said = "Cannot alter RF while some endpoints are not in normal state (no range movements): [/127.0.0.2:7000]";
    assert_eq!(error, CqlError::Config(said.to_owned()));
    apply(&parsed.statement, &context(1), &schema).expect("nobody moves");
}

#[test]
fn doubtful_changes_are_warned_of() {
    let mut schema = system::schema();
    let cases = [
        (
            "CREATE KEYSPACE answers WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}",
            "Your replication factor 3 for keyspace answers is higher than the number of nodes 1",
        ),
        (
            "ALTER KEYSPACE answers WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 4}",
            "Your replication factor 4 for keyspace answers is higher than the number of nodes 1 for datacenter datacenter1\n\
             When increasing replication factor you need to run a full (-full) repair to distribute the data.",
        ),
        ("ALTER KEYSPACE answers WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 1}", ""),
        ("CREATE TABLE t (k int PRIMARY KEY)", ""),
    ];
    let context = context(1);
    for (statement, warnings) in cases {
        let parsed = crate::parse(statement).expect(statement);
        let after = changed(&schema, statement);
        assert_eq!(super::warnings(&parsed.statement, &context, &schema, &after).join("\n"), warnings, "{statement}");
        schema = after;
    }
}

/// Ids of columns and numbers of fields have 16 bits.
#[test]
fn tables_and_types_have_a_greatest_number_of_columns_and_fields() {
    let mut schema = system::schema();
    let keyspace = "CREATE KEYSPACE answers WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
    for statement in [keyspace, "CREATE TABLE t (k int PRIMARY KEY)"] {
        schema = changed(&schema, statement);
    }
    let columns = |count: usize| (0..count).map(|at| format!("c{at} int")).collect::<Vec<_>>().join(", ");
    for (statement, error) in [
        (
            format!("CREATE TABLE many (k int PRIMARY KEY, {})", columns(32_768)),
            "Table 'many' may have 32768 columns at most, but has 32769",
        ),
        (
            format!("ALTER TABLE t ADD ({})", columns(65_535)),
            "Table 'answers.t' may get 65534 columns more at most, but would get 65535",
        ),
        (format!("CREATE TYPE many ({})", columns(32_768)), "Type 'many' may have 32767 fields at most, but has 32768"),
    ] {
        assert_eq!(answer(&statement, 1, &mut schema), format!("error 2200 {error}"));
    }
}

/// Asks one statement after the other, in the keyspace `answers`, which is made.
fn asking(schema: &mut Schema) -> impl FnMut(&str) -> String {
    let mut number = 0;
    let mut ask = move |statement: &str| {
        number += 1;
        answer(statement, number, schema)
    };
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    ask(&format!("CREATE KEYSPACE answers WITH replication = {replication}"));
    ask
}

/// A type and a table with about as many names as they may have. Where each name is compared with
/// all others, this test takes minutes.
#[test]
fn tens_of_thousands_of_names_are_looked_up() {
    let mut schema = system::schema();
    let mut ask = asking(&mut schema);
    let names: Vec<String> = (1..32_767).rev().map(|number| format!("c{number:05}")).collect();
    let list = |separator: &str, form: &dyn Fn(&str) -> String| {
        names.iter().map(|name| form(name)).collect::<Vec<_>>().join(separator)
    };
    let declared = list(", ", &|name| format!("{name} int"));
    let renamed = list(" AND ", &|name| format!("{name} TO d{name}"));
    let twice = ask(&format!("CREATE TYPE many ({declared}, c00001 int)"));
    assert_eq!(twice, "error 2200 Duplicate field name 'c00001' in type 'many'");
    assert_eq!(ask(&format!("CREATE TYPE many ({declared})")), "Created Type answers many");
    assert_eq!(ask(&format!("ALTER TYPE many RENAME {renamed}")), "Updated Type answers many");
    let (key, order) = (names.join(", "), list(", ", &|name| format!("{name} DESC")));
    let columns = format!("k int, {declared}, PRIMARY KEY (k, {key})");
    let table = format!("CREATE TABLE many ({columns}) WITH CLUSTERING ORDER BY ({order})");
    assert_eq!(ask(&table), "Created Table answers many");
    assert_eq!(ask(&format!("ALTER TABLE many RENAME {renamed}")), "Updated Table answers many");
    drop(ask);
    let table = schema.table("answers", "many").expect("it was made");
    assert!(table.clustering.iter().all(|column| column.reversed && column.name.starts_with("dc")));
}

/// A dropped column may come back with another type inside of a frozen collection where Cassandra
/// can read it as that.
#[test]
fn frozen_collections_come_back() {
    let mut schema = system::schema();
    let mut ask = asking(&mut schema);
    ask("CREATE TABLE t (k int PRIMARY KEY)");
    for (before, after, is_taken) in [
        ("set<frozen<list<ascii>>>", "set<frozen<list<text>>>", true),
        ("map<frozen<set<ascii>>, int>", "map<frozen<set<text>>, int>", true),
        ("tuple<frozen<list<timestamp>>>", "tuple<frozen<list<varint>>>", true),
        ("set<timeuuid>", "set<uuid>", false),
        ("list<timeuuid>", "list<uuid>", true),
        // an element has a length in one of them, and none in the other
        ("list<int>", "list<varint>", false),
        ("map<int, int>", "map<int, varint>", false),
    ] {
        assert_eq!(ask(&format!("ALTER TABLE t ADD c frozen<{before}>")), "Updated Table answers t");
        assert_eq!(ask("ALTER TABLE t DROP c"), "Updated Table answers t");
        let answer = ask(&format!("ALTER TABLE t ADD c frozen<{after}>"));
        assert_eq!(!answer.starts_with("error 2200 Cannot add a column 'c'"), is_taken, "{after}: {answer}");
        ask("DROP TABLE t");
        ask("CREATE TABLE t (k int PRIMARY KEY)");
    }
}

/// As in Cassandra, a column does not get the name of another that the statement renames, whatever
/// their order.
#[test]
fn columns_are_not_renamed_in_a_chain() {
    let mut schema = system::schema();
    let mut ask = asking(&mut schema);
    assert_eq!(ask("CREATE TABLE t (k int, c int, PRIMARY KEY (k, c))"), "Created Table answers t");
    let refused = |old: &str, new: &str| {
        format!(
            "error 2200 Cannot rename column {old} to {new} in table 'answers.t'; another column with that name already \
             exists"
        )
    };
    assert_eq!(ask("ALTER TABLE t RENAME c TO d AND k TO c"), refused("k", "c"));
    assert_eq!(ask("ALTER TABLE t RENAME k TO c AND c TO d"), refused("k", "c"));
    assert_eq!(ask("ALTER TABLE t RENAME c TO d AND k TO e"), "Updated Table answers t");
    // of two new names for one column the last counts
    assert_eq!(ask("ALTER TABLE t RENAME d TO g AND d TO h"), "Updated Table answers t");
    assert_eq!(ask("ALTER TABLE t RENAME h TO i"), "Updated Table answers t");
}

/// User types that double with each step, and those that nest ever deeper, are refused before code
/// walks them. To walk the last of a hundred would take for ever.
#[test]
fn user_types_have_a_greatest_size_and_depth() {
    let mut schema = system::schema();
    let mut ask = asking(&mut schema);
    let mut last_of = |name: &str, fields: &[&str]| {
        ask(&format!("CREATE TYPE {name}0 (a int)"));
        for last in 0..100 {
            let fields: Vec<String> = fields.iter().map(|field| format!("{field} frozen<{name}{last}>")).collect();
            let answer = ask(&format!("CREATE TYPE {name}{} ({})", last + 1, fields.join(", ")));
            if answer.starts_with("error") {
                return (format!("frozen<{name}{last}>"), answer);
            }
        }
        panic!("they are refused")
    };
    let (large, too_large) = last_of("t", &["a", "b"]);
    let (deep, too_deep) = last_of("d", &["a"]);
    let (too_large, too_deep) = (too_large.as_str(), too_deep.as_str());
    let size = "error 2200 Types may take 16 MiB at most where the user types in them are written out, as files and \
                answers have them";
    assert_eq!(too_large, size);
    assert_eq!(too_deep, "error 2200 Types may nest 32 levels deep at most, user types included");
    let used = "error 2200 Cannot drop user type 'answers.d0' as it is still used by user types d1, d10";
    for (statement, expected) in [
        (format!("CREATE TABLE both (k int PRIMARY KEY, a {large}, b {large})"), too_large),
        (format!("CREATE TABLE one (k int PRIMARY KEY, a {large})"), "Created Table answers one"),
        (format!("ALTER TABLE one ADD b {large}"), too_large),
        (format!("ALTER TABLE one ADD IF NOT EXISTS a {large}"), "nothing"),
        ("ALTER TYPE t0 ADD c tuple<int, int, int, int>".to_owned(), too_large),
        ("ALTER TYPE t0 RENAME a TO b".to_owned(), "Updated Type answers t0"),
        (format!("CREATE TABLE deeper (k int PRIMARY KEY, l list<{deep}>)"), too_deep),
        (format!("CREATE TABLE deep (k int PRIMARY KEY, d {deep})"), "Created Table answers deep"),
        ("DROP TYPE d0".to_owned(), used),
    ] {
        let answer = ask(&statement);
        assert!(answer.starts_with(expected), "{statement}: {answer}");
    }
    drop(ask);
    let table = schema.table("answers", "one").expect("it was made");
    let ty = &table.column_by_name("a").expect("so was its column").ty;
    let is_renamed = |udt: &types::UserType| udt.name == "t0" && udt.fields[0].0 == "b";
    assert!(ty.any(&mut |ty| matches!(ty, types::CqlType::Udt(udt, _) if is_renamed(udt))));
}
