//! Reads of whole rows by name, newest data first: SSTables that are older than a complete answer
//! are not read.
//!
//! 1. Memtables are read, then SSTables in the order of their greatest timestamp.
//! 2. Before each SSTable: when the partition was deleted, or every wanted row is complete, at
//!    timestamps greater than the SSTable's greatest, it and those behind it cannot change the
//!    answer.
//! 3. A row is complete when it is deleted (by row or range), or has liveness that does not expire
//!    and a cell for each fetched column.
//!
//! Not for counters, collections and static columns, whose parts may be anywhere. Agrees with
//! `org.apache.cassandra.db.SinglePartitionReadCommand.queryMemtableAndSSTablesInTimestampOrder`.

use std::collections::VecDeque;
use std::sync::Arc;

use rows::{
    ClusteringValues, ColumnFilter, DeletionTime, MergeStream, PartitionHead, PartitionRange, PartitionStream,
    PrefixKind, ReadCommand, ReadError, Row, Slice, Unfiltered,
};
use schema::TableMetadata;

/// Whether a command can be answered in this way.
pub fn applies(command: &ReadCommand) -> bool {
    let table = &command.table;
    let fetched = |column: &&schema::ColumnMetadata| command.columns.includes(column.id);
    matches!(command.range, PartitionRange::Key(_))
        && !table.is_counter()
        && !command.slices.0.is_empty()
        && command.slices.0.iter().all(|slice| names_a_row(slice, table))
        && !table.statics.iter().any(|column| fetched(&column))
        && !table.regulars.iter().filter(fetched).any(schema::ColumnMetadata::is_complex)
}

/// Whether the values that a read does not query are left out of the merged rows once more.
/// Cassandra does so when it reads rows by name (`queryMemtableAndSSTablesInTimestampOrder`);
/// Helenus must do it too, even if it reads them in another way.
pub fn selects_merged(command: &ReadCommand) -> bool {
    matches!(command.columns, ColumnFilter::Selected(_)) && is_by_names(command)
}

/// Whether Cassandra reads a command by the names of rows, and so builds a partition of them.
pub fn is_by_names(command: &ReadCommand) -> bool {
    let table = &command.table;
    let queries = |id| match &command.columns {
        ColumnFilter::Selected(selection) => selection.queries(id),
        columns => columns.includes(id),
    };
    let mut columns = table.statics.iter().chain(&table.regulars);
    let is_by_name = |slice: &Slice| table.clustering.is_empty() || names_a_row(slice, table);
    matches!(command.range, PartitionRange::Key(_))
        && !table.is_counter()
        && command.slices.0.iter().all(is_by_name)
        && !columns.any(|column| column.is_complex() && queries(column.id))
}

fn names_a_row(slice: &Slice, table: &TableMetadata) -> bool {
    slice.start.values.len() == table.clustering.len()
        && slice.start.values == slice.end.values
        && slice.start.kind == PrefixKind::InclStartBound
        && slice.end.kind == PrefixKind::InclEndBound
}

/// The rows found so far.
pub struct Found<'a> {
    command: &'a ReadCommand,
    table: &'a Arc<TableMetadata>,
    partition: Option<HeldPartition>,
}

impl<'a> Found<'a> {
    /// A search that has found nothing yet. `table`: the present schema.
    pub fn new(command: &'a ReadCommand, table: &'a Arc<TableMetadata>) -> Self {
        Self { command, table, partition: None }
    }

    /// Adds the rows of a source.
    pub fn add(&mut self, mut source: Box<dyn PartitionStream>) -> Result<(), ReadError> {
        let Some(new) = HeldPartition::read(source.as_mut())? else { return Ok(()) };
        self.partition = match self.partition.take() {
            None => Some(new),
            Some(old) => {
                let both: Vec<Box<dyn PartitionStream>> = vec![Box::new(old), Box::new(new)];
                let mut merged = MergeStream::new(Arc::clone(self.table), both, self.command.reversed);
                HeldPartition::read(&mut merged)?
            }
        };
        Ok(())
    }

    /// Whether data up to `timestamp` cannot change the answer any more.
    pub fn is_newer_than(&self, timestamp: i64) -> bool {
        let Some(HeldPartition { head: Some(head), content }) = &self.partition else { return false };
        // names and content are in the same order
        let names = self.command.slices.0.iter().map(|slice| &slice.start.values);
        head.deletion.deletes(timestamp)
            || if self.command.reversed {
                self.are_complete(content, names.rev(), timestamp)
            } else {
                self.are_complete(content, names, timestamp)
            }
    }

    fn are_complete<'n>(
        &self,
        content: &VecDeque<Unfiltered>,
        mut names: impl Iterator<Item = &'n ClusteringValues>,
        timestamp: i64,
    ) -> bool {
        let deletes = |deletion: DeletionTime| !deletion.is_live() && deletion.deletes(timestamp);
        let mut rest = content.iter().peekable();
        names.all(|name| {
            let mut is_complete = false;
            while let Some(unfiltered) = rest.next_if(|unfiltered| unfiltered.values() == name) {
                is_complete |= match unfiltered {
                    // a range tombstone is clipped to the slice, which is the row
                    Unfiltered::Marker(marker) => marker.open.is_some_and(deletes),
                    Unfiltered::Row(row) => deletes(row.deletion) || self.has_everything(row, timestamp),
                };
            }
            is_complete
        })
    }

    fn has_everything(&self, row: &Row, timestamp: i64) -> bool {
        let mut wanted = self.table.regulars.iter().filter(|column| self.command.columns.includes(column.id));
        let has = |column: &schema::ColumnMetadata| match row.column(column.id) {
            Some(rows::ColumnData::Simple(cell)) => cell.timestamp > timestamp,
            _ => false,
        };
        // where liveness ends, cells that are not fetched decide whether there is a row
        !row.liveness.is_empty() && !row.liveness.is_expiring() && row.liveness.timestamp > timestamp && wanted.all(has)
    }

    /// The answer.
    pub fn into_stream(self) -> Box<dyn PartitionStream> {
        match self.partition {
            Some(partition) => Box::new(partition),
            None => Box::new(rows::stream::EmptyStream),
        }
    }
}

/// One partition in memory: rows by name are few.
struct HeldPartition {
    head: Option<PartitionHead>,
    /// Rows and markers in the order of the read.
    content: VecDeque<Unfiltered>,
}

impl HeldPartition {
    fn read(source: &mut dyn PartitionStream) -> Result<Option<Self>, ReadError> {
        let Some(head) = source.next_partition()? else { return Ok(None) };
        let mut content = VecDeque::new();
        while let Some(unfiltered) = source.next_unfiltered()? {
            content.push_back(unfiltered);
        }
        Ok(Some(Self { head: Some(head), content }))
    }
}

impl PartitionStream for HeldPartition {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let head = self.head.take();
        if head.is_none() {
            self.content.clear();
        }
        Ok(head)
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        Ok(self.content.pop_front())
    }
}
