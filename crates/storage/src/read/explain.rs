//! The cost of a read, before it and after it: the report behind EXPLAIN and EXPLAIN ANALYZE.
//!
//! [`plan`] asks of each source what a read asks (token range, filter, clustering bounds) and the
//! row index how many blocks can hold something; no data is read. [`Observation`] opens the streams
//! of a read as `read` does, with a wrapper around each source that counts and times its items.
//! Both choose sources by the same functions as every read.
//!
//! Chunks are counted for each SSTable by a context of its own. The times include the cost of
//! counting, some 50 ns an item.

use std::sync::Arc;

use env::sync::{Mutex, MutexGuard};
use rows::command::ReadStats;
use rows::dead::GracePeriod;
use rows::report::{BlockCount, CommandReport, Decision, SOURCES_MAX, SourceFigures, SourceKind, SourceReport};
use rows::{
    DeletionTime, PartitionHead, PartitionRange, PartitionStream, ReadCommand, ReadContext, ReadError, ReadMode,
    Unfiltered,
};
use sstable::{SSTable, SSTableStream};

use super::observer::ReadObserver;
use super::{DELETED, OLDER, exclusion, hash_of, is_by_names, is_deleted, read_with_observer, row_cache};
use crate::table::TableStore;
use crate::table::memtable::Memtable;
use crate::table::memtable::read::MemtableStream;
use crate::table::view::View;

/// Why an SSTable that is read is read.
const MAY_HOLD: &str = "it may hold rows of the answer";
/// Why an SSTable may be read beside the row cache.
const BEHIND: &str = "only if the rows that the row cache has are not enough";
/// Why the row cache is read.
const FOUND: &str = "it has what the SSTables hold of the partition";
const MADE: &str = "what the SSTables hold of the partition was put there by this read";

/// Why an SSTable may turn out not to be needed.
const UNLESS_COMPLETE: &str = "only if what is newer leaves a row incomplete";
const UNLESS_DELETED: &str = "unless a newer SSTable holds a deletion of the partition";

fn report_of(store: &TableStore, view: &View, command: &ReadCommand) -> CommandReport {
    let shards = store.shards.of_range(&command.range);
    CommandReport {
        index: None,
        key: match &command.range {
            PartitionRange::Key(key) => Some(key.clone()),
            PartitionRange::Range { .. } => None,
        },
        shards: (*shards.start(), *shards.end()),
        shard_count: store.shards.count(),
        by_names: is_by_names(view, command) && row_cache::would_answer(store, view, command).is_none(),
        sources: Vec::new(),
        sources_left_out: 0,
    }
}

fn add(report: &mut CommandReport, source: SourceReport) -> Option<usize> {
    if report.sources.len() >= SOURCES_MAX {
        report.sources_left_out += 1;
        return None;
    }
    report.sources.push(source);
    Some(report.sources.len() - 1)
}

fn source_of_memtables(store: &TableStore, view: &View, memtables: &[Arc<Memtable>]) -> SourceReport {
    let is_active = |memtable: &Arc<Memtable>| view.active.iter().any(|active| Arc::ptr_eq(active, memtable));
    let kind = if memtables.iter().any(is_active) { SourceKind::Memtable } else { SourceKind::Flushing };
    let (name, reason) = match memtables {
        [_] if store.shards.count() == 1 => ("shard 0".to_owned(), "what is in memory is always read"),
        [_] => (String::new(), "what is in memory is always read"),
        several => (format!("{} shards", several.len()), "what is in memory is always read"),
    };
    let bytes = memtables.iter().map(|memtable| memtable.size() as u64).sum();
    SourceReport { kind, name, decision: Decision::Read, reason, bytes, blocks: None, measured: None }
}

fn source_of_row_cache(bytes: u64, reason: &'static str) -> SourceReport {
    SourceReport {
        kind: SourceKind::RowCache,
        name: "partition".to_owned(),
        decision: Decision::Read,
        reason,
        bytes,
        blocks: None,
        measured: None,
    }
}

fn source_of_sstable(sstable: &SSTable, decision: Decision, reason: &'static str) -> SourceReport {
    SourceReport {
        kind: SourceKind::SSTable,
        name: sstable.descriptor().prefix(),
        decision,
        reason,
        bytes: sstable.stored_length(),
        blocks: None,
        measured: None,
    }
}

/// Makes the plan of a read. Reads filters and indexes, and no data.
pub(crate) fn plan(store: &TableStore, command: &ReadCommand) -> Result<CommandReport, ReadError> {
    let view = store.view();
    let mut report = report_of(store, &view, command);
    for memtables in view.memtables(store.shards, command) {
        let source = named(source_of_memtables(store, &view, &memtables), &report);
        add(&mut report, source);
    }
    let hash = hash_of(command);
    if let Some((bytes, goes_on)) = row_cache::would_answer(store, &view, command) {
        add(&mut report, source_of_row_cache(bytes, FOUND));
        let mut behind = Vec::new();
        for (sstable, may_have) in row_cache::with_key(&view, command) {
            match may_have {
                Ok(()) if goes_on => behind.push(source_of_sstable(sstable, Decision::Perhaps, BEHIND)),
                Ok(()) => {
                    add(&mut report, source_of_sstable(sstable, Decision::Skip, row_cache::IN_CACHE));
                }
                Err(reason) => {
                    add(&mut report, source_of_sstable(sstable, Decision::Skip, reason));
                }
            }
        }
        for source in behind {
            add(&mut report, source);
        }
        return Ok(report);
    }
    let mut before = !report.sources.is_empty();
    let is_of_key = report.key.is_some();
    let deletion =
        if is_of_key && !report.by_names { deletion_in_memory(store, &view, command)? } else { DeletionTime::LIVE };
    let mut may_delete = false;
    for sstable in &view.sstables {
        let condition = match report.by_names {
            true => before.then_some(UNLESS_COMPLETE),
            false => may_delete.then_some(UNLESS_DELETED),
        };
        let source = match exclusion(sstable, command, hash) {
            _ if is_deleted(&deletion, sstable) => source_of_sstable(sstable, Decision::Skip, DELETED),
            Some(reason) => source_of_sstable(sstable, Decision::Skip, reason),
            None => wanted(sstable, command, condition)?,
        };
        if source.decision != Decision::Skip {
            before = true;
            may_delete |= is_of_key && sstable.statistics().stats.has_partition_deletions;
        }
        add(&mut report, source);
    }
    Ok(report)
}

/// The deletion of a partition as far as memtables hold it.
fn deletion_in_memory(store: &TableStore, view: &View, command: &ReadCommand) -> Result<DeletionTime, ReadError> {
    let mut deletion = DeletionTime::LIVE;
    for memtables in view.memtables(store.shards, command) {
        let head = MemtableStream::new(memtables, command).next_partition()?;
        deletion = deletion.merge(head.map_or(DeletionTime::LIVE, |head| head.deletion));
    }
    Ok(deletion)
}

/// A memtable that is read for one partition is named by its shard.
fn named(mut source: SourceReport, report: &CommandReport) -> SourceReport {
    if source.name.is_empty() {
        source.name = match report.shards {
            (first, last) if first == last => format!("shard {first}"),
            _ => "1 shard".to_owned(),
        };
    }
    source
}

/// Reports an SSTable that may be read. `condition`: the case in which it is, which is known only
/// during the read; None: it is in any case.
fn wanted(
    sstable: &SSTable,
    command: &ReadCommand,
    condition: Option<&'static str>,
) -> Result<SourceReport, ReadError> {
    let PartitionRange::Key(key) = &command.range else {
        return Ok(source_of_sstable(sstable, Decision::Read, "it has partitions of the range"));
    };
    let Some(blocks) = sstable.blocks_of(key, &command.slices)? else {
        return Ok(source_of_sstable(sstable, Decision::Skip, "its index does not have the key, its filter errs"));
    };
    let (decision, reason) = match condition {
        Some(condition) => (Decision::Perhaps, condition),
        None => (Decision::Read, MAY_HOLD),
    };
    let mut source = source_of_sstable(sstable, decision, reason);
    source.blocks = Some(blocks);
    Ok(source)
}

/// The report of a read that is being carried out.
#[derive(Clone)]
pub struct Observation {
    shared: Arc<Mutex<Observed>>,
}

#[derive(Default)]
struct Observed {
    mode: Option<ReadMode>,
    /// The counters of the present attempt; the next attempt has others. None: there was no
    /// attempt yet.
    stats: Option<Arc<ReadStats>>,
    /// The range that the attempt read first, and the reports from before it.
    first: Option<PartitionRange>,
    begun: (usize, u64),
    commands: Vec<CommandReport>,
    left_out: u64,
}

impl Observed {
    /// Begins the figures of an attempt. An attempt that begins with the same range as the one
    /// before is that read from the beginning again, so the figures of the former attempt are
    /// forgotten. Any other is the next read of the request.
    fn note_attempt(&mut self, command: &ReadCommand, context: &ReadContext) {
        if self.stats.as_ref().is_some_and(|stats| Arc::ptr_eq(stats, &context.stats)) {
            return;
        }
        if self.stats.is_some() && self.first.as_ref() == Some(&command.range) {
            self.commands.truncate(self.begun.0);
            self.left_out = self.begun.1;
        } else {
            self.begun = (self.commands.len(), self.left_out);
        }
        self.first = Some(command.range.clone());
        self.stats = Some(Arc::clone(&context.stats));
        self.mode = Some(context.mode);
    }
}

/// The number of an observed source: that of its command, and its own in the command. None: it is
/// not reported.
type SourceNumber = Option<(usize, usize)>;

impl Default for Observation {
    fn default() -> Self {
        Self::new()
    }
}

/// Opens the stream of a command, and observes it if the read is explained.
pub(crate) fn open_observed(
    observation: Option<&Observation>,
    store: &TableStore,
    command: &ReadCommand,
    context: &ReadContext,
) -> Result<Box<dyn PartitionStream>, ReadError> {
    match observation {
        None => super::read(store, command, context),
        Some(observation) => observation.open(store, command, context),
    }
}

impl Observation {
    /// An observation before any read.
    pub fn new() -> Self {
        Self { shared: Arc::new(Mutex::new(Observed::default())) }
    }

    fn enter(&self) -> MutexGuard<'_, Observed> {
        self.shared.lock().expect("nothing panics inside")
    }

    /// The observations: the commands, how many more there were, and whether the read ended in the
    /// background.
    pub fn take(&self) -> (Vec<CommandReport>, u64, bool) {
        let mut observed = self.enter();
        let commands = std::mem::take(&mut observed.commands);
        (commands, observed.left_out, observed.mode == Some(ReadMode::Background))
    }

    /// Opens the stream of an index's entries.
    pub(crate) fn open_index(
        &self,
        name: &str,
        store: &TableStore,
        command: &ReadCommand,
        context: &ReadContext,
    ) -> Result<Box<dyn PartitionStream>, ReadError> {
        let before = self.enter().commands.len();
        let stream = self.open(store, command, context)?;
        let mut observed = self.enter();
        // a read that is run again has forgotten the ones before
        let number = before.min(observed.commands.len().saturating_sub(1));
        if let Some(report) = observed.commands.get_mut(number) {
            report.index = Some(name.to_owned());
        }
        drop(observed);
        Ok(stream)
    }

    /// Opens the stream of a command. A read that is run again from the beginning forgets the
    /// figures of the first attempt.
    pub(crate) fn open(
        &self,
        store: &TableStore,
        command: &ReadCommand,
        context: &ReadContext,
    ) -> Result<Box<dyn PartitionStream>, ReadError> {
        let number = {
            let mut observed = self.enter();
            observed.note_attempt(command, context);
            if observed.commands.len() < rows::report::COMMANDS_MAX {
                let report = report_of(store, &store.view(), command);
                observed.commands.push(report);
                Some(observed.commands.len() - 1)
            } else {
                observed.left_out += 1;
                None
            }
        };
        let grace = GracePeriod {
            now: command.now,
            seconds: u32::try_from(command.table.params.gc_grace_seconds).unwrap_or(0),
        };
        let mut observer = SourceObserver { store, observation: self.clone(), number, grace };
        read_with_observer(store, command, context, &mut observer)
    }
}

struct SourceObserver<'a> {
    store: &'a TableStore,
    observation: Observation,
    /// The number of the command; None: the command is not reported.
    number: Option<usize>,
    grace: GracePeriod,
}

impl SourceObserver<'_> {
    fn add(&self, source: SourceReport) -> SourceNumber {
        let number = self.number?;
        let mut observed = self.observation.enter();
        let report = observed.commands.get_mut(number)?;
        let source = named(source, report);
        add(report, source).map(|source| (number, source))
    }

    fn counted<S>(
        &self,
        number: SourceNumber,
        stream: S,
        chunk_length: u64,
        stats: Option<Arc<ReadStats>>,
    ) -> Counted<S> {
        Counted {
            stream,
            env: self.store.env.clone(),
            grace: self.grace,
            figures: SourceFigures { chunk_length, ..SourceFigures::default() },
            stats,
            observation: self.observation.clone(),
            number,
            blocks: |_| BlockCount::default(),
        }
    }
}

impl ReadObserver for SourceObserver<'_> {
    type Source = SourceNumber;

    const LOOKS: bool = true;

    fn row_cache(&mut self, bytes: u64, found: bool) -> SourceNumber {
        let reason = if found { FOUND } else { MADE };
        self.add(source_of_row_cache(bytes, reason))
    }

    fn memtables(&mut self, memtables: &[Arc<Memtable>], view: &View) -> SourceNumber {
        self.add(source_of_memtables(self.store, view, memtables))
    }

    fn wrap_stream(&mut self, number: SourceNumber, stream: Box<dyn PartitionStream>) -> Box<dyn PartitionStream> {
        Box::new(self.counted(number, stream, 0, None))
    }

    fn skipped(&mut self, sstable: &Arc<SSTable>, reason: &'static str) {
        let reason = if reason == OLDER { "all its data is older than what was found: not needed" } else { reason };
        self.add(source_of_sstable(sstable, Decision::Skip, reason));
    }

    fn sstable(
        &mut self,
        sstable: &Arc<SSTable>,
        command: &ReadCommand,
        context: &ReadContext,
    ) -> Result<Box<dyn PartitionStream>, ReadError> {
        let mut own = context.clone();
        own.stats = Arc::new(ReadStats::default());
        let begun = self.store.env.now();
        let stream = sstable.read_counted(command, &own)?;
        // the read as a whole counts them too
        ReadStats::add(&context.stats.sstables_considered, 1);
        ReadStats::add(&context.stats.sstables_read, ReadStats::get(&own.stats.sstables_read));
        let number = self.add(source_of_sstable(sstable, Decision::Read, MAY_HOLD));
        let mut counted = self.counted(number, stream, sstable.data().chunk_length() as u64, Some(own.stats));
        counted.figures.nanos = nanos(self.store.env.elapsed(begun));
        counted.blocks = SSTableStream::blocks_visited;
        Ok(Box::new(counted))
    }
}

fn nanos(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A source that is counted and timed; writes its figures into the report when it ends.
struct Counted<S> {
    stream: S,
    env: env::Env,
    grace: GracePeriod,
    figures: SourceFigures,
    stats: Option<Arc<ReadStats>>,
    observation: Observation,
    number: SourceNumber,
    blocks: fn(&S) -> BlockCount,
}

impl<S: PartitionStream> PartitionStream for Counted<S> {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let begun = self.env.now();
        let head = self.stream.next_partition();
        self.figures.nanos += nanos(self.env.elapsed(begun));
        if let Ok(Some(head)) = &head {
            self.figures.passed.head(head, &self.grace);
        }
        head
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        let begun = self.env.now();
        let next = self.stream.next_unfiltered();
        self.figures.nanos += nanos(self.env.elapsed(begun));
        if let Ok(Some(unfiltered)) = &next {
            self.figures.passed.unfiltered(unfiltered, &self.grace);
        }
        next
    }
}

impl<S> Drop for Counted<S> {
    fn drop(&mut self) {
        let mut figures = std::mem::take(&mut self.figures);
        figures.blocks = (self.blocks)(&self.stream);
        if let Some(stats) = &self.stats {
            figures.chunks_cached = ReadStats::get(&stats.chunks_cached);
            figures.chunks_read = ReadStats::get(&stats.chunks_read);
            figures.bytes_read = ReadStats::get(&stats.bytes_read);
            figures.false_positives = ReadStats::get(&stats.bloom_false_positives);
        }
        let mut observed = self.observation.enter();
        let source =
            self.number.and_then(|(command, source)| observed.commands.get_mut(command)?.sources.get_mut(source));
        if let Some(source) = source {
            source.measured = Some(figures);
        }
    }
}
