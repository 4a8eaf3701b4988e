//! Reads that real Cassandra 5.0.8 nodes asked of each other, with their answers: read and written
//! again byte for byte; and digests, computed from the data that the same replica sent for the same
//! request.
//!
//! `testdata/reads.jsonl.gz` holds the payloads of the captured READ_REQ, RANGE_REQ, READ_RSP and
//! RANGE_RSP of three rings (as `golden.rs`), behind the tables that they are about.

#![allow(clippy::disallowed_methods, clippy::unwrap_used, missing_docs)] // reads its captures, as any test may

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::sync::Arc;

use bytes::Bytes;
use internode::InternodeError;
use internode::payload::digest;
use internode::payload::partitions::PartitionsWriter;
use internode::payload::read_request::ReadRequest;
use internode::payload::read_response::{ReadResponse, data_stream};
use rows::PartitionStream;
use schema::table::ColumnSpec;
use schema::{ColumnKind, DroppedColumn, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use serde_json::Value;
use types::{CqlType, UserType};

fn lines() -> Vec<Value> {
    let gz = include_bytes!("../testdata/reads.jsonl.gz");
    let mut text = String::new();
    flate2::read::GzDecoder::new(&gz[..]).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn hex(text: &Value) -> Bytes {
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

fn table(told: &Value) -> TableMetadata {
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
    for told in lines() {
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
