//! Conditional statements of a ring: the replicas of the partition agree by Paxos.
//!
//! 1. A majority promises a ballot, and everything that was begun before comes to its end
//!    ([`super::begin`]).
//! 2. The partition is read at QUORUM, and the statement decides.
//! 3. A majority accepts what is to be written ([`super::propose`]), also where that is nothing:
//!    otherwise an earlier proposal could be finished after this statement's client has been told
//!    that it is not there. Where another statement came first, all begins again.
//! 4. What was accepted is committed ([`super::commit`]).
//!
//! LOCAL_SERIAL asks the replicas of this data center alone. Agrees with `StorageProxy.doPaxos`
//! (`paxos_variant: v1`).

use std::sync::Arc;

use internode::payload::paxos::{Ballot, Commit};
use rows::{Mutation, PartitionUpdate};
use storage::StorageError;
use types::{Consistency, WriteKind};

use super::agreement::{Agreement, Participants};
use super::{CasError, Round, quorum_of};
use crate::coordinator::error::{FailedCas, RequestError};
use crate::coordinator::write_answers::WriteAnswers;
use crate::replica::paxos::record_room;

impl Agreement<'_> {
    /// See [`Node::compare_and_set`].
    pub async fn compare_and_set<E>(
        &mut self,
        commit_at: Consistency,
        decide: &mut impl AsyncFnMut(Round) -> Result<Option<Mutation>, E>,
    ) -> Result<(), CasError<E>> {
        self.participants()?;
        self.check_commit(commit_at)?;
        while self.may_try() {
            let (participants, ballot) = self.begin(commit_at).await?;
            let timestamp = Some(ballot.micros());
            let round = Round { read_at: quorum_of(self.cas.serial), timestamp, found: None };
            let decided = decide(round).await.map_err(CasError::Decide)?;
            let proposal = self.proposal(ballot, decided)?;
            if !proposal.update.is_empty() {
                self.trace(|| format!("CAS precondition is met; proposing client-requested updates for {ballot}"));
            }
            if self.propose_own(&participants, &proposal).await? {
                if proposal.update.is_empty() {
                    self.trace(|| "CAS did not apply".to_owned());
                    return Ok(());
                }
                self.commit(&proposal, commit_at, true).await?;
                self.trace(|| "CAS applied successfully".to_owned());
                return Ok(());
            }
            self.trace(|| "Paxos proposal not accepted (pre-empted by a higher ballot)".to_owned());
            self.back_off().await;
        }
        Err(self.contention_timeout().into())
    }

    /// See [`Node::settle_partition`].
    pub async fn settle(&mut self, finish_at: Consistency, proposes: bool) -> Result<(), RequestError> {
        while self.may_try() {
            let (participants, ballot) = self.begin(finish_at).await?;
            if !proposes {
                return Ok(());
            }
            let proposal = Commit::empty(ballot, Arc::clone(self.cas.table), self.cas.key.clone());
            if self.propose_own(&participants, &proposal).await? {
                return Ok(());
            }
            self.trace(|| "Paxos proposal not accepted (pre-empted by a higher ballot)".to_owned());
            self.back_off().await;
        }
        Err(self.contention_timeout())
    }

    /// Proposes what this statement has decided. An empty proposal that only some have accepted
    /// changes nothing: the statement tries again.
    async fn propose_own(&self, participants: &Participants, proposal: &Commit) -> Result<bool, RequestError> {
        match self.propose(participants, proposal, true).await {
            Err(RequestError::Cas(FailedCas::Unknown { .. })) if proposal.update.is_empty() => Ok(false),
            other => other,
        }
    }

    /// The proposal of a decision. Refused where no replica would take what is to be written, or
    /// the record of the commit: once decided it could never be committed.
    pub(super) fn proposal(&self, ballot: Ballot, decided: Option<Mutation>) -> Result<Commit, RequestError> {
        let update = decided.and_then(|mutation| {
            assert!(mutation.updates.len() <= 1, "a conditional statement is of one table");
            mutation.updates.into_iter().next()
        });
        let update = match update {
            None => PartitionUpdate::new(Arc::clone(self.cas.table), self.cas.key.clone()),
            Some(update) => {
                assert!(update.key == *self.cas.key, "a conditional statement is of one partition");
                update.with_timestamp(ballot.micros())
            }
        };
        let commit = Commit { ballot, update };
        let size_max = self.node.mutation_size_max();
        match commit.encode().len() + record_room(self.cas.key) {
            size if size > size_max => {
                let cause = StorageError::MutationTooLarge { size, size_max }.into();
                Err(RequestError::of_write(cause, WriteAnswers::of_one(self.cas.serial, WriteKind::Cas)))
            }
            _ => Ok(commit),
        }
    }

    /// Refuses a commit level that too few replicas are up for, before anything is decided.
    pub(super) fn check_commit(&self, level: Consistency) -> Result<(), RequestError> {
        let (table, key) = (self.cas.table, self.cas.key);
        self.node.plan_partition(&table.keyspace, key.token, level, WriteKind::Simple).map(drop)
    }
}
