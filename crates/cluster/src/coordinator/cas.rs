//! Conditional statements and reads at SERIAL: of one partition they happen one after the other.
//!
//! - On a node alone a lock decides ([`single_node`]): it is held from the read to the write.
//! - In a ring the replicas of the partition agree by Paxos ([`v1`], or [`v2`] as
//!   `paxos_variant` says), whoever is the coordinator and however many copies there are. The lock
//!   is held there too: statements of one coordinator wait for each other instead of competing for
//!   the replicas' promises.
//!
//! A statement's cells have the time of the ballot that decided it; on a node alone they have a
//! time that is later than everything that was read.
//!
//! Agrees in role with `org.apache.cassandra.service.paxos` and `StorageProxy.cas`.

mod agreement;
mod ballots;
mod begin;
mod commit;
mod contention;
mod prepare;
mod propose;
mod single_node;
mod v1;
mod v2;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use ring::Replication;
use rows::command::TraceSink;
use rows::{Mutation, ReadCommand};
use schema::TableMetadata;
use types::{Consistency, DecoratedKey};

use super::error::RequestError;
use super::plan::placement;
use super::write::distributed::RingPeers;
use crate::node::Node;
use crate::replica::apply::within;
use crate::sampling::Sampler;
use crate::stripes::{StripeGuards, Stripes};
use agreement::Agreement;
pub use v2::PromisedPartition;

/// A conditional write of one partition.
#[derive(Clone, Copy)]
pub struct Cas<'a> {
    /// The table.
    pub table: &'a Arc<TableMetadata>,
    /// The partition.
    pub key: &'a DecoratedKey,
    /// SERIAL or LOCAL_SERIAL: how many replicas must agree.
    pub serial: Consistency,
    /// How many replicas must have what is written.
    pub commit: Consistency,
    /// Told of each step; None: the request is not traced.
    pub trace: Option<&'a dyn TraceSink>,
}

/// The circumstances of one decision. A statement that has to begin again decides again.
#[derive(Clone, Debug)]
pub struct Round {
    /// The level at which the partition is to be read.
    pub read_at: Consistency,
    /// The time of the ballot, microseconds. None: what is written is to be later than now and than
    /// everything that was read.
    pub timestamp: Option<i64>,
    /// The partition as replicas have given it with their promises: it is not to be read again.
    /// None: it is to be read.
    pub found: Option<Arc<PromisedPartition>>,
}

/// Why a conditional write was not carried out.
#[derive(Debug)]
pub enum CasError<E> {
    /// The coordinator could not carry the write out.
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
    /// this returns. `decide` is called again where another statement came first. `command`: the
    /// read of the partition that it decides by.
    pub async fn compare_and_set<E>(
        &self,
        cas: Cas<'_>,
        command: &ReadCommand,
        mut decide: impl AsyncFnMut(Round) -> Result<Option<Mutation>, E>,
    ) -> Result<(), CasError<E>> {
        let mut decide = async |round: Round| {
            let decided = decide(round).await;
            if matches!(decided, Ok(None)) {
                self.cas.conditions_not_met.add(1);
            }
            decided
        };
        match self.paxos_peers(cas.table)? {
            None => self.decide_on_single_node(cas, decide).await,
            Some(others) => {
                let mut agreement = Agreement::new(self, others, cas, self.env.now(), &self.cas.write);
                let Some(_held) = self.lock_partition(cas.table, cas.key).await else {
                    return Err(agreement.lock_wait_timeout().into());
                };
                let decided = match self.paxos().variant.is_v2 {
                    true => agreement.compare_and_set_v2(command, &mut decide).await,
                    false => agreement.compare_and_set(cas.commit, &mut decide).await,
                };
                agreement.record(match &decided {
                    Err(CasError::Request(error)) => Some(error),
                    _ => None,
                });
                decided
            }
        }
    }

    /// Lets every conditional write of a partition that has begun come to its end, and keeps those
    /// that have been overtaken from coming back: the read that follows sees what was decided.
    /// `proposes`: false leaves out the proposal of nothing, as variants that are not linearizable
    /// do.
    pub(super) async fn settle_partition(
        &self,
        others: RingPeers<'_>,
        cas: Cas<'_>,
        proposes: bool,
    ) -> Result<(), RequestError> {
        let mut agreement = Agreement::new(self, others, cas, self.env.now(), &self.cas.read);
        let Some(_held) = self.lock_partition(cas.table, cas.key).await else {
            return Err(agreement.lock_wait_timeout());
        };
        let settled = agreement.settle(cas.commit, proposes).await;
        agreement.record(settled.as_ref().err());
        settled
    }

    /// Completes in a partition what other coordinators have begun and left, for a repair of Paxos.
    pub(crate) async fn complete_partition(&self, cas: Cas<'_>) -> Result<(), RequestError> {
        match self.paxos_peers(cas.table)? {
            Some(others) => self.settle_partition(others, cas, true).await,
            None => Ok(()),
        }
    }

    /// The others that have a say in a conditional statement; None: this node decides by itself,
    /// because it is alone or the table is of this node only.
    pub(super) fn paxos_peers(&self, table: &TableMetadata) -> Result<Option<RingPeers<'_>>, RequestError> {
        let Some(others) = self.ring_peers() else { return Ok(None) };
        let placement = placement(&others.ring, &table.keyspace)?;
        let is_shared = placement.is_some_and(|placement| placement.replication != Replication::Local);
        Ok(is_shared.then_some(others))
    }

    /// Waits until no other conditional statement of the partition is under way on this node. None:
    /// too long (`cas_contention_timeout`).
    async fn lock_partition(&self, table: &TableMetadata, key: &DecoratedKey) -> Option<StripeGuards> {
        let mut lock = pin!(self.partition_locks.lock(vec![Stripes::of((table.id, &key.key))]));
        let mut waits = false;
        let lock = poll_fn(move |context| {
            let polled = lock.as_mut().poll(context);
            if polled.is_pending() && !std::mem::replace(&mut waits, true) {
                self.sampling.add(Sampler::CasContentions, table, &key.key, 1);
            }
            polled
        });
        within(&self.env, self.cas_contention(), lock).await
    }

    fn cas_contention(&self) -> Duration {
        self.timeouts().cas_contention
    }
}

/// The level of ordinary reads and writes that belongs to a serial one.
pub(super) fn quorum_of(serial: Consistency) -> Consistency {
    match serial {
        Consistency::LocalSerial => Consistency::LocalQuorum,
        _ => Consistency::Quorum,
    }
}

#[cfg(test)]
mod tests;
