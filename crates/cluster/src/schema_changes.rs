//! Schema changes of this node: carried out off the workers, durable when they return, and told to
//! the other nodes of its ring.

use std::sync::Arc;
use std::time::Duration;

use rows::Mutation;
use schema::{Schema, TableKind};
use storage::StorageError;
use storage::commitlog::LogPosition;
use storage::schema_change::Changed;
use storage::table::TableStore;
use tokio::sync::OwnedMutexGuard;

use crate::node::{Node, SchemaListener};
use crate::replica::apply::WriteError;

/// During a shortage of the commit log, pause before a change looks again whether it is durable.
const SHORTAGE_PAUSE: Duration = Duration::from_secs(1);
/// Pause before a merge looks again whether the files of a dropped table are gone.
const FILES_PAUSE: Duration = Duration::from_millis(100);
/// How often a merge looks again. Other schemas wait meanwhile, and files that take longer may be
/// there for as long as the disk refuses a snapshot.
const FILES_LOOKS_MAX: u32 = 20;

impl Node {
    /// Changes the schema by a function of the present schema. The change is stored and in force
    /// when this returns. Ok(Err): the function refused.
    pub async fn change_schema<R: Send + 'static>(
        self: &Arc<Self>,
        decide: impl FnOnce(&Schema) -> Result<Schema, R> + Send + 'static,
    ) -> Result<Result<Arc<Schema>, R>, WriteError> {
        self.change_schema_with_hook(decide, || ()).await
    }

    /// Does the work of [`Node::change_schema`], and calls `tell` when the change is durable. A
    /// change that has begun is concluded and told also where the caller goes away: it is in force
    /// then, and the ring, other nodes and dropped tables have to follow. The lock admits one such
    /// change at a time.
    pub async fn change_schema_with_hook<R: Send + 'static>(
        self: &Arc<Self>,
        decide: impl FnOnce(&Schema) -> Result<Schema, R> + Send + 'static,
        tell: impl FnOnce() + Send + 'static,
    ) -> Result<Result<Arc<Schema>, R>, WriteError> {
        let alone = Arc::clone(&self.schema_changes).lock_owned().await;
        let node = Arc::clone(self);
        let change = async move {
            let engine = Arc::clone(&node.engine);
            let job = move || storage::schema_change::change(&engine, decide);
            let mut changed = match node.env.blocking("schema", job).await.map_err(|_| too_busy())?? {
                Ok(changed) => changed,
                Err(refused) => return Ok(Err(refused)),
            };
            let (schema, written) = (Arc::clone(&changed.schema), std::mem::take(&mut changed.written));
            node.conclude(changed, alone).await?;
            node.push_schema(&written);
            tell();
            Ok(Ok(schema))
        };
        self.env.run_to_completion("schema change", change).await
    }

    /// Takes over rows of the schema tables that another node has written. False: they are here
    /// already. Files of a dropped table that a new one is to have the id of, or of a dropped index
    /// that a new one is to have the name of, are waited for a little: at the other node they are
    /// gone.
    pub(crate) async fn merge_schema(self: &Arc<Self>, received: Vec<Mutation>) -> Result<bool, WriteError> {
        let mut merged = false;
        let mut looks = 0;
        loop {
            // in a second step: until the files of indexes that the first one dropped are gone
            let alone = Arc::clone(&self.schema_changes).lock_owned().await;
            let (engine, rows) = (Arc::clone(&self.engine), received.clone());
            let job = move || storage::schema_change::merge(&engine, rows);
            let changed = match self.env.blocking("schema", job).await.map_err(|_| too_busy())? {
                Err(StorageError::FilesOfDropped { .. }) if looks < FILES_LOOKS_MAX => {
                    looks += 1;
                    drop(alone);
                    self.env.sleep(FILES_PAUSE).await;
                    continue;
                }
                changed => changed?,
            };
            let Some(changed) = changed else { return Ok(merged) };
            merged = true;
            let continues = changed.continues;
            let (before, after) = (Arc::clone(&changed.before), Arc::clone(&changed.schema));
            self.conclude(changed, alone).await?;
            if let Some(listener) = self.schema_listener.get() {
                listener(&before, &after);
            }
            if !continues {
                return Ok(true);
            }
        }
    }

    /// Has `listener` called after each change that came from another node. The first call of this
    /// function counts.
    pub fn follow_schema(&self, listener: SchemaListener) {
        let _ = self.schema_listener.set(listener);
    }

    /// The end of a change that is in force: this node follows it, it becomes durable, and then it
    /// is told. Reads and writes go by the change at once, so that the ring's replicas must too.
    async fn conclude(self: &Arc<Self>, changed: Changed, alone: OwnedMutexGuard<()>) -> Result<(), WriteError> {
        self.renew_ring();
        self.streaming_state.note_change(&changed.before, &changed.schema);
        if let Some(position) = changed.position {
            self.until_durable(position).await?;
        }
        self.write_schema_version();
        let (indexes, tables): (Vec<_>, Vec<_>) =
            changed.dropped.into_iter().partition(|store| store.table().kind == TableKind::Index);
        // an index that is made again under the same name has its files where these are
        self.remove_dropped(indexes, alone);
        tables.iter().for_each(|store| self.engine.dropper.request(store, None));
        changed.dropped_left_out.into_iter().for_each(|files| self.engine.dropper.request_left_out(files));
        self.start_view_builds();
        Ok(())
    }

    /// Waits until the log is durable up to a position, also where writes do not wait for a sync
    /// (`commitlog_sync: periodic`): Cassandra flushes the schema tables with each change. A power
    /// cut could otherwise leave SSTables of a schema that the node does not have.
    ///
    /// The log keeps the change during a shortage, as of a full disk, and writes it afterwards, so
    /// that a shortage does not end the wait: otherwise the change would be in force, and neither
    /// the ring nor dropped tables would follow.
    async fn until_durable(&self, position: LogPosition) -> Result<(), WriteError> {
        loop {
            match self.engine.log.wait_synced(position).await {
                Err(error) if error.is_shortage() => self.env.sleep(SHORTAGE_PAUSE).await,
                settled => return Ok(settled?),
            }
        }
    }

    /// Has the files of dropped indexes removed in the background. `alone` is held until that was
    /// tried once.
    fn remove_dropped(&self, indexes: Vec<Arc<TableStore>>, alone: OwnedMutexGuard<()>) {
        let alone = Arc::new(alone);
        for store in &indexes {
            let alone = Arc::clone(&alone);
            self.engine.dropper.request(store, Some(Box::new(move |_| drop(alone))));
        }
    }
}

fn too_busy() -> WriteError {
    WriteError::Storage(StorageError::Refused { why: "too much background work waits".to_owned() })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use env::sim::Sim;
    use schema::{KeyspaceMetadata, Replication};

    use super::*;
    use crate::testing::periodic;

    /// A change of the schema is there after a power cut, though writes do not wait for a sync.
    #[test]
    fn a_change_is_durable_when_it_returns() {
        let sim = Sim::new(1);
        let node = periodic(&sim);
        let keyspace = KeyspaceMetadata {
            name: "made".to_owned(),
            durable_writes: true,
            replication: Replication::simple(1),
            tables: BTreeMap::new(),
            user_types: BTreeMap::new(),
            function_rows: Vec::new(),
            functions: BTreeMap::new(),
            aggregates: BTreeMap::new(),
            is_virtual: false,
        };
        let decide = move |schema: &Schema| Ok::<_, ()>(schema.with_keyspace(keyspace));
        let made = sim.block_on(node.change_schema(decide));
        assert!(made.is_ok_and(|made| made.is_ok()));
        sim.power_cut();
        drop(node);
        assert!(periodic(&sim).schema().keyspace("made").is_some());
    }
}
