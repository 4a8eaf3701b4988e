//! Paxos between nodes: requests and answers.

use bytes::Bytes;
use internode::payload::paxos::{Commit, PrepareAnswer};
use schema::TableId;

use crate::seeds::paxos::CAPTURES;

/// The verbs of each decoder, by the decoder's number.
pub const VERBS: &[&[&str]] =
    &[&["PAXOS_PREPARE_REQ", "PAXOS_PROPOSE_REQ", "PAXOS_COMMIT_REQ", "PAXOS2_PROPOSE_REQ"], &["PAXOS_PREPARE_RSP"]];

/// A payload of the decoder whose number is the first byte: what is read is written, and that is
/// read again.
pub fn payload(data: &[u8]) {
    let Some((number, payload)) = data.split_first() else { return };
    let payload = Bytes::copy_from_slice(payload);
    let tables = |id: TableId| CAPTURES.tables.get(&id).cloned();
    match number {
        0 => {
            let Ok(commit) = Commit::decode(&payload, &tables) else { return };
            let again = Commit::decode(&commit.encode().into(), &tables).expect("a commit is read again");
            assert_eq!((again.ballot, &again.update.key), (commit.ballot, &commit.update.key));
        }
        1 => {
            let Ok(answer) = PrepareAnswer::decode(&payload, &tables) else { return };
            let again = PrepareAnswer::decode(&answer.encode().into(), &tables).expect("an answer is read again");
            assert_eq!(again.most_recent.ballot, answer.most_recent.ballot);
        }
        _ => {}
    }
}
