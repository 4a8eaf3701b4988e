//! A stream without the data that other streams of its table delete. Garbage collection uses it to
//! leave out such data although the other streams stay as they are.
//!
//! Rows, cells and deletions are left out if a stronger deletion of the partition, a range or the
//! row in another stream covers them. With `cells`, cells that a later cell in another stream
//! replaces are left out too. Data that is only as strong as its counterpart stays; otherwise two
//! streams that are cleaned with the help of each other could both lose it. Range deletions are
//! left out only if a partition deletion covers them.
//!
//! Counters keep their cells, because each is a part of the sum. Agrees with
//! `CompactionIterator.{GarbageSkipper,GarbageSkippingUnfilteredRowIterator}` and
//! `Rows.removeShadowedCells`.

use std::cmp::Ordering;
use std::sync::Arc;

use schema::TableMetadata;
use types::DecoratedKey;

use crate::range_tombstones::marker_at;
use crate::{
    Cell, ColumnData, ComplexColumn, DeletionTime, PartitionHead, PartitionStream, RangeTombstoneMarker, ReadError,
    Row, Unfiltered,
};

/// Gives for a partition the other streams' data of it. None: nothing there could delete anything.
pub type ShadowSources = Box<dyn Fn(&DecoratedKey) -> Result<Option<Box<dyn PartitionStream>>, ReadError> + Send>;

/// A stream without the data that is deleted in other streams.
pub struct GarbageSkippingStream<S> {
    stream: S,
    table: Arc<TableMetadata>,
    sources: ShadowSources,
    cells: bool,
    shadow: Option<Shadow>,
}

/// The other streams' data of the current partition.
struct Shadow {
    stream: Box<dyn PartitionStream>,
    front: Option<Unfiltered>,
    partition: DeletionTime,
    /// The range deletion that is open before the next item.
    open: DeletionTime,
}

impl Shadow {
    fn deletion(&self) -> DeletionTime {
        self.partition.merge(self.open)
    }
}

impl<S: PartitionStream> GarbageSkippingStream<S> {
    /// `cells`: cells that are replaced are left out too.
    pub fn new(stream: S, table: Arc<TableMetadata>, sources: ShadowSources, cells: bool) -> Self {
        let cells = cells && !table.is_counter();
        Self { stream, table, sources, cells, shadow: None }
    }

    fn row(&mut self, mut row: Row) -> Result<Option<Row>, ReadError> {
        let Some(shadow) = &mut self.shadow else { return Ok(Some(row)) };
        let here = Unfiltered::Row(row);
        let mut order = Ordering::Less;
        while let Some(front) = &shadow.front {
            order = front.compare(&here, &self.table.comparator);
            if order != Ordering::Less {
                break;
            }
            if let Unfiltered::Marker(marker) = front {
                shadow.open = marker.open.unwrap_or(DeletionTime::LIVE);
            }
            shadow.front = shadow.stream.next_unfiltered()?;
        }
        let Unfiltered::Row(given) = here else { return Ok(None) };
        row = given;
        let beside = match &shadow.front {
            Some(Unfiltered::Row(beside)) if order == Ordering::Equal => Some(beside),
            _ => None,
        };
        let deletion = beside.map_or(shadow.deletion(), |beside| shadow.deletion().merge(beside.deletion));
        strip(&mut row, &deletion);
        if let Some(beside) = beside.filter(|_| self.cells) {
            strip_cells(&mut row, beside);
        }
        Ok((!row.is_empty()).then_some(row))
    }

    fn marker(&self, marker: RangeTombstoneMarker) -> Option<RangeTombstoneMarker> {
        let partition = self.shadow.as_ref().map_or(DeletionTime::LIVE, |shadow| shadow.partition);
        let keep = |deletion: Option<DeletionTime>| deletion.filter(|deletion| !partition.supersedes(deletion));
        let (close, open) = (keep(marker.close), keep(marker.open));
        marker_at(marker.position.values, marker.position.kind.side() < 0, close, open)
    }
}

/// Removes what a deletion covers, including the row's own deletion if it is weaker.
fn strip(row: &mut Row, deletion: &DeletionTime) {
    if deletion.is_live() {
        return;
    }
    if deletion.supersedes(&row.deletion) {
        row.deletion = DeletionTime::LIVE;
    }
    row.drop_shadowed(deletion);
}

/// Removes cells that cells of the other row replace.
fn strip_cells(row: &mut Row, beside: &Row) {
    row.columns.retain_mut(|data| match (beside.column(data.column()), data) {
        (Some(ColumnData::Simple(other)), ColumnData::Simple(cell)) => other.reconcile(cell) != Ordering::Greater,
        (Some(ColumnData::Complex(other)), ColumnData::Complex(complex)) => strip_complex(complex, other),
        _ => true,
    });
}

/// Returns false if nothing is left.
fn strip_complex(complex: &mut ComplexColumn, beside: &ComplexColumn) -> bool {
    if beside.deletion.supersedes(&complex.deletion) {
        complex.deletion = DeletionTime::LIVE;
    }
    let replaced = |cell: &Cell| {
        let mut same_path = beside.cells.iter().filter(|other| other.path == cell.path);
        beside.deletion.deletes(cell.timestamp) && !beside.deletion.is_live()
            || same_path.any(|other| other.reconcile(cell) == Ordering::Greater)
    };
    complex.cells.retain(|cell| !replaced(cell));
    !complex.cells.is_empty() || !complex.deletion.is_live()
}

impl<S: PartitionStream> PartitionStream for GarbageSkippingStream<S> {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        self.shadow = None;
        let Some(mut head) = self.stream.next_partition()? else { return Ok(None) };
        let Some(mut beside) = (self.sources)(&head.key)? else { return Ok(Some(head)) };
        let Some(other) = beside.next_partition()? else { return Ok(Some(head)) };
        if other.deletion.supersedes(&head.deletion) {
            head.deletion = DeletionTime::LIVE;
        }
        if let Some(row) = &mut head.static_row {
            let deletion = other.static_row.as_ref().map_or(other.deletion, |row| other.deletion.merge(row.deletion));
            strip(row, &deletion);
            if let Some(static_row) = other.static_row.as_ref().filter(|_| self.cells) {
                strip_cells(row, static_row);
            }
        }
        head.static_row = head.static_row.filter(|row| !row.is_empty());
        let front = beside.next_unfiltered()?;
        self.shadow = Some(Shadow { stream: beside, front, partition: other.deletion, open: DeletionTime::LIVE });
        Ok(Some(head))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        loop {
            let Some(unfiltered) = self.stream.next_unfiltered()? else { return Ok(None) };
            let kept = match unfiltered {
                Unfiltered::Row(row) => self.row(row)?.map(Unfiltered::Row),
                Unfiltered::Marker(marker) => self.marker(marker).map(Unfiltered::Marker),
            };
            if kept.is_some() {
                return Ok(kept);
            }
        }
    }
}
