//! Materialized views: the changes of a view that follow from a change of its base table.
//!
//! A pure function: the rows of a partition of the base before a write ([`Changes::row`]'s
//! `before`) and after it, and the definition of a view ([`View`]) in; updates of the view's
//! partitions out. Reading the rows from before, holding others off meanwhile and applying the
//! result are not here (`storage::materialized`, `cluster::replica::views`).
//!
//! A base row has at most one entry in a view: the row of the view whose key is made of its values.
//! A change of the base row does this to the entry:
//!
//! | before | after | the entry |
//! |---|---|---|
//! | none | none | nothing |
//! | none | is in the view | is made, with all columns |
//! | in the view | none | its liveness ends; a row deletion of the base is repeated |
//! | in the view | same key | gets the columns that differ |
//! | in the view | another key | the new one is made, the old one ends |
//!
//! Cells and deletions of rows keep the timestamps that they have in the base. The liveness of an
//! entry is computed, in three cases:
//! - the keys of both tables have the same columns and all columns are selected: the base's;
//! - the same key, and columns are left out: a column that is left out may be all that keeps the
//!   base row alive, so the latest such cell counts as liveness;
//! - a regular column of the base is in the key of the view: that of its cell.
//!
//! The liveness of an entry ends by one that is marked as expired (`Liveness::EXPIRED_TTL`), not by
//! a tombstone: a tombstone would hide what the base still has with an older timestamp.
//!
//! By timestamps alone the two last cases can leave an entry in the wrong state, since several
//! cells of the base compete there for one liveness ([`Entry::is_certain`]). Who has the entry as
//! it is at hand corrects it by [`settle`]. Cassandra does not; its views drift there.
//!
//! Agrees with `org.apache.cassandra.db.view.{View,ViewUpdateGenerator,TableViews}`.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use schema::{ColumnId, ColumnKind, TableMetadata};
use types::DecoratedKey;

use crate::clustering::compare_prefixes;
use crate::range_tombstones::prefix_key;
use crate::row::compare_paths;
use crate::{
    Cell, ClusteringPrefix, ClusteringValues, ColumnData, ComplexColumn, DeletionTime, Liveness, PartitionStream,
    PartitionUpdate, PrefixKind, RangeTombstoneList, ReadError, Row, Slice, Slices, Unfiltered,
};

/// The WHERE of a view.
pub trait ViewFilter: Send + Sync {
    /// Whether a row of the base with this key may be in the view.
    fn selects(&self, key: &DecoratedKey, clustering: &[Option<Bytes>]) -> bool;

    /// Whether the other columns of a row let it be in the view.
    fn matches(&self, key: &DecoratedKey, row: &Row, now: u32) -> bool;
}

/// The place in a base row from which a column of the view's key has its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Source {
    /// A component of the partition key.
    Partition(usize),
    /// A clustering value.
    Clustering(usize),
    /// The cell of a regular column.
    Cell(ColumnId),
}

/// A view, ready to be maintained.
pub struct View {
    /// The table that is shown.
    pub base: Arc<TableMetadata>,
    /// The view.
    pub table: Arc<TableMetadata>,
    partition: Vec<Source>,
    clustering: Vec<Source>,
    /// The regular column of the base that is in the key of the view; None: the keys of both have
    /// the same columns.
    extra_key_column: Option<ColumnId>,
    /// The regular columns of the view by their ids in the base, ascending.
    columns: Vec<(ColumnId, ColumnId)>,
    /// Whether a regular column of the base is not in the view.
    leaves_out: bool,
    filter: Arc<dyn ViewFilter>,
}

impl View {
    /// A view of `base`. None: a column of the view is not in the base, or its key is none that a
    /// view can have.
    pub fn new(base: &Arc<TableMetadata>, table: &Arc<TableMetadata>, filter: Arc<dyn ViewFilter>) -> Option<Self> {
        let source = |name: &str| {
            let column = base.column_by_name(name)?;
            Some(match column.kind {
                ColumnKind::PartitionKey => Source::Partition(column.position),
                ColumnKind::Clustering => Source::Clustering(column.position),
                ColumnKind::Regular if !column.is_complex() => Source::Cell(column.id),
                ColumnKind::Regular | ColumnKind::Static => return None,
            })
        };
        let partition: Vec<Source> =
            table.partition_key.iter().map(|column| source(&column.name)).collect::<Option<_>>()?;
        let clustering: Vec<Source> =
            table.clustering.iter().map(|column| source(&column.name)).collect::<Option<_>>()?;
        let mut cells = partition.iter().chain(&clustering).filter_map(|source| match source {
            Source::Cell(id) => Some(*id),
            Source::Partition(_) | Source::Clustering(_) => None,
        });
        let (beyond, second) = (cells.next(), cells.next());
        if second.is_some() {
            return None;
        }
        let of_base = |name: &str| base.column_by_name(name).filter(|column| column.kind == ColumnKind::Regular);
        let mut columns: Vec<(ColumnId, ColumnId)> = table
            .regulars
            .iter()
            .map(|column| {
                let of_base = of_base(&column.name)?;
                (of_base.is_complex() == column.is_complex()).then_some((of_base.id, column.id))
            })
            .collect::<Option<_>>()?;
        columns.sort_unstable();
        let leaves_out = base.regulars.len() > columns.len() + usize::from(beyond.is_some());
        Some(Self {
            base: Arc::clone(base),
            table: Arc::clone(table),
            partition,
            clustering,
            extra_key_column: beyond,
            columns,
            leaves_out,
            filter,
        })
    }

    /// Whether rows with this key may be in the view.
    pub fn selects(&self, key: &DecoratedKey, clustering: &[Option<Bytes>]) -> bool {
        self.filter.selects(key, clustering)
    }

    /// Bytes that the entries of a base row take in the view, or slightly more, beside the keys of
    /// their partitions, where the base has no columns of the row but these. A row that moves in
    /// the view has two entries, of which the one that ends needs no values.
    pub fn room_of(&self, row: &Row) -> usize {
        let ended = self.extra_key_column.map(|beyond| row.encoded_room_of(|column| column == beyond));
        row.encoded_room_of(|column| !self.is_left_out(column)) + ended.unwrap_or(0)
    }

    fn column_of(&self, base: ColumnId) -> Option<ColumnId> {
        self.columns.binary_search_by_key(&base, |(base, _)| *base).ok().map(|index| self.columns[index].1)
    }

    /// Whether a column of the base is neither in the view nor in its key.
    fn is_left_out(&self, base: ColumnId) -> bool {
        self.extra_key_column != Some(base) && self.column_of(base).is_none() && self.base.column(base).is_some()
    }

    fn extra_key_cell<'r>(&self, row: Option<&'r Row>) -> Option<&'r Cell> {
        match row?.column(self.extra_key_column?)? {
            ColumnData::Simple(cell) => Some(cell),
            ColumnData::Complex(_) => None,
        }
    }

    fn matches(&self, key: &DecoratedKey, row: &Row, now: u32) -> bool {
        self.filter.selects(key, &row.clustering) && self.filter.matches(key, row, now)
    }
}

/// A change of one row of a view.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// The partition of the view.
    pub key: DecoratedKey,
    /// The change.
    pub row: Row,
    /// The liveness that the entry must have once the change is applied; None: it must not be live
    /// by its liveness.
    pub wanted: Option<Liveness>,
    /// Whether timestamps alone bring the entry to the liveness that is wanted. False: see
    /// [`settle`].
    pub is_certain: bool,
}

/// The changes of one view that follow from changes of rows of one partition of its base.
pub struct Changes<'a> {
    view: &'a View,
    key: &'a DecoratedKey,
    components: Vec<Bytes>,
    now: u32,
    entries: Vec<Entry>,
}

/// The fate of the entry of a base row.
enum Action {
    Nothing,
    Make,
    End,
    Update,
    Switch,
}

impl<'a> Changes<'a> {
    /// No changes yet, of the partition `key` of the base, at `now` (seconds).
    pub fn new(view: &'a View, key: &'a DecoratedKey, now: u32) -> Self {
        let components = match view.base.partition_key.len() {
            1 => vec![key.key.clone()],
            count => {
                let components = types::composite::decompose(&key.key, count);
                components.unwrap_or_default().into_iter().map(|component| key.key.slice_ref(component)).collect()
            }
        };
        Self { view, key, components, now, entries: Vec::new() }
    }

    /// A row of the base before and after a write. Deletions of ranges and of the partition are
    /// part of both as deletions of the row. `before` is None where nothing is known of the row.
    pub fn row(&mut self, before: Option<&Row>, after: &Row) {
        let is_whole = |row: &Row| row.clustering.iter().all(Option::is_some);
        if after.is_empty() || self.components.len() != self.view.base.partition_key.len() || !is_whole(after) {
            // a row of a COMPACT STORAGE table without all of its clustering is in no view
            return;
        }
        match (self.action(before, after), before) {
            (Action::Nothing, _) => {}
            (Action::Make, _) => self.make(before, after),
            (Action::End, Some(before)) => self.end(before, after),
            (Action::Update, Some(before)) => self.update(before, after),
            (Action::Switch, Some(before)) => {
                self.make(Some(before), after);
                self.end(before, after);
            }
            (Action::End | Action::Update | Action::Switch, None) => unreachable!("an entry has its row"),
        }
    }

    /// A row of the base that was written before the view was there, or that may be in the view
    /// already.
    pub fn existing(&mut self, row: &Row) {
        let is_live = |cell: Option<&Cell>| cell.is_some_and(|cell| cell.is_live(self.now));
        let is_shown = match self.view.extra_key_column {
            None => row.is_live(self.now),
            Some(_) => is_live(self.view.extra_key_cell(Some(row))),
        };
        if is_shown && row.clustering.iter().all(Option::is_some) {
            self.make(Some(row), row);
        }
    }

    /// The changes, each of one row of the view.
    pub fn finish(self) -> Vec<Entry> {
        self.entries
    }

    fn action(&self, before: Option<&Row>, after: &Row) -> Action {
        let now = self.now;
        let is_live = |cell: Option<&Cell>| cell.is_some_and(|cell| cell.is_live(now));
        if self.view.extra_key_column.is_none() {
            let was_live = before.is_some_and(|row| row.is_live(now));
            return match (was_live, after.is_live(now)) {
                (true, true) => Action::Update,
                (true, false) => Action::End,
                (false, true) => Action::Make,
                (false, false) => Action::Nothing,
            };
        }
        let (old, new) = (self.view.extra_key_cell(before), self.view.extra_key_cell(Some(after)));
        match (is_live(old), is_live(new)) {
            (false, false) => Action::Nothing,
            (false, true) => Action::Make,
            (true, false) => Action::End,
            (true, true) => {
                let is_same = self.view.extra_key_column.and_then(|id| self.view.base.type_of(id)).is_some_and(|ty| {
                    old.zip(new).is_some_and(|(old, new)| types::compare(ty, &old.value, &new.value).is_eq())
                });
                if is_same { Action::Update } else { Action::Switch }
            }
        }
    }

    fn make(&mut self, before: Option<&Row>, after: &Row) {
        if !self.view.matches(self.key, after, self.now) {
            return;
        }
        let liveness = self.liveness_of(after);
        let is_certain = match self.view.extra_key_column {
            // nothing was there that could have left an entry
            _ if before.is_none() => true,
            None => !self.view.leaves_out,
            // a value comes back only with a later timestamp, or with an end at the same one
            Some(_) => !self.is_expiring(before, after),
        };
        let columns = after.columns.iter().filter_map(|data| self.shown(data)).collect();
        self.submit(after, liveness, after.deletion, columns, Some(liveness), is_certain);
    }

    fn update(&mut self, before: &Row, after: &Row) {
        if !self.view.matches(self.key, before, self.now) {
            return self.make(Some(before), after);
        }
        if !self.view.matches(self.key, after, self.now) {
            return self.end_entry(before, after);
        }
        let (liveness, old) = (self.liveness_of(after), self.liveness_of(before));
        let is_certain = match self.view.extra_key_column {
            None => !self.view.leaves_out || (liveness == old && before.liveness == after.liveness),
            Some(_) => !self.is_expiring(Some(before), after),
        };
        let columns = self.differing(before, after);
        self.submit(after, liveness, after.deletion, columns, Some(liveness), is_certain);
    }

    fn end(&mut self, before: &Row, after: &Row) {
        if self.view.matches(self.key, before, self.now) {
            self.end_entry(before, after);
        }
    }

    fn end_entry(&mut self, before: &Row, after: &Row) {
        let timestamp = self.timestamp_of_end(before, after);
        assert!(timestamp >= after.deletion.marked_for_delete_at, "an entry ends with its base row at the latest");
        // the deletion of the row alone does it otherwise
        let liveness = match timestamp > after.deletion.marked_for_delete_at {
            true => Liveness::expiring(timestamp, Liveness::EXPIRED_TTL, self.now),
            false => Liveness::EMPTY,
        };
        let is_certain = match self.view.extra_key_column {
            None => !self.view.leaves_out,
            Some(_) => !self.is_expiring(Some(before), after),
        };
        let columns = self.differing(before, after);
        self.submit(before, liveness, after.deletion, columns, None, is_certain);
    }

    /// Whether the cell that is in the key of the view has or had a TTL: at one timestamp a value
    /// may come back only so.
    fn is_expiring(&self, before: Option<&Row>, after: &Row) -> bool {
        let cells = [self.view.extra_key_cell(before), self.view.extra_key_cell(Some(after))];
        cells.into_iter().flatten().any(Cell::is_expiring)
    }

    /// The liveness of the entry of a base row that has one.
    fn liveness_of(&self, row: &Row) -> Liveness {
        let view = self.view;
        if let Some(cell) = view.extra_key_cell(Some(row)) {
            return Liveness::expiring(cell.timestamp, cell.ttl, cell.local_deletion_time);
        }
        if !view.leaves_out {
            return row.liveness;
        }
        let (mut timestamp, mut stays, mut last): (i64, bool, Option<&Cell>) = (row.liveness.timestamp, false, None);
        for cell in self.left_out(row).filter(|cell| cell.is_live(self.now)) {
            timestamp = timestamp.max(cell.timestamp);
            match cell.is_expiring() {
                false => stays = true,
                true if last.is_none_or(|last| cell.local_deletion_time > last.local_deletion_time) => {
                    last = Some(cell)
                }
                true => {}
            }
        }
        let is_live = row.liveness.is_live(self.now);
        if stays || (is_live && !row.liveness.is_expiring()) {
            return Liveness::new(timestamp);
        }
        match last {
            Some(cell) if !is_live || cell.local_deletion_time > row.liveness.local_expiration_time => {
                Liveness::expiring(timestamp, cell.ttl, cell.local_deletion_time)
            }
            _ => row.liveness,
        }
    }

    fn timestamp_of_end(&self, before: &Row, after: &Row) -> i64 {
        let deletion = after.deletion;
        if self.view.extra_key_column.is_some() {
            let timestamp = self.view.extra_key_cell(Some(before)).map_or(i64::MIN, |cell| cell.timestamp);
            return if deletion.deletes(timestamp) { deletion.marked_for_delete_at } else { timestamp };
        }
        let timestamp = deletion.marked_for_delete_at.max(before.liveness.timestamp);
        if !self.view.leaves_out {
            return timestamp;
        }
        self.left_out(before).map(|cell| cell.timestamp).fold(timestamp, i64::max)
    }

    /// The cells of columns that the view does not show.
    fn left_out<'r>(&'r self, row: &'r Row) -> impl Iterator<Item = &'r Cell> {
        let columns = row.columns.iter().filter(|data| self.view.is_left_out(data.column()));
        columns.flat_map(|data| match data {
            ColumnData::Simple(cell) => std::slice::from_ref(cell),
            ColumnData::Complex(complex) => complex.cells.as_slice(),
        })
    }

    /// The data of a column as the view has it; None: the view does not show it.
    fn shown(&self, data: &ColumnData) -> Option<ColumnData> {
        let column = self.view.column_of(data.column())?;
        let moved = |cell: &Cell| Cell { column, ..cell.clone() };
        Some(match data {
            ColumnData::Simple(cell) => ColumnData::Simple(moved(cell)),
            ColumnData::Complex(complex) => ColumnData::Complex(Box::new(ComplexColumn {
                column,
                deletion: complex.deletion,
                cells: complex.cells.iter().map(moved).collect(),
            })),
        })
    }

    /// The data of `after` that `before` does not have, as the view has it.
    fn differing(&self, before: &Row, after: &Row) -> Vec<ColumnData> {
        let differing = after.columns.iter().filter_map(|data| match (data, before.column(data.column())) {
            (_, None) => self.shown(data),
            (new, Some(old)) if new == old => None,
            (ColumnData::Complex(new), Some(ColumnData::Complex(old))) => {
                let part = ColumnData::Complex(Box::new(self.differing_cells(old, new)?));
                self.shown(&part)
            }
            (_, Some(_)) => self.shown(data),
        });
        differing.collect()
    }

    fn differing_cells(&self, old: &ComplexColumn, new: &ComplexColumn) -> Option<ComplexColumn> {
        let ty = self.view.base.type_of(new.column)?;
        let path = |cell: &Cell| cell.path.clone().unwrap_or_default();
        let is_old = |cell: &Cell| {
            let found = old.cells.binary_search_by(|other| compare_paths(ty, &path(other), &path(cell)));
            found.is_ok_and(|index| old.cells[index] == *cell)
        };
        let deletion = if new.deletion.supersedes(&old.deletion) { new.deletion } else { DeletionTime::LIVE };
        let cells: Vec<Cell> = new.cells.iter().filter(|cell| !is_old(cell)).cloned().collect();
        let is_empty = deletion.is_live() && cells.is_empty();
        (!is_empty).then_some(ComplexColumn { column: new.column, deletion, cells })
    }

    /// Adds a change of the entry of the base row `of`.
    fn submit(
        &mut self,
        of: &Row,
        liveness: Liveness,
        deletion: DeletionTime,
        mut columns: Vec<ColumnData>,
        wanted: Option<Liveness>,
        is_certain: bool,
    ) {
        columns.sort_unstable_by_key(ColumnData::column);
        let Some((key, clustering)) = self.place(of) else { return };
        let mut row = Row { clustering, liveness, deletion, columns };
        if !deletion.is_live() {
            row.drop_shadowed(&deletion);
        }
        if row.is_empty() && is_certain {
            return;
        }
        let wanted = wanted.filter(|liveness| liveness.is_live(self.now));
        self.entries.push(Entry { key, row, wanted, is_certain });
    }

    /// The key of the entry of a base row. None: a value of it is not there.
    fn place(&self, row: &Row) -> Option<(DecoratedKey, ClusteringValues)> {
        let value = |source: &Source| match *source {
            Source::Partition(position) => self.components.get(position).cloned(),
            Source::Clustering(position) => row.clustering.get(position).cloned().flatten(),
            Source::Cell(_) => self.view.extra_key_cell(Some(row)).map(|cell| cell.value.clone()),
        };
        let partition: Vec<Bytes> = self.view.partition.iter().map(value).collect::<Option<_>>()?;
        let clustering: ClusteringValues =
            self.view.clustering.iter().map(|source| value(source).map(Some)).collect::<Option<_>>()?;
        let key = match partition.as_slice() {
            [only] => only.clone(),
            components => {
                let components: Vec<&[u8]> = components.iter().map(AsRef::as_ref).collect();
                Bytes::from(types::composite::compose(&components).ok()?)
            }
        };
        // a key that cannot be stored is refused when the base is written. An empty one can: it is
        // the key of the rows whose value is empty
        (key.len() <= usize::from(u16::MAX)).then(|| (self.view.table.decorate(key), clustering))
    }
}

/// The rows of a partition of the base that have to be known to tell what an update changes in its
/// views.
pub fn affected_rows(update: &PartitionUpdate) -> Slices {
    if !update.deletion.is_live() || update.table.clustering.is_empty() {
        return Slices::all();
    }
    let of_rows = update.rows.iter().map(|row| Slice::of_prefix(row.clustering.clone()));
    let of_ranges = update.range_deletions.iter().map(|(slice, _)| slice.clone());
    Slices::normalized(of_rows.chain(of_ranges).collect(), &update.table.comparator)
}

/// The deletions of the partition and of ranges in an update.
pub struct CoveringDeletions<'u> {
    update: &'u PartitionUpdate,
    ranges: RangeTombstoneList,
}

impl<'u> CoveringDeletions<'u> {
    /// The deletions of an update.
    pub fn of(update: &'u PartitionUpdate) -> Self {
        let mut ranges = RangeTombstoneList::new();
        for (slice, deletion) in &update.range_deletions {
            ranges.insert(&update.table.comparator, slice.clone(), *deletion);
        }
        Self { update, ranges }
    }

    /// A row of the update, with the strongest deletion over it as its own.
    pub fn apply_to(&self, row: Row) -> Row {
        let deletion = self.deletion_of(&row);
        with_row_deletion(row, deletion)
    }

    /// The strongest of them over a row.
    pub fn deletion_of(&self, row: &Row) -> DeletionTime {
        let Self { update, ranges } = self;
        match ranges.is_empty() {
            true => update.deletion,
            false => {
                let key = prefix_key(&update.table.comparator, &row.clustering, PrefixKind::Clustering);
                update.deletion.merge(ranges.deletion_at(&key))
            }
        }
    }
}

/// A row under the deletion of a range or of the partition, as if it were its own.
fn with_row_deletion(mut row: Row, covering: DeletionTime) -> Row {
    row.deletion = row.deletion.merge(covering);
    if !row.deletion.is_live() {
        let deletion = row.deletion;
        row.drop_shadowed(&deletion);
    }
    row
}

/// Why the changes of views that follow from an update are not computed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ViewChangesError {
    /// The rows as they are cannot be read.
    Read(ReadError),
    /// The changes are more than the caller takes, and follow from several rows.
    TooLarge,
}

impl From<ReadError> for ViewChangesError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

/// Bytes of an entry beside its clustering and its values, or fewer.
const ENTRY_BYTES_MIN: usize = 2;

/// The changes of views that follow from an update of one partition of their base. `stored` has the
/// present [`affected_rows`]. In the order of `views`. `size` grows by the bytes of the changes,
/// or fewer; where it passes `size_max`, changes of several rows are given up, since those of a
/// wide partition might not fit into memory.
pub fn of_update(
    views: &[Arc<View>],
    update: &PartitionUpdate,
    stored: &mut dyn PartitionStream,
    now: u32,
    size: &mut usize,
    size_max: usize,
) -> Result<Vec<Vec<Entry>>, ViewChangesError> {
    let mut changes: Vec<Changes<'_>> = views.iter().map(|view| Changes::new(view, &update.key, now)).collect();
    let comparator = &update.table.comparator;
    let deletions = CoveringDeletions::of(update);
    let size_of = |entry: &Entry| if entry.row.is_empty() { 0 } else { ENTRY_BYTES_MIN + entry.row.data_size() };
    let mut rows = 0_usize;
    let mut tell = |before: Option<&Row>, after: &Row| {
        let former = *size;
        for change in &mut changes {
            if change.view.selects(&update.key, &after.clustering) {
                let known = change.entries.len();
                change.row(before, after);
                *size += change.entries[known..].iter().map(size_of).sum::<usize>();
            }
        }
        rows += usize::from(*size > former);
        if rows > 1 && *size > size_max { Err(ViewChangesError::TooLarge) } else { Ok(()) }
    };
    // a row that is written, beside what was there of it
    let mut written = |before: Option<Row>, covering: DeletionTime, row: &Row| {
        let before = match before {
            Some(before) => Some(with_row_deletion(before, covering)),
            None if covering.is_live() => None,
            None => Some(Row { deletion: covering, ..Row::new(row.clustering.clone()) }),
        };
        let mut after = before.clone().unwrap_or_else(|| Row::new(row.clustering.clone()));
        after.merge(row.clone(), &update.table);
        let after = with_row_deletion(after, deletions.deletion_of(row));
        // a deletion that every row has obeyed before would change the entries of all of them again
        let is_untouched = row.is_empty() && before.as_ref() == Some(&after);
        if is_untouched { Ok(()) } else { tell(before.as_ref(), &after) }
    };
    let mut next = update.rows.iter().peekable();
    let (mut of_partition, mut open) = (DeletionTime::LIVE, DeletionTime::LIVE);
    if let Some(head) = stored.next_partition()? {
        of_partition = head.deletion;
        while let Some(unfiltered) = stored.next_unfiltered()? {
            let position = match &unfiltered {
                Unfiltered::Row(row) => ClusteringPrefix::row(row.clustering.clone()),
                Unfiltered::Marker(marker) => marker.position.clone(),
            };
            let precedes = |row: &&Row| {
                let of_row = (PrefixKind::Clustering, &row.clustering);
                compare_prefixes(comparator, of_row.0, of_row.1, position.kind, &position.values).is_lt()
            };
            while let Some(row) = next.next_if(|row| precedes(row)) {
                written(None, of_partition.merge(open), row)?;
            }
            match unfiltered {
                Unfiltered::Marker(marker) => open = marker.open.unwrap_or(DeletionTime::LIVE),
                Unfiltered::Row(row) => {
                    let is_same = |other: &&Row| comparator.compare_values(&other.clustering, &row.clustering).is_eq();
                    match next.next_if(|other| is_same(other)) {
                        Some(other) => written(Some(row), of_partition.merge(open), other)?,
                        None => {
                            let empty = Row::new(row.clustering.clone());
                            written(Some(row), of_partition.merge(open), &empty)?;
                        }
                    }
                }
            }
        }
    }
    for row in next {
        written(None, of_partition, row)?;
    }
    Ok(changes.into_iter().map(Changes::finish).collect())
}

/// Corrects the change of an entry so that the entry has the liveness that it must have: `stored`
/// is the entry as it is, None if there is nothing of it. Only liveness changes, and only its
/// timestamp is chosen: no cell is touched. An entry that ended at the greatest timestamp stays
/// as it is, since nothing can be later; so it is in Cassandra.
pub fn settle(entry: &mut Entry, view: &View, stored: Option<Row>, now: u32) {
    let after = |change: &Row| {
        let mut merged = stored.clone().unwrap_or_else(|| Row::new(change.clustering.clone()));
        merged.merge(change.clone(), &view.table);
        merged
    };
    let merged = after(&entry.row);
    let found = merged.liveness;
    let ends_alike = |wanted: Liveness| {
        found.is_live(now)
            && found.is_expiring() == wanted.is_expiring()
            && (!wanted.is_expiring() || found.local_expiration_time == wanted.local_expiration_time)
    };
    let is_right = match entry.wanted {
        Some(wanted) => ends_alike(wanted),
        None => !found.is_live(now),
    };
    entry.is_certain = true;
    if is_right {
        return;
    }
    // later than the liveness that is there and than the deletion of the row
    let last = found.timestamp.max(merged.deletion.marked_for_delete_at);
    let timestamp = last.saturating_add(1);
    entry.row.liveness = match entry.wanted {
        Some(wanted) => Liveness { timestamp, ..wanted },
        None => Liveness::expiring(timestamp, Liveness::EXPIRED_TTL, now),
    };
    let is_settled = after(&entry.row).liveness.is_live(now) == entry.wanted.is_some();
    assert!(is_settled || last == i64::MAX, "an entry that was settled has the wanted liveness");
}

/// Collects entries as updates of the view's partitions, in the order of their keys.
pub fn updates(view: &View, mut entries: Vec<Entry>) -> Vec<PartitionUpdate> {
    entries.sort_by(|a, b| match a.key.cmp(&b.key) {
        Ordering::Equal => view.table.comparator.compare_values(&a.row.clustering, &b.row.clustering),
        other => other,
    });
    let mut updates: Vec<PartitionUpdate> = Vec::new();
    for entry in entries.into_iter().filter(|entry| !entry.row.is_empty()) {
        match updates.last_mut() {
            Some(last) if last.key == entry.key => last.add_row(entry.row),
            _ => {
                let mut update = PartitionUpdate::new(Arc::clone(&view.table), entry.key);
                update.add_row(entry.row);
                updates.push(update);
            }
        }
    }
    updates
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::update::tests::table;

    struct Everything;

    impl ViewFilter for Everything {
        fn selects(&self, _: &DecoratedKey, _: &[Option<Bytes>]) -> bool {
            true
        }

        fn matches(&self, _: &DecoratedKey, _: &Row, _: u32) -> bool {
            true
        }
    }

    /// Changes of several rows are given up where they are more than the caller takes; those of one
    /// row never are.
    #[test]
    fn changes_of_many_rows_are_bounded() {
        let table = table();
        let views = [Arc::new(View::new(&table, &table, Arc::new(Everything)).expect("both have the same columns"))];
        // an entry takes its clustering, which is an int, and two bytes
        for (rows, size_max, is_computed) in [(1, 0, true), (2, 11, false), (2, 12, true), (3, 17, false)] {
            let mut update = PartitionUpdate::new(Arc::clone(&table), table.decorate(Bytes::from_static(b"k")));
            for c in 0..rows {
                let clustering = std::iter::once(Some(Bytes::from(vec![0, 0, 0, c]))).collect();
                update.add_row(Row { liveness: Liveness::new(5), ..Row::new(clustering) });
            }
            let mut size = 0;
            let changes = of_update(&views, &update, &mut crate::stream::EmptyStream, 100, &mut size, size_max);
            assert_eq!(changes.is_ok(), is_computed, "{rows} rows, {size_max} bytes");
            assert_eq!(size, usize::from(rows) * 6);
        }
    }

    /// A later timestamp brings an entry to the liveness that is wanted. Nothing is later than the
    /// greatest timestamp: an end wins over a life there, and a life does not win over an end.
    #[test]
    fn entries_are_settled_up_to_the_greatest_timestamp() {
        const NOW: u32 = 100;
        let table = table();
        let view = View::new(&table, &table, Arc::new(Everything)).expect("both have the same columns");
        let ended = |timestamp| Liveness::expiring(timestamp, Liveness::EXPIRED_TTL, NOW);
        let live = Some(Liveness::new(5));
        let cases = [
            (ended(7), live, true),
            (ended(i64::MAX - 1), live, true),
            (ended(i64::MAX), live, false),
            (Liveness::new(7), None, false),
            (Liveness::new(i64::MAX), None, false),
        ];
        for (found, wanted, is_live) in cases {
            let clustering: ClusteringValues = std::iter::once(Some(Bytes::from_static(&[0; 4]))).collect();
            let mut stored = Row { liveness: found, ..Row::new(clustering.clone()) };
            let row = Row { liveness: wanted.unwrap_or(Liveness::EMPTY), ..Row::new(clustering) };
            let key = table.decorate(Bytes::from_static(b"k"));
            let mut entry = Entry { key, row, wanted, is_certain: false };
            settle(&mut entry, &view, Some(stored.clone()), NOW);
            stored.merge(entry.row, &table);
            assert_eq!(stored.liveness.is_live(NOW), is_live, "{found:?} {wanted:?}");
        }
    }
}
