//! PAXOS2_CLEANUP_*: this node as a replica of a table whose Paxos another node repairs.
//!
//! 1. START_PREPARE: this node takes over what the sender tells of itself, and answers with a
//!    ballot after every one that it has stored, and with what it knows to be completed.
//! 2. FINISH_PREPARE: ballots before the latest of all those answers are refused from now on.
//! 3. CLEANUP: this node completes what it knows to be begun and not completed
//!    ([`paxos::clean_here`]). The request is answered at once, and the outcome is told later by a
//!    message of its own.
//! 4. COMPLETE: everything before the low bound is completed.
//!
//! Agrees with `org.apache.cassandra.service.paxos.cleanup`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use internode::Verb;
use internode::payload::paxos::cleanup::{Cleanup, CleanupHistory, CleanupOutcome, Complete, StartPrepare};
use membership::Request;
use schema::{TableId, TableMetadata};
use types::FailureReason;

use super::Call;
use crate::repair::paxos;
use crate::replica::apply::within;

/// How long a cleanup may take.
const CLEANUP_MAX: Duration = Duration::from_secs(30 * 60);
/// The life of the message that tells the outcome of a cleanup: that of Cassandra's repair
/// messages.
const OUTCOME_LIFE: Duration = Duration::from_secs(120);

pub(super) async fn serve(call: Call) {
    if call.header.verb == Verb::Paxos2CleanupReq {
        return clean(call).await;
    }
    let served = within(&call.node.env, call.time_left(), answer(&call)).await;
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
    call.via.apply_endpoint_state(call.from.address, start.state);
    Ok(paxos::start_here(node, &table, &start.ranges).encode().into())
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

/// Acknowledges the request, completes, and tells the outcome.
async fn clean(call: Call) {
    let Ok(cleanup) = Cleanup::decode(&call.payload) else { return call.answer(Err(FailureReason::Unknown)) };
    call.via.answer(&call.from, &call.header, Ok(Bytes::new()));
    let why = match within(&call.node.env, CLEANUP_MAX, completed(&call, &cleanup)).await {
        Some(Ok(count)) => {
            tracing::info!(count, "partitions of a repair of Paxos are completed");
            None
        }
        Some(Err(why)) => Some(why),
        None => Some("out of time".to_owned()),
    };
    why.iter().for_each(|why| tracing::warn!(why, "a repair of Paxos is not completed here"));
    let outcome = CleanupOutcome { session: cleanup.session, is_success: why.is_none(), why };
    match outcome.encode() {
        Ok(payload) => {
            let outcome = Request::new(Verb::Paxos2CleanupRsp2, payload, OUTCOME_LIFE).without_failure_response();
            call.via.tell(call.header.respond_to().unwrap_or(call.from.address), outcome);
        }
        Err(error) => tracing::warn!(%error, "the outcome of a repair of Paxos cannot be told"),
    }
}

async fn completed(call: &Call, cleanup: &Cleanup) -> Result<u64, String> {
    let table = table(call, cleanup.table).map_err(|_| "there is no such table here".to_owned())?;
    paxos::clean_here(&call.node, &table, &cleanup.ranges).await
}

fn table(call: &Call, id: TableId) -> Result<Arc<TableMetadata>, FailureReason> {
    call.node.schema().table_by_id(id).cloned().ok_or(FailureReason::IncompatibleSchema)
}

fn failed(error: &crate::replica::apply::WriteError) -> FailureReason {
    tracing::warn!(%error, "the history of Paxos cannot be stored");
    FailureReason::Unknown
}
