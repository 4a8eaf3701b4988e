//! WHERE clauses: which partitions, which rows of them, and what is filtered.
//!
//! [`prepare`] sorts the relations of a statement into restrictions of the partition key, of leading clustering columns, and
//! filters; [`Restrictions::keys`] and [`Restrictions::slices`] give what they mean for bound values.
//! Agrees with `org.apache.cassandra.cql3.restrictions`, its messages included.

mod build;
mod filter;
mod indexes;
mod relation;
mod slices;
mod text;

use bytes::Bytes;
use rows::command::RingBound;
use rows::{ClusteringValues, IndexSearch, PartitionRange, Slices};
use schema::TableMetadata;
use types::{DecoratedKey, Token};

pub(crate) use build::{REQUIRES_ALLOW_FILTERING, of_insert, prepare};
pub(crate) use filter::{BoundFilter, Filter, contains, contains_key};
pub(crate) use indexes::IndexCandidate;

use crate::context::Bindings;
use crate::error::CqlError;
use crate::terms::Term;
use crate::values::BoundValue;
use crate::{keys, values};

/// The sort of statement that a WHERE belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StatementKind {
    /// SELECT
    Select,
    /// INSERT
    Insert,
    /// UPDATE
    Update,
    /// DELETE
    Delete,
}

impl StatementKind {
    /// As in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Select => "SELECT",
            Self::Insert => "INSERT",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// The right side of IN.
#[derive(Clone, Debug)]
pub(crate) enum InTerms {
    /// Each by itself.
    List(Vec<Term>),
    /// A bound list.
    Bind(Term),
}

/// A value for one or more clustering columns.
#[derive(Clone, Debug)]
pub(crate) enum RowTerm {
    /// One for each.
    Columns(Vec<Term>),
    /// A bound tuple.
    Tuple(Term),
}

/// The rows for which leading clustering columns have values.
#[derive(Clone, Debug)]
pub(crate) enum RowTerms {
    /// Each by itself.
    List(Vec<RowTerm>),
    /// A bound list of tuples, or of values of one column.
    Bind(Term),
}

/// How a clustering column, or some that follow each other, are restricted.
#[derive(Clone, Debug)]
pub(crate) enum ClusteringTest {
    /// `=`
    Eq(RowTerm),
    /// `IN`
    In(RowTerms),
    /// `<`, `<=`, `>`, `>=`; the flag: inclusive. The two ends may name more or fewer columns.
    Slice {
        /// `>`
        lower: Option<(RowTerm, bool)>,
        /// `<`
        upper: Option<(RowTerm, bool)>,
    },
}

/// A restriction of clustering columns.
#[derive(Clone, Debug)]
pub(crate) struct ClusteringRestriction {
    /// Position of the first column.
    pub first: usize,
    /// How many columns (of the longer end).
    pub width: usize,
    /// How.
    pub test: ClusteringTest,
    /// It was written with parentheses.
    pub multi: bool,
}

/// How a column of the partition key is restricted.
#[derive(Clone, Debug)]
pub(crate) enum KeyTest {
    /// `=`
    Eq(Term),
    /// `IN`
    In(InTerms),
}

/// One end of a range of tokens; the flag: inclusive.
pub(crate) type TokenBound = Option<(Term, bool)>;

/// Which partitions.
#[derive(Clone, Debug)]
pub(crate) enum PartitionRestriction {
    /// All.
    All,
    /// Those of which every key column has one of some values.
    Keys(Vec<KeyTest>),
    /// Those whose token lies in a range.
    Token {
        /// `>`
        lower: TokenBound,
        /// `<`
        upper: TokenBound,
    },
}

/// A prepared WHERE.
#[derive(Clone, Debug)]
pub(crate) struct Restrictions {
    /// Which partitions.
    pub partition: PartitionRestriction,
    /// Where partitions are given by their keys: the tokens that these must have besides, from and to.
    pub key_tokens: Option<(TokenBound, TokenBound)>,
    /// Which rows: restrictions of leading clustering columns, in order.
    pub clustering: Vec<ClusteringRestriction>,
    /// What else must hold of a row.
    pub filters: Vec<Filter>,
    /// The partition key is restricted by an IN.
    pub key_in: bool,
    /// Something is said of the partition key, if only by a filter.
    pub restricts_key: bool,
    /// It is a range of partitions of which rows are left out, and ALLOW FILTERING was not given.
    pub lacks_allow_filtering: bool,
    /// Some clustering column is restricted, whether or not by a filter.
    pub restricts_clustering: bool,
    /// Some regular column is restricted.
    pub restricts_regular: bool,
    /// For each clustering column: it is restricted by `=`.
    pub equal_clustering: Vec<bool>,
    /// Only static columns are restricted besides the key.
    pub only_static_filters: bool,
    /// Secondary indexes that can find the rows; empty: none is used.
    pub indexes: Vec<IndexCandidate>,
    /// A secondary index is used.
    pub uses_index: bool,
}

fn key_value(value: BoundValue, name: &str) -> Result<Bytes, CqlError> {
    match value {
        BoundValue::Bytes(bytes) => Ok(bytes),
        BoundValue::Null => Err(CqlError::invalid(format!("Invalid null value in condition for column {name}"))),
        BoundValue::Unset => Err(CqlError::invalid(format!("Invalid unset value for column {name}"))),
    }
}

/// The values of an IN. Null in a bound list counts as a mistake.
pub(crate) fn in_values(terms: &InTerms, name: &str, bindings: &Bindings<'_>) -> Result<Vec<Bytes>, CqlError> {
    match terms {
        InTerms::List(terms) => terms.iter().map(|term| key_value(term.eval(bindings)?, name)).collect(),
        InTerms::Bind(term) => match term.eval(bindings)? {
            BoundValue::Bytes(list) => values::split_list(&list),
            BoundValue::Null => Err(CqlError::invalid(format!("Invalid null value for column {name}"))),
            BoundValue::Unset => Err(CqlError::invalid(format!("Invalid unset value for column {name}"))),
        },
    }
}

fn token_value(term: &Term, bindings: &Bindings<'_>) -> Result<Bytes, CqlError> {
    match term.eval(bindings)? {
        BoundValue::Bytes(bytes) => Ok(bytes),
        BoundValue::Null => Err(CqlError::invalid("Invalid null token value")),
        BoundValue::Unset => Err(CqlError::invalid("Invalid unset value for partition key token")),
    }
}

fn token(value: &[u8]) -> Result<Token, CqlError> {
    let token = <[u8; 8]>::try_from(value).map_err(|_| CqlError::invalid("Invalid token value"))?;
    Ok(Token(i64::from_be_bytes(token)))
}

/// Whether a token lies in a range; one that ends before it starts goes round the ring.
fn is_between(token: Token, lower: Option<(Token, bool)>, upper: Option<(Token, bool)>) -> bool {
    let above = lower.is_none_or(|(from, inclusive)| token > from || (inclusive && token == from));
    let below = upper.is_none_or(|(to, inclusive)| token < to || (inclusive && token == to));
    match (lower, upper) {
        (Some((from, _)), Some((to, _))) if from > to => above || below,
        _ => above && below,
    }
}

impl Restrictions {
    /// Partitions are named by their keys.
    pub fn names_keys(&self) -> bool {
        matches!(self.partition, PartitionRestriction::Keys(_))
    }

    /// The partition is given by its key.
    pub fn is_key_range(&self) -> bool {
        !matches!(self.partition, PartitionRestriction::Keys(_))
    }

    /// A column of the partition key is restricted by `=`.
    pub fn is_key_equal(&self, position: usize) -> bool {
        match &self.partition {
            PartitionRestriction::Keys(tests) => matches!(tests.get(position), Some(KeyTest::Eq(_))),
            _ => false,
        }
    }

    /// A partition without rows is shown by its static columns.
    pub fn shows_static_only(&self) -> bool {
        !self.restricts_clustering && !self.restricts_regular
    }

    /// The keys that are asked for, in the order of their columns' values, each once; none too long or empty.
    pub fn keys(&self, table: &TableMetadata, bindings: &Bindings<'_>) -> Result<Vec<DecoratedKey>, CqlError> {
        let keys = self.unchecked_keys(table, bindings)?;
        keys.iter().try_for_each(|key| keys::check(&key.key))?;
        Ok(keys)
    }

    /// The same, with keys that are to be checked when they are used.
    pub fn unchecked_keys(
        &self,
        table: &TableMetadata,
        bindings: &Bindings<'_>,
    ) -> Result<Vec<DecoratedKey>, CqlError> {
        let mut keys = self.all_keys(table, bindings)?;
        if let Some((lower, upper)) = &self.key_tokens {
            let end = |end: &TokenBound| -> Result<Option<(Token, bool)>, CqlError> {
                let Some((term, inclusive)) = end else { return Ok(None) };
                Ok(Some((token(&token_value(term, bindings)?)?, *inclusive)))
            };
            let (lower, upper) = (end(lower)?, end(upper)?);
            keys.retain(|key| is_between(key.token, lower, upper));
        }
        Ok(keys)
    }

    fn all_keys(&self, table: &TableMetadata, bindings: &Bindings<'_>) -> Result<Vec<DecoratedKey>, CqlError> {
        let PartitionRestriction::Keys(tests) = &self.partition else { return Ok(Vec::new()) };
        if let [KeyTest::Eq(term)] = tests.as_slice() {
            let key = key_value(term.eval(bindings)?, &table.partition_key[0].name)?;
            return Ok(vec![table.decorate(key)]);
        }
        let mut combinations: Vec<Vec<Bytes>> = vec![Vec::with_capacity(tests.len())];
        for (test, column) in tests.iter().zip(&table.partition_key) {
            match test {
                KeyTest::Eq(term) => {
                    let value = key_value(term.eval(bindings)?, &column.name)?;
                    for combination in &mut combinations {
                        combination.push(value.clone());
                    }
                }
                KeyTest::In(terms) => {
                    let mut values = in_values(terms, &column.name, bindings)?;
                    values.sort_by(|a, b| types::compare(&column.ty, a, b));
                    // of equal ones (1 and 1.0 of a decimal) the first
                    values.dedup_by(|later, first| types::compare(&column.ty, later, first).is_eq());
                    check_combinations(combinations.len(), values.len())?;
                    combinations = product(&combinations, &values);
                }
            }
            if combinations.is_empty() {
                break;
            }
        }
        combinations.into_iter().map(|combination| Ok(table.decorate(keys::compose(&combination)?))).collect()
    }

    /// The range of partitions that is asked for; None: none can be in it. Not for [`PartitionRestriction::Keys`].
    pub fn range(&self, table: &TableMetadata, bindings: &Bindings<'_>) -> Result<Option<PartitionRange>, CqlError> {
        let PartitionRestriction::Token { lower, upper } = &self.partition else {
            return Ok(Some(PartitionRange::all()));
        };
        let bound = |end: &TokenBound| -> Result<RingBound, CqlError> {
            let Some((term, inclusive)) = end else { return Ok(RingBound::Open) };
            let value = token_value(term, bindings)?;
            if table.is_virtual() {
                return Ok(RingBound::Key { key: DecoratedKey::new(value), inclusive: *inclusive });
            }
            match token(&value)? {
                // the smallest token is where the ring starts and where it ends
                Token::MIN => Ok(RingBound::Open),
                token => Ok(RingBound::Token { token, inclusive: *inclusive }),
            }
        };
        let (start, end) = (bound(lower)?, bound(upper)?);
        if let (
            RingBound::Token { token: from, inclusive: with_from },
            RingBound::Token { token: to, inclusive: with_to },
        ) = (&start, &end)
            && (from > to || (from == to && !(*with_from && *with_to)))
        {
            return Ok(None);
        }
        Ok(Some(PartitionRange::Range { start, end }))
    }

    /// What secondary indexes are asked for.
    pub fn searches(&self, bindings: &Bindings<'_>) -> Result<Vec<IndexSearch>, CqlError> {
        self.indexes.iter().map(|candidate| candidate.bind(bindings)).collect()
    }

    /// The rows that are asked for in each partition.
    pub fn slices(&self, table: &TableMetadata, bindings: &Bindings<'_>) -> Result<Slices, CqlError> {
        if self.clustering.is_empty() {
            return Ok(Slices::all());
        }
        slices::build(self, table, bindings)
    }

    /// The clusterings that are asked for, where every clustering column is restricted by `=` or `IN`: in order, each once.
    pub fn clusterings(
        &self,
        table: &TableMetadata,
        bindings: &Bindings<'_>,
    ) -> Result<Vec<ClusteringValues>, CqlError> {
        slices::clusterings(self, table, bindings)
    }

    /// No clustering column is restricted otherwise than by `=` or `IN`.
    pub fn has_clustering_slice(&self) -> bool {
        self.clustering.iter().any(|restriction| matches!(restriction.test, ClusteringTest::Slice { .. }))
    }

    /// Some clustering column is restricted by IN.
    pub fn has_clustering_in(&self) -> bool {
        self.clustering.iter().any(|restriction| matches!(restriction.test, ClusteringTest::In(_)))
    }

    /// Whole rows are named, some of them by IN.
    pub fn names_rows_by_in(&self, table: &TableMetadata) -> bool {
        self.has_clustering_in() && !self.has_clustering_slice() && self.clustering_width() == table.clustering.len()
    }

    /// How many leading clustering columns have values.
    pub fn clustering_width(&self) -> usize {
        self.clustering.iter().map(|restriction| restriction.width).sum()
    }
}

/// The most partitions, and the most rows of each, that the IN lists of a statement may select together. More are refused:
/// a few hundred bytes of CQL would fill the memory.
pub(crate) const COMBINATIONS_MAX: usize = 1 << 18;

/// Refuses lists whose product is too large.
fn check_combinations(so_far: usize, more: usize) -> Result<(), CqlError> {
    match so_far.checked_mul(more) {
        Some(count) if count <= COMBINATIONS_MAX => Ok(()),
        _ => Err(CqlError::invalid(format!(
            "The IN restrictions select more than {COMBINATIONS_MAX} combinations of values"
        ))),
    }
}

fn product(combinations: &[Vec<Bytes>], values: &[Bytes]) -> Vec<Vec<Bytes>> {
    let mut next = Vec::with_capacity(combinations.len() * values.len());
    for combination in combinations {
        for value in values {
            let mut longer = combination.clone();
            longer.push(value.clone());
            next.push(longer);
        }
    }
    next
}
