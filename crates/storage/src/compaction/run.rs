//! SSTables written as one: inputs merged, purged and written, a slice of work at a time. Also one SSTable written again.

use std::sync::Arc;

use rows::codec::EncodingStats;
use rows::merge::MergeCounts;
use rows::purge::PurgeStream;
use rows::{MergeStream, PartitionStream};
use sstable::SSTableWriter;

use super::choice::{gc_before, max_purgeable};
use super::operation::Work;
use super::task::{Outcome, Task, Written};
use crate::engine::Engine;
use crate::error::StorageError;
use crate::files::{self, NewSSTable, PendingPartition, SSTable, Transaction};
use crate::inherited::Inherited;
use crate::table::TableStore;

/// Bytes written in one slice of work.
const SLICE_BYTES: u64 = 1 << 20;
/// Rows and markers in one slice, where little of what is read is written.
const SLICE_UNFILTEREDS: usize = 16 * 1024;

/// One output under way.
pub struct Merge {
    store: Arc<TableStore>,
    inputs: Vec<Arc<SSTable>>,
    stream: Box<dyn PartitionStream>,
    writer: SSTableWriter,
    transaction: Transaction,
    merged: Arc<MergeCounts>,
    partition: Option<PendingPartition>,
}

impl Merge {
    /// Opens the inputs and the output.
    pub fn open(
        engine: &Arc<Engine>,
        store: &Arc<TableStore>,
        inputs: &[Arc<SSTable>],
        work: Work,
    ) -> Result<Self, StorageError> {
        check_space(engine, store, inputs.iter().map(|sstable| sstable.stored_length()).sum())?;
        let table = store.table();
        let streams = inputs.iter().map(|sstable| files::scan(sstable)).collect::<Result<Vec<_>, _>>()?;
        let merged = MergeCounts::new(inputs.len());
        let merge = MergeStream::new(Arc::clone(&table), streams, false).counting(Arc::clone(&merged));
        let now = engine.env.clock.now_seconds();
        // what is written again keeps its tombstones: nothing is older than the beginning of time
        let gc_before = if work == Work::Merge { gc_before(store, now) } else { 0 };
        let merge: Box<dyn PartitionStream> = Box::new(merge);
        let stream = PurgeStream::new(merge, now, gc_before, max_purgeable(store, inputs));
        let new = NewSSTable {
            operation: files::Operation::Compaction,
            table: &table,
            stats: stats_of(inputs),
            keys: inputs.iter().map(|sstable| sstable.partition_count() as usize).sum(),
            log_range: None,
            inherited: Inherited::of(inputs, engine.host_id()),
        };
        let (transaction, writer) = files::begin_to_write(engine, store, &new)?;
        let (store, inputs) = (Arc::clone(store), inputs.to_vec());
        Ok(Self { store, inputs, stream: Box::new(stream), writer, transaction, merged, partition: None })
    }
}

impl Task for Merge {
    fn advance(&mut self) -> Result<Option<u64>, StorageError> {
        let start = self.writer.stored_length();
        for _ in 0..SLICE_UNFILTEREDS {
            match self.partition.take() {
                Some(mut partition) => match self.stream.next_unfiltered()? {
                    Some(unfiltered) => {
                        partition.begin(&mut self.writer);
                        self.writer.append(&unfiltered)?;
                        self.partition = Some(partition);
                    }
                    None => partition.end(&mut self.writer)?,
                },
                None => match self.stream.next_partition()? {
                    Some(head) => self.partition = Some(PendingPartition::new(head)),
                    None => return Ok(None),
                },
            }
            if self.writer.stored_length() - start >= SLICE_BYTES {
                break;
            }
        }
        Ok(Some(self.writer.stored_length() - start))
    }

    /// Puts the output in the place of the inputs.
    fn finish(self: Box<Self>, engine: &Arc<Engine>) -> Result<Outcome, StorageError> {
        let Self { store, inputs, writer, transaction, merged, .. } = *self;
        let written = files::finish(engine, &store, transaction, writer, Ok(()), &inputs)?;
        let bytes = written.map_or(0, |sstable| sstable.stored_length());
        Ok(Outcome { written: Some(Written { bytes, merged: merged.counts() }), lines: Vec::new() })
    }

    fn abandon(self: Box<Self>) {
        self.writer.abort();
        files::settle(&self.store, self.transaction);
    }
}

/// An output may be as large as its inputs.
pub(crate) fn check_space(engine: &Engine, store: &TableStore, total: u64) -> Result<(), StorageError> {
    let directory = crate::files::directory_to_write(&engine.env, store);
    let available = engine.env.disk.available_space(directory).map_err(|error| StorageError::io(directory, &error))?;
    if available < total {
        let why = format!("a compaction of {total} bytes has only {available} bytes of disk");
        return Err(StorageError::Refused { why });
    }
    Ok(())
}

fn stats_of(inputs: &[Arc<SSTable>]) -> EncodingStats {
    let least = |a: EncodingStats, b: EncodingStats| EncodingStats {
        min_timestamp: a.min_timestamp.min(b.min_timestamp),
        min_local_deletion_time: a.min_local_deletion_time.min(b.min_local_deletion_time),
        min_ttl: a.min_ttl.min(b.min_ttl),
    };
    inputs.iter().map(|sstable| sstable.header().stats).reduce(least).unwrap_or_default()
}
