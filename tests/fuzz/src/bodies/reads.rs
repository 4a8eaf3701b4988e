//! Reads between nodes: what a coordinator asks, and what a replica answers.

use bytes::Bytes;
use internode::payload::digest;
use internode::payload::read_answer::{AnswerKind, AnswerLimits, answer_of};
use internode::payload::read_request::ReadRequest;
use internode::payload::read_response::{ReadResponse, data_stream};
use rows::live::TombstoneLimits;
use rows::stream::EmptyStream;
use schema::TableId;

use crate::seeds::reads::CAPTURES;

/// Bytes of the data of an answer.
const SIZE_MAX: usize = 1 << 20;

const LIMITS: AnswerLimits =
    AnswerLimits { tombstones: TombstoneLimits::NONE, size_max: SIZE_MAX, buffered_size_max: 0 };

/// READ_REQ and RANGE_REQ: what is read is written and read again alike, and can be asked of an
/// engine.
pub fn request(data: &[u8]) {
    let tables = |id: TableId| CAPTURES.tables.get(&id).cloned();
    let Ok(request) = ReadRequest::decode(&Bytes::copy_from_slice(data), &tables) else { return };
    let again = ReadRequest::decode(&Bytes::from(request.encode()), &tables);
    assert_eq!(again.as_ref(), Ok(&request));
    assert!(request.commands().len() <= 2);
    let answer = answer_of(&mut EmptyStream, &request, AnswerKind::Both, &LIMITS).expect("nothing fails");
    assert_eq!(answer.data.as_deref(), Some(&[0, 0][..]));
}

/// READ_RSP and RANGE_RSP: an answer goes through everything that rows go through before a replica
/// sends them. First two bytes: the number of the request.
pub fn answer(data: &[u8]) {
    let Some((number, payload)) = data.split_first_chunk() else { return };
    let Ok(response) = ReadResponse::decode(&Bytes::copy_from_slice(payload)) else { return };
    let request = CAPTURES.request(usize::from(u16::from_be_bytes(*number)));
    assert_eq!(ReadResponse::decode(&Bytes::from(response.encode())).as_ref(), Ok(&response));
    let ReadResponse::Data(found) = response else { return };
    let _ = digest::of_data(&found.partitions, &request);
    let mut stream = data_stream(found.partitions, &request);
    let Ok(answer) = answer_of(&mut stream, &request, AnswerKind::Both, &LIMITS) else { return };
    let data = answer.data.expect("it was wanted");
    assert_eq!(digest::of_data(&data, &request).ok(), answer.digest, "the digest is that of the data");
}
