//! Seeds of Paxos: payloads captured of Cassandra 5.0.8, with the tables that they are about, in
//! `crates/internode/testdata/paxos.jsonl.gz`.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use captures::{hex, table};
use schema::{TableId, TableMetadata};

use super::reads::lines;

/// The tables, and the payloads with the names of their verbs.
pub struct Captures {
    /// The tables of all captured rings by id.
    pub tables: HashMap<TableId, Arc<TableMetadata>>,
    /// A verb's name and a payload.
    pub payloads: Vec<(String, Vec<u8>)>,
}

/// The captures.
pub static CAPTURES: LazyLock<Captures> = LazyLock::new(|| {
    let mut found = Captures { tables: HashMap::new(), payloads: Vec::new() };
    for line in lines("paxos.jsonl.gz") {
        if line.get("table").is_some() {
            let table = table(&line);
            found.tables.insert(table.id, Arc::new(table));
        } else {
            let verb = line["verb"].as_str().unwrap_or_default().to_owned();
            found.payloads.push((verb, hex(&line["payload"]).to_vec()));
        }
    }
    found
});

/// Payloads, each behind the number of a decoder of [`crate::bodies::paxos`].
pub fn payloads() -> Vec<Vec<u8>> {
    let number = |verb: &str| crate::bodies::paxos::VERBS.iter().position(|verbs| verbs.contains(&verb));
    let seed = |(verb, payload): &(String, Vec<u8>)| Some([&[u8::try_from(number(verb)?).ok()?][..], payload].concat());
    CAPTURES.payloads.iter().filter_map(seed).step_by(2).collect()
}
