//! Paxos: what coordinators of conditional statements and replicas tell each other.
//!
//! ```text
//! verb                 request                                 answer
//! 33/93 PREPARE        commit with an empty update             [`prepare::PrepareAnswer`]
//! 34/94 PROPOSE        commit                                  bool: accepted
//! 35/95 COMMIT         commit                                  empty
//! ```
//!
//! These are the verbs of `paxos_variant: v1`; COMMIT is one of v2 also. A commit is a ballot and an
//! update of one partition ([`commit`]). Agrees with `org.apache.cassandra.service.paxos.Commit`
//! and `PrepareResponse`.

pub mod ballot;
pub mod commit;
pub mod prepare;

use super::whole;
use crate::error::InternodeError;

pub use ballot::{Ballot, BallotFlag};
pub use commit::Commit;
pub use prepare::PrepareAnswer;

/// The payload of the answer to PROPOSE: whether the proposal was accepted.
pub fn encode_accepted(is_accepted: bool) -> Vec<u8> {
    vec![u8::from(is_accepted)]
}

/// Reads the payload of the answer to PROPOSE.
pub fn decode_accepted(payload: &[u8]) -> Result<bool, InternodeError> {
    whole(payload, |cursor| Ok(cursor.bool()?))
}
