//! Tests of what is left of a row by the columns that a read fetches and queries.

use std::collections::BTreeMap;

use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableId, TableKind, TableParams};
use types::{CqlType, DecoratedKey};

use super::*;
use crate::{ClusteringValues, DeletionTime, PartitionHead, ReadError, Unfiltered};

/// `(k int PRIMARY KEY, a int, b int, m map<int, int>)`
fn table() -> Arc<TableMetadata> {
    let column = |name: &str, kind, ty| ColumnSpec { name: name.to_owned(), kind, position: 0, ty, reversed: false };
    let int = || Arc::new(CqlType::Int);
    let specs = vec![
        column("k", ColumnKind::PartitionKey, CqlType::Int),
        column("a", ColumnKind::Regular, CqlType::Int),
        column("b", ColumnKind::Regular, CqlType::Int),
        column("m", ColumnKind::Regular, CqlType::Map { key: int(), value: int(), frozen: false }),
    ];
    let (kind, flags, params) = (TableKind::Regular, TableFlags::COMPOUND, TableParams::default());
    Arc::new(TableMetadata::new(TableId([1; 16]), "k", "t", kind, flags, params, specs, BTreeMap::new(), None))
}

fn id(table: &TableMetadata, name: &str) -> ColumnId {
    table.column_by_name(name).expect("a column").id
}

/// A partition of one row.
struct One(Option<Row>, bool);

impl PartitionStream for One {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let head = PartitionHead::new(DecoratedKey::new(Bytes::from_static(b"key")), DeletionTime::LIVE, None);
        Ok((!std::mem::replace(&mut self.1, true)).then_some(head))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        Ok(self.0.take().map(Unfiltered::Row))
    }
}

fn selected(table: &Arc<TableMetadata>, row: Row, selection: &ColumnSelection, from: SelectedFrom) -> Option<Row> {
    let mut stream = SelectedStream::new(One(Some(row), false), table, selection, from);
    stream.next_partition().expect("one partition");
    match stream.next_unfiltered().expect("readable") {
        Some(Unfiltered::Row(row)) => Some(row),
        Some(Unfiltered::Marker(_)) | None => None,
    }
}

fn query_of(table: &TableMetadata, name: &str) -> ColumnSelection {
    let queried = id(table, name);
    ColumnSelection { queried: Columns::of(table, |id| id == queried), ..ColumnSelection::all(table) }
}

/// Each cell as column, timestamp and whether it has a value.
fn cells(row: &Row) -> Vec<(u16, i64, bool)> {
    let told = |cell: &Cell| (cell.column.0, cell.timestamp, !cell.value.is_empty());
    row.columns
        .iter()
        .flat_map(|data| match data {
            ColumnData::Simple(cell) => vec![told(cell)],
            ColumnData::Complex(complex) => complex.cells.iter().map(told).collect(),
        })
        .collect()
}

fn row(table: &TableMetadata, liveness: i64) -> Row {
    let cell = |name: &str, timestamp| Cell::live(id(table, name), timestamp, Bytes::from_static(&[0, 0, 0, 7]));
    let mut row = Row::new(ClusteringValues::new());
    row.liveness = Liveness::new(liveness);
    row.add_cell(cell("a", 5));
    row.add_cell(cell("b", 5));
    row.add_complex_cell(table, cell("m", 5).at(Bytes::from_static(&[0, 0, 0, 1])));
    row.add_complex_cell(table, cell("m", 9).at(Bytes::from_static(&[0, 0, 0, 2])));
    row
}

#[test]
fn values_that_are_not_queried_are_left_out() {
    let table = table();
    let [a, b, m] = ["a", "b", "m"].map(|name| id(&table, name).0);
    let of_a = query_of(&table, "a");
    let kept = |liveness, from| cells(&selected(&table, row(&table, liveness), &of_a, from).expect("a row"));
    let all = [(a, 5, true), (b, 5, false), (m, 5, false), (m, 9, false)];
    assert_eq!(kept(5, SelectedFrom::Memtable), all);
    assert_eq!(kept(5, SelectedFrom::SSTable), all);
    // the liveness is newer than most cells
    assert_eq!(kept(6, SelectedFrom::Memtable), [(a, 5, true), (m, 9, false)]);
    assert_eq!(kept(6, SelectedFrom::SSTable), [(a, 5, true), (m, 5, false), (m, 9, false)]);
    let whole = cells(&row(&table, 6));
    assert_eq!(kept(6, SelectedFrom::Merged), whole);
}

#[test]
fn only_the_columns_that_are_queried_are_fetched_before_a_write() {
    let table = table();
    let b = id(&table, "b").0;
    let selection = ColumnSelection { fetching: Fetching::OnlyQueried, ..query_of(&table, "b") };
    let selection = ColumnSelection { fetched: selection.queried.clone(), ..selection };
    assert!(selection.is_whole());
    let merged = selected(&table, row(&table, 6), &selection, SelectedFrom::Merged).expect("a row");
    assert_eq!(cells(&merged), [(b, 5, true)]);
    // a row of which nothing is left is none
    let mut empty = row(&table, 6);
    empty.liveness = Liveness::EMPTY;
    empty.columns.retain(|data| data.column().0 != b);
    assert_eq!(selected(&table, empty, &selection, SelectedFrom::Merged), None);
}

#[test]
fn elements_of_a_collection() {
    let table = table();
    let m = id(&table, "m");
    let one = |to| Elements { column: m, from: Bytes::from_static(&[0, 0, 0, 2]), to };
    let mut selection = query_of(&table, "m");
    for (to, fetching, expected) in [
        (None, Fetching::AllColumns, vec![(m.0, 5, false), (m.0, 9, true)]),
        (Some(Bytes::from_static(&[0, 0, 0, 3])), Fetching::AllColumns, vec![(m.0, 5, false), (m.0, 9, true)]),
        (None, Fetching::OnlyQueried, vec![(m.0, 9, true)]),
    ] {
        selection.elements = vec![one(to)];
        selection.fetching = fetching;
        let row = selected(&table, row(&table, 5), &selection, SelectedFrom::Memtable).expect("a row");
        let of_map: Vec<_> = cells(&row).into_iter().filter(|(column, ..)| *column == m.0).collect();
        assert_eq!(of_map, expected);
    }
}
