//! One compaction under way: inputs merged, purged and written, a slice of work at a time.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rows::codec::EncodingStats;
use rows::merge::MergeCounts;
use rows::purge::PurgeStream;
use rows::{MergeStream, PartitionStream};
use sstable::SSTableWriter;

use super::choice::{gc_before, max_purgeable, unmark};
use super::progress::{Finished, Running};
use super::worker::{Done, could_not_start};
use crate::engine::Engine;
use crate::error::StorageError;
use crate::files::{self, NewSSTable, PendingPartition, SSTable, Transaction};
use crate::table::TableStore;

/// Bytes written in one slice of work.
const SLICE_BYTES: u64 = 1 << 20;

/// One compaction under way.
pub struct Run {
    store: Arc<TableStore>,
    inputs: Vec<Arc<SSTable>>,
    stream: PurgeStream<Box<dyn PartitionStream>>,
    writer: SSTableWriter,
    transaction: Transaction,
    merged: Arc<MergeCounts>,
    partition: Option<PendingPartition>,
    progress: Arc<Running>,
    done: Option<Done>,
}

struct Parts {
    stream: PurgeStream<Box<dyn PartitionStream>>,
    writer: SSTableWriter,
    transaction: Transaction,
    merged: Arc<MergeCounts>,
}

impl Run {
    /// Opens the inputs and the output; when that fails, says so and gives the inputs back.
    pub fn start(
        engine: &Arc<Engine>,
        store: &Arc<TableStore>,
        inputs: Vec<Arc<SSTable>>,
        done: Option<Done>,
    ) -> Option<Self> {
        let total = inputs.iter().map(|sstable| sstable.stored_length()).sum();
        let parts = match open(engine, store, &inputs, total) {
            Ok(parts) => parts,
            Err(error) => {
                could_not_start(store, &inputs, error, done);
                return None;
            }
        };
        let id = types::timeuuid::from_micros(engine.env.clock.now_micros(), engine.env.random.next_u64());
        let table = store.table();
        let progress = engine.compactions.begin(Running {
            id,
            keyspace: table.keyspace.clone(),
            table: table.name.clone(),
            kind: if done.is_some() { "Major compaction" } else { "Compaction" },
            sstables: inputs.len(),
            total,
            done: Default::default(),
            stop: Default::default(),
        });
        let Parts { stream, writer, transaction, merged } = parts;
        let store = Arc::clone(store);
        Some(Self { store, inputs, stream, writer, transaction, merged, partition: None, progress, done })
    }

    /// `keyspace.table`.
    pub fn table_name(&self) -> String {
        self.store.name()
    }

    /// Does a slice of the work; gives the bytes written, None at the end.
    pub fn advance(&mut self, engine: &Engine) -> Result<Option<u64>, StorageError> {
        let start = self.writer.stored_length();
        loop {
            if self.progress.stop.load(Ordering::Relaxed) || engine.is_stopped() {
                return Err(StorageError::Refused { why: "the compaction was stopped".into() });
            }
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
            let written = self.writer.stored_length() - start;
            if written >= SLICE_BYTES {
                self.progress.done.fetch_add(written, Ordering::Relaxed);
                return Ok(Some(written));
            }
        }
    }

    /// Puts the output in the place of the inputs.
    pub fn finish(self, engine: &Arc<Engine>) -> Result<(), StorageError> {
        let Self { store, inputs, writer, transaction, merged, progress, done, .. } = self;
        let written = files::finish(engine, &store, transaction, writer, Ok(()), &inputs);
        unmark(&store, &inputs);
        let finished = written.as_ref().ok().map(|sstable| Finished {
            id: progress.id,
            keyspace: progress.keyspace.clone(),
            table: progress.table.clone(),
            at_millis: engine.env.clock.now_micros() / 1000,
            bytes_in: progress.total,
            bytes_out: sstable.as_ref().map_or(0, |sstable| sstable.stored_length()),
            kind: progress.kind,
            merged: merged.counts(),
        });
        if let Some(finished) = &finished {
            store.metrics.bytes_compacted.add(finished.bytes_out);
        }
        engine.compactions.end(&progress, finished);
        let result = written.map(|_| ());
        if let Some(done) = done {
            // who asked may have gone
            let _ = done.send(result.clone());
        }
        result
    }

    /// Leaves everything as it was.
    pub fn abandon(self, engine: &Engine, error: StorageError) {
        unmark(&self.store, &self.inputs);
        engine.compactions.end(&self.progress, None);
        self.writer.abort();
        files::settle(&self.store, self.transaction);
        if let Some(done) = self.done {
            let _ = done.send(Err(error));
        }
    }
}

fn open(
    engine: &Arc<Engine>,
    store: &Arc<TableStore>,
    inputs: &[Arc<SSTable>],
    total: u64,
) -> Result<Parts, StorageError> {
    let now = engine.env.clock.now_seconds();
    let table = store.table();
    let directory = &store.directory;
    let available = engine.env.disk.available_space(directory).map_err(|error| StorageError::io(directory, &error))?;
    if available < total {
        let why = format!("a compaction of {total} bytes has only {available} bytes of disk");
        return Err(StorageError::Refused { why });
    }
    let streams = inputs.iter().map(|sstable| files::scan(sstable)).collect::<Result<Vec<_>, _>>()?;
    let merged = MergeCounts::new(inputs.len());
    let merge = MergeStream::new(Arc::clone(&table), streams, false).counting(Arc::clone(&merged));
    let stream: Box<dyn PartitionStream> = Box::new(merge);
    let stream = PurgeStream::new(stream, now, gc_before(store, now), max_purgeable(store, inputs));
    let keys = inputs.iter().map(|sstable| sstable.partition_count() as usize).sum();
    let operation = files::Operation::Compaction;
    let new = NewSSTable { operation, table: &table, stats: stats_of(inputs), keys, log_range: None };
    let (transaction, writer) = files::begin_to_write(engine, store, &new)?;
    Ok(Parts { stream, writer, transaction, merged })
}

fn stats_of(inputs: &[Arc<SSTable>]) -> EncodingStats {
    let least = |a: EncodingStats, b: EncodingStats| EncodingStats {
        min_timestamp: a.min_timestamp.min(b.min_timestamp),
        min_local_deletion_time: a.min_local_deletion_time.min(b.min_local_deletion_time),
        min_ttl: a.min_ttl.min(b.min_ttl),
    };
    inputs.iter().map(|sstable| sstable.header().stats).reduce(least).unwrap_or_default()
}
