//! Rows: a clustering, its liveness, its deletion and its cells. Agrees with
//! `org.apache.cassandra.db.rows.{Row,Rows}` and `LivenessInfo`.

use std::cmp::Ordering;

use schema::{ColumnId, TableMetadata};

use crate::cell::{NO_DELETION_TIME, NO_TIMESTAMP, NO_TTL};
use crate::{Cell, ClusteringValues, DeletionTime, counter};

/// The liveness of a primary key: what an INSERT leaves even if it sets no column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Liveness {
    /// Write timestamp, microseconds; NO_TIMESTAMP: the row has no liveness.
    pub timestamp: i64,
    /// Seconds to live; NO_TTL if it does not expire.
    pub ttl: u32,
    /// Time of expiry, seconds; NO_DELETION_TIME if it does not expire.
    pub local_expiration_time: u32,
}

impl Liveness {
    /// The absence of liveness.
    pub const EMPTY: Self = Self { timestamp: NO_TIMESTAMP, ttl: NO_TTL, local_expiration_time: NO_DELETION_TIME };
    /// The TTL that marks a row of a view whose liveness has ended.
    pub const EXPIRED_TTL: u32 = i32::MAX as u32;

    /// The liveness of an INSERT without a TTL.
    pub fn new(timestamp: i64) -> Self {
        Self { timestamp, ..Self::EMPTY }
    }

    /// The liveness of an INSERT with a TTL.
    pub fn expiring(timestamp: i64, ttl: u32, local_expiration_time: u32) -> Self {
        Self { timestamp, ttl, local_expiration_time }
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.timestamp == NO_TIMESTAMP
    }

    /// Whether it expires.
    #[inline]
    pub fn is_expiring(&self) -> bool {
        self.ttl != NO_TTL
    }

    /// Whether it makes the row visible to a read at `now` (seconds).
    #[inline]
    pub fn is_live(&self, now: u32) -> bool {
        !self.is_empty() && self.ttl != Self::EXPIRED_TTL && (self.ttl == NO_TTL || now < self.local_expiration_time)
    }

    /// Whether `self` wins over `other`: the greater timestamp; with equal ones, expiring over not
    /// expiring, then the later end.
    pub fn supersedes(&self, other: &Self) -> bool {
        if self.timestamp != other.timestamp {
            return self.timestamp > other.timestamp;
        }
        let expired = |liveness: &Self| liveness.ttl == Self::EXPIRED_TTL;
        if expired(self) != expired(other) {
            return expired(self);
        }
        if self.is_expiring() != other.is_expiring() {
            return self.is_expiring();
        }
        self.local_expiration_time > other.local_expiration_time
    }
}

/// The data of a column that is stored cell by cell: a collection or user type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ComplexColumn {
    /// The column.
    pub column: ColumnId,
    /// The deletion of the whole value.
    pub deletion: DeletionTime,
    /// The cells, ordered by path.
    pub cells: Vec<Cell>,
}

/// The data of one column in a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ColumnData {
    /// One cell of a simple column.
    Simple(Cell),
    /// The deletion and the cells of a complex column.
    Complex(Box<ComplexColumn>),
}

impl ColumnData {
    /// The column.
    #[inline]
    pub fn column(&self) -> ColumnId {
        match self {
            Self::Simple(cell) => cell.column,
            Self::Complex(complex) => complex.column,
        }
    }

    /// How many cells it has.
    pub fn cell_count(&self) -> usize {
        match self {
            Self::Simple(_) => 1,
            Self::Complex(complex) => complex.cells.len(),
        }
    }

    /// Bytes of values and cell paths.
    fn data_size(&self) -> usize {
        let cell = |cell: &Cell| cell.value.len() + cell.path.as_ref().map_or(0, bytes::Bytes::len);
        match self {
            Self::Simple(simple) => cell(simple),
            Self::Complex(complex) => complex.cells.iter().map(cell).sum(),
        }
    }
}

/// The most cells of a complex column that [`Row::add_complex_cell_near_end`] moves for another
/// one.
const MOVED_MAX: usize = 64;

/// A row, or the static row of a partition (its clustering is then empty).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// The clustering values, one for each clustering column.
    pub clustering: ClusteringValues,
    /// The liveness of the primary key.
    pub liveness: Liveness,
    /// The deletion of the row.
    pub deletion: DeletionTime,
    /// The data of the columns, ascending by column id.
    pub columns: Vec<ColumnData>,
}

impl Row {
    /// Bytes of the serial form, or slightly more. Used to reserve a buffer: one that grows would
    /// copy large values again and again.
    pub fn encoded_room(&self) -> usize {
        self.encoded_room_of(|_| true)
    }

    /// As [`Self::encoded_room`], as if the row had no columns but those that are counted.
    pub fn encoded_room_of(&self, is_counted: impl Fn(ColumnId) -> bool) -> usize {
        const ROW: usize = 24;
        const CELL: usize = 16;
        let cells = |data: &ColumnData| match data {
            ColumnData::Simple(_) => 1,
            ColumnData::Complex(complex) => 1 + complex.cells.len(),
        };
        let columns = self.columns.iter().filter(|data| is_counted(data.column()));
        ROW + self.clustering_size() + columns.map(|data| cells(data) * CELL + data.data_size()).sum::<usize>()
    }

    /// A row without any data.
    pub fn new(clustering: ClusteringValues) -> Self {
        Self { clustering, liveness: Liveness::EMPTY, deletion: DeletionTime::LIVE, columns: Vec::new() }
    }

    /// The greatest timestamp in the row; i64::MIN if there is none.
    pub fn max_timestamp(&self) -> i64 {
        let of_column = |data: &ColumnData| match data {
            ColumnData::Simple(cell) => cell.timestamp,
            ColumnData::Complex(complex) => {
                let of_cells = complex.cells.iter().map(|cell| cell.timestamp);
                of_cells.fold(complex.deletion.marked_for_delete_at, i64::max)
            }
        };
        let of_row = self.liveness.timestamp.max(self.deletion.marked_for_delete_at);
        self.columns.iter().map(of_column).fold(of_row, i64::max)
    }

    /// Whether there is neither liveness nor deletion nor cell.
    pub fn is_empty(&self) -> bool {
        self.liveness.is_empty() && self.deletion.is_live() && self.columns.is_empty()
    }

    /// Bytes of clustering, values and cell paths (`Row.dataSize` without its parts of fixed size).
    pub fn data_size(&self) -> usize {
        self.clustering_size() + self.columns.iter().map(ColumnData::data_size).sum::<usize>()
    }

    fn clustering_size(&self) -> usize {
        self.clustering.iter().flatten().map(bytes::Bytes::len).sum()
    }

    /// The data of a column.
    pub fn column(&self, id: ColumnId) -> Option<&ColumnData> {
        // rows have few columns and are read in order; up to about 16, a linear search is faster
        if self.columns.len() <= 16 {
            return self.columns.iter().find(|data| data.column() == id);
        }
        self.columns.binary_search_by_key(&id, ColumnData::column).ok().map(|index| &self.columns[index])
    }

    /// Adds the cell of a simple column, reconciled with the cell that is there.
    pub fn add_cell(&mut self, cell: Cell) {
        match self.position(cell.column) {
            Ok(index) => {
                if let ColumnData::Simple(old) = &mut self.columns[index]
                    && cell.reconcile(old) == Ordering::Greater
                {
                    *old = cell;
                }
            }
            Err(index) => self.columns.insert(index, ColumnData::Simple(cell)),
        }
    }

    /// The index of a column's data, or the index at which to insert it. Adding in order is the
    /// usual case.
    pub fn position(&self, id: ColumnId) -> Result<usize, usize> {
        match self.columns.last() {
            None => Err(0),
            Some(last) if last.column() < id => Err(self.columns.len()),
            _ => self.columns.binary_search_by_key(&id, ColumnData::column),
        }
    }

    /// The data of a complex column, created if missing. None: the column has the data of a simple
    /// one.
    pub fn complex_mut(&mut self, id: ColumnId) -> Option<&mut ComplexColumn> {
        let index = match self.position(id) {
            Ok(index) => index,
            Err(index) => {
                let empty = ComplexColumn { column: id, deletion: DeletionTime::LIVE, cells: Vec::new() };
                self.columns.insert(index, ColumnData::Complex(Box::new(empty)));
                index
            }
        };
        match &mut self.columns[index] {
            ColumnData::Complex(complex) => Some(complex),
            ColumnData::Simple(_) => None,
        }
    }

    /// Adds the deletion of a whole complex column.
    pub fn add_complex_deletion(&mut self, id: ColumnId, deletion: DeletionTime) {
        if let Some(complex) = self.complex_mut(id) {
            complex.deletion = complex.deletion.merge(deletion);
            let winner = complex.deletion;
            complex.cells.retain(|cell| !winner.deletes(cell.timestamp));
        }
    }

    /// Adds a cell of a complex column, reconciled with the cell of the same path.
    pub fn add_complex_cell(&mut self, table: &TableMetadata, cell: Cell) {
        let Some(ty) = table.type_of(cell.column) else { return };
        let Some(complex) = self.complex_mut(cell.column) else { return };
        if complex.deletion.deletes(cell.timestamp) {
            return;
        }
        let left = insert_by_path(ty, &mut complex.cells, cell, usize::MAX);
        debug_assert!(left.is_none(), "any number of cells may be moved");
    }

    /// Adds a cell of a complex column, as [`Row::add_complex_cell`] does, unless more than
    /// [`MOVED_MAX`] cells would have to move for it: such a cell is given back. Cells that come in
    /// descending order of their paths would otherwise take time by the square of their number.
    pub fn add_complex_cell_near_end(&mut self, table: &TableMetadata, cell: Cell) -> Option<Cell> {
        let ty = table.type_of(cell.column)?;
        let complex = self.complex_mut(cell.column)?;
        if complex.deletion.deletes(cell.timestamp) {
            return None;
        }
        insert_by_path(ty, &mut complex.cells, cell, MOVED_MAX)
    }

    /// Adds cells of a complex column, whatever the order of their paths: n cells cost n log n, and
    /// the cells that are there are passed once.
    pub fn add_complex_cells(&mut self, table: &TableMetadata, column: ColumnId, mut cells: Vec<Cell>) {
        let Some(ty) = table.type_of(column) else { return };
        let order = |a: &Cell, b: &Cell| {
            compare_paths(ty, a.path.as_deref().unwrap_or_default(), b.path.as_deref().unwrap_or_default())
        };
        cells.sort_by(order);
        cells.dedup_by(|next, kept| {
            let is_same = order(next, kept) == Ordering::Equal;
            if is_same && next.reconcile(kept) == Ordering::Greater {
                std::mem::swap(next, kept);
            }
            is_same
        });
        let added = ComplexColumn { column, deletion: DeletionTime::LIVE, cells };
        self.merge_column(ColumnData::Complex(Box::new(added)), table);
    }
}

/// Inserts a cell by its path, reconciled with the cell of the same path. A cell for which more
/// than `moved_max` others would have to move is given back.
fn insert_by_path(ty: &types::CqlType, cells: &mut Vec<Cell>, cell: Cell, moved_max: usize) -> Option<Cell> {
    let path = cell.path.clone().unwrap_or_default();
    let order = |other: &Cell| compare_paths(ty, other.path.as_deref().unwrap_or_default(), &path);
    match cells.last() {
        Some(last) if order(last) == Ordering::Less => cells.push(cell),
        _ => match cells.binary_search_by(order) {
            Ok(index) => {
                if cell.reconcile(&cells[index]) == Ordering::Greater {
                    cells[index] = cell;
                }
            }
            Err(index) if cells.len() - index > moved_max => return Some(cell),
            Err(index) => cells.insert(index, cell),
        },
    }
    None
}

/// Compares the paths of a complex column: time-UUIDs of lists, elements of sets, keys of maps,
/// field numbers of user types.
#[inline]
pub fn compare_paths(ty: &types::CqlType, a: &[u8], b: &[u8]) -> Ordering {
    match ty {
        types::CqlType::List { .. } => types::compare(&types::CqlType::TimeUuid, a, b),
        types::CqlType::Set { element, .. } => types::compare(element, a, b),
        types::CqlType::Map { key, .. } => types::compare(key, a, b),
        _ => a.cmp(b),
    }
}

impl Row {
    /// Merges another row of the same clustering into this one, and drops what the resulting row
    /// deletion shadows.
    pub fn merge(&mut self, other: Row, table: &TableMetadata) {
        if other.liveness.supersedes(&self.liveness) {
            self.liveness = other.liveness;
        }
        let deletion = self.deletion.merge(other.deletion);
        self.deletion = deletion;
        let mut columns = other.columns;
        if table.is_counter() && !deletion.is_live() {
            // data that is deleted must not live on in a counter that was written later
            self.drop_shadowed(&deletion);
            drop_shadowed(&mut columns, &deletion);
        }
        if self.columns.is_empty() {
            self.columns = columns;
        } else {
            for data in columns {
                self.merge_column(data, table);
            }
        }
        if !deletion.is_live() {
            self.drop_shadowed(&deletion);
        }
        let ids = || self.columns.iter().map(ColumnData::column);
        debug_assert!(ids().is_sorted_by(|a, b| a < b), "columns of a row ascend");
    }

    fn merge_column(&mut self, data: ColumnData, table: &TableMetadata) {
        let index = match self.position(data.column()) {
            Ok(index) => index,
            Err(index) => {
                self.columns.insert(index, data);
                return;
            }
        };
        match (&mut self.columns[index], data) {
            (ColumnData::Simple(old), ColumnData::Simple(new)) => {
                if table.is_counter() {
                    *old = counter::reconcile(old, &new);
                } else if new.reconcile(old) == Ordering::Greater {
                    *old = new;
                }
            }
            (ColumnData::Complex(old), ColumnData::Complex(new)) => merge_complex(old, *new, table),
            // under one id a column never changes between simple and complex
            (ColumnData::Simple(_), ColumnData::Complex(_)) | (ColumnData::Complex(_), ColumnData::Simple(_)) => {}
        }
    }

    /// Drops liveness, cells and weaker deletions that `deletion` (of a partition, range or row)
    /// shadows. The row's own deletion stays if it equals `deletion` or is stronger.
    pub fn drop_shadowed(&mut self, deletion: &DeletionTime) {
        if self.liveness.timestamp <= deletion.marked_for_delete_at {
            self.liveness = Liveness::EMPTY;
        }
        drop_shadowed(&mut self.columns, deletion);
    }

    /// Applies a deletion from outside of the row (of the partition or a range): drops what it
    /// shadows, including the row's own deletion.
    pub fn apply_deletion(&mut self, deletion: &DeletionTime) {
        if deletion.is_live() {
            return;
        }
        if !self.deletion.supersedes(deletion) {
            self.deletion = DeletionTime::LIVE;
        }
        self.drop_shadowed(deletion);
    }

    /// Whether a read at `now` sees something: liveness or a live cell.
    pub fn is_live(&self, now: u32) -> bool {
        self.liveness.is_live(now)
            || self.columns.iter().any(|data| match data {
                ColumnData::Simple(cell) => cell.is_live(now),
                ColumnData::Complex(complex) => complex.cells.iter().any(|cell| cell.is_live(now)),
            })
    }

    /// Bytes on the heap, estimated for memory budgets.
    pub fn memory_size(&self) -> usize {
        let cell_size = |cell: &Cell| cell.value.len() + cell.path.as_ref().map_or(0, |path| path.len());
        let columns: usize = self
            .columns
            .iter()
            .map(|data| match data {
                ColumnData::Simple(cell) => cell_size(cell),
                ColumnData::Complex(complex) => {
                    size_of::<ComplexColumn>()
                        + complex.cells.iter().map(|cell| size_of::<Cell>() + cell_size(cell)).sum::<usize>()
                }
            })
            .sum();
        let clustering: usize = self.clustering.iter().flatten().map(bytes::Bytes::len).sum();
        size_of::<Self>() + self.columns.capacity() * size_of::<ColumnData>() + columns + clustering
    }
}

fn drop_shadowed(columns: &mut Vec<ColumnData>, deletion: &DeletionTime) {
    columns.retain_mut(|data| match data {
        ColumnData::Simple(cell) => !deletion.deletes(cell.timestamp),
        ColumnData::Complex(complex) => {
            complex.cells.retain(|cell| !deletion.deletes(cell.timestamp));
            if !complex.deletion.supersedes(deletion) {
                complex.deletion = DeletionTime::LIVE;
            }
            !complex.cells.is_empty() || !complex.deletion.is_live()
        }
    });
}

fn merge_complex(old: &mut ComplexColumn, new: ComplexColumn, table: &TableMetadata) {
    let Some(ty) = table.type_of(old.column) else { return };
    let deletion = old.deletion.merge(new.deletion);
    old.deletion = deletion;
    let left = std::mem::take(&mut old.cells);
    let path = |cell: &Cell| cell.path.clone().unwrap_or_default();
    let ascend = |cells: &[Cell]| cells.is_sorted_by(|a, b| compare_paths(ty, &path(a), &path(b)).is_lt());
    // in a damaged file, and from a peer, they may stand in any order
    let ascended = cfg!(debug_assertions) && ascend(&left) && ascend(&new.cells);
    old.cells = Vec::with_capacity(left.len() + new.cells.len());
    let mut left = left.into_iter().peekable();
    let mut right = new.cells.into_iter().peekable();
    loop {
        let next = match (left.peek(), right.peek()) {
            (None, None) => break,
            (Some(_), None) => left.next(),
            (None, Some(_)) => right.next(),
            (Some(a), Some(b)) => match compare_paths(ty, &path(a), &path(b)) {
                Ordering::Less => left.next(),
                Ordering::Greater => right.next(),
                Ordering::Equal if table.is_counter() => {
                    left.next().zip(right.next()).map(|(a, b)| counter::reconcile(&a, &b))
                }
                Ordering::Equal => {
                    let keep_right = b.reconcile(a) == Ordering::Greater;
                    let (a, b) = (left.next(), right.next());
                    if keep_right { b } else { a }
                }
            },
        };
        if let Some(cell) = next
            && !deletion.deletes(cell.timestamp)
        {
            old.cells.push(cell);
        }
    }
    debug_assert!(!ascended || ascend(&old.cells), "cells of a collection that ascend are merged in order");
}
