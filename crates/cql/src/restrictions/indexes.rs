//! The secondary indexes that can answer a WHERE, and whether the rows they find have to be
//! filtered.
//!
//! A legacy index answers one restriction. The others filter the rows that the index finds, which
//! needs ALLOW FILTERING. Storage-attached indexes answer any number of restrictions together. The
//! read command names all indexes that could answer; the replica uses what pays. Agrees with the
//! use of `hasSupportingIndex`, `needsFiltering` and `usesSecondaryIndexing` in
//! `org.apache.cassandra.cql3.restrictions.{StatementRestrictions,IndexRestrictions}`.

use std::sync::Arc;

use rows::{IndexSearch, SearchOperator};
use schema::index::definition::{IndexClass, IndexDefinition, IndexOperator, has_text_forms};
use schema::index::sasi::{LikeKind, Sasi};
use schema::{ColumnMetadata, TableMetadata};

use super::build::KeyPart;
use super::filter::{FilterTest, like_pattern};
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
    /// The class of the index.
    class: IndexClass,
    operator: SearchOperator,
    /// The condition is a LIKE, and this is the index that answers it: the operator follows from
    /// the value.
    like: Option<Sasi>,
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
        if let Some(sasi) = &self.like {
            let (kind, value) = like_pattern(&self.value, &self.column, bindings)?;
            if !sasi.answers(kind) {
                return Err(CqlError::invalid(format!(
                    "{} {} {} is only supported on properly indexed columns",
                    self.column,
                    kind.shown(),
                    String::from_utf8_lossy(&value)
                )));
            }
            let operator = match kind {
                LikeKind::Prefix => SearchOperator::Prefix,
                LikeKind::Suffix => SearchOperator::Suffix,
                LikeKind::Contains => SearchOperator::Contains,
                LikeKind::Matches => SearchOperator::Eq,
            };
            if value.len() > VALUE_SIZE_MAX {
                return Err(CqlError::invalid("Index expression values may not be larger than 64K"));
            }
            return Ok(IndexSearch { name: Arc::clone(&self.name), operator, value });
        }
        let value = match &self.entry_key {
            None => eval(&self.value)?,
            Some(key) => keys::compose(&[eval(key)?, eval(&self.value)?])?,
        };
        if value.len() > VALUE_SIZE_MAX {
            return Err(CqlError::invalid("Index expression values may not be larger than 64K"));
        }
        Ok(IndexSearch { name: Arc::clone(&self.name), operator: self.operator, value })
    }
}

/// The part of the table that a restriction is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Key,
    Clustering,
    Other,
}

struct IndexedRestriction {
    part: Part,
    candidates: Vec<IndexCandidate>,
    /// Some index is on one of the columns, if it answers only a part of the restriction.
    is_supported: bool,
    /// No index can answer the restriction.
    always_filters: bool,
    /// The restriction is of several columns, each of which has an attached index: these answer it
    /// together, and no legacy index does.
    only_attached: bool,
    /// The restriction has several conditions on one column, which a legacy index cannot answer
    /// alone.
    is_repeated: bool,
}

impl IndexedRestriction {
    fn new(part: Part, candidates: Vec<IndexCandidate>) -> Self {
        let is_supported = !candidates.is_empty();
        Self { part, candidates, is_supported, always_filters: false, only_attached: false, is_repeated: false }
    }

    /// Whether one of the storage-attached indexes answers the restriction.
    fn is_answered_by_attached(&self) -> bool {
        // several SASI indexes do not answer together without filtering
        let has_attached = || self.candidates.iter().any(|candidate| candidate.class == IndexClass::Attached);
        !self.always_filters && (self.only_attached || has_attached())
    }
}

/// The parts of a WHERE from which the use of indexes is decided.
pub(super) struct WhereParts<'a> {
    pub table: &'a TableMetadata,
    pub keys: &'a [Option<KeyPart>],
    pub on_token: bool,
    pub clustering: &'a [ClusteringRestriction],
    pub clustering_contains: bool,
    /// Among others the LIKEs on clustering columns, by the position of the column.
    pub clustering_like: &'a [(usize, FilterTest)],
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
    /// A column of the partition key is restricted by IN, and not by token().
    pub key_in: bool,
    /// The indexes that can answer.
    pub candidates: Vec<IndexCandidate>,
    /// The class of the indexes that answer, where these compare text in forms of their own.
    pub index_class: IndexClass,
    /// The rows that an index or a range finds have to be filtered.
    pub needs_filtering: bool,
    /// Conditions on clustering columns are among those that rows are filtered by.
    pub filters_clustering: bool,
    /// Attached indexes do not answer every condition of a SELECT that is ordered by nearness.
    pub unanswered_by_attached: bool,
    /// A range of several clustering columns would have to be filtered, because an index is on one
    /// of them. Such a statement is refused.
    pub filters_tuples: bool,
}

/// Decides which indexes are used.
pub(super) fn choose_indexes(clause: &WhereParts<'_>) -> IndexUse {
    let definitions: Vec<IndexDefinition> =
        clause.table.indexes.values().filter_map(|index| IndexDefinition::of(clause.table, index, false)).collect();
    let restricted = restricted(clause, &definitions);
    let supported =
        |part: Option<Part>| restricted.iter().any(|one| part.is_none_or(|part| part == one.part) && one.is_supported);
    let has_index = supported(None);
    let given = clause.keys.iter().flatten().count();
    let is_plain = |key: &KeyPart| matches!(key, KeyPart::Eq(_) | KeyPart::In(_));
    // beside token(), too: a key that is given whole is no range of tokens
    let filters_keys = given > 0 && (given < clause.keys.len() || !clause.keys.iter().flatten().all(is_plain));
    let is_open = given == 0 && !clause.on_token;
    let is_range = clause.on_token || is_open || filters_keys;
    // a LIKE or CONTAINS on a clustering column is no slice
    let filters_clustering = !clause.clustering_like.is_empty() || has_gap(clause.clustering);
    let mut uses = has_index && (is_open || filters_keys);
    let with_keys = uses || filters_keys;
    uses |= has_index && filters_clustering;
    uses |= is_range && supported(Some(Part::Clustering));
    let with_clustering = uses || filters_clustering;
    let is_indexed = clause.clustering.iter().any(|one| is_indexed_tuple_range(one, clause.table, &definitions));
    let filters_tuples = is_indexed && (is_open || filters_keys || filters_clustering || is_range);
    uses |= has_index && !clause.others.is_empty();
    let among = |keys: bool, clustering: bool| {
        let is_filter = move |part: Part| match part {
            Part::Key => keys,
            Part::Clustering => clustering,
            Part::Other => true,
        };
        restricted.iter().filter(move |one| is_filter(one.part))
    };
    let filters: Vec<&IndexedRestriction> = among(with_keys, with_clustering).collect();
    let is_answered = |definition: &IndexDefinition| {
        filters.iter().all(|one| {
            let answers = |candidate: &IndexCandidate| candidate.name == definition.name;
            let is_one = !one.is_repeated || definition.sasi.is_some();
            !one.always_filters && !one.only_attached && is_one && one.candidates.iter().any(answers)
        })
    };
    let are_answered = filters.iter().all(|one| one.is_answered_by_attached());
    // an order by nearness is itself a restriction that an index answers
    let beside_nearest = is_open || filters_keys;
    let unanswered_by_attached =
        !among(with_keys || beside_nearest, with_clustering || beside_nearest).all(|one| one.is_answered_by_attached());
    let must_filter = match filters.is_empty() {
        true => !clause.clustering.is_empty(),
        false => !are_answered && !definitions.iter().any(is_answered),
    };
    let mut candidates: Vec<IndexCandidate> = match uses {
        true => filters.iter().flat_map(|one| one.candidates.clone()).collect(),
        false => Vec::new(),
    };
    let class = candidates.iter().map(|candidate| candidate.class).min().filter(|_| has_text_forms(clause.table));
    if let Some(class) = class {
        candidates.retain(|candidate| candidate.class == class);
    }
    let index_class = class.unwrap_or_default();
    let key_in = !clause.on_token && clause.keys.iter().flatten().any(|key| matches!(key, KeyPart::In(_)));
    let needs_filtering = (is_range || uses) && must_filter;
    IndexUse {
        has_index,
        uses,
        key_in,
        candidates,
        index_class,
        needs_filtering,
        filters_clustering: with_clustering,
        unanswered_by_attached,
        filters_tuples,
    }
}

/// Whether a restriction is a range of clustering columns in parentheses, one of which has an index
/// for ranges.
fn is_indexed_tuple_range(one: &ClusteringRestriction, table: &TableMetadata, definitions: &[IndexDefinition]) -> bool {
    let mut columns = table.clustering.iter().skip(one.first).take(one.width);
    one.multi
        && matches!(one.test, ClusteringTest::Slice { .. })
        && columns.any(|column| {
            definitions.iter().any(|one| one.column.name == column.name && one.supports(IndexOperator::Range))
        })
}

/// Whether each column of a restriction in parentheses has an attached index that answers its part.
fn have_attached(one: &ClusteringRestriction, table: &TableMetadata, definitions: &[IndexDefinition]) -> bool {
    let operator = match &one.test {
        ClusteringTest::Eq(_) => IndexOperator::Eq,
        ClusteringTest::Slice { .. } => IndexOperator::Range,
        ClusteringTest::In(_) => return false,
    };
    let mut columns = table.clustering.iter().skip(one.first).take(one.width);
    columns.all(|column| {
        definitions.iter().any(|definition| {
            let is_attached = definition.is_attached() && definition.sasi.is_none();
            is_attached && definition.column.name == column.name && definition.supports(operator)
        })
    })
}

/// Whether an index can answer a restriction of clustering columns.
pub(super) fn can_answer(table: &TableMetadata, restriction: &ClusteringRestriction) -> bool {
    let definitions: Vec<IndexDefinition> =
        table.indexes.values().filter_map(|index| IndexDefinition::of(table, index, false)).collect();
    let clause = WhereParts {
        table,
        keys: &[],
        on_token: false,
        clustering: std::slice::from_ref(restriction),
        clustering_contains: false,
        clustering_like: &[],
        others: &[],
    };
    restricted(&clause, &definitions).iter().any(|one| one.is_supported)
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

/// The condition that an index has to answer, and the search in it.
type Operators = (IndexOperator, SearchOperator);

const EQUAL: Operators = (IndexOperator::Eq, SearchOperator::Eq);
/// A LIKE, whose search follows from its value.
const LIKE: Operators = (IndexOperator::Like, SearchOperator::Eq);

/// A comparison as indexes know it; None: no index answers it.
fn comparison(operator: Operator) -> Option<Operators> {
    Some(match operator {
        Operator::Eq => EQUAL,
        Operator::Gt => (IndexOperator::Range, SearchOperator::Gt),
        Operator::Gte => (IndexOperator::Range, SearchOperator::Gte),
        Operator::Lt => (IndexOperator::Range, SearchOperator::Lt),
        Operator::Lte => (IndexOperator::Range, SearchOperator::Lte),
        Operator::Neq | Operator::Like | Operator::Contains | Operator::ContainsKey => return None,
    })
}

fn restricted(clause: &WhereParts<'_>, definitions: &[IndexDefinition]) -> Vec<IndexedRestriction> {
    let candidates_for =
        |column: &ColumnMetadata, (operator, search): Operators, value: &Term, entry_key: Option<&Term>| {
            let can = definitions
                .iter()
                .filter(move |definition| definition.column.name == column.name && definition.supports(operator));
            can.map(|definition| IndexCandidate {
                name: Arc::clone(&definition.name),
                column: column.name.clone(),
                class: definition.class(),
                operator: search,
                like: definition.sasi.filter(|_| operator == IndexOperator::Like),
                value: value.clone(),
                entry_key: entry_key.cloned(),
            })
            .collect::<Vec<_>>()
        };
    let compared = |column: &ColumnMetadata, operator: Operator, term: &Term| {
        comparison(operator).map(|operators| candidates_for(column, operators, term, None)).unwrap_or_default()
    };
    let mut found = Vec::new();
    for (key, column) in clause.keys.iter().zip(&clause.table.partition_key) {
        let candidates = match key {
            None => continue,
            Some(KeyPart::Eq(term)) => candidates_for(column, EQUAL, term, None),
            Some(KeyPart::Slice { bounds, .. }) => {
                bounds.iter().flat_map(|(operator, term)| compared(column, *operator, term)).collect()
            }
            Some(_) => Vec::new(),
        };
        // no index answers a NOT IN
        let always_filters = matches!(key, Some(KeyPart::Slice { except, .. }) if !except.is_empty());
        found.push(IndexedRestriction { always_filters, ..IndexedRestriction::new(Part::Key, candidates) });
    }
    for restriction in clause.clustering {
        let columns = clause.table.clustering.iter().skip(restriction.first);
        let candidates = match &restriction.test {
            ClusteringTest::Eq(RowTerm::Columns(terms)) => {
                columns.zip(terms).flat_map(|(column, term)| candidates_for(column, EQUAL, term, None)).collect()
            }
            ClusteringTest::Slice { lower, upper, .. } if restriction.width == 1 && !restriction.multi => {
                let ends = [(lower, Operator::Gt, Operator::Gte), (upper, Operator::Lt, Operator::Lte)];
                let of_end = |(end, open, closed): (&Option<(RowTerm, bool)>, Operator, Operator)| match end {
                    Some((RowTerm::Columns(terms), inclusive)) => {
                        let operator = if *inclusive { closed } else { open };
                        let pairs = columns.clone().zip(terms);
                        pairs.flat_map(|(column, term)| compared(column, operator, term)).collect()
                    }
                    _ => Vec::new(),
                };
                ends.into_iter().flat_map(of_end).collect()
            }
            _ => Vec::new(),
        };
        // an index is on one column, so it takes one for each to answer a comparison of several;
        // none answers a NOT IN
        let leaves_out = matches!(&restriction.test, ClusteringTest::Slice { except, .. } if !except.is_empty());
        let mut one = IndexedRestriction::new(Part::Clustering, candidates);
        let is_range = matches!(restriction.test, ClusteringTest::Slice { .. });
        if restriction.multi && (restriction.width > 1 || is_range) {
            one.only_attached = have_attached(restriction, clause.table, definitions);
            one.always_filters = !one.only_attached;
            one.is_supported |= one.only_attached;
        }
        one.always_filters |= leaves_out;
        one.is_supported |= is_indexed_tuple_range(restriction, clause.table, definitions);
        found.push(one);
    }
    if clause.clustering_contains {
        found
            .push(IndexedRestriction { always_filters: true, ..IndexedRestriction::new(Part::Clustering, Vec::new()) });
    }
    for (position, test) in clause.clustering_like {
        if let (FilterTest::Like(term), Some(column)) = (test, clause.table.clustering.get(*position)) {
            found.push(IndexedRestriction::new(Part::Clustering, candidates_for(column, LIKE, term, None)));
        }
    }
    let mut names: Vec<&str> = Vec::new();
    for (column, _) in clause.others {
        if names.contains(&column.name.as_str()) {
            continue;
        }
        names.push(&column.name);
        let of_column: Vec<&FilterTest> =
            clause.others.iter().filter(|(other, _)| other.name == column.name).map(|(_, test)| test).collect();
        let contains = |operator| (operator, SearchOperator::Eq);
        let candidates = of_column.iter().flat_map(|test| match test {
            FilterTest::Compare(operator, term) => compared(column, *operator, term),
            FilterTest::Contains(term) => candidates_for(column, contains(IndexOperator::Contains), term, None),
            FilterTest::ContainsKey(term) => candidates_for(column, contains(IndexOperator::ContainsKey), term, None),
            FilterTest::Entry(key, term) => candidates_for(column, EQUAL, term, Some(key)),
            FilterTest::Like(term) => candidates_for(column, LIKE, term, None),
            FilterTest::In(_) | FilterTest::NotIn(_) => Vec::new(),
        });
        let is_repeated = of_column.len() > 1;
        let always_filters = of_column.iter().any(|test| matches!(test, FilterTest::NotIn(_)));
        found.push(IndexedRestriction {
            is_repeated,
            always_filters,
            ..IndexedRestriction::new(Part::Other, candidates.collect())
        });
    }
    found
}
