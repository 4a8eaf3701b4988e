//! Conditional statements of a node alone: a partition's lock is held from the read to the write.
//!
//! The lock is released as soon as memtables have the write. The next statement of the partition
//! reads that write; what it writes stands behind it in the log. A statement that writes nothing
//! (its condition does not hold, or it is a read at SERIAL) waits until the log is durable up to
//! what it has read: otherwise a power cut could take back what its client was told.

use rows::Mutation;
use schema::TableMetadata;
use types::{DecoratedKey, WriteKind};

use super::{Cas, CasError, Round};
use crate::coordinator::error::RequestError;
use crate::node::Node;
use crate::replica::apply::{WriteError, within};

impl Node {
    pub(super) async fn decide_on_single_node<E>(
        &self,
        cas: Cas<'_>,
        mut decide: impl AsyncFnMut(Round) -> Result<Option<Mutation>, E>,
    ) -> Result<(), CasError<E>> {
        let Cas { table, key, serial, commit, .. } = cas;
        let agreed = self.plan_partition(&table.keyspace, key.token, serial, WriteKind::Cas)?;
        let committed = self.plan_partition(&table.keyspace, key.token, commit, WriteKind::Cas)?;
        let Some(held) = self.lock_partition(table, key).await else {
            return Err(RequestError::of_write(WriteError::TimedOut, agreed).into());
        };
        let round = Round { read_at: serial, timestamp: None, found: None };
        match decide(round).await.map_err(CasError::Decide)? {
            None => {
                drop(held);
                let waited = self.wait_for_what_was_read(table, key).await;
                waited.map_err(|cause| RequestError::of_write(cause, agreed))?;
            }
            Some(mutation) => {
                let mutations = [mutation];
                let applied = self.replica.apply(&mutations, held);
                let sent = self.send(committed, self.timeouts().write, applied).await;
                if let Some(wait) = sent.map_err(|error| error.of_mutations(&mutations))? {
                    wait.await?;
                }
            }
        }
        Ok(())
    }

    /// Waits until everything that a read of this partition has just seen is durable.
    pub(in crate::coordinator) async fn wait_for_what_was_read(
        &self,
        table: &TableMetadata,
        key: &DecoratedKey,
    ) -> Result<(), WriteError> {
        let Some(position) = self.replica.position_of(table, key) else { return Ok(()) };
        let Some(logged) = self.replica.logged(position)? else { return Ok(()) };
        within(&self.env, self.timeouts().write, logged).await.unwrap_or(Err(WriteError::TimedOut))
    }
}
