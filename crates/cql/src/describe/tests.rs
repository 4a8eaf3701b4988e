//! Every file of `testdata/describe` that is not about views: the same statement over the same
//! schema must give what Cassandra 5.0.8 gave. Rows about views are left out of the expected
//! answers; table ids and the times of drops differ.

// Tests may read files.
#![allow(clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use schema::{IndexKind, IndexMetadata, KeyspaceMetadata, Schema, TableId, TableMetadata, system};
use types::{CqlType, collection};

use super::describe;
use crate::ast::Statement;
use crate::coordinator::ClusterInfo;
use crate::ddl::{self, DdlContext};
use crate::error::CqlError;
use crate::options::QueryOptions;
use crate::result::ResultSet;

/// The schema of `schema.cql`; of its indexes only the one that the answers show.
fn described_schema() -> Schema {
    let mut schema = system::schema();
    for (number, text) in include_str!("../../testdata/describe/schema.cql").split(";\n").enumerate() {
        let Ok(parsed) = crate::parse(text) else {
            continue;
        };
        let context = DdlContext {
            keyspace: None,
            now_micros: 1,
            new_table_id: TableId([number as u8; 16]),
            datacenters: BTreeMap::from([("datacenter1".to_owned(), 1)]),
            moving: Vec::new(),
            default_index: None,
            default_compaction: std::sync::Arc::new(schema::TableParams::default().compaction),
            restoring: false,
            switches: crate::ddl::Switches { user_functions: true, ..crate::ddl::Switches::default() },
            guardrails: None,
        };
        if let Ok(Some((after, _))) = ddl::apply(&parsed.statement, &context, &schema) {
            schema = after;
        }
    }
    let index = IndexMetadata {
        name: "simple_by_name".to_owned(),
        kind: IndexKind::Composites,
        options: [("target".to_owned(), "name".to_owned())].into(),
    };
    let mut keyspace = KeyspaceMetadata::clone(schema.keyspace("shop").expect("the keyspace"));
    let mut table = TableMetadata::clone(&keyspace.tables["simple"]);
    table.indexes.insert(index.name.clone(), index);
    keyspace.tables.insert("simple".to_owned(), Arc::new(table));
    schema.with_keyspace(keyspace)
}

fn run(statement: &str, keyspace: Option<&str>, options: &QueryOptions) -> Result<ResultSet, CqlError> {
    let parsed = crate::parse(statement).expect(statement);
    let Statement::Describe(statement) = parsed.statement else {
        panic!("a DESCRIBE");
    };
    let ownership = |keyspace: &str| vec![(-5, vec![format!("/{keyspace}:7000"), "/10.0.0.2:7000".to_owned()])];
    describe(&statement, keyspace, &described_schema(), &ClusterInfo::default(), ownership, options)
}

/// The rows in the form of the files.
fn text(result: &ResultSet) -> Vec<String> {
    let mut values = Vec::new();
    let mut rest = &result.rows[..];
    while let [a, b, c, d, more @ ..] = rest {
        let length = i32::from_be_bytes([*a, *b, *c, *d]) as usize;
        values.push(String::from_utf8_lossy(&more[..length]).into_owned());
        rest = &more[length..];
    }
    let width = result.metadata.columns.len();
    let row = |row: &[String]| format!("# {}\n{}", row[..width - 1].join(" | "), row[width - 1]);
    values.chunks(width).map(row).collect()
}

/// The rows of a file, without those of kinds that we do not have.
fn expected_rows(part: &str) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for line in part.lines() {
        match rows.last_mut() {
            Some(row) if !line.starts_with("# ") => *row += &format!("\n{line}"),
            _ => rows.push(line.to_owned()),
        }
    }
    rows.retain(|row| !row.contains("| materialized_view |"));
    rows
}

/// Without what differs in each run.
fn comparable(row: &str) -> String {
    let line = |line: &str| match line {
        _ if line.contains("WITH ID = ") => ") WITH ID = X".to_owned(),
        _ if line.contains("USING TIMESTAMP") => line.split("USING").next().unwrap_or("").to_owned(),
        _ => line.trim_end().to_owned(),
    };
    row.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn answers_are_those_of_cassandra() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/describe");
    let mut count = 0;
    for entry in fs::read_dir(folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        let file = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let ours = !file.starts_with("materialized_");
        if path.extension().is_none_or(|extension| extension != "txt") || !ours {
            continue;
        }
        let content = fs::read_to_string(&path).expect("a file");
        let mut parts = content.splitn(3, "----\n");
        let mut next = || parts.next().unwrap_or("").trim_end();
        let (statement, columns, rows) = (next(), next(), next());
        match run(statement, None, &QueryOptions::default()) {
            Err(error) => assert!(columns.contains(&format!("message=\"{error}\"")), "{file}: {error}"),
            Ok(result) => {
                let names: Vec<&str> = result.metadata.columns.iter().map(|column| &*column.name).collect();
                assert_eq!(names.join(" | "), columns, "{file}");
                let is: Vec<String> = text(&result).iter().map(|row| comparable(row)).collect();
                let should: Vec<String> = expected_rows(rows).iter().map(|row| comparable(row)).collect();
                assert_eq!(is.join("\n"), should.join("\n"), "{file}");
            }
        }
        count += 1;
    }
    assert!(count > 30, "{count}");
}

#[test]
fn pages_add_up() {
    let whole = text(&run("DESCRIBE SCHEMA", None, &QueryOptions::default()).expect("valid"));
    let mut options = QueryOptions { page_size: Some(3), ..QueryOptions::default() };
    let mut pages = Vec::new();
    loop {
        let page = run("DESCRIBE SCHEMA", None, &options).expect("valid");
        pages.extend(text(&page));
        match page.paging_state {
            Some(state) => options.paging_state = Some(state.into()),
            None => break,
        }
    }
    assert_eq!(pages, whole);
    options.paging_state = Some(vec![1; 24].into());
    let refused = run("DESCRIBE SCHEMA", None, &options).expect_err("another schema");
    assert_eq!(refused.to_string(), super::SCHEMA_CHANGED);
}

#[test]
fn the_current_keyspace_counts() {
    let none = QueryOptions::default();
    assert_eq!(text(&run("DESCRIBE TABLE only_key", Some("shop"), &none).expect("valid")).len(), 1);
    assert_eq!(text(&run("DESCRIBE TABLES", Some("MixedCase"), &none).expect("valid")).len(), 1);
    let cluster = run("DESCRIBE CLUSTER", Some("shop"), &none).expect("valid");
    assert_eq!(cluster.metadata.columns.len(), 4);
    // the nodes that hold the range of this keyspace
    let nodes = collection::build_list(&["/shop:7000", "/10.0.0.2:7000"]);
    let ranges = collection::build_map(&CqlType::Text, vec![("-5", nodes)]);
    assert!(cluster.rows.ends_with(&ranges), "{:?}", cluster.rows);
    assert_eq!(run("DESCRIBE CLUSTER", Some("system"), &none).expect("valid").metadata.columns.len(), 3);
    let error = run("DESCRIBE nosuch", Some("shop"), &none).expect_err("nothing of that name");
    assert_eq!(error.to_string(), "'nosuch' not found in keyspace 'shop'");
}
