//! WHERE clauses: the partitions, the rows of each, and the filters.
//!
//! [`prepare`] sorts the relations of a statement into restrictions of the partition key,
//! restrictions of leading clustering columns, and filters. [`Restrictions::keys`] and
//! [`Restrictions::slices`] evaluate them with bound values. Agrees with
//! `org.apache.cassandra.cql3.restrictions`, messages included.

mod build;
mod filter;
mod indexes;
mod relation;
mod slices;
mod text;
mod view;

use bytes::Bytes;
use rows::command::RingBound;
use rows::{ClusteringValues, IndexSearch, PartitionRange, Slices};
use schema::{ColumnKind, ColumnMetadata, TableMetadata};
use types::{DecoratedKey, Token};

pub(crate) use build::{REQUIRES_ALLOW_FILTERING, of_insert, prepare};
pub(crate) use filter::{BoundFilter, Filter, contains, contains_key};
pub(crate) use indexes::IndexCandidate;
pub(crate) use view::of_view;
pub use view::view_filter;

use crate::context::Bindings;
use crate::error::CqlError;
use crate::selection::Column;
use crate::terms::Term;
use crate::values::BoundValue;
use crate::{keys, values};

/// The kind of statement that a WHERE belongs to.
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
    /// The name in error messages.
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
    /// A term for each value.
    List(Vec<Term>),
    /// A bound list.
    Bind(Term),
}

/// A value for one or several clustering columns.
#[derive(Clone, Debug)]
pub(crate) enum RowTerm {
    /// A term for each column.
    Columns(Vec<Term>),
    /// A bound tuple.
    Tuple(Term),
}

impl RowTerm {
    /// All terms.
    fn terms(&self) -> &[Term] {
        match self {
            Self::Columns(terms) => terms,
            Self::Tuple(term) => std::slice::from_ref(term),
        }
    }
}

/// The right side of IN on clustering columns.
#[derive(Clone, Debug)]
pub(crate) enum RowTerms {
    /// Each by itself.
    List(Vec<RowTerm>),
    /// A bound list of tuples, or of values if it is of one column.
    Bind(Term),
}

/// The comparison of one clustering column, or of several that follow each other.
#[derive(Clone, Debug)]
pub(crate) enum ClusteringTest {
    /// `=`
    Eq(RowTerm),
    /// `IN`
    In(RowTerms),
    /// `<`, `<=`, `>`, `>=`, BETWEEN, NOT IN. The flags say whether an end is inclusive. The ends
    /// may be of different numbers of columns.
    Slice {
        /// `>`
        lower: Option<(RowTerm, bool)>,
        /// `<`
        upper: Option<(RowTerm, bool)>,
        /// `NOT IN`: each is an IN whose rows are left out. All begin with the same column.
        except: Vec<ClusteringRestriction>,
        /// Both ends are those of a BETWEEN, which refuses null.
        between: bool,
    },
}

/// A restriction on clustering columns.
#[derive(Clone, Debug)]
pub(crate) struct ClusteringRestriction {
    /// Position of the first column.
    pub first: usize,
    /// Number of columns; of a slice, those of the longer end.
    pub width: usize,
    /// The comparison.
    pub test: ClusteringTest,
    /// The relation has parentheses: `(a, b) > (1, 2)`.
    pub multi: bool,
}

/// The comparison of a column of the partition key.
#[derive(Clone, Debug)]
pub(crate) enum KeyTest {
    /// `=`
    Eq(Term),
    /// `IN`
    In(InTerms),
}

/// One end of a range of tokens; the flag says whether it is inclusive. None: no end.
pub(crate) type TokenBound = Option<(Term, bool)>;

/// A range of tokens.
#[derive(Clone, Debug)]
pub(crate) struct TokenRange {
    /// `>`
    pub lower: TokenBound,
    /// `<`
    pub upper: TokenBound,
    /// Both ends are those of a BETWEEN: a range that ends before it starts is empty.
    pub between: bool,
}

/// The partitions that a WHERE selects.
#[derive(Clone, Debug)]
pub(crate) enum PartitionRestriction {
    /// All partitions.
    All,
    /// The partitions named by `=` or IN on every key column.
    Keys(Vec<KeyTest>),
    /// The partitions whose token lies in a range.
    Token(TokenRange),
}

/// A prepared WHERE.
#[derive(Clone, Debug)]
pub(crate) struct Restrictions {
    /// The partitions.
    pub partition: PartitionRestriction,
    /// The range in which the tokens of partitions must lie that are named by their keys.
    pub key_tokens: Option<TokenRange>,
    /// The restrictions on leading clustering columns, in the order of the columns.
    pub clustering: Vec<ClusteringRestriction>,
    /// Conditions on leading clustering columns that Cassandra also filters rows by. The slices
    /// apply them; their values are refused where those of filters are, and replicas that search an
    /// index are told them.
    pub also_filtered: Vec<Filter>,
    /// The filters: conditions on rows that were read.
    pub filters: Vec<Filter>,
    /// A column of the partition key is restricted by IN.
    pub key_in: bool,
    /// The partition key is restricted, if only by a filter or token().
    pub restricts_key: bool,
    /// Rows have to be filtered: no index answers every condition.
    pub needs_filtering: bool,
    /// Rows would have to be filtered if attached indexes alone were used.
    pub unanswered_by_attached: bool,
    /// Why a read is refused when it is executed: rows would have to be filtered by several columns
    /// together. None: it is not.
    pub refused: Option<&'static str>,
    /// Rows have to be filtered, and the statement lacks ALLOW FILTERING.
    pub lacks_allow_filtering: bool,
    /// A clustering column is restricted, if only by a filter.
    pub restricts_clustering: bool,
    /// A regular column is restricted.
    pub restricts_regular: bool,
    /// For each clustering column whether it is restricted by `=`.
    pub equal_clustering: Vec<bool>,
    /// Among the columns that are not in the primary key only static ones are restricted.
    pub only_static_filters: bool,
    /// The secondary indexes that can find the rows; empty: none is used.
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

/// Evaluates the values of an IN. A null in a bound list is refused.
pub(crate) fn in_values(terms: &InTerms, name: &str, bindings: &Bindings<'_>) -> Result<Vec<Bytes>, CqlError> {
    match terms {
        // as in Cassandra all values are read before one is refused, and null is told before unset
        InTerms::List(terms) => {
            let values = terms.iter().map(|term| term.eval(bindings)).collect::<Result<Vec<_>, _>>()?;
            if values.contains(&BoundValue::Null) {
                return Err(CqlError::invalid(format!("Invalid null value in condition for column {name}")));
            }
            values.into_iter().map(|value| key_value(value, name)).collect()
        }
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

/// Whether a token lies in a range. A range that ends before it starts wraps around the ring.
fn is_between(token: Token, lower: Option<(Token, bool)>, upper: Option<(Token, bool)>) -> bool {
    let above = lower.is_none_or(|(from, inclusive)| token > from || (inclusive && token == from));
    let below = upper.is_none_or(|(to, inclusive)| token < to || (inclusive && token == to));
    match (lower, upper) {
        (Some((from, _)), Some((to, _))) if from > to => above || below,
        _ => above && below,
    }
}

impl Restrictions {
    /// Asserts that the restrictions are of columns that the table has, in the order in which they
    /// are evaluated.
    fn assert_sound(&self, table: &TableMetadata) {
        if let PartitionRestriction::Keys(tests) = &self.partition {
            assert_eq!(tests.len(), table.partition_key.len(), "a key has a value for each of its columns");
        }
        let ends = |restriction: &ClusteringRestriction| restriction.first + restriction.width;
        assert!(
            self.clustering.iter().all(|one| one.width > 0 && ends(one) <= table.clustering.len()),
            "columns exist"
        );
        let ascend = |pair: &[ClusteringRestriction]| pair[0].first <= pair[1].first;
        assert!(self.clustering.windows(2).all(ascend), "restrictions stand in the order of the clustering");
        assert!(self.filters.iter().all(|filter| filter.column.is_of(table)), "filters are of columns of the table");
        assert_eq!(self.equal_clustering.len(), table.clustering.len(), "each clustering column is judged");
    }

    /// Rows are filtered by several columns that are not in the key, or by a static column and
    /// another one.
    pub fn intersects(&self) -> bool {
        let of_rows = || self.filters.iter().filter(|filter| !filter.is_of_key());
        let has_static = self.filters.iter().any(|filter| matches!(filter.column, Column::Static { .. }));
        let is_other = |filter: &Filter| of_rows().next().is_some_and(|first| first.name != filter.name);
        let is_filtered = self.needs_filtering || !self.uses_index;
        is_filtered && ((has_static && self.filters.len() > 1) || of_rows().any(is_other))
    }

    /// The partitions are named by their keys.
    pub fn names_keys(&self) -> bool {
        matches!(self.partition, PartitionRestriction::Keys(_))
    }

    /// The partitions are a range or all partitions; they are not named by their keys.
    pub fn is_key_range(&self) -> bool {
        !matches!(self.partition, PartitionRestriction::Keys(_))
    }

    /// Whether a column of the primary key is restricted by `=`, if only by a filter.
    pub fn is_equal(&self, key: &ColumnMetadata) -> bool {
        let by_place = match (&self.partition, key.kind) {
            (_, ColumnKind::Clustering) => self.equal_clustering[key.position],
            (PartitionRestriction::Keys(tests), _) => matches!(tests.get(key.position), Some(KeyTest::Eq(_))),
            _ => false,
        };
        by_place || self.filters.iter().any(|filter| filter.name == key.name && filter.is_equality())
    }

    /// A partition without rows is part of the answer, by its static columns.
    pub fn shows_static_only(&self) -> bool {
        !self.restricts_clustering && !self.restricts_regular
    }

    /// The keys of the partitions, in the order of the values of their columns, each once. Keys
    /// that are empty or too long are refused.
    pub fn keys(&self, table: &TableMetadata, bindings: &Bindings<'_>) -> Result<Vec<DecoratedKey>, CqlError> {
        let keys = self.unchecked_keys(table, bindings)?;
        keys.iter().try_for_each(|key| keys::check(&key.key))?;
        Ok(keys)
    }

    /// As [`Self::keys`], without the check of each key, which is left to the caller.
    pub fn unchecked_keys(
        &self,
        table: &TableMetadata,
        bindings: &Bindings<'_>,
    ) -> Result<Vec<DecoratedKey>, CqlError> {
        let mut keys = self.all_keys(table, bindings)?;
        if let Some(TokenRange { lower, upper, between }) = &self.key_tokens {
            let end = |end: &TokenBound| -> Result<Option<(Token, bool)>, CqlError> {
                let Some((term, inclusive)) = end else { return Ok(None) };
                Ok(Some((token(&token_value(term, bindings)?)?, *inclusive)))
            };
            let (lower, upper) = (end(lower)?, end(upper)?);
            if *between && lower > upper {
                return Ok(Vec::new());
            }
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
                    // of values that compare as equal (the decimals 1 and 1.0) the first stays
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

    /// The range of partitions; None: it is empty. Not for [`PartitionRestriction::Keys`].
    pub fn range(&self, table: &TableMetadata, bindings: &Bindings<'_>) -> Result<Option<PartitionRange>, CqlError> {
        let PartitionRestriction::Token(TokenRange { lower, upper, between }) = &self.partition else {
            return Ok(Some(PartitionRange::all()));
        };
        let bound = |end: &TokenBound| -> Result<RingBound, CqlError> {
            let Some((term, inclusive)) = end else { return Ok(RingBound::Open) };
            let value = token_value(term, bindings)?;
            if table.is_virtual() {
                return Ok(RingBound::Key { key: DecoratedKey::new(value), inclusive: *inclusive });
            }
            match token(&value)? {
                // the smallest token is both the beginning and the end of the ring
                Token::MIN => Ok(RingBound::Open),
                token => Ok(RingBound::Token { token, inclusive: *inclusive }),
            }
        };
        let (start, end) = (bound(lower)?, bound(upper)?);
        // no key has the smallest token
        if *between && end == RingBound::Open {
            return Ok(None);
        }
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

    /// The filters with their terms evaluated, and then `also_filtered`. A value that cannot be
    /// compared with is refused, also where no row is asked for.
    pub fn bound_filters(&self, bindings: &Bindings<'_>) -> Result<(Vec<BoundFilter>, Vec<BoundFilter>), CqlError> {
        // conditions on key columns come first, those on clustering columns next
        let is_of_key = |filter: &&Filter| matches!(filter.column, Column::PartitionKey { .. });
        let of_key = self.filters.iter().take_while(is_of_key).count();
        let (of_key, others) = self.filters.split_at(of_key);
        let mut bound = of_key.iter().map(|filter| filter.bind(bindings)).collect::<Result<Vec<_>, _>>()?;
        let of_slices = self.also_filtered.iter().map(|filter| filter.bind(bindings)).collect::<Result<Vec<_>, _>>()?;
        for filter in others {
            bound.push(filter.bind(bindings)?);
        }
        Ok((bound, of_slices))
    }

    /// The searches for secondary indexes.
    pub fn searches(&self, bindings: &Bindings<'_>) -> Result<Vec<IndexSearch>, CqlError> {
        self.indexes.iter().map(|candidate| candidate.bind(bindings)).collect()
    }

    /// The slices of rows that are read of each partition.
    pub fn slices(&self, table: &TableMetadata, bindings: &Bindings<'_>) -> Result<Slices, CqlError> {
        if self.clustering.is_empty() {
            return Ok(Slices::all());
        }
        slices::build(self, table, bindings)
    }

    /// The clusterings of the rows, in order and each once, if every clustering column is
    /// restricted by `=` or `IN`.
    pub fn clusterings(
        &self,
        table: &TableMetadata,
        bindings: &Bindings<'_>,
    ) -> Result<Vec<ClusteringValues>, CqlError> {
        slices::clusterings(self, table, bindings)
    }

    /// Conditions on clustering columns are checked on each row: slices do not say them.
    pub fn filters_clustering(&self, table: &TableMetadata) -> bool {
        let is_of_clustering = |filter: &Filter| matches!(filter.column, Column::Clustering { .. });
        self.filters.iter().any(is_of_clustering) && !table.clustering.is_empty()
    }

    /// Some clustering column is restricted by a range.
    pub fn has_clustering_slice(&self) -> bool {
        self.clustering.iter().any(|restriction| matches!(restriction.test, ClusteringTest::Slice { .. }))
    }

    /// A clustering column is restricted by IN.
    pub fn has_clustering_in(&self) -> bool {
        self.clustering.iter().any(|restriction| matches!(restriction.test, ClusteringTest::In(_)))
    }

    /// Every clustering column is restricted by `=` or IN, at least one of them by IN.
    pub fn names_rows_by_in(&self, table: &TableMetadata) -> bool {
        self.has_clustering_in() && !self.has_clustering_slice() && self.clustering_width() == table.clustering.len()
    }

    /// Number of leading clustering columns that are restricted by `=` or IN.
    pub fn clustering_width(&self) -> usize {
        self.clustering.iter().map(|restriction| restriction.width).sum()
    }
}

/// The most partitions, and the most rows of each, that the IN lists of a statement may name; of a
/// write, the most rows of all its partitions together. More are refused, because their product
/// grows so fast that a few hundred bytes of CQL would fill the memory.
pub(crate) const COMBINATIONS_MAX: usize = if cfg!(test) { 1 << 14 } else { 1 << 18 };

/// Refuses IN lists whose product is too large.
pub(crate) fn check_combinations(so_far: usize, more: usize) -> Result<(), CqlError> {
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
