//! The batch log: what makes a logged batch of several partitions happen as a whole, or not at all.
//!
//! The batch is stored in `system.batches` before its mutations and removed after them; what is found there at start is applied
//! again, which changes nothing where it had been applied. Record and mutations go into the commit log side by side, so that one sync
//! covers both. Layout of the record as in `org.apache.cassandra.batchlog.BatchlogManager`.

use std::sync::Arc;

use bytes::Bytes;
use rows::codec::{decode_mutation, encode_mutation};
use rows::{DeletionTime, Mutation, PartitionUpdate};
use schema::TableMetadata;

use crate::error::NodeError;
use crate::node::Node;
use crate::system_rows::{self, SystemRow};
use crate::write::{WriteError, within};

/// Cassandra's messaging version 5.0: the form of the mutations in a record.
const VERSION: i32 = 13;
/// That of 4.0, which 5.0 writes in its compatible mode, has the same form.
const VERSIONS_READ: [i32; 2] = [12, VERSION];

impl Node {
    /// Applies the mutations of a logged batch: all of them are durable when it returns, and after a crash all or none are there.
    pub async fn write_logged_batch(&self, mutations: Vec<Mutation>) -> Result<(), WriteError> {
        let table = self.batches_table();
        let id = self.uuids.next();
        let mut all = Vec::with_capacity(mutations.len() + 1);
        all.push(self.record(&table, &id, &mutations));
        all.extend(mutations);
        let timeout = self.timeouts().write;
        let written = within(&self.env, timeout, async {
            match self.apply(&all).await? {
                Some(position) => self.engine.log.wait_durable(position).await.map_err(WriteError::from),
                None => Ok(()),
            }
        });
        written.await.unwrap_or(Err(WriteError::TimedOut))?;
        // nobody waits for it: a record that stays is applied again at the next start and does no harm
        if let Err(error) = self.engine.apply(&[self.removal(&table, &id)]) {
            tracing::debug!(%error, "the record of a batch stays until the next start");
        }
        Ok(())
    }

    fn batches_table(&self) -> Arc<TableMetadata> {
        Arc::clone(self.engine.schema().table("system", "batches").expect("a built-in table"))
    }

    fn record(&self, table: &Arc<TableMetadata>, id: &[u8; 16], mutations: &[Mutation]) -> Mutation {
        let elements = mutations.iter().map(|mutation| {
            let mut bytes = Vec::new();
            encode_mutation(&mut bytes, mutation);
            (Bytes::copy_from_slice(&self.uuids.next()), Bytes::from(bytes))
        });
        SystemRow::new(table, &[id], &[], self.clock.next_micros(), None)
            .set("version", VERSION.to_be_bytes().to_vec())
            .set_elements("mutations", elements)
            .finish()
    }

    fn removal(&self, table: &Arc<TableMetadata>, id: &[u8; 16]) -> Mutation {
        let mut update = PartitionUpdate::new(Arc::clone(table), system_rows::partition_key(table, &[id]));
        update.deletion = DeletionTime::new(self.clock.next_micros(), self.env.clock.now_seconds());
        Mutation::of(update)
    }

    /// Applies what a crash left in the batch log. Gives the number of batches.
    pub(crate) fn replay_batches(&self) -> Result<usize, NodeError> {
        if self.engine.options.read_only {
            return Ok(0);
        }
        let table = self.batches_table();
        let schema = self.engine.schema();
        let found = system_rows::read(&self.engine, &table, None)?;
        for (key, row) in &found {
            let version = system_rows::value(&table, row, "version");
            if version.is_some_and(|version| !VERSIONS_READ.iter().any(|known| version.as_ref() == known.to_be_bytes()))
            {
                tracing::warn!("a batch of another messaging version is left in system.batches");
                continue;
            }
            let mut mutations = Vec::new();
            for bytes in system_rows::elements(&table, row, "mutations") {
                match decode_mutation(&bytes, &|id| schema.table_by_id(id).cloned()) {
                    Ok(mutation) => mutations.extend(mutation),
                    Err(error) => tracing::error!(%error, "a mutation in system.batches cannot be decoded"),
                }
            }
            let mut removal = PartitionUpdate::new(Arc::clone(&table), key.clone());
            removal.deletion = DeletionTime::new(self.clock.next_micros(), self.env.clock.now_seconds());
            mutations.push(Mutation::of(removal));
            self.engine.apply(&mutations)?;
        }
        Ok(found.len())
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::path::Path;

    use storage::{EngineOptions, commitlog};

    use super::*;
    use crate::identity::IdentityOptions;
    use crate::node::Timeouts;

    fn node(directory: &Path) -> Arc<Node> {
        let options = EngineOptions {
            commitlog: commitlog::Options { segment_size: 64 << 10, ..commitlog::Options::default() },
            ..EngineOptions::beneath(directory)
        };
        let (engine, _) = storage::open(&env::real::env(), options).expect("an empty directory");
        let address: SocketAddr = "127.0.0.1:7000".parse().expect("an address");
        let identity = IdentityOptions {
            cluster_name: "Test Cluster".to_owned(),
            adopt_cluster_name: false,
            num_tokens: 16,
            adopt_tokens: false,
            initial_tokens: Vec::new(),
            listen: address,
            broadcast: address,
            native: address,
        };
        Node::open(engine, identity, Timeouts::default()).expect("nothing is there yet")
    }

    fn count(node: &Node, keyspace: &str, table: &str) -> usize {
        let schema = node.schema();
        let table = schema.table(keyspace, table).expect("a built-in table");
        system_rows::read(&node.engine, table, None).expect("readable").len()
    }

    /// What a crash between the record and the mutations leaves: the record alone.
    #[test]
    fn a_batch_that_was_only_recorded_is_applied() {
        let directory = tempfile::tempdir().expect("a scratch directory");
        let node = node(directory.path());
        let schema = node.schema();
        let sessions = schema.table("system_traces", "sessions").expect("a built-in table");
        let mutations: Vec<Mutation> = (0..5u8)
            .map(|k| SystemRow::new(sessions, &[&[k; 16]], &[], 1000, None).set("command", &b"x"[..]).finish())
            .collect();
        let record = node.record(&node.batches_table(), &node.uuids.next(), &mutations);
        node.engine.apply(&[record]).expect("applied");
        assert_eq!((count(&node, "system", "batches"), count(&node, "system_traces", "sessions")), (1, 0));
        assert_eq!(node.replay_batches(), Ok(1));
        assert_eq!((count(&node, "system", "batches"), count(&node, "system_traces", "sessions")), (0, 5));
        assert_eq!(node.replay_batches(), Ok(0));
    }
}
