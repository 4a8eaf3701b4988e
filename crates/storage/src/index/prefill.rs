//! The entries of rows of SSTables that are about to be added to a table: they are in the indexes,
//! and on disk, before the rows can be read.
//!
//! 1. The SSTables are open and in no view. Their rows are read a slice at a time by a job, and
//!    each row's entries go into the memtables of the indexes. While memtables are full the walk
//!    waits for flushes.
//! 2. Base and indexes are flushed, because entries are not logged: a crash behind the commit of
//!    the SSTables must find them.
//! 3. The caller adds the SSTables and then drops the [`FilledIndexes`].
//!
//! Until then the entries have no rows: queries pass over them, and remove none of them
//! ([`crate::table::prefills`]). Entries of SSTables that are given up stay; they are stale like
//! others. `org.apache.cassandra.index.SecondaryIndexManager` builds them when the SSTables can be
//! read already.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use rows::{PartitionHead, PartitionStream, ReadContext, ReadMode, Row, Unfiltered};
use sstable::SSTable;

use crate::engine::Engine;
use crate::error::StorageError;
use crate::table::TableStore;
use crate::table::entries::{self, Change, Entry};
use crate::table::indexes::IndexStore;
use crate::table::prefills::PrefillGuard;

/// Most rows and markers of a slice of work, between two looks at the memory of memtables.
const SLICE_ROWS: usize = 1024;

/// Pause while memtables are full.
const PAUSE: Duration = Duration::from_millis(10);

/// The indexes that have the entries of SSTables which are about to be added.
pub(crate) struct FilledIndexes {
    indexes: Arc<[Arc<IndexStore>]>,
    _prefill: Option<PrefillGuard>,
}

impl FilledIndexes {
    /// Indexes of the table, as it is now, that do not have the entries: they were created
    /// meanwhile.
    pub(crate) fn missing_indexes(&self, store: &TableStore) -> Vec<Arc<IndexStore>> {
        let view = store.view();
        let has = |index: &Arc<IndexStore>| self.indexes.iter().any(|own| Arc::ptr_eq(&own.state, &index.state));
        view.indexes.iter().filter(|index| !has(index)).cloned().collect()
    }
}

/// Writes the entries of all rows of `sstables`, which are not in the table's view. Completes when
/// they are on disk. After an error some entries may be there.
pub(crate) async fn fill(
    engine: &Arc<Engine>,
    store: &Arc<TableStore>,
    sstables: &[Arc<SSTable>],
) -> Result<FilledIndexes, StorageError> {
    let indexes = Arc::clone(&store.view().indexes);
    // attached indexes have their entries beside the SSTables
    let hidden: Arc<[_]> = indexes.iter().filter(|index| !index.definition.is_attached()).cloned().collect();
    if hidden.is_empty() || sstables.is_empty() {
        return Ok(FilledIndexes { indexes, _prefill: None });
    }
    let prefill = PrefillGuard::begin(store);
    let mut walk = Walk {
        store: Arc::clone(store),
        indexes: hidden,
        left: sstables.to_vec().into(),
        stream: None,
        head: None,
        found: Vec::new(),
    };
    loop {
        if engine.is_stopped() || engine.is_draining() || store.is_closed() {
            let why = format!("the indexes of {} take no entries any more", store.name());
            return Err(StorageError::Refused { why });
        }
        if !engine.memory.admits_at_once() {
            engine.flush_largest();
            engine.env.sleep(PAUSE).await;
            continue;
        }
        let of_job = Arc::clone(engine);
        let job = move || (walk.slices(&of_job), walk);
        let done = engine.env.blocking_long("index-fill", job).await;
        let (ended, given_back) = done.map_err(|full| StorageError::Refused { why: full.to_string() })?;
        walk = given_back;
        if ended? {
            break;
        }
    }
    engine.flush(store).await?;
    Ok(FilledIndexes { indexes, _prefill: Some(prefill) })
}

/// A pass through the rows of SSTables, one SSTable after the other.
struct Walk {
    store: Arc<TableStore>,
    indexes: Arc<[Arc<IndexStore>]>,
    /// SSTables that were not begun.
    left: VecDeque<Arc<SSTable>>,
    /// The SSTable that is being read; None: the next one is to be begun.
    stream: Option<Box<dyn PartitionStream>>,
    /// The partition of which further rows may come; None: there is none.
    head: Option<PartitionHead>,
    found: Vec<Entry>,
}

impl Walk {
    /// Goes on until memtables are full. True: all rows were passed.
    fn slices(&mut self, engine: &Engine) -> Result<bool, StorageError> {
        while engine.memory.admits_at_once() && !engine.is_stopped() {
            if self.slice(engine)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn slice(&mut self, engine: &Engine) -> Result<bool, StorageError> {
        let Self { store, indexes, left, stream, head, found } = self;
        let mut enter = |head: &PartitionHead, row: &Row, is_static: bool| {
            let now = engine.env.clock.now_seconds();
            let change = Change { key: &head.key.key, before: None, after: row, is_static };
            let shard = store.shards.of(head.key.token);
            for index in indexes.iter() {
                found.clear();
                entries::of_change(&index.definition, &change, now, found);
                index.apply(shard, found);
            }
        };
        for _ in 0..SLICE_ROWS {
            let Some(rows) = stream else {
                let Some(sstable) = left.pop_front() else { return Ok(true) };
                *stream = Some(Box::new(sstable.scan_all(&ReadContext::new(ReadMode::Background))?));
                continue;
            };
            let Some(partition) = &*head else {
                *head = rows.next_partition()?;
                match &*head {
                    None => *stream = None,
                    Some(begun) => begun.static_row.iter().for_each(|row| enter(begun, row, true)),
                }
                continue;
            };
            match rows.next_unfiltered()? {
                None => *head = None,
                Some(Unfiltered::Marker(_)) => {}
                Some(Unfiltered::Row(row)) => enter(partition, &row, false),
            }
        }
        if engine.memory.wants_flush() {
            engine.flush_largest();
        }
        Ok(false)
    }
}
