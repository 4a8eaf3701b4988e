//! Reading a table: memtables and SSTables that may hold an answer, merged as one stream.
//!
//! SSTables are left out by token range, bloom filter and clustering bounds. A read of one
//! partition takes the newest data first, and also leaves out SSTables that are older than a
//! deletion of the partition or, in reads of whole rows by name, older than complete rows
//! (`read::names`). If the table wants it, data of SSTables may come from the row cache
//! (`read::row_cache`). A trace tells for each SSTable why it is left out.

mod budget;
mod dropped;
pub(crate) mod explain;
mod names;
mod observer;
pub(crate) mod row_cache;
mod static_form;

use std::sync::Arc;

use rows::command::ReadStats;
use rows::selection::{SelectedFrom, SelectedStream};
use rows::stream::OpenedStream;
use rows::{
    ColumnFilter, DeletionTime, MergeStream, PartitionRange, PartitionStream, ReadCommand, ReadContext, ReadError,
    ReadMode,
};
use types::DecoratedKey;

use sstable::{Format, KeyHash, SSTable};

use crate::table::TableStore;
use crate::table::memtable::Memtable;
use crate::table::memtable::read::MemtableStream;
use crate::table::view::View;
use observer::{NoObserver, ReadObserver};

/// The stream of the rows that a command asks for.
pub fn read(
    store: &TableStore,
    command: &ReadCommand,
    context: &ReadContext,
) -> Result<Box<dyn PartitionStream>, ReadError> {
    read_with_observer(store, command, context, &mut NoObserver)
}

/// Does the work of [`read`], with an observer that is told which sources are chosen.
fn read_with_observer<W: ReadObserver>(
    store: &TableStore,
    command: &ReadCommand,
    context: &ReadContext,
    observer: &mut W,
) -> Result<Box<dyn PartitionStream>, ReadError> {
    let view = store.view();
    context.trace(|| match &command.range {
        PartitionRange::Key(_) => format!("Executing single-partition query on {}", view.table.name),
        PartitionRange::Range { .. } => {
            format!("Executing seq scan across {} sstables of {}", view.sstables.len(), view.table.name)
        }
    });
    // an entry of the row cache is of several SSTables, and a selection judges the rows of each
    if !matches!(command.columns, ColumnFilter::Selected(_))
        && let Some(stream) = row_cache::read(store, &view, command, context, observer)?
    {
        return Ok(stream);
    }
    let stream = match &command.range {
        PartitionRange::Key(key) if has_several(store, &view, key) => {
            if is_by_names(&view, command) {
                by_names(store, &view, command, context, observer)?
            } else {
                of_partition(store, &view, command, context, observer)?
            }
        }
        _ => merged(store, &view, command, context, observer)?,
    };
    let stream =
        if names::selects_merged(command) { selected(stream, command, SelectedFrom::Memtable) } else { stream };
    Ok(static_form::with_static_form(stream, store, &view, command))
}

/// Whether the rows are read by their names, newest sources first until they are complete. With a
/// single source that comes to a read of it.
fn is_by_names(view: &View, command: &ReadCommand) -> bool {
    !view.sstables.is_empty() && names::applies(command)
}

/// Whether several sources may have the partition, so that an SSTable may turn out not to matter.
fn has_several(store: &TableStore, view: &View, key: &DecoratedKey) -> bool {
    match view.sstables.len() {
        0 => false,
        1 => !view.memtables_of(store.shards, key).is_empty(),
        _ => true,
    }
}

fn hash_of(command: &ReadCommand) -> Option<KeyHash> {
    match &command.range {
        PartitionRange::Key(key) => Some(KeyHash::of(&key.key)),
        PartitionRange::Range { .. } => None,
    }
}

fn in_memtables<W: ReadObserver>(
    store: &TableStore,
    view: &View,
    command: &ReadCommand,
    context: &ReadContext,
    observer: &mut W,
) -> Vec<Box<dyn PartitionStream>> {
    let lists = view.memtables(store.shards, command).into_iter();
    let stream = |memtables: Vec<Arc<Memtable>>| {
        context.trace(|| match &command.range {
            PartitionRange::Key(key) => format!("Merging memtable contents of shard {}", store.shards.of(key.token)),
            PartitionRange::Range { .. } => format!("Merging contents of {} memtables", memtables.len()),
        });
        let source = observer.memtables(&memtables, view);
        let stream = dropped::without_dropped(Box::new(MemtableStream::new(memtables, command)), &view.table);
        observer.wrap_stream(source, selected(stream, command, SelectedFrom::Memtable))
    };
    lists.map(stream).collect()
}

/// All sources that may have rows of the answer, merged.
fn merged<W: ReadObserver>(
    store: &TableStore,
    view: &View,
    command: &ReadCommand,
    context: &ReadContext,
    observer: &mut W,
) -> Result<Box<dyn PartitionStream>, ReadError> {
    let mut streams = in_memtables(store, view, command, context, observer);
    let hash = hash_of(command);
    for sstable in &view.sstables {
        if let Some(stream) = in_sstable(sstable, command, hash, context, observer)? {
            streams.push(stream);
        }
    }
    Ok(MergeStream::boxed(&view.table, streams, command.reversed))
}

/// Why an SSTable is left out of a read of one partition.
const DELETED: &str = "its newest data is older than a deletion of the partition";

/// All sources that may have something of one partition, merged; newest first, until all older
/// data is deleted. Agrees with
/// `org.apache.cassandra.db.SinglePartitionReadCommand.queryMemtableAndDiskInternal`.
fn of_partition<W: ReadObserver>(
    store: &TableStore,
    view: &View,
    command: &ReadCommand,
    context: &ReadContext,
    observer: &mut W,
) -> Result<Box<dyn PartitionStream>, ReadError> {
    let mut opened = Vec::new();
    let mut deletion = DeletionTime::LIVE;
    let mut open = |mut stream: Box<dyn PartitionStream>, deletion: &mut DeletionTime| -> Result<(), ReadError> {
        if let Some(head) = stream.next_partition()? {
            *deletion = deletion.merge(head.deletion);
            opened.push((stream, head));
        }
        Ok(())
    };
    for stream in in_memtables(store, view, command, context, observer) {
        open(stream, &mut deletion)?;
    }
    let hash = hash_of(command);
    for sstable in &view.sstables {
        if is_deleted(&deletion, sstable) {
            skip(sstable, DELETED, context, observer);
            continue;
        }
        if let Some(stream) = in_sstable(sstable, command, hash, context, observer)? {
            open(stream, &mut deletion)?;
        }
    }
    Ok(match opened.len() {
        0 => Box::new(rows::stream::EmptyStream),
        1 => {
            let (stream, head) = opened.remove(0);
            Box::new(OpenedStream::new(stream, head))
        }
        _ => Box::new(MergeStream::opened(Arc::clone(&view.table), opened, command.reversed)),
    })
}

/// Whether everything that an SSTable has of a partition with this deletion is older than the
/// deletion.
fn is_deleted(deletion: &DeletionTime, sstable: &SSTable) -> bool {
    !deletion.is_live() && deletion.deletes(sstable.statistics().stats.max_timestamp)
}

/// Why an SSTable is left out of a read by names.
const OLDER: &str = "its newest data is older than what was found";

/// The rows by their names: sources are read newest first, until older ones cannot matter.
fn by_names<W: ReadObserver>(
    store: &TableStore,
    view: &View,
    command: &ReadCommand,
    context: &ReadContext,
    observer: &mut W,
) -> Result<Box<dyn PartitionStream>, ReadError> {
    let mut found = names::Found::new(command, &view.table);
    for stream in in_memtables(store, view, command, context, observer) {
        found.add(stream)?;
    }
    let hash = hash_of(command);
    for sstable in &view.sstables {
        if found.is_newer_than(sstable.statistics().stats.max_timestamp) {
            skip(sstable, OLDER, context, observer);
            continue;
        }
        if let Some(stream) = in_sstable(sstable, command, hash, context, observer)? {
            found.add(stream)?;
        }
    }
    Ok(found.into_stream())
}

/// The stream of an SSTable that may hold a part of the answer; None: it need not be read.
fn in_sstable<W: ReadObserver>(
    sstable: &Arc<SSTable>,
    command: &ReadCommand,
    hash: Option<KeyHash>,
    context: &ReadContext,
    observer: &mut W,
) -> Result<Option<Box<dyn PartitionStream>>, ReadError> {
    if let Some(reason) = exclusion(sstable, command, hash) {
        skip(sstable, reason, context, observer);
        return Ok(None);
    }
    context.trace(|| format!("Merging data from sstable {}", sstable.descriptor().prefix()));
    let stream = observer.sstable(sstable, command, context)?;
    // Cassandra makes a partition in memory of each block of BIG to give its rows backwards
    let is_in_memory = command.reversed && sstable.descriptor().version.format() == Format::Big;
    Ok(Some(selected(stream, command, if is_in_memory { SelectedFrom::Memtable } else { SelectedFrom::SSTable })))
}

/// A source without the values that a read does not query, if the read leaves them out.
fn selected(stream: Box<dyn PartitionStream>, command: &ReadCommand, from: SelectedFrom) -> Box<dyn PartitionStream> {
    match &command.columns {
        ColumnFilter::Selected(selection) => Box::new(SelectedStream::new(stream, &command.table, selection, from)),
        ColumnFilter::All | ColumnFilter::Some(_) => stream,
    }
}

/// Notes an SSTable that is not read. SSTables that are read count themselves.
fn skip<W: ReadObserver>(sstable: &Arc<SSTable>, reason: &'static str, context: &ReadContext, observer: &mut W) {
    observer.skipped(sstable, reason);
    ReadStats::add(&context.stats.sstables_considered, 1);
    context.trace(|| format!("SSTable {} skipped: {reason}", sstable.descriptor().prefix()));
}

/// Why an SSTable need not be read; None: it must.
fn exclusion(sstable: &SSTable, command: &ReadCommand, hash: Option<KeyHash>) -> Option<&'static str> {
    match (&command.range, hash) {
        (PartitionRange::Key(key), Some(hash)) => {
            if *key < *sstable.first_key() || *key > *sstable.last_key() {
                return Some("the key is outside of its range");
            }
            if !sstable.may_contain(key, hash) {
                return Some("its Bloom filter excludes the key");
            }
        }
        _ => {
            if command.range.is_past(sstable.first_key()) || command.range.is_before(sstable.last_key()) {
                return Some("its keys are outside of the range");
            }
        }
    }
    (!sstable.may_match(command)).then_some("its clusterings are outside of the slices")
}

/// A stream of everything in a table, for building something from it.
pub fn read_all(store: &Arc<TableStore>, now: u32) -> Result<Box<dyn PartitionStream>, ReadError> {
    let command = ReadCommand {
        table: store.table(),
        range: PartitionRange::all(),
        slices: rows::Slices::all(),
        reversed: false,
        columns: rows::ColumnFilter::All,
        now,
        limits: rows::DataLimits::NONE,
        indexes: Vec::new(),
    };
    read(store, &command, &ReadContext::new(ReadMode::Background))
}
