//! Schema changes of this node: carried out off the workers, durable when they return, and told to
//! the other nodes of its ring.

use std::sync::Arc;

use rows::Mutation;
use schema::{Schema, TableKind};
use storage::StorageError;
use storage::schema_change::Changed;
use storage::table::TableStore;
use tokio::sync::OwnedMutexGuard;

use crate::node::{Node, SchemaListener};
use crate::replica::apply::WriteError;

impl Node {
    /// Changes the schema by a function of what it is; stored and in force when it returns.
    /// Ok(Err): the function refused.
    pub async fn change_schema<R: Send + 'static>(
        self: &Arc<Self>,
        decide: impl FnOnce(&Schema) -> Result<Schema, R> + Send + 'static,
    ) -> Result<Result<Arc<Schema>, R>, WriteError> {
        let alone = Arc::clone(&self.schema_changes).lock_owned().await;
        let engine = Arc::clone(&self.engine);
        let job = move || storage::schema_change::change(&engine, decide);
        let mut changed = match self.env.blocking("schema", job).await.map_err(|_| too_busy())?? {
            Ok(changed) => changed,
            Err(refused) => return Ok(Err(refused)),
        };
        let (schema, written) = (Arc::clone(&changed.schema), std::mem::take(&mut changed.written));
        self.conclude(changed, alone).await?;
        self.keep_building_views();
        self.push_schema(&written);
        Ok(Ok(schema))
    }

    /// Takes over rows of the schema tables that another node has written. False: they are here
    /// already.
    pub(crate) async fn merge_schema(self: &Arc<Self>, received: Vec<Mutation>) -> Result<bool, WriteError> {
        let mut merged = false;
        loop {
            // in a second step: until the files of indexes that the first one dropped are gone
            let alone = Arc::clone(&self.schema_changes).lock_owned().await;
            let (engine, rows) = (Arc::clone(&self.engine), received.clone());
            let job = move || storage::schema_change::merge(&engine, rows);
            let Some(changed) = self.env.blocking("schema", job).await.map_err(|_| too_busy())?? else {
                return Ok(merged);
            };
            merged = true;
            let continues = changed.continues;
            let (before, after) = (Arc::clone(&changed.before), Arc::clone(&changed.schema));
            self.conclude(changed, alone).await?;
            self.keep_building_views();
            if let Some(listener) = self.schema_listener.get() {
                listener(&before, &after);
            }
            if !continues {
                return Ok(true);
            }
        }
    }

    /// Has `listener` called after each change that came from another node. The first one counts.
    pub fn follow_schema(&self, listener: SchemaListener) {
        let _ = self.schema_listener.set(listener);
    }

    /// The end of a change that is in force: it becomes durable, and then it is told.
    async fn conclude(&self, changed: Changed, alone: OwnedMutexGuard<()>) -> Result<(), WriteError> {
        if let Some(position) = changed.position {
            self.engine.log.wait_durable(position).await?;
        }
        self.write_schema_version();
        self.renew_ring();
        let (indexes, tables): (Vec<_>, Vec<_>) =
            changed.dropped.into_iter().partition(|store| store.table().kind == TableKind::Index);
        // an index that is made again under the same name has its files where these are
        self.remove_dropped(indexes, alone);
        tables.iter().for_each(|store| self.engine.dropper.request(store, None));
        Ok(())
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
