//! Schema changes and truncation of this node: carried out off the workers, durable when they return.

use std::sync::Arc;

use schema::Schema;
use storage::StorageError;

use crate::node::Node;
use crate::write::{WriteError, within};

impl Node {
    /// Changes the schema by a function of what it is; stored and in force when it returns. Ok(Err): the function refused.
    pub async fn change_schema<R: Send + 'static>(
        self: &Arc<Self>,
        decide: impl FnOnce(&Schema) -> Result<Schema, R> + Send + 'static,
    ) -> Result<Result<Arc<Schema>, R>, WriteError> {
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
        if !changed.dropped.is_empty() {
            let (engine, dropped) = (Arc::clone(&self.engine), changed.dropped);
            let remove = move || {
                if let Err(error) = storage::schema_change::remove_dropped(&engine, &dropped) {
                    tracing::error!(%error, "the files of a dropped table cannot be removed");
                }
            };
            self.env.tasks.run("drop", Box::new(remove)).map_err(|_| too_busy())?;
        }
        Ok(Ok(changed.schema))
    }

    /// Drops all data of a table.
    pub async fn truncate(&self, keyspace: &str, table: &str) -> Result<(), WriteError> {
        let Some(store) = self.engine.table_by_name(keyspace, table) else {
            return Err(StorageError::UnknownTable { table: format!("{keyspace}.{table}") }.into());
        };
        let truncated = async {
            let position = self.engine.log.position();
            self.engine.flush(&store).await?;
            if let Some(recorded) = storage::truncate::record(&self.engine, &store, position)? {
                self.engine.log.wait_durable(recorded).await?;
            }
            let engine = Arc::clone(&self.engine);
            let job = move || storage::truncate::truncate(&engine, &store);
            self.env.blocking("truncate", job).await.map_err(|_| too_busy())??;
            Ok(())
        };
        within(&self.env, self.timeouts().truncate, truncated).await.unwrap_or(Err(WriteError::TimedOut))
    }
}

fn too_busy() -> WriteError {
    WriteError::Storage(StorageError::Refused { why: "too much background work waits".to_owned() })
}
