//! Sizes of what a read gives, as bytes that Cassandra's objects of it take on a 64-bit JVM with
//! compressed pointers.
//!
//! Thresholds on the size of reads (`local_read_size_warn_threshold`) are numbers of such bytes, so
//! a threshold keeps its meaning where nodes of both kinds share a ring. The sizes are those of
//! rows from SSTables; Cassandra counts rows from its memtables a little larger. Agrees with
//! `unsharedHeapSize` of `org.apache.cassandra.db.rows.{BTreeRow,ArrayCell,ComplexColumnData}`.

use crate::{CellPath, ColumnData, DeletionTime, PartitionHead, RangeTombstoneMarker, Row, Unfiltered};

/// A row without clustering, liveness, deletion and columns.
const ROW: u64 = 40;
/// A clustering, without its values.
const CLUSTERING: u64 = 24;
/// The liveness of a row that does not expire.
const LIVENESS: u64 = 24;
/// The liveness of a row that expires.
const EXPIRING_LIVENESS: u64 = 32;
/// A deletion time that is not live.
const DELETION_TIME: u64 = 24;
/// The object around the deletion time of a row.
const ROW_DELETION: u64 = 24;
/// A cell, without value and path.
const CELL: u64 = 40;
/// The path of a cell, without its bytes.
const CELL_PATH: u64 = 16;
/// A column of several cells, without these.
const COMPLEX_COLUMN: u64 = 24;
/// A marker, without its deletion times.
const MARKER: u64 = 24;
/// A buffer, without the array of its bytes.
const BUFFER: u64 = 56;
/// The header of an array.
const ARRAY: u64 = 16;
/// A pointer.
const POINTER: u64 = 4;
/// Objects begin at multiples of so many bytes.
const ALIGNMENT: u64 = 8;
/// The most elements of a tree that has one node.
const TREE_LEAF_MAX: u64 = 31;
/// Bytes of a larger tree for each element, its inner nodes included.
const TREE_ELEMENT: u64 = 5;

/// Bytes of an entry of a row index in memory, beside those on disk.
const INDEX_BLOCK: u64 = 40 + CLUSTERING + DELETION_TIME;

/// The size of the part of a partition before its rows: key, deletion and static row.
pub fn of_head(head: &PartitionHead) -> u64 {
    let static_row = match &head.static_row {
        Some(row) => of_row(row),
        // an empty row is an object where the SSTable has static columns
        None if head.names_statics => ROW,
        None => 0,
    };
    buffer(head.key.key.len()) + deletion_time(&head.deletion) + static_row
}

/// The size of a row or a marker.
pub fn of_unfiltered(unfiltered: &Unfiltered) -> u64 {
    match unfiltered {
        Unfiltered::Row(row) => of_row(row),
        Unfiltered::Marker(RangeTombstoneMarker { close, open, .. }) => {
            MARKER + [close, open].into_iter().flatten().map(deletion_time).sum::<u64>()
        }
    }
}

/// The size of the row index of a partition, an entry of Index.db with so many blocks and bytes.
/// Agrees with `RowIndexEntry.Serializer.estimateMaterializedIndexSize`.
pub fn of_row_index(blocks: u64, bytes: u64) -> u64 {
    blocks.saturating_mul(INDEX_BLOCK).saturating_add(bytes)
}

fn of_row(row: &Row) -> u64 {
    let clustering = match row.clustering.len() {
        0 => 0,
        count => {
            let values = row.clustering.iter().map(|value| array(value.as_ref().map_or(0, |value| value.len())));
            CLUSTERING + pointers(count) + values.sum::<u64>()
        }
    };
    let liveness = match &row.liveness {
        liveness if liveness.is_empty() => 0,
        liveness if liveness.is_expiring() => EXPIRING_LIVENESS,
        _ => LIVENESS,
    };
    let deletion = if row.deletion.is_live() { 0 } else { ROW_DELETION + DELETION_TIME };
    let columns = row.columns.iter().map(|data| match data {
        ColumnData::Simple(cell) => CELL + array(cell.value.len()),
        ColumnData::Complex(complex) => {
            let cells = complex.cells.iter().map(|cell| CELL + array(cell.value.len()) + path(cell.path.as_ref()));
            COMPLEX_COLUMN + tree(complex.cells.len()) + deletion_time(&complex.deletion) + cells.sum::<u64>()
        }
    });
    ROW + clustering + liveness + deletion + tree(row.columns.len()) + columns.sum::<u64>()
}

fn path(path: Option<&CellPath>) -> u64 {
    path.map_or(0, |path| CELL_PATH + buffer(path.len()))
}

fn deletion_time(deletion: &DeletionTime) -> u64 {
    if deletion.is_live() { 0 } else { DELETION_TIME }
}

fn buffer(length: usize) -> u64 {
    BUFFER + array(length)
}

fn array(length: usize) -> u64 {
    (ARRAY + length as u64).next_multiple_of(ALIGNMENT)
}

fn pointers(count: usize) -> u64 {
    (ARRAY + count as u64 * POINTER).next_multiple_of(ALIGNMENT)
}

/// A tree of elements: nodes have an odd number of places.
fn tree(elements: usize) -> u64 {
    match elements as u64 {
        0 => 0,
        count if count <= TREE_LEAF_MAX => pointers(elements | 1),
        count => count * TREE_ELEMENT,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use schema::ColumnId;
    use types::DecoratedKey;

    use super::*;
    use crate::{Cell, Liveness};

    /// The sizes that Cassandra 5.0.8's own classes give for the parts (OpenJDK 17, default heap).
    #[test]
    fn trees_have_the_sizes_of_cassandras() {
        let found = [0, 1, 2, 3, 4, 5, 8, 16, 31].map(tree);
        assert_eq!(found, [0, 24, 32, 32, 40, 40, 56, 88, 144]);
        // beyond one node within a quarter: 200, 520 and 4,792
        assert_eq!([32, 100, 1000].map(tree), [160, 500, 5000]);
    }

    #[test]
    fn a_row_is_the_sum_of_its_parts() {
        let mut row = Row::new([Some(Bytes::from_static(&[0; 4]))].into_iter().collect());
        row.liveness = Liveness::new(10);
        row.columns.push(ColumnData::Simple(Cell::live(ColumnId(0), 10, Bytes::from(vec![7; 100]))));
        // row, clustering with an array of one pointer and one of 4 bytes, liveness, tree, cell
        let wanted = 40 + (24 + 24 + 24) + 24 + 24 + (40 + 120);
        assert_eq!(of_unfiltered(&Unfiltered::Row(row)), wanted);
        let key = DecoratedKey::new(Bytes::from_static(&[0; 4]));
        assert_eq!(of_head(&PartitionHead::new(key, DeletionTime::LIVE, None)), 56 + 24);
        assert_eq!(of_row_index(3, 200), 3 * 88 + 200);
    }
}
