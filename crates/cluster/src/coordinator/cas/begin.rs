//! The begin of a round: a ballot that a majority has promised, after which nothing that was begun
//! before can still be decided.
//!
//! 1. A majority promises the ballot ([`super::prepare`]). Where another one is later, the
//!    statement makes way and tries again.
//! 2. A proposal that one of them has accepted and none knows to be committed may have been
//!    decided: it is proposed again with this ballot and committed; then a new ballot is tried.
//! 3. Replicas that lack the latest commit are told of it, so that a majority has it before
//!    something else is decided. When all of them have taken it the promises hold; else a new
//!    ballot is tried.
//!
//! Agrees with `StorageProxy.beginAndRepairPaxos`, which prepares again after step 3.

use std::time::Duration;

use env::rare::{Rare, happens};
use internode::payload::paxos::{Ballot, Commit};
use types::{Consistency, WriteKind};

use super::agreement::{Agreement, Participants};
use super::prepare::Next;
use crate::coordinator::error::{FailedCas, RequestError};
use crate::paxos::PaxosPurging;

/// Time after which replicas forget a partition's ballots, unless the gc_grace of its table is
/// longer (`SystemKeyspace.legacyPaxosTtlSec`).
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3 * 60 * 60);

impl Agreement<'_> {
    /// Begins a round: the replicas, and the ballot that a majority has promised. Proposals that
    /// are found are committed at `finish_at`.
    pub async fn begin(&mut self, finish_at: Consistency) -> Result<(Participants, Ballot), RequestError> {
        while self.may_try() {
            let participants = self.participants()?;
            let ballot = self.node.next_ballot(self.floor, self.cas.serial);
            let promises = self.prepare(&participants, ballot).await?;
            self.floor = promises.latest().latest(ballot).micros().saturating_add(1);
            match promises.next(self.forgotten_before()) {
                Next::Propose if happens(Rare::MakeWay) => self.back_off().await,
                Next::Propose => return Ok((participants, ballot)),
                Next::BackOff => {
                    self.trace(|| OVERTAKEN.to_owned());
                    self.back_off().await;
                }
                Next::Finish(found) => self.finish(&participants, ballot, found, finish_at).await?,
                Next::Refresh(commit, lacking) => {
                    if self.refresh(&commit, &lacking).await {
                        return Ok((participants, ballot));
                    }
                }
            }
        }
        Err(self.contention_timeout())
    }

    /// Brings a proposal of another statement to its end.
    async fn finish(
        &mut self,
        participants: &Participants,
        ballot: Ballot,
        found: Commit,
        level: Consistency,
    ) -> Result<(), RequestError> {
        self.trace(|| format!("Finishing incomplete paxos round {}", found.ballot));
        self.figures.unfinished_commits.add(1);
        let proposal = Commit { ballot, update: found.update.with_timestamp(ballot.micros()) };
        if !self.propose(participants, &proposal, false).await? {
            self.trace(|| OVERTAKEN.to_owned());
            self.back_off().await;
            return Ok(());
        }
        // this statement has written nothing yet, whatever became of the other one
        self.commit(&proposal, level, false).await.map_err(|error| match error {
            RequestError::Cas(FailedCas::TimedOut { level, received, block_for, contentions, .. }) => {
                let kind = WriteKind::Cas;
                RequestError::Cas(FailedCas::TimedOut { level, kind, received, block_for, contentions })
            }
            other => other,
        })
    }

    /// The time, in microseconds, before which replicas may have forgotten commits. Where states
    /// have no TTL replicas forget by the ballot that asks, all at the same moment.
    fn forgotten_before(&self) -> i64 {
        if self.node.paxos().purging != PaxosPurging::Legacy {
            return i64::MIN;
        }
        let grace = u64::try_from(self.cas.table.params.gc_grace_seconds).unwrap_or(0);
        let kept = FORGOTTEN_AFTER.max(Duration::from_secs(grace));
        let kept = i64::try_from(kept.as_micros()).unwrap_or(i64::MAX);
        self.node.env.clock.now_micros().saturating_sub(kept)
    }
}

const OVERTAKEN: &str = "Some replicas have already promised a higher ballot than ours; aborting";
