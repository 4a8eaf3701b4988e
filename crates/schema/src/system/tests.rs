//! Tests: the built-in tables equal those that a node of Cassandra 5.0.8 listed
//! (`testdata/system`).

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value};

use super::*;
use crate::system_schema::{SchemaRow, SchemaTable, rows_of, values};
use crate::{id::TableId, type_text};

const SCHEMA_ROWS: &str = include_str!("../../testdata/system/system_schema.jsonl");
const VIRTUAL_ROWS: &str = include_str!("../../testdata/system/system_virtual_schema.jsonl");

fn recorded(text: &str) -> Vec<(String, Map<String, Value>)> {
    text.lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
        .filter_map(|line| {
            let table = line["table"].as_str().expect("a table").to_owned();
            line.get("row").map(|row| (table, row.as_object().expect("a row").clone()))
        })
        .collect()
}

/// The value of a recorded JSON cell, as bytes of the type.
fn encode(ty: &str, value: &Value) -> Bytes {
    let text_of = |value: &Value| value.as_str().expect("text").to_owned();
    match ty {
        "text" => values::text(value.as_str().expect("text")),
        "boolean" => values::boolean(value.as_bool().expect("boolean")),
        "int" => values::int(i32::try_from(value.as_i64().expect("int")).expect("int")),
        "double" => values::double(value.as_f64().expect("double")),
        "uuid" => {
            let id = TableId::from_hex(&text_of(value).replace('-', "")).expect("uuid");
            Bytes::copy_from_slice(&id.0)
        }
        "blob" => hex(&text_of(value)),
        "frozen<set<text>>" | "frozen<list<text>>" => {
            values::text_list(value.as_array().expect("a list").iter().map(text_of))
        }
        "frozen<map<text, text>>" => {
            let map: BTreeMap<_, _> =
                value.as_object().expect("a map").iter().map(|(key, value)| (key.clone(), text_of(value))).collect();
            values::text_map(&map)
        }
        "frozen<map<text, blob>>" => values::blob_map(&BTreeMap::new()),
        "timestamp" => values::bigint(i64::MAX / 1000),
        other => panic!("no encoding for {other}"),
    }
}

fn hex(text: &str) -> Bytes {
    let digits = text.strip_prefix("0x").expect("0x");
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex")).collect()
}

fn recorded_rows(schema: &Schema) -> Vec<SchemaRow> {
    recorded(SCHEMA_ROWS)
        .into_iter()
        .map(|(name, mut row)| {
            let table = schema.table("system_schema", &name).expect("a table");
            let mut take = |column: &crate::ColumnMetadata| {
                let value = row.remove(&column.name).expect("a cell");
                (!value.is_null()).then(|| encode(&type_text::print(&column.ty), &value))
            };
            let keyspace = take(&table.partition_key[0]).and_then(|name| values::read_text(&name)).expect("a key");
            let clustering = table.clustering.iter().map(|column| take(column).expect("a key")).collect();
            let mut cells: Vec<_> =
                table.regulars.iter().filter_map(|column| Some((column.name.clone(), take(column)?))).collect();
            cells.sort();
            assert!(row.is_empty(), "columns that {name} does not have: {row:?}");
            SchemaRow { table: SchemaTable::from_name(&name).expect("a schema table"), keyspace, clustering, cells }
        })
        .collect()
}

fn sorted(mut rows: Vec<SchemaRow>) -> Vec<SchemaRow> {
    rows.iter_mut().for_each(|row| row.cells.sort());
    rows.sort_by(|a, b| (a.table, &a.keyspace, &a.clustering).cmp(&(b.table, &b.keyspace, &b.clustering)));
    rows
}

#[test]
fn stored_keyspaces_have_the_rows_that_cassandra_shows() {
    let schema = schema();
    let ours: Vec<_> = schema.keyspaces.values().filter(|ks| !ks.is_virtual).flat_map(|ks| rows_of(ks)).collect();
    let (ours, theirs) = (sorted(ours), sorted(recorded_rows(&schema)));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.len(), theirs.len());
}

#[test]
fn virtual_keyspaces_have_the_columns_that_cassandra_shows() {
    let schema = schema();
    let mut columns = 0;
    for (name, row) in recorded(VIRTUAL_ROWS) {
        let text = |column: &str| row.get(column).and_then(Value::as_str).unwrap_or_default();
        let keyspace = schema.keyspace(text("keyspace_name")).expect("a keyspace");
        assert!(keyspace.is_virtual);
        if name == "keyspaces" {
            continue;
        }
        let table = keyspace.tables.get(text("table_name")).expect("a table");
        if name == "tables" {
            assert_eq!(table.params.comment, text("comment"));
            continue;
        }
        let column = table.column_by_name(text("column_name")).expect("a column");
        let position = if column.is_primary_key() { i64::try_from(column.position).expect("small") } else { -1 };
        assert_eq!(type_text::print(&column.ty), text("type"));
        assert_eq!((column.kind.name(), Some(position)), (text("kind"), row["position"].as_i64()));
        columns += 1;
    }
    let ours: usize = schema
        .keyspaces
        .values()
        .filter(|ks| ks.is_virtual)
        .flat_map(|ks| ks.tables.values())
        .map(|t| t.specs().len())
        .sum();
    assert_eq!(ours, columns);
}

#[test]
fn the_definitions_survive_the_way_through_rows() {
    let schema = schema();
    let rows: Vec<_> = schema.keyspaces.values().filter(|ks| !ks.is_virtual).flat_map(|ks| rows_of(ks)).collect();
    let loaded = Schema::from_rows(rows, None);
    assert_eq!(loaded.schema, schema);
    assert_eq!(loaded.ignored, Vec::<String>::new());
}
