//! The verbs of Paxos: this node as a replica of a conditional statement that another node
//! coordinates ([`crate::replica::paxos`], and for what only v2 has [`crate::promises`]).
//!
//! Prepares and proposals of v1 for partitions that this node does not own are served all the
//! same, unless they are to be refused ([`crate::out_of_range`]); everything else about such a
//! partition is refused. A request that takes longer than its coordinator waits is given up and
//! not answered. Agrees with `org.apache.cassandra.service.paxos.v1.AbstractPaxosVerbHandler` and
//! the request handlers of `service.paxos`.

use bytes::Bytes;
use internode::payload::paxos::{
    Commit, CommitAndPrepare, PrepareV2, Prepared, Refresh, RepairRequest, encode_accepted, encode_superseded,
};
use internode::{InternodeError, Verb};
use schema::system::is_local_keyspace;
use schema::{TableId, TableMetadata};
use types::{DecoratedKey, FailureReason};

use super::Call;
use crate::node::Node;
use crate::out_of_range::Asker;
use crate::out_of_range_state::RequestKind;
use crate::replica::apply::{WriteError, within};
use crate::replica::paxos::trace_lines;

pub(super) async fn serve(call: Call) {
    let served = within(&call.node.env, call.time_left(), answer(&call)).await;
    if let Some(served) = served {
        describe(&call, &served);
        let verb = call.header.verb.name();
        call.answer(served.map_err(|failure| failure.reason(verb)));
    }
}

/// Says in the trace that the request failed.
fn describe(call: &Call, served: &Result<Bytes, Failure>) {
    if served.is_err() {
        tell(call, || format!("{} failed", call.header.verb.name()));
    }
}

fn tell(call: &Call, line: impl FnOnce() -> String) {
    if let Some(trace) = call.trace() {
        trace.event(line());
    }
}

/// Why a request is not answered with what it asks for.
enum Failure {
    /// The request cannot be read.
    Request(InternodeError),
    /// This node does not have the table or the partition.
    NotHere,
    /// The state could not be read or written.
    State(WriteError),
}

impl From<InternodeError> for Failure {
    fn from(error: InternodeError) -> Self {
        Self::Request(error)
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        Self::State(error)
    }
}

impl Failure {
    fn reason(self, verb: &str) -> FailureReason {
        match self {
            Self::Request(InternodeError::UnknownTable(_)) => return FailureReason::IncompatibleSchema,
            Self::Request(error) => tracing::warn!(%error, verb, "a request of Paxos cannot be read"),
            Self::NotHere => tracing::debug!(verb, "a request of Paxos is about a partition of others"),
            Self::State(error) => tracing::warn!(%error, verb, "a request of Paxos failed"),
        }
        FailureReason::Unknown
    }
}

async fn answer(call: &Call) -> Result<Bytes, Failure> {
    let (node, payload) = (&*call.node, &call.payload);
    let replica = &node.replica;
    let schema = node.schema();
    // what a node keeps about itself is written by nobody else
    let is_shared = |table: &TableMetadata| !table.is_virtual() && !is_local_keyspace(&table.keyspace);
    let tables = |id: TableId| schema.table_by_id(id).filter(|table| is_shared(table)).cloned();
    Ok(match call.header.verb {
        Verb::PaxosPrepareReq => {
            let asked = Commit::decode(payload, &tables)?;
            check_token(call, &asked)?;
            let answer = replica.paxos_prepare(&asked.update.table, &asked.update.key, asked.ballot).await?;
            tell(call, || trace_lines::prepared(&asked, &answer));
            answer.encode().into()
        }
        Verb::PaxosProposeReq => {
            let proposal = Commit::decode(payload, &tables)?;
            check_token(call, &proposal)?;
            let superseded = replica.paxos_propose(&proposal).await?;
            tell(call, || trace_lines::proposed(&proposal, superseded.as_ref()));
            encode_accepted(superseded.is_none()).into()
        }
        Verb::PaxosCommitReq => {
            let commit = Commit::decode(payload, &tables)?;
            node.check_part(&commit.update.table, &commit.update.key, false)?;
            tell(call, || trace_lines::committed(&commit, replica.applies_paxos(&commit)));
            replica.paxos_commit(&commit).await?;
            Bytes::new()
        }
        Verb::Paxos2ProposeReq => {
            let proposal = Commit::decode(payload, &tables)?;
            node.check_part(&proposal.update.table, &proposal.update.key, false)?;
            let superseded = replica.paxos_propose(&proposal).await?;
            tell(call, || trace_lines::proposed_v2(&proposal, superseded.as_ref()));
            encode_superseded(superseded.as_ref()).into()
        }
        Verb::Paxos2PrepareReq => {
            let prepare = PrepareV2::decode(payload, &tables)?;
            node.check_prepare(&prepare)?;
            let answer = node.paxos_prepare_v2(&prepare, call.time_left()).await?;
            tell(call, || trace_lines::prepared_v2(&prepare, &answer));
            answer.encode()?.into()
        }
        Verb::Paxos2CommitAndPrepareReq => {
            let both = CommitAndPrepare::decode(payload, &tables)?;
            node.check_prepare(&both.prepare)?;
            tell(call, || trace_lines::committed(&both.commit, replica.applies_paxos(&both.commit)));
            let answer = node.paxos_commit_and_prepare(&both, call.time_left()).await?;
            tell(call, || trace_lines::prepared_v2(&both.prepare, &answer));
            answer.encode()?.into()
        }
        Verb::Paxos2PrepareRefreshReq => {
            let refresh = Refresh::decode(payload, &tables)?;
            node.check_part(&refresh.missing.update.table, &refresh.missing.update.key, false)?;
            tell(call, || trace_lines::committed(&refresh.missing, replica.applies_paxos(&refresh.missing)));
            let superseded = node.paxos_refresh(&refresh).await?;
            tell(call, || trace_lines::refreshed(&refresh.promised, superseded.as_ref()));
            encode_superseded(superseded.as_ref()).into()
        }
        _ => {
            let request = RepairRequest::decode(payload, &tables)?;
            node.check_part(&request.table, &request.key, false)?;
            node.paxos_repair_state(&request).await?.encode().into()
        }
    })
}

/// Refuses a request of v1 for a token of others, where such are to be refused.
fn check_token(call: &Call, asked: &Commit) -> Result<(), Failure> {
    let (table, token) = (&asked.update.table, asked.update.key.token);
    let asker = Asker { from: call.from.address, keyspace: &table.keyspace, table: &table.name };
    if call.node.refuses_token(RequestKind::Paxos, &asker, token) { Err(Failure::NotHere) } else { Ok(()) }
}

impl Node {
    fn check_prepare(&self, prepare: &PrepareV2) -> Result<(), Failure> {
        let has_read = matches!(prepare.prepared, Prepared::Read(_));
        self.check_part(prepare.prepared.table(), &prepare.prepared.key(), has_read)
    }

    /// Refuses a partition that this node has no copy of and, unless it is to be read, is not about
    /// to have.
    fn check_part(&self, table: &TableMetadata, key: &DecoratedKey, has_read: bool) -> Result<(), Failure> {
        let ring = self.ring.load();
        let Some(Ok(placement)) = ring.placed(&table.keyspace) else { return Err(Failure::NotHere) };
        let pending = if has_read { &[] } else { placement.pending(key.token) };
        let is_part = placement.natural(key.token).iter().chain(pending).any(|id| *id == ring.local_id());
        if is_part { Ok(()) } else { Err(Failure::NotHere) }
    }
}

#[cfg(test)]
mod tests;
