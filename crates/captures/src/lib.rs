//! Test data that was recorded of real Cassandra 5.0.8 nodes: packed lines of JSON, the bytes that
//! they hold as hexadecimal text, and the tables that they tell of.
//!
//! For tests and for the seeds of fuzzing only. Test data is part of the tree, so
//! data that cannot be read is a panic that says which part is wrong.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use bytes::Bytes;
use schema::table::ColumnSpec;
use schema::{ColumnKind, DroppedColumn, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use serde_json::Value;
use types::{CqlType, UserType};

/// The text that is packed with gzip, in one member or several.
pub fn text(gz: &[u8]) -> String {
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(gz).read_to_string(&mut text).expect("test data is packed text");
    text
}

/// The values that are packed with gzip, one a line.
pub fn lines(gz: &[u8]) -> Vec<Value> {
    text(gz).lines().map(|line| serde_json::from_str(line).expect("a line of test data is JSON")).collect()
}

/// The bytes of a hexadecimal text.
pub fn hex(text: &Value) -> Bytes {
    let text = string(text);
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("two digits")).collect()
}

fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

fn array(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

fn type_of(text: &str, told: &Value) -> CqlType {
    let user_type = |name: &str| {
        let names = array(&told["user_types"]);
        let user_type = UserType { keyspace: "cap".to_owned(), name: name.to_owned(), fields: Vec::new() };
        names.iter().any(|known| known == name).then(|| Arc::new(user_type))
    };
    types::cql_name::parse(text, &user_type).unwrap_or_else(|| panic!("no type: {text}"))
}

/// The table that a line of a capture tells of.
pub fn table(told: &Value) -> TableMetadata {
    let columns = |part: &str| -> Vec<(String, CqlType)> {
        let column = |column: &Value| (string(&column[0]).to_owned(), type_of(string(&column[1]), told));
        array(&told[part]).iter().map(column).collect()
    };
    let kinds = [
        ("key", ColumnKind::PartitionKey),
        ("clustering", ColumnKind::Clustering),
        ("static", ColumnKind::Static),
        ("regular", ColumnKind::Regular),
    ];
    let specs: Vec<ColumnSpec> = kinds
        .iter()
        .flat_map(|(part, kind)| {
            columns(part).into_iter().enumerate().map(|(position, (name, ty))| {
                let reversed = array(&told["reversed"]).iter().any(|reversed| *reversed == name);
                ColumnSpec { name, kind: *kind, position, ty, reversed }
            })
        })
        .collect();
    let dropped = columns("dropped")
        .into_iter()
        .map(|(name, ty)| (name.clone(), DroppedColumn { name, ty, kind: ColumnKind::Regular, dropped_time: 0 }));
    let counter = specs.iter().any(|spec| spec.ty.is_counter());
    TableMetadata::new(
        TableId::from_hex(&string(&told["table"]).replace('-', "")).expect("an id"),
        string(&told["keyspace"]),
        string(&told["name"]),
        TableKind::Regular,
        TableFlags { counter, ..TableFlags::COMPOUND },
        TableParams::default(),
        specs,
        dropped.collect::<BTreeMap<_, _>>(),
        None,
    )
}
