//! Reads: planned by the ring, answered by replicas. Where this node alone is asked it reads what
//! it has; otherwise [`super::among`] asks the others, too.
//!
//! A read at SERIAL or LOCAL_SERIAL also waits until what it has seen is durable ([`super::cas`]).

use std::sync::Arc;
use std::time::Duration;

use rows::{PartitionRange, PartitionStream, ReadCommand, ReadError};
use schema::TableMetadata;
use types::{Consistency, DecoratedKey};

use super::among::Among;
use super::error::FailedRead;
use crate::node::Node;
use crate::replica::read::{ReadFigures, ReadRequest, is_of_range};

impl Node {
    /// Builds something from the stream of a read at a level, and adds what it took to `figures`.
    /// `is_blocked`: the error says [`ReadError::WouldBlock`].
    pub async fn read<T, E, F>(
        &self,
        request: ReadRequest,
        level: Consistency,
        figures: &ReadFigures,
        is_blocked: fn(&E) -> bool,
        build: F,
    ) -> Result<T, FailedRead<E>>
    where
        T: Send + 'static,
        E: From<ReadError> + Send + 'static,
        F: Fn(&mut dyn PartitionStream) -> Result<T, E> + Send + Sync + 'static,
    {
        if !level.is_serial() {
            return self.read_now(request, level, figures, is_blocked, build).await;
        }
        let partition = request.commands.first().and_then(partition_of);
        if let Some((table, key)) = &partition {
            self.check_is_alone(&table.keyspace, key.token).map_err(FailedRead::Refused)?;
        }
        let built = self.read_now(request, level, figures, is_blocked, build).await?;
        if let Some((table, key)) = partition {
            let waited = self.wait_for_what_was_read(&table, &key).await;
            waited.map_err(|cause| FailedRead::Serial { cause, level, endpoint: self.identity.broadcast })?;
        }
        Ok(built)
    }

    /// The same for a statement that holds the lock of the partition: what is there, durable or
    /// not.
    pub async fn read_now<T, E, F>(
        &self,
        request: ReadRequest,
        level: Consistency,
        figures: &ReadFigures,
        is_blocked: fn(&E) -> bool,
        build: F,
    ) -> Result<T, FailedRead<E>>
    where
        T: Send + 'static,
        E: From<ReadError> + Send + 'static,
        F: Fn(&mut dyn PartitionStream) -> Result<T, E> + Send + Sync + 'static,
    {
        if let Some(messenger) = self.members()
            && request.open.is_none()
            && let Some(parts) = self.parts_among(&request.commands, level).map_err(FailedRead::Refused)?
        {
            // boxed: by value it would make the future of every request larger, which is moved
            // several times
            let among = Among::new(self, messenger, level, self.read_limit(&request.commands));
            return Box::pin(among.read(parts, request, figures, is_blocked, build)).await;
        }
        let block_for = self.plan_read(&request.commands, level).map_err(FailedRead::Refused)?;
        let limit = self.read_limit(&request.commands);
        let read = self.replica.read(request, limit, figures, is_blocked, build).await;
        read.map_err(|outcome| self.failed_read(outcome, level, block_for))
    }

    pub(crate) fn failed_read<E>(
        &self,
        outcome: crate::replica::read::ReadOutcome<E>,
        level: Consistency,
        block_for: u32,
    ) -> FailedRead<E> {
        FailedRead::Failed { outcome, level, block_for, received: 0, endpoint: self.identity.broadcast }
    }

    /// How long a read may take.
    pub(crate) fn read_limit(&self, commands: &[ReadCommand]) -> Duration {
        let timeouts = self.timeouts();
        if is_of_range(commands) { timeouts.range } else { timeouts.read }
    }
}

/// The partition that a command reads; None: it reads a range.
fn partition_of(command: &ReadCommand) -> Option<(Arc<TableMetadata>, DecoratedKey)> {
    match &command.range {
        PartitionRange::Key(key) => Some((Arc::clone(&command.table), key.clone())),
        PartitionRange::Range { .. } => None,
    }
}
