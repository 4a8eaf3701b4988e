//! The second round of Paxos v2: a majority accepts a proposal, which is decided by that.
//!
//! A refusal names the ballot that is later. Agrees with
//! `org.apache.cassandra.service.paxos.PaxosPropose`, but for proposals of nothing: Cassandra does
//! not know what became of one that some have refused, and its client gets a timeout. It changes
//! nothing, so the statement tries again here.

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use internode::Verb;
use internode::payload::paxos::{Ballot, Commit, decode_superseded};
use ring::EndpointId;
use types::ReplicaFailure;

use super::electors::Electors;
use super::replica_requests::{PendingAnswer, TooFew};
use crate::coordinator::cas::agreement::Agreement;
use crate::coordinator::error::RequestError;
use crate::replica::apply::within;
use crate::replica::paxos::trace_lines;

/// The outcome of a proposal.
pub(super) enum ProposalOutcome {
    /// The proposal is decided.
    Accepted,
    /// Another coordinator's ballot is later. No replica has accepted the proposal, or the
    /// statement need not know whether one has.
    Superseded(Ballot),
}

/// The answers to a proposal so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Votes {
    /// How many are a majority.
    pub required: usize,
    /// Replicas that are asked.
    pub asked: usize,
    /// Replicas that have accepted.
    pub accepted: usize,
    /// Replicas that have refused: they have promised a later ballot.
    pub refused: usize,
    /// Replicas that have failed.
    pub failed: usize,
}

/// The meaning of the answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// The result depends on answers that may still come.
    Open,
    /// The proposal is decided.
    Accepted,
    /// The proposal is not decided, and never will be unless another statement finishes it.
    Refused,
    /// Some have refused and some may have accepted: a later statement may finish the proposal.
    Unknown,
    /// Too many have failed.
    Failed,
}

impl Votes {
    /// The verdict. `must_know`: a proposal is refused only when nobody has accepted it. Otherwise
    /// it is as soon as one replica has refused.
    pub fn verdict(&self, must_know: bool) -> Verdict {
        let Self { required, asked, accepted, refused, failed } = *self;
        assert!(accepted + refused + failed <= asked, "a replica answers once");
        let outstanding = asked - accepted - refused - failed;
        match () {
            () if accepted >= required => Verdict::Accepted,
            () if refused == 0 && required + failed <= asked => Verdict::Open,
            () if refused == asked || !must_know && refused > 0 => Verdict::Refused,
            () if outstanding > 0 && accepted + outstanding >= required => Verdict::Open,
            () if outstanding > 0 && accepted + failed == 0 => Verdict::Open,
            () if refused > 0 => Verdict::Unknown,
            () => Verdict::Failed,
        }
    }
}

impl Agreement<'_> {
    /// Asks the replicas to accept a proposal. `must_know`: the proposal is this statement's own
    /// change, and its client is told what became of it.
    pub(super) async fn propose_to(
        &self,
        electors: &Electors,
        proposal: &Commit,
        must_know: bool,
    ) -> Result<ProposalOutcome, RequestError> {
        let request = self.request(Verb::Paxos2ProposeReq, proposal.encode(), self.node.timeouts().write);
        let here = || async {
            let answer = self.node.replica.paxos_propose(proposal).await;
            answer.iter().for_each(|superseded| self.trace(|| trace_lines::proposed_v2(proposal, superseded.as_ref())));
            answer.inspect_err(|error| tracing::warn!(%error, "a proposal is not accepted on this node")).ok()
        };
        let decode = |payload: &Bytes| decode_superseded(payload).ok();
        let ask = |id: &EndpointId| self.ask_elector(electors, *id, request.clone(), here(), decode);
        let mut waiting: FuturesUnordered<PendingAnswer<'_, Option<Ballot>>> =
            electors.plan.live.iter().map(ask).collect();
        let (required, asked) = (electors.plan.required as usize, electors.plan.live.len());
        let mut votes = Votes { required, asked, accepted: 0, refused: 0, failed: 0 };
        let (mut by, mut failures) = (Ballot::NONE, Vec::new());
        let verdict = loop {
            match votes.verdict(must_know) {
                Verdict::Open => {}
                verdict => break verdict,
            }
            match within(&self.node.env, self.total_time_left(), waiting.next()).await {
                Some(Some((_, Ok(None)))) => votes.accepted += 1,
                Some(Some((_, Ok(Some(superseded))))) => {
                    votes.refused += 1;
                    by = by.latest(superseded);
                }
                Some(Some((from, Err(reason)))) => {
                    votes.failed += 1;
                    failures.push(ReplicaFailure { endpoint: electors.contact(from).address, reason });
                }
                Some(None) | None if votes.refused > 0 => break Verdict::Unknown,
                Some(None) | None => break Verdict::Failed,
            }
        };
        match verdict {
            Verdict::Accepted => Ok(ProposalOutcome::Accepted),
            Verdict::Refused => Ok(ProposalOutcome::Superseded(by)),
            Verdict::Unknown if !must_know => Ok(ProposalOutcome::Superseded(by)),
            // as Cassandra tells it: a timeout without answers
            Verdict::Unknown => Err(self.contention_timeout_at(electors.plan.required)),
            Verdict::Open | Verdict::Failed => {
                Err(self.too_few(TooFew { received: votes.accepted, asked, required, failures }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers as letters: `+` accepted, `-` refused, `!` failed; of three replicas, two of which
    /// are a majority. The verdict on a change of one's own, and on any other proposal.
    #[test]
    fn verdicts() {
        use Verdict::{Accepted, Failed, Open, Refused, Unknown};
        for (letters, own, other) in [
            ("", Open, Open),
            ("+", Open, Open),
            ("++", Accepted, Accepted),
            ("-++", Accepted, Accepted),
            ("!++", Accepted, Accepted),
            ("-", Open, Refused),
            ("--", Open, Refused),
            ("---", Refused, Refused),
            // Cassandra gives up here, though the third may accept
            ("+-", Open, Refused),
            ("+--", Unknown, Refused),
            ("!-", Unknown, Refused),
            ("!", Open, Open),
            ("!+", Open, Open),
            ("!!", Failed, Failed),
        ] {
            let mut votes = Votes { required: 2, asked: 3, accepted: 0, refused: 0, failed: 0 };
            letters.chars().for_each(|letter| match letter {
                '+' => votes.accepted += 1,
                '-' => votes.refused += 1,
                _ => votes.failed += 1,
            });
            assert_eq!((votes.verdict(true), votes.verdict(false)), (own, other), "{letters}");
        }
    }
}
