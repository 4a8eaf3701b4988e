//! Reads asked by another node, and what this node answers.

use std::time::Duration;

use internode::payload::read_response::{ReadResponse, data_stream};
use membership::{Request, RequestFailure};
use rows::live::LiveRows;
use rows::{ColumnData, PartitionRange, ReadCommand};
use types::Consistency;

use super::*;
use crate::testing::{SimNode, SimRing};

const LIFE: Duration = Duration::from_secs(5);

/// Three nodes, and a keyspace with copies on all of them.
fn three(seed: u64) -> SimRing {
    let ring = SimRing::new(seed, &["dc1", "dc1", "dc1"]);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "3")]);
    ring
}

fn key(k: i32) -> PartitionRange {
    PartitionRange::Key(types::DecoratedKey::new(Bytes::copy_from_slice(&k.to_be_bytes())))
}

/// The request for a range of `t`, as the first node asks it.
fn request(ring: &SimRing, range: PartitionRange) -> ReadRequest {
    let schema = ring.node(0).schema();
    let table = schema.table("ks", "t").expect("created");
    let now = u32::try_from(ring.node(0).env.clock.now_micros() / 1_000_000).expect("before 2106");
    let command = ReadCommand { now, ..ReadCommand::whole(table, range) };
    ReadRequest::of(&command)
}

/// Asks a node from the first one.
fn ask(ring: &SimRing, machine: usize, request: Request) -> Result<Bytes, RequestFailure> {
    let messenger = ring.node(0).messenger().expect("it has joined").clone();
    let pending = messenger.request(ring.address(machine), request);
    ring.world.block_on(pending).map(|envelope| envelope.payload)
}

fn read(ring: &SimRing, machine: usize, request: &ReadRequest) -> Result<ReadResponse, RequestFailure> {
    let asked = Request::new(request.verb(), request.encode(), LIFE);
    ask(ring, machine, asked).map(|payload| ReadResponse::decode(&payload).expect("an answer"))
}

/// The live rows (k, c, v) in an answer.
fn rows_in(response: &ReadResponse, request: &ReadRequest) -> Vec<(i32, i32, i32)> {
    let ReadResponse::Data(data) = response else { panic!("data was asked for") };
    let mut stream = data_stream(data.partitions.clone(), request);
    let mut live = LiveRows::new(&mut stream, Arc::clone(&request.table), request.now, TombstoneLimits::NONE);
    let int = |bytes: &[u8]| i32::from_be_bytes(bytes.try_into().expect("an int"));
    let mut rows = Vec::new();
    while let Some(partition) = live.next_partition().expect("readable") {
        while let Some(row) = live.next_row().expect("readable") {
            let clustering = row.clustering[0].as_deref().expect("a value");
            let Some(ColumnData::Simple(cell)) = row.columns.first() else { panic!("one simple column") };
            rows.push((int(&partition.key.key), int(clustering), int(&cell.value)));
        }
    }
    rows
}

/// Replicas with the same data answer the same data, whose digest they answer too; limits and
/// ranges are kept.
#[test]
fn replicas_answer_alike() {
    let ring = three(1);
    for k in 0..4 {
        let rows = (0..3).map(|c| ring.row("ks", k, c, 10 * k + c, 10)).collect();
        ring.write(0, rows, Consistency::All).expect("written");
    }
    let one = request(&ring, key(2));
    let answers: Vec<ReadResponse> = (1..3).map(|machine| read(&ring, machine, &one).expect("answered")).collect();
    assert_eq!(rows_in(&answers[0], &one), [(2, 0, 20), (2, 1, 21), (2, 2, 22)]);
    let digest = read(&ring, 2, &one.for_digest(13)).expect("answered");
    for answer in &answers {
        assert_eq!(answer.digest(&one).map(ReadResponse::Digest), Ok(digest.clone()));
    }
    let all = request(&ring, PartitionRange::all());
    let answer = read(&ring, 1, &all).expect("answered");
    assert_eq!(rows_in(&answer, &all).len(), 12);
    let limited = ReadRequest { limits: rows::ReadLimits::of_rows(5, 2), ..all };
    let answer = read(&ring, 1, &limited).expect("answered");
    assert_eq!(rows_in(&answer, &limited).len(), 5);
    // a partition that nobody has
    let none = request(&ring, key(77));
    let nothing = ReadResponse::of_data(Bytes::from_static(&[0, 0]));
    assert_eq!(read(&ring, 1, &none), Ok(nothing.clone()));
    // a coordinator that compares what is repaired is not told that this replica has nothing of it
    let tracked = Request::new(none.verb(), none.encode(), LIFE);
    let tracked = Request { flags: tracked.flags.with(Flags::TRACK_REPAIRED_DATA), ..tracked };
    let answer = ask(&ring, 1, tracked).map(|payload| ReadResponse::decode(&payload).expect("an answer"));
    assert_eq!(answer, Ok(nothing.without_repaired_digest()));
}

/// A read that fails is answered with the reason, or not at all where the asker does not want it.
#[test]
fn a_read_that_fails_says_why() {
    let ring = three(2);
    let good = request(&ring, key(1));
    let mut unknown = good.encode();
    unknown[2..18].fill(0x55);
    let failed = |payload: Vec<u8>| ask(&ring, 1, Request::new(internode::Verb::ReadReq, payload, LIFE));
    assert_eq!(failed(unknown), Err(RequestFailure::Failed(FailureReason::IncompatibleSchema)));
    let mut cut = good.encode();
    cut.pop();
    assert_eq!(failed(cut.clone()), Err(RequestFailure::Failed(FailureReason::Unknown)));
    let silent = Request::new(internode::Verb::ReadReq, cut, LIFE).without_failure_response();
    assert_eq!(ask(&ring, 1, silent), Err(RequestFailure::TimedOut));
}

/// The reasons that a coordinator is told, and the cases where nobody waits for one.
#[test]
fn reasons_of_failures() {
    let SimNode { node, .. } = SimNode::new(Duration::from_secs(2));
    let table = TableId([1; 16]);
    let of = |error: ReadError| reason_of(&node, table, ReadOutcome::Failed(AnswerError::Read(error)));
    let too_large = ReadOutcome::Failed(AnswerError::TooLarge { size_max: 1 });
    assert_eq!(reason_of(&node, table, too_large), Some(FailureReason::ReadSize));
    assert_eq!(reason_of(&node, table, ReadOutcome::TimedOut), None);
    assert_eq!(of(ReadError::TimedOut), None);
    assert_eq!(of(ReadError::Stopped), Some(FailureReason::Unknown));
    let gone = ReadError::IndexNotAvailable { name: "i".to_owned() };
    assert_eq!(of(gone), Some(FailureReason::IndexNotAvailable));
}
