//! TRUNCATE: every node of the ring drops what it has of a table, and ends the repairs of the table
//! that it takes part in (`crate::repair`), before and behind that.
//!
//! All of them must be up, and all must have done it before it is answered. Agrees with
//! `org.apache.cassandra.service.StorageProxy.truncateBlocking` and `TruncateResponseHandler`.

use std::sync::Arc;

use env::Instant;
use internode::Verb;
use internode::payload::simple::Truncation;
use membership::{Request, RequestCallback};
use ring::{EndpointId, InsufficientReplicas};
use schema::TableMetadata;
use storage::StorageError;
use tokio::sync::OwnedSemaphorePermit;
use types::{Consistency, WriteKind};

use super::acknowledgement::replica_wait::ReplicaWait;
use super::error::RequestError;
use super::pending_write::PendingWrite;
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
        within(&self.env, limit, truncation).await.unwrap_or(Err(WriteError::TimedOut))
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
