//! The columns that a read fetches, and those of them whose values it wants.
//!
//! A query of some columns fetches more than these, because a row exists as long as any of its
//! columns has a value. The values of columns that are fetched but not queried are left out: such a
//! cell keeps its timestamp, TTL and expiry, and its value becomes empty. If the row's liveness is
//! newer than the cell, the liveness alone proves that the row exists, and the cell is left out
//! altogether. Every replica must do this alike, otherwise digests of equal data differ.
//!
//! The cells of each memtable and SSTable are judged by the liveness that the row has there, before
//! sources are merged: so does Cassandra, and judging the merged row would leave out a cell that is
//! older than a liveness of another source. Elements of a collection in an SSTable stay whatever
//! the liveness; not so in an SSTable of BIG that is read backwards, because Cassandra makes a
//! partition in memory of each block there. Agrees with
//! `org.apache.cassandra.db.filter.ColumnFilter`, `BTreeRow.filter`, `ComplexColumnData.filter` and
//! `DeserializationHelper` (CASSANDRA-10657).

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use schema::{ColumnId, TableMetadata};

use crate::row::compare_paths;
use crate::stream::{FilteredRows, RowFilter};
use crate::{Cell, ColumnData, ColumnFilter, Liveness, PartitionStream, Row};

/// Static and regular columns, each list in file order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Columns {
    /// The static columns.
    pub statics: Vec<ColumnId>,
    /// The regular columns.
    pub regulars: Vec<ColumnId>,
}

impl Columns {
    /// All columns of a table.
    pub fn all(table: &TableMetadata) -> Self {
        Self {
            statics: table.statics.iter().map(|column| column.id).collect(),
            regulars: table.regulars.iter().map(|column| column.id).collect(),
        }
    }

    /// The columns of a table for which `wanted` is true.
    pub fn of(table: &TableMetadata, wanted: impl Fn(ColumnId) -> bool) -> Self {
        let mut columns = Self::all(table);
        columns.statics.retain(|id| wanted(*id));
        columns.regulars.retain(|id| wanted(*id));
        columns
    }

    fn iter(&self) -> impl Iterator<Item = ColumnId> {
        self.statics.iter().chain(&self.regulars).copied()
    }
}

/// Which columns are fetched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fetching {
    /// All columns, and all of them are queried: `SELECT *`.
    Everything,
    /// All columns.
    AllColumns,
    /// All regular columns and the queried static columns.
    AllRegularsAndQueriedStatics,
    /// The queried columns only: reads before writes, and reads of conditional statements.
    OnlyQueried,
}

/// The elements of a collection that are queried, by their paths.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Elements {
    /// The column.
    pub column: ColumnId,
    /// The first path, or the only one.
    pub from: Bytes,
    /// The last path; None: one element.
    pub to: Option<Bytes>,
}

/// The columns of a read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ColumnSelection {
    /// Which columns are fetched.
    pub fetching: Fetching,
    /// The fetched columns. They decide the form of answers.
    pub fetched: Columns,
    /// The queried columns, a subset of the fetched ones.
    pub queried: Columns,
    /// If a queried collection has entries here, only these elements of it are queried. Sorted by
    /// the name of the column, then by path.
    pub elements: Vec<Elements>,
}

impl ColumnSelection {
    /// All columns of a table.
    pub fn all(table: &TableMetadata) -> Self {
        let all = Columns::all(table);
        Self { fetching: Fetching::Everything, fetched: all.clone(), queried: all, elements: Vec::new() }
    }

    /// The columns that a query of `filter` fetches: the columns that prove that a row exists,
    /// too.
    pub fn of_query(table: &TableMetadata, filter: &ColumnFilter) -> Self {
        match filter {
            ColumnFilter::All => return Self::all(table),
            ColumnFilter::Selected(selection) => return Self::clone(selection),
            ColumnFilter::Some(_) => {}
        }
        let fetching = match table.statics.is_empty() {
            true => Fetching::AllRegularsAndQueriedStatics,
            false => Fetching::AllColumns,
        };
        let queried = Columns::of(table, |id| filter.includes(id));
        Self { fetching, fetched: Columns::all(table), queried, elements: Vec::new() }
    }

    /// The fetched columns as the reader of a node wants them.
    pub fn filter(&self, table: &TableMetadata) -> ColumnFilter {
        if !self.is_whole() {
            return ColumnFilter::Selected(Arc::new(self.clone()));
        }
        if self.fetched == Columns::all(table) {
            return ColumnFilter::All;
        }
        let mut ids: Vec<ColumnId> = self.fetched.iter().collect();
        ids.sort_unstable();
        ColumnFilter::Some(ids.into())
    }

    /// Whether the values of all fetched cells are wanted. False: the values of some are left out,
    /// and such a cell must never be written anywhere.
    pub fn is_whole(&self) -> bool {
        self.elements.is_empty() && self.fetched == self.queried
    }

    /// Whether a column is fetched.
    pub fn fetches(&self, id: ColumnId) -> bool {
        self.fetched.iter().any(|fetched| fetched == id)
    }

    /// Whether the values of a fetched column are wanted, at least of some of its elements.
    pub fn queries(&self, id: ColumnId) -> bool {
        self.queried.iter().any(|queried| queried == id)
    }
}

/// The treatment of a column's cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    NotFetched,
    /// Fetched without values.
    Fetched,
    Queried,
    /// A collection of which some elements are queried.
    QueriedElements,
}

/// The source of a stream, by which it is decided which cells stay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SelectedFrom {
    /// A memtable, or rows that Cassandra holds like those of one.
    Memtable,
    /// An SSTable.
    SSTable,
    /// The merge of sources that were selected from already: only columns that are not fetched are
    /// left out.
    Merged,
}

/// A stream with the selected columns only, and without the values of those that are not queried.
pub type SelectedStream<S> = FilteredRows<S, Selecting>;

/// The filter of a [`SelectedStream`].
pub struct Selecting {
    table: Arc<TableMetadata>,
    from: SelectedFrom,
    /// By column id.
    parts: Vec<Part>,
    elements: Vec<Elements>,
    /// Whether collections with selected elements are fetched whole.
    fetches_all: bool,
}

impl<S: PartitionStream> SelectedStream<S> {
    /// The selected columns of `stream`.
    pub fn new(stream: S, table: &Arc<TableMetadata>, selection: &ColumnSelection, from: SelectedFrom) -> Self {
        let mut parts = vec![Part::NotFetched; usize::from(table.column_id_end())];
        let mut set = |id: ColumnId, part| {
            if let Some(place) = parts.get_mut(usize::from(id.0)) {
                *place = part;
            }
        };
        if from == SelectedFrom::Merged {
            selection.fetched.iter().for_each(|id| set(id, Part::Queried));
        } else {
            selection.fetched.iter().for_each(|id| set(id, Part::Fetched));
            selection.queried.iter().for_each(|id| set(id, Part::Queried));
            selection.elements.iter().for_each(|elements| set(elements.column, Part::QueriedElements));
        }
        let fetches_all = selection.fetching != Fetching::OnlyQueried;
        let (table, elements) = (Arc::clone(table), selection.elements.clone());
        Self::of(stream, Selecting { table, from, parts, elements, fetches_all })
    }
}

impl RowFilter for Selecting {
    fn keep(&self, mut row: Row) -> Option<Row> {
        let liveness = row.liveness;
        row.columns.retain_mut(|data| {
            let part = self.parts.get(usize::from(data.column().0)).copied().unwrap_or(Part::NotFetched);
            match part {
                Part::NotFetched => false,
                Part::Queried => true,
                Part::Fetched | Part::QueriedElements => self.blank(data, part, &liveness),
            }
        });
        (!row.is_empty()).then_some(row)
    }
}

impl Selecting {
    /// Leaves out the values of cells that are not queried. False: nothing is left.
    fn blank(&self, data: &mut ColumnData, part: Part, liveness: &Liveness) -> bool {
        match data {
            ColumnData::Simple(cell) => keep_blank(cell, liveness),
            ColumnData::Complex(complex) => {
                let column = complex.column;
                complex.cells.retain_mut(|cell| match part {
                    Part::QueriedElements if self.selects(column, cell) => true,
                    Part::QueriedElements if !self.fetches_all => false,
                    Part::Fetched if self.from == SelectedFrom::SSTable => keep_blank(cell, &Liveness::EMPTY),
                    _ => keep_blank(cell, liveness),
                });
                !complex.cells.is_empty() || !complex.deletion.is_live()
            }
        }
    }

    fn selects(&self, column: ColumnId, cell: &Cell) -> bool {
        let (Some(ty), Some(path)) = (self.table.type_of(column), &cell.path) else { return false };
        self.elements.iter().filter(|elements| elements.column == column).any(|elements| match &elements.to {
            None => compare_paths(ty, path, &elements.from) == Ordering::Equal,
            Some(to) => {
                compare_paths(ty, path, &elements.from) != Ordering::Less
                    && compare_paths(ty, path, to) != Ordering::Greater
            }
        })
    }
}

/// Removes the value of a cell. False: the cell goes too, because the liveness is newer.
fn keep_blank(cell: &mut Cell, liveness: &Liveness) -> bool {
    if cell.timestamp < liveness.timestamp {
        return false;
    }
    cell.value = Bytes::new();
    true
}

#[cfg(test)]
mod tests;
