//! The SSTables that a flush or a compaction writes, one after the other, and the one step that
//! puts them into the view.
//!
//! A [`Splitter`] says where each ends. Each is completed and synced before the next is begun; all
//! are of one transaction, so that after a crash all count or none. An SSTable is begun with its
//! first partition, so that there are no empty ones.
//!
//! Where a repair session takes its ranges (`anticompacting`) there are two sides, written beside
//! each other: its partitions and the rest. The SSTables of a side ascend; those of two sides may
//! overlap.

mod inputs;

use std::collections::BTreeSet;
use std::sync::Arc;

use rows::PartitionStream;
use sstable::{FinishedSSTable, SSTable, SSTableWriter};
use types::Token;

use crate::engine::Engine;
use crate::error::StorageError;
use crate::files::{self, NewSSTable, PendingPartition, Transaction};
use crate::index::attached::components;
use crate::inherited::Inherited;
use crate::requests::operations::AnticompactedRanges;
use crate::strategy::output::{Output, Share, Splitter};
use crate::table::TableStore;
use crate::token_ranges::TokenRanges;
pub use inputs::Inputs;

/// SSTables under way.
pub struct Outputs {
    store: Arc<TableStore>,
    transaction: Transaction,
    inputs: Inputs,
    /// The SSTables of partitions that no repair session takes.
    rest: RepairStateOutput,
    /// The ranges of a repair session, and its SSTables.
    anticompacted: Option<(TokenRanges, RepairStateOutput)>,
    /// True: the partition that was begun last is in `anticompacted`.
    is_anticompacted: bool,
}

/// SSTables of one repair state, one after the other.
struct RepairStateOutput {
    new: NewSSTable,
    splitter: Splitter,
    writer: Option<SSTableWriter>,
    done: Vec<FinishedSSTable>,
    done_bytes: u64,
}

impl RepairStateOutput {
    fn new(new: NewSSTable, output: Output) -> Self {
        Self { new, splitter: Splitter::new(output), writer: None, done: Vec::new(), done_bytes: 0 }
    }

    fn bytes(&self) -> u64 {
        self.done_bytes + self.writer.as_ref().map_or(0, SSTableWriter::stored_length)
    }

    fn is_empty(&self) -> bool {
        self.done.is_empty() && self.writer.is_none()
    }

    /// Estimated number of partitions of the SSTable that is begun now.
    fn keys(&self, inputs: &mut Inputs) -> Result<usize, StorageError> {
        let keys = match self.splitter.share() {
            Share::All => inputs.keys(),
            Share::Bytes(bytes) => inputs.keys_within(bytes, self.done.iter().map(|done| done.partitions).sum()),
            Share::OfRing { after, end } => inputs.keys_between(after, end)?,
        };
        Ok((keys.ceil() as usize).max(1))
    }

    fn end_sstable(&mut self) -> Result<(), StorageError> {
        let Some(mut writer) = self.writer.take() else { return Ok(()) };
        if self.splitter.notes_coverage() {
            writer.note_token_space_coverage();
        }
        self.done_bytes += writer.stored_length();
        self.done.push(writer.finish()?);
        Ok(())
    }
}

impl Outputs {
    /// Begins the change. The number of partitions of each output follows from `inputs`.
    pub fn begin(
        engine: &Engine,
        store: &Arc<TableStore>,
        new: NewSSTable,
        output: Output,
        inputs: Inputs,
    ) -> Result<Self, StorageError> {
        let transaction = files::begin(engine, store, new.operation)?;
        let (store, rest) = (Arc::clone(store), RepairStateOutput::new(new, output));
        Ok(Self { store, transaction, inputs, rest, anticompacted: None, is_anticompacted: false })
    }

    /// Has the partitions of a repair session written into SSTables of their own.
    pub fn anticompacting(mut self, anticompacted: Option<&AnticompactedRanges>, output: Output) -> Self {
        self.anticompacted = anticompacted.map(|AnticompactedRanges { session, ranges }| {
            let mut new = self.rest.new.clone();
            new.inherited.pending_repair = Some(*session);
            (ranges.clone(), RepairStateOutput::new(new, output))
        });
        self
    }

    fn sides(&self) -> impl Iterator<Item = &RepairStateOutput> {
        [Some(&self.rest), self.anticompacted.as_ref().map(|(_, side)| side)].into_iter().flatten()
    }

    /// The writer for a partition, which must come behind all partitions before it.
    pub fn writer_for(&mut self, engine: &Engine, token: Token) -> Result<&mut SSTableWriter, StorageError> {
        self.is_anticompacted = self.anticompacted.as_ref().is_some_and(|(ranges, _)| ranges.contains(token));
        let side = match &mut self.anticompacted {
            Some((_, side)) if self.is_anticompacted => side,
            _ => &mut self.rest,
        };
        let written = side.writer.as_ref().map_or(0, SSTableWriter::stored_length);
        if side.splitter.splits_before(token, written) {
            side.end_sstable()?;
        }
        if side.writer.is_none() {
            let mut new = side.new.clone();
            new.keys = side.keys(&mut self.inputs)?;
            new.inherited.level = side.splitter.level();
            side.writer = Some(files::writer(engine, &self.store, &mut self.transaction, &new)?);
        }
        side.writer.as_mut().ok_or_else(|| StorageError::Refused { why: "no writer was begun".into() })
    }

    /// The writer of the partition that was begun last.
    pub fn writer(&mut self) -> Option<&mut SSTableWriter> {
        match &mut self.anticompacted {
            Some((_, side)) if self.is_anticompacted => side.writer.as_mut(),
            _ => self.rest.writer.as_mut(),
        }
    }

    /// Bytes of data files so far.
    pub fn bytes(&self) -> u64 {
        self.sides().map(RepairStateOutput::bytes).sum()
    }

    /// The properties that each output takes over from the inputs.
    pub fn inherited(&self) -> &Inherited {
        &self.rest.new.inherited
    }

    /// Whether nothing was written so far.
    pub fn is_empty(&self) -> bool {
        self.sides().all(RepairStateOutput::is_empty)
    }

    /// Completes the SSTables and puts them in the place of `replaced`. After a flush the caller
    /// puts them into the view, in the place of their memtables; after a compaction it is done
    /// here. If `written` is an error nothing counts.
    pub fn finish(
        mut self,
        engine: &Engine,
        written: Result<(), StorageError>,
        replaced: &[Arc<SSTable>],
    ) -> Result<Vec<Arc<SSTable>>, StorageError> {
        let store = Arc::clone(&self.store);
        let written = written.and_then(|()| self.attach_indexes(engine));
        let _alone = store.replacing.lock().expect("a panic while SSTables are replaced ends the process");
        let completed = written.and_then(|()| self.complete(engine, replaced));
        // committed, the new SSTables count, also after a crash; what cannot be tidied up now does
        // not change that
        if let Ok(sstables) = &completed
            && !replaced.is_empty()
        {
            store.replace_sstables(replaced, sstables.clone());
        }
        self.settle();
        completed
    }

    /// Makes the components of attached indexes, before the locks of the change are taken.
    fn attach_indexes(&mut self, engine: &Engine) -> Result<(), StorageError> {
        self.rest.end_sstable()?;
        if let Some((_, side)) = &mut self.anticompacted {
            side.end_sstable()?;
        }
        components::prepare(engine, &self.store, self.sides().flat_map(|side| &side.done))
    }

    fn complete(&mut self, engine: &Engine, replaced: &[Arc<SSTable>]) -> Result<Vec<Arc<SSTable>>, StorageError> {
        let view = self.store.view();
        let is_there = |old: &Arc<SSTable>| view.sstables.iter().any(|s| s.descriptor() == old.descriptor());
        if !replaced.iter().all(is_there) {
            return Err(StorageError::Refused { why: format!("{} was truncated meanwhile", self.store.name()) });
        }
        assert!(self.sides().all(|side| side.writer.is_none()), "all outputs have ended before they come to count");
        let cache: Arc<dyn sstable::FileCache> = Arc::clone(&engine.caches) as _;
        let table = self.store.table();
        let open = |done: &FinishedSSTable| -> Result<Arc<SSTable>, StorageError> {
            let sstable = SSTable::open(&engine.env, done.descriptor.clone(), &table, Arc::clone(&cache))?;
            sstable.check_written(done)?;
            let sstable = Arc::new(sstable);
            components::complete(engine, &self.store, &sstable)?;
            Ok(sstable)
        };
        let mut opened = Vec::new();
        for side in self.sides() {
            let of_side = side.done.iter().map(open).collect::<Result<Vec<_>, StorageError>>()?;
            check_disjoint(&self.store, &of_side)?;
            opened.extend(of_side);
        }
        check_within(&self.store, &opened, replaced)?;
        assert_are_others(&opened, replaced);
        self.transaction.remove_all(replaced.iter().map(|old| old.descriptor()))?;
        self.transaction.commit()?;
        Ok(opened)
    }

    /// Gives the outputs up, and leaves everything as it was.
    pub fn abandon(self) {
        self.settle();
    }

    fn settle(self) {
        let anticompacted = self.anticompacted.and_then(|(_, side)| side.writer);
        for writer in [self.rest.writer, anticompacted].into_iter().flatten() {
            writer.abort();
        }
        files::settle(&self.store, self.transaction);
    }

    /// Writes all partitions of a stream.
    pub fn write_all(&mut self, engine: &Engine, stream: &mut dyn PartitionStream) -> Result<(), StorageError> {
        while let Some(head) = stream.next_partition()? {
            let mut partition = OutputPartition::new(PendingPartition::new(head));
            while let Some(unfiltered) = stream.next_unfiltered()? {
                partition.writer(engine, self)?.append(&unfiltered)?;
            }
            partition.end(engine, self)?;
        }
        Ok(())
    }
}

/// Checks that the outputs ascend: SSTables that overlap would break a level, or lose partitions at
/// a boundary of shards. If they do not ascend none of them counts, and their inputs stay.
fn check_disjoint(store: &TableStore, written: &[Arc<SSTable>]) -> Result<(), StorageError> {
    let overlaps = |pair: &[Arc<SSTable>]| pair[0].has_tokens() && pair[1].first_key() <= pair[0].last_key();
    match written.windows(2).find(|pair| overlaps(pair)) {
        None => Ok(()),
        Some(pair) => {
            let (first, second) = (pair[0].descriptor().prefix(), pair[1].descriptor().prefix());
            let why = format!("{first} and {second}, written for {} one after the other, overlap", store.name());
            Err(StorageError::Refused { why })
        }
    }
}

/// Checks that the outputs have no partitions besides those of their inputs (none: memtables were
/// flushed). Otherwise none of them counts, and the inputs stay.
fn check_within(store: &TableStore, written: &[Arc<SSTable>], replaced: &[Arc<SSTable>]) -> Result<(), StorageError> {
    let count = |sstables: &[Arc<SSTable>]| sstables.iter().map(|sstable| sstable.partition_count()).sum::<u64>();
    let is_outside = |output: &&Arc<SSTable>| {
        output.has_tokens()
            && (replaced.iter().all(|input| output.first_key() < input.first_key())
                || replaced.iter().all(|input| output.last_key() > input.last_key()))
    };
    let why = match written.iter().find(is_outside) {
        _ if replaced.is_empty() => return Ok(()),
        Some(output) => {
            format!("{} reaches beyond the SSTables that it was compacted from", output.descriptor().prefix())
        }
        None if count(written) > count(replaced) => {
            format!("{} partitions were compacted into {}", count(replaced), count(written))
        }
        None => return Ok(()),
    };
    Err(StorageError::Refused { why: format!("{}: {why}", store.name()) })
}

/// Asserts that outputs are other SSTables than their inputs, and that each is there once.
fn assert_are_others(written: &[Arc<SSTable>], replaced: &[Arc<SSTable>]) {
    let inputs: BTreeSet<_> = replaced.iter().map(|sstable| sstable.descriptor()).collect();
    assert_eq!(inputs.len(), replaced.len(), "an SSTable is an input of a compaction once");
    assert!(written.iter().all(|sstable| !inputs.contains(sstable.descriptor())), "no output is an input");
}

/// A partition that is written into an output once there is something in it.
pub struct OutputPartition {
    pending: PendingPartition,
    /// Whether the output of the partition is decided.
    placed: bool,
}

impl OutputPartition {
    /// A partition of which nothing is written yet.
    pub fn new(pending: PendingPartition) -> Self {
        Self { pending, placed: false }
    }

    /// The writer of the output, inside this partition.
    pub fn writer<'a>(
        &mut self,
        engine: &Engine,
        outputs: &'a mut Outputs,
    ) -> Result<&'a mut SSTableWriter, StorageError> {
        if !self.placed {
            outputs.writer_for(engine, self.pending.token())?;
            self.placed = true;
        }
        let writer = outputs.writer().ok_or_else(|| StorageError::Refused { why: "no writer was begun".into() })?;
        self.pending.begin(writer);
        Ok(writer)
    }

    /// Ends the partition. One without deletion, static row or rows leaves no trace.
    pub fn end(mut self, engine: &Engine, outputs: &mut Outputs) -> Result<(), StorageError> {
        if self.placed || !self.pending.is_empty() {
            let writer = self.writer(engine, outputs)?;
            self.pending.end(writer, &engine.options.guards.values().partitions)?;
        }
        Ok(())
    }
}
