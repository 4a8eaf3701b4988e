//! Changes under way that bring a table SSTables from outside: streams, imports and refreshes.
//!
//! The files of a dropped table stay until these have ended. Files that are given up go by their
//! names, which SSTables of a table that is made again with the id may have by then.

use std::sync::Arc;

use super::TableStore;
use crate::error::StorageError;

/// A change that its table counts (`super::Changes::incoming`), from before its first file until
/// all of them are added or given up.
pub(crate) struct IncomingChange(Arc<TableStore>);

impl IncomingChange {
    /// Begins; dropping the value ends it. Err: the table was dropped.
    pub(crate) fn begin(store: &Arc<TableStore>) -> Result<Self, StorageError> {
        // a drop closes the table under this lock before it looks for changes
        let mut changes = store.changes();
        if store.is_closed() {
            drop(changes);
            return Err(StorageError::Refused { why: format!("{} was dropped", store.name()) });
        }
        changes.incoming += 1;
        drop(changes);
        Ok(Self(Arc::clone(store)))
    }
}

impl Drop for IncomingChange {
    fn drop(&mut self) {
        let mut changes = self.0.changes();
        // where a panic drops the change, another panic would abort the process
        assert!(changes.incoming > 0 || std::thread::panicking(), "a change ends once");
        changes.incoming = changes.incoming.saturating_sub(1);
    }
}
