//! Schema changes of this node: carried out off the workers, durable when they return.

use std::sync::Arc;

use schema::{Schema, TableKind};
use storage::StorageError;
use storage::table::TableStore;
use tokio::sync::OwnedMutexGuard;

use crate::node::Node;
use crate::replica::apply::WriteError;

impl Node {
    /// Changes the schema by a function of what it is; stored and in force when it returns. Ok(Err): the function refused.
    pub async fn change_schema<R: Send + 'static>(
        self: &Arc<Self>,
        decide: impl FnOnce(&Schema) -> Result<Schema, R> + Send + 'static,
    ) -> Result<Result<Arc<Schema>, R>, WriteError> {
        let alone = Arc::clone(&self.schema_changes).lock_owned().await;
        let engine = Arc::clone(&self.engine);
        let job = move || storage::schema_change::change(&engine, decide);
        let changed = match self.env.blocking("schema", job).await.map_err(|_| too_busy())?? {
            Ok(changed) => changed,
            Err(refused) => return Ok(Err(refused)),
        };
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
        Ok(Ok(changed.schema))
    }

    /// Has the files of dropped indexes removed in the background. `alone` is held until that was tried once.
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
