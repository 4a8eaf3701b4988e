//! Paxos messages that real Cassandra 5.0.8 nodes sent each other, read and written again byte for
//! byte, and compared with what a decoder of another hand found in them.
//!
//! `testdata/paxos.jsonl.gz` holds the payloads of three rings (as `golden.rs`), behind the tables
//! that they are about.

#![allow(clippy::disallowed_methods, clippy::unwrap_used, missing_docs)] // reads its captures, as any test may

#[path = "captures/lines.rs"]
mod captures;

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use captures::{hex, table};
use internode::InternodeError;
use internode::payload::paxos::{Ballot, BallotFlag, Commit, PrepareAnswer, decode_accepted, encode_accepted};
use schema::{TableId, TableMetadata};
use serde_json::{Value, json};

type Tables = HashMap<TableId, Arc<TableMetadata>>;

/// Calls `see` with each captured message: its tables, its payload and its line.
fn messages(mut see: impl FnMut(&Tables, &Bytes, &Value)) {
    let mut rings: HashMap<String, Tables> = HashMap::new();
    for told in captures::lines(include_bytes!("../testdata/paxos.jsonl.gz")) {
        let tables = rings.entry(told["ring"].as_str().unwrap().to_owned()).or_default();
        if told.get("table").is_some() {
            let table = table(&told);
            tables.insert(table.id, Arc::new(table));
        } else {
            see(tables, &hex(&told["payload"]), &told);
        }
    }
}

/// What the other decoder tells of a commit: its ballot, key, and the clusterings of its rows.
fn of_commit(commit: &Commit) -> Value {
    let update = &commit.update;
    let key: String = update.key.key.iter().map(|byte| format!("{byte:02x}")).collect();
    json!([
        commit.ballot.to_string(),
        format!("{}.{}", update.table.keyspace, update.table.name),
        key,
        update.rows.len(),
        update.static_row.is_some()
    ])
}

fn told_commit(told: &Value) -> Value {
    let update = &told["update"];
    json!([
        told["ballot"],
        update["table"],
        update["key"]["hex"],
        update["rows"].as_array().unwrap().len(),
        update.get("static").is_some()
    ])
}

/// What a payload says, what the other decoder says, and the payload written again. None: the verb
/// is not one of v1.
fn payload_of_v1(verb: &str, payload: &Bytes, tables: &Tables, told: &Value) -> Option<(Value, Value, Vec<u8>)> {
    let find = |id: TableId| tables.get(&id).cloned();
    Some(match verb {
        "PAXOS_PREPARE_REQ" | "PAXOS_PROPOSE_REQ" | "PAXOS_COMMIT_REQ" => {
            let commit = Commit::decode(payload, &find).unwrap();
            (of_commit(&commit), told_commit(told), commit.encode())
        }
        "PAXOS_PREPARE_RSP" => {
            let answer = PrepareAnswer::decode(payload, &find).unwrap();
            let commits = json!([answer.promised, of_commit(&answer.in_progress), of_commit(&answer.most_recent)]);
            let told = json!([told["promised"], told_commit(&told["in_progress"]), told_commit(&told["committed"])]);
            (commits, told, answer.encode())
        }
        "PAXOS_PROPOSE_RSP" => {
            let accepted = decode_accepted(payload).unwrap();
            (json!(accepted), told["accepted"].clone(), encode_accepted(accepted))
        }
        _ => return None,
    })
}

#[test]
fn captured_messages_of_v1() {
    let mut read = 0;
    messages(|tables, payload, told| {
        let (file, verb) = (told["file"].as_str().unwrap(), told["verb"].as_str().unwrap());
        let Some((said, expected, again)) = payload_of_v1(verb, payload, tables, &told["decoded"]) else { return };
        assert_eq!(said, expected, "{file}");
        assert_eq!(again, *payload, "{file}");
        read += 1;
    });
    assert_eq!(read, 80);
}

#[test]
fn captured_ballots_are_the_time_of_what_they_write() {
    let mut compared = 0;
    messages(|tables, payload, told| {
        if told["verb"] != "PAXOS_COMMIT_REQ" || told["ring"] != "v12" {
            return;
        }
        let commit = Commit::decode(payload, &|id| tables.get(&id).cloned()).unwrap();
        assert_eq!(commit.ballot.flag(), BallotFlag::Global);
        let rows = commit.update.rows.iter().chain(&commit.update.static_row);
        for row in rows.filter(|row| row.deletion.is_live()) {
            assert_eq!(row.max_timestamp(), commit.ballot.micros(), "{}", told["file"]);
            compared += 1;
        }
    });
    assert_eq!(compared, 9);
}

#[test]
fn broken_payloads_are_refused() {
    let mut cut = 0;
    messages(|tables, payload, told| {
        let find = |id: TableId| tables.get(&id).cloned();
        match told["verb"].as_str().unwrap() {
            "PAXOS_COMMIT_REQ" => {
                let id = Commit::decode(payload, &find).unwrap().update.table.id;
                assert_eq!(Commit::decode(payload, &|_| None), Err(InternodeError::UnknownTable(id)));
                (0..payload.len()).for_each(|end| assert!(Commit::decode(&payload.slice(..end), &find).is_err()));
            }
            "PAXOS_PREPARE_RSP" => {
                (0..payload.len()).for_each(|end| assert!(PrepareAnswer::decode(&payload.slice(..end), &find).is_err()))
            }
            _ => return,
        }
        let longer = Bytes::from([&payload[..], &[0]].concat());
        assert!(Commit::decode(&longer, &find).is_err() && PrepareAnswer::decode(&longer, &find).is_err());
        cut += 1;
    });
    assert!(cut > 20, "{cut} payloads were cut");
    assert_eq!(decode_accepted(&[]).is_err(), decode_accepted(&[1, 0]).is_err());
    assert_eq!(Ballot::NONE.latest(Ballot::NONE), Ballot::NONE);
}
