//! The captured links, and the tables that they are about.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use schema::{TableId, TableMetadata};
use serde_json::Value;

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
    captures::lines(&fs::read(testdata().join("links.jsonl.gz")).unwrap())
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
        let table = captures::table(told);
        ((text(&told["ring"]).to_owned(), table.id), Arc::new(table))
    })
    .collect()
}
