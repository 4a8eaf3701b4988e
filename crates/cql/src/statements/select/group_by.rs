//! GROUP BY: groups are made by a prefix of the primary key; of its last column a function may be
//! taken.
//!
//! Agrees with `SelectStatement.RawStatement.getAggregationSpecFactory` and
//! `db.aggregation.GroupMaker`, messages included.

use bytes::Bytes;
use rows::ClusteringValues;
use schema::{ClusteringComparator, ColumnKind, TableMetadata};

use crate::ast::{self, Selectable};
use crate::context::{Bindings, PrepareContext, find_column};
use crate::error::CqlError;
use crate::restrictions::Restrictions;
use crate::selection::{self, Column, RowView, Selector};

/// The expressions of GROUP BY.
#[derive(Clone, Debug)]
pub(crate) struct GroupBy {
    /// The rows of a group have the same partition key and the same values in this many clustering
    /// columns.
    pub prefix: usize,
    /// A function of the next clustering column, which has the same value for all rows of a group.
    pub function: Option<Selector>,
}

/// The values that the rows of a group have in common, without the partition key.
#[derive(Clone, Debug)]
pub(super) struct GroupKey {
    prefix: ClusteringValues,
    function: Option<Bytes>,
}

impl GroupKey {
    /// A row with the other key belongs to the same group. Values that compare as equal, such as
    /// the decimals `1.0` and `1.00`, are the same here.
    pub(super) fn is_same(&self, other: &Self, comparator: &ClusteringComparator) -> bool {
        comparator.compare_values(&self.prefix, &other.prefix).is_eq() && self.function == other.function
    }
}

impl GroupBy {
    /// The group key of a row.
    pub(super) fn key(&self, clustering: &ClusteringValues, row: &RowView<'_>) -> Result<GroupKey, CqlError> {
        let prefix = clustering.iter().take(self.prefix).cloned().collect();
        let function = self.function.as_ref().map(|function| function.value(row)).transpose()?.flatten();
        Ok(GroupKey { prefix, function })
    }

    /// A copy with its terms evaluated.
    pub fn bind(&self, bindings: &Bindings<'_>) -> Result<Self, CqlError> {
        let mut bound = self.clone();
        if let Some(function) = &mut bound.function {
            function.bind(bindings)?;
        }
        Ok(bound)
    }
}

fn invalid<T>(message: impl Into<String>) -> Result<T, CqlError> {
    Err(CqlError::invalid(message))
}

const ORDER: &str =
    "Group by currently only support groups of columns following their declared order in the PRIMARY KEY";

/// Prepares GROUP BY. None: the statement has none.
pub(super) fn prepare(
    context: &mut PrepareContext<'_>,
    table: &TableMetadata,
    select: &ast::Select<'_>,
    restrictions: &Restrictions,
) -> Result<Option<GroupBy>, CqlError> {
    if select.group_by.is_empty() {
        return Ok(None);
    }
    let mut keys = table.partition_key.iter().chain(&table.clustering);
    let mut clustering = 0;
    let mut function = None;
    for selectable in &select.group_by {
        let wanted = match selectable {
            Selectable::Column(name) => {
                let column = find_column(table, name.as_str())?;
                if !column.is_primary_key() {
                    return invalid(format!(
                        "Group by is currently only supported on the columns of the PRIMARY KEY, got {}",
                        column.name
                    ));
                }
                if function.is_some() {
                    return invalid("Functions are only supported on the last element of the GROUP BY clause");
                }
                Column::of(column)
            }
            other => {
                let found = selection::prepare_group(context, table, other)?;
                let column = group_column(table, &found.columns)?;
                function = Some(found);
                column
            }
        };
        loop {
            let Some(key) = keys.next() else { return invalid(ORDER) };
            if key.kind == ColumnKind::Clustering {
                clustering += 1;
            }
            if Column::of(key) == wanted {
                break;
            }
            if !restrictions.is_equal(key) {
                return invalid(ORDER);
            }
        }
    }
    if keys.next().is_some_and(|key| key.kind == ColumnKind::PartitionKey) {
        return invalid("Group by is not supported on only a part of the partition key");
    }
    if clustering > 0 && select.distinct {
        return invalid("Grouping on clustering columns is not allowed for SELECT DISTINCT queries");
    }
    let Some(function) = function else { return Ok(Some(GroupBy { prefix: clustering, function: None })) };
    function.makes_groups?;
    Ok(Some(GroupBy { prefix: clustering - 1, function: Some(function.selector) }))
}

/// The one clustering column that a function is of.
fn group_column(table: &TableMetadata, columns: &[Column]) -> Result<Column, CqlError> {
    let name = |column: &Column| match column {
        Column::PartitionKey { position, .. } => table.partition_key[*position].name.clone(),
        Column::Clustering { position, .. } => table.clustering[*position].name.clone(),
        Column::Static { id, .. } | Column::Regular { id, .. } => {
            table.column(*id).map(|column| column.name.clone()).unwrap_or_default()
        }
    };
    match columns {
        [] => invalid("GROUP BY functions must have one clustering column name as parameter"),
        [column @ Column::Clustering { .. }] => Ok(column.clone()),
        [other] => invalid(format!("Group by functions are only supported on clustering columns, got {}", name(other))),
        several => {
            let names: Vec<_> = several.iter().map(name).collect();
            invalid(format!(
                "GROUP BY functions accept only one clustering column as parameter, got: {}",
                names.join(",")
            ))
        }
    }
}
