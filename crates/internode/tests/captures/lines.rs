//! Captures of real Cassandra 5.0.8 rings: lines of JSON, first the tables, then messages.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use bytes::Bytes;
use schema::table::ColumnSpec;
use schema::{ColumnKind, DroppedColumn, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use serde_json::Value;
use types::{CqlType, UserType};

/// The lines of a capture, which is packed with gzip.
pub fn lines(gz: &[u8]) -> Vec<Value> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(gz).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The bytes of a hexadecimal text.
pub fn hex(text: &Value) -> Bytes {
    let text = text.as_str().unwrap();
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn type_of(text: &str, told: &Value) -> CqlType {
    let user_type = |name: &str| {
        let names = told["user_types"].as_array().unwrap();
        let user_type = UserType { keyspace: "cap".to_owned(), name: name.to_owned(), fields: Vec::new() };
        names.iter().any(|known| known == name).then(|| Arc::new(user_type))
    };
    types::cql_name::parse(text, &user_type).unwrap_or_else(|| panic!("no type: {text}"))
}

/// The table that a line of a capture tells of.
pub fn table(told: &Value) -> TableMetadata {
    let columns = |part: &str| -> Vec<(String, CqlType)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let columns = told[part].as_array().unwrap();
        columns.iter().map(|column| (text(&column[0]), type_of(&text(&column[1]), told))).collect()
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
                let reversed = told["reversed"].as_array().unwrap().iter().any(|reversed| *reversed == name);
                ColumnSpec { name, kind: *kind, position, ty, reversed }
            })
        })
        .collect();
    let dropped = columns("dropped")
        .into_iter()
        .map(|(name, ty)| (name.clone(), DroppedColumn { name, ty, kind: ColumnKind::Regular, dropped_time: 0 }));
    let counter = specs.iter().any(|spec| spec.ty.is_counter());
    TableMetadata::new(
        TableId::from_hex(&told["table"].as_str().unwrap().replace('-', "")).unwrap(),
        told["keyspace"].as_str().unwrap(),
        told["name"].as_str().unwrap(),
        TableKind::Regular,
        TableFlags { counter, ..TableFlags::COMPOUND },
        TableParams::default(),
        specs,
        dropped.collect::<BTreeMap<_, _>>(),
        None,
    )
}
