//! Paxos: what coordinators of conditional statements and replicas tell each other.
//!
//! ```text
//! verb                       request                            answer
//! 33/93 PREPARE              [`Commit`] with an empty update    [`PrepareAnswer`]
//! 34/94 PROPOSE              [`Commit`]                         bool: accepted
//! 35/95 COMMIT               [`Commit`]                         empty
//! 38/60 COMMIT_REMOTE        a mutation                         empty
//! 40/50 PREPARE              [`PrepareV2`]                      [`PrepareV2Answer`]
//! 41/51 PREPARE_REFRESH      [`Refresh`]                        the ballot that supersedes it
//! 42/52 PROPOSE              [`Commit`]                         the ballot that supersedes it
//! 43/53 COMMIT_AND_PREPARE   [`CommitAndPrepare`]               [`PrepareV2Answer`]
//! 44/54 REPAIR               [`RepairRequest`]                  [`RepairAnswer`]
//! 45-48 CLEANUP              see [`cleanup`]
//! ```
//!
//! 33 to 35 are the verbs of `paxos_variant: v1`, the others and 35 those of v2. A commit is a
//! ballot and an update of one partition. Agrees with `org.apache.cassandra.service.paxos`.

pub mod ballot;
pub mod cleanup;
pub mod commit;
pub mod electorate;
pub mod prepare;
pub mod prepare_v2;
pub mod promise;
pub mod refresh;
pub mod repair;

use stdx::Cursor;

use super::whole;
use crate::error::InternodeError;

pub use ballot::{Ballot, BallotFlag};
pub use commit::Commit;
pub use electorate::Electorate;
pub use prepare::PrepareAnswer;
pub use prepare_v2::{CommitAndPrepare, PrepareV2, Prepared};
pub use promise::{Permission, PrepareV2Answer};
pub use refresh::Refresh;
pub use repair::{RepairAnswer, RepairRequest};

/// The payload of the answer to PAXOS_PROPOSE_REQ: whether the proposal was accepted.
pub fn encode_accepted(is_accepted: bool) -> Vec<u8> {
    vec![u8::from(is_accepted)]
}

/// Reads the payload of the answer to PAXOS_PROPOSE_REQ.
pub fn decode_accepted(payload: &[u8]) -> Result<bool, InternodeError> {
    whole(payload, |cursor| Ok(cursor.bool()?))
}

/// The payload of the answer to PAXOS2_PROPOSE_REQ and PAXOS2_PREPARE_REFRESH_REQ: the later ballot
/// that was witnessed, if there is one.
pub fn encode_superseded(by: Option<&Ballot>) -> Vec<u8> {
    let mut out = vec![u8::from(by.is_some())];
    by.iter().for_each(|by| out.extend_from_slice(by.bytes()));
    out
}

/// Reads the payload of the answer to PAXOS2_PROPOSE_REQ and PAXOS2_PREPARE_REFRESH_REQ.
pub fn decode_superseded(payload: &[u8]) -> Result<Option<Ballot>, InternodeError> {
    whole(payload, |cursor| if cursor.bool()? { read_ballot(cursor).map(Some) } else { Ok(None) })
}

fn read_ballot(cursor: &mut Cursor<'_>) -> Result<Ballot, InternodeError> {
    let bytes = cursor.take(16)?;
    Ok(Ballot::from_bytes(*bytes.first_chunk().expect("sixteen bytes were taken")))
}
