//! A row that a statement writes, and its columns as the operations of the statement see them.
//!
//! An operation that reads sees the row before the statement with the writes of the operations
//! before it. A statement may have as many operations as fit into a request, on a list of as many
//! elements as fit into a row: neither the list nor what is written is copied for each of them.
//!
//! Agrees with `org.apache.cassandra.cql3.UpdateParameters.getPrefetchedRow`.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use bytes::Bytes;
use rows::row::compare_paths;
use rows::{Cell, ColumnData, DeletionTime, Row};
use schema::{ColumnId, TableMetadata};
use types::CqlType;

use crate::error::CqlError;

/// Elements of a block of a list; a block of twice as many is halved.
const BLOCK_SIZE: usize = 256;

/// A row that is being written.
pub(super) struct PendingRow<'a> {
    pub row: &'a mut Row,
    table: &'a TableMetadata,
    /// The live row before the statement; None: no operation of the statement reads, or there was
    /// no row.
    before: Option<&'a Row>,
    /// The present time, in seconds since 1970.
    now: u32,
    /// Cells of columns of many cells that are not in `row` yet, because many cells of it stand
    /// behind their places. [`PendingRow::finish`] adds them.
    late: BTreeMap<ColumnId, Vec<Cell>>,
    /// Lists as they are after the operations so far: those that were read after the statement had
    /// written to them.
    lists: BTreeMap<ColumnId, List>,
}

impl<'a> PendingRow<'a> {
    pub fn new(row: &'a mut Row, table: &'a TableMetadata, before: Option<&'a Row>, now: u32) -> Self {
        Self { row, table, before, now, late: BTreeMap::new(), lists: BTreeMap::new() }
    }

    /// Adds a cell of a column of many cells.
    pub fn put(&mut self, cell: Cell) {
        if let Some(list) = self.lists.get_mut(&cell.column)
            && let Some(ty) = self.table.type_of(cell.column)
        {
            list.put(ty, cell.clone(), self.now);
        }
        if let Some(cell) = self.row.add_complex_cell_near_end(self.table, cell) {
            self.late.entry(cell.column).or_default().push(cell);
        }
    }

    /// Deletes a column of many cells.
    pub fn delete(&mut self, column: ColumnId, deletion: DeletionTime) {
        self.lists.remove(&column);
        self.row.add_complex_deletion(column, deletion);
    }

    /// Adds to the row what has waited for the end of the statement.
    pub fn finish(self) {
        for (column, cells) in self.late {
            self.row.add_complex_cells(self.table, column, cells);
        }
    }

    /// The value of a column of one cell; None: it has none.
    pub fn value(&self, column: ColumnId) -> Option<Bytes> {
        let before = self.before.and_then(|row| simple_cell(row, column));
        let newest = match (before, simple_cell(self.row, column)) {
            (Some(before), Some(written)) if written.reconcile(before) != Ordering::Greater => Some(before),
            (before, written) => written.or(before),
        };
        newest.filter(|cell| cell.is_live(self.now)).map(|cell| cell.value.clone())
    }

    /// The path of the element at an index of a list.
    pub fn path_at(&mut self, column: ColumnId, index: &Bytes, when_null: &str) -> Result<Bytes, CqlError> {
        let index = <[u8; 4]>::try_from(index.as_ref()).map_or(0, i32::from_be_bytes);
        let (at, before) = (usize::try_from(index).ok(), list_cells(self.before, column));
        let (found, size) = match self.written_list(column).map(|list| &*list) {
            Some(list) => (at.and_then(|at| list.at(at)), list.size),
            None => (at.and_then(|at| before.get(at)), before.len()),
        };
        if size == 0 {
            return Err(CqlError::invalid(when_null));
        }
        let out = || CqlError::invalid(format!("List index {index} out of bound, list has size {size}"));
        Ok(path_of(found.ok_or_else(out)?))
    }

    /// The paths of the elements of a list that have one of these values.
    pub fn paths_of(&mut self, column: ColumnId, mut values: Vec<Bytes>) -> Vec<Bytes> {
        let (before, table) = (list_cells(self.before, column), self.table);
        if let Some((list, ty)) = self.written_list(column).zip(table.type_of(column)) {
            return list.paths_of(ty, &values);
        }
        // sorted: to look through a long list for each of many elements would take minutes
        values.sort_unstable();
        before.iter().filter(|cell| values.binary_search(&cell.value).is_ok()).map(path_of).collect()
    }

    /// A list to which the statement has written; None: it has not.
    fn written_list(&mut self, column: ColumnId) -> Option<&mut List> {
        if !self.lists.contains_key(&column) {
            let list = self.list_so_far(column)?;
            self.lists.insert(column, list);
        }
        self.lists.get_mut(&column)
    }

    fn list_so_far(&self, column: ColumnId) -> Option<List> {
        let Some(ColumnData::Complex(written)) = self.row.column(column) else { return None };
        let ty = self.table.type_of(column)?;
        let is_kept = |cell: &&Cell| !written.deletion.deletes(cell.timestamp);
        let mut list = List::of(list_cells(self.before, column).iter().filter(is_kept).cloned());
        let late = self.late.get(&column).into_iter().flatten();
        written.cells.iter().chain(late).filter(is_kept).for_each(|cell| list.put(ty, cell.clone(), self.now));
        Some(list)
    }
}

/// The live elements of a list by their paths, in blocks: an element is found, replaced or taken
/// out without moving those of other blocks.
struct List {
    /// None of them is empty.
    blocks: Vec<Vec<Cell>>,
    /// Elements in all blocks.
    size: usize,
    /// Paths by the values that their elements have, or had: an element may have another value by
    /// now, or be gone. None: nothing was looked for by its value.
    paths: Option<BTreeMap<Bytes, Vec<Bytes>>>,
}

impl List {
    /// A list of elements whose paths ascend.
    fn of(cells: impl Iterator<Item = Cell>) -> Self {
        let mut blocks: Vec<Vec<Cell>> = Vec::new();
        let mut size = 0;
        for cell in cells {
            match blocks.last_mut().filter(|block| block.len() < BLOCK_SIZE) {
                Some(block) => block.push(cell),
                None => blocks.push(vec![cell]),
            }
            size += 1;
        }
        Self { blocks, size, paths: None }
    }

    fn at(&self, mut index: usize) -> Option<&Cell> {
        for block in &self.blocks {
            match block.get(index) {
                Some(cell) => return Some(cell),
                None => index -= block.len(),
            }
        }
        None
    }

    /// The paths of the elements that have one of these values, which are about to be taken out.
    /// The list is passed once, however many operations of a statement look for values.
    fn paths_of(&mut self, ty: &CqlType, values: &[Bytes]) -> Vec<Bytes> {
        let mut paths = self.paths.take().unwrap_or_else(|| {
            let mut paths: BTreeMap<Bytes, Vec<Bytes>> = BTreeMap::new();
            let cells = self.blocks.iter().flatten();
            cells.for_each(|cell| paths.entry(cell.value.clone()).or_default().push(path_of(cell)));
            paths
        });
        let mut found = Vec::new();
        for value in values {
            let has_value = |path: &Bytes| {
                let (block, at) = self.place(ty, path);
                at.is_ok_and(|at| self.blocks[block][at].value == *value)
            };
            found.extend(paths.remove(value).into_iter().flatten().filter(has_value));
        }
        self.paths = Some(paths);
        found
    }

    /// The block to which a path belongs, and its place there: Ok where an element has it.
    fn place(&self, ty: &CqlType, path: &[u8]) -> (usize, Result<usize, usize>) {
        let order = |other: &Cell| compare_paths(ty, other.path.as_deref().unwrap_or_default(), path);
        let begins_before = |block: &Vec<Cell>| block.first().is_some_and(|first| order(first) != Ordering::Greater);
        let block = self.blocks.partition_point(begins_before).saturating_sub(1);
        (block, self.blocks.get(block).map_or(Err(0), |cells| cells.binary_search_by(order)))
    }

    /// Puts an element in its place, or takes the one of its path out if it is not live, where it
    /// is newer than what is there.
    fn put(&mut self, ty: &CqlType, cell: Cell, now: u32) {
        let path = path_of(&cell);
        let (place, found) = self.place(ty, &path);
        if found.is_ok_and(|at| cell.reconcile(&self.blocks[place][at]) != Ordering::Greater) {
            return;
        }
        let is_live = cell.is_live(now);
        if let Some(paths) = &mut self.paths
            && is_live
        {
            paths.entry(cell.value.clone()).or_default().push(path);
        }
        match (found, is_live) {
            (Ok(at), true) => self.blocks[place][at] = cell,
            (Ok(at), false) => {
                self.blocks[place].remove(at);
                self.size -= 1;
            }
            (Err(at), true) => {
                if self.blocks.is_empty() {
                    self.blocks.push(Vec::new());
                }
                self.blocks[place].insert(at, cell);
                self.size += 1;
            }
            (Err(_), false) => return,
        }
        let block = &mut self.blocks[place];
        if block.is_empty() {
            self.blocks.remove(place);
        } else if block.len() >= 2 * BLOCK_SIZE {
            let behind = block.split_off(BLOCK_SIZE);
            self.blocks.insert(place + 1, behind);
        }
    }
}

fn path_of(cell: &Cell) -> Bytes {
    cell.path.clone().unwrap_or_default()
}

fn simple_cell(row: &Row, column: ColumnId) -> Option<&Cell> {
    match row.column(column) {
        Some(ColumnData::Simple(cell)) => Some(cell),
        _ => None,
    }
}

/// The cells of a list in the row before the statement.
fn list_cells(before: Option<&Row>, column: ColumnId) -> &[Cell] {
    match before.and_then(|row| row.column(column)) {
        Some(ColumnData::Complex(complex)) => &complex.cells,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Elements are put, replaced and taken out in a drawn order; the list is what a map is.
    #[test]
    fn a_list_in_blocks_equals_a_map() {
        let (mut list, mut twin) = (List::of(std::iter::empty()), BTreeMap::new());
        let value_of = |step: i64| Bytes::copy_from_slice(&(step % 50).to_be_bytes());
        let mut drawn = 1u32;
        for step in 0..20_000i64 {
            drawn = drawn.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let path = Bytes::copy_from_slice(&(drawn >> 20).to_be_bytes());
            let is_live = !(drawn >> 8).is_multiple_of(3);
            let cell = match is_live {
                true => Cell::live(ColumnId(0), step, value_of(step)),
                false => Cell::tombstone(ColumnId(0), step, 1),
            };
            if step == 10_000 {
                assert_eq!(list.paths_of(&CqlType::Blob, &[]), Vec::<Bytes>::new());
            }
            list.put(&CqlType::Blob, cell.at(path.clone()), 1);
            match is_live {
                true => twin.insert(path, step),
                false => twin.remove(&path),
            };
        }
        assert_eq!(list.size, twin.len());
        assert!(list.blocks.len() > 4, "blocks were halved");
        let equals = |cell: &Cell, (path, step): (&Bytes, &i64)| path_of(cell) == *path && cell.timestamp == *step;
        let mut at = twin.iter().enumerate();
        assert!(at.all(|(at, entry)| list.at(at).is_some_and(|cell| equals(cell, entry))));
        assert!(list.at(list.size).is_none());
        let mut found = list.paths_of(&CqlType::Blob, &[value_of(7), value_of(8)]);
        found.sort();
        found.dedup();
        let wanted = twin.iter().filter(|(_, step)| [7, 8].contains(&(**step % 50)));
        assert_eq!(found, wanted.map(|(path, _)| path.clone()).collect::<Vec<_>>());
    }
}
