//! TRUNCATE: every node of the ring drops what it has of a table, and ends the repairs of the table
//! that it takes part in (`crate::repair`), before and behind that.
//!
//! All of them must be up, and all must have done it before it is answered. A node that has told
//! another one of files from before its cut asks that one to truncate again before it answers: the
//! other one may have had its own cut before it was told, and takes the rows for later ones then.
//! A row that this removes was written before the TRUNCATE was answered. Files of repairs are left
//! out: a TRUNCATE ends their streams on both sides. Agrees with
//! `org.apache.cassandra.service.StorageProxy.truncateBlocking` and `TruncateResponseHandler`.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use env::Instant;
use internode::Verb;
use internode::payload::simple::Truncation;
use membership::{Request, RequestCallback, RequestFailure};
use ring::{EndpointId, InsufficientReplicas};
use schema::TableMetadata;
use storage::{StorageError, TableStore};
use tokio::sync::OwnedSemaphorePermit;
use types::{Consistency, WriteKind};

use super::acknowledgement::replica_wait::ReplicaWait;
use super::error::RequestError;
use super::pending_write::{PendingWrite, result_of};
use super::write::distributed::RingPeers;
use super::write_answers::{AnswerScope, WriteAnswers};
use crate::node::Node;
use crate::replica::apply::{WriteError, within};

/// Truncations of one node that are under way at one time, those that nobody waits for any more
/// among them: each of these has a thread. More wait for their turn.
pub(crate) const TRUNCATIONS_MAX: usize = 8;

impl Node {
    /// Drops all data of a table on all nodes.
    pub async fn truncate(self: &Arc<Self>, keyspace: &str, table: &str) -> Result<(), RequestError> {
        match self.ring_peers() {
            Some(others) => self.truncate_distributed(others, keyspace, table).await,
            None => {
                let answers = WriteAnswers::of_one(Consistency::All, WriteKind::Simple);
                self.truncate_here(keyspace, table).await.map_err(|cause| RequestError::of_write(cause, answers))
            }
        }
    }

    /// Drops all data of a table that this node has.
    pub(crate) async fn truncate_here(self: &Arc<Self>, keyspace: &str, table: &str) -> Result<(), WriteError> {
        let begun = self.env.now();
        let turn = self.turn_to_truncate().await?;
        self.truncate_in_turn(turn, begun, keyspace, table).await
    }

    /// Waits until one more truncation of this node may begin.
    async fn turn_to_truncate(&self) -> Result<OwnedSemaphorePermit, WriteError> {
        let turn = Arc::clone(&self.truncations).acquire_owned();
        let turn = within(&self.env, self.timeouts().truncate, turn).await.ok_or(WriteError::TimedOut)?;
        turn.map_err(|_| WriteError::Overloaded)
    }

    /// As [`Node::truncate_here`], in a turn. A truncation that has begun goes on where nobody
    /// waits for it any more: the other nodes have carried it out, and repairs would bring the rows
    /// of this one back to them; views would keep rows that their table lacks. It holds its turn
    /// until then.
    async fn truncate_in_turn(
        self: &Arc<Self>,
        turn: OwnedSemaphorePermit,
        begun: Instant,
        keyspace: &str,
        table: &str,
    ) -> Result<(), WriteError> {
        let Some(store) = self.engine.table_by_name(keyspace, table) else {
            return Err(StorageError::UnknownTable { table: format!("{keyspace}.{table}") }.into());
        };
        let of_views = |view: &TableMetadata| self.engine.table(view.id);
        let schema = self.engine.schema();
        let keyspace = schema.keyspace(keyspace).into_iter();
        let views = keyspace.flat_map(|keyspace| keyspace.views_of(store.id)).filter_map(|view| of_views(view));
        let stores: Vec<_> = std::iter::once(Arc::clone(&store)).chain(views).collect();
        let limit = self.timeouts().truncate.saturating_sub(self.env.elapsed(begun));
        self.end_repairs_of(&stores);
        let truncated = stores.clone();
        let (node, closing) = (Arc::clone(self), self.replica.close_views());
        let truncation = async move {
            let _turn = turn;
            let env = &node.env;
            // streamed writes pass their gate before that of views
            let mut streamed = Vec::with_capacity(stores.len());
            for store in &stores {
                let closing = Arc::clone(&store.streamed_writes).write_owned();
                streamed.push(within(env, limit, closing).await.ok_or(WriteError::TimedOut)?);
            }
            let views = match stores.len() {
                1 => None,
                _ => Some(within(env, limit, closing).await.ok_or(WriteError::TimedOut)?),
            };
            storage::truncate::truncate_together(&node.engine, &stores, (streamed, views)).await?;
            // repairs that have begun meanwhile may have looked at rows that are gone now
            node.end_repairs_of(&stores);
            Ok::<_, WriteError>(())
        };
        let truncation = self.env.run_to_completion("truncate", truncation);
        within(&self.env, limit, truncation).await.unwrap_or(Err(WriteError::TimedOut))?;
        let receivers = self.receivers_of(&truncated);
        match receivers.is_empty() {
            true => Ok(()),
            false => Box::pin(self.truncate_at(receivers, &store, begun)).await,
        }
    }

    /// The time for which peers that were told of files are to truncate again. A peer that was
    /// told longer ago than a TRUNCATE may take was told before its own cut, and drops the rows.
    pub(crate) fn truncates_receivers_within(&self) -> Duration {
        // a peer hears of the files some time after they were looked for
        self.timeouts().truncate.saturating_mul(2)
    }

    /// The peers in the ring that were told of files of these tables from before their cuts.
    fn receivers_of(&self, stores: &[Arc<TableStore>]) -> BTreeSet<SocketAddr> {
        let time = (self.env.now(), self.truncates_receivers_within());
        let of_table = |store: &Arc<TableStore>| self.streaming_state.take_offers(store, time);
        let mut receivers: BTreeSet<SocketAddr> = stores.iter().flat_map(of_table).collect();
        let ring = self.ring();
        receivers.retain(|peer| ring.endpoints().iter().any(|other| other.address == *peer));
        receivers
    }

    /// Asks peers to truncate a table, which this node has done, and waits for all of them.
    /// `begun`: when this node was asked. Err: rows may be there again.
    async fn truncate_at(
        &self,
        peers: BTreeSet<SocketAddr>,
        store: &TableStore,
        begun: Instant,
    ) -> Result<(), WriteError> {
        let Some(messenger) = self.messenger() else { return Ok(()) };
        let table = store.table();
        let truncation = Truncation { keyspace: table.keyspace.clone(), table: table.name.clone() };
        let payload = truncation.encode().map_err(|_| WriteError::Peers)?;
        let life = self.timeouts().truncate.saturating_sub(self.env.elapsed(begun));
        let request = Request::new(Verb::TruncateReq, payload, life);
        let ring = self.ring();
        let is_up = |peer: &SocketAddr| ring.endpoints().iter().any(|other| other.address == *peer && other.is_up);
        let (up, down): (Vec<_>, Vec<_>) = peers.into_iter().partition(is_up);
        let asked: Vec<_> = up.into_iter().map(|peer| (peer, messenger.request(peer, request.clone()))).collect();
        let mut truncated = Ok(());
        if let Some(peer) = down.first() {
            tracing::warn!(table = store.name(), %peer, "a node that was told of files from before a TRUNCATE is down");
            truncated = Err(WriteError::Peers);
        }
        for (peer, answer) in asked {
            let answer = answer.await;
            let is_late = matches!(answer, Err(RequestFailure::TimedOut));
            let done = answer.map_err(RequestFailure::reason).and_then(|message| result_of(&message));
            if let Err(reason) = done {
                tracing::warn!(
                    table = store.name(),
                    %peer,
                    reason = reason.name(),
                    "a node that was told of files from before a TRUNCATE has not truncated again"
                );
                truncated = Err(if is_late { WriteError::TimedOut } else { WriteError::Peers });
            }
        }
        truncated
    }

    async fn truncate_distributed(
        self: &Arc<Self>,
        others: RingPeers<'_>,
        keyspace: &str,
        table: &str,
    ) -> Result<(), RequestError> {
        let level = Consistency::All;
        let endpoints = others.ring.endpoints();
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let (required, alive) = (count(endpoints.len()), count(endpoints.iter().filter(|one| one.is_up).count()));
        if alive < required {
            return Err(RequestError::Unavailable { level, shortage: InsufficientReplicas { required, alive } });
        }
        let answers = WriteAnswers {
            block_for: required,
            outstanding: required,
            ..WriteAnswers::of_one(level, WriteKind::Simple)
        };
        let replicas = (0..required).map(|id| (EndpointId(id), AnswerScope::All)).collect();
        let sent = Arc::new(PendingWrite::without_hints(Arc::clone(&others.ring), replicas, answers.clone()));
        let callback: Arc<dyn RequestCallback> = Arc::clone(&sent) as Arc<dyn RequestCallback>;
        let (begun, timeout) = (self.env.now(), self.timeouts().truncate);
        // before the others are asked: once they are, this node truncates too, whoever waits
        let turn = self.turn_to_truncate().await.map_err(|cause| RequestError::of_write(cause, answers.clone()))?;
        let truncation = Truncation { keyspace: keyspace.to_owned(), table: table.to_owned() };
        let payload = truncation.encode().map_err(|_| RequestError::of_write(WriteError::Peers, answers))?;
        let request = Request::new(Verb::TruncateReq, payload, timeout);
        for peer in sent.peers() {
            others.messenger.ask(others.ring.endpoint(peer).address, &[], request.clone(), &callback);
        }
        let truncated = self.truncate_in_turn(turn, begun, keyspace, table).await;
        ReplicaWait::new(&self.env, vec![sent], truncated.map(|()| None), begun, timeout).await
    }
}

#[cfg(test)]
mod tests;
