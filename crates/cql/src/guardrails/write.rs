//! Guardrails of writes.
//!
//! Must agree with: what `ModificationStatement`, `BatchStatement`, `Lists`, `Sets`, `Maps` and
//! `UpdateParameters` ask of `Guardrails`.

use rows::{Cell, ColumnData, PartitionUpdate, Row};
use schema::{ColumnMetadata, TableMetadata};
use types::{Consistency, CqlType};

use super::threshold::{Guard, Threshold, level};
use super::{Values, ensure};
use crate::error::CqlError;

const FUTURE: Guard = Guard {
    name: "maximum_timestamp",
    reason: "Timestamps too far in the future can lead to data that can't be easily overwritten",
};
const PAST: Guard = Guard {
    name: "minimum_timestamp",
    reason: "Timestamps too far in the past can cause writes can be unexpectedly lost",
};

/// The guardrails of writes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WriteGuards {
    /// user_timestamps_enabled: USING TIMESTAMP
    pub user_timestamps: bool,
    /// read_before_write_list_operations_enabled
    pub read_before_write: bool,
    /// maximum_timestamp: microseconds ahead of the clock
    pub maximum_timestamp: Threshold,
    /// minimum_timestamp: microseconds behind the clock
    pub minimum_timestamp: Threshold,
    /// column_value_size, bytes
    pub column_value_size: Threshold,
    /// collection_size, bytes
    pub collection_size: Threshold,
    /// items_per_collection
    pub items_per_collection: Threshold,
    /// sai_string_term_size, bytes: terms of storage-attached indexes that are neither frozen nor
    /// vectors
    pub string_term_size: Threshold,
    /// sai_frozen_term_size, bytes
    pub frozen_term_size: Threshold,
    /// sai_vector_term_size, bytes
    pub vector_term_size: Threshold,
    /// write_consistency_levels
    pub consistency: Values,
}

impl Default for WriteGuards {
    fn default() -> Self {
        let off = Threshold::default();
        Self {
            user_timestamps: true,
            read_before_write: true,
            maximum_timestamp: off,
            minimum_timestamp: off,
            column_value_size: off,
            collection_size: off,
            items_per_collection: off,
            string_term_size: off,
            frozen_term_size: off,
            vector_term_size: off,
            consistency: Values::default(),
        }
    }
}

/// The parts of an INSERT, UPDATE or DELETE that are checked.
pub(crate) struct Write<'w> {
    pub table: &'w TableMetadata,
    /// USING TIMESTAMP, in microseconds.
    pub timestamp: Option<i64>,
    /// The operation on a list that reads before it writes, as messages name it; None: there is
    /// none.
    pub list_operation: Option<&'static str>,
}

impl WriteGuards {
    /// Checks the consistency levels of a request.
    pub(crate) fn check_levels(
        &self,
        level: Consistency,
        serial: Consistency,
        warnings: &mut Vec<String>,
    ) -> Result<(), CqlError> {
        let mut names = vec![level.name()];
        if serial != level {
            names.push(serial.name());
        }
        self.consistency.check("write_consistency_levels", "write consistency levels", &names, warnings)
    }

    /// Checks a statement. `now` is the present time in microseconds.
    pub(crate) fn check(&self, write: &Write<'_>, now: i64, warnings: &mut Vec<String>) -> Result<(), CqlError> {
        if let Some(timestamp) = write.timestamp {
            ensure(self.user_timestamps, Guard::new("user_timestamps"), "User provided timestamps (USING TIMESTAMP)")?;
            self.check_timestamp(write.table, timestamp, now, warnings)?;
        }
        match write.list_operation {
            Some(operation) => {
                ensure(self.read_before_write, Guard::new("read_before_write_list_operations"), operation)
            }
            None => Ok(()),
        }
    }

    fn check_timestamp(
        &self,
        table: &TableMetadata,
        timestamp: i64,
        now: i64,
        warnings: &mut Vec<String>,
    ) -> Result<(), CqlError> {
        let name = &table.name;
        let shifted = |threshold: &Threshold, shift: &dyn Fn(i64) -> i64| Threshold {
            warn: threshold.warn.map(shift),
            fail: threshold.fail.map(shift),
        };
        let (latest, earliest) = (
            shifted(&self.maximum_timestamp, &|ahead| now.saturating_add(ahead)),
            shifted(&self.minimum_timestamp, &|behind| now.saturating_sub(behind)),
        );
        let after = |is_warning: bool, threshold: i64| {
            format!(
                "The modification to table {name} has a timestamp {timestamp} after the maximum allowable {} threshold {threshold}",
                level(is_warning)
            )
        };
        latest.at_most(FUTURE, timestamp, &after, warnings)?;
        let before = |is_warning: bool, threshold: i64| {
            format!(
                "The modification to table {name} has a timestamp {timestamp} before the minimum allowable {} threshold {threshold}",
                level(is_warning)
            )
        };
        earliest.at_least(PAST, timestamp, &before, warnings)
    }

    /// Checks an update before it is written.
    pub(crate) fn check_update(&self, update: &PartitionUpdate, warnings: &mut Vec<String>) -> Result<(), CqlError> {
        if !self.column_value_size.is_off() || !self.collection_size.is_off() || !self.items_per_collection.is_off() {
            let mut rows = update.static_row.iter().chain(&update.rows);
            rows.try_for_each(|row| self.check_row(&update.table, row, warnings))?;
        }
        super::terms::check(self, update, warnings)
    }

    fn check_row(&self, table: &TableMetadata, row: &Row, warnings: &mut Vec<String>) -> Result<(), CqlError> {
        for data in &row.columns {
            let Some(column) = table.column(data.column()) else { continue };
            match data {
                ColumnData::Simple(cell) if column.ty.is_collection() && !cell.is_tombstone() => {
                    self.check_items(column, types::collection::count(&cell.value), warnings)?;
                    self.check_value(column, cell.value.len(), warnings)?;
                    self.check_collection(column, cell_size(cell), warnings)?;
                }
                ColumnData::Simple(cell) => self.check_value(column, cell.value.len(), warnings)?,
                ColumnData::Complex(complex) => self.check_complex(column, &complex.cells, warnings)?,
            }
        }
        Ok(())
    }

    fn check_complex(
        &self,
        column: &ColumnMetadata,
        cells: &[Cell],
        warnings: &mut Vec<String>,
    ) -> Result<(), CqlError> {
        let live = || cells.iter().filter(|cell| !cell.is_tombstone());
        if column.ty.is_collection() {
            self.check_items(column, live().count(), warnings)?;
        }
        for cell in cells {
            self.check_value(column, cell.value.len(), warnings)?;
            let is_keyed = !matches!(column.ty, CqlType::List { .. });
            let path = cell.path.as_ref().filter(|_| is_keyed).map_or(0, |path| path.len());
            self.check_value(column, path, warnings)?;
        }
        if column.ty.is_collection() {
            self.check_collection(column, live().map(cell_size).sum(), warnings)?;
        }
        Ok(())
    }

    fn check_items(&self, column: &ColumnMetadata, items: usize, warnings: &mut Vec<String>) -> Result<(), CqlError> {
        let name = &column.name;
        let message = |is_warning: bool, threshold: i64| {
            let which = level(is_warning);
            format!("Detected collection {name} with {items} items, this exceeds the {which} threshold of {threshold}.")
        };
        let guard = Guard::new("items_per_collection");
        self.items_per_collection.at_most(guard, as_number(items), &message, warnings)
    }

    fn check_value(&self, column: &ColumnMetadata, size: usize, warnings: &mut Vec<String>) -> Result<(), CqlError> {
        let message = |is_warning: bool, threshold: i64| {
            let (name, which) = (&column.name, level(is_warning));
            format!("Value of column '{name}' has size {size}, this exceeds the {which} threshold of {threshold}.")
        };
        self.column_value_size.at_most(Guard::new("column_value_size"), as_number(size), &message, warnings)
    }

    fn check_collection(
        &self,
        column: &ColumnMetadata,
        size: usize,
        warnings: &mut Vec<String>,
    ) -> Result<(), CqlError> {
        let name = &column.name;
        let message = |is_warning: bool, threshold: i64| {
            let which = level(is_warning);
            format!("Detected collection {name} of size {size}, this exceeds the {which} threshold of {threshold}.")
        };
        self.collection_size.at_most(Guard::new("collection_size"), as_number(size), &message, warnings)
    }
}

/// The size of a cell in bytes, as Cassandra counts it: value, path, timestamp, TTL and deletion
/// time.
fn cell_size(cell: &Cell) -> usize {
    const TIMES: usize = 8 + 4 + 8;
    cell.value.len() + cell.path.as_ref().map_or(0, |path| path.len()) + TIMES
}

fn as_number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
