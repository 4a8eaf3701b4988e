//! An update at another time: a conditional statement's change has the time of the ballot that
//! proposes it, also where another coordinator proposes the change of one that has gone.
//!
//! Deletions are one microsecond earlier than cells, so that the cells of the same update outlive
//! them. Agrees with `PartitionUpdate.Builder.updateAllTimestamp`.

use super::PartitionUpdate;
use crate::{ColumnData, DeletionTime, Row};

impl PartitionUpdate {
    /// The same changes with this timestamp, microseconds.
    #[must_use]
    pub fn with_timestamp(mut self, timestamp: i64) -> Self {
        retime_deletion(&mut self.deletion, timestamp);
        self.rows.iter_mut().chain(&mut self.static_row).for_each(|row| retime_row(row, timestamp));
        self.range_deletions.iter_mut().for_each(|(_, deletion)| retime_deletion(deletion, timestamp));
        self
    }
}

fn retime_row(row: &mut Row, timestamp: i64) {
    if !row.liveness.is_empty() {
        row.liveness.timestamp = timestamp;
    }
    retime_deletion(&mut row.deletion, timestamp);
    for data in &mut row.columns {
        match data {
            ColumnData::Simple(cell) => cell.timestamp = timestamp,
            ColumnData::Complex(complex) => {
                retime_deletion(&mut complex.deletion, timestamp);
                complex.cells.iter_mut().for_each(|cell| cell.timestamp = timestamp);
            }
        }
    }
}

fn retime_deletion(deletion: &mut DeletionTime, timestamp: i64) {
    if !deletion.is_live() {
        deletion.marked_for_delete_at = timestamp - 1;
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use schema::ColumnId;
    use types::DecoratedKey;

    use super::*;
    use crate::update::tests::table;
    use crate::{Cell, ClusteringValues, ComplexColumn, Liveness, Slice};

    /// Everything that has a timestamp, with `cells` and `deletions` as theirs.
    fn full(cells: i64, deletions: i64) -> PartitionUpdate {
        let deletion = DeletionTime::new(deletions, 7);
        let cell = || Cell::live(ColumnId(0), cells, Bytes::from_static(b"v"));
        let complex = ComplexColumn { column: ColumnId(1), deletion, cells: vec![cell()] };
        let row = Row {
            liveness: Liveness { timestamp: cells, ..Liveness::EMPTY },
            deletion,
            columns: vec![ColumnData::Simple(cell()), ColumnData::Complex(Box::new(complex))],
            ..Row::new(ClusteringValues::new())
        };
        let mut update = PartitionUpdate::new(table(), DecoratedKey::new(Bytes::from_static(b"k")));
        update.deletion = deletion;
        update.static_row = Some(row.clone());
        update.rows = vec![row];
        update.range_deletions = vec![(Slice::of_prefix(ClusteringValues::new()), deletion)];
        update
    }

    #[test]
    fn all_timestamps_move_and_deletions_stay_before_cells() {
        assert_eq!(full(40, 3).with_timestamp(1000), full(1000, 999));
    }

    /// A field without a timestamp gets none: an update without changes stays one.
    #[test]
    fn what_is_not_there_stays_away() {
        let empty = PartitionUpdate::new(table(), DecoratedKey::new(Bytes::from_static(b"k")));
        assert_eq!(empty.clone().with_timestamp(1000), empty);
        let mut row = empty.clone();
        row.rows = vec![Row::new(ClusteringValues::new())];
        assert_eq!(row.clone().with_timestamp(1000), row);
    }
}
