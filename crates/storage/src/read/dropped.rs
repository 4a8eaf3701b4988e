//! Leaves out cells in memtables whose columns were dropped since, as a read of SSTables does.
//! Agrees with the part of `org.apache.cassandra.db.rows.BTreeRow.filter` that deals with dropped
//! columns.

use std::sync::Arc;

use rows::stream::{FilteredRows, RowFilter};
use rows::{ColumnData, DeletionTime, PartitionStream, Row};
use schema::TableMetadata;

/// A stream without the cells of columns that are dropped by the schema of `table`; the stream
/// itself when nothing was ever dropped.
pub fn without_dropped(stream: Box<dyn PartitionStream>, table: &Arc<TableMetadata>) -> Box<dyn PartitionStream> {
    if table.dropped.is_empty() {
        return stream;
    }
    Box::new(FilteredRows::of(stream, WithoutDropped { table: Arc::clone(table) }))
}

struct WithoutDropped {
    table: Arc<TableMetadata>,
}

impl RowFilter for WithoutDropped {
    fn keep(&self, mut row: Row) -> Option<Row> {
        row.columns.retain_mut(|data| self.keeps(data));
        (!row.is_empty()).then_some(row)
    }
}

impl WithoutDropped {
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
