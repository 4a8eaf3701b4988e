//! The part of the merge of all answers that each replica lacks, as a [`PartitionUpdate`] that
//! makes the replica's data equal to the merge.
//!
//! - The deletion of the partition, if the merge has a stronger one.
//! - Of each row what differs: liveness, row deletion, deletions of complex columns, cells.
//! - Range tombstones: wherever a range is open in the merge and not, or not the same, in the
//!   replica's answer, the merge's deletion for that stretch. A stretch begins and ends at a cut
//!   where one of the two changes. What the merge's partition deletion shadows is no range of it,
//!   so the update repeats nothing.
//!
//! A cell of a column that was fetched but not queried is never in an update: replicas send it
//! without its value, and writing it back would destroy the value. Deletions of such columns are.
//!
//! Must hold: [`Differences`] is told everything that the merge of the same answers gives, in
//! order. Agrees with `org.apache.cassandra.service.reads.repair.RowIteratorMergeListener` and
//! `db.rows.Rows.diff`.

use std::cmp::Ordering;
use std::sync::Arc;

use schema::TableMetadata;

use super::Answers;
use crate::range_tombstones::{as_end, as_start};
use crate::row::compare_paths;
use crate::{
    Bound, Cell, ClusteringPrefix, ColumnData, ColumnFilter, ComplexColumn, DeletionTime, PartitionHead,
    PartitionStream, PartitionUpdate, ReadError, Row, Slice, Unfiltered,
};

/// The data that each replica lacks.
pub(super) struct Differences {
    context: Context,
    replicas: Vec<Compared>,
    /// The range that is open in the merge behind the last item.
    open: DeletionTime,
    /// The place behind the last item of the current partition; None: it has none yet.
    last: Option<ClusteringPrefix>,
}

/// The parts of a comparison that all replicas have in common.
struct Context {
    table: Arc<TableMetadata>,
    reversed: bool,
    /// The columns whose values are known.
    queried: ColumnFilter,
}

/// The answer of one replica beside the merge.
struct Compared {
    stream: Box<dyn PartitionStream>,
    /// The next partition of the answer, until the merge reaches it; None: it was reached, or there
    /// is none.
    head: Option<PartitionHead>,
    /// Whether the answer stands in `head`, or at its end.
    is_ahead: bool,
    /// The next item of the current partition; None: there is none.
    front: Option<Unfiltered>,
    /// The range that is open in the answer before `front`.
    open: DeletionTime,
    /// The stretch of the merge's range that the replica lacks: its first cut in the direction of
    /// the read, and the deletion.
    lacking: Option<(ClusteringPrefix, DeletionTime)>,
    /// The update of the current partition; None before the first.
    update: Option<PartitionUpdate>,
    updates: Vec<PartitionUpdate>,
}

impl Differences {
    /// The differences between `answers` to a read. `queried`: the columns whose values are known.
    pub fn new(table: &Arc<TableMetadata>, answers: &[Answers], reversed: bool, queried: ColumnFilter) -> Self {
        let compared = |answers: &Answers| Compared {
            stream: answers.stream(),
            head: None,
            is_ahead: false,
            front: None,
            open: DeletionTime::LIVE,
            lacking: None,
            update: None,
            updates: Vec::new(),
        };
        let context = Context { table: Arc::clone(table), reversed, queried };
        Self { context, replicas: answers.iter().map(compared).collect(), open: DeletionTime::LIVE, last: None }
    }

    /// The merge has come to a partition.
    pub fn partition(&mut self, merged: &PartitionHead) -> Result<(), ReadError> {
        self.end_partition();
        self.replicas.iter_mut().try_for_each(|replica| replica.partition(&self.context, merged))
    }

    /// The merge has given an item of the partition.
    pub fn unfiltered(&mut self, merged: &Unfiltered) -> Result<(), ReadError> {
        let before = self.open;
        if let Unfiltered::Marker(marker) = merged {
            let entered = if self.context.reversed { marker.close } else { marker.open };
            self.open = entered.unwrap_or(DeletionTime::LIVE);
        }
        for replica in &mut self.replicas {
            replica.pass_up_to(&self.context, merged, before)?;
            match merged {
                Unfiltered::Row(row) => replica.row(&self.context, row)?,
                Unfiltered::Marker(marker) => replica.settle(&self.context, self.open, &marker.position),
            }
        }
        self.last = Some(behind(merged, self.context.reversed));
        Ok(())
    }

    /// The updates of each replica, in the order of the answers.
    pub fn finish(mut self) -> Vec<Vec<PartitionUpdate>> {
        self.end_partition();
        self.replicas.into_iter().map(|replica| replica.updates).collect()
    }

    /// Ends the current partition behind its last item: the reader may have stopped inside a range.
    fn end_partition(&mut self) {
        for replica in &mut self.replicas {
            if let Some(last) = &self.last {
                replica.settle(&self.context, DeletionTime::LIVE, last);
            }
            assert!(replica.lacking.is_none(), "a stretch that a replica lacks ends with its partition");
            replica.end_partition(self.context.reversed);
        }
        (self.open, self.last) = (DeletionTime::LIVE, None);
    }
}

impl Compared {
    fn partition(&mut self, context: &Context, merged: &PartitionHead) -> Result<(), ReadError> {
        while !self.is_ahead || self.head.as_ref().is_some_and(|head| head.key < merged.key) {
            self.head = self.stream.next_partition()?;
            self.is_ahead = true;
        }
        let own = self.head.take_if(|head| head.key == merged.key);
        if own.is_some() {
            self.is_ahead = false;
            self.front = self.stream.next_unfiltered()?;
        }
        let mut update = PartitionUpdate::new(Arc::clone(&context.table), merged.key.clone());
        let own_deletion = own.as_ref().map_or(DeletionTime::LIVE, |head| head.deletion);
        if merged.deletion.supersedes(&own_deletion) {
            update.deletion = merged.deletion;
        }
        if let Some(row) = &merged.static_row {
            update.static_row = context.lacking(row, own.as_ref().and_then(|head| head.static_row.as_deref()));
        }
        self.update = Some(update);
        Ok(())
    }

    /// Passes what the replica has before an item of the merge, and its markers at the same place.
    /// `merged_open`: the range that is open in the merge before the item.
    fn pass_up_to(&mut self, context: &Context, item: &Unfiltered, merged_open: DeletionTime) -> Result<(), ReadError> {
        loop {
            let order = match &self.front {
                Some(front) => context.order(front, item),
                None => return Ok(()),
            };
            match self.front.take_if(|front| passes(order, front)) {
                None => return Ok(()),
                // a row that the merge does not have is deleted there
                Some(Unfiltered::Row(_)) => {}
                Some(Unfiltered::Marker(marker)) => {
                    let entered = if context.reversed { marker.close } else { marker.open };
                    self.open = entered.unwrap_or(DeletionTime::LIVE);
                    if order == Ordering::Less {
                        self.settle(context, merged_open, &marker.position);
                    }
                }
            }
            self.front = self.stream.next_unfiltered()?;
        }
    }

    /// Compares the row of the merge with that of the replica, which stands in front if there is
    /// one.
    fn row(&mut self, context: &Context, merged: &Row) -> Result<(), ReadError> {
        let is_same = |front: &mut Unfiltered| {
            matches!(front, Unfiltered::Row(row)
                if context.table.comparator.compare_values(&row.clustering, &merged.clustering) == Ordering::Equal)
        };
        let own = self.front.take_if(is_same);
        if own.is_some() {
            self.front = self.stream.next_unfiltered()?;
        }
        let own = own.as_ref().and_then(|own| match own {
            Unfiltered::Row(row) => Some(row),
            Unfiltered::Marker(_) => None,
        });
        if let (Some(row), Some(update)) = (context.lacking(merged, own), &mut self.update) {
            update.rows.push(row);
        }
        Ok(())
    }

    /// At a cut: begins or ends the stretch of the merge's range, open behind the cut, that the
    /// replica lacks.
    fn settle(&mut self, context: &Context, merged_open: DeletionTime, cut: &ClusteringPrefix) {
        let wanted = (!merged_open.is_live() && merged_open != self.open).then_some(merged_open);
        if self.lacking.as_ref().map(|(_, deletion)| *deletion) == wanted {
            return;
        }
        if let (Some((first, deletion)), Some(update)) = (self.lacking.take(), &mut self.update) {
            let (start, end) = if context.reversed { (cut, &first) } else { (&first, cut) };
            let slice = Slice { start: as_start(start), end: as_end(end) };
            if !slice.is_empty(&context.table.comparator) {
                update.range_deletions.push((slice, deletion));
            }
        }
        self.lacking = wanted.map(|deletion| (cut.clone(), deletion));
    }

    fn end_partition(&mut self, reversed: bool) {
        (self.open, self.front) = (DeletionTime::LIVE, None);
        let Some(mut update) = self.update.take().filter(|update| !update.is_empty()) else { return };
        if reversed {
            update.rows.reverse();
            update.range_deletions.reverse();
        }
        self.updates.push(update);
    }
}

/// Whether an item of a replica is passed on the way to one of the merge, of which it stands
/// `order`: everything before, and markers at the same place.
fn passes(order: Ordering, item: &Unfiltered) -> bool {
    order == Ordering::Less || (order == Ordering::Equal && matches!(item, Unfiltered::Marker(_)))
}

/// The place right behind an item in the direction of the read.
fn behind(item: &Unfiltered, reversed: bool) -> ClusteringPrefix {
    match item {
        Unfiltered::Row(row) if reversed => Bound::start(row.clustering.clone(), true),
        Unfiltered::Row(row) => Bound::end(row.clustering.clone(), true),
        Unfiltered::Marker(marker) => marker.position.clone(),
    }
}

impl Context {
    /// The order of two items in the direction of the read.
    fn order(&self, a: &Unfiltered, b: &Unfiltered) -> Ordering {
        let order = a.compare(b, &self.table.comparator);
        if self.reversed { order.reverse() } else { order }
    }

    /// The part of the merged row that `own`, a replica's version of it, lacks; None: nothing.
    fn lacking(&self, merged: &Row, own: Option<&Row>) -> Option<Row> {
        let mut row = Row::new(merged.clustering.clone());
        if own.is_none_or(|own| own.liveness != merged.liveness) {
            row.liveness = merged.liveness;
        }
        if own.is_none_or(|own| own.deletion != merged.deletion) {
            row.deletion = merged.deletion;
        }
        let columns = merged.columns.iter().filter_map(|data| {
            let own = own.and_then(|own| own.column(data.column()));
            self.lacking_column(data, own)
        });
        row.columns = columns.collect();
        (!row.is_empty()).then_some(row)
    }

    fn lacking_column(&self, merged: &ColumnData, own: Option<&ColumnData>) -> Option<ColumnData> {
        let is_queried = self.queried.includes(merged.column());
        match merged {
            ColumnData::Simple(cell) => {
                let is_same = matches!(own, Some(ColumnData::Simple(own)) if own == cell);
                (is_queried && !is_same).then(|| ColumnData::Simple(cell.clone()))
            }
            ColumnData::Complex(complex) => {
                let own = match own {
                    Some(ColumnData::Complex(own)) => Some(&**own),
                    _ => None,
                };
                let deletion = match own {
                    Some(own) if own.deletion == complex.deletion => DeletionTime::LIVE,
                    _ => complex.deletion,
                };
                let cells = if is_queried { self.lacking_cells(complex, own) } else { Vec::new() };
                let is_empty = cells.is_empty() && deletion.is_live();
                let lacking = ComplexColumn { column: complex.column, deletion, cells };
                (!is_empty).then(|| ColumnData::Complex(Box::new(lacking)))
            }
        }
    }

    /// The cells of a complex column that a replica does not have like this. Both are in the order
    /// of their paths.
    fn lacking_cells(&self, merged: &ComplexColumn, own: Option<&ComplexColumn>) -> Vec<Cell> {
        let Some(ty) = self.table.type_of(merged.column) else { return Vec::new() };
        let path = |cell: &Cell| cell.path.clone().unwrap_or_default();
        let mut own = own.map_or(&[][..], |own| &own.cells[..]).iter().peekable();
        let mut lacking = Vec::new();
        for cell in &merged.cells {
            let order = |other: &Cell| compare_paths(ty, &path(other), &path(cell));
            while own.next_if(|other| order(other) == Ordering::Less).is_some() {}
            if own.next_if(|other| order(other) == Ordering::Equal) != Some(cell) {
                lacking.push(cell.clone());
            }
        }
        lacking
    }
}
