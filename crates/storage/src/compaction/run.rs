//! The run of a compaction: inputs are merged, purged and written, a slice of work at a time. Also
//! used to write one SSTable again.
//!
//! 1. Inputs that have expired as a whole are not read: they are removed in the same step as the
//!    others.
//! 2. There must be room for all that is left; a compaction whose SSTables no operator has named
//!    is begun with fewer, without the largest first, if that helps. One that a strategy chose is
//!    begun with what has expired alone, if that is all there is room for.
//! 3. SSTables that do not overlap are read one after the other, as one source of the merge.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rows::codec::{EncodingStats, Header};
use rows::garbage_skipping::GarbageSkippingStream;
use rows::merge::MergeCounts;
use rows::old_cells::OldCellsPurgeStream;
use rows::purge::PurgeStream;
use rows::{MaybeEncoded, MergeStream, PartitionHead, PartitionStream, ReadContext, ReadError, ReadMode, Unfiltered};
use schema::TableMetadata;
use sstable::{SSTable, SSTableStream};

use super::choice::unmark;
use super::disk_space;
use super::meter::{Meter, StreamProgress};
use super::owned_ranges::OwnedRangesStream;
use super::purge::{fully_expired, gc_before, is_whole, max_purgeable, may_purge};
use super::shadow_sources;
use super::task::{Outcome, Task, Written};
use crate::commitlog::LogPosition;
use crate::engine::Engine;
use crate::error::StorageError;
use crate::files::{self, DroppedColumns, NewSSTable, PendingPartition};
use crate::index::compacted::ShadowedEntries;
use crate::inherited::Inherited;
use crate::log_intervals;
use crate::outputs::{Inputs, OutputPartition, Outputs};
use crate::requests::operations::{Item, Work};
use crate::strategy::options::read_bool;
use crate::strategy::output::Output;
use crate::table::TableStore;

/// Bytes read or written in one slice of work.
const SLICE_BYTES: u64 = 1 << 20;
/// Most rows and markers in one slice, however small they are.
const SLICE_UNFILTEREDS: usize = 16 * 1024;

/// A compaction under way.
pub struct Merge {
    engine: Arc<Engine>,
    store: Arc<TableStore>,
    /// The SSTables that are replaced: those that are read and those that have expired.
    replaced: Vec<Arc<SSTable>>,
    stream: Box<dyn PartitionStream>,
    outputs: Outputs,
    merged: Arc<MergeCounts>,
    meter: Arc<Meter>,
    /// Bytes of the SSTables that have expired, which are not read.
    expired_bytes: u64,
    partition: Option<OutputPartition>,
}

impl Merge {
    /// Opens the inputs and begins the change. Inputs for which there is no room are freed, and
    /// taken out of the item.
    pub fn open(
        engine: &Arc<Engine>,
        store: &Arc<TableStore>,
        item: &mut Item,
        work: Work,
    ) -> Result<Self, StorageError> {
        item.sstables.iter().try_for_each(|sstable| files::check_columns(sstable))?;
        // a log that failed is behind what memtables had: the next start may apply again what it
        // has of a batch, without what came later
        let purges = work.purges() && !engine.log.is_stopped() && is_whole(store);
        let expired = if purges { fully_expired(store, &item.sstables) } else { Vec::new() };
        let is_expired = |sstable: &Arc<SSTable>| expired.iter().any(|other| Arc::ptr_eq(other, sstable));
        let mut read: Vec<_> = item.sstables.iter().filter(|sstable| !is_expired(sstable)).cloned().collect();
        let output = item.output.unwrap_or_else(|| output_alone(&read));
        let removed = disk_space::reduce_scope(engine, store, &mut read, (output, work), !expired.is_empty())?;
        if !removed.is_empty() {
            unmark(store, &removed);
            item.sstables.retain(|sstable| !removed.iter().any(|other| Arc::ptr_eq(other, sstable)));
            engine.compactions.reduced.fetch_add(1, Ordering::Relaxed);
            engine.compactions.left_out.fetch_add(removed.len() as u64, Ordering::Relaxed);
        }
        assert_eq!(item.sstables.len(), read.len() + expired.len(), "what goes was read, or has expired as a whole");
        for sstable in &expired {
            tracing::info!(
                table = store.name(),
                sstable = sstable.descriptor().prefix(),
                "all of an SSTable has expired"
            );
        }
        let table = store.table();
        let inputs = Inputs::of_sstables(&read);
        let new = NewSSTable {
            operation: files::Operation::Compaction,
            table: Arc::clone(&table),
            stats: stats_of(&read),
            keys: inputs.keys() as usize,
            log_range: None,
            inherited: Inherited::of(&item.sstables, engine.host_id()),
            dropped: DroppedColumns::of(&table, read.iter().map(|sstable| sstable.scan_header())),
        };
        let meter = Arc::new(Meter::default());
        let streams = sources(&read, &new.header(), &meter)?;
        let merged = MergeCounts::new(streams.len());
        let merge = MergeStream::new(Arc::clone(&table), streams, false).passing().counting(Arc::clone(&merged));
        let merge = merge.observed(ShadowedEntries::observer(store));
        let now = engine.env.clock.now_seconds();
        // what is written again keeps its tombstones: nothing is older than the beginning of time
        let purges = purges && may_purge(&table, &item.sstables);
        let gc_before = if purges { gc_before(&table, now) } else { 0 };
        let mut merge: Box<dyn PartitionStream> = Box::new(merge);
        if let Some(kept) = &item.kept {
            merge = Box::new(OwnedRangesStream::new(merge, Arc::clone(kept), &table));
        }
        let is_paxos = (table.keyspace.as_str(), table.name.as_str()) == ("system", "paxos");
        if let Some(oldest) = engine.paxos_oldest.get().filter(|_| purges && is_paxos) {
            merge = Box::new(OldCellsPurgeStream::new(merge, Arc::clone(&table), Arc::clone(oldest)));
        }
        if let Some(cells) = skips_garbage(&table, work).filter(|_| purges) {
            let shadows = shadow_sources::of_inputs(store, &item.sstables, cells);
            merge = Box::new(GarbageSkippingStream::new(merge, Arc::clone(&table), shadows, cells));
        }
        // what has expired hides nothing that stays, but is there until all of this counts
        let stream = PurgeStream::new(merge, now, gc_before, max_purgeable(store, &item.sstables)).of_table(&table);
        let stream = if purges { stream.without_grace(Arc::clone(&item.graceless)) } else { stream };
        let anticompacted = item.anticompacted.as_deref();
        let outputs = Outputs::begin(engine, store, new, output, inputs)?.anticompacting(anticompacted, output);
        let (engine, store, replaced) = (Arc::clone(engine), Arc::clone(store), item.sstables.clone());
        let expired_bytes = expired.iter().map(|sstable| sstable.stored_length()).sum();
        let (stream, partition) = (Box::new(stream), None);
        Ok(Self { engine, store, replaced, stream, outputs, merged, meter, expired_bytes, partition })
    }
}

impl Task for Merge {
    fn advance(&mut self) -> Result<Option<u64>, StorageError> {
        let (engine, outputs, meter) = (&self.engine, &mut self.outputs, &self.meter);
        let (written, read) = (outputs.bytes(), meter.read());
        for _ in 0..SLICE_UNFILTEREDS {
            match self.partition.take() {
                Some(mut partition) => match self.stream.next_maybe_encoded()? {
                    Some(next) => {
                        let writer = partition.writer(engine, outputs)?;
                        match next {
                            MaybeEncoded::Encoded(row) => writer.append_encoded(row)?,
                            MaybeEncoded::Decoded(unfiltered) => writer.append(&unfiltered)?,
                        }
                        self.partition = Some(partition);
                    }
                    None => partition.end(engine, outputs)?,
                },
                None => match self.stream.next_partition()? {
                    Some(head) => self.partition = Some(OutputPartition::new(PendingPartition::new(head))),
                    None => return Ok(None),
                },
            }
            if outputs.bytes() - written >= SLICE_BYTES || meter.read() - read >= SLICE_BYTES {
                break;
            }
        }
        // reading what has been deleted or has expired keeps the disk as busy as anything else
        Ok(Some((outputs.bytes() - written).max(meter.read() - read)))
    }

    fn passed(&self) -> Option<u64> {
        Some(self.expired_bytes + self.meter.passed())
    }

    fn purged_log(&self) -> Option<LogPosition> {
        let intervals = &self.outputs.inherited().log_intervals;
        if self.outputs.is_empty() { log_intervals::end(intervals) } else { None }
    }

    /// Puts the outputs in the place of the inputs.
    fn finish(self: Box<Self>, engine: &Arc<Engine>) -> Result<Outcome, StorageError> {
        let Self { store, replaced, outputs, merged, .. } = *self;
        let written = outputs.finish(engine, Ok(()), &replaced)?;
        let bytes = written.iter().map(|sstable| sstable.stored_length()).sum();
        if logs_all(&store.table()) {
            log(&store, &replaced, &written);
        }
        Ok(Outcome { written: Some(Written { bytes, merged: merged.counts() }), lines: Vec::new() })
    }

    fn abandon(self: Box<Self>) {
        self.outputs.abandon();
    }
}

/// Whether rows that other SSTables delete are left out, if an operator or the table
/// (`provide_overlapping_tombstones`) asks for it. Some(true): cells that other SSTables replace,
/// too. None: nothing is.
fn skips_garbage(table: &TableMetadata, work: Work) -> Option<bool> {
    let option = table.params.compaction.get("provide_overlapping_tombstones").map(|value| value.to_uppercase());
    match (work, option.as_deref()) {
        (Work::GarbageCollect { cells }, _) => Some(cells),
        (_, Some("ROW")) => Some(false),
        (_, Some("CELL")) => Some(true),
        _ => None,
    }
}

/// The form of the output of one SSTable that is written again: it stays what it is.
fn output_alone(inputs: &[Arc<SSTable>]) -> Output {
    let level = if let [single] = inputs { single.statistics().stats.level } else { 0 };
    Output::One { level }
}

/// Whether the option `log_all` of compaction is set.
fn logs_all(table: &TableMetadata) -> bool {
    read_bool(&table.params.compaction, "log_all", false)
}

/// Logs the SSTables that went in and those that came out.
fn log(store: &TableStore, replaced: &[Arc<SSTable>], written: &[Arc<SSTable>]) {
    let describe = |sstables: &[Arc<SSTable>]| {
        let one = |sstable: &Arc<SSTable>| {
            let level = sstable.statistics().stats.level;
            format!("{}:level={level},bytes={}", sstable.descriptor().prefix(), sstable.stored_length())
        };
        sstables.iter().map(one).collect::<Vec<_>>().join(" ")
    };
    tracing::info!(table = store.name(), from = describe(replaced), into = describe(written), "compacted");
}

fn stats_of(inputs: &[Arc<SSTable>]) -> EncodingStats {
    let least = |a: EncodingStats, b: EncodingStats| EncodingStats {
        min_timestamp: a.min_timestamp.min(b.min_timestamp),
        min_local_deletion_time: a.min_local_deletion_time.min(b.min_local_deletion_time),
        min_ttl: a.min_ttl.min(b.min_ttl),
    };
    inputs.iter().map(|sstable| sstable.header().stats).reduce(least).unwrap_or_default()
}

/// The streams of a merge: SSTables that do not overlap are one. Rows come as they are encoded
/// where `target` can hold them.
fn sources(
    inputs: &[Arc<SSTable>],
    target: &Header,
    meter: &Arc<Meter>,
) -> Result<Vec<Box<dyn PartitionStream>>, StorageError> {
    let mut sorted: Vec<&Arc<SSTable>> = inputs.iter().collect();
    sorted.sort_by(|a, b| a.first_key().cmp(b.first_key()));
    let mut chains: Vec<VecDeque<Arc<SSTable>>> = Vec::new();
    for sstable in sorted {
        let follows = |chain: &&mut VecDeque<Arc<SSTable>>| {
            chain.back().is_some_and(|last| last.has_tokens() && last.last_key() < sstable.first_key())
        };
        match chains.iter_mut().find(follows).filter(|_| sstable.has_tokens()) {
            Some(chain) => chain.push_back(Arc::clone(sstable)),
            None => chains.push(VecDeque::from([Arc::clone(sstable)])),
        }
    }
    let target = Arc::new(target.clone());
    let open = |chain| Chain::open(chain, Arc::clone(&target), Arc::clone(meter));
    chains.into_iter().map(|chain| Ok(Box::new(open(chain)?) as _)).collect()
}

/// SSTables that do not overlap, one after the other; each is opened when its turn comes.
struct Chain {
    waiting: VecDeque<Arc<SSTable>>,
    current: Option<(SSTableStream, StreamProgress)>,
    /// True: no partition is begun, or the last one was read to its end.
    is_between: bool,
    target: Arc<Header>,
    meter: Arc<Meter>,
}

impl Chain {
    fn open(waiting: VecDeque<Arc<SSTable>>, target: Arc<Header>, meter: Arc<Meter>) -> Result<Self, ReadError> {
        let mut chain = Self { waiting, current: None, is_between: true, target, meter };
        chain.open_next()?;
        Ok(chain)
    }

    fn open_next(&mut self) -> Result<(), ReadError> {
        (self.current, self.is_between) = (None, true);
        if let Some(sstable) = self.waiting.pop_front() {
            let stream = sstable.scan_encoded(&ReadContext::new(ReadMode::Background), &self.target)?;
            self.current = Some((stream, StreamProgress::new(&self.meter, &sstable)));
        }
        Ok(())
    }

    /// Counts the bytes that an item took of the partition; None: the partition has ended.
    fn count<T>(&mut self, next: Option<T>) -> Option<T> {
        self.is_between = next.is_none();
        if let Some((stream, place)) = &mut self.current {
            place.read_to(stream.position());
        }
        next
    }
}

impl PartitionStream for Chain {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        while let Some((stream, place)) = &mut self.current {
            if let Some(head) = stream.next_partition()? {
                match self.is_between {
                    true => place.read_to(stream.position()),
                    false => place.skip_to(stream.position()),
                }
                self.is_between = false;
                return Ok(Some(head));
            }
            place.end();
            self.open_next()?;
        }
        Ok(None)
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        let Some((stream, _)) = &mut self.current else { return Ok(None) };
        let next = stream.next_unfiltered()?;
        Ok(self.count(next))
    }

    fn next_maybe_encoded(&mut self) -> Result<Option<MaybeEncoded>, ReadError> {
        let Some((stream, _)) = &mut self.current else { return Ok(None) };
        let next = stream.next_maybe_encoded()?;
        Ok(self.count(next))
    }
}
