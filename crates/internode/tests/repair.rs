//! Messages of repair that real Cassandra 5.0.8 nodes sent each other, read and written again byte
//! for byte, and compared with what a decoder of another hand found in them.
//!
//! `testdata/repair.jsonl.gz` holds the payloads of three rings (as `golden.rs`).

#![allow(clippy::disallowed_methods, clippy::unwrap_used, missing_docs)] // reads its captures, as any test may

use std::collections::BTreeMap;

use bytes::Bytes;
use captures::hex;
use internode::payload::repair::consistent::{PrepareConsistent, SessionState, Status, Vote};
use internode::payload::repair::{
    Files, Job, Prepare, Preview, StreamSummary, SyncRequest, SyncResponse, ValidationRequest, ValidationResponse,
};
use internode::payload::simple::decode_uuid;
use internode::payload::token_ranges::Tokens;
use schema::TableId;
use serde_json::{Value, json};

fn uuid(bytes: &[u8; 16]) -> String {
    TableId(*bytes).to_string()
}

fn of_ranges(ranges: &[Tokens]) -> Value {
    ranges.iter().map(|range| json!({"flags": 5, "left": range.start.0, "right": range.end.0})).collect()
}

fn of_job(job: &Job) -> Value {
    json!({
        "parent": uuid(&job.parent),
        "session": uuid(&job.session),
        "keyspace": job.keyspace,
        "table": job.table,
        "ranges": of_ranges(&job.ranges),
    })
}

fn of_prepare(prepare: &Prepare) -> Value {
    let tables: Vec<_> = prepare.tables.iter().map(|table| uuid(&table.0)).collect();
    json!({
        "tables": tables,
        "parent": uuid(&prepare.parent),
        "ranges": of_ranges(&prepare.ranges),
        "incremental": prepare.is_incremental,
        "repaired_at": prepare.repaired_at,
        "global": prepare.is_global,
        "preview": prepare.preview as i32,
    })
}

fn of_sync(sync: &SyncRequest) -> Value {
    json!({
        "desc": of_job(&sync.job),
        "initiator": sync.initiator.to_string(),
        "src": sync.source.to_string(),
        "dst": sync.destination.to_string(),
        "ranges": of_ranges(&sync.ranges),
        "preview": sync.preview as i32,
        "asymmetric": sync.is_asymmetric,
    })
}

fn of_files(files: &[Files]) -> Value {
    files.iter().map(|of| json!({"table": uuid(&of.table.0), "files": of.count, "size": of.bytes})).collect()
}

fn of_summary(summary: &StreamSummary) -> Value {
    json!({
        "coordinator": summary.coordinator.to_string(),
        "peer": summary.peer.to_string(),
        "received": of_files(&summary.received),
        "sent": of_files(&summary.sent),
    })
}

fn of_synced(synced: &SyncResponse) -> Value {
    json!({
        "desc": of_job(&synced.job),
        "coordinator": synced.source.to_string(),
        "peer": synced.destination.to_string(),
        "success": synced.is_success,
        "summaries": synced.summaries.iter().map(of_summary).collect::<Vec<_>>(),
    })
}

/// The content of a payload, and the payload written again.
fn read(verb: &str, payload: &Bytes, told: &Value) -> (Value, Vec<u8>) {
    match verb {
        "PREPARE_MSG" => {
            let prepare = Prepare::decode(payload).unwrap();
            (of_prepare(&prepare), prepare.encode())
        }
        "SNAPSHOT_MSG" => {
            let job = Job::decode(payload).unwrap();
            (of_job(&job), job.encode().unwrap())
        }
        "VALIDATION_REQ" => {
            let request = ValidationRequest::decode(payload).unwrap();
            (json!({"desc": of_job(&request.job), "now_in_sec": request.now}), request.encode().unwrap())
        }
        "VALIDATION_RSP" => {
            let response = ValidationResponse::decode(payload).unwrap();
            let said = json!({
                "desc": of_job(&response.job),
                "success": response.trees.is_some(),
                "trees": response.job.ranges.len(),
            });
            (said, response.encode().unwrap())
        }
        "SYNC_REQ" => {
            let sync = SyncRequest::decode(payload).unwrap();
            (of_sync(&sync), sync.encode().unwrap())
        }
        "SYNC_RSP" => {
            let synced = SyncResponse::decode(payload).unwrap();
            (of_synced(&synced), synced.encode().unwrap())
        }
        "PREPARE_CONSISTENT_REQ" => {
            let prepare = PrepareConsistent::decode(payload).unwrap();
            let participants: Vec<_> = prepare.participants.iter().map(ToString::to_string).collect();
            let coordinator = prepare.coordinator.to_string();
            let session = uuid(&prepare.session);
            let said = json!({"parent": session, "coordinator": coordinator, "participants": participants});
            (said, prepare.encode())
        }
        "PREPARE_CONSISTENT_RSP" | "FINALIZE_PROMISE_MSG" => {
            let vote = Vote::decode(payload).unwrap();
            let (session, yes) =
                if verb == "FINALIZE_PROMISE_MSG" { ("session", "promised") } else { ("parent", "success") };
            let participant = vote.participant.to_string();
            (json!({session: uuid(&vote.session), "participant": participant, yes: vote.is_yes}), vote.encode())
        }
        _ => {
            let session = decode_uuid(payload).unwrap();
            let name = told.as_object().unwrap().keys().next().unwrap();
            (json!({name: uuid(&session)}), session.to_vec())
        }
    }
}

#[test]
fn captured_messages() {
    let mut verbs: BTreeMap<String, u32> = BTreeMap::new();
    for line in captures::lines(include_bytes!("../testdata/repair.jsonl.gz")) {
        let (verb, payload) = (line["verb"].as_str().unwrap(), hex(&line["payload"]));
        let (said, again) = read(verb, &payload, &line["decoded"]);
        assert_eq!(said, line["decoded"], "{}", line["file"]);
        assert_eq!(again, payload, "{}", line["file"]);
        *verbs.entry(verb.to_owned()).or_default() += 1;
    }
    assert_eq!(verbs.len(), 13, "{verbs:?}");
}

#[test]
fn broken_payloads_are_refused() {
    for line in captures::lines(include_bytes!("../testdata/repair.jsonl.gz")) {
        let payload = hex(&line["payload"]);
        let longer = [&payload[..], &[0]].concat();
        let is_refused = |bytes: &[u8]| match line["verb"].as_str().unwrap() {
            "PREPARE_MSG" => Prepare::decode(bytes).is_err(),
            "SYNC_REQ" => SyncRequest::decode(bytes).is_err(),
            "SYNC_RSP" => SyncResponse::decode(bytes).is_err(),
            "VALIDATION_REQ" => ValidationRequest::decode(bytes).is_err(),
            "PREPARE_CONSISTENT_REQ" => PrepareConsistent::decode(bytes).is_err(),
            _ => true,
        };
        assert!(is_refused(&longer), "{}", line["file"]);
        assert!((0..payload.len()).all(|end| is_refused(&payload[..end])), "{}", line["file"]);
    }
}

#[test]
fn states_and_previews_have_cassandras_numbers() {
    for state in (0..6).map(|number| SessionState::from_number(number).unwrap()) {
        let status = Status { session: [7; 16], state };
        assert_eq!(Status::decode(&status.encode()), Ok(status));
    }
    assert_eq!((SessionState::Failed as i32, SessionState::from_number(6)), (5, None));
    assert_eq!((Preview::Unrepaired as i32, Preview::Repaired.name()), (2, "REPAIRED"));
}
