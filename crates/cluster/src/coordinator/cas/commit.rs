//! The last step: all replicas are told what was decided, and as many as the commit level asks for
//! have it before the client is told.
//!
//! Replicas that are down, fail or do not answer get a hint with the change, and so does this node
//! where it has not written it in time: it has the time of its ballot, so coming late or twice it
//! changes nothing. In a statement of v2 at LOCAL_SERIAL replicas of other data centers get the
//! change alone. So do those that were replicas until a moment ago (note 0021): the level waits for
//! them, and nodes refuse commits of partitions that they have no copy of, while they take ordinary
//! writes. Agrees with `StorageProxy.commitPaxos` and `service.paxos.PaxosCommit`.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures_util::future::{Either, join_all, select};
use internode::Verb;
use internode::payload::paxos::Commit;
use membership::RequestCallback;
use ring::EndpointId;
use rows::codec::encode_mutation;
use types::{Consistency, FailureReason, WriteKind};

use super::agreement::Agreement;
use crate::coordinator::error::{FailedCas, FailedWrite, RequestError};
use crate::coordinator::pending_write::PendingWrite;
use crate::coordinator::write_answers::Progress;
use crate::replica::apply::{WriteError, within};
use crate::replica::paxos::trace_lines;

/// The longest time that replicas get to take a commit that they lack. A replica that takes longer
/// is left behind: the statement tries again with the others.
const REFRESH_MAX: Duration = Duration::from_millis(200);

impl Agreement<'_> {
    /// Tells all replicas of a commit. `is_own`: of this statement, not one that it found; then
    /// replicas that are down get a hint.
    pub async fn commit(&self, commit: &Commit, level: Consistency, is_own: bool) -> Result<(), RequestError> {
        let mutations = Arc::from([commit.mutation()]);
        let planned = self.node.plan_mutations(&self.others.ring, mutations, level, self.commit_kind());
        let planned = planned.map_err(|error| self.uncommitted(error, level))?;
        let Some(planned) = planned.into_iter().next() else { return Ok(()) };
        if is_own {
            planned.down.iter().for_each(|replica| planned.sent.hint(*replica));
        }
        let sent = planned.sent;
        let limit = self.node.timeouts().write;
        let request = self.request(Verb::PaxosCommitReq, commit.encode(), limit);
        let is_of_center = self.node.paxos().variant.is_v2 && self.cas.serial == Consistency::LocalSerial;
        let payload = || planned.payload.clone();
        let far = is_of_center.then(|| self.request(Verb::Paxos2CommitRemoteReq, payload(), limit));
        let former = self.former();
        let write = (!former.is_empty()).then(|| self.request(Verb::MutationReq, payload(), limit));
        let callback: Arc<dyn RequestCallback> = Arc::clone(&sent) as Arc<dyn RequestCallback>;
        let here = self.others.ring.local_data_center();
        let kept = sent.keep(self.node.unanswered());
        for peer in sent.peers() {
            let endpoint = self.others.ring.endpoint(peer);
            // replicas of other data centers have no part in a decision of this one
            let far = far.as_ref().filter(|_| endpoint.data_center != here);
            let request = write.as_ref().filter(|_| former.contains(&peer)).or(far).unwrap_or(&request);
            self.trace_sending(request, endpoint.address);
            self.others.messenger.ask_keeping(endpoint.address, &[], request.clone(), kept, &callback);
        }
        let answered = async {
            if level != Consistency::Any {
                answered(&sent).await;
            }
        };
        let is_applied = AtomicBool::new(false);
        let committing = self.commit_here_too(commit, &sent, &is_applied, answered);
        let done = within(&self.node.env, limit, committing).await;
        if !is_applied.load(Ordering::Relaxed) {
            // as old as the ballot: tables that were truncated since get nothing of it
            sent.hint_self(commit.ballot.micros() / 1000);
        }
        let answers = sent.answers();
        match answers.progress() {
            _ if level == Consistency::Any => Ok(()),
            Progress::Enough => Ok(()),
            _ => {
                let is_late = done.is_none() || answers.are_late();
                let cause = if is_late { WriteError::TimedOut } else { WriteError::Peers };
                Err(self.uncommitted(RequestError::of_write(cause, answers), level))
            }
        }
    }

    /// Commits on this node, if it is a replica, while others answer. What this node has is
    /// complete when this returns; its log is waited for only where the others are not enough.
    /// `is_applied` becomes true when this node has the commit.
    async fn commit_here_too(
        &self,
        commit: &Commit,
        sent: &PendingWrite,
        is_applied: &AtomicBool,
        answered: impl Future<Output = ()>,
    ) {
        if !sent.is_here() {
            return answered.await;
        }
        let tell = |committed: Result<(), WriteError>| {
            sent.answer_here(committed.map_err(|error| {
                tracing::warn!(%error, "what was decided is not written on this node");
                FailureReason::Unknown
            }));
        };
        let mut answered = pin!(answered);
        self.trace(|| trace_lines::committed(commit, self.node.replica.applies_paxos(commit)));
        let log = match self.node.replica.paxos_commit_applied(commit).await {
            Ok(log) => log,
            Err(error) => {
                tell(Err(error));
                return answered.await;
            }
        };
        is_applied.store(true, Ordering::Relaxed);
        let Some(log) = log else {
            tell(Ok(()));
            return answered.await;
        };
        if let Either::Left((logged, _)) = select(log, answered.as_mut()).await {
            tell(logged);
            answered.await;
        }
    }

    /// The kind of a commit, as clients are told of it.
    fn commit_kind(&self) -> WriteKind {
        if self.node.paxos().variant.is_v2 { WriteKind::Cas } else { WriteKind::Simple }
    }

    /// The nodes that were replicas of the partition until a moment ago, up or down.
    fn former(&self) -> &[EndpointId] {
        let placement = self.others.ring.placement(&self.cas.table.keyspace);
        placement.map_or(&[], |placement| placement.former(self.cas.key.token))
    }

    /// Tells some replicas of the latest commit; whether all of them have taken it. A former
    /// replica gets the change alone and does not know afterwards that it was committed, so each
    /// statement tells it again.
    pub async fn refresh(&self, commit: &Commit, lacking: &[EndpointId]) -> bool {
        self.trace(|| "Repairing replicas that missed the most recent commit".to_owned());
        let limit = self.time_left().min(REFRESH_MAX);
        let request = self.request(Verb::PaxosCommitReq, commit.encode(), limit);
        let former = self.former();
        let write = || {
            let mut payload = Vec::new();
            encode_mutation(&mut payload, &commit.mutation());
            self.request(Verb::MutationReq, payload, limit)
        };
        let tell = |replica: &EndpointId| {
            let (replica, is_former) = (*replica, former.contains(replica));
            let request = if is_former { write() } else { request.clone() };
            async move {
                match replica == self.others.ring.local_id() {
                    true => self.node.replica.paxos_commit(commit).await.is_ok(),
                    false => {
                        let address = self.others.ring.endpoint(replica).address;
                        self.others.messenger.request(address, request).await.is_ok()
                    }
                }
            }
        };
        let told = within(&self.node.env, limit, join_all(lacking.iter().map(tell))).await;
        told.is_some_and(|told| told.into_iter().all(|has_it| has_it))
    }

    /// A decided change that too few are known to have: its client cannot be told that it failed.
    fn uncommitted(&self, error: RequestError, level: Consistency) -> RequestError {
        let contentions = self.contentions;
        let timed_out = |received, block_for| {
            let kind = self.commit_kind();
            RequestError::Cas(FailedCas::TimedOut { level, kind, received, block_for, contentions })
        };
        match error {
            RequestError::Unavailable { shortage, .. } => timed_out(shortage.alive, shortage.required),
            RequestError::Write(failed) if failed.cause == WriteError::TimedOut => {
                let FailedWrite { answers, .. } = *failed;
                timed_out(answers.received, answers.block_for)
            }
            other => other,
        }
    }
}

/// Waits until the answers decide.
async fn answered(sent: &PendingWrite) {
    poll_fn(|context| match sent.progress(context) {
        Progress::Waiting => Poll::Pending,
        Progress::Enough | Progress::TooFew => Poll::Ready(()),
    })
    .await;
}
