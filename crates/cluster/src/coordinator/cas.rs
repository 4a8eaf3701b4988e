//! Conditional writes: a partition's lock is held from the read to the write.
//!
//! The ring has one node: what Paxos agrees on among several, a lock decides here. The lock is released as
//! soon as memtables have the write. The next statement of the partition reads that write; what it writes
//! stands behind it in the log. A statement that writes nothing (its condition does not hold, or it is a read
//! at SERIAL) waits until the log is durable up to what it has read: otherwise a power cut could take back
//! what its client was told. Agrees in role with `org.apache.cassandra.service.paxos`.

use std::future::{Future, poll_fn};
use std::pin::pin;

use rows::Mutation;
use schema::TableMetadata;
use types::DecoratedKey;

use crate::node::Node;
use crate::replica::apply::{WriteError, within};
use crate::sampling::Sampler;
use crate::stripes::{Held, Stripes};

impl Node {
    /// Waits until everything that a read of this partition has just seen is durable.
    pub async fn wait_for_what_was_read(&self, table: &TableMetadata, key: &DecoratedKey) -> Result<(), WriteError> {
        let Some(store) = self.engine.table(table.id) else { return Ok(()) };
        let Some(position) = store.last_logged(self.engine.shards.of(key.token)) else { return Ok(()) };
        let durable = async { Ok(self.wait_durable(position).await?) };
        within(&self.env, self.timeouts().write, durable).await.unwrap_or(Err(WriteError::TimedOut))
    }

    /// Waits until no other conditional write of the partition is under way. None: too long (`cas_contention_timeout`).
    pub async fn lock_partition(&self, table: &TableMetadata, key: &DecoratedKey) -> Option<Held> {
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

    /// Writes, and lets go of the locks when memtables have the write: also where this future is dropped before, because the request's
    /// time is over or its connection is reset. The write is durable when this returns.
    pub async fn write_and_release(&self, mutations: &[Mutation], held: Held) -> Result<(), WriteError> {
        let written = async {
            let position = self.apply_holding(mutations, held).await?;
            if let Some(position) = position {
                self.wait_durable(position).await?;
            }
            Ok(())
        };
        within(&self.env, self.timeouts().write, written).await.unwrap_or(Err(WriteError::TimedOut))
    }
}

#[cfg(test)]
mod tests;
