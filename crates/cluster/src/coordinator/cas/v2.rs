//! Conditional statements and reads at SERIAL by Paxos v2 (`paxos_variant: v2`).
//!
//! 1. A majority promises a ballot and gives what it has of the partition with the promise; what
//!    was begun before comes to its end meanwhile ([`begin`]).
//! 2. The statement decides by that. Where no proposal can have come between promise and read, and
//!    it writes nothing, it ends here: one round.
//! 3. A majority accepts what is to be written ([`propose`]); a change of nothing where the read
//!    was not linearizable without. Where another statement came first, all begins again.
//! 4. What was accepted is committed ([`super::commit`]).
//!
//! Nodes that use v1 and v2 may stand in one ring. Agrees with
//! `org.apache.cassandra.service.paxos.Paxos`.

mod begin;
mod electors;
mod prepare;
mod promise_tally;
mod promised_partition;
mod propose;
mod replica_requests;

use std::sync::Arc;

use internode::payload::paxos::Commit;
use rows::{Build, Mutation, PartitionStream, ReadCommand};

use super::agreement::Agreement;
use super::{Cas, CasError, Round, quorum_of};
use crate::coordinator::error::{FailedRead, RequestError};
use crate::coordinator::write::distributed::RingPeers;
use crate::node::Node;
use crate::replica::read::{ReadFigures, ReadRequest};
pub use promised_partition::PromisedPartition;
use propose::ProposalOutcome;

const STALE: &str = "CAS precondition is met, but ballot stale for proposal; retrying";
const PREEMPTED: &str = "Paxos proposal not accepted (pre-empted by a higher ballot)";

impl Agreement<'_> {
    /// See [`Node::compare_and_set`].
    pub(super) async fn compare_and_set_v2<E>(
        &mut self,
        command: &ReadCommand,
        decide: &mut impl AsyncFnMut(Round) -> Result<Option<Mutation>, E>,
    ) -> Result<(), CasError<E>> {
        let commit_at = self.cas.commit;
        self.electors()?;
        self.check_commit(commit_at)?;
        let question = promised_partition::question(command);
        loop {
            let begun = self.begin_with_read(&question, true, false).await?;
            let (read_at, timestamp) = (quorum_of(self.cas.serial), Some(begun.ballot.micros()));
            let found = Some(Arc::clone(&begun.found));
            let decided = decide(Round { read_at, timestamp, found }).await.map_err(CasError::Decide)?;
            let proposal = self.proposal(begun.ballot, decided)?;
            let changes = !proposal.update.is_empty();
            let is_settled = begun.is_linearizable && !begun.found.was_extended();
            if !changes && (is_settled || !self.node.paxos().variant.settles_rejections) {
                self.trace(|| "CAS precondition rejected".to_owned());
                return Ok(());
            }
            if !begun.is_promised {
                self.back_off_by_strategy(STALE, &begun.electors).await?;
                continue;
            }
            self.trace(|| match changes {
                true => format!("CAS precondition is met; proposing client-requested updates for {}", begun.ballot),
                false => "CAS precondition does not match current values; proposing empty update".to_owned(),
            });
            match self.propose_to(&begun.electors, &proposal, changes).await? {
                ProposalOutcome::Accepted => {
                    if changes {
                        self.commit(&proposal, commit_at, true).await?;
                    }
                    self.trace(|| if changes { "CAS successful" } else { "CAS precondition rejected" }.to_owned());
                    return Ok(());
                }
                ProposalOutcome::Superseded(by) => {
                    self.raise_floor(by);
                    self.back_off_by_strategy(PREEMPTED, &begun.electors).await?;
                }
            }
        }
    }
}

impl Node {
    /// A read at SERIAL or LOCAL_SERIAL among several nodes.
    pub(in crate::coordinator) async fn read_agreed<B: Build>(
        &self,
        others: RingPeers<'_>,
        cas: Cas<'_>,
        request: ReadRequest,
        figures: &ReadFigures,
        build: B,
    ) -> Result<B::Built, FailedRead<B::Error>> {
        let mut agreement = Agreement::new(self, others, cas, self.env.now(), &self.cas.read);
        agreement.limit = self.timeouts().read;
        let Some(_held) = self.lock_partition(cas.table, cas.key).await else {
            return Err(crate::coordinator::read::of_unsettled(agreement.lock_wait_timeout()));
        };
        let read = agreement.read_v2(request, figures, build).await;
        agreement.record(match &read {
            Err(FailedRead::Refused(error)) => Some(error),
            _ => None,
        });
        read.map_err(|error| match error {
            FailedRead::Refused(error) => crate::coordinator::read::of_unsettled(error),
            other => other,
        })
    }
}

impl Agreement<'_> {
    async fn read_v2<B: Build>(
        &mut self,
        request: ReadRequest,
        figures: &ReadFigures,
        build: B,
    ) -> Result<B::Built, FailedRead<B::Error>> {
        let refused = |error: RequestError| FailedRead::Refused(error);
        let question =
            promised_partition::question(request.commands.first().expect("a read at SERIAL is of one partition"));
        let (build, quorum) = (Arc::new(build), quorum_of(self.cas.serial));
        let mut takes_permission = true;
        loop {
            let begun = self.begin_with_read(&question, false, takes_permission).await.map_err(refused)?;
            let build = {
                let build = Arc::clone(&build);
                move |stream: &mut dyn PartitionStream| build.build(stream)
            };
            let node = self.node;
            let read = node.read_promised_partition(request.clone(), quorum, &begun.found, figures, build).await?;
            let is_settled = begun.is_linearizable && !begun.found.was_extended();
            if is_settled || begun.is_promised && !node.paxos().variant.settles_reads {
                return Ok(read);
            }
            if !begun.is_promised {
                // the rest of a long read is not covered by the permission
                takes_permission = false;
                self.back_off_by_strategy(PREEMPTED, &begun.electors).await.map_err(refused)?;
                continue;
            }
            let nothing = Commit::empty(begun.ballot, Arc::clone(self.cas.table), self.cas.key.clone());
            match self.propose_to(&begun.electors, &nothing, false).await.map_err(refused)? {
                ProposalOutcome::Accepted => return Ok(read),
                ProposalOutcome::Superseded(by) => {
                    self.raise_floor(by);
                    self.back_off_by_strategy(PREEMPTED, &begun.electors).await.map_err(refused)?;
                }
            }
        }
    }
}
