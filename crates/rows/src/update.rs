//! Writes: a mutation is what one statement or batch does to one partition key, per table an update.
//! Agrees with `org.apache.cassandra.db.Mutation` and `partitions.PartitionUpdate`.

use std::cmp::Ordering;
use std::sync::Arc;

use schema::TableMetadata;
use types::DecoratedKey;

use crate::{DeletionTime, Row, Slice};

/// Changes to one partition of one table.
#[derive(Clone, PartialEq, Debug)]
pub struct PartitionUpdate {
    /// The table.
    pub table: Arc<TableMetadata>,
    /// The partition.
    pub key: DecoratedKey,
    /// Deletion of the partition.
    pub deletion: DeletionTime,
    /// Changes to static columns.
    pub static_row: Option<Row>,
    /// Rows in clustering order, no two alike.
    pub rows: Vec<Row>,
    /// Range deletions as given; they may overlap.
    pub range_deletions: Vec<(Slice, DeletionTime)>,
}

impl PartitionUpdate {
    /// Without changes yet.
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

    /// Adds a row, merging it with one of the same clustering. Adding in order is cheap.
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

    /// Does nothing.
    pub fn is_empty(&self) -> bool {
        self.deletion.is_live() && self.static_row.is_none() && self.rows.is_empty() && self.range_deletions.is_empty()
    }

    /// Merges another update of the same partition into this.
    pub fn merge(&mut self, other: PartitionUpdate) {
        self.deletion = self.deletion.merge(other.deletion);
        if let Some(row) = other.static_row {
            self.add_static(row);
        }
        for row in other.rows {
            self.add_row(row);
        }
        self.range_deletions.extend(other.range_deletions);
    }
}

/// Changes to one partition key: one or more tables of one keyspace. Applied and logged as one record.
#[derive(Clone, PartialEq, Debug)]
pub struct Mutation {
    /// The partition key.
    pub key: DecoratedKey,
    /// At least one; all with this key.
    pub updates: Vec<PartitionUpdate>,
}

impl Mutation {
    /// Of one update.
    pub fn of(update: PartitionUpdate) -> Self {
        Self { key: update.key.clone(), updates: vec![update] }
    }
}
