//! Writes. A mutation is what one statement or batch changes under one partition key, with an
//! update for each table. Agrees with `org.apache.cassandra.db.Mutation` and
//! `partitions.PartitionUpdate`.

use std::cmp::Ordering;
use std::sync::Arc;

use schema::TableMetadata;
use types::DecoratedKey;

use crate::{DeletionTime, Row, Slice};

mod stream;
mod timestamps;

pub use stream::Updates;

/// Changes to one partition of one table.
#[derive(Clone, PartialEq, Debug)]
pub struct PartitionUpdate {
    /// The table.
    pub table: Arc<TableMetadata>,
    /// The partition.
    pub key: DecoratedKey,
    /// The deletion of the partition.
    pub deletion: DeletionTime,
    /// The changes to static columns; None: there are none.
    pub static_row: Option<Row>,
    /// The rows in clustering order, each clustering once.
    pub rows: Vec<Row>,
    /// The deletions of ranges as they were given; they may overlap.
    pub range_deletions: Vec<(Slice, DeletionTime)>,
}

impl PartitionUpdate {
    /// An update without changes.
    pub fn new(table: Arc<TableMetadata>, key: DecoratedKey) -> Self {
        Self {
            table,
            key,
            deletion: DeletionTime::LIVE,
            static_row: None,
            rows: Vec::new(),
            range_deletions: Vec::new(),
        }
    }

    /// The greatest timestamp in the update; i64::MIN if there is none.
    pub fn max_timestamp(&self) -> i64 {
        let of_ranges = self.range_deletions.iter().map(|(_, deletion)| deletion.marked_for_delete_at);
        let of_rows = self.rows.iter().chain(&self.static_row).map(Row::max_timestamp);
        of_ranges.chain(of_rows).fold(self.deletion.marked_for_delete_at, i64::max)
    }

    /// Adds a row, merged with the row of the same clustering. Adding in order is cheap.
    pub fn add_row(&mut self, row: Row) {
        let comparator = self.table.comparator.clone();
        let order = |other: &Row| comparator.compare_values(&other.clustering, &row.clustering);
        match self.rows.last() {
            None => self.rows.push(row),
            Some(last) if order(last) == Ordering::Less => self.rows.push(row),
            _ => match self.rows.binary_search_by(order) {
                Ok(index) => self.rows[index].merge(row, &self.table),
                Err(index) => self.rows.insert(index, row),
            },
        }
    }

    /// Merges changes into the static row.
    pub fn add_static(&mut self, row: Row) {
        match &mut self.static_row {
            Some(old) => old.merge(row, &self.table),
            None => self.static_row = Some(row),
        }
    }

    /// Whether there are no changes.
    pub fn is_empty(&self) -> bool {
        self.deletion.is_live() && self.static_row.is_none() && self.rows.is_empty() && self.range_deletions.is_empty()
    }

    /// Merges other updates of the same partition into this one. n rows in any order cost n log n.
    pub fn merge(&mut self, others: impl IntoIterator<Item = PartitionUpdate>) {
        let comparator = self.table.comparator.clone();
        let order = |a: &Row, b: &Row| comparator.compare_values(&a.clustering, &b.clustering);
        for other in others {
            self.deletion = self.deletion.merge(other.deletion);
            if let Some(row) = other.static_row {
                self.add_static(row);
            }
            self.rows.extend(other.rows);
            self.range_deletions.extend(other.range_deletions);
        }
        // rows that a peer sent stand in its order, also those that were there before
        let ascends = |pair: &[Row]| order(&pair[0], &pair[1]) == Ordering::Less;
        if !self.rows.windows(2).all(ascends) {
            // a stable sort: rows of the same clustering stay in the order of their arrival
            self.rows.sort_by(order);
            let mut merged: Vec<Row> = Vec::with_capacity(self.rows.len());
            for row in std::mem::take(&mut self.rows) {
                match merged.last_mut() {
                    Some(last) if order(last, &row) == Ordering::Equal => last.merge(row, &self.table),
                    _ => merged.push(row),
                }
            }
            self.rows = merged;
            assert!(self.rows.windows(2).all(ascends), "rows of an update ascend");
        }
    }
}

/// Changes under one partition key in one or more tables of one keyspace. They are logged as one
/// record and applied together.
#[derive(Clone, PartialEq, Debug)]
pub struct Mutation {
    /// The partition key.
    pub key: DecoratedKey,
    /// The updates: at least one, all with this key.
    pub updates: Vec<PartitionUpdate>,
}

impl Mutation {
    /// A mutation of one update.
    pub fn of(update: PartitionUpdate) -> Self {
        Self { key: update.key.clone(), updates: vec![update] }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use bytes::Bytes;
    use schema::table::ColumnSpec;
    use schema::{ColumnId, ColumnKind, TableFlags, TableId, TableKind, TableParams};
    use types::CqlType;

    use super::*;
    use crate::{Cell, ClusteringValues, ColumnData};

    /// `t (k int, c int, v int, s int static, PRIMARY KEY (k, c))`.
    pub(crate) fn table() -> Arc<TableMetadata> {
        let spec =
            |name: &str, kind| ColumnSpec { name: name.into(), kind, position: 0, ty: CqlType::Int, reversed: false };
        let columns = vec![
            spec("k", ColumnKind::PartitionKey),
            spec("c", ColumnKind::Clustering),
            spec("v", ColumnKind::Regular),
            spec("s", ColumnKind::Static),
        ];
        let (kind, flags, params) = (TableKind::Regular, TableFlags::COMPOUND, TableParams::default());
        Arc::new(TableMetadata::new(TableId([1; 16]), "k", "t", kind, flags, params, columns, BTreeMap::new(), None))
    }

    fn cell(timestamp: i64) -> Cell {
        Cell::live(ColumnId(0), timestamp, Bytes::copy_from_slice(&timestamp.to_be_bytes()))
    }

    /// One row, the static row, or the deletion of the partition.
    fn drawn(table: &Arc<TableMetadata>, number: u32) -> PartitionUpdate {
        let mut update = PartitionUpdate::new(Arc::clone(table), DecoratedKey::new(Bytes::from_static(b"k")));
        let draw = number.wrapping_mul(2_654_435_761) >> 16;
        let timestamp = i64::from(draw % 13);
        match draw % 17 {
            0 => update.deletion = DeletionTime::new(timestamp, draw),
            1 => {
                update.static_row = Some(Row {
                    columns: vec![ColumnData::Simple(cell(timestamp))],
                    ..Row::new(ClusteringValues::new())
                })
            }
            _ => {
                let clustering = Bytes::copy_from_slice(&(draw % 100).to_be_bytes());
                let mut row = Row::new([Some(clustering)].into_iter().collect());
                row.add_cell(cell(timestamp));
                update.add_row(row);
            }
        }
        update
    }

    #[test]
    fn many_updates_at_once_are_as_one_after_the_other() {
        let table = table();
        for (first, count) in [(0, 0), (0, 1), (7, 2), (100, 50), (1_000, 500)] {
            let updates: Vec<PartitionUpdate> = (first..first + count).map(|number| drawn(&table, number)).collect();
            let empty = PartitionUpdate::new(Arc::clone(&table), DecoratedKey::new(Bytes::from_static(b"k")));
            let mut expected = empty.clone();
            for update in updates.clone() {
                expected.deletion = expected.deletion.merge(update.deletion);
                update.static_row.into_iter().for_each(|row| expected.add_static(row));
                update.rows.into_iter().for_each(|row| expected.add_row(row));
            }
            let mut merged = empty;
            merged.merge(updates);
            assert_eq!(merged, expected);
            let order = |rows: &[Row]| table.comparator.compare_values(&rows[0].clustering, &rows[1].clustering);
            assert!(merged.rows.windows(2).all(|rows| order(rows) == Ordering::Less));
        }
    }

    /// The sender of an update says in which order its rows stand, and may repeat one.
    #[test]
    fn rows_in_any_order_are_merged() {
        let table = table();
        let update = |clusterings: &[i32]| {
            let mut update = PartitionUpdate::new(Arc::clone(&table), DecoratedKey::new(Bytes::from_static(b"k")));
            for clustering in clusterings {
                let clustering = Bytes::copy_from_slice(&clustering.to_be_bytes());
                let mut row = Row::new([Some(clustering)].into_iter().collect());
                row.add_cell(cell(1));
                update.rows.push(row);
            }
            update
        };
        let cases: [(&[i32], &[i32]); 4] = [(&[3, 1, 2], &[4]), (&[1, 1], &[2]), (&[2, 1], &[]), (&[2], &[3, 1, 1])];
        for (own, other) in cases {
            let mut merged = update(own);
            merged.merge([update(other)]);
            let mut expected = [own, other].concat();
            expected.sort_unstable();
            expected.dedup();
            assert_eq!(merged.rows, update(&expected).rows);
        }
    }
}
