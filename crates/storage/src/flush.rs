//! Flushing: the frozen memtables of a table become an SSTable, or one a shard of the unified
//! strategy.
//!
//! 1. New memtables take the place of the old ones, which are frozen and stay readable.
//! 2. They are written in token order; a transaction log on disk undoes half-written SSTables after
//!    a crash.
//! 3. The SSTables take their place in the view; then the commit log may forget their records.
//!
//! A flush that fails (no space, I/O error) leaves the memtables where they are and is tried again.
//! The `flusher` makes sure that the log has the records that are flushed.

use std::sync::Arc;

use crate::files::{DroppedColumns, NewSSTable, SSTable};
use env::sync::MutexGuard;
use env::sync::atomic::Ordering;
use rows::codec::EncodingStatsCollector;
use rows::{MergeStream, PartitionStream};
use schema::TableMetadata;

use crate::engine::Engine;
use crate::error::StorageError;
use crate::files;
use crate::inherited::Inherited;
use crate::outputs::{Inputs, Outputs};
use crate::strategy::Strategy;
use crate::table::TableStore;
use crate::table::indexes::IndexStore;
use crate::table::memtable::Memtable;
use crate::table::memtable::read::MemtableStream;
use crate::table::view::FlushSet;

/// Flushes the memtables of a table at a start, when nothing is written to them and the log has
/// all of their records; later the flusher does it ([`Engine::flush`]), which waits for the log.
/// Gives the SSTables of the last memtables; none if these were empty.
pub(crate) fn flush_at_start(engine: &Engine, store: &Arc<TableStore>) -> Result<Vec<Arc<SSTable>>, StorageError> {
    match freeze(engine, store) {
        None => Ok(Vec::new()),
        Some(set) => flush_set(engine, store, &set),
    }
}

/// Freezes the memtables that take writes. If these are empty it gives the last ones that were
/// frozen before and are not written yet, because their flush failed or is under way. None:
/// everything is in SSTables.
pub fn freeze(engine: &Engine, store: &TableStore) -> Option<Arc<FlushSet>> {
    let set = store.switch_memtables(store.table(), None, || engine.log.position());
    set.or_else(|| store.view().flushing.last().map(Arc::clone))
}

/// Writes frozen memtables, and older ones before them, because the commit log forgets in order.
/// Also used to try a failed flush again. Gives no SSTables if another call has written them.
pub fn flush_set(
    engine: &Engine,
    store: &Arc<TableStore>,
    set: &Arc<FlushSet>,
) -> Result<Vec<Arc<SSTable>>, StorageError> {
    let _in_order = lock_flushes(store);
    let waiting = store.view().flushing.clone();
    let Some(position) = waiting.iter().position(|other| Arc::ptr_eq(other, set)) else { return Ok(Vec::new()) };
    let ends: Vec<_> = waiting.iter().map(|set| set.up_to).collect();
    assert!(ends.is_sorted(), "memtables are flushed in the order of the log: {ends:?}");
    engine.flusher.active.fetch_add(1, Ordering::Relaxed);
    let written = waiting[..=position].iter().try_fold(Vec::new(), |_, older| flush_one(engine, store, older));
    engine.flusher.active.fetch_sub(1, Ordering::Relaxed);
    written
}

/// Waits for a flush of the table that is under way, and keeps others from beginning.
pub(crate) fn lock_flushes(store: &TableStore) -> MutexGuard<'_, ()> {
    store.flushing.lock().expect("a panic in a flush ends the process")
}

fn flush_one(engine: &Engine, store: &Arc<TableStore>, set: &Arc<FlushSet>) -> Result<Vec<Arc<SSTable>>, StorageError> {
    let attached = |index: &Arc<IndexStore>| index.definition.is_attached();
    for (index, own) in set.indexes.iter().filter(|(index, _)| !attached(index)) {
        flush_index(engine, &index.store, own)?;
    }
    let written = write_set(engine, store, set)?;
    let in_memory: usize = set.memtables.iter().map(|memtable| memtable.counts().0).sum();
    let in_files: u64 = written.iter().map(|sstable| sstable.partition_count()).sum();
    assert!(in_files <= in_memory as u64, "a flush of {in_memory} partitions wrote {in_files}");
    if !written.is_empty() {
        let bytes = written.iter().map(|sstable| sstable.stored_length()).sum();
        store.metrics.flushes.add(1);
        engine.flusher.completed.add(1);
        store.metrics.bytes_flushed.add(bytes);
        store.flush_size.note(bytes);
    }
    for sstable in &written {
        tracing::debug!(
            table = store.name(),
            sstable = sstable.descriptor().prefix(),
            bytes = sstable.stored_length(),
            "flushed"
        );
    }
    end(engine, store, set, written.clone());
    // the SSTable has these entries beside it: a read that does not see them here any more loads
    // the base's view later, and sees them there
    for (index, own) in set.indexes.iter().filter(|(index, _)| attached(index)) {
        index.store.finish_flush(own, Vec::new());
    }
    Ok(written)
}

/// Puts new SSTables in the place of the memtables: these are given back, and the log may forget
/// their records.
fn end(engine: &Engine, store: &TableStore, set: &Arc<FlushSet>, written: Vec<Arc<SSTable>>) {
    store.finish_flush(set, written);
    engine.memory.release(set.memtables.iter().map(|memtable| memtable.total_size()).sum());
    for (shard, memtable) in set.memtables.iter().enumerate() {
        if let Some(range) = memtable.log_range() {
            assert!(range.last <= set.up_to, "the log forgets no record of later memtables");
            engine.log.mark_flushed(store.id, shard as u16, range.last);
        }
    }
}

/// Drops frozen memtables unwritten, up to and including `last` (None: all): the table was
/// truncated or dropped. `_in_order` shows that no flush of them is under way; one that waits
/// finds nothing to do.
pub(crate) fn discard(
    engine: &Engine,
    store: &TableStore,
    last: Option<&Arc<FlushSet>>,
    _in_order: &MutexGuard<'_, ()>,
) {
    let waiting = store.view().flushing.clone();
    let count = match last {
        None => waiting.len(),
        Some(last) => waiting.iter().position(|set| Arc::ptr_eq(set, last)).map_or(0, |index| index + 1),
    };
    for set in &waiting[..count] {
        for (index, own) in &set.indexes {
            index.store.finish_flush(own, Vec::new());
        }
        end(engine, store, set, Vec::new());
    }
}

/// Flushes an index, before its base: once the base's SSTable is there, the log is not replayed
/// for either.
fn flush_index(engine: &Engine, store: &Arc<TableStore>, set: &Arc<FlushSet>) -> Result<(), StorageError> {
    if !store.view().flushing.iter().any(|other| Arc::ptr_eq(other, set)) {
        // written by a try that failed later
        return Ok(());
    }
    let is_empty = set.memtables.iter().all(|memtable| memtable.is_empty());
    let written = if is_empty { Vec::new() } else { write_set(engine, store, set)? };
    store.finish_flush(set, written);
    Ok(())
}

fn write_set(engine: &Engine, store: &Arc<TableStore>, set: &Arc<FlushSet>) -> Result<Vec<Arc<SSTable>>, StorageError> {
    if store.dropped.load(std::sync::atomic::Ordering::Acquire) {
        return Ok(Vec::new());
    }
    let mut stats = EncodingStatsCollector::default();
    for memtable in &set.memtables {
        stats.merge(&memtable.stats());
    }
    let table = set.memtables.first().map_or_else(|| store.table(), |memtable| Arc::clone(&memtable.table));
    let operation = files::Operation::Flush;
    let (stats, inherited) = (stats.finish(), Inherited::default());
    let output = Strategy::of(&table.params.compaction).flush_output(store.flush_size.mean());
    let mut stream = scan_memtables(&table, set);
    let with_dropped = set.memtables.iter().filter(|memtable| memtable.has_dropped());
    let dropped = DroppedColumns::of(&table, with_dropped.map(|memtable| &memtable.header));
    let log_range = set.log_range();
    let inputs = Inputs::of_memtables(&set.memtables);
    let keys = inputs.keys() as usize;
    let new = NewSSTable { operation, table, stats, keys, log_range, inherited, dropped };
    let mut outputs = Outputs::begin(engine, store, new, output, inputs)?;
    let written = outputs.write_all(engine, stream.as_mut());
    outputs.finish(engine, written, &[])
}

/// The whole content of memtables, in the order of their partitions. Those of an index are split
/// as its base is, so they overlap.
fn scan_memtables(table: &Arc<TableMetadata>, set: &FlushSet) -> Box<dyn PartitionStream> {
    if table.local_order.is_none() {
        return Box::new(MemtableStream::all(set.memtables.clone()));
    }
    let of_one = |memtable: &Arc<Memtable>| Box::new(MemtableStream::all(vec![Arc::clone(memtable)])) as _;
    MergeStream::boxed(table, set.memtables.iter().map(of_one).collect(), false)
}
