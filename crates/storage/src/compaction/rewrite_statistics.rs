//! An SSTable of which only the statistics are changed: its level (`single_sstable_uplevel`), or
//! the repair session that has it. Only its statistics are written.
//!
//! Agrees with `org.apache.cassandra.db.compaction.SingleSSTableLCSTask` and
//! `CompactionManager.mutateFullyContainedSSTables`.

use std::sync::Arc;

use sstable::{Component, SSTable, Stats};

use super::task::{Outcome, Task};
use crate::engine::Engine;
use crate::error::StorageError;
use crate::inherited::RepairState;
use crate::requests::operations::Item;
use crate::table::TableStore;

/// The new content of some statistics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StatisticsChange {
    /// The SSTable is of this level.
    Level(u32),
    /// A repair session that has not ended has the SSTable.
    Pending([u8; 16]),
    /// No repair session has the SSTable any more. The time when it was repaired, milliseconds
    /// since 1970; 0: it was not repaired.
    Repaired(i64),
}

impl StatisticsChange {
    fn apply(self, stats: &mut Stats) {
        match self {
            Self::Level(level) => stats.level = level,
            Self::Pending(session) => stats.pending_repair = Some(session),
            Self::Repaired(at) => {
                (stats.pending_repair, stats.repaired_at, stats.is_transient) = (None, at, false);
            }
        }
    }
}

/// The change under way.
pub struct StatisticsRewrite {
    store: Arc<TableStore>,
    sstable: Arc<SSTable>,
    change: StatisticsChange,
}

impl StatisticsRewrite {
    /// Opens the task of changing the statistics of an item's only SSTable.
    pub fn open(store: &Arc<TableStore>, item: &Item, change: StatisticsChange) -> Result<Self, StorageError> {
        match item.sstables.as_slice() {
            [single] => Ok(Self { store: Arc::clone(store), sstable: Arc::clone(single), change }),
            _ => Err(StorageError::Refused { why: "the statistics of one SSTable change at a time".into() }),
        }
    }
}

/// Changes the statistics of an SSTable that the caller has marked. The file is replaced as one
/// step, so that a crash leaves the old statistics or the new ones.
pub fn rewrite_statistics(
    engine: &Engine,
    store: &TableStore,
    sstable: &Arc<SSTable>,
    change: StatisticsChange,
) -> Result<(), StorageError> {
    let mut statistics = sstable.statistics().clone();
    change.apply(&mut statistics.stats);
    let reopened = with_statistics(engine, store, sstable, || {
        let descriptor = sstable.descriptor();
        let path = descriptor.path(Component::Statistics);
        let written = engine.env.disk.replace_file(&path, &statistics.write(descriptor.version));
        written.map_err(|error| StorageError::io(&path, &error))
    })?;
    let found = RepairState::of(&reopened.statistics().stats);
    assert_eq!(found, RepairState::of(&statistics.stats), "statistics are read as they were written");
    Ok(())
}

/// Has `write` replace the statistics of an SSTable that the caller has marked, and puts the
/// SSTable into the view as the new statistics describe it. Its rows stay, and the open components
/// of its attached indexes stay with them.
pub(crate) fn with_statistics(
    engine: &Engine,
    store: &TableStore,
    sstable: &Arc<SSTable>,
    write: impl FnOnce() -> Result<(), StorageError>,
) -> Result<Arc<SSTable>, StorageError> {
    let descriptor = sstable.descriptor();
    let _alone = store.replacing.lock().expect("a panic while SSTables are replaced ends the process");
    let view = store.view();
    let Some(present) = view.sstables.iter().find(|sstable| sstable.descriptor() == descriptor) else {
        return Err(StorageError::Refused { why: format!("{} was truncated meanwhile", store.name()) });
    };
    write()?;
    let cache: Arc<dyn sstable::FileCache> = Arc::clone(&engine.caches) as _;
    let reopened = SSTable::open(&engine.env, descriptor.clone(), &store.table(), cache)?;
    reopened.attached().take_over(present.attached());
    let reopened = Arc::new(reopened);
    store.replace_sstables(std::slice::from_ref(present), vec![Arc::clone(&reopened)]);
    Ok(reopened)
}

impl Task for StatisticsRewrite {
    fn advance(&mut self) -> Result<Option<u64>, StorageError> {
        Ok(None)
    }

    fn finish(self: Box<Self>, engine: &Arc<Engine>) -> Result<Outcome, StorageError> {
        rewrite_statistics(engine, &self.store, &self.sstable, self.change)?;
        Ok(Outcome::default())
    }

    fn abandon(self: Box<Self>) {}
}
