//! Seeds of reads between nodes: requests and answers captured of Cassandra 5.0.8, in
//! `crates/internode/testdata/reads.jsonl.gz`, with the tables that they are about.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use internode::payload::read_request::ReadRequest;
use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use serde_json::Value;
use types::{CqlType, UserType};

/// The tables, requests and answers of the captures.
pub struct Captures {
    /// The tables by id.
    pub tables: HashMap<TableId, Arc<TableMetadata>>,
    /// The requests as they were sent.
    pub requests: Vec<Bytes>,
    /// The answers as they were sent, each with the number of its request.
    pub answers: Vec<(usize, Bytes)>,
}

impl Captures {
    /// A request, decoded.
    pub fn request(&self, number: usize) -> ReadRequest {
        let tables = |id: TableId| self.tables.get(&id).cloned();
        ReadRequest::decode(&self.requests[number % self.requests.len()], &tables).expect("a captured request")
    }
}

/// The captures of one ring.
pub static CAPTURES: LazyLock<Captures> = LazyLock::new(|| {
    let mut captures = Captures { tables: HashMap::new(), requests: Vec::new(), answers: Vec::new() };
    for line in lines("reads.jsonl.gz").into_iter().filter(|line| line["ring"] == "v12") {
        if line.get("table").is_some() {
            let table = table(&line);
            captures.tables.insert(table.id, Arc::new(table));
            continue;
        }
        let number = captures.requests.len();
        captures.requests.push(hex(&line["request"]));
        let answers = line["answers"].as_array().into_iter().flatten();
        captures.answers.extend(answers.map(|answer| (number, hex(&answer["payload"]))));
    }
    captures
});

/// The lines of a file of captures in `crates/internode/testdata`.
pub(super) fn lines(name: &str) -> Vec<Value> {
    let path = crate::root().join("crates/internode/testdata").join(name);
    let packed = std::fs::read(path).expect("captures are in the tree");
    let mut text = String::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut text).expect("they are gzip");
    text.lines().map(|line| serde_json::from_str(line).expect("they are JSON")).collect()
}

pub(super) fn hex(text: &Value) -> Bytes {
    let text = text.as_str().unwrap_or_default();
    (0..text.len()).step_by(2).filter_map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

pub(super) fn table(told: &Value) -> TableMetadata {
    let user_type = |name: &str| {
        let user_type = UserType { keyspace: "cap".to_owned(), name: name.to_owned(), fields: Vec::new() };
        Some(Arc::new(user_type))
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let type_of = |value: &Value| types::cql_name::parse(&text(value), &user_type).unwrap_or(CqlType::Blob);
    let parts = [
        ("key", ColumnKind::PartitionKey),
        ("clustering", ColumnKind::Clustering),
        ("static", ColumnKind::Static),
        ("regular", ColumnKind::Regular),
    ];
    let mut specs = Vec::new();
    for (part, kind) in parts {
        for (position, column) in told[part].as_array().into_iter().flatten().enumerate() {
            let (name, ty) = (text(&column[0]), type_of(&column[1]));
            let reversed = told["reversed"].as_array().is_some_and(|reversed| reversed.contains(&column[0]));
            specs.push(ColumnSpec { name, kind, position, ty, reversed });
        }
    }
    let id = TableId::from_hex(&text(&told["table"]).replace('-', "")).expect("an id");
    let flags = TableFlags { counter: specs.iter().any(|spec| spec.ty.is_counter()), ..TableFlags::COMPOUND };
    let (keyspace, name, params) = (text(&told["keyspace"]), text(&told["name"]), TableParams::default());
    TableMetadata::new(id, &keyspace, &name, TableKind::Regular, flags, params, specs, BTreeMap::new(), None)
}

/// Requests.
pub fn requests() -> Vec<Vec<u8>> {
    CAPTURES.requests.iter().step_by(5).map(|request| request.to_vec()).collect()
}

/// Answers, each behind two bytes with the number of its request.
pub fn answers() -> Vec<Vec<u8>> {
    let seed = |(number, answer): &(usize, Bytes)| {
        let number = u16::try_from(*number).expect("the captures are few");
        [&number.to_be_bytes()[..], answer].concat()
    };
    CAPTURES.answers.iter().step_by(4).map(seed).collect()
}
