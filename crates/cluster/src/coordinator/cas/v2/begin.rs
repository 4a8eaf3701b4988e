//! The begin of a statement of Paxos v2: a ballot that a majority has promised, and what they have
//! of the partition.
//!
//! 1. A majority promises the ballot and reads ([`super::prepare`]). Where another one is later,
//!    the statement makes way and tries again.
//! 2. A proposal that may have been decided is proposed again with this ballot, its change as it
//!    is. Its commit goes along with the next prepare.
//! 3. A commit that too few have, and that was not read, goes along with the next prepare, too.
//!
//! Agrees with `org.apache.cassandra.service.paxos.Paxos.begin`.

use std::sync::Arc;
use std::time::Duration;

use internode::payload::paxos::{Ballot, Commit};
use internode::payload::read_request::ReadRequest;

use super::electors::Electors;
use super::prepare::{Attempt, RoundEnd};
use super::promise_tally::Outcome;
use super::promised_partition::PromisedPartition;
use super::propose::ProposalOutcome;
use crate::cas_metrics::CasFigures;
use crate::coordinator::cas::agreement::Agreement;
use crate::coordinator::error::RequestError;
use crate::node::Node;
use crate::paxos::ContentionInputs;

/// A statement that has begun.
pub(super) struct StartedRound {
    /// The replicas that decide.
    pub electors: Electors,
    /// The ballot that the replicas have promised, or with which they permit the read.
    pub ballot: Ballot,
    /// Whether they have promised the ballot. If not, they only permit the read.
    pub is_promised: bool,
    /// Whether the read is linearizable without a proposal.
    pub is_linearizable: bool,
    /// The partition as they have it.
    pub found: Arc<PromisedPartition>,
}

impl Agreement<'_> {
    /// Begins. `takes_permission`: the permission of the read is enough.
    pub(super) async fn begin_with_read(
        &mut self,
        question: &Arc<ReadRequest>,
        is_for_write: bool,
        takes_permission: bool,
    ) -> Result<StartedRound, RequestError> {
        let mut electors = self.electors()?;
        let mut commit: Option<Commit> = None;
        loop {
            if self.total_time_left().is_zero() {
                return Err(self.contention_timeout_at(electors.plan.required));
            }
            let ballot = self.node.next_ballot(self.floor, self.cas.serial);
            let taken = commit.take();
            let attempt = Attempt {
                electors: &electors,
                ballot,
                commit: taken.as_ref(),
                question,
                is_for_write,
                takes_permission,
            };
            let ended = self.prepare_with(&attempt).await?;
            self.raise_floor(ballot);
            let RoundEnd::With { outcome, data, latest } = ended else {
                electors = self.electors()?;
                continue;
            };
            self.raise_floor(latest);
            match *outcome {
                Outcome::Ready { is_promised, is_linearizable } => {
                    let data = data.into_iter().map(|(id, data)| (electors.contact(id), data)).collect();
                    let found = Arc::new(PromisedPartition::new(data, question));
                    return Ok(StartedRound { electors, ballot, is_promised, is_linearizable, found });
                }
                Outcome::Superseded(_) => self.back_off_by_strategy(OVERTAKEN, &electors).await?,
                Outcome::Unfinished(accepted) => {
                    self.trace(|| format!("Finishing incomplete paxos round {}", accepted.ballot));
                    self.figures.unfinished_commits.add(1);
                    let again = Commit { ballot, update: accepted.update };
                    match self.propose_to(&electors, &again, false).await? {
                        ProposalOutcome::Accepted => commit = Some(again),
                        ProposalOutcome::Superseded(by) => {
                            self.raise_floor(by);
                            self.back_off_by_strategy(OVERTAKEN, &electors).await?;
                        }
                    }
                }
                Outcome::Uncommitted(found) => {
                    self.trace(|| "Repairing replicas that missed the most recent commit".to_owned());
                    commit = Some(found);
                }
                Outcome::Failed => unreachable!("too few answers are an error"),
            }
        }
    }

    /// Has the next ballot be later than this one.
    pub(super) fn raise_floor(&mut self, ballot: Ballot) {
        self.floor = self.floor.max(ballot.micros().saturating_add(1));
    }

    /// Makes way for another statement, for a time that `paxos_contention_*` say. Refused where the
    /// statement would have no time left.
    pub(super) async fn back_off_by_strategy(&mut self, line: &str, electors: &Electors) -> Result<(), RequestError> {
        self.trace(|| line.to_owned());
        self.contentions += 1;
        let wait = Duration::from_micros(self.node.paxos().contention.wait(self.contentions, self.node));
        if wait >= self.total_time_left() {
            return Err(self.contention_timeout_at(electors.plan.required));
        }
        self.node.env.sleep(wait).await;
        Ok(())
    }
}

impl ContentionInputs for Node {
    fn reads(&self, percentile: f64) -> u64 {
        latency(&self.cas.read, percentile)
    }

    fn writes(&self, percentile: f64) -> u64 {
        latency(&self.cas.write, percentile)
    }

    fn below(&self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.env.random.below(bound) }
    }
}

fn latency(figures: &CasFigures, percentile: f64) -> u64 {
    let latencies = figures.latency.snapshot();
    if latencies.count() == 0 { 0 } else { latencies.percentile(percentile) }
}

const OVERTAKEN: &str = "Some replicas have already promised a higher ballot than ours; aborting";
