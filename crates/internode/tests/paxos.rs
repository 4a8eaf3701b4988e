//! Paxos messages that real Cassandra 5.0.8 nodes sent each other, read and written again byte for
//! byte, and compared with what a decoder of another hand found in them.
//!
//! `testdata/paxos.jsonl.gz` holds the payloads of three rings (as `golden.rs`), behind the tables
//! that they are about.

#![allow(clippy::disallowed_methods, clippy::unwrap_used, missing_docs)] // reads its captures, as any test may

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use captures::{hex, table};
use internode::InternodeError;
use internode::payload::paxos::cleanup::{Cleanup, CleanupHistory, CleanupOutcome, Complete, History, StartPrepare};
use internode::payload::paxos::{
    Ballot, BallotFlag, Commit, CommitAndPrepare, Electorate, PrepareAnswer, PrepareV2, PrepareV2Answer, Prepared,
    Refresh, RepairAnswer, RepairRequest, decode_accepted, decode_superseded, encode_accepted, encode_superseded,
};
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

/// A commit as the other decoder tells it: its ballot, key, and the clusterings of its rows.
fn of_commit(commit: &Commit) -> Value {
    let update = &commit.update;
    let key = hex_of(&update.key.key);
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

/// A commit, and the same if there is none.
fn of_maybe(commit: Option<&Commit>) -> Value {
    commit.map_or(Value::Null, of_commit)
}

fn told_maybe(told: &Value) -> Value {
    if told.is_object() { told_commit(told) } else { Value::Null }
}

fn of_ballot(ballot: Option<&Ballot>) -> Value {
    ballot.map_or(Value::Null, |ballot| json!(ballot.to_string()))
}

fn of_electorate(electorate: &Electorate) -> [Value; 2] {
    [&electorate.natural, &electorate.pending].map(|list| list.iter().map(ToString::to_string).collect())
}

fn of_prepare(prepare: &PrepareV2) -> Value {
    let [natural, pending] = of_electorate(&prepare.electorate);
    let has_read = matches!(prepare.prepared, Prepared::Read(_));
    let flags = u8::from(has_read) | if prepare.is_for_write { 0 } else { 2 };
    json!([prepare.ballot.to_string(), natural, pending, flags, hex_of(&prepare.prepared.key().key)])
}

fn told_prepare(told: &Value) -> Value {
    let key = told.get("read").map_or(&told["key"]["key"], |read| &read["key"]["hex"]);
    json!([told["ballot"], told["natural"], told["pending"], told["flags"], key])
}

fn hex_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn of_answer(answer: &PrepareV2Answer) -> Value {
    match answer {
        PrepareV2Answer::Rejected { superseded_by } => json!({"superseded_by": superseded_by.to_string()}),
        PrepareV2Answer::Permitted(permission) => json!({
            "low_bound": permission.low_bound,
            "accepted": of_maybe(permission.accepted.as_ref()),
            "committed": of_commit(&permission.committed),
            "read": permission.read.is_some(),
            "is_stable": permission.is_stable,
            "endpoints": permission.endpoints.len(),
        }),
    }
}

fn told_answer(told: &Value) -> Value {
    let flags = told["flags"].as_u64().unwrap();
    if flags == 0 {
        return json!({"superseded_by": told["superseded_by"]});
    }
    json!({
        "low_bound": told["low_bound"],
        "accepted": told_maybe(&told["accepted"]),
        "committed": told_commit(&told["committed"]),
        "read": told["read"].is_object(),
        "is_stable": flags & 8 != 0,
        "endpoints": told["gossip"].as_object().unwrap().len(),
    })
}

fn of_history(history: &History) -> Value {
    let entries: Vec<_> = history.entries.iter().map(|(token, ballot)| json!([token.0, ballot.to_string()])).collect();
    json!({"entries": entries, "last": history.last.to_string()})
}

/// The content of a payload of v1, the other decoder's words for it, and the payload written again.
/// None: the verb is not one of v1.
fn payload_of_v1(verb: &str, payload: &Bytes, tables: &Tables, told: &Value) -> Option<(Value, Value, Vec<u8>)> {
    let find = |id: TableId| tables.get(&id).cloned();
    Some(match verb {
        "PAXOS_PREPARE_REQ" | "PAXOS_PROPOSE_REQ" | "PAXOS_COMMIT_REQ" | "PAXOS2_PROPOSE_REQ" => {
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

/// The content of a payload of v2, the other decoder's words for it, and the payload written again.
/// None: the verb is not one of v2.
fn payload_of_v2(verb: &str, payload: &Bytes, tables: &Tables, told: &Value) -> Option<(Value, Value, Vec<u8>)> {
    let find = |id: TableId| tables.get(&id).cloned();
    Some(match verb {
        "PAXOS2_PREPARE_REQ" => {
            let prepare = PrepareV2::decode(payload, &find).unwrap();
            (of_prepare(&prepare), told_prepare(told), prepare.encode())
        }
        "PAXOS2_COMMIT_AND_PREPARE_REQ" => {
            let both = CommitAndPrepare::decode(payload, &find).unwrap();
            let told = json!([told_commit(&told["commit"]), told_prepare(told)]);
            (json!([of_commit(&both.commit), of_prepare(&both.prepare)]), told, both.encode())
        }
        "PAXOS2_PREPARE_RSP" | "PAXOS2_COMMIT_AND_PREPARE_RSP" => {
            let answer = PrepareV2Answer::decode(payload, &find).unwrap();
            (of_answer(&answer), told_answer(told), answer.encode().unwrap())
        }
        "PAXOS2_PREPARE_REFRESH_REQ" => {
            let refresh = Refresh::decode(payload, &find).unwrap();
            let said = json!([refresh.promised.to_string(), of_commit(&refresh.missing)]);
            (said, json!([told["promised"], told_commit(&told["missing"])]), refresh.encode())
        }
        "PAXOS2_PREPARE_REFRESH_RSP" | "PAXOS2_PROPOSE_RSP" => {
            let by = decode_superseded(payload).unwrap();
            let told = told.get("superseded_by").or(told.get("by")).cloned().unwrap_or(Value::Null);
            (of_ballot(by.as_ref()), told, encode_superseded(by.as_ref()))
        }
        "PAXOS2_REPAIR_REQ" => {
            let request = RepairRequest::decode(payload, &find).unwrap();
            (json!(hex_of(&request.key.key)), told["key"]["key"].clone(), request.encode())
        }
        "PAXOS2_REPAIR_RSP" => {
            let answer = RepairAnswer::decode(payload, &find).unwrap();
            let commits = json!([of_maybe(answer.accepted.as_ref()), of_commit(&answer.committed)]);
            let said = json!([answer.latest_witnessed.to_string(), commits]);
            let commits = json!([told_maybe(&told["accepted"]), told_commit(&told["committed"])]);
            (said, json!([told["latest"], commits]), answer.encode())
        }
        _ => return None,
    })
}

/// The content of a payload of the repair of Paxos, the other decoder's words for it, and the
/// payload written again. None: the verb is none of that repair.
fn payload_of_cleanup(verb: &str, payload: &Bytes, told: &Value) -> Option<(Value, Value, Vec<u8>)> {
    let count = |told: &Value| told["ranges"].as_array().unwrap().len();
    Some(match verb {
        "PAXOS2_CLEANUP_START_PREPARE_REQ" => {
            let start = StartPrepare::decode(payload).unwrap();
            (json!(start.ranges.len()), json!(count(told)), start.encode().unwrap())
        }
        "PAXOS2_CLEANUP_START_PREPARE_RSP" | "PAXOS2_CLEANUP_FINISH_PREPARE_REQ" => {
            let message = CleanupHistory::decode(payload).unwrap();
            let bound = told.get("high_bound").unwrap_or(&told["ballot"]);
            let said = json!([message.high_bound.to_string(), of_history(&message.history)]);
            (said, json!([bound, told["history"]]), message.encode())
        }
        "PAXOS2_CLEANUP_REQ" => {
            let cleanup = Cleanup::decode(payload).unwrap();
            (json!(cleanup.ranges.len()), json!(count(told)), cleanup.encode())
        }
        "PAXOS2_CLEANUP_RSP2" => {
            let outcome = CleanupOutcome::decode(payload).unwrap();
            let told = json!([told["success"], told["message"]]);
            (json!([outcome.is_success, outcome.why]), told, outcome.encode().unwrap())
        }
        "PAXOS2_CLEANUP_COMPLETE_REQ" => {
            let complete = Complete::decode(payload).unwrap();
            let said = json!([complete.low_bound.to_string(), complete.ranges.len()]);
            (said, json!([told["low_bound"], count(told)]), complete.encode())
        }
        _ => return None,
    })
}

#[test]
fn captured_messages() {
    let (mut v1, mut v2, mut cleanups) = (0, 0, 0);
    messages(|tables, payload, told| {
        let (file, verb) = (told["file"].as_str().unwrap(), told["verb"].as_str().unwrap());
        let decoded = &told["decoded"];
        let (counted, read) = if let Some(read) = payload_of_v1(verb, payload, tables, decoded) {
            (&mut v1, read)
        } else if let Some(read) = payload_of_v2(verb, payload, tables, decoded) {
            (&mut v2, read)
        } else if let Some(read) = payload_of_cleanup(verb, payload, decoded) {
            (&mut cleanups, read)
        } else {
            assert_eq!(verb, "PAXOS2_COMMIT_REMOTE_REQ", "{file}: a mutation as in MUTATION_REQ");
            return;
        };
        let (said, expected, again) = read;
        assert_eq!(said, expected, "{file}");
        assert_eq!(again, *payload, "{file}");
        *counted += 1;
    });
    assert_eq!((v1, v2, cleanups), (108, 106, 36));
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
