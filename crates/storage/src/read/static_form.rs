//! Whether the answer to a read of one partition names the static columns although the partition
//! has no static row.
//!
//! Cassandra's does where the partition comes from an SSTable alone that has static columns: what
//! it reads there is a static row without cells. A memtable gives no such row, and neither does a
//! merge of several sources. A digest covers the names, so every replica must decide alike.
//!
//! An SSTable is a source where its keys cover the partition's and its clusterings the slices,
//! whether or not it has the partition. Agrees with
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

/// The SSTables that are sources of a read's partition, where no memtable is.
struct Sources {
    /// Newest data first.
    sstables: Vec<Arc<SSTable>>,
    /// Whether the read is one by the names of rows, of which Cassandra builds a partition first.
    is_by_names: bool,
}

impl Sources {
    /// None: the answer names no static columns without a static row.
    fn of(store: &TableStore, view: &View, command: &ReadCommand) -> Option<Self> {
        let PartitionRange::Key(key) = &command.range else { return None };
        let fetches_statics = command.table.statics.iter().any(|column| command.columns.includes(column.id));
        if !fetches_statics || !command.indexes.is_empty() {
            return None;
        }
        if view.memtables_of(store.shards, key).iter().any(|memtable| memtable.contains(key)) {
            return None;
        }
        let sstables: Vec<_> =
            view.sstables.iter().filter(|sstable| is_source(sstable, key, command)).cloned().collect();
        (!sstables.is_empty()).then(|| Self { sstables, is_by_names: names::is_by_names(command) })
    }

    /// Whether a partition with this head is of one SSTable that has static columns.
    fn name_statics(&self, head: &PartitionHead) -> bool {
        if self.is_by_names && head.static_row.is_none() && head.deletion.is_live() {
            return false;
        }
        let is_older = |sstable: &SSTable| {
            let newest = sstable.statistics().stats.max_timestamp;
            !head.deletion.is_live() && newest < head.deletion.marked_for_delete_at
        };
        let mut sources = self.sstables.iter();
        let first = sources.next().filter(|sstable| !sstable.header().statics.is_empty());
        first.is_some() && sources.next().is_none_or(|second| is_older(second))
    }
}

fn is_source(sstable: &SSTable, key: &DecoratedKey, command: &ReadCommand) -> bool {
    *key >= *sstable.first_key() && *key <= *sstable.last_key() && sstable.may_match(command)
}

/// A read's stream, whose partition names static columns where Cassandra's does.
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
