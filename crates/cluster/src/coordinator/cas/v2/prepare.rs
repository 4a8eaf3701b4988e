//! The first round of Paxos v2: a majority promises a ballot, and gives what it has of the
//! partition with the promise.
//!
//! A commit that was found may be told along with the next prepare, in one message. Replicas whose
//! promise lacks the latest commit are told of it while others still answer. A replica that knows
//! other deciding nodes than this one tells what it knows of them: this node takes that in, and
//! begins again where that changes who decides. Agrees with
//! `org.apache.cassandra.service.paxos.{PaxosPrepare,PaxosCommitAndPrepare,PaxosPrepareRefresh}`.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use internode::Verb;
use internode::payload::paxos::{
    Ballot, Commit, CommitAndPrepare, Permission, PrepareV2, PrepareV2Answer, Prepared, Refresh, decode_superseded,
};
use internode::payload::read_request::ReadRequest;
use internode::payload::read_response::{Data, ReadResponse};
use ring::EndpointId;
use types::{FailureReason, ReplicaFailure};

use super::electors::Electors;
use super::promise_tally::{Outcome, Promise, PromiseTally, RoundSize};
use super::replica_requests::TooFew;
use crate::coordinator::cas::agreement::Agreement;
use crate::coordinator::error::RequestError;
use crate::paxos::OnViolation;
use crate::replica::apply::{WriteError, within};
use crate::replica::paxos::trace_lines;

/// How long a round waits for promises that it does not need.
const LATE_PROMISES_MAX: Duration = Duration::from_millis(100);

/// A round that is to be begun.
pub(super) struct Attempt<'a> {
    /// The replicas.
    pub electors: &'a Electors,
    /// The ballot that they are to promise.
    pub ballot: Ballot,
    /// A commit that they are to take first.
    pub commit: Option<&'a Commit>,
    /// The read that comes with the promise.
    pub question: &'a Arc<ReadRequest>,
    /// Whether something may be proposed that changes the partition.
    pub is_for_write: bool,
    /// Whether the permission of the read is enough.
    pub takes_permission: bool,
}

/// The end of a round.
pub(super) enum RoundEnd {
    /// The promises decide.
    With {
        /// The step that follows.
        outcome: Box<Outcome>,
        /// The data that replicas gave.
        data: Vec<(EndpointId, Bytes)>,
        /// The latest ballot that was told of.
        latest: Ballot,
    },
    /// Other nodes decide than this one thought.
    OtherElectors,
}

/// The answer of a replica within a round.
enum ReplicaAnswer {
    Promise(Box<PrepareV2Answer>),
    Refreshed(Option<Ballot>),
}

type PendingReplicaAnswer<'a> = Pin<Box<dyn Future<Output = (EndpointId, Result<ReplicaAnswer, FailureReason>)> + 'a>>;

impl Agreement<'_> {
    /// Asks the replicas to promise a ballot. Done when they decide, or too many have failed.
    pub(super) async fn prepare_with(&self, attempt: &Attempt<'_>) -> Result<RoundEnd, RequestError> {
        self.trace(|| match attempt.commit {
            None => format!("Preparing {} with read", attempt.ballot),
            Some(commit) => format!("Committing {}; Preparing {}", commit.ballot, attempt.ballot),
        });
        let electors = attempt.electors;
        let (required, asked) = (electors.plan.required as usize, electors.plan.live.len());
        let numbers = RoundSize { asked, required, takes_permission: attempt.takes_permission };
        let none = Commit::none(Arc::clone(self.cas.table), self.cas.key.clone());
        let mut tally = PromiseTally::new(numbers, none);
        let mut failures = Vec::new();
        let mut waiting: FuturesUnordered<PendingReplicaAnswer<'_>> =
            electors.plan.live.iter().map(|id| self.ask_to_promise(attempt, *id)).collect();
        loop {
            let heard = within(&self.node.env, self.total_time_left(), waiting.next()).await.flatten();
            let outcome = match heard {
                None => {
                    let received = tally.heard();
                    return Err(self.too_few(TooFew { received, asked, required, failures }));
                }
                Some((from, Ok(ReplicaAnswer::Refreshed(superseded_by)))) => tally.refreshed(from, superseded_by),
                Some((from, Ok(ReplicaAnswer::Promise(answer)))) => match *answer {
                    PrepareV2Answer::Rejected { superseded_by } => Some(Outcome::Superseded(superseded_by)),
                    PrepareV2Answer::Permitted(mut permission) => {
                        if self.decide_others(&mut permission, electors) {
                            return Ok(RoundEnd::OtherElectors);
                        }
                        match promise_of(*permission, electors.reads(from)) {
                            Some(promise) => tally.add_promise(from, promise),
                            None => {
                                let (endpoint, reason) = (electors.contact(from).address, FailureReason::Unknown);
                                tracing::warn!(peer = %endpoint, "a promise comes without what was to be read");
                                failures.push(ReplicaFailure { endpoint, reason });
                                tally.fail()
                            }
                        }
                    }
                },
                Some((from, Err(reason))) => {
                    failures.push(ReplicaFailure { endpoint: electors.contact(from).address, reason });
                    tally.fail()
                }
            };
            // sent also where the round has ended: the next one finds the commit then
            let lacking = tally.take_lacking();
            if !lacking.is_empty() {
                self.trace(|| "Repairing replicas that missed the most recent commit".to_owned());
                let refresh = Refresh { promised: attempt.ballot, missing: tally.committed().clone() };
                let refresh = Arc::new(refresh);
                waiting.extend(lacking.into_iter().map(|id| self.ask_to_refresh(electors, &refresh, id)));
            }
            match outcome {
                None => {}
                Some(Outcome::Failed) => {
                    let received = tally.heard();
                    return Err(self.too_few(TooFew { received, asked, required, failures }));
                }
                Some(outcome) => {
                    self.check_linearizability(attempt, &mut tally, &mut waiting).await?;
                    let latest = match &outcome {
                        Outcome::Superseded(by) => tally.latest().latest(*by),
                        _ => tally.latest(),
                    };
                    return Ok(RoundEnd::With { outcome: Box::new(outcome), data: tally.data, latest });
                }
            }
        }
    }

    /// Looks for a replica whose promise shows that the majority was not linearizable, where
    /// `paxos_on_linearizability_violations` asks for it. For that the round waits a little for
    /// the promises of the remaining replicas. Tables whose states no repair has completed are
    /// left alone, because rounds of v1 may have left them as they are.
    async fn check_linearizability(
        &self,
        attempt: &Attempt<'_>,
        tally: &mut PromiseTally,
        waiting: &mut FuturesUnordered<PendingReplicaAnswer<'_>>,
    ) -> Result<(), RequestError> {
        let reaction = self.node.paxos().on_violation;
        let bound = self.node.replica.paxos_bound_of(self.cas.table, self.cas.key.token);
        if reaction == OnViolation::Ignore || bound == Ballot::NONE || !tally.has_majority() {
            return Ok(());
        }
        let until = self.node.env.now().plus(LATE_PROMISES_MAX.min(self.total_time_left()));
        while tally.violation.is_none() {
            let rest = until.since(self.node.env.now());
            let Some(Some((from, heard))) = within(&self.node.env, rest, waiting.next()).await else { break };
            let Ok(ReplicaAnswer::Promise(answer)) = heard else { continue };
            let PrepareV2Answer::Permitted(permission) = *answer else { continue };
            if let Some(promise) = promise_of(*permission, attempt.electors.reads(from)) {
                tally.add_promise(from, promise);
            }
        }
        let Some((from, commit)) = tally.violation else { return Ok(()) };
        if reaction == OnViolation::Log {
            let (peer, table) = (attempt.electors.contact(from).address, &self.cas.table.name);
            let (ballot, latest) = (attempt.ballot, tally.committed().ballot);
            tracing::error!(%ballot, %latest, %peer, %commit, table, "Linearizability violation: a majority lacks a commit");
            return Ok(());
        }
        let (received, required) = (tally.heard(), attempt.electors.plan.required as usize);
        Err(self.violated(received, required))
    }

    fn ask_to_promise<'a>(&'a self, attempt: &Attempt<'_>, id: EndpointId) -> PendingReplicaAnswer<'a> {
        let electors = attempt.electors;
        let prepared = match electors.reads(id) {
            true => Prepared::Read(Box::new(ReadRequest::clone(attempt.question))),
            false => Prepared::Key(Arc::clone(self.cas.table), self.cas.key.clone()),
        };
        let (ballot, is_for_write) = (attempt.ballot, attempt.is_for_write);
        let prepare = PrepareV2 { ballot, electorate: electors.electorate.clone(), is_for_write, prepared };
        let message = match attempt.commit {
            None => Message::Prepare(prepare),
            Some(commit) => Message::Both(Box::new(CommitAndPrepare { commit: commit.clone(), prepare })),
        };
        let (verb, payload) = match &message {
            Message::Prepare(prepare) => (Verb::Paxos2PrepareReq, prepare.encode()),
            Message::Both(both) => (Verb::Paxos2CommitAndPrepareReq, both.encode()),
        };
        let request = self.request(verb, payload, self.node.timeouts().write);
        let rest = self.total_time_left();
        let here = async move {
            let answer = match &message {
                Message::Prepare(prepare) => self.node.paxos_prepare_v2(prepare, rest).await,
                Message::Both(both) => {
                    self.trace(|| trace_lines::committed(&both.commit, self.node.replica.applies_paxos(&both.commit)));
                    self.node.paxos_commit_and_prepare(both, rest).await
                }
            };
            let asked = match &message {
                Message::Prepare(asked) => asked,
                Message::Both(both) => &both.prepare,
            };
            answer.iter().for_each(|answer| self.trace(|| trace_lines::prepared_v2(asked, answer)));
            self.log_failure(answer, "a ballot could not be promised on this node")
                .map(Box::new)
                .map(ReplicaAnswer::Promise)
        };
        let decode = |payload: &Bytes| {
            let answer = PrepareV2Answer::decode(payload, &|id| self.table_of(id)).ok()?;
            Some(ReplicaAnswer::Promise(Box::new(answer)))
        };
        self.ask_elector(electors, id, request, here, decode)
    }

    fn ask_to_refresh<'a>(
        &'a self,
        electors: &Electors,
        refresh: &Arc<Refresh>,
        id: EndpointId,
    ) -> PendingReplicaAnswer<'a> {
        let request = self.request(Verb::Paxos2PrepareRefreshReq, refresh.encode(), self.node.timeouts().write);
        let refresh = Arc::clone(refresh);
        let here = async move {
            let answer = self.node.paxos_refresh(&refresh).await;
            answer.iter().for_each(|by| self.trace(|| trace_lines::refreshed(&refresh.promised, by.as_ref())));
            self.log_failure(answer, "this node could not take a commit that it lacks").map(ReplicaAnswer::Refreshed)
        };
        let decode = |payload: &Bytes| decode_superseded(payload).ok().map(ReplicaAnswer::Refreshed);
        self.ask_elector(electors, id, request, here, decode)
    }

    fn log_failure<T>(&self, answer: Result<T, WriteError>, line: &str) -> Option<T> {
        answer.inspect_err(|error| tracing::warn!(%error, "{line}")).ok()
    }

    /// Takes in what a replica tells of the nodes that decide, if it knows others than this node
    /// did. Gives whether others decide now.
    fn decide_others(&self, permission: &mut Permission, electors: &Electors) -> bool {
        let endpoints = std::mem::take(&mut permission.endpoints);
        if endpoints.is_empty() {
            return false;
        }
        let local = self.node.identity.broadcast;
        for (endpoint, state) in endpoints.into_iter().filter(|(endpoint, _)| *endpoint != local) {
            if let Some(state) = state {
                self.others.messenger.apply_endpoint_state(endpoint, state);
            }
        }
        !self.electorate_now().is_same(&electors.electorate)
    }
}

enum Message {
    Prepare(PrepareV2),
    Both(Box<CommitAndPrepare>),
}

/// The promise in an answer. None: a replica that was to read has not, or only given a digest.
fn promise_of(permission: Permission, reads: bool) -> Option<Promise> {
    let Permission { low_bound, accepted, committed, read, is_stable, superseded_by, .. } = permission;
    let data = match (read, reads) {
        (Some(ReadResponse::Data(Data { partitions, .. })), true) => Some(partitions),
        (_, true) => return None,
        (_, false) => None,
    };
    Some(Promise { low_bound, accepted, committed, data, is_stable, superseded_by })
}
