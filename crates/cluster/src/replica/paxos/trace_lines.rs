//! Lines in which a replica tells the trace of a request of Paxos, in Cassandra's words.
//!
//! Of a proposal its ballot, its least timestamp and its key are told, not its rows, which
//! Cassandra adds: a user who may read traces may not be allowed to read the table. Agrees with
//! `org.apache.cassandra.service.paxos.{PaxosState,PaxosPrepareRefresh,Commit}`.

use internode::payload::paxos::{Ballot, Commit, PrepareAnswer, PrepareV2, PrepareV2Answer};
use rows::codec::EncodingStatsCollector;

/// The answer to a prepare of v1.
pub(crate) fn prepared(asked: &Commit, answer: &PrepareAnswer) -> String {
    match answer.promised {
        true => format!("Promising ballot {}", asked.ballot),
        false => format!(
            "Promise rejected; {} is not sufficiently newer than {}",
            text(asked, "Commit"),
            answer.in_progress.ballot
        ),
    }
}

/// The answer to a prepare of v2.
pub(crate) fn prepared_v2(asked: &PrepareV2, answer: &PrepareV2Answer) -> String {
    let ballot = &asked.ballot;
    match answer {
        PrepareV2Answer::Rejected { superseded_by } => format!("Promise rejected; {ballot} older than {superseded_by}"),
        PrepareV2Answer::Permitted(permission) if permission.superseded_by.is_some() => {
            format!("Permitting only read by ballot {ballot}")
        }
        PrepareV2Answer::Permitted(_) if asked.is_for_write => format!("Promising read/write ballot {ballot}"),
        PrepareV2Answer::Permitted(_) => format!("Promising read ballot {ballot}"),
    }
}

/// The answer to a proposal of v1.
pub(crate) fn proposed(proposal: &Commit, superseded_by: Option<&Ballot>) -> String {
    let proposal = text(proposal, "Accepted");
    match superseded_by {
        None => format!("Accepting proposal {proposal}"),
        Some(by) => format!("Rejecting proposal for {proposal} because inProgress is now {by}"),
    }
}

/// The answer to a proposal of v2.
pub(crate) fn proposed_v2(proposal: &Commit, superseded_by: Option<&Ballot>) -> String {
    match superseded_by {
        None => proposed(proposal, None),
        Some(by) => format!("Rejecting proposal {}; latest is now {by}", proposal.ballot),
    }
}

/// The outcome of a commit.
pub(crate) fn committed(commit: &Commit, is_applied: bool) -> String {
    let commit = text(commit, "Committed");
    match is_applied {
        true => format!("Committing proposal {commit}"),
        false => {
            format!("Not committing proposal {commit} as ballot timestamp predates last truncation time")
        }
    }
}

/// The answer to a coordinator that tells of a commit that this replica has missed.
pub(crate) fn refreshed(promised: &Ballot, superseded_by: Option<&Ballot>) -> String {
    match superseded_by {
        None => format!("Promise confirmed for ballot {promised}"),
        Some(by) => format!("Promise {promised} rescinded; latest is now {by}"),
    }
}

fn text(commit: &Commit, kind: &str) -> String {
    let Commit { ballot, update } = commit;
    let mut stats = EncodingStatsCollector::default();
    stats.deletion(&update.deletion);
    update.static_row.iter().chain(&update.rows).for_each(|row| stats.row(row));
    update.range_deletions.iter().for_each(|(_, deletion)| stats.deletion(deletion));
    let (least, key) = (stats.finish().min_timestamp, update.table.partition_key_text(&update.key.key));
    format!("{kind}({}:{ballot}, {least}:key={key})", ballot.ticks())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use internode::payload::paxos::BallotFlag;

    use super::*;
    use crate::testing::SimNode;

    #[test]
    fn lines_are_those_of_cassandra() {
        let node = SimNode::new(std::time::Duration::from_secs(1));
        let schema = node.node.schema();
        let table = Arc::clone(schema.table("system_auth", "roles").expect("a built-in table"));
        let key = table.decorate(bytes::Bytes::from_static(b"k"));
        let [early, late] = [1, 2].map(|second| Ballot::new(second * 1_000_000, BallotFlag::Global, 0));
        let proposal = Commit::empty(early, Arc::clone(&table), key.clone());
        let of = |kind| format!("{kind}({}:{early}, 1442880000000000:key=k)", early.ticks());
        assert_eq!(proposed(&proposal, None), format!("Accepting proposal {}", of("Accepted")));
        assert_eq!(
            proposed(&proposal, Some(&late)),
            format!("Rejecting proposal for {} because inProgress is now {late}", of("Accepted"))
        );
        assert_eq!(proposed_v2(&proposal, Some(&late)), format!("Rejecting proposal {early}; latest is now {late}"));
        assert_eq!(committed(&proposal, true), format!("Committing proposal {}", of("Committed")));
        assert_eq!(refreshed(&early, Some(&late)), format!("Promise {early} rescinded; latest is now {late}"));
        let answer = |promised, ballot| PrepareAnswer {
            promised,
            in_progress: Commit::empty(ballot, Arc::clone(&table), key.clone()),
            most_recent: Commit::none(Arc::clone(&table), key.clone()),
        };
        assert_eq!(prepared(&proposal, &answer(true, early)), format!("Promising ballot {early}"));
        assert_eq!(
            prepared(&proposal, &answer(false, late)),
            format!("Promise rejected; {} is not sufficiently newer than {late}", of("Commit"))
        );
    }
}
