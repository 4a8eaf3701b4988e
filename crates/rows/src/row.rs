//! Rows: a clustering, its liveness, its deletion and its cells. Agrees with `org.apache.cassandra.db.rows.{Row,Rows}`
//! and `LivenessInfo`.

use std::cmp::Ordering;

use schema::{ColumnId, TableMetadata};

use crate::cell::{NO_DELETION_TIME, NO_TIMESTAMP, NO_TTL};
use crate::{Cell, ClusteringValues, DeletionTime, counter};

/// Primary-key liveness: what an INSERT leaves even if no column is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Liveness {
    /// Write time, microseconds; NO_TIMESTAMP: there is none.
    pub timestamp: i64,
    /// Seconds to live; NO_TTL when it does not expire.
    pub ttl: u32,
    /// When it expires, seconds; NO_DELETION_TIME when it does not.
    pub local_expiration_time: u32,
}

impl Liveness {
    /// None.
    pub const EMPTY: Self = Self { timestamp: NO_TIMESTAMP, ttl: NO_TTL, local_expiration_time: NO_DELETION_TIME };
    /// TTL that marks a view row whose liveness has ended.
    pub const EXPIRED_TTL: u32 = i32::MAX as u32;

    /// That of a plain INSERT.
    pub fn new(timestamp: i64) -> Self {
        Self { timestamp, ..Self::EMPTY }
    }

    /// That of an INSERT with a TTL.
    pub fn expiring(timestamp: i64, ttl: u32, local_expiration_time: u32) -> Self {
        Self { timestamp, ttl, local_expiration_time }
    }

    /// There is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.timestamp == NO_TIMESTAMP
    }

    /// Expires.
    #[inline]
    pub fn is_expiring(&self) -> bool {
        self.ttl != NO_TTL
    }

    /// Marks a row of a view as gone, whatever cells it still has: the base row has another place in the view now.
    #[inline]
    pub fn is_gone_from_view(&self) -> bool {
        self.ttl == Self::EXPIRED_TTL
    }

    /// Keeps the row visible to a read at `now` (seconds).
    #[inline]
    pub fn is_live(&self, now: u32) -> bool {
        !self.is_empty() && self.ttl != Self::EXPIRED_TTL && (self.ttl == NO_TTL || now < self.local_expiration_time)
    }

    /// Whether `self` wins: greater timestamp; on a tie expiring over not, then the later end.
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

/// A collection or UDT stored cell by cell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ComplexColumn {
    /// The column.
    pub column: ColumnId,
    /// Deletion of the whole value.
    pub deletion: DeletionTime,
    /// Its cells by path order.
    pub cells: Vec<Cell>,
}

/// What a row holds of one column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ColumnData {
    /// One cell.
    Simple(Cell),
    /// A deletion and cells.
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
}

/// A row, or the static row of a partition (its clustering is then empty).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// Clustering values, one for each clustering column.
    pub clustering: ClusteringValues,
    /// Primary-key liveness.
    pub liveness: Liveness,
    /// Row deletion.
    pub deletion: DeletionTime,
    /// Column data sorted by column id.
    pub columns: Vec<ColumnData>,
}

impl Row {
    /// Bytes that it takes in serial form, or a few more: a buffer that grows would copy large values again and again.
    pub fn encoded_room(&self) -> usize {
        const ROW: usize = 24;
        const CELL: usize = 16;
        let cells = self.columns.iter().map(|data| match data {
            ColumnData::Simple(_) => 1,
            ColumnData::Complex(complex) => 1 + complex.cells.len(),
        });
        ROW + cells.sum::<usize>() * CELL + self.data_size()
    }

    /// A row with nothing in it.
    pub fn new(clustering: ClusteringValues) -> Self {
        Self { clustering, liveness: Liveness::EMPTY, deletion: DeletionTime::LIVE, columns: Vec::new() }
    }

    /// The largest timestamp in it; the smallest number where there is none.
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

    /// Neither liveness nor deletion nor cells.
    pub fn is_empty(&self) -> bool {
        self.liveness.is_empty() && self.deletion.is_live() && self.columns.is_empty()
    }

    /// Bytes of clustering and values, paths of cells included (`Row.dataSize`, but for what is of fixed size).
    pub fn data_size(&self) -> usize {
        let clustering: usize = self.clustering.iter().flatten().map(bytes::Bytes::len).sum();
        let cell = |cell: &Cell| cell.value.len() + cell.path.as_ref().map_or(0, bytes::Bytes::len);
        let columns = self.columns.iter().map(|data| match data {
            ColumnData::Simple(simple) => cell(simple),
            ColumnData::Complex(complex) => complex.cells.iter().map(cell).sum(),
        });
        clustering + columns.sum::<usize>()
    }

    /// Data of a column.
    pub fn column(&self, id: ColumnId) -> Option<&ColumnData> {
        // rows have few columns and are read in order; binary search costs more below about 16
        if self.columns.len() <= 16 {
            return self.columns.iter().find(|data| data.column() == id);
        }
        self.columns.binary_search_by_key(&id, ColumnData::column).ok().map(|index| &self.columns[index])
    }

    /// Puts a cell of a simple column in its place, reconciling with one that is there.
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

    /// Where a column's data is, or would be put. Appending in order is the usual case.
    pub fn position(&self, id: ColumnId) -> Result<usize, usize> {
        match self.columns.last() {
            None => Err(0),
            Some(last) if last.column() < id => Err(self.columns.len()),
            _ => self.columns.binary_search_by_key(&id, ColumnData::column),
        }
    }

    /// The complex column's entry, made if missing.
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

    /// Deletes a whole complex column.
    pub fn add_complex_deletion(&mut self, id: ColumnId, deletion: DeletionTime) {
        if let Some(complex) = self.complex_mut(id) {
            complex.deletion = complex.deletion.merge(deletion);
            let winner = complex.deletion;
            complex.cells.retain(|cell| !winner.deletes(cell.timestamp));
        }
    }

    /// Puts a cell of a complex column in its place, reconciling with one of the same path.
    pub fn add_complex_cell(&mut self, table: &TableMetadata, cell: Cell) {
        let Some(column) = table.column(cell.column) else { return };
        let Some(complex) = self.complex_mut(cell.column) else { return };
        if complex.deletion.deletes(cell.timestamp) {
            return;
        }
        insert_by_path(&column.ty, &mut complex.cells, cell);
    }
}

fn insert_by_path(ty: &types::CqlType, cells: &mut Vec<Cell>, cell: Cell) {
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
            Err(index) => cells.insert(index, cell),
        },
    }
}

/// Order of the cells of a complex column: list time-UUIDs, set elements, map keys, UDT field indexes.
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
    /// Merges another row of the same clustering into this one; what the resulting row deletion shadows is dropped.
    pub fn merge(&mut self, other: Row, table: &TableMetadata) {
        if other.liveness.supersedes(&self.liveness) {
            self.liveness = other.liveness;
        }
        let deletion = self.deletion.merge(other.deletion);
        self.deletion = deletion;
        let mut columns = other.columns;
        if table.is_counter() && !deletion.is_live() {
            // what is deleted must not live on in a counter that is written later
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
            // a column does not change between simple and complex under one id
            (ColumnData::Simple(_), ColumnData::Complex(_)) | (ColumnData::Complex(_), ColumnData::Simple(_)) => {}
        }
    }

    /// Drops liveness, cells and weaker deletions that a deletion of greater scope, or the row's own, shadows.
    /// The row's own deletion is kept if it is that deletion or stronger.
    pub fn drop_shadowed(&mut self, deletion: &DeletionTime) {
        if self.liveness.timestamp <= deletion.marked_for_delete_at {
            self.liveness = Liveness::EMPTY;
        }
        drop_shadowed(&mut self.columns, deletion);
    }

    /// Applies a deletion from outside the row (partition or range): drops what it shadows, the row's deletion too.
    pub fn apply_deletion(&mut self, deletion: &DeletionTime) {
        if deletion.is_live() {
            return;
        }
        if !self.deletion.supersedes(deletion) {
            self.deletion = DeletionTime::LIVE;
        }
        self.drop_shadowed(deletion);
    }

    /// Something in it is visible at `now`: liveness or a live cell.
    pub fn is_live(&self, now: u32) -> bool {
        self.liveness.is_live(now)
            || self.columns.iter().any(|data| match data {
                ColumnData::Simple(cell) => cell.is_live(now),
                ColumnData::Complex(complex) => complex.cells.iter().any(|cell| cell.is_live(now)),
            })
    }

    /// Heap bytes, roughly: for memory budgets.
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
    let Some(column) = table.column(old.column) else { return };
    let deletion = old.deletion.merge(new.deletion);
    old.deletion = deletion;
    let left = std::mem::take(&mut old.cells);
    old.cells = Vec::with_capacity(left.len() + new.cells.len());
    let mut left = left.into_iter().peekable();
    let mut right = new.cells.into_iter().peekable();
    let path = |cell: &Cell| cell.path.clone().unwrap_or_default();
    loop {
        let next = match (left.peek(), right.peek()) {
            (None, None) => break,
            (Some(_), None) => left.next(),
            (None, Some(_)) => right.next(),
            (Some(a), Some(b)) => match compare_paths(&column.ty, &path(a), &path(b)) {
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
}
