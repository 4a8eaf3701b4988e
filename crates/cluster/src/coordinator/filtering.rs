//! The conditions of a statement that replicas check before they answer.
//!
//! A single replica is asked for the rows that meet all of them, by an index if one answers.
//!
//! The answers of several replicas are merged before the conditions are checked, so a replica may
//! leave out only rows that do not meet them once merged. Conditions on key columns never change.
//! Of conditions on one regular column, the newest value of it is what counts, and the replica that
//! has it gives the row. Conditions on two columns may be met by no replica alone, and so may two
//! on one collection that is not frozen, because its elements are merged one by one; those on a
//! static column or a counter are met by no replica at all. These are left to the coordinator.
//! Cassandra sends all of them, and may miss such rows (CASSANDRA-19007).
//!
//! The answer of one replica may be out of date, and newer data of another one left out: see
//! [`super::protection`]. Agrees with `org.apache.cassandra.db.filter.RowFilter` as it is sent.

use std::sync::Arc;

use internode::payload::read_request::{ReadRequest as Question, index_answering};
use rows::{Expression, ReadCommand, RowFilter, WantedRows};
use schema::{ColumnId, ColumnKind, TableMetadata};

/// The conditions that the replicas of a part check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Filtering {
    filter: RowFilter,
    /// The id of the index to search.
    index: Option<[u8; 16]>,
    /// Rows that are wanted of those that meet the conditions.
    pub rows: u32,
    /// Whether a replica may leave out a row whose older form another one gives.
    pub needs_protection: bool,
}

impl Filtering {
    /// The conditions that `replicas` replicas check for a read. None: they give every row.
    pub fn of(command: &ReadCommand, wanted_rows: &WantedRows, replicas: usize) -> Option<Arc<Self>> {
        let table = &command.table;
        let is_merged = replicas > 1;
        let expressions = if is_merged { safe(command, wanted_rows) } else { wanted_rows.expressions.clone() };
        if expressions.is_empty() {
            return None;
        }
        let rows = if expressions.len() == wanted_rows.expressions.len() { wanted_rows.rows } else { u32::MAX };
        let filter = RowFilter { expressions, needs_reconciliation: is_merged };
        let index = command.indexes.iter().find_map(|search| index_answering(table, &search.name, &filter));
        // an index on the partition key tells nothing of a partition that was deleted
        let needs_protection = is_merged && filter.is_about_rows(table);
        let index = index.filter(|_| !is_merged || needs_protection);
        Some(Arc::new(Self { filter, index, rows, needs_protection }))
    }

    /// Adds the conditions to what a replica is asked.
    pub fn add_to(&self, question: &mut Question) {
        question.row_filter.clone_from(&self.filter);
        question.index = self.index;
    }
}

/// The conditions by which each replica may choose rows before they are merged: those on key
/// columns, and those on one regular column, that of an index if there is one. Of those on a
/// collection that is not frozen only one: the one that the index answers, or else the first.
fn safe(command: &ReadCommand, wanted_rows: &WantedRows) -> Vec<Expression> {
    let table = &command.table;
    let kind = |id: ColumnId| table.column(id).map(|column| (column.kind, column.ty.is_counter()));
    let is_plain = |expression: &&Expression| {
        expression.column().and_then(kind).is_some_and(|kind| kind == (ColumnKind::Regular, false))
    };
    let indexed =
        |expression: &&Expression| command.indexes.iter().any(|search| is_of(table, &search.name, expression));
    let plain: Vec<&Expression> = wanted_rows.expressions.iter().filter(is_plain).collect();
    let chosen = plain.iter().copied().find(indexed).or(plain.first().copied());
    let is_complex = |id: ColumnId| table.column(id).is_some_and(|column| column.is_complex());
    let is_chosen = |expression: &Expression, chosen: &Expression| match expression.column() {
        Some(column) if is_complex(column) => std::ptr::eq(expression, chosen),
        column => column.is_some() && column == chosen.column(),
    };
    let is_safe = |expression: &&Expression| match expression.column().and_then(kind) {
        Some((ColumnKind::PartitionKey | ColumnKind::Clustering, _)) => true,
        _ => chosen.is_some_and(|chosen| is_chosen(expression, chosen)),
    };
    wanted_rows.expressions.iter().filter(is_safe).cloned().collect()
}

/// Whether an index is on the column of a condition.
fn is_of(table: &TableMetadata, index: &str, expression: &Expression) -> bool {
    let filter = RowFilter { expressions: vec![expression.clone()], needs_reconciliation: false };
    index_answering(table, index, &filter).is_some()
}

#[cfg(test)]
mod tests;
