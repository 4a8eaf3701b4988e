//! Seeds of reads between nodes: requests and answers captured of Cassandra 5.0.8, in
//! `crates/internode/testdata/reads.jsonl.gz`, with the tables that they are about.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use captures::{hex, table};
use internode::payload::read_request::ReadRequest;
use schema::{TableId, TableMetadata};
use serde_json::Value;

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
    let mut found = Captures { tables: HashMap::new(), requests: Vec::new(), answers: Vec::new() };
    for line in lines("reads.jsonl.gz").into_iter().filter(|line| line["ring"] == "v12") {
        if line.get("table").is_some() {
            let table = table(&line);
            found.tables.insert(table.id, Arc::new(table));
            continue;
        }
        let number = found.requests.len();
        found.requests.push(hex(&line["request"]));
        let answers = line["answers"].as_array().into_iter().flatten();
        found.answers.extend(answers.map(|answer| (number, hex(&answer["payload"]))));
    }
    found
});

/// The lines of a file of captures in `crates/internode/testdata`.
pub(super) fn lines(name: &str) -> Vec<Value> {
    let path = crate::root().join("crates/internode/testdata").join(name);
    captures::lines(&std::fs::read(path).expect("captures are in the tree"))
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
