//! Repair between nodes: requests, results and Merkle trees.

use bytes::Bytes;
use internode::payload::repair::consistent::{PrepareConsistent, Status, Vote};
use internode::payload::repair::{Job, Prepare, SyncRequest, SyncResponse, ValidationRequest, ValidationResponse};
use repair::MerkleTrees;

/// The verbs of each decoder, by the decoder's number.
pub const VERBS: &[&[&str]] = &[
    &["PREPARE_MSG"],
    &["SNAPSHOT_MSG"],
    &["VALIDATION_REQ"],
    &["VALIDATION_RSP"],
    &["SYNC_REQ"],
    &["SYNC_RSP"],
    &["PREPARE_CONSISTENT_REQ"],
    &["PREPARE_CONSISTENT_RSP", "FINALIZE_PROMISE_MSG"],
    &["STATUS_RSP"],
];

/// A payload of the decoder whose number is the first byte: what is read is written, and that is
/// read again. None: the payload is refused.
pub fn payload(data: &[u8]) {
    let Some((number, payload)) = data.split_first() else { return };
    let payload = Bytes::copy_from_slice(payload);
    let Some(written) = again(*number, &payload) else { return };
    assert!(again(*number, &Bytes::from(written)).is_some(), "what is written is read");
}

fn again(number: u8, payload: &Bytes) -> Option<Vec<u8>> {
    const FIT: &str = "texts fit that were read";
    Some(match number {
        0 => Prepare::decode(payload).ok()?.encode(),
        1 => Job::decode(payload).ok()?.encode().expect(FIT),
        2 => ValidationRequest::decode(payload).ok()?.encode().expect(FIT),
        3 => {
            let mut response = ValidationResponse::decode(payload).ok()?;
            if let Some(trees) = &response.trees {
                let trees = MerkleTrees::decode(trees).ok()?;
                assert!(trees.difference(&trees).is_ok_and(|found| found.is_empty()), "trees equal themselves");
                response.trees = Some(trees.encode().into());
            }
            response.encode().expect(FIT)
        }
        4 => SyncRequest::decode(payload).ok()?.encode().expect(FIT),
        5 => SyncResponse::decode(payload).ok()?.encode().expect(FIT),
        6 => PrepareConsistent::decode(payload).ok()?.encode(),
        7 => Vote::decode(payload).ok()?.encode(),
        8 => Status::decode(payload).ok()?.encode(),
        _ => return None,
    })
}
