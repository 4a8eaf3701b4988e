//! The conditions of all statements by row, and their changes.

use std::cmp::Ordering;
use std::sync::Arc;

use rows::{
    ClusteringValues, ColumnData, ColumnFilter, DataLimits, DeletionTime, PartitionRange, PartitionUpdate, ReadCommand,
    Row, Slice, Slices,
};
use schema::{ColumnId, ColumnMetadata, TableMetadata};
use types::DecoratedKey;

use super::Bound;
use crate::context::{Bindings, JsonObjects};
use crate::coordinator::CasPartition;
use crate::error::CqlError;
use crate::restrictions::StatementKind;
use crate::sources::{InTransaction, Sources};
use crate::statements::conditions::{BoundCondition, Conditions};
use crate::statements::modification::{ExistingRows, ModificationPlan};

/// The conditions on one row.
enum RowConditions {
    NotExists,
    Exists,
    Columns(Vec<BoundCondition>),
}

/// The conditions and changes of all statements, which are of one partition.
pub(super) struct Request<'a> {
    pub table: &'a Arc<TableMetadata>,
    pub key: DecoratedKey,
    /// The columns of the answer when a condition fails; None: all columns.
    pub shown: Option<Vec<&'a ColumnMetadata>>,
    statements: &'a [Bound<'a>],
    of_static: Option<RowConditions>,
    /// The conditions by row, in clustering order.
    of_rows: Vec<(ClusteringValues, RowConditions)>,
    /// A statement with conditions changes static columns.
    changes_static: bool,
    /// A statement changes rows.
    changes_rows: bool,
}

fn invalid<T>(message: impl Into<String>) -> Result<T, CqlError> {
    Err(CqlError::invalid(message))
}

impl<'a> Request<'a> {
    pub fn of(statements: &'a [Bound<'a>], is_batch: bool, sources: &dyn Sources) -> Result<Self, CqlError> {
        let mut request: Option<Self> = None;
        for (plan, values) in statements {
            let bindings = Bindings { values, sources, json: &JsonObjects::default() };
            let key = only_key(plan, is_batch, &bindings)?;
            let request = match &mut request {
                None => request.insert(Self::empty(statements, plan, key, is_batch)),
                Some(request) if request.key != key => {
                    return invalid("Batch with conditions cannot span multiple partitions");
                }
                Some(request) => request,
            };
            if plan.restrictions.has_clustering_in() {
                let what = if plan.kind == StatementKind::Delete { "deletions" } else { "updates" };
                return invalid(format!("IN on the clustering key columns is not supported with conditional {what}"));
            }
            request.changes_rows |= plan.changes_rows();
            if plan.conditions.is_none() {
                // Cassandra knows the rows of a statement before it looks at the next one
                plan.check_rows(&bindings)?;
            } else {
                request.changes_static |= !plan.static_operations.is_empty();
                request.add(plan, &bindings)?;
            }
        }
        request.ok_or_else(|| CqlError::invalid("Invalid empty batch"))
    }

    fn empty(statements: &'a [Bound<'a>], plan: &'a ModificationPlan, key: DecoratedKey, is_batch: bool) -> Self {
        let table = &plan.table;
        // in a batch the answer shows the keys, so that each row can be recognised
        let keys = if is_batch { table.partition_key.iter().chain(&table.clustering).collect() } else { Vec::new() };
        Self {
            table,
            key,
            shown: Some(keys),
            statements,
            of_static: None,
            of_rows: Vec::new(),
            changes_static: false,
            changes_rows: false,
        }
    }

    fn add(&mut self, plan: &'a ModificationPlan, bindings: &Bindings<'_>) -> Result<(), CqlError> {
        let row = if plan.applies_only_to_static() {
            None
        } else {
            let mut row = plan.restrictions.clusterings(&plan.table, bindings)?.pop();
            // a row of a dense table that is named by fewer columns has nulls in the others; the
            // names alone would stand for every row that begins with them
            if let Some(row) = row.as_mut().filter(|row| plan.table.flags.dense && !row.is_empty()) {
                row.resize(plan.table.clustering.len(), None);
            }
            row
        };
        match &plan.conditions {
            Conditions::None => {}
            Conditions::NotExists => {
                self.shown = None;
                self.add_existence(row, RowConditions::NotExists)?;
            }
            Conditions::Exists => {
                self.shown = None;
                self.add_existence(row, RowConditions::Exists)?;
            }
            conditions @ Conditions::Columns(_) => {
                for is_static in [false, true] {
                    let mut bound = Vec::new();
                    for condition in conditions.of(is_static) {
                        bound.push(condition.bind(bindings)?);
                        self.show(&condition.column);
                    }
                    if !bound.is_empty() {
                        self.add_columns(if is_static { None } else { row.clone() }, bound)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn show(&mut self, column: &'a ColumnMetadata) {
        if let Some(shown) = &mut self.shown
            && !shown.iter().any(|other| other.id == column.id)
        {
            shown.push(column);
        }
    }

    /// The index of the conditions of a row, or the index where they belong. None stands for the
    /// static row.
    fn place(&mut self, row: Option<&ClusteringValues>) -> Result<&mut RowConditions, usize> {
        match row {
            None => self.of_static.as_mut().ok_or(0),
            Some(row) => {
                let order = |other: &(ClusteringValues, _)| self.table.comparator.compare_values(&other.0, row);
                match self.of_rows.binary_search_by(order) {
                    Ok(index) => Ok(&mut self.of_rows[index].1),
                    Err(index) => Err(index),
                }
            }
        }
    }

    fn insert(&mut self, row: Option<ClusteringValues>, index: usize, conditions: RowConditions) {
        match row {
            None => self.of_static = Some(conditions),
            Some(row) => self.of_rows.insert(index, (row, conditions)),
        }
    }

    fn add_existence(&mut self, row: Option<ClusteringValues>, wanted: RowConditions) -> Result<(), CqlError> {
        match self.place(row.as_ref()) {
            Err(index) => self.insert(row, index, wanted),
            Ok(RowConditions::Columns(_)) => {
                let not = if matches!(wanted, RowConditions::NotExists) { "NOT " } else { "" };
                return invalid(format!("Cannot mix IF conditions and IF {not}EXISTS for the same row"));
            }
            Ok(known) if std::mem::discriminant(known) == std::mem::discriminant(&wanted) => {}
            Ok(_) => return invalid("Cannot mix IF EXISTS and IF NOT EXISTS conditions for the same row"),
        }
        Ok(())
    }

    fn add_columns(&mut self, row: Option<ClusteringValues>, bound: Vec<BoundCondition>) -> Result<(), CqlError> {
        match self.place(row.as_ref()) {
            Err(index) => self.insert(row, index, RowConditions::Columns(bound)),
            Ok(RowConditions::Columns(known)) => known.extend(bound),
            Ok(_) => return invalid("Cannot mix IF conditions and IF NOT EXISTS for the same row"),
        }
        Ok(())
    }

    /// No condition is on a row, so that the first live row suffices to know whether the partition
    /// exists.
    pub fn looks_at_static_only(&self) -> bool {
        self.of_rows.is_empty()
    }

    /// The read command for the conditions.
    pub fn command(&self, now: u32) -> ReadCommand {
        let comparator = &self.table.comparator;
        let (slices, rows) = if self.looks_at_static_only() {
            (Slices::all(), 1)
        } else {
            let names = self.of_rows.iter().map(|(row, _)| Slice::of_prefix(row.clone()));
            (Slices::normalized(names.collect(), comparator), u32::MAX)
        };
        ReadCommand {
            table: Arc::clone(self.table),
            range: PartitionRange::Key(self.key.clone()),
            slices,
            reversed: false,
            columns: ColumnFilter::Some(self.columns()),
            now,
            limits: DataLimits { rows, per_partition: rows },
            indexes: Vec::new(),
        }
    }

    /// The columns to read: all static (or regular) columns if statements change such columns,
    /// otherwise those that conditions compare.
    fn columns(&self) -> Arc<[ColumnId]> {
        let all =
            |wanted: bool, list: &'a [ColumnMetadata]| list.iter().filter(move |_| wanted).map(|column| column.id);
        let mut ids: Vec<_> =
            all(self.changes_static, &self.table.statics).chain(all(self.changes_rows, &self.table.regulars)).collect();
        for (plan, _) in self.statements.iter().filter(|(plan, _)| !plan.conditions.is_none()) {
            ids.extend(
                [true, false].into_iter().flat_map(|is_static| plan.conditions.of(is_static)).map(|c| c.column.id),
            );
            let operations = plan.static_operations.iter().chain(&plan.operations);
            ids.extend(operations.filter(|operation| operation.requires_read()).map(|operation| operation.column()));
        }
        ids.sort_unstable();
        ids.dedup();
        ids.into()
    }

    /// Whether every condition holds.
    pub fn holds(&self, partition: &CasPartition) -> Result<bool, CqlError> {
        let of_static = self.of_static.iter().map(|conditions| (partition.static_row.as_ref(), conditions));
        let of_rows = self.of_rows.iter().map(|(clustering, conditions)| {
            let order = |row: &Row| self.table.comparator.compare_values(&row.clustering, clustering);
            let found = partition.rows.iter().find(|row| order(row) == Ordering::Equal);
            (found, conditions)
        });
        for (row, conditions) in of_static.chain(of_rows) {
            let holds = match conditions {
                RowConditions::NotExists => row.is_none(),
                RowConditions::Exists => row.is_some(),
                RowConditions::Columns(conditions) => {
                    let mut all = true;
                    for condition in conditions {
                        all = all && condition.holds(row)?;
                    }
                    all
                }
            };
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The changes of all statements, at one timestamp. Deletions get the timestamp one step
    /// before, so that they do not delete what the same transaction writes.
    pub fn update(
        &self,
        partition: CasPartition,
        timestamp: i64,
        now: u32,
        sources: &dyn Sources,
    ) -> Result<PartitionUpdate, CqlError> {
        let existing = ExistingRows::of_partition(self.key.clone(), partition.static_row, partition.rows);
        let mut updates = Vec::with_capacity(self.statements.len());
        let sources = InTransaction::new(sources, timestamp);
        for (plan, values) in self.statements {
            let bindings = Bindings { values, sources: &sources, json: &JsonObjects::default() };
            updates.extend(plan.updates_at(&bindings, timestamp, now, &existing)?);
        }
        let mut all = PartitionUpdate::new(Arc::clone(self.table), self.key.clone());
        all.merge(updates);
        delete_before(&mut all, timestamp);
        Ok(all)
    }
}

fn only_key(plan: &ModificationPlan, is_batch: bool, bindings: &Bindings<'_>) -> Result<DecoratedKey, CqlError> {
    let key = plan.restrictions.keys(&plan.table, bindings)?.pop();
    if plan.restrictions.key_in {
        return if is_batch {
            invalid("Batch with conditions cannot span multiple partitions (you cannot use IN on the partition key)")
        } else {
            let what = if plan.kind == StatementKind::Delete { "deletions" } else { "updates" };
            invalid(format!("IN on the partition key is not supported with conditional {what}"))
        };
    }
    key.ok_or_else(|| CqlError::invalid("Conditional statements need the whole partition key"))
}

fn delete_before(update: &mut PartitionUpdate, timestamp: i64) {
    let earlier = |deletion: &mut DeletionTime| {
        if !deletion.is_live() {
            deletion.marked_for_delete_at = timestamp - 1;
        }
    };
    earlier(&mut update.deletion);
    update.range_deletions.iter_mut().for_each(|(_, deletion)| earlier(deletion));
    for row in update.static_row.iter_mut().chain(&mut update.rows) {
        earlier(&mut row.deletion);
        for data in &mut row.columns {
            if let ColumnData::Complex(complex) = data {
                earlier(&mut complex.deletion);
            }
        }
    }
}
