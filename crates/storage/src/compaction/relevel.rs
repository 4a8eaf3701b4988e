//! An SSTable that goes to another level as it is: only its statistics are written
//! (`single_sstable_uplevel`).
//!
//! Agrees with `org.apache.cassandra.db.compaction.SingleSSTableLCSTask`.

use std::sync::Arc;

use sstable::{Component, SSTable};

use super::task::{Outcome, Task};
use crate::engine::Engine;
use crate::error::StorageError;
use crate::requests::operations::Item;
use crate::table::TableStore;

/// The change under way.
pub struct Relevel {
    store: Arc<TableStore>,
    sstable: Arc<SSTable>,
    level: u32,
}

impl Relevel {
    /// Opens the task of giving an item's only SSTable another level.
    pub fn open(store: &Arc<TableStore>, item: &Item, level: u32) -> Result<Self, StorageError> {
        match item.sstables.as_slice() {
            [single] => Ok(Self { store: Arc::clone(store), sstable: Arc::clone(single), level }),
            _ => Err(StorageError::Refused { why: "one SSTable goes to another level at a time".into() }),
        }
    }
}

impl Task for Relevel {
    fn advance(&mut self) -> Result<Option<u64>, StorageError> {
        Ok(None)
    }

    fn finish(self: Box<Self>, engine: &Arc<Engine>) -> Result<Outcome, StorageError> {
        let (store, descriptor) = (&self.store, self.sstable.descriptor());
        let _alone = store.replacing.lock().expect("a panic while SSTables are replaced ends the process");
        if !store.view().sstables.iter().any(|sstable| sstable.descriptor() == descriptor) {
            return Err(StorageError::Refused { why: format!("{} was truncated meanwhile", store.name()) });
        }
        let mut statistics = self.sstable.statistics().clone();
        statistics.stats.level = self.level;
        let path = descriptor.path(Component::Statistics);
        let written = engine.env.disk.replace_file(&path, &statistics.write(descriptor.version));
        written.map_err(|error| StorageError::io(&path, &error))?;
        let cache: Arc<dyn sstable::FileCache> = Arc::clone(&engine.caches) as _;
        let reopened = SSTable::open(&engine.env, descriptor.clone(), &store.table(), cache)?;
        store.replace_sstables(std::slice::from_ref(&self.sstable), vec![Arc::new(reopened)]);
        Ok(Outcome::default())
    }

    fn abandon(self: Box<Self>) {}
}
