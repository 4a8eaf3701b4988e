//! The rows of a partition that a conditional statement decides by, and the timestamp of its write.
//!
//! Agrees in role with the read of `org.apache.cassandra.service.StorageProxy.cas` and with the
//! ballots of `service.paxos`.

use std::sync::Arc;

use rows::live::TombstoneLimits;
use rows::{
    ColumnData, ColumnFilter, DeletionTime, LiveRows, NO_TIMESTAMP, PartitionHead, PartitionStream, ReadError, Row,
    Unfiltered,
};

use super::CasRequest;
use crate::error::CqlError;

/// The rows of a partition, with the requested columns only.
#[derive(Clone, PartialEq, Debug)]
pub struct CasPartition {
    /// The static row; None if it has no live cell.
    pub static_row: Option<Row>,
    /// Live rows in clustering order.
    pub rows: Vec<Row>,
    /// The greatest timestamp of anything the read passed, deletions included.
    newest: i64,
}

impl CasPartition {
    /// Reads the partition.
    pub fn read(stream: &mut dyn PartitionStream, request: &CasRequest) -> Result<Self, CqlError> {
        let mut timed = NewestTimestamp { stream, newest: NO_TIMESTAMP };
        let command = &request.command;
        let limits = TombstoneLimits { failure: request.tombstone_failure, ..TombstoneLimits::NONE };
        let mut live = LiveRows::new(&mut timed, Arc::clone(&command.table), command.now, limits);
        let (mut static_row, mut rows) = (None, Vec::new());
        if let Some(partition) = live.next_partition()? {
            static_row = partition.static_row;
            while let Some(row) = live.next_row()? {
                let row = retain_columns(row, &command.columns);
                // the row is alive only by columns that were not requested: Cassandra does not
                // count it
                if row.liveness.is_empty() && row.columns.is_empty() {
                    continue;
                }
                rows.push(row);
                if request.first_row_only {
                    break;
                }
            }
        }
        let static_row = static_row.map(|row| retain_columns(row, &command.columns)).filter(|row| !row.is_empty());
        Ok(Self { static_row, rows, newest: timed.newest })
    }

    /// The timestamp to write with: now, or later than everything that was read. It is two steps
    /// later, because the deletions of a statement are written one step before its values.
    pub fn timestamp(&self, now: i64) -> i64 {
        now.max(self.newest.saturating_add(2))
    }
}

fn retain_columns(mut row: Row, columns: &ColumnFilter) -> Row {
    row.columns.retain(|data| columns.includes(data.column()));
    row
}

/// A stream that keeps the greatest timestamp of everything that passes through it.
struct NewestTimestamp<'a> {
    stream: &'a mut dyn PartitionStream,
    newest: i64,
}

impl NewestTimestamp<'_> {
    fn track(&mut self, timestamp: i64) {
        self.newest = self.newest.max(timestamp);
    }

    fn track_deletion(&mut self, deletion: &DeletionTime) {
        self.track(deletion.marked_for_delete_at);
    }

    fn track_row(&mut self, row: &Row) {
        self.track(row.liveness.timestamp);
        self.track_deletion(&row.deletion);
        for data in &row.columns {
            match data {
                ColumnData::Simple(cell) => self.track(cell.timestamp),
                ColumnData::Complex(complex) => {
                    self.track_deletion(&complex.deletion);
                    complex.cells.iter().for_each(|cell| self.track(cell.timestamp));
                }
            }
        }
    }
}

impl PartitionStream for NewestTimestamp<'_> {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let head = self.stream.next_partition()?;
        if let Some(head) = &head {
            self.track_deletion(&head.deletion);
            head.static_row.iter().for_each(|row| self.track_row(row));
        }
        Ok(head)
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        let next = self.stream.next_unfiltered()?;
        match &next {
            Some(Unfiltered::Row(row)) => self.track_row(row),
            Some(Unfiltered::Marker(marker)) => {
                marker.open.iter().chain(&marker.close).for_each(|deletion| self.track_deletion(deletion));
            }
            None => {}
        }
        Ok(next)
    }
}
