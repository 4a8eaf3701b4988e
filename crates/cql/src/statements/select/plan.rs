//! Preparing a SELECT.
//!
//! Agrees with `org.apache.cassandra.cql3.statements.SelectStatement.RawStatement.prepare`,
//! messages included.

use std::sync::Arc;

use rows::ColumnFilter;
use schema::{ColumnKind, ColumnMetadata, TableMetadata};
use types::CqlType;

use super::{SelectPlan, ann, group_by};
use crate::ast::{self, Selectable};
use crate::context::{PrepareContext, Receiver, find_column};
use crate::error::CqlError;
use crate::restrictions::{self, Restrictions, StatementKind};
use crate::result::{ColumnSpec, ResultMetadata};
use crate::selection::{self, Column, Selection};
use crate::terms::{self, Term};

fn invalid<T>(message: impl Into<String>) -> Result<T, CqlError> {
    Err(CqlError::invalid(message))
}

/// Prepares a SELECT.
pub(crate) fn prepare(
    context: &mut PrepareContext<'_>,
    select: &ast::Select<'_>,
    keyspace: Option<&str>,
) -> Result<SelectPlan, CqlError> {
    let table = context.table(&select.table, keyspace)?;
    context.set_table(&table);
    check_columns(&table, &select.selectors)?;
    let selection::PreparedSelection { requested, selection } = selection::prepare(context, &table, &select.selectors)?;
    let only_static = selects_only_static(&table, &select.selectors, &requested);
    let clause = &select.where_clause;
    if !table.indexes.is_empty() {
        ann::check_conditions(&table, select)?;
    }
    // an order by nearness has its own rule for conditions that no index answers
    let filters = select.allow_filtering || ann::has_ann_ordering(select);
    let restrictions = restrictions::prepare(context, StatementKind::Select, &table, clause, only_static, filters)?;
    let mut selection = selection?;
    if select.distinct {
        if select.per_partition_limit.is_some() {
            return invalid("PER PARTITION LIMIT is not allowed with SELECT DISTINCT queries");
        }
        check_distinct(&table, &selection, &restrictions)?;
        check_distinct_order(&table, select, &restrictions)?;
    }
    let group_by = group_by::prepare(context, &table, select, &restrictions)?;
    if !selection.aggregates.is_empty() && group_by.is_none() && select.per_partition_limit.is_some() {
        return invalid("PER PARTITION LIMIT is not allowed with aggregate queries.");
    }
    let ann_ordering = ann::prepare(context, &table, select, &restrictions)?;
    let (reversed, post_order) = match &ann_ordering {
        Some(_) => (false, Vec::new()),
        None => prepare_order(&table, select, &restrictions)?,
    };
    let is_left = ann_ordering.is_some()
        && !select.allow_filtering
        && (restrictions.unanswered_by_attached || ann::leaves_to_filtering(&table, select));
    if restrictions.lacks_allow_filtering || is_left {
        return invalid(restrictions::REQUIRES_ALLOW_FILTERING);
    }
    let limit = prepare_limit(context, select.limit.as_ref(), "[limit]")?;
    let per_partition_limit = prepare_limit(context, select.per_partition_limit.as_ref(), "[per_partition_limit]")?;
    let fetched: Vec<_> = restrictions.filters.iter().filter_map(|filter| filter.column.id()).collect();
    let compared = ann_ordering.as_ref().and_then(|ann_ordering| ann_ordering.column.id());
    selection.fetch(fetched.into_iter().chain(compared));
    let named = if select.selectors.is_empty() { Arc::from([]) } else { Arc::clone(&selection.fetched) };
    if restrictions.shows_static_only() {
        // whether a partition without rows is shown hangs on any of them
        selection.fetch(table.statics.iter().map(|column| column.id));
    }
    let columns = if selection.fetched.len() == table.statics.len() + table.regulars.len() {
        ColumnFilter::All
    } else {
        ColumnFilter::Some(Arc::clone(&selection.fetched))
    };
    let masked = (!table.masks.is_empty()).then(|| Arc::new(selection.with_masks(&table)));
    let metadata = metadata(context, &selection, select.json);
    let plan = SelectPlan {
        masked_in_where: masked_in_where(&table, clause),
        table,
        selection: Arc::new(selection),
        masked,
        columns,
        named,
        restrictions,
        metadata,
        distinct: select.distinct,
        json: select.json,
        allows_filtering: select.allow_filtering,
        group_by,
        reversed,
        post_order,
        ann_ordering,
        limit,
        per_partition_limit,
    };
    plan.assert_sound();
    Ok(plan)
}

impl SelectPlan {
    /// Asserts the relations between the parts of the plan on which its execution relies.
    fn assert_sound(&self) {
        let (selection, table) = (&self.selection, &self.table);
        let width = if self.json { 1 } else { selection.selectors.len() };
        assert_eq!(self.metadata.columns.len(), width, "clients are told of as many columns as rows have");
        let masked = self.masked.as_deref();
        for selection in [Some(&**selection), masked].into_iter().flatten() {
            assert_eq!(selection.selectors.len(), selection.names.len(), "every selector has a name and a type");
            assert!(selection.fetched.is_sorted_by(|a, b| a < b), "columns that are read ascend, each once");
        }
        assert!(
            masked.is_none_or(|masked| masked.selectors.len() == selection.selectors.len()),
            "masks hide no column"
        );
        assert!(self.named.iter().all(|id| selection.fetched.contains(id)), "columns that are named are read");
        let ordered = self.post_order.iter().map(|(column, _)| column);
        assert!(selection.requested.iter().chain(ordered).all(|column| column.is_of(table)), "columns are the table's");
        let is_read = |column: &Column| column.id().is_none_or(|id| selection.fetched.contains(&id));
        assert!(selection.requested.iter().all(is_read), "columns that selectors ask for are read");
    }
}

/// Names of the masked columns that a WHERE says something of, in order.
fn masked_in_where(table: &TableMetadata, clause: &ast::WhereClause<'_>) -> Vec<String> {
    let is_restricted = |name: &&String| {
        clause.relations.iter().flat_map(ast::Relation::columns).any(|column| column.as_str() == name.as_str())
    };
    table.masks.keys().filter(is_restricted).cloned().collect()
}

/// Columns that are selected as they are must be there.
fn check_columns(table: &TableMetadata, selectors: &[ast::Selector<'_>]) -> Result<(), CqlError> {
    for selector in selectors {
        if let Selectable::Column(name) = &selector.selectable {
            find_column(table, name.as_str())?;
        }
    }
    Ok(())
}

fn metadata(context: &PrepareContext<'_>, selection: &Selection, json: bool) -> Arc<ResultMetadata> {
    let spec = |name: &str, ty: &CqlType| ColumnSpec {
        keyspace: Arc::clone(&context.keyspace),
        table: Arc::clone(&context.table),
        name: Arc::from(name),
        ty: ty.clone(),
    };
    let columns = if json {
        vec![spec("[json]", &CqlType::Text)]
    } else {
        selection.names.iter().map(|(name, ty)| spec(name, ty)).collect()
    };
    Arc::new(ResultMetadata { columns })
}

fn prepare_limit(
    context: &mut PrepareContext<'_>,
    limit: Option<&ast::Term<'_>>,
    name: &str,
) -> Result<Option<Term>, CqlError> {
    limit.map(|term| terms::prepare(context, term, &Receiver::new(name, CqlType::Int))).transpose()
}

/// Static columns, perhaps with key columns, and no others.
fn selects_only_static(table: &TableMetadata, selectors: &[ast::Selector<'_>], requested: &[Column]) -> bool {
    if table.statics.is_empty() || selectors.is_empty() || table.is_static_compact() {
        return false;
    }
    requested.iter().any(|column| matches!(column, Column::Static { .. }))
        && requested.iter().all(|column| matches!(column, Column::Static { .. } | Column::PartitionKey { .. }))
}

fn check_distinct(table: &TableMetadata, selection: &Selection, restrictions: &Restrictions) -> Result<(), CqlError> {
    if restrictions.restricts_clustering || !restrictions.only_static_filters {
        return invalid(
            "SELECT DISTINCT with WHERE clause only supports restriction by partition key and/or static columns.",
        );
    }
    for column in &selection.requested {
        let name = match column {
            Column::Clustering { position, .. } => &table.clustering[*position].name,
            Column::Regular { id, .. } => table.column(*id).map_or(&table.name, |column| &column.name),
            Column::PartitionKey { .. } | Column::Static { .. } => continue,
        };
        return invalid(format!(
            "SELECT DISTINCT queries must only request partition key columns and/or static columns (not {name})"
        ));
    }
    // one column of the key would do for the server; Cassandra asks for all
    for column in &table.partition_key {
        if restrictions.is_key_range() && !selection.requested.contains(&Column::of(column)) {
            return invalid(format!(
                "SELECT DISTINCT queries must request all the partition key columns (missing {})",
                column.name
            ));
        }
    }
    Ok(())
}

/// Columns that rows are sorted by after they were read are requested too.
fn check_distinct_order(
    table: &TableMetadata,
    select: &ast::Select<'_>,
    restrictions: &Restrictions,
) -> Result<(), CqlError> {
    for ordering in select.order_by.iter().filter(|ordering| restrictions.key_in && ordering.ann_of.is_none()) {
        let column = find_column(table, ordering.column.as_str())?;
        if matches!(column.kind, ColumnKind::Clustering | ColumnKind::Regular) {
            return invalid(format!(
                "SELECT DISTINCT queries must only request partition key columns and/or static columns (not {})",
                column.name
            ));
        }
    }
    Ok(())
}

/// Whether rows are read in reverse, and by what rows of several partitions are sorted.
fn prepare_order(
    table: &TableMetadata,
    select: &ast::Select<'_>,
    restrictions: &Restrictions,
) -> Result<(bool, Vec<(Column, bool)>), CqlError> {
    if select.order_by.is_empty() {
        return Ok((false, Vec::new()));
    }
    let columns = ordered_columns(table, select)?;
    if restrictions.uses_index {
        return invalid("ORDER BY with 2ndary indexes is not supported, except for ANN queries.");
    }
    if restrictions.is_key_range() {
        return invalid("ORDER BY is only supported when the partition key is restricted by an EQ or an IN.");
    }
    let mut position = 0;
    let mut reversed = None;
    for (column, descending) in &columns {
        if column.kind != ColumnKind::Clustering {
            return invalid(format!(
                "Order by is currently only supported on the clustered columns of the PRIMARY KEY, got {}",
                column.name
            ));
        }
        while position != column.position {
            if !restrictions.equal_clustering.get(position).copied().unwrap_or(false) {
                return invalid(
                    "Order by currently only supports the ordering of columns following their declared order in the PRIMARY KEY",
                );
            }
            position += 1;
        }
        position += 1;
        let wants = *descending != column.reversed;
        if *reversed.get_or_insert(wants) != wants {
            return invalid("Unsupported order by relation");
        }
    }
    let post_order = if restrictions.key_in {
        columns.iter().map(|(column, descending)| (Column::of(column), *descending)).collect()
    } else {
        Vec::new()
    };
    Ok((reversed.unwrap_or(false), post_order))
}

/// The columns of ORDER BY; true: descending. A column that is named twice stands where it was
/// named first, in the order that was given last.
fn ordered_columns<'t>(
    table: &'t TableMetadata,
    select: &ast::Select<'_>,
) -> Result<Vec<(&'t ColumnMetadata, bool)>, CqlError> {
    let mut columns: Vec<(&ColumnMetadata, bool)> = Vec::with_capacity(select.order_by.len());
    for ordering in &select.order_by {
        let column = find_column(table, ordering.column.as_str())?;
        match columns.iter_mut().find(|(known, _)| known.name == column.name) {
            Some((_, descending)) => *descending = ordering.descending,
            None => columns.push((column, ordering.descending)),
        }
    }
    Ok(columns)
}
