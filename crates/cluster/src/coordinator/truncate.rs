//! TRUNCATE: every replica drops what it has of a table.

use storage::StorageError;

use crate::node::Node;
use crate::replica::apply::{WriteError, within};

impl Node {
    /// Drops all data of a table.
    pub async fn truncate(&self, keyspace: &str, table: &str) -> Result<(), WriteError> {
        let Some(store) = self.engine.table_by_name(keyspace, table) else {
            return Err(StorageError::UnknownTable { table: format!("{keyspace}.{table}") }.into());
        };
        let truncated = async { Ok(storage::truncate::truncate(&self.engine, &store).await?) };
        within(&self.env, self.timeouts().truncate, truncated).await.unwrap_or(Err(WriteError::TimedOut))
    }
}
