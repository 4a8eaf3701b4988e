//! Repair of Paxos (`--paxos-only`): everything that was begun and left in ranges of a table is
//! completed on all replicas, and they forget what is older.
//!
//! 1. START_PREPARE to all: each tells a ballot after every one that it has stored, and up to which
//!    ballot it knows everything to be completed.
//! 2. After as long as a statement may take, FINISH_PREPARE to all, with the latest ballot: it is
//!    the low bound; nothing before it is promised any more.
//! 3. CLEANUP to one after the other: each completes what it knows to be begun.
//! 4. COMPLETE to all: everything before the low bound is completed. Not where replicas were left
//!    out (`--force`).
//!
//! Agrees with `org.apache.cassandra.service.paxos.cleanup.PaxosCleanup`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use internode::payload::paxos::cleanup::{Cleanup, CleanupHistory, Complete, StartPrepare};
use internode::payload::paxos::{Ballot, BallotFlag};
use internode::payload::token_ranges::Tokens;
use internode::{Envelope, Verb};
use membership::Request;
use schema::TableMetadata;

use super::complete;
use super::messages::Patience;
use crate::node::Node;
use crate::repair_state::command::Command;
use crate::repair_state::{RepairResult, RepairResultKey};
use crate::replica::paxos::merged_histories;

/// How long a step of the preparation may take.
const STEP_MAX: Duration = Duration::from_secs(10);

/// How long the cleanup of one replica may take. Its outcome is one message that nobody
/// acknowledges, and a second request would begin a second cleanup
/// (`cassandra.paxos_cleanup_session_timeout_seconds`).
const CLEANUP_MAX: Duration = Duration::from_secs(2 * 60 * 60);

/// The repair of one table's ranges on their replicas, this node among them.
pub(super) struct PaxosRepair<'a> {
    pub node: &'a Arc<Node>,
    pub command: &'a Command,
    pub table: Arc<TableMetadata>,
    pub ranges: &'a [Tokens],
    pub replicas: Vec<SocketAddr>,
    pub has_skipped: bool,
}

impl PaxosRepair<'_> {
    /// Runs all steps. Err: why Paxos could not be repaired.
    pub async fn run(&self) -> Result<(), String> {
        let begun = self.start().await?;
        let low_bound = begun.high_bound;
        let timeouts = self.node.timeouts();
        self.node.env.sleep(timeouts.cas_contention.min(timeouts.write)).await;
        self.finish(&begun).await?;
        for replica in &self.replicas {
            self.clean(*replica).await.map_err(|why| format!("Paxos cleanup failed at /{replica}: {why}"))?;
        }
        if self.has_skipped {
            return Ok(());
        }
        self.complete(low_bound).await
    }

    fn is_here(&self, replica: SocketAddr) -> bool {
        replica == self.node.identity.broadcast
    }

    async fn ask(&self, replica: SocketAddr, verb: Verb, payload: Vec<u8>) -> Result<Envelope, String> {
        let messenger = self.node.messenger().ok_or("this node is alone")?;
        let asked = messenger.request(replica, Request::new(verb, payload, STEP_MAX)).await;
        asked.map_err(|error| format!("{} at /{replica}: {error}", verb.name()))
    }

    async fn start(&self) -> Result<CleanupHistory, String> {
        let messenger = self.node.messenger().ok_or("this node is alone")?;
        let state = messenger.with_gossip(|gossip| gossip.local.state().clone());
        let start = StartPrepare { table: self.table.id, state, ranges: self.ranges.to_vec() };
        let payload = start.encode().map_err(|error| error.to_string())?;
        let of_replica = |replica: &SocketAddr| {
            let (replica, payload) = (*replica, payload.clone());
            async move {
                if self.is_here(replica) {
                    return Ok(start_here(self.node, &self.table, self.ranges));
                }
                let answer = self.ask(replica, Verb::Paxos2CleanupStartPrepareReq, payload).await?;
                CleanupHistory::decode(&answer.payload).map_err(|error| error.to_string())
            }
        };
        let answers = try_join_all(self.replicas.iter().map(of_replica)).await?;
        let both = |a: CleanupHistory, b: CleanupHistory| CleanupHistory {
            table: a.table,
            high_bound: a.high_bound.latest(b.high_bound),
            history: merged_histories(&a.history, &b.history),
        };
        answers.into_iter().reduce(both).ok_or_else(|| "there are no replicas".to_owned())
    }

    async fn finish(&self, begun: &CleanupHistory) -> Result<(), String> {
        let of_replica = |replica: &SocketAddr| {
            let replica = *replica;
            async move {
                if self.is_here(replica) {
                    let taken =
                        self.node.replica.paxos_repair_begun(&self.table, &begun.history, begun.high_bound).await;
                    return taken.map_err(|error| error.to_string());
                }
                self.ask(replica, Verb::Paxos2CleanupFinishPrepareReq, begun.encode()).await.map(drop)
            }
        };
        try_join_all(self.replicas.iter().map(of_replica)).await.map(drop)
    }

    async fn clean(&self, replica: SocketAddr) -> Result<(), String> {
        if self.is_here(replica) {
            return clean_here(self.node, &self.table, self.ranges).await.map(drop);
        }
        let session = self.node.uuids.random();
        let key = RepairResultKey::Paxos(session, replica);
        let told = self.node.repairs.expect(key.clone());
        let cleanup = Cleanup { session, table: self.table.id, ranges: self.ranges.to_vec() };
        if let Err(why) = self.ask(replica, Verb::Paxos2CleanupReq, cleanup.encode()).await {
            self.node.repairs.forget(&key);
            return Err(why);
        }
        let patience = Patience::For(CLEANUP_MAX);
        match self.node.await_repair(self.command, replica, &key, told, patience).await? {
            RepairResult::Paxos(None) => Ok(()),
            RepairResult::Paxos(Some(why)) => Err(why),
            _ => Err("another result came".to_owned()),
        }
    }

    async fn complete(&self, low_bound: Ballot) -> Result<(), String> {
        let complete = Complete { table: self.table.id, low_bound, ranges: self.ranges.to_vec() };
        let payload = complete.encode();
        let of_replica = |replica: &SocketAddr| {
            let (replica, payload) = (*replica, payload.clone());
            async move {
                if self.is_here(replica) {
                    let done = self.node.replica.paxos_repair_completed(&self.table, self.ranges, low_bound).await;
                    return done.map_err(|error| error.to_string());
                }
                self.ask(replica, Verb::Paxos2CleanupCompleteReq, payload).await.map(drop)
            }
        };
        try_join_all(self.replicas.iter().map(of_replica)).await.map(drop)
    }
}

/// The knowledge of this node when a repair begins: a ballot after every one that it has stored,
/// and up to which ballot everything is completed.
pub(crate) fn start_here(node: &Node, table: &TableMetadata, ranges: &[Tokens]) -> CleanupHistory {
    let micros = node.clock.next_micros().max(node.replica.paxos_high_micros());
    let high_bound = Ballot::new(micros, BallotFlag::Global, node.env.random.next_u64());
    CleanupHistory { table: table.id, high_bound, history: node.replica.paxos_history(table, ranges) }
}

/// Completes what this node knows to be begun in ranges, and gives the number of partitions.
pub(crate) async fn clean_here(node: &Node, table: &Arc<TableMetadata>, ranges: &[Tokens]) -> Result<u64, String> {
    let ring = node.ring();
    let is_here = |range: &Tokens| {
        let Some(Ok(placement)) = ring.placed(&table.keyspace) else { return false };
        let replicas = placement.natural(range.end).iter().chain(placement.pending(range.end));
        replicas.into_iter().any(|id| *id == ring.local_id())
    };
    match ranges.iter().all(is_here) {
        true => complete::complete(node, table, ranges).await,
        false => Err("some of the ranges have no replica here".to_owned()),
    }
}
