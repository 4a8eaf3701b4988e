//! Whether the answer to a read of one partition names the static columns although the partition
//! has no static row.
//!
//! Cassandra's answer does if the partition comes from a single SSTable that has static columns:
//! it reads a static row without cells there. A memtable gives no such row, and neither does a
//! merge of several sources. A digest covers the names, so every replica must decide alike.
//!
//! An SSTable is a source where its keys cover the partition's, and its clusterings meet the slices
//! or it has static columns, whether or not it has the partition. An SSTable without either is a
//! source if it deletes the partition. It is not looked up which one does: if the partition is
//! deleted, every newer SSTable counts. Agrees with
//! `org.apache.cassandra.db.SinglePartitionReadCommand` (`queryMemtableAndDiskInternal`,
//! `queryMemtableAndSSTablesInTimestampOrder`), with
//! `db.rows.UnfilteredRowIterators.mergeStaticRows` and
//! `db.partitions.AbstractBTreePartition.staticRow`.

use std::sync::Arc;

use rows::{MaybeEncoded, PartitionHead, PartitionRange, PartitionStream, ReadCommand, ReadError, Unfiltered};
use types::DecoratedKey;

use sstable::SSTable;

use super::names;
use crate::table::TableStore;
use crate::table::view::View;

/// The SSTables that are sources of a read's partition, if no memtable is.
struct Sources {
    /// The SSTables, newest data first; true: it is a source not only because of a deletion of the
    /// partition.
    sstables: Vec<(Arc<SSTable>, bool)>,
    /// Whether the read is one by the names of rows, of which Cassandra builds a partition first.
    is_by_names: bool,
}

impl Sources {
    /// The sources of a read. None: the answer names no static columns unless there is a static
    /// row.
    fn of(store: &TableStore, view: &View, command: &ReadCommand) -> Option<Self> {
        let PartitionRange::Key(key) = &command.range else { return None };
        let fetches_statics = command.table.statics.iter().any(|column| command.columns.includes(column.id));
        if !fetches_statics || !command.indexes.is_empty() {
            return None;
        }
        if view.memtables_of(store.shards, key).iter().any(|memtable| memtable.contains(key)) {
            return None;
        }
        let has_content = |sstable: &SSTable| !sstable.header().statics.is_empty() || sstable.meets_slices(command);
        let sources = view.sstables.iter().filter(|sstable| is_source(sstable, key, command));
        let sstables: Vec<_> = sources.map(|sstable| (Arc::clone(sstable), has_content(sstable))).collect();
        (!sstables.is_empty()).then(|| Self { sstables, is_by_names: names::is_by_names(command) })
    }

    /// Whether a partition with this head comes from a single SSTable that has static columns.
    fn name_statics(&self, head: &PartitionHead) -> bool {
        if self.is_by_names && head.static_row.is_none() && head.deletion.is_live() {
            return false;
        }
        let is_older = |sstable: &SSTable| {
            let newest = sstable.statistics().stats.max_timestamp;
            !head.deletion.is_live() && newest < head.deletion.marked_for_delete_at
        };
        let may_count = |(_, has_content): &&(Arc<SSTable>, bool)| *has_content || !head.deletion.is_live();
        let mut sources = self.sstables.iter().filter(may_count).map(|(sstable, _)| sstable);
        let first = sources.next().filter(|sstable| !sstable.header().statics.is_empty());
        first.is_some() && sources.next().is_none_or(|second| is_older(second))
    }
}

fn is_source(sstable: &SSTable, key: &DecoratedKey, command: &ReadCommand) -> bool {
    *key >= *sstable.first_key() && *key <= *sstable.last_key() && sstable.may_match(command)
}

/// The stream of a read in which a partition names static columns if Cassandra's answer does.
pub fn with_static_form(
    stream: Box<dyn PartitionStream>,
    store: &TableStore,
    view: &View,
    command: &ReadCommand,
) -> Box<dyn PartitionStream> {
    match Sources::of(store, view, command) {
        Some(sources) => Box::new(WithStaticForm { stream, sources }),
        None => stream,
    }
}

struct WithStaticForm {
    stream: Box<dyn PartitionStream>,
    sources: Sources,
}

impl PartitionStream for WithStaticForm {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let Some(mut head) = self.stream.next_partition()? else { return Ok(None) };
        head.names_statics = self.sources.name_statics(&head);
        Ok(Some(head))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        self.stream.next_unfiltered()
    }

    fn next_maybe_encoded(&mut self) -> Result<Option<MaybeEncoded>, ReadError> {
        self.stream.next_maybe_encoded()
    }

    fn pass_tombstones(&mut self, most: u64) -> Result<u64, ReadError> {
        self.stream.pass_tombstones(most)
    }
}
