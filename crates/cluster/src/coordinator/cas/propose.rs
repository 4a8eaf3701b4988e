//! The second round: a majority of the replicas accept a proposal, which is decided by that.
//!
//! Agrees with `org.apache.cassandra.service.paxos.v1.ProposeCallback` and
//! `StorageProxy.proposePaxos`.

use bytes::Bytes;
use futures_util::StreamExt;
use internode::Verb;
use internode::payload::paxos::{Commit, decode_accepted};

use super::agreement::{Agreement, Participants, PendingAnswers};
use crate::coordinator::error::{FailedCas, RequestError};
use crate::replica::apply::within;
use crate::replica::paxos::trace_lines;

/// The answers to a proposal so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Votes {
    /// How many are a majority.
    pub required: u32,
    /// Replicas that have accepted.
    pub accepted: u32,
    /// Replicas that have refused: they have promised a later ballot.
    pub refused: u32,
    /// Replicas that have failed, or told nothing that could be read.
    pub failed: u32,
    /// Replicas that have not answered.
    pub outstanding: u32,
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
    /// Some have accepted and a majority has not: whether a later statement will find the proposal,
    /// and finish it, is not known.
    Unknown,
    /// Some have failed and may have accepted, so this is not known either.
    Unanswered,
}

impl Votes {
    /// The verdict. `must_know`: a proposal that fewer than a majority accept is refused only when
    /// nobody has accepted it. Otherwise it is as soon as a majority cannot be reached.
    pub fn verdict(&self, must_know: bool) -> Verdict {
        if self.accepted >= self.required {
            return Verdict::Accepted;
        }
        if !must_know && self.accepted + self.outstanding < self.required {
            return Verdict::Refused;
        }
        match (self.outstanding, self.failed, self.accepted) {
            (1.., ..) => Verdict::Open,
            (0, 0, 0) => Verdict::Refused,
            (0, 0, _) => Verdict::Unknown,
            (0, ..) => Verdict::Unanswered,
        }
    }

    fn count_answer(&mut self, answer: Option<bool>) {
        assert!(self.outstanding > 0, "a replica answers once");
        self.outstanding -= 1;
        match answer {
            Some(true) => self.accepted += 1,
            Some(false) => self.refused += 1,
            None => self.failed += 1,
        }
    }
}

impl Agreement<'_> {
    /// Asks the replicas to accept a proposal; whether a majority has. `must_know`: the proposal is
    /// this statement's own, and its client is told what became of it.
    pub async fn propose(
        &self,
        participants: &Participants,
        proposal: &Commit,
        must_know: bool,
    ) -> Result<bool, RequestError> {
        let request = self.request(Verb::PaxosProposeReq, proposal.encode(), self.time_left());
        let here = || async {
            let answer = self.node.replica.paxos_propose(proposal).await;
            let answer = answer.inspect_err(|error| tracing::warn!(%error, "a proposal is not accepted on this node"));
            answer.iter().for_each(|superseded| self.trace(|| trace_lines::proposed(proposal, superseded.as_ref())));
            answer.ok().map(|superseded_by| superseded_by.is_none())
        };
        let decode = |payload: &Bytes| decode_accepted(payload).ok();
        let mut waiting: PendingAnswers<'_, bool> = self.ask_all(participants, &request, here, decode);
        let outstanding = u32::try_from(participants.live.len()).unwrap_or(u32::MAX);
        let mut votes = Votes { required: participants.required, accepted: 0, refused: 0, failed: 0, outstanding };
        let verdict = loop {
            match votes.verdict(must_know) {
                Verdict::Open => {}
                verdict => break verdict,
            }
            match within(&self.node.env, self.time_left(), waiting.next()).await {
                Some(Some((_, answer))) => votes.count_answer(answer),
                Some(None) | None => break Verdict::Unanswered,
            }
        };
        match verdict {
            Verdict::Accepted => Ok(true),
            Verdict::Refused => Ok(false),
            Verdict::Unknown => Err(RequestError::Cas(FailedCas::Unknown {
                level: self.cas.serial,
                accepted: votes.accepted,
                required: votes.required,
            })),
            Verdict::Open | Verdict::Unanswered => {
                Err(self.too_few_answers(votes.accepted + votes.refused, outstanding))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers as letters: `+` accepted, `-` refused, `!` failed; of three replicas, two of which
    /// are a majority. The verdict on a proposal of one's own, and on one that was found.
    #[test]
    fn verdicts() {
        use Verdict::{Accepted, Open, Refused, Unanswered, Unknown};
        let cases = [
            ("", Open, Open),
            ("+", Open, Open),
            ("++", Accepted, Accepted),
            ("-++", Accepted, Accepted),
            ("!++", Accepted, Accepted),
            ("--", Open, Refused),
            ("---", Refused, Refused),
            ("+--", Unknown, Refused),
            ("-!", Open, Refused),
            ("+-!", Unanswered, Refused),
            ("--!", Unanswered, Refused),
            ("!!!", Unanswered, Refused),
        ];
        for (letters, own, found) in cases {
            let mut votes = Votes { required: 2, accepted: 0, refused: 0, failed: 0, outstanding: 3 };
            for letter in letters.chars() {
                votes.count_answer(match letter {
                    '+' => Some(true),
                    '-' => Some(false),
                    _ => None,
                });
            }
            assert_eq!((votes.verdict(true), votes.verdict(false)), (own, found), "{letters}");
        }
    }
}
