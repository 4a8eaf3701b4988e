//! Paxos between nodes: requests and answers.

use bytes::Bytes;
use internode::payload::paxos::cleanup::{Cleanup, CleanupHistory, CleanupOutcome, Complete, StartPrepare};
use internode::payload::paxos::{
    Commit, CommitAndPrepare, PrepareAnswer, PrepareV2, PrepareV2Answer, Refresh, RepairAnswer, RepairRequest,
};
use schema::TableId;

use crate::seeds::paxos::CAPTURES;

/// The verbs of each decoder, by the decoder's number.
pub const VERBS: &[&[&str]] = &[
    &["PAXOS_PREPARE_REQ", "PAXOS_PROPOSE_REQ", "PAXOS_COMMIT_REQ", "PAXOS2_PROPOSE_REQ"],
    &["PAXOS_PREPARE_RSP"],
    &["PAXOS2_PREPARE_REQ"],
    &["PAXOS2_COMMIT_AND_PREPARE_REQ"],
    &["PAXOS2_PREPARE_RSP", "PAXOS2_COMMIT_AND_PREPARE_RSP"],
    &["PAXOS2_PREPARE_REFRESH_REQ"],
    &["PAXOS2_REPAIR_REQ"],
    &["PAXOS2_REPAIR_RSP"],
    &["PAXOS2_CLEANUP_START_PREPARE_REQ"],
    &["PAXOS2_CLEANUP_START_PREPARE_RSP", "PAXOS2_CLEANUP_FINISH_PREPARE_REQ"],
    &["PAXOS2_CLEANUP_REQ"],
    &["PAXOS2_CLEANUP_RSP2"],
    &["PAXOS2_CLEANUP_COMPLETE_REQ"],
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
    let tables = |id: TableId| CAPTURES.tables.get(&id).cloned();
    Some(match number {
        0 => Commit::decode(payload, &tables).ok()?.encode(),
        1 => PrepareAnswer::decode(payload, &tables).ok()?.encode(),
        2 => PrepareV2::decode(payload, &tables).ok()?.encode(),
        3 => CommitAndPrepare::decode(payload, &tables).ok()?.encode(),
        4 => PrepareV2Answer::decode(payload, &tables).ok()?.encode().expect("texts fit that were read"),
        5 => Refresh::decode(payload, &tables).ok()?.encode(),
        6 => RepairRequest::decode(payload, &tables).ok()?.encode(),
        7 => RepairAnswer::decode(payload, &tables).ok()?.encode(),
        8 => StartPrepare::decode(payload).ok()?.encode().expect("texts fit that were read"),
        9 => CleanupHistory::decode(payload).ok()?.encode(),
        10 => Cleanup::decode(payload).ok()?.encode(),
        11 => CleanupOutcome::decode(payload).ok()?.encode().expect("texts fit that were read"),
        12 => Complete::decode(payload).ok()?.encode(),
        _ => return None,
    })
}
