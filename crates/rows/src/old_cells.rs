//! A stream without cells that are older than their row has to keep: how a compaction of
//! `system.paxos` forgets states where they have no TTL.
//!
//! Agrees with `Row.purgeDataOlderThan` of Cassandra, for tables whose rows have no liveness.

use std::sync::Arc;

use schema::TableMetadata;
use types::DecoratedKey;

use crate::{ClusteringValues, ColumnData, PartitionHead, PartitionStream, ReadError, Unfiltered};

/// Gives for a row of a table the timestamp, in microseconds, before which its cells may go.
pub type OldestKeptTimestamp = dyn Fn(&TableMetadata, &DecoratedKey, &ClusteringValues) -> i64 + Send + Sync;

/// See the module.
pub struct OldCellsPurgeStream<S> {
    stream: S,
    table: Arc<TableMetadata>,
    oldest: Arc<OldestKeptTimestamp>,
    key: Option<DecoratedKey>,
}

impl<S: PartitionStream> OldCellsPurgeStream<S> {
    /// The stream of a table without the cells that `oldest` lets go.
    pub fn new(stream: S, table: Arc<TableMetadata>, oldest: Arc<OldestKeptTimestamp>) -> Self {
        Self { stream, table, oldest, key: None }
    }
}

impl<S: PartitionStream> PartitionStream for OldCellsPurgeStream<S> {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let head = self.stream.next_partition()?;
        self.key = head.as_ref().map(|head| head.key.clone());
        Ok(head)
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        loop {
            let mut row = match self.stream.next_unfiltered()? {
                Some(Unfiltered::Row(row)) => row,
                next => return Ok(next),
            };
            let Some(key) = &self.key else { return Ok(Some(Unfiltered::Row(row))) };
            let oldest = (self.oldest)(&self.table, key, &row.clustering);
            row.columns.retain(|data| match data {
                ColumnData::Simple(cell) => cell.timestamp >= oldest,
                ColumnData::Complex(_) => true,
            });
            if !row.is_empty() {
                return Ok(Some(Unfiltered::Row(row)));
            }
        }
    }
}
