//! The batch log: what makes a logged batch of several partitions happen as a whole, or not at all.
//!
//! 1. The batch is stored as one row of `system.batches` (its record). Record, mutations and the
//!    removal of the record go into the commit log side by side and in this order, as one step:
//!    what a crash leaves of them is a beginning. If the removal is in it, so are all mutations.
//! 2. A record that is found without its removal is applied again with the timestamps that it had:
//!    at the start all of them, while the node runs those older than twice the write timeout.
//!    Applying a batch twice changes nothing, unless what deleted its rows is forgotten by then. So
//!    tables that were truncated since are left out, and batches older than the least gc_grace of
//!    their tables are dropped.
//!
//! The removal does not depend on the request: whether that times out, fails or is dropped, no
//! record of a batch that was applied stays.
//!
//! Among several nodes two peers of the coordinator keep the record
//! ([`crate::coordinator::batch`]), and store and removal are messages. What is found without its
//! removal is sent to its replicas again ([`resend`]).
//!
//! Layout of the record, rules and figures as in `org.apache.cassandra.batchlog.BatchlogManager`.

mod replay;
mod resend;

use std::sync::Arc;

use bytes::Bytes;
use internode::payload::batch::StoredBatch;
use rows::codec::encode_mutation;
use rows::{DeletionTime, Mutation, PartitionUpdate};
use schema::TableMetadata;
use types::DecoratedKey;

use crate::node::Node;
use crate::system_rows::{self, SystemRow};

/// Cassandra's messaging version 5.0: the form of the mutations in a record.
const VERSION: i32 = 13;

impl Node {
    /// The mutations with the record before them and its removal behind them.
    pub(crate) fn with_record(&self, mutations: Vec<Mutation>) -> Vec<Mutation> {
        let table = self.batches_table();
        let id = self.uuids.next();
        let mut all = Vec::with_capacity(mutations.len() + 2);
        all.push(self.record(&table, &id, &mutations));
        all.extend(mutations);
        let key = system_rows::partition_key(&table, &[&id]);
        all.push(self.removal(&table, key, self.clock.next_micros()));
        all
    }

    /// The record of a batch as its coordinator sends it. The caller applies the record and then
    /// calls `BatchReplay::expect_records` once more, because a look in between does not find the
    /// record.
    pub(crate) fn record_of(&self, batch: &StoredBatch) -> Mutation {
        let mutations = batch.mutations.iter().cloned();
        let record = self.record_at(&self.batches_table(), &batch.id, batch.created_micros, mutations);
        self.batch_replay.expect_records();
        record
    }

    /// Removes the record of a batch whose mutations are where they belong.
    pub(crate) fn remove_record(&self, id: &[u8; 16]) {
        let table = self.batches_table();
        let key = system_rows::partition_key(&table, &[id]);
        let removal = self.removal(&table, key, self.clock.next_micros());
        if let Err(error) = self.engine.apply(&[removal]) {
            tracing::debug!(%error, "the record of a batch stays, and its mutations will be sent again");
        }
    }

    fn batches_table(&self) -> Arc<TableMetadata> {
        Arc::clone(self.engine.schema().table("system", "batches").expect("a built-in table"))
    }

    fn record(&self, table: &Arc<TableMetadata>, id: &[u8; 16], mutations: &[Mutation]) -> Mutation {
        let mutations = mutations.iter().map(|mutation| {
            let mut bytes = Vec::new();
            encode_mutation(&mut bytes, mutation);
            Bytes::from(bytes)
        });
        self.record_at(table, id, self.clock.next_micros(), mutations)
    }

    fn record_at(
        &self,
        table: &Arc<TableMetadata>,
        id: &[u8],
        timestamp: i64,
        mutations: impl Iterator<Item = Bytes>,
    ) -> Mutation {
        let elements = mutations.map(|bytes| (Bytes::copy_from_slice(&self.uuids.next()), bytes));
        SystemRow::new(table, &[id], &[], timestamp, None)
            .set("version", VERSION.to_be_bytes().to_vec())
            .set_elements("mutations", elements)
            .finish()
    }

    fn removal(&self, table: &Arc<TableMetadata>, key: DecoratedKey, timestamp: i64) -> Mutation {
        let mut update = PartitionUpdate::new(Arc::clone(table), key);
        update.deletion = DeletionTime::new(timestamp, self.env.clock.now_seconds());
        Mutation::of(update)
    }
}

#[cfg(test)]
mod tests;
