//! The messages of repair: requests of its coordinator, and results that this node waits for as the
//! coordinator.
//!
//! Each is acknowledged by an empty answer as soon as it is taken, or refused by a failure. Agrees
//! with `org.apache.cassandra.repair.RepairMessageVerbHandler`.

use bytes::Bytes;
use internode::Verb;
use internode::payload::paxos::cleanup::CleanupOutcome;
use internode::payload::repair::consistent::{PrepareConsistent, Status, Vote};
use internode::payload::repair::{Job, Prepare, SyncRequest, SyncResponse, ValidationRequest, ValidationResponse};
use internode::payload::simple::decode_uuid;
use types::FailureReason;

use super::Call;
use crate::repair::consistent;
use crate::repair::participant::{self, Refusal};
use crate::repair_state::records::End;
use crate::repair_state::{RepairResult, RepairResultKey};

pub(super) async fn serve(call: Call) {
    if let Verb::StatusReq | Verb::StatusRsp = call.header.verb {
        return status(&call).await;
    }
    let taken = take(&call).await;
    if let Err(why) = &taken {
        tracing::warn!(why, verb = call.header.verb.name(), peer = %call.from.address, "a message of repair is refused");
    }
    call.answer(taken.map(|()| Bytes::new()).map_err(|_| FailureReason::Unknown));
}

async fn take(call: &Call) -> Result<(), Refusal> {
    let (node, payload) = (&call.node, &call.payload);
    let from = call.header.respond_to().unwrap_or(call.from.address);
    let unreadable = |error: internode::InternodeError| error.to_string();
    match call.header.verb {
        Verb::PrepareMsg => participant::prepare(node, from, Prepare::decode(payload).map_err(unreadable)?),
        Verb::SnapshotMsg => participant::snapshot(node, &Job::decode(payload).map_err(unreadable)?).await,
        Verb::ValidationReq => {
            let request = ValidationRequest::decode(payload).map_err(unreadable)?;
            participant::begin_validation(node, from, request, call.trace().and_then(|trace| trace.session()))
        }
        Verb::SyncReq => participant::begin_sync(node, from, SyncRequest::decode(payload).map_err(unreadable)?),
        Verb::ValidationRsp => {
            let ValidationResponse { job, trees } = ValidationResponse::decode(payload).map_err(unreadable)?;
            node.repairs.tell(&RepairResultKey::Trees(job.session, job.table, from), RepairResult::Trees(trees));
            Ok(())
        }
        Verb::SyncRsp => {
            let told = SyncResponse::decode(payload).map_err(unreadable)?;
            let job = &told.job;
            let key = RepairResultKey::Synced(job.session, job.table.clone(), told.source, told.destination);
            node.repairs.tell(&key, RepairResult::Synced(told));
            Ok(())
        }
        Verb::Paxos2CleanupRsp2 => {
            let told = CleanupOutcome::decode(payload).map_err(unreadable)?;
            let why = (!told.is_success).then(|| told.why.unwrap_or_default());
            node.repairs.tell(&RepairResultKey::Paxos(told.session, from), RepairResult::Paxos(why));
            Ok(())
        }
        Verb::CleanupMsg => {
            // as Cassandra writes it
            let end = End::Success(Some("Cleanup message recieved".to_owned()));
            participant::clean_up(node, &decode_uuid(payload).map_err(unreadable)?, end);
            Ok(())
        }
        Verb::FailedSessionMsg => {
            let session = decode_uuid(payload).map_err(unreadable)?;
            participant::clean_up(node, &session, End::Failure(format!("Failure message from /{from}")));
            consistent::participant_failed(node, from, &session);
            Ok(())
        }
        Verb::PrepareConsistentReq => consistent::begin(node, PrepareConsistent::decode(payload).map_err(unreadable)?),
        Verb::FinalizeProposeMsg => consistent::propose(node, from, decode_uuid(payload).map_err(unreadable)?),
        Verb::FinalizeCommitMsg => consistent::commit(node, &decode_uuid(payload).map_err(unreadable)?).map(drop),
        verb @ (Verb::PrepareConsistentRsp | Verb::FinalizePromiseMsg) => {
            let Vote { session, participant, is_yes } = Vote::decode(payload).map_err(unreadable)?;
            let key = match verb {
                Verb::FinalizePromiseMsg => RepairResultKey::Promised(session, participant),
                _ => RepairResultKey::Prepared(session, participant),
            };
            node.repairs.tell(&key, RepairResult::Vote(is_yes));
            Ok(())
        }
        verb => Err(format!("{} is no message of repair", verb.name())),
    }
}

/// The state of a session is asked for and told without acknowledgements.
async fn status(call: &Call) {
    let from = call.header.respond_to().unwrap_or(call.from.address);
    let unreadable = |error: internode::InternodeError| error.to_string();
    let heard = match call.header.verb {
        Verb::StatusReq => match decode_uuid(&call.payload) {
            Ok(session) => {
                consistent::send_status(&call.node, from, session).await;
                Ok(())
            }
            Err(error) => Err(unreadable(error)),
        },
        _ => Status::decode(&call.payload)
            .map_err(unreadable)
            .and_then(|status| consistent::receive_status(&call.node, from, &status)),
    };
    if let Err(why) = heard {
        tracing::warn!(why, verb = call.header.verb.name(), peer = %from, "a message of repair is passed over");
    }
}
