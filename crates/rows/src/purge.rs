//! Leaves out of a compaction the tombstones and expired data that nothing needs any more.
//!
//! A deletion may go if it is older than gc_grace (`local_deletion_time < gc_before`) and could not
//! shadow data outside of the compaction (`timestamp < max_purgeable`). An expired cell that may
//! not go yet becomes a tombstone, dated back by its TTL. Agrees with
//! `org.apache.cassandra.db.partitions.PurgeFunction`, `AbstractCell.purge`.

use std::collections::BTreeSet;
use std::sync::Arc;

use schema::TableMetadata;
use types::DecoratedKey;

use crate::cell::NO_TTL;
use crate::codec::RowVisitor;
use crate::range_tombstones::marker_at;
use crate::{
    Cell, ColumnData, DeletionTime, Liveness, MaybeEncoded, PartitionHead, PartitionStream, RangeTombstoneMarker,
    ReadError, Row, Shown, Unfiltered,
};

/// Gives for a partition the smallest timestamp of data outside of the compaction. Deletions below
/// it may go.
pub type MaxPurgeable = Box<dyn Fn(&DecoratedKey) -> i64 + Send>;

/// A stream without the data that may go.
pub struct PurgeStream<S> {
    stream: S,
    now: u32,
    gc_before: u32,
    max_purgeable: MaxPurgeable,
    current: Option<i64>,
    key: Option<DecoratedKey>,
    /// Partitions whose deletions may go before gc_grace has ended.
    graceless: Arc<BTreeSet<DecoratedKey>>,
    is_graceless: bool,
    /// Whether a row without liveness is dead, whatever cells it has (`is_liveness_strict`).
    is_strict: bool,
}

impl<S: PartitionStream> PurgeStream<S> {
    /// Purges at the time `now` deletions from before `gc_before` (both in seconds).
    pub fn new(stream: S, now: u32, gc_before: u32, max_purgeable: MaxPurgeable) -> Self {
        let graceless = Arc::default();
        Self {
            stream,
            now,
            gc_before,
            max_purgeable,
            current: None,
            key: None,
            graceless,
            is_graceless: false,
            is_strict: false,
        }
    }

    /// Lets cells go with the liveness of their row, where those of the table are dead without it.
    pub fn of_table(self, table: &TableMetadata) -> Self {
        Self { is_strict: table.is_liveness_strict(), ..self }
    }

    /// Lets the deletions of these partitions go before gc_grace has ended.
    pub fn without_grace(self, graceless: Arc<BTreeSet<DecoratedKey>>) -> Self {
        Self { graceless, ..self }
    }

    fn should_purge(&mut self, timestamp: i64, local_deletion_time: u32) -> bool {
        if local_deletion_time >= self.gc_before && !self.is_graceless {
            return false;
        }
        let Some(key) = &self.key else { return false };
        let limit = *self.current.get_or_insert_with(|| (self.max_purgeable)(key));
        timestamp < limit
    }

    fn deletion(&mut self, deletion: DeletionTime) -> DeletionTime {
        let gone =
            !deletion.is_live() && self.should_purge(deletion.marked_for_delete_at, deletion.local_deletion_time);
        if gone { DeletionTime::LIVE } else { deletion }
    }

    fn cell(&mut self, cell: Cell) -> Option<Cell> {
        if cell.is_live(self.now) {
            return Some(cell);
        }
        if self.should_purge(cell.timestamp, cell.local_deletion_time) {
            return None;
        }
        if !cell.is_expiring() {
            return Some(cell);
        }
        let local_deletion_time = cell.local_deletion_time.saturating_sub(cell.ttl);
        if self.should_purge(cell.timestamp, local_deletion_time) {
            return None;
        }
        Some(Cell { ttl: NO_TTL, local_deletion_time, value: bytes::Bytes::new(), ..cell })
    }

    /// Whether nothing in the row is dead or deletes.
    fn is_untouched(&self, row: &Row) -> bool {
        let is_live = |data: &ColumnData| match data {
            ColumnData::Simple(cell) => cell.is_live(self.now),
            ColumnData::Complex(complex) => {
                complex.deletion.is_live() && complex.cells.iter().all(|cell| cell.is_live(self.now))
            }
        };
        row.deletion.is_live()
            && (row.liveness.is_empty() || row.liveness.is_live(self.now))
            && row.columns.iter().all(is_live)
    }

    fn row(&mut self, mut row: Row) -> Option<Row> {
        if self.is_untouched(&row) {
            return (!row.is_empty()).then_some(row);
        }
        row.deletion = self.deletion(row.deletion);
        let liveness = row.liveness;
        if !liveness.is_empty()
            && !liveness.is_live(self.now)
            && self.should_purge(liveness.timestamp, liveness.local_expiration_time)
        {
            row.liveness = Liveness::EMPTY;
        }
        if self.is_strict && row.liveness.is_empty() && row.deletion.is_live() {
            return None;
        }
        let columns = std::mem::take(&mut row.columns);
        row.columns.reserve(columns.len());
        for data in columns {
            match data {
                ColumnData::Simple(cell) => row.columns.extend(self.cell(cell).map(ColumnData::Simple)),
                ColumnData::Complex(mut complex) => {
                    complex.deletion = self.deletion(complex.deletion);
                    let cells = std::mem::take(&mut complex.cells);
                    complex.cells = cells.into_iter().filter_map(|cell| self.cell(cell)).collect();
                    if !complex.cells.is_empty() || !complex.deletion.is_live() {
                        row.columns.push(ColumnData::Complex(complex));
                    }
                }
            }
        }
        (!row.is_empty()).then_some(row)
    }

    fn marker(&mut self, marker: RangeTombstoneMarker) -> Option<RangeTombstoneMarker> {
        let mut keep = |deletion: Option<DeletionTime>| {
            deletion.map(|deletion| self.deletion(deletion)).filter(|deletion| !deletion.is_live())
        };
        let (close, open) = (keep(marker.close), keep(marker.open));
        marker_at(marker.position.values, marker.position.kind.side() < 0, close, open)
    }

    fn unfiltered(&mut self, unfiltered: Unfiltered) -> Option<Unfiltered> {
        match unfiltered {
            Unfiltered::Row(row) => self.row(row).map(Unfiltered::Row),
            Unfiltered::Marker(marker) => self.marker(marker).map(Unfiltered::Marker),
        }
    }
}

impl<S: PartitionStream> PartitionStream for PurgeStream<S> {
    /// Partitions that become empty are given too; the writer leaves them out.
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        // the head stays where it is
        let mut next = self.stream.next_partition();
        let Ok(Some(head)) = &mut next else { return next };
        self.is_graceless = self.graceless.contains(&head.key);
        self.key = Some(head.key.clone());
        self.current = None;
        head.deletion = self.deletion(head.deletion);
        let had_static_row = head.static_row.is_some();
        head.static_row = head.static_row.take().and_then(|row| self.row(*row)).map(Box::new);
        // a static row of which nothing is left takes the names of its columns with it
        head.names_statics &= head.static_row.is_some() == had_static_row;
        next
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        loop {
            let Some(unfiltered) = self.stream.next_unfiltered()? else { return Ok(None) };
            let kept = self.unfiltered(unfiltered);
            if kept.is_some() {
                return Ok(kept);
            }
        }
    }

    fn next_maybe_encoded(&mut self) -> Result<Option<MaybeEncoded>, ReadError> {
        loop {
            let Some(next) = self.stream.next_maybe_encoded()? else { return Ok(None) };
            let kept = match next {
                MaybeEncoded::Encoded(_) => Some(next),
                MaybeEncoded::Decoded(unfiltered) => self.unfiltered(unfiltered).map(MaybeEncoded::Decoded),
            };
            if kept.is_some() {
                return Ok(kept);
            }
        }
    }

    /// Nothing is dead in a row that is shown.
    fn show_encoded(&mut self, visitor: &mut dyn RowVisitor, most: usize) -> Result<Shown, ReadError> {
        self.stream.show_encoded(visitor, most)
    }
}
