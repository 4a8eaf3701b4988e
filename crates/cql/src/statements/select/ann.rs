//! `ORDER BY v ANN OF …`: the rows whose vectors are nearest to a given one.
//!
//! Each node that is asked gives the nearest of its rows, at most as many as LIMIT says; the answer
//! has the nearest among those, in the order of their scores. A score comes from the row as it was
//! read, not from an index.
//!
//! Agrees with `SelectStatement.execute`, `StatementRestrictions.addOrderingRestrictions` and
//! `…sai.StorageAttachedIndex.getPostQueryOrdering` of `org.apache.cassandra`, texts included.

use std::sync::Arc;

use bytes::Bytes;
use rows::filter::Operator;
use rows::{Expression, IndexSearch, SearchOperator};
use schema::TableMetadata;
use schema::index::definition::{IndexDefinition, parse_target};
use types::similarity::{float_dimension, floats};
use types::{Consistency, Similarity};

use super::{BoundSelect, SelectPlan};
use crate::ast;
use crate::context::{Bindings, PrepareContext, Receiver, find_column};
use crate::error::CqlError;
use crate::options::QueryOptions;
use crate::paging::UNLIMITED;
use crate::restrictions::{PartitionRestriction, Restrictions};
use crate::selection::{Column, RowView};
use crate::statements::vectors;
use crate::terms::{self, Term};
use crate::values::BoundValue;

/// The most rows that are sorted by nearness (cassandra.sai.vector_search.max_top_k).
const ROWS_MAX: u32 = 1000;
const NOT_INDEXED: &str = "ANN ordering by vector requires all restricted column(s) to be indexed";

fn invalid<T>(message: impl Into<String>) -> Result<T, CqlError> {
    Err(CqlError::invalid(message))
}

/// The order of a SELECT by nearness.
#[derive(Clone, Debug)]
pub(crate) struct AnnOrdering {
    /// The column of vectors.
    pub column: Column,
    /// Its name.
    pub name: String,
    /// The index.
    pub index: Arc<str>,
    /// How vectors are compared.
    similarity: Similarity,
    /// The given vector.
    vector: Term,
}

/// An [`AnnOrdering`] with its vector evaluated.
pub(super) struct BoundAnnOrdering {
    column: Column,
    index: Arc<str>,
    similarity: Similarity,
    value: Bytes,
    vector: Vec<f32>,
}

/// Whether a SELECT is ordered by nearness.
pub(super) fn has_ann_ordering(select: &ast::Select<'_>) -> bool {
    select.order_by.iter().any(|ordering| ordering.ann_of.is_some())
}

/// Prepares the order. None: it is not by nearness.
pub(super) fn prepare(
    context: &mut PrepareContext<'_>,
    table: &TableMetadata,
    select: &ast::Select<'_>,
    restrictions: &Restrictions,
) -> Result<Option<AnnOrdering>, CqlError> {
    let Some(ordering) = select.order_by.iter().find(|ordering| ordering.ann_of.is_some()) else { return Ok(None) };
    let restricted = restricted(select);
    let is_indexed = |name: &str| is_indexed(table, name);
    let column = find_column(table, ordering.column.as_str())?;
    let Some(given) = &ordering.ann_of else { return Ok(None) };
    let vector = terms::prepare(context, given, &Receiver::new(&column.name, column.ty.clone()))?;
    if select.order_by.iter().filter(|ordering| ordering.ann_of.is_some()).count() > 1 {
        return invalid("Cannot specify more than one ANN ordering");
    }
    if select.order_by.len() > 1 {
        return invalid("ANN ordering does not support any other ordering");
    }
    if ordering.descending {
        return invalid("Descending ANN ordering is not supported");
    }
    if restricted.contains(&column.name.as_str()) && !is_of_primary_key(table, &column.name) {
        let name = &column.name;
        return invalid(format!("{name} cannot be restricted by more than one relation if it includes an Equal"));
    }
    if float_dimension(&column.ty).is_none() {
        return invalid("ANN ordering is only supported on float vector indexes");
    }
    let definitions = table.indexes.values().filter_map(|index| IndexDefinition::of(table, index, false));
    let found = definitions.filter(|one| one.column.name == column.name).find_map(|one| Some((one.vectors?, one.name)));
    let Some((similarity, index)) = found else {
        return invalid("ANN ordering by vector requires the column to be indexed");
    };
    let has_keys = matches!(restrictions.partition, PartitionRestriction::Keys(_));
    let is_of_key = |name: &str| table.partition_key.iter().any(|column| column.name == name);
    let relations = select.where_clause.relations.iter().filter(|relation| !is_of_token(relation));
    let mut beside_token = relations.flat_map(ast::Relation::columns);
    if beside_token.any(|column| is_of_key(column.as_str())) && !has_keys {
        return invalid(NOT_INDEXED);
    }
    let is_of_clustering = |name: &str| table.clustering.iter().any(|column| column.name == name);
    let mut not_indexed = restricted.iter().filter(|name| !is_of_key(name) && !is_indexed(name));
    if not_indexed.any(|name| !is_of_clustering(name) || !has_keys || restrictions.filters_clustering(table)) {
        return invalid(NOT_INDEXED);
    }
    if restrictions.key_in {
        return invalid("Select on indexed columns and with IN clause for the PRIMARY KEY are not supported");
    }
    Ok(Some(AnnOrdering { column: Column::of(column), name: column.name.clone(), index, similarity, vector }))
}

impl AnnOrdering {
    /// The order with its vector, in the form in which a read has it among its conditions.
    pub fn text(&self, bindings: &Bindings<'_>) -> Result<String, CqlError> {
        let vector = self.vector.eval_option(bindings)?;
        let vector = vector.map_or("null".to_owned(), |vector| types::to_text(self.column.ty(), &vector));
        Ok(format!("{} ANN {vector}", self.name))
    }
}

fn is_one(values: &ast::InValues<'_>) -> bool {
    matches!(values, ast::InValues::List(terms) if terms.len() == 1)
}

fn is_of_token(relation: &ast::Relation<'_>) -> bool {
    matches!(relation, ast::Relation::Token { .. } | ast::Relation::TokenBetween { .. })
}

/// The columns that WHERE restricts.
fn restricted<'s>(select: &'s ast::Select<'_>) -> Vec<&'s str> {
    select.where_clause.relations.iter().flat_map(ast::Relation::columns).map(|column| column.as_str()).collect()
}

/// Whether WHERE restricts a column beyond the key that no attached index is of, or by an IN, which
/// no such index answers. An index of legacy kind cannot be used beside the order by nearness.
pub(super) fn leaves_to_filtering(table: &TableMetadata, select: &ast::Select<'_>) -> bool {
    let is_of_key = |name: &str| is_of_primary_key(table, name);
    let definitions = table.indexes.values().filter_map(|index| IndexDefinition::of(table, index, false));
    let attached: Vec<_> = definitions.filter(IndexDefinition::is_attached).collect();
    let is_attached = |name: &str| attached.iter().any(|definition| definition.column.name == name);
    select.where_clause.relations.iter().any(|relation| {
        // an IN of one value is an equality
        let is_in = matches!(relation, ast::Relation::ColumnIn { values, .. } if !is_one(values));
        let columns = relation.columns();
        columns.iter().any(|column| !is_of_key(column.as_str()) && (is_in || !is_attached(column.as_str())))
    })
}

fn is_indexed(table: &TableMetadata, name: &str) -> bool {
    let targets = table.indexes.values().filter_map(|index| index.options.get("target"));
    targets.map(|target| parse_target(target).1).any(|target| target == name)
}

fn is_of_primary_key(table: &TableMetadata, name: &str) -> bool {
    table.partition_key.iter().chain(&table.clustering).any(|column| column.name == name)
}

/// Refuses conditions on a column of vectors that has an index, where rows are not ordered by it.
/// Conditions on a key column remain: they lead to a partition or to rows, or filter.
pub(super) fn check_conditions(table: &TableMetadata, select: &ast::Select<'_>) -> Result<(), CqlError> {
    let is_vector = |name: &str| {
        table.column_by_name(name).is_some_and(|column| matches!(column.ty, types::CqlType::Vector { .. }))
            && !is_of_primary_key(table, name)
    };
    if !has_ann_ordering(select) && restricted(select).iter().any(|name| is_vector(name) && is_indexed(table, name)) {
        return invalid("Vector indexes only support ANN queries");
    }
    Ok(())
}

/// Checks what such a SELECT may not have, and takes away its paging. Gives the level at which the
/// rows are read.
pub(super) fn check(
    plan: &SelectPlan,
    options: &QueryOptions,
    bound: &mut BoundSelect,
    warnings: &mut Vec<String>,
) -> Result<Consistency, CqlError> {
    if plan.aggregates() {
        return invalid("Top-K queries can not be run with aggregation");
    }
    let given = options.consistency;
    let level = match given {
        Consistency::Serial | Consistency::LocalSerial => {
            return invalid(format!(
                "Top-K queries can only be run with consistency level ONE/LOCAL_ONE. Consistency level {given} was used."
            ));
        }
        Consistency::One | Consistency::LocalOne | Consistency::NodeLocal => given,
        Consistency::LocalQuorum => Consistency::LocalOne,
        _ => Consistency::One,
    };
    if level != given {
        warnings.push(format!(
            "Top-K queries can only be run with consistency level ONE / LOCAL_ONE / NODE_LOCAL. Consistency level {given} \
             was requested. Downgrading the consistency level to {level}."
        ));
    }
    let limit = bound.limit;
    if limit == UNLIMITED {
        return invalid(
            "Top-K queries must have a limit specified and the limit must be less than the query page size",
        );
    }
    if plan.per_partition_limit.is_some() {
        return invalid("Top-K queries do not support per-partition limits");
    }
    if let Some(size) = bound.page_size.take().filter(|size| *size < limit) {
        warnings.push(format!(
            "Top-K queries do not support paging and the page size is set to {size}, which is less than LIMIT {limit}. \
             The page size has been set to {limit} to match the LIMIT."
        ));
    }
    if limit > ROWS_MAX {
        return invalid(format!(
            "Use of ANN OF in an ORDER BY clause requires a LIMIT that is not greater than {ROWS_MAX}. LIMIT was {limit}"
        ));
    }
    Ok(level)
}

impl AnnOrdering {
    /// The order with its vector evaluated.
    pub(super) fn bind(&self, bindings: &Bindings<'_>) -> Result<BoundAnnOrdering, CqlError> {
        let value = match self.vector.eval(bindings)? {
            BoundValue::Bytes(bytes) => bytes,
            BoundValue::Null => return invalid(format!("Unsupported null value for column {}", self.name)),
            BoundValue::Unset => return invalid(format!("Unsupported unset value for column {}", self.name)),
        };
        let given = floats(&value);
        if let Some(reason) = vectors::refusal(&given, self.similarity) {
            return invalid(reason);
        }
        // so short a vector that its length is zero although its floats are not
        let Some(vector) = self.similarity.form(given) else {
            return invalid("Zero vectors cannot be indexed or queried with cosine similarity");
        };
        let (column, index, similarity) = (self.column.clone(), Arc::clone(&self.index), self.similarity);
        Ok(BoundAnnOrdering { column, index, similarity, value, vector })
    }
}

impl BoundAnnOrdering {
    /// The search in the index.
    pub fn search(&self) -> IndexSearch {
        IndexSearch { name: Arc::clone(&self.index), operator: SearchOperator::Ann, value: self.value.clone() }
    }

    /// The order as other nodes are told of it.
    pub fn expression(&self) -> Option<Expression> {
        Some(Expression::Simple { column: self.column.id()?, operator: Operator::Ann, value: self.value.clone() })
    }

    /// The rank of a row: greater is nearer. None: it has no vector that could be compared.
    pub fn rank(&self, row: &RowView<'_>) -> Option<f32> {
        let vector = self.similarity.form(floats(&row.value(&self.column)?))?;
        Some(self.similarity.rank(&self.vector, &vector))
    }
}
