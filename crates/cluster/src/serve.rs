//! The requests of other nodes: one file for each family of verbs.
//!
//! Called on the thread of links, which must not wait. A handler is a task of that thread: it runs
//! at once until it has to wait, and goes on later while further messages come. How many requests
//! are under way, and how many bytes they hold, is bounded ([`crate::in_flight_requests`]); beyond
//! that a request is answered with a failure. A request whose time is over is not executed:
//! membership drops it when it comes, and a handler that has to wait does so for
//! [`Call::time_left`] at most.

mod batch;
mod call;
mod counter;
mod hint;
mod mutation;
mod paxos;
mod paxos_cleanup;
mod read;
mod repair;
mod snapshot;
mod truncate;

use std::sync::Arc;

use internode::{Envelope, LinkType, Verb};
use links::Peer;
use membership::Messenger;

pub(crate) use call::Call;
pub(crate) use hint::apply_own_hint as take_own_hints;

use crate::node::Node;
use crate::range_movements::removal;

/// Takes a request of another node. False: this node does not serve the verb, and the sender is
/// told that the request failed.
pub(crate) fn requested(node: &Arc<Node>, via: &Messenger, from: &Peer, _link: LinkType, message: Envelope) -> bool {
    match message.header.verb {
        Verb::MutationReq | Verb::ReadRepairReq | Verb::Paxos2CommitRemoteReq => {
            Call::spawn(node, via, from, message, mutation::serve)
        }
        Verb::ReadReq | Verb::RangeReq => Call::spawn(node, via, from, message, read::serve),
        Verb::CounterMutationReq => Call::spawn(node, via, from, message, counter::serve),
        Verb::BatchStoreReq => Call::spawn(node, via, from, message, batch::store),
        Verb::BatchRemoveReq => Call::spawn(node, via, from, message, batch::remove),
        Verb::PaxosPrepareReq
        | Verb::PaxosProposeReq
        | Verb::PaxosCommitReq
        | Verb::Paxos2PrepareReq
        | Verb::Paxos2PrepareRefreshReq
        | Verb::Paxos2ProposeReq
        | Verb::Paxos2CommitAndPrepareReq
        | Verb::Paxos2RepairReq => Call::spawn(node, via, from, message, paxos::serve),
        Verb::Paxos2CleanupStartPrepareReq
        | Verb::Paxos2CleanupFinishPrepareReq
        | Verb::Paxos2CleanupReq
        | Verb::Paxos2CleanupCompleteReq => Call::spawn(node, via, from, message, paxos_cleanup::serve),
        Verb::PrepareMsg
        | Verb::SnapshotMsg
        | Verb::ValidationReq
        | Verb::ValidationRsp
        | Verb::SyncReq
        | Verb::SyncRsp
        | Verb::CleanupMsg
        | Verb::FailedSessionMsg
        | Verb::PrepareConsistentReq
        | Verb::PrepareConsistentRsp
        | Verb::FinalizeProposeMsg
        | Verb::FinalizePromiseMsg
        | Verb::FinalizeCommitMsg
        | Verb::StatusReq
        | Verb::StatusRsp
        | Verb::Paxos2CleanupRsp2 => Call::spawn(node, via, from, message, repair::serve),
        Verb::TruncateReq => Call::spawn(node, via, from, message, truncate::serve),
        Verb::SnapshotReq => Call::spawn(node, via, from, message, snapshot::serve),
        Verb::ReplicationDoneReq => {
            removal::confirm_replication(node, from.address);
            via.answer(from, &message.header, Ok(bytes::Bytes::new()));
        }
        Verb::HintReq => Call::spawn(node, via, from, message, hint::serve),
        Verb::SchemaPushReq | Verb::SchemaPullReq => return node.exchange_schema(via, from, message),
        _ => return false,
    }
    true
}
