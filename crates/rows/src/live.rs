//! The data that a query sees: rows without deletions and without expired data. Counts the
//! tombstones that it passes, and stops if they exceed the table's limit.
//!
//! These count as tombstones: each range tombstone marker (a boundary counts once), each deleted or
//! expired cell, and once a row of which nothing is left, unless one of its cells was counted. The
//! loss of a whole partition, row or collection does not count if something in it is live. Agrees
//! with `org.apache.cassandra.db.ReadCommand.withMetricsRecording`.

use std::sync::Arc;

use schema::TableMetadata;
use types::DecoratedKey;

use crate::command::ReadStats;
use crate::error::TooManyTombstones;
pub use crate::scanned_counts::ScannedCounts;
use crate::{ColumnData, DeletionTime, PartitionStream, ReadError, Row, Unfiltered};

/// A partition as a query sees it.
#[derive(Clone, PartialEq, Debug)]
pub struct LivePartition {
    /// The token and the key.
    pub key: DecoratedKey,
    /// The static row with its live cells only; None: it has no live cell.
    pub static_row: Option<Row>,
}

/// A row with its live cells only. Its liveness is kept if it is live.
pub type LiveRow = Row;

/// The numbers of tombstones at which a read warns and fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TombstoneLimits {
    /// `tombstone_warn_threshold`: [`LiveRows::finish`] reports reads that have passed more.
    pub warn: u64,
    /// `tombstone_failure_threshold`: a read that passes more fails.
    pub failure: u64,
    /// Whether each partition is counted for itself. So it is for reads of partitions by key.
    pub each_partition: bool,
    /// Live rows after which counting begins anew; `u64::MAX`: never.
    pub each_rows: u64,
}

/// The most counts above the warning threshold that a read reports. More are left out.
const WARNED_MAX: usize = 1000;

impl TombstoneLimits {
    /// The limits that are never reached.
    pub const NONE: Self = Self { warn: u64::MAX, failure: u64::MAX, each_partition: false, each_rows: u64::MAX };
}

/// The live rows of a stream.
pub struct LiveRows<'a> {
    stream: &'a mut dyn PartitionStream,
    table: Arc<TableMetadata>,
    now: u32,
    limits: TombstoneLimits,
    /// Tombstones of earlier counts, if each partition or each number of rows is counted for
    /// itself.
    before: u64,
    scanned: Option<ScannedCounts>,
    warned: Vec<ScannedCounts>,
    rows: u64,
}

impl<'a> LiveRows<'a> {
    /// The data of `stream` that is live at `now` (seconds).
    pub fn new(
        stream: &'a mut dyn PartitionStream,
        table: Arc<TableMetadata>,
        now: u32,
        limits: TombstoneLimits,
    ) -> Self {
        Self { stream, table, now, limits, before: 0, scanned: None, warned: Vec::new(), rows: 0 }
    }

    /// The next partition, even if it has no live rows; a caller finds out by asking for a row.
    pub fn next_partition(&mut self) -> Result<Option<LivePartition>, ReadError> {
        let Some(head) = self.stream.next_partition()? else { return Ok(None) };
        self.end_if_full();
        match &mut self.scanned {
            Some(scanned) if !self.limits.each_partition => scanned.key.clone_from(&head.key),
            _ => self.begin(head.key.clone()),
        }
        let static_row = match head.static_row {
            Some(row) => self.live_row(*row)?,
            None => None,
        };
        Ok(Some(LivePartition { key: head.key, static_row }))
    }

    /// The next live row of the partition. None: there is no other.
    pub fn next_row(&mut self) -> Result<Option<LiveRow>, ReadError> {
        loop {
            match self.stream.next_unfiltered()? {
                None => return Ok(None),
                Some(Unfiltered::Marker(_)) => self.count(1)?,
                Some(Unfiltered::Row(row)) => {
                    if let Some(row) = self.live_row(row)? {
                        self.rows += 1;
                        self.end_if_full();
                        return Ok(Some(row));
                    }
                }
            }
            // behind one tombstone there are usually more
            self.pass_tombstones()?;
        }
    }

    fn pass_tombstones(&mut self) -> Result<(), ReadError> {
        loop {
            // count one more than is allowed, and no further
            let allowed =
                self.limits.failure.saturating_sub(self.scanned.as_ref().map_or(0, |scanned| scanned.tombstones));
            match self.stream.pass_tombstones(allowed.saturating_add(1))? {
                0 => return Ok(()),
                passed => self.count(passed)?,
            }
        }
    }

    fn begin(&mut self, key: DecoratedKey) {
        self.end();
        self.scanned = Some(ScannedCounts { key, tombstones: 0, live_rows: 0 });
    }

    fn end(&mut self) {
        let Some(scanned) = self.scanned.take() else { return };
        self.before += scanned.tombstones;
        if scanned.tombstones > self.limits.warn && self.warned.len() < WARNED_MAX {
            self.warned.push(scanned);
        }
    }

    /// Begins to count anew after the last live row that is counted together.
    fn end_if_full(&mut self) {
        let is_full = |scanned: &&ScannedCounts| scanned.live_rows >= self.limits.each_rows;
        if let Some(key) = self.scanned.as_ref().filter(is_full).map(|scanned| scanned.key.clone()) {
            self.begin(key);
        }
    }

    /// Number of tombstones passed so far.
    pub fn tombstones(&self) -> u64 {
        self.before + self.scanned.as_ref().map_or(0, |scanned| scanned.tombstones)
    }

    /// Number of live rows given so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The counts of the partitions or ranges that exceeded the warning threshold.
    pub fn finish(mut self) -> Vec<ScannedCounts> {
        self.end();
        self.warned
    }

    /// Adds the counts to the counters of a read.
    pub fn record(&self, stats: &ReadStats) {
        ReadStats::add(&stats.tombstones, self.tombstones());
        ReadStats::add(&stats.rows, self.rows);
    }

    fn count(&mut self, tombstones: u64) -> Result<(), ReadError> {
        let Some(scanned) = &mut self.scanned else { return Ok(()) };
        scanned.tombstones += tombstones;
        if scanned.tombstones > self.limits.failure {
            return Err(ReadError::TooManyTombstones(Box::new(TooManyTombstones {
                table: format!("{}.{}", self.table.keyspace, self.table.name),
                partition: types::literal::to_plain_text(&self.table.partition_key_type, &scanned.key.key),
                scanned: scanned.clone(),
                limit: self.limits.failure,
            })));
        }
        Ok(())
    }

    fn count_live(&mut self) {
        if let Some(scanned) = &mut self.scanned {
            scanned.live_rows += 1;
        }
    }

    fn live_row(&mut self, mut row: Row) -> Result<Option<Row>, ReadError> {
        let now = self.now;
        let is_deleted = !row.deletion.is_live();
        row.deletion = DeletionTime::LIVE;
        if self.table.is_liveness_strict() && !row.liveness.is_live(now) {
            // cells without their liveness are not a row of such a view
            self.count(1)?;
            return Ok(None);
        }
        let row_live = row.liveness.is_live(now);
        let is_expired = !row_live && !row.liveness.is_empty();
        if is_expired {
            row.liveness = crate::Liveness::EMPTY;
        }
        let (mut dead, mut collections) = (0, false);
        if row.columns.iter().any(|data| has_dead(data, now)) {
            row.columns.retain_mut(|data| match data {
                ColumnData::Simple(cell) => {
                    let live = cell.is_live(now);
                    dead += u64::from(!live);
                    live
                }
                ColumnData::Complex(complex) => {
                    collections |= !complex.deletion.is_live();
                    complex.deletion = DeletionTime::LIVE;
                    complex.cells.retain(|cell| {
                        let live = cell.is_live(now);
                        dead += u64::from(!live);
                        live
                    });
                    !complex.cells.is_empty()
                }
            });
        }
        let is_live = row_live || !row.columns.is_empty();
        if is_live {
            self.count_live();
        } else if dead == 0 {
            dead = u64::from(is_deleted || is_expired || collections);
        }
        if dead > 0 {
            self.count(dead)?;
        }
        Ok(is_live.then_some(row))
    }
}

/// The counts of a row of a table, without changing it: whether it has live data, and its number
/// of tombstones.
pub fn counted(row: &Row, table: &TableMetadata, now: u32) -> (bool, u64) {
    if table.is_liveness_strict() && !row.liveness.is_live(now) {
        return (false, 1);
    }
    let (mut live, mut dead, mut deleted) = (row.liveness.is_live(now), 0, !row.deletion.is_live());
    deleted |= !live && !row.liveness.is_empty();
    let mut cell = |is_live: bool| {
        live |= is_live;
        dead += u64::from(!is_live);
    };
    for data in &row.columns {
        match data {
            ColumnData::Simple(simple) => cell(simple.is_live(now)),
            ColumnData::Complex(complex) => {
                deleted |= !complex.deletion.is_live();
                complex.cells.iter().for_each(|one| cell(one.is_live(now)));
            }
        }
    }
    if !live && dead == 0 {
        dead = u64::from(deleted);
    }
    (live, dead)
}

fn has_dead(data: &ColumnData, now: u32) -> bool {
    match data {
        ColumnData::Simple(cell) => !cell.is_live(now),
        ColumnData::Complex(complex) => {
            !complex.deletion.is_live() || complex.cells.iter().any(|cell| !cell.is_live(now))
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use schema::ColumnId;

    use super::*;
    use crate::{Cell, ClusteringValues, Liveness};

    /// The counts of a row that `make` builds: live, tombstones.
    fn of(make: impl Fn(&mut Row)) -> (bool, u64) {
        let mut row = Row::new(ClusteringValues::new());
        make(&mut row);
        counted(&row, &crate::update::tests::table(), 1_000)
    }

    #[test]
    fn tombstones_of_a_row_count_as_cassandra_counts_them() {
        let deletion = DeletionTime::new(5, 900);
        let live = |column| Cell::live(ColumnId(column), 9, Bytes::from_static(b"v"));
        let dead = |column| Cell::tombstone(ColumnId(column), 9, 900);
        assert_eq!(of(|row| row.deletion = deletion), (false, 1));
        assert_eq!(of(|row| row.liveness = Liveness::expiring(9, 1, 900)), (false, 1));
        assert_eq!(of(|row| row.add_complex_deletion(ColumnId(1), deletion)), (false, 1));
        // a row or cell that is left or counted stands for the rest
        let deleted_and_live = |row: &mut Row| {
            row.deletion = deletion;
            row.add_cell(live(0));
        };
        assert_eq!(of(deleted_and_live), (true, 0));
        let deleted_cells = |row: &mut Row| {
            row.deletion = deletion;
            row.liveness = Liveness::expiring(9, 1, 900);
            row.add_cell(dead(0));
            row.add_cell(dead(1));
        };
        assert_eq!(of(deleted_cells), (false, 2));
        let one_of_two = |row: &mut Row| {
            row.add_cell(live(0));
            row.add_cell(dead(1));
        };
        assert_eq!(of(one_of_two), (true, 1));
        assert_eq!(of(|row| row.add_complex_deletion(ColumnId(1), deletion)), (false, 1));
        assert_eq!(of(|row| row.liveness = Liveness::new(9)), (true, 0));
    }
}
