//! The captured links, and the tables that they are about.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use schema::table::ColumnSpec;
use schema::{ColumnKind, DroppedColumn, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use serde_json::Value;
use types::{CqlType, UserType};

/// One side of a captured link: its bytes, and its messages as an independent decoder has them.
pub struct Side {
    /// Name of the file.
    pub file: String,
    /// The ring: table ids are those of a ring.
    pub ring: String,
    /// Bytes behind the handshake.
    pub bytes: Bytes,
    /// The messages in order.
    pub messages: Vec<Value>,
}

pub fn testdata() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

fn lines() -> Vec<Value> {
    let gz = fs::read(testdata().join("links.jsonl.gz")).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(&gz[..]).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// Both sides of all links.
pub fn sides() -> Vec<Side> {
    let mut sides = Vec::new();
    for line in lines().iter().filter(|line| line.get("opener").is_some()) {
        for (side, handshake) in [("opener", 19), ("acceptor", internode::Accept::SIZE)] {
            let file = text(&line[side]).to_owned();
            let bytes = Bytes::from(fs::read(testdata().join("links").join(&file)).unwrap()).slice(handshake..);
            let messages = line[format!("{side}_messages")].as_array().unwrap().clone();
            sides.push(Side { file, ring: text(&line["ring"]).to_owned(), bytes, messages });
        }
    }
    sides
}

/// The tables by ring and id.
pub fn tables() -> HashMap<(String, TableId), Arc<TableMetadata>> {
    let lines = lines();
    let told = lines.iter().filter(|line| line.get("table").is_some());
    told.map(|told| {
        let table = table(told);
        ((text(&told["ring"]).to_owned(), table.id), Arc::new(table))
    })
    .collect()
}

fn type_of(text: &str, told: &Value) -> CqlType {
    let user_type = |name: &str| {
        let names = told["user_types"].as_array().unwrap();
        let user_type = UserType { keyspace: "cap".to_owned(), name: name.to_owned(), fields: Vec::new() };
        names.iter().any(|known| known == name).then(|| Arc::new(user_type))
    };
    types::cql_name::parse(text, &user_type).unwrap_or_else(|| panic!("no type: {text}"))
}

fn table(told: &Value) -> TableMetadata {
    let columns = |part: &str| -> Vec<(String, CqlType)> {
        let columns = told[part].as_array().unwrap();
        columns.iter().map(|column| (text(&column[0]).to_owned(), type_of(text(&column[1]), told))).collect()
    };
    let kinds = [
        ("key", ColumnKind::PartitionKey),
        ("clustering", ColumnKind::Clustering),
        ("static", ColumnKind::Static),
        ("regular", ColumnKind::Regular),
    ];
    let is_reversed = |name: &str| told["reversed"].as_array().unwrap().iter().any(|reversed| reversed == name);
    let specs: Vec<ColumnSpec> = kinds
        .iter()
        .flat_map(|(part, kind)| {
            columns(part).into_iter().enumerate().map(|(position, (name, ty))| {
                let reversed = is_reversed(&name);
                ColumnSpec { name, kind: *kind, position, ty, reversed }
            })
        })
        .collect();
    let dropped = columns("dropped")
        .into_iter()
        .map(|(name, ty)| (name.clone(), DroppedColumn { name, ty, kind: ColumnKind::Regular, dropped_time: 0 }));
    let counter = specs.iter().any(|spec| spec.ty.is_counter());
    TableMetadata::new(
        TableId::from_hex(&text(&told["table"]).replace('-', "")).unwrap(),
        text(&told["keyspace"]),
        text(&told["name"]),
        TableKind::Regular,
        TableFlags { counter, ..TableFlags::COMPOUND },
        TableParams::default(),
        specs,
        dropped.collect::<BTreeMap<_, _>>(),
        None,
    )
}
