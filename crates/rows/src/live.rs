//! What a query sees: rows without deletions and without what has expired. Counts the tombstones that it passes and
//! stops where they exceed the table's limit.

use std::sync::Arc;

use schema::{TableKind, TableMetadata};
use types::DecoratedKey;

use crate::command::ReadStats;
use crate::{ColumnData, DeletionTime, PartitionStream, ReadError, Row, Unfiltered};

/// A partition as a query sees it.
#[derive(Clone, PartialEq, Debug)]
pub struct LivePartition {
    /// Token and key.
    pub key: DecoratedKey,
    /// Static row with live cells only; None when there is none.
    pub static_row: Option<Row>,
}

/// A row with live cells only. Its liveness is kept (for what asks for it) where it is live.
pub type LiveRow = Row;

/// When a read has passed too many tombstones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TombstoneLimits {
    /// `tombstone_failure_threshold`.
    pub failure: u64,
}

impl TombstoneLimits {
    /// No limit.
    pub const NONE: Self = Self { failure: u64::MAX };
}

/// Live rows of a stream.
pub struct LiveRows<'a> {
    stream: &'a mut dyn PartitionStream,
    table: Arc<TableMetadata>,
    now: u32,
    limits: TombstoneLimits,
    tombstones: u64,
    rows: u64,
}

impl<'a> LiveRows<'a> {
    /// What is live in `stream` at `now` (seconds).
    pub fn new(
        stream: &'a mut dyn PartitionStream,
        table: Arc<TableMetadata>,
        now: u32,
        limits: TombstoneLimits,
    ) -> Self {
        Self { stream, table, now, limits, tombstones: 0, rows: 0 }
    }

    /// The next partition, whether or not it has live rows: a caller asks for a row to know.
    pub fn next_partition(&mut self) -> Result<Option<LivePartition>, ReadError> {
        let Some(head) = self.stream.next_partition()? else { return Ok(None) };
        if !head.deletion.is_live() {
            self.count(1)?;
        }
        let static_row = match head.static_row {
            Some(row) => self.live_row(row)?,
            None => None,
        };
        Ok(Some(LivePartition { key: head.key, static_row }))
    }

    /// The next live row of the partition.
    pub fn next_row(&mut self) -> Result<Option<LiveRow>, ReadError> {
        loop {
            match self.stream.next_unfiltered()? {
                None => return Ok(None),
                Some(Unfiltered::Marker(_)) => self.count(1)?,
                Some(Unfiltered::Row(row)) => {
                    if let Some(row) = self.live_row(row)? {
                        self.rows += 1;
                        return Ok(Some(row));
                    }
                }
            }
        }
    }

    /// Tombstones passed so far.
    pub fn tombstones(&self) -> u64 {
        self.tombstones
    }

    /// Live rows given so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds what was passed to the counters of a read.
    pub fn record(&self, stats: &ReadStats) {
        ReadStats::add(&stats.tombstones, self.tombstones);
        ReadStats::add(&stats.rows, self.rows);
    }

    fn count(&mut self, tombstones: u64) -> Result<(), ReadError> {
        self.tombstones += tombstones;
        if self.tombstones > self.limits.failure {
            return Err(ReadError::TooManyTombstones {
                table: format!("{}.{}", self.table.keyspace, self.table.name),
                tombstones: self.tombstones,
                live_rows: self.rows,
            });
        }
        Ok(())
    }

    fn live_row(&mut self, mut row: Row) -> Result<Option<Row>, ReadError> {
        let now = self.now;
        let mut dead = 0;
        if !row.deletion.is_live() {
            row.deletion = DeletionTime::LIVE;
            dead += 1;
        }
        let row_live = row.liveness.is_live(now);
        if row.liveness.is_gone_from_view() && self.table.kind == TableKind::View {
            // cells that it left are not a row
            self.count(1)?;
            return Ok(None);
        }
        if !row_live && !row.liveness.is_empty() {
            row.liveness = crate::Liveness::EMPTY;
            dead += 1;
        }
        if row.columns.iter().any(|data| has_dead(data, now)) {
            row.columns.retain_mut(|data| match data {
                ColumnData::Simple(cell) => {
                    let live = cell.is_live(now);
                    dead += u64::from(!live);
                    live
                }
                ColumnData::Complex(complex) => {
                    if !complex.deletion.is_live() {
                        complex.deletion = DeletionTime::LIVE;
                        dead += 1;
                    }
                    complex.cells.retain(|cell| {
                        let live = cell.is_live(now);
                        dead += u64::from(!live);
                        live
                    });
                    !complex.cells.is_empty()
                }
            });
        }
        if dead > 0 {
            self.count(dead)?;
        }
        Ok((row_live || !row.columns.is_empty()).then_some(row))
    }
}

fn has_dead(data: &ColumnData, now: u32) -> bool {
    match data {
        ColumnData::Simple(cell) => !cell.is_live(now),
        ColumnData::Complex(complex) => {
            !complex.deletion.is_live() || complex.cells.iter().any(|cell| !cell.is_live(now))
        }
    }
}
