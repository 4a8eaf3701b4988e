//! Scrubbing: an SSTable is written again as far as it can be read, and takes its own place. Also
//! one that could not be opened at start.
//!
//! 1. Readable partitions go to a new SSTable; those out of order to further ones. A row with a
//!    value that its type does not allow is left out.
//! 2. Where something is lost the new SSTables do not count as repaired: a repair would pass them
//!    over.
//! 3. One transaction replaces the old SSTable; a snapshot that was taken before has its files.
//!
//! Rows of counters are left out only if that is asked for: otherwise the counters would silently
//! count less. Agrees with `org.apache.cassandra.io.sstable.format.SortedTableScrubber`; the
//! losses are told to the operator who asked, too.

mod validity;

use std::sync::Arc;

use rows::codec::EncodingStats;
use rows::{PartitionHead, PartitionStream};
use sstable::salvage::{SalvageReport, SalvageStream};
use sstable::{Component, Descriptor, FinishedSSTable, SSTable, SSTableWriter};

use crate::commitlog::LogPosition;
use crate::compaction::task::{Outcome, Task};
use crate::engine::Engine;
use crate::error::StorageError;
use crate::files::{self, DroppedColumns, NewSSTable, PendingPartition, Transaction};
use crate::import::reset_statistics;
use crate::index::attached::components;
use crate::inherited::Inherited;
use crate::log_intervals;
use crate::requests::operations::Item;
pub use crate::requests::operations::ScrubOptions as Options;
use crate::table::TableStore;

/// Bytes written in one slice of work.
const SLICE_BYTES: u64 = 1 << 20;
/// Most rows and markers in one slice.
const SLICE_UNFILTEREDS: usize = 16 * 1024;
/// Most losses of an SSTable that are reported one by one.
const LOST_TOLD_MAX: usize = 100;

/// Takes a snapshot of a table's SSTables, those that could not be opened included; gives its name.
pub fn snapshot(engine: &Engine, store: &Arc<TableStore>) -> Result<String, StorageError> {
    let tag = format!("pre-scrub-{}", engine.env.clock.now_micros() / 1000);
    crate::snapshot::take(engine, store, &tag)?;
    for left_out in store.left_out() {
        let target = crate::snapshot::make_directory(engine, &left_out.descriptor.directory, &tag)?;
        let io = |error: std::io::Error| StorageError::io(&target, &error);
        for component in Component::ALL {
            let (from, name) = (left_out.descriptor.path(component), left_out.descriptor.file_name(component));
            if engine.env.disk.exists(&from) {
                engine.env.disk.hard_link(&from, &target.join(name)).map_err(io)?;
            }
        }
        engine.env.disk.sync_dir(&target).map_err(io)?;
    }
    Ok(tag)
}

/// An SSTable being scrubbed.
pub struct Scrub {
    engine: Arc<Engine>,
    store: Arc<TableStore>,
    /// The SSTable that is read; None: it could not be opened.
    input: Option<Arc<SSTable>>,
    descriptor: Descriptor,
    options: Options,
    stream: SalvageStream,
    inherited: Inherited,
    transaction: Transaction,
    writer: Option<SSTableWriter>,
    /// SSTables that are complete.
    outputs: Vec<FinishedSSTable>,
    partition: Option<PendingPartition>,
    /// Rows that were left out because of their values.
    invalid_rows: u64,
    /// Partitions of which nothing was kept.
    empty: u64,
    bytes: u64,
}

impl Scrub {
    /// Opens the SSTable as far as it can be opened.
    pub fn open(
        engine: &Arc<Engine>,
        store: &Arc<TableStore>,
        item: &Item,
        options: Options,
    ) -> Result<Self, StorageError> {
        let input = item.sstables.first().cloned();
        let left_out = item.left_out.as_ref().map(|left_out| left_out.descriptor.clone());
        let Some(descriptor) = input.as_ref().map(|sstable| sstable.descriptor().clone()).or(left_out) else {
            return Err(StorageError::Refused { why: format!("nothing to scrub in {}", store.name()) });
        };
        let file = descriptor.path(Component::Data);
        let length = engine.env.disk.file_len(&file).map_err(|error| StorageError::io(&file, &error))?;
        crate::compaction::disk_space::check(engine, store, length)?;
        tracing::info!(table = store.name(), bytes = length, "Scrubbing {}", file.display());
        let stream = SalvageStream::open(&engine.env, &descriptor, Some(&store.table()))?;
        files::check_header(stream.header(), &store.table(), &file)?;
        let inherited = match (&input, stream.statistics()) {
            (Some(sstable), _) => Inherited::of(std::slice::from_ref(sstable), engine.host_id()),
            (None, Some(statistics)) => Inherited::of_stats(&statistics.stats),
            (None, None) => Inherited::default(),
        };
        let transaction = files::begin(engine, store, files::Operation::Write)?;
        let (engine, store) = (Arc::clone(engine), Arc::clone(store));
        Ok(Self {
            engine,
            store,
            input,
            descriptor,
            options,
            stream,
            inherited,
            transaction,
            writer: None,
            outputs: Vec::new(),
            partition: None,
            invalid_rows: 0,
            empty: 0,
            bytes: 0,
        })
    }

    fn begin_output(&mut self) -> Result<SSTableWriter, StorageError> {
        let (report, table) = (self.stream.report(), self.store.table());
        let in_index = report.partitions_expected.and_then(|count| usize::try_from(count).ok());
        let stats: EncodingStats = self.stream.header().stats;
        let dropped = DroppedColumns::of(&table, [self.stream.header()]);
        let new = NewSSTable {
            operation: files::Operation::Write,
            table,
            stats,
            keys: in_index.unwrap_or(1),
            log_range: None,
            inherited: self.inherited.clone(),
            dropped,
        };
        files::writer(&self.engine, &self.store, &mut self.transaction, &new)
    }

    fn end_output(&mut self) -> Result<(), StorageError> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        if writer.partition_count() == 0 {
            writer.abort();
            return Ok(());
        }
        self.bytes += writer.stored_length();
        self.outputs.push(writer.finish()?);
        Ok(())
    }

    /// A head of which only a sound static row is written.
    fn admit(&mut self, mut head: PartitionHead) -> PartitionHead {
        let table = self.stream.table();
        let wrong =
            head.static_row.as_ref().and_then(|row| validity::invalid_column_of_row(table, row)).map(str::to_owned);
        if let Some(column) = wrong.filter(|_| self.options.validate) {
            self.leave_out(&column, &head.key.key);
            head.static_row = None;
        }
        head
    }

    fn leave_out(&mut self, column: &str, key: &[u8]) {
        self.invalid_rows += 1;
        tracing::warn!(
            table = self.store.name(),
            sstable = self.descriptor.prefix(),
            "a row of key {key:02x?} is left out: the value of {column} is none of its type"
        );
    }

    fn check_counters(&self) -> Result<(), StorageError> {
        if !self.store.table().is_counter() || self.options.skip_corrupted || !self.is_damaged() {
            return Ok(());
        }
        let why = format!(
            "{}: skipping corrupt data in counter tables will result in undercounts for the affected counters; to skip it \
             anyway, run scrub with the --skip-corrupted option",
            self.descriptor.path(Component::Data).display()
        );
        Err(StorageError::Refused { why })
    }

    /// Whether some rows are lost.
    fn is_damaged(&self) -> bool {
        let report = self.stream.report();
        let lost = report.bytes_lost + report.partitions_cut + report.partitions_lost + report.rows_out_of_order;
        lost + self.invalid_rows > 0
    }

    /// One step: a head, an unfiltered or the end of a pass. False: all is done.
    fn step(&mut self) -> Result<bool, StorageError> {
        if self.writer.is_none() {
            self.writer = Some(self.begin_output()?);
        }
        if let Some(mut partition) = self.partition.take() {
            match self.stream.next_unfiltered()? {
                Some(unfiltered) => {
                    let wrong = validity::invalid_column(self.stream.table(), &unfiltered).map(str::to_owned);
                    if let Some(column) = wrong.filter(|_| self.options.validate) {
                        self.leave_out(&column, partition.key());
                    } else if let Some(writer) = &mut self.writer {
                        partition.begin(writer);
                        writer.append(&unfiltered)?;
                    }
                    self.partition = Some(partition);
                }
                None => {
                    if let Some(writer) = &mut self.writer {
                        let before = writer.partition_count();
                        partition.end(writer, &self.engine.options.guards.values().partitions)?;
                        self.empty += u64::from(writer.partition_count() == before);
                    }
                }
            }
            return Ok(true);
        }
        match self.stream.next_partition()? {
            Some(head) => {
                let head = self.admit(head);
                self.partition = Some(PendingPartition::new(head));
            }
            None => {
                self.end_output()?;
                return Ok(self.stream.next_pass());
            }
        }
        Ok(true)
    }

    /// The new SSTables take the place of the old one.
    fn replace(&mut self) -> Result<Vec<Arc<SSTable>>, StorageError> {
        let (engine, store) = (&self.engine, &self.store);
        let damaged = self.is_damaged();
        let mut opened = Vec::new();
        for output in &self.outputs {
            if damaged {
                reset_statistics(&engine.env, &output.descriptor)?;
            }
            let cache: Arc<dyn sstable::FileCache> = Arc::clone(&engine.caches) as _;
            let sstable = SSTable::open(&engine.env, output.descriptor.clone(), &store.table(), cache)?;
            sstable.check_written(output)?;
            let sstable = Arc::new(sstable);
            components::complete(engine, store, &sstable)?;
            opened.push(sstable);
        }
        self.transaction.remove_all([&self.descriptor])?;
        self.transaction.commit()?;
        match &self.input {
            Some(input) => store.replace_sstables(std::slice::from_ref(input), opened.clone()),
            None => store.add_salvaged(opened.clone()),
        }
        store.forget_left_out(&self.descriptor);
        Ok(opened)
    }

    /// Lines on the losses; empty: there are none.
    fn lines(&self, outputs: usize) -> Vec<String> {
        let (report, file) = (self.stream.report(), self.descriptor.path(Component::Data));
        let mut lines = lost_lines(&file.display().to_string(), report);
        if self.invalid_rows > 0 {
            lines.push(format!(
                "{}: {} rows left out for values that are none of their types",
                file.display(),
                self.invalid_rows
            ));
        }
        let done = format!(
            "Scrub of {} complete: {} partitions in {outputs} new sstables and {} empty (tombstoned) partitions dropped",
            file.display(),
            report.partitions - self.empty,
            self.empty
        );
        if lines.is_empty() && self.input.is_some() {
            tracing::info!("{done}");
            return lines;
        }
        lines.push(done);
        if self.is_damaged() {
            lines.push(
                "You can attempt manual recovery from the pre-scrub snapshot. You can also run repair to transfer the data from a healthy \
                 replica, if any"
                    .to_owned(),
            );
        }
        lines.iter().for_each(|line| tracing::warn!("{line}"));
        lines
    }
}

fn lost_lines(file: &str, report: &SalvageReport) -> Vec<String> {
    let mut lines: Vec<String> = report.notes.iter().map(|note| format!("{file}: {note}")).collect();
    for lost in report.lost.iter().take(LOST_TOLD_MAX) {
        let keys: Vec<String> = lost.keys.iter().take(LOST_TOLD_MAX).map(|key| hex(key)).collect();
        let of = if keys.is_empty() { String::new() } else { format!(", partition keys {}", keys.join(", ")) };
        lines.push(format!("{file}: lost bytes {} to {}{of}: {}", lost.from, lost.to, lost.why));
    }
    let untold = report.lost.len().saturating_sub(LOST_TOLD_MAX) as u64 + report.lost_unlisted;
    if untold > 0 {
        lines.push(format!("{file}: lost bytes at {untold} more places"));
    }
    if report.bytes_lost + report.partitions_lost + report.partitions_cut + report.rows_out_of_order > 0 {
        lines.push(format!(
            "{file}: {} bytes lost; {} partitions lost, {} lost in part; {} rows out of order left out",
            report.bytes_lost, report.partitions_lost, report.partitions_cut, report.rows_out_of_order
        ));
    }
    lines
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Task for Scrub {
    fn advance(&mut self) -> Result<Option<u64>, StorageError> {
        let written = |scrub: &Self| scrub.bytes + scrub.writer.as_ref().map_or(0, SSTableWriter::stored_length);
        let start = written(self);
        for _ in 0..SLICE_UNFILTEREDS {
            if !self.step()? {
                self.check_counters()?;
                return Ok(None);
            }
            if written(self).saturating_sub(start) >= SLICE_BYTES {
                break;
            }
        }
        Ok(Some(written(self).saturating_sub(start)))
    }

    fn purged_log(&self) -> Option<LogPosition> {
        let is_empty = self.outputs.is_empty() && self.writer.is_none();
        if is_empty { log_intervals::end(&self.inherited.log_intervals) } else { None }
    }

    fn finish(mut self: Box<Self>, _: &Arc<Engine>) -> Result<Outcome, StorageError> {
        let store = Arc::clone(&self.store);
        let prepared = components::prepare(&self.engine, &store, &self.outputs);
        let replaced = {
            let _alone = store.replacing.lock().expect("a panic while SSTables are replaced ends the process");
            // a truncation removes SSTables that could not be opened too
            let there = match &self.input {
                Some(_) => store.view().sstables.iter().any(|sstable| *sstable.descriptor() == self.descriptor),
                None => store.left_out().iter().any(|left_out| left_out.descriptor == self.descriptor),
            };
            let replaced = if there {
                prepared.and_then(|()| self.replace())
            } else {
                Err(StorageError::Refused { why: format!("{} was truncated meanwhile", store.name()) })
            };
            let lines = replaced.map(|outputs| self.lines(outputs.len()));
            files::settle(&store, self.transaction);
            lines
        };
        Ok(Outcome { written: None, lines: replaced? })
    }

    fn abandon(self: Box<Self>) {
        if let Some(writer) = self.writer {
            writer.abort();
        }
        files::settle(&self.store, self.transaction);
    }
}
