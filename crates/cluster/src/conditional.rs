//! Conditional writes: a partition's lock is held from the read to the write.
//!
//! The ring has one node: what Paxos agrees on among several, a lock decides here. It goes as soon as memtables have the write; who
//! comes next reads that, and what it writes stands behind it in the log. Agrees in role with `org.apache.cassandra.service.paxos`.

use std::future::{Future, poll_fn};
use std::pin::pin;

use rows::Mutation;
use schema::TableMetadata;
use types::DecoratedKey;

use crate::node::Node;
use crate::sampling::Sampler;
use crate::stripes::{Held, Stripes};
use crate::write::{WriteError, within};

impl Node {
    /// Waits until no other conditional write of the partition is under way. None: too long (`cas_contention_timeout`).
    pub async fn lock_partition(&self, table: &TableMetadata, key: &DecoratedKey) -> Option<Held<'_>> {
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

    /// Writes, and lets go of the locks before the write is durable; it is when this returns.
    pub async fn write_and_release(&self, mutations: &[Mutation], held: Held<'_>) -> Result<(), WriteError> {
        let written = async {
            let position = self.apply(mutations).await?;
            drop(held);
            if let Some(position) = position {
                self.wait_durable(position).await?;
            }
            Ok(())
        };
        within(&self.env, self.timeouts().write, written).await.unwrap_or(Err(WriteError::TimedOut))
    }
}
