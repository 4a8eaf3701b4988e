//! The first round: a majority of the replicas promise to accept nothing of earlier ballots, and
//! tell what they have accepted and committed before.
//!
//! Agrees with `org.apache.cassandra.service.paxos.v1.PrepareCallback`.

use bytes::Bytes;
use futures_util::StreamExt;
use internode::Verb;
use internode::payload::paxos::{Ballot, Commit, PrepareAnswer};
use ring::EndpointId;

use super::agreement::{Agreement, Participants, PendingAnswers};
use crate::coordinator::error::RequestError;
use crate::replica::apply::within;
use crate::replica::paxos::trace_lines;

/// The answers of the replicas so far, summed up.
pub(super) struct Promises {
    /// The latest ballot that a replica has promised instead; None: none has.
    pub preempted_by: Option<Ballot>,
    /// The latest proposal that one of them has accepted and does not know to be committed.
    pub in_progress: Commit,
    /// The latest commit that one of them knows.
    pub most_recent: Commit,
    /// The replicas that have promised, each with the latest commit that it knows.
    pub promised: Vec<(EndpointId, Ballot)>,
}

/// The next step after a round of promises.
#[derive(PartialEq, Debug)]
pub(super) enum Next {
    /// Another coordinator's ballot is later.
    BackOff,
    /// A proposal that may have been decided has to be brought to its end first.
    Finish(Commit),
    /// Some that have promised lack the latest commit.
    Refresh(Commit, Vec<EndpointId>),
    /// The ballot may be used.
    Propose,
}

impl Promises {
    /// The state before any answer. `none` stands for no proposal and no commit.
    pub fn new(none: Commit) -> Self {
        Self { preempted_by: None, in_progress: none.clone(), most_recent: none, promised: Vec::new() }
    }

    /// Adds the answer of one replica.
    pub fn add_answer(&mut self, from: EndpointId, answer: PrepareAnswer) {
        if !answer.promised {
            let known = self.preempted_by.unwrap_or(Ballot::NONE);
            self.preempted_by = Some(known.latest(answer.in_progress.ballot));
            return;
        }
        assert!(self.promised.iter().all(|(known, _)| *known != from), "a replica promises a ballot once");
        self.promised.push((from, answer.most_recent.ballot));
        if answer.in_progress.is_after(&self.in_progress) {
            self.in_progress = answer.in_progress;
        }
        if answer.most_recent.is_after(&self.most_recent) {
            self.most_recent = answer.most_recent;
        }
    }

    /// The latest ballot that was told of: the next one has to be later.
    pub fn latest(&self) -> Ballot {
        let latest = self.in_progress.ballot.latest(self.most_recent.ballot);
        latest.latest(self.preempted_by.unwrap_or(Ballot::NONE))
    }

    /// The next step. `forgotten_before`: replicas may have forgotten commits of an earlier time
    /// (microseconds), so those are not missed.
    ///
    /// An empty proposal is neither finished nor committed. A majority that has accepted one keeps
    /// everything earlier from being finished, which is all that it is for; and where fewer have,
    /// its statement has told nobody anything.
    pub fn next(&self, forgotten_before: i64) -> Next {
        if self.preempted_by.is_some() {
            return Next::BackOff;
        }
        if !self.in_progress.update.is_empty() && self.in_progress.is_after(&self.most_recent) {
            return Next::Finish(self.in_progress.clone());
        }
        let latest = self.most_recent.ballot;
        let lacking = self.promised.iter().filter(|(_, known)| *known != latest).map(|(id, _)| *id);
        match lacking.collect::<Vec<_>>() {
            lacking if lacking.is_empty() || latest.micros() < forgotten_before => Next::Propose,
            lacking => Next::Refresh(self.most_recent.clone(), lacking),
        }
    }
}

impl Agreement<'_> {
    /// Asks the replicas to promise a ballot. Done when a majority has, or when one has promised a
    /// later one.
    pub async fn prepare(&self, participants: &Participants, ballot: Ballot) -> Result<Promises, RequestError> {
        self.trace(|| format!("Preparing {ballot}"));
        let (table, key) = (self.cas.table, self.cas.key);
        let asked = Commit::empty(ballot, table.clone(), key.clone());
        let request = self.request(Verb::PaxosPrepareReq, asked.encode(), self.time_left());
        let here = || async {
            let answer = self.node.replica.paxos_prepare(table, key, ballot).await;
            answer.iter().for_each(|answer| self.trace(|| trace_lines::prepared(&asked, answer)));
            answer.inspect_err(|error| tracing::warn!(%error, "a ballot could not be promised on this node")).ok()
        };
        let decode = |payload: &Bytes| PrepareAnswer::decode(payload, &|id| self.table_of(id)).ok();
        let mut waiting: PendingAnswers<'_, PrepareAnswer> = self.ask_all(participants, &request, here, decode);
        let mut promises = Promises::new(Commit::none(table.clone(), key.clone()));
        while promises.preempted_by.is_none() && promises.promised.len() < participants.required as usize {
            match within(&self.node.env, self.time_left(), waiting.next()).await {
                Some(Some((from, Some(answer)))) => promises.add_answer(from, answer),
                Some(Some((_, None))) => {}
                Some(None) | None => {
                    let received = u32::try_from(promises.promised.len()).unwrap_or(u32::MAX);
                    return Err(self.too_few_answers(received, participants.required));
                }
            }
        }
        Ok(promises)
    }
}

#[cfg(test)]
mod tests {
    use internode::payload::paxos::BallotFlag;

    use super::*;
    use crate::testing::SimNode;

    /// Promised; the proposal in progress, and whether it is empty; the latest commit.
    type Told = (bool, (i64, bool), i64);

    /// The step after answers of two replicas. Ballots are named by their seconds, 0 for none.
    #[test]
    fn steps_after_promises() {
        let machine = SimNode::new(std::time::Duration::ZERO);
        let update = machine.role(1, 8).updates.remove(0);
        let ballot = |seconds: i64| match seconds {
            0 => Ballot::NONE,
            seconds => Ballot::new(seconds * 1_000_000, BallotFlag::Global, 7),
        };
        let empty = |seconds| Commit::empty(ballot(seconds), update.table.clone(), update.key.clone());
        let full = |seconds| Commit { ballot: ballot(seconds), update: update.clone() };
        let commit =
            |(seconds, is_empty): (i64, bool)| if is_empty || seconds == 0 { empty(seconds) } else { full(seconds) };
        let no = (0, false);
        let answers = |cases: &[Told]| {
            let mut promises = Promises::new(empty(0));
            for (replica, (promised, in_progress, most_recent)) in (0..).zip(cases) {
                let (in_progress, most_recent) = (commit(*in_progress), commit((*most_recent, false)));
                promises
                    .add_answer(EndpointId(replica), PrepareAnswer { promised: *promised, in_progress, most_recent });
            }
            (promises.next(5_000_000), promises.latest())
        };
        let cases: [(&[Told], Next, i64); 10] = [
            (&[(true, no, 0), (true, no, 0)], Next::Propose, 0),
            (&[(true, no, 20), (true, no, 20)], Next::Propose, 20),
            (&[(true, no, 20), (true, no, 0)], Next::Refresh(full(20), vec![EndpointId(1)]), 20),
            (&[(true, no, 10), (true, no, 20)], Next::Refresh(full(20), vec![EndpointId(0)]), 20),
            // forgotten by whoever does not tell of it
            (&[(true, no, 4), (true, no, 0)], Next::Propose, 4),
            (&[(true, (30, false), 20), (true, no, 20)], Next::Finish(full(30)), 30),
            (&[(true, (30, true), 20), (true, no, 20)], Next::Propose, 30),
            // a later empty one has overtaken it
            (&[(true, (30, false), 20), (true, (40, true), 20)], Next::Propose, 40),
            // it is committed elsewhere
            (&[(true, (30, false), 20), (true, no, 30)], Next::Refresh(full(30), vec![EndpointId(0)]), 30),
            (&[(true, no, 20), (false, (50, true), 20)], Next::BackOff, 50),
        ];
        for (told, next, latest) in cases {
            assert_eq!(answers(told), (next, ballot(latest)), "{told:?}");
        }
    }
}
