//! Reads that real Cassandra 5.0.8 nodes asked of each other, with their answers: read and written
//! again byte for byte; and digests, computed from the data that the same replica sent for the same
//! request.
//!
//! `testdata/reads.jsonl.gz` holds the payloads of the captured READ_REQ, RANGE_REQ, READ_RSP and
//! RANGE_RSP of three rings (as `golden.rs`), behind the tables that they are about.

#![allow(clippy::disallowed_methods, clippy::unwrap_used, missing_docs)] // reads its captures, as any test may

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use captures::{hex, table};
use internode::InternodeError;
use internode::payload::digest;
use internode::payload::partitions::PartitionsWriter;
use internode::payload::read_request::ReadRequest;
use internode::payload::read_response::{ReadResponse, data_stream};
use rows::PartitionStream;
use schema::{TableId, TableMetadata};
use serde_json::Value;

/// The data of an answer, decoded and encoded again with the base values that its sender chose.
fn again(data: &Bytes, request: &ReadRequest) -> Bytes {
    let mut stream = data_stream(data.clone(), request);
    let mut writer = PartitionsWriter::new(request);
    while let Some(head) = stream.next_partition().unwrap() {
        let form = stream.form();
        let mut next = stream.next_unfiltered().unwrap();
        writer.partition(&head, &form, next.is_none());
        while let Some(unfiltered) = next {
            writer.unfiltered(&unfiltered);
            next = stream.next_unfiltered().unwrap();
        }
    }
    writer.finish()
}

/// Calls `see` with each captured request and its line.
fn requests(mut see: impl FnMut(&str, &ReadRequest, &Value)) {
    let mut tables: HashMap<(String, TableId), Arc<TableMetadata>> = HashMap::new();
    for told in captures::lines(include_bytes!("../testdata/reads.jsonl.gz")) {
        let ring = told["ring"].as_str().unwrap().to_owned();
        if told.get("table").is_some() {
            let table = table(&told);
            tables.insert((ring, table.id), Arc::new(table));
            continue;
        }
        let file = told["file"].as_str().unwrap();
        let find = |id: TableId| tables.get(&(ring.clone(), id)).cloned();
        let payload = hex(&told["request"]);
        let request = ReadRequest::decode(&payload, &find).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!(request.encode(), payload, "{file}");
        assert_eq!(request.verb().name(), told["verb"].as_str().unwrap(), "{file}");
        see(file, &request, &told);
    }
}

#[test]
fn captured_reads_and_answers() {
    let (mut asked, mut answered, mut digests) = (0, 0, 0);
    requests(|_, request, told| {
        asked += 1;
        for answer in told["answers"].as_array().unwrap() {
            let file = answer["file"].as_str().unwrap();
            let payload = hex(&answer["payload"]);
            let response = ReadResponse::decode(&payload).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert_eq!(response.encode(), payload, "{file}");
            match &response {
                ReadResponse::Digest(_) => digests += 1,
                ReadResponse::Data(data) => assert_eq!(again(&data.partitions, request), data.partitions, "{file}"),
            }
            answered += 1;
        }
    });
    assert_eq!((asked, answered), (566, 562));
    assert!(digests > 100, "{digests} answers are digests");
}

#[test]
fn digests_of_captured_answers() {
    let mut compared = 0;
    requests(|_, request, told| {
        for answer in told["answers"].as_array().unwrap() {
            let Some(md5) = answer.get("md5") else { continue };
            let response = ReadResponse::decode(&hex(&answer["payload"])).unwrap();
            let digest = response.digest(request).unwrap();
            assert_eq!(digest[..], hex(md5)[..], "{}", answer["file"]);
            assert_eq!(digest.len(), digest::SIZE);
            compared += 1;
        }
    });
    assert_eq!(compared, 120);
}

#[test]
fn what_cannot_be_served_is_refused_by_name() {
    let mut told = None;
    requests(|_, request, _| told = told.take().or_else(|| Some(request.clone())));
    let request = told.unwrap();
    let payload = Bytes::from(request.encode());
    assert_eq!(ReadRequest::decode(&payload, &|_| None), Err(InternodeError::UnknownTable(request.table.id)));
    for length in 0..payload.len() {
        let find = |_| Some(Arc::clone(&request.table));
        assert!(ReadRequest::decode(&payload.slice(..length), &find).is_err(), "{length} bytes");
    }
}
