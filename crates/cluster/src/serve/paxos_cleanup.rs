//! PAXOS2_CLEANUP_*: this node as a replica of a table whose Paxos another node repairs.
//!
//! 1. START_PREPARE: this node takes over what the sender tells of itself, and answers with a ballot
//!    after every one that it has stored, and with what it knows to be completed.
//! 2. FINISH_PREPARE: ballots before the latest of all those answers are refused from now on.
//! 3. CLEANUP: a replica is asked to complete what is not. This node does not do that yet: the outcome
//!    that it sends is a failure, and the repair ends with it.
//! 4. COMPLETE: everything before the low bound is completed.
//!
//! Agrees with `org.apache.cassandra.service.paxos.cleanup`.

use std::sync::Arc;

use bytes::Bytes;
use internode::Verb;
use internode::payload::paxos::cleanup::{Cleanup, CleanupHistory, CleanupOutcome, Complete, StartPrepare};
use internode::payload::paxos::{Ballot, BallotFlag};
use membership::Request;
use schema::{TableId, TableMetadata};
use types::FailureReason;

use super::Call;
use crate::replica::apply::within;

pub(super) async fn serve(call: Call) {
    if call.header.verb == Verb::Paxos2CleanupReq {
        return refuse(call);
    }
    let served = within(&call.node.env, call.rest(), answer(&call)).await;
    if let Some(served) = served {
        call.answer(served);
    }
}

async fn answer(call: &Call) -> Result<Bytes, FailureReason> {
    match call.header.verb {
        Verb::Paxos2CleanupStartPrepareReq => start(call),
        Verb::Paxos2CleanupFinishPrepareReq => finish(call).await,
        _ => complete(call).await,
    }
}

fn start(call: &Call) -> Result<Bytes, FailureReason> {
    let node = &call.node;
    let start = StartPrepare::decode(&call.payload).map_err(|_| FailureReason::Unknown)?;
    let table = table(call, start.table)?;
    call.via.learn(call.from.address, start.state);
    let micros = node.clock.next_micros().max(node.replica.paxos_high_micros());
    let high_bound = Ballot::new(micros, BallotFlag::Global, node.env.random.next_u64());
    let history = node.replica.paxos_history(&table, &start.ranges);
    Ok(CleanupHistory { table: start.table, high_bound, history }.encode().into())
}

async fn finish(call: &Call) -> Result<Bytes, FailureReason> {
    let told = CleanupHistory::decode(&call.payload).map_err(|_| FailureReason::Unknown)?;
    let table = table(call, told.table)?;
    let begun = call.node.replica.paxos_repair_begun(&table, &told.history, told.high_bound).await;
    begun.map(|()| Bytes::new()).map_err(|error| failed(&error))
}

async fn complete(call: &Call) -> Result<Bytes, FailureReason> {
    let told = Complete::decode(&call.payload).map_err(|_| FailureReason::Unknown)?;
    let table = table(call, told.table)?;
    let completed = call.node.replica.paxos_repair_completed(&table, &told.ranges, told.low_bound).await;
    completed.map(|()| Bytes::new()).map_err(|error| failed(&error))
}

/// Tells the sender that nothing is completed here.
fn refuse(call: Call) {
    let Ok(cleanup) = Cleanup::decode(&call.payload) else { return call.answer(Err(FailureReason::Unknown)) };
    let why = Some("this node does not complete proposals of Paxos for others".to_owned());
    let outcome = CleanupOutcome { session: cleanup.session, is_success: false, why };
    if let Ok(payload) = outcome.encode() {
        let outcome = Request::new(Verb::Paxos2CleanupRsp2, payload, call.rest());
        call.via.tell(call.from.address, outcome);
    }
}

fn table(call: &Call, id: TableId) -> Result<Arc<TableMetadata>, FailureReason> {
    call.node.schema().table_by_id(id).cloned().ok_or(FailureReason::IncompatibleSchema)
}

fn failed(error: &crate::replica::apply::WriteError) -> FailureReason {
    tracing::warn!(%error, "the history of Paxos cannot be stored");
    FailureReason::Unknown
}
