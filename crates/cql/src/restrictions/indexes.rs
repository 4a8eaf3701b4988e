//! The secondary indexes that can answer a WHERE, and whether the rows they find have to be
//! filtered.
//!
//! An index answers one restriction. The others filter the rows that the index finds, which needs
//! ALLOW FILTERING. The read command names all indexes that could answer; the replica uses the most
//! selective. Agrees with the use of `hasSupportingIndex`, `needsFiltering` and
//! `usesSecondaryIndexing` in
//! `org.apache.cassandra.cql3.restrictions.{StatementRestrictions,IndexRestrictions}`.

use std::sync::Arc;

use rows::IndexSearch;
use schema::index::definition::{IndexDefinition, IndexOperator};
use schema::{ColumnMetadata, TableMetadata};

use super::build::KeyPart;
use super::filter::FilterTest;
use super::{ClusteringRestriction, ClusteringTest, RowTerm};
use crate::ast::Operator;
use crate::context::Bindings;
use crate::error::CqlError;
use crate::keys;
use crate::terms::Term;
use crate::values::BoundValue;

/// The longest value that can be searched for, in bytes.
const VALUE_SIZE_MAX: usize = u16::MAX as usize;

/// An index that can answer a restriction, and the value to search for.
#[derive(Clone, Debug)]
pub(crate) struct IndexCandidate {
    name: Arc<str>,
    column: String,
    value: Term,
    /// For an index on the entries of a map: the key of the entry, whose value is `value`.
    entry_key: Option<Term>,
}

impl IndexCandidate {
    /// The search, with its terms evaluated.
    pub fn bind(&self, bindings: &Bindings<'_>) -> Result<IndexSearch, CqlError> {
        let eval = |term: &Term| match term.eval(bindings)? {
            BoundValue::Bytes(bytes) => Ok(bytes),
            BoundValue::Null => Err(CqlError::invalid(format!("Unsupported null value for column {}", self.column))),
            BoundValue::Unset => Err(CqlError::invalid(format!("Unsupported unset value for column {}", self.column))),
        };
        let value = match &self.entry_key {
            None => eval(&self.value)?,
            Some(key) => keys::compose(&[eval(key)?, eval(&self.value)?])?,
        };
        if value.len() > VALUE_SIZE_MAX {
            return Err(CqlError::invalid("Index expression values may not be larger than 64K"));
        }
        Ok(IndexSearch { name: Arc::clone(&self.name), value })
    }
}

/// The part of the table that a restriction is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Key,
    Clustering,
    Other,
}

struct Restricted {
    part: Part,
    candidates: Vec<IndexCandidate>,
    /// An index cannot answer the restriction alone: it is several CONTAINS on one column, or a
    /// comparison of several columns.
    always_filters: bool,
}

/// The parts of a WHERE from which the use of indexes is decided.
pub(super) struct Clause<'a> {
    pub table: &'a TableMetadata,
    pub keys: &'a [Option<KeyPart>],
    pub on_token: bool,
    pub clustering: &'a [ClusteringRestriction],
    pub clustering_contains: bool,
    pub others: &'a [(&'a ColumnMetadata, FilterTest)],
}

/// The decision.
#[derive(Default)]
pub(super) struct IndexUse {
    /// Some restriction could be answered by an index. Then other restrictions are allowed, if
    /// filtering is.
    pub has_index: bool,
    /// An index is used.
    pub uses: bool,
    /// A column of the partition key is restricted by IN.
    pub key_in: bool,
    /// The indexes that can answer.
    pub candidates: Vec<IndexCandidate>,
    /// The rows that an index or a range finds have to be filtered.
    pub needs_filtering: bool,
}

/// Decides which indexes are used.
pub(super) fn of(clause: &Clause<'_>) -> IndexUse {
    let definitions: Vec<IndexDefinition> =
        clause.table.indexes.values().filter_map(|index| IndexDefinition::of(clause.table, index, false)).collect();
    let restricted = restricted(clause, &definitions);
    let supported = |part: Option<Part>| {
        restricted.iter().any(|one| part.is_none_or(|part| part == one.part) && !one.candidates.is_empty())
    };
    let has_index = supported(None);
    let given = clause.keys.iter().flatten().count();
    let is_plain = |key: &KeyPart| matches!(key, KeyPart::Eq(_) | KeyPart::In(_));
    let filters_keys =
        given > 0 && !clause.on_token && (given < clause.keys.len() || !clause.keys.iter().flatten().all(is_plain));
    let is_open = given == 0 && !clause.on_token;
    let is_range = clause.on_token || is_open || filters_keys;
    let filters_clustering = clause.clustering_contains || has_gap(clause.clustering);
    let mut uses = has_index && (is_open || filters_keys);
    let with_keys = uses || filters_keys;
    uses |= has_index && filters_clustering;
    uses |= is_range && supported(Some(Part::Clustering));
    let with_clustering = uses || filters_clustering;
    uses |= has_index && !clause.others.is_empty();
    let is_filter = |part: Part| match part {
        Part::Key => with_keys,
        Part::Clustering => with_clustering,
        Part::Other => true,
    };
    let filters: Vec<&Restricted> = restricted.iter().filter(|one| is_filter(one.part)).collect();
    let is_answered = |definition: &IndexDefinition| {
        filters
            .iter()
            .all(|one| !one.always_filters && one.candidates.iter().any(|candidate| candidate.name == definition.name))
    };
    let must_filter = match filters.is_empty() {
        true => !clause.clustering.is_empty(),
        false => !definitions.iter().any(is_answered),
    };
    let candidates = if uses { filters.iter().flat_map(|one| one.candidates.clone()).collect() } else { Vec::new() };
    let key_in = clause.keys.iter().flatten().any(|key| matches!(key, KeyPart::In(_)));
    IndexUse { has_index, uses, key_in, candidates, needs_filtering: (is_range || uses) && must_filter }
}

/// Whether a clustering column is restricted behind one that is not, or behind a range.
fn has_gap(clustering: &[ClusteringRestriction]) -> bool {
    let mut position = 0;
    for restriction in clustering {
        if restriction.first != position {
            return true;
        }
        if !matches!(restriction.test, ClusteringTest::Slice { .. }) {
            position += restriction.width;
        }
    }
    false
}

fn restricted(clause: &Clause<'_>, definitions: &[IndexDefinition]) -> Vec<Restricted> {
    let answering = |column: &ColumnMetadata, operator: IndexOperator, value: &Term, entry_key: Option<&Term>| {
        let can = definitions
            .iter()
            .filter(move |definition| definition.column.name == column.name && definition.supports(operator));
        can.map(|definition| IndexCandidate {
            name: Arc::clone(&definition.name),
            column: column.name.clone(),
            value: value.clone(),
            entry_key: entry_key.cloned(),
        })
        .collect::<Vec<_>>()
    };
    let mut found = Vec::new();
    for (key, column) in clause.keys.iter().zip(&clause.table.partition_key) {
        let candidates = match key {
            None => continue,
            Some(KeyPart::Eq(term)) => answering(column, IndexOperator::Eq, term, None),
            Some(_) => Vec::new(),
        };
        found.push(Restricted { part: Part::Key, candidates, always_filters: false });
    }
    for restriction in clause.clustering {
        let candidates = match &restriction.test {
            ClusteringTest::Eq(RowTerm::Columns(terms)) => {
                let columns = clause.table.clustering.iter().skip(restriction.first);
                columns.zip(terms).flat_map(|(column, term)| answering(column, IndexOperator::Eq, term, None)).collect()
            }
            _ => Vec::new(),
        };
        // an index is on one column, so it cannot answer a comparison of several
        found.push(Restricted { part: Part::Clustering, candidates, always_filters: restriction.width > 1 });
    }
    if clause.clustering_contains {
        found.push(Restricted { part: Part::Clustering, candidates: Vec::new(), always_filters: true });
    }
    let mut names: Vec<&str> = Vec::new();
    for (column, _) in clause.others {
        if names.contains(&column.name.as_str()) {
            continue;
        }
        names.push(&column.name);
        let of_column: Vec<&FilterTest> =
            clause.others.iter().filter(|(other, _)| other.name == column.name).map(|(_, test)| test).collect();
        let candidates = of_column.iter().flat_map(|test| match test {
            FilterTest::Compare(Operator::Eq, term) => answering(column, IndexOperator::Eq, term, None),
            FilterTest::Contains(term) => answering(column, IndexOperator::Contains, term, None),
            FilterTest::ContainsKey(term) => answering(column, IndexOperator::ContainsKey, term, None),
            FilterTest::Entry(key, term) => answering(column, IndexOperator::Eq, term, Some(key)),
            _ => Vec::new(),
        });
        found.push(Restricted {
            part: Part::Other,
            candidates: candidates.collect(),
            always_filters: of_column.len() > 1,
        });
    }
    found
}
