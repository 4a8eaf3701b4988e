//! Reading a table: memtables and SSTables that may hold an answer, merged as one stream.
//!
//! SSTables are left out by token range, bloom filter, clustering bounds and, for reads of whole rows by name, by timestamps
//! (`read::names`). A trace says of each why.

mod budget;

use std::sync::Arc;

use rows::command::ReadStats;
use rows::{MergeStream, PartitionRange, PartitionStream, ReadCommand, ReadContext, ReadError, ReadMode};

use sstable::{KeyHash, SSTable};

use crate::memtable::read::MemtableStream;
use crate::table::TableStore;

/// The stream of what a command asks for.
pub fn read(
    store: &TableStore,
    command: &ReadCommand,
    context: &ReadContext,
) -> Result<Box<dyn PartitionStream>, ReadError> {
    let view = store.view();
    let mut streams: Vec<Box<dyn PartitionStream>> = Vec::new();
    for memtables in view.memtables(store.shards, command) {
        context.trace(|| match &command.range {
            PartitionRange::Key(key) => {
                format!("Reading the memtable of shard {} of {}", store.shards.of(key.token), store.name())
            }
            PartitionRange::Range { .. } => format!("Reading {} memtables of {}", memtables.len(), store.name()),
        });
        streams.push(Box::new(MemtableStream::new(memtables, command)));
    }
    let hash = match &command.range {
        PartitionRange::Key(key) => Some(KeyHash::of(&key.key)),
        PartitionRange::Range { .. } => None,
    };
    let mut read = 0;
    for sstable in &view.sstables {
        match exclusion(sstable, command, hash) {
            Some(reason) => context.trace(|| format!("SSTable {} skipped: {reason}", sstable.descriptor().prefix())),
            None => {
                context.trace(|| format!("SSTable {} may hold an answer", sstable.descriptor().prefix()));
                read += 1;
                streams.push(Box::new(sstable.read(command, context)?));
            }
        }
    }
    ReadStats::add(&context.stats.sstables_considered, view.sstables.len() as u64);
    ReadStats::add(&context.stats.sstables_read, read);
    let stream = MergeStream::boxed(&view.table, streams, command.reversed);
    Ok(match context.mode {
        ReadMode::Inline => Box::new(budget::InlineBudget::new(stream)),
        ReadMode::Background => stream,
    })
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

/// Everything that a table holds, for whoever rebuilds something from it.
pub fn read_all(store: &Arc<TableStore>, now: u32) -> Result<Box<dyn PartitionStream>, ReadError> {
    let command = ReadCommand {
        table: store.table(),
        range: PartitionRange::all(),
        slices: rows::Slices::all(),
        reversed: false,
        columns: rows::ColumnFilter::All,
        now,
        limits: rows::DataLimits::NONE,
    };
    read(store, &command, &ReadContext::new(ReadMode::Background))
}
