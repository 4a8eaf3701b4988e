//! Memtables may hold cells of columns that were dropped since; a read does not see them, as it
//! does not see those in SSTables. Agrees with the part of
//! `org.apache.cassandra.db.rows.BTreeRow.filter` that deals with dropped columns.

use std::sync::Arc;

use rows::{ColumnData, DeletionTime, PartitionHead, PartitionStream, ReadError, Row, Unfiltered};
use schema::TableMetadata;

/// A stream without the cells of dropped columns.
pub struct WithoutDropped {
    stream: Box<dyn PartitionStream>,
    table: Arc<TableMetadata>,
}

impl WithoutDropped {
    /// By the schema of `table`; the stream itself when nothing was ever dropped.
    pub fn of(stream: Box<dyn PartitionStream>, table: &Arc<TableMetadata>) -> Box<dyn PartitionStream> {
        if table.dropped.is_empty() {
            return stream;
        }
        Box::new(Self { stream, table: Arc::clone(table) })
    }

    fn row(&self, mut row: Row) -> Option<Row> {
        row.columns.retain_mut(|data| self.keeps(data));
        (!row.is_empty()).then_some(row)
    }

    fn keeps(&self, data: &mut ColumnData) -> bool {
        let Some(column) = self.table.column(data.column()) else { return false };
        let Some(dropped) = self.table.dropped.get(&column.name) else { return true };
        match data {
            ColumnData::Simple(cell) => cell.timestamp > dropped.dropped_time,
            ColumnData::Complex(complex) => {
                complex.cells.retain(|cell| cell.timestamp > dropped.dropped_time);
                if complex.deletion.marked_for_delete_at <= dropped.dropped_time {
                    complex.deletion = DeletionTime::LIVE;
                }
                !complex.cells.is_empty() || !complex.deletion.is_live()
            }
        }
    }
}

impl PartitionStream for WithoutDropped {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let Some(mut head) = self.stream.next_partition()? else { return Ok(None) };
        head.static_row = head.static_row.and_then(|row| self.row(row));
        Ok(Some(head))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        loop {
            match self.stream.next_unfiltered()? {
                Some(Unfiltered::Row(row)) => {
                    if let Some(row) = self.row(row) {
                        return Ok(Some(Unfiltered::Row(row)));
                    }
                }
                other => return Ok(other),
            }
        }
    }

    fn pass_tombstones(&mut self, most: u64) -> Result<u64, ReadError> {
        self.stream.pass_tombstones(most)
    }
}
