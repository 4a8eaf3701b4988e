//! Conditional statements: a partition's lock is held from the read to the write.
//!
//! Only of partitions that this node alone has: what Paxos agrees on among several replicas, a lock
//! decides here. A partition that other nodes have copies of is refused, reads at SERIAL too.
//!
//! The lock is released as soon as memtables have the write. The next statement of the partition
//! reads that write; what it writes stands behind it in the log. A statement that writes nothing
//! (its condition does not hold, or it is a read at SERIAL) waits until the log is durable up to
//! what it has read: otherwise a power cut could take back what its client was told. Agrees in role
//! with `org.apache.cassandra.service.paxos`.

use std::future::{Future, poll_fn};
use std::pin::pin;

use rows::Mutation;
use schema::TableMetadata;
use types::{Consistency, DecoratedKey, Token, WriteKind};

use super::error::RequestError;
use super::plan::placement;
use crate::node::Node;
use crate::replica::apply::{WriteError, within};
use crate::sampling::Sampler;
use crate::stripes::{Held, Stripes};

/// A conditional write of one partition.
#[derive(Clone, Copy, Debug)]
pub struct Cas<'a> {
    /// The table.
    pub table: &'a TableMetadata,
    /// The partition.
    pub key: &'a DecoratedKey,
    /// SERIAL or LOCAL_SERIAL: how many replicas must agree.
    pub serial: Consistency,
    /// How many replicas must have what is written.
    pub commit: Consistency,
}

/// Why a conditional write was not carried out.
#[derive(Debug)]
pub enum CasError<E> {
    /// The coordinator could not.
    Request(RequestError),
    /// Reading or deciding failed.
    Decide(E),
}

impl<E> From<RequestError> for CasError<E> {
    fn from(error: RequestError) -> Self {
        Self::Request(error)
    }
}

impl Node {
    /// Has `decide` read a partition and say what to write, and writes it: of several on a
    /// partition each sees what the one before it wrote. What was read or written is durable when
    /// this returns.
    pub async fn compare_and_set<E>(
        &self,
        cas: Cas<'_>,
        decide: impl AsyncFnOnce() -> Result<Option<Mutation>, E>,
    ) -> Result<(), CasError<E>> {
        let Cas { table, key, serial, commit } = cas;
        self.check_is_alone(&table.keyspace, key.token)?;
        let agreed = self.plan_partition(&table.keyspace, key.token, serial, WriteKind::Cas)?;
        let committed = self.plan_partition(&table.keyspace, key.token, commit, WriteKind::Cas)?;
        let Some(held) = self.lock_partition(table, key).await else {
            return Err(RequestError::of_write(WriteError::TimedOut, agreed).into());
        };
        match decide().await.map_err(CasError::Decide)? {
            None => {
                drop(held);
                let waited = self.wait_for_what_was_read(table, key).await;
                waited.map_err(|cause| RequestError::of_write(cause, agreed))?;
            }
            Some(mutation) => {
                let mutations = [mutation];
                let applied = self.replica.apply(&mutations, held);
                if let Some(wait) = self.send(committed, self.timeouts().write, applied).await? {
                    wait.await?;
                }
            }
        }
        Ok(())
    }

    /// Refuses a partition that other nodes have copies of, or are about to: a lock of this node
    /// does not hold there, and the others would not get what is written.
    pub(super) fn check_is_alone(&self, keyspace: &str, token: Token) -> Result<(), RequestError> {
        let ring = self.ring.load();
        let Some(placement) = placement(&ring, keyspace)? else { return Ok(()) };
        let mut replicas = placement.natural(token).iter().chain(placement.pending(token));
        match replicas.all(|id| *id == ring.local_id()) {
            true => Ok(()),
            false => Err(RequestError::NeedsPaxos { keyspace: keyspace.to_owned() }),
        }
    }

    /// Waits until everything that a read of this partition has just seen is durable.
    pub(super) async fn wait_for_what_was_read(
        &self,
        table: &TableMetadata,
        key: &DecoratedKey,
    ) -> Result<(), WriteError> {
        let Some(position) = self.replica.position_of(table, key) else { return Ok(()) };
        let Some(logged) = self.replica.logged(position)? else { return Ok(()) };
        within(&self.env, self.timeouts().write, logged).await.unwrap_or(Err(WriteError::TimedOut))
    }

    /// Waits until no other conditional write of the partition is under way. None: too long
    /// (`cas_contention_timeout`).
    async fn lock_partition(&self, table: &TableMetadata, key: &DecoratedKey) -> Option<Held> {
        let mut lock = pin!(self.partition_locks.lock(vec![Stripes::of((table.id, &key.key))]));
        let mut waits = false;
        let lock = poll_fn(move |context| {
            let polled = lock.as_mut().poll(context);
            if polled.is_pending() && !std::mem::replace(&mut waits, true) {
                self.sampling.add(Sampler::CasContentions, table, &key.key, 1);
            }
            polled
        });
        within(&self.env, self.timeouts().cas_contention, lock).await
    }
}

#[cfg(test)]
mod tests;
