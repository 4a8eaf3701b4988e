//! Sorting relations into restrictions, and refusing combinations that cannot be executed.
//!
//! Agrees with `org.apache.cassandra.cql3.restrictions.StatementRestrictions`, its messages
//! included.

use std::collections::HashMap;

use schema::index::attached::TextForm;
use schema::index::definition::{IndexClass, IndexOperator, excludes_empty, text_form};
use schema::{ColumnId, ColumnKind, ColumnMetadata, TableMetadata};

use super::filter::FilterTest;
use super::indexes::{self, IndexUse, WhereParts};
use super::relation::{self, PreparedRelation};
use super::{
    ClusteringRestriction, ClusteringTest, Filter, InTerms, KeyTest, PartitionRestriction, Restrictions, RowTerm,
    RowTerms, StatementKind, TokenRange,
};
use crate::ast::{Operator, Relation, WhereClause};
use crate::context::PrepareContext;
use crate::error::CqlError;
use crate::selection::Column;
use crate::terms::Term;

/// The error for ranges of several columns that would have to filter rows.
const FILTERED_INS: &str = "Multicolumn IN filters are not supported";
const FILTERED_TUPLES: &str = "Multi-column slice restrictions cannot be used for filtering.";
/// The error for statements that have to filter rows without ALLOW FILTERING.
pub(crate) const REQUIRES_ALLOW_FILTERING: &str = "Cannot execute this query as it might involve data filtering \
and thus may have unpredictable performance. If you want to execute this query despite the performance \
unpredictability, use ALLOW FILTERING";

fn invalid<T>(message: String) -> Result<T, CqlError> {
    Err(CqlError::invalid(message))
}

/// The restrictions on a column of the partition key, while relations are being sorted.
pub(super) enum KeyPart {
    Eq(Term),
    In(InTerms),
    /// Comparisons, and values that NOT IN leaves out.
    Slice {
        bounds: Vec<(Operator, Term)>,
        except: Vec<InTerms>,
    },
    /// CONTAINS and CONTAINS KEY: all of them must hold.
    Contains(Vec<FilterTest>),
}

struct Builder<'t> {
    kind: StatementKind,
    table: &'t TableMetadata,
    allow_filtering: bool,
    keys: Vec<Option<KeyPart>>,
    token: Option<TokenRange>,
    /// The token is given by =.
    token_is_equal: bool,
    clustering: Vec<ClusteringRestriction>,
    /// CONTAINS, CONTAINS KEY and LIKE on clustering columns, by the position of the column.
    clustering_contains: Vec<(usize, FilterTest)>,
    /// The columns of `clustering_contains`, each once. A statement may have a million conditions,
    /// so that none looks through all others.
    contained: Vec<usize>,
    /// The columns of `clustering_contains` that have a LIKE.
    liked: Vec<usize>,
    others: Vec<(&'t ColumnMetadata, FilterTest)>,
    /// For each column the place of its first condition in `others`.
    first_of: HashMap<ColumnId, usize>,
    index_use: IndexUse,
    /// Why a restriction of several clustering columns cannot be a filter, which it would have to
    /// be. None: there is no such restriction.
    filtered_tuples: Option<&'static str>,
}

/// Prepares the WHERE of a statement. `only_static`: the statement reads or changes static columns
/// only.
pub(crate) fn prepare(
    context: &mut PrepareContext<'_>,
    kind: StatementKind,
    table: &TableMetadata,
    clause: &WhereClause<'_>,
    only_static: bool,
    allow_filtering: bool,
) -> Result<Restrictions, CqlError> {
    if !clause.expressions.is_empty() {
        return match kind {
            StatementKind::Select => Err(CqlError::unsupported("Custom index expressions are")),
            _ => invalid(
                "Custom index expressions cannot be used in WHERE clauses for UPDATE or DELETE statements".into(),
            ),
        };
    }
    let mut builder = Builder::new(kind, table, allow_filtering);
    for relation in &clause.relations {
        let Some(bounds) = relation.bounds() else {
            let prepared = relation::prepare(context, kind, table, relation)?;
            builder.add(prepared)?;
            continue;
        };
        for bound in &bounds {
            let prepared = relation::prepare(context, kind, table, bound)?;
            builder.add(prepared)?;
        }
        builder.mark_between(relation);
    }
    builder.finish(only_static)
}

/// The restrictions of an INSERT, which gives a term for each key column.
pub(crate) fn of_insert(
    table: &TableMetadata,
    keys: Vec<(&ColumnMetadata, Term)>,
    only_static: bool,
) -> Result<Restrictions, CqlError> {
    let mut builder = Builder::new(StatementKind::Insert, table, false);
    for (column, term) in keys {
        builder.add_column(column, Operator::Eq, term)?;
    }
    builder.finish(only_static)
}

fn is_like(test: &FilterTest) -> bool {
    matches!(test, FilterTest::Like(_))
}

fn is_plain(key: &Option<KeyPart>) -> bool {
    matches!(key, Some(KeyPart::Eq(_) | KeyPart::In(_)))
}

impl<'t> Builder<'t> {
    fn new(kind: StatementKind, table: &'t TableMetadata, allow_filtering: bool) -> Self {
        Self {
            kind,
            table,
            allow_filtering,
            keys: table.partition_key.iter().map(|_| None).collect(),
            token: None,
            token_is_equal: false,
            clustering: Vec::new(),
            clustering_contains: Vec::new(),
            contained: Vec::new(),
            liked: Vec::new(),
            others: Vec::new(),
            first_of: HashMap::new(),
            index_use: IndexUse::default(),
            filtered_tuples: None,
        }
    }

    fn add<'p: 't>(&mut self, prepared: PreparedRelation<'p>) -> Result<(), CqlError> {
        match prepared {
            PreparedRelation::Column(column, operator, term) => self.add_column(column, operator, term),
            PreparedRelation::ColumnIn(column, terms) => match column.kind {
                ColumnKind::PartitionKey => self.add_key(column, KeyPart::In(terms)),
                ColumnKind::Clustering => {
                    self.add_clustering(column.position, 1, ClusteringTest::In(rows_of(terms)), false)
                }
                ColumnKind::Static | ColumnKind::Regular => self.add_other(column, FilterTest::In(terms)),
            },
            PreparedRelation::ColumnNotIn(column, terms) => match column.kind {
                ColumnKind::PartitionKey => {
                    self.add_key(column, KeyPart::Slice { bounds: Vec::new(), except: vec![terms] })
                }
                ColumnKind::Clustering => {
                    let test = not_in_test(column.position, 1, rows_of(terms), false);
                    self.add_clustering(column.position, 1, test, false)
                }
                ColumnKind::Static | ColumnKind::Regular => self.add_other(column, FilterTest::NotIn(terms)),
            },
            PreparedRelation::Entry(column, key, value) => self.add_other(column, FilterTest::Entry(key, value)),
            PreparedRelation::Token(operator, term) => self.add_token(operator, term),
            PreparedRelation::Tuple(first, width, operator, row) => {
                self.add_clustering(first, width, clustering_test(operator, row), true)
            }
            PreparedRelation::TupleIn(first, width, rows) => {
                let test = match rows {
                    RowTerms::List(mut rows) if rows.len() == 1 => {
                        ClusteringTest::Eq(rows.pop().expect("there is one"))
                    }
                    rows => ClusteringTest::In(rows),
                };
                self.add_clustering(first, width, test, true)
            }
            PreparedRelation::TupleNotIn(first, width, rows) => {
                self.add_clustering(first, width, not_in_test(first, width, rows, true), true)
            }
        }
    }

    /// The two bounds that were added last are those of a BETWEEN.
    fn mark_between(&mut self, relation: &Relation<'_>) {
        if let Relation::TokenBetween { .. } = relation {
            self.token.iter_mut().for_each(|token| token.between = true);
            return;
        }
        let Some(name) = relation.columns().first() else { return };
        let Some(column) = self.table.clustering.iter().find(|column| column.name == name.as_str()) else { return };
        let known = self.clustering.iter_mut().find(|other| other.first == column.position);
        if let Some(ClusteringTest::Slice { between, .. }) = known.map(|known| &mut known.test) {
            *between = true;
        }
    }

    fn add_column(&mut self, column: &'t ColumnMetadata, operator: Operator, term: Term) -> Result<(), CqlError> {
        let contains = match operator {
            Operator::Contains => Some(FilterTest::Contains(term.clone())),
            Operator::ContainsKey => Some(FilterTest::ContainsKey(term.clone())),
            Operator::Like => Some(FilterTest::Like(term.clone())),
            _ => None,
        };
        match column.kind {
            ColumnKind::PartitionKey => {
                let part = match (contains, operator) {
                    (Some(test), _) => KeyPart::Contains(vec![test]),
                    (None, Operator::Eq) => KeyPart::Eq(term),
                    _ => KeyPart::Slice { bounds: vec![(operator, term)], except: Vec::new() },
                };
                self.add_key(column, part)
            }
            ColumnKind::Clustering => match contains {
                Some(test) => {
                    self.check_contains(column)?;
                    if is_like(&test) {
                        self.liked.push(column.position);
                    }
                    if !self.contained.contains(&column.position) {
                        self.contained.push(column.position);
                    }
                    self.clustering_contains.push((column.position, test));
                    Ok(())
                }
                None => {
                    let test = clustering_test(operator, RowTerm::Columns(vec![term]));
                    self.add_clustering(column.position, 1, test, false)
                }
            },
            ColumnKind::Static | ColumnKind::Regular => {
                self.add_other(column, contains.unwrap_or(FilterTest::Compare(operator, term)))
            }
        }
    }

    /// Refuses CONTAINS and LIKE on a clustering column that is restricted otherwise.
    fn check_contains(&self, column: &ColumnMetadata) -> Result<(), CqlError> {
        let at = column.position;
        if self.liked.contains(&at) {
            return refuse_second_relation(&column.name, "a LIKE");
        }
        let known = self.clustering.iter().find(|other| (other.first..other.first + other.width).contains(&at));
        match known.map(|known| &known.test) {
            None => Ok(()),
            Some(ClusteringTest::Eq(_)) => refuse_second_relation(&column.name, "an Equal"),
            Some(ClusteringTest::In(_)) => refuse_second_relation(&column.name, "a IN"),
            Some(ClusteringTest::Slice { .. }) => refuse_equality_and_inequality(&column.name),
        }
    }

    fn add_key(&mut self, column: &ColumnMetadata, part: KeyPart) -> Result<(), CqlError> {
        let name = &column.name;
        let place = &mut self.keys[column.position];
        match (place.as_mut(), part) {
            (None, part) => *place = Some(part),
            (Some(KeyPart::Eq(_)), _) => return refuse_second_relation(name, "an Equal"),
            (Some(KeyPart::In(_)), _) => return refuse_second_relation(name, "a IN"),
            (Some(KeyPart::Slice { bounds, except }), KeyPart::Slice { bounds: more, except: also }) => {
                for (operator, term) in more {
                    check_bounds(name, bounds.iter().map(|(operator, _)| *operator), operator)?;
                    bounds.push((operator, term));
                }
                except.extend(also);
            }
            (Some(KeyPart::Slice { .. }), _) => return refuse_equality_and_inequality(name),
            (Some(KeyPart::Contains(tests)), KeyPart::Contains(more)) => tests.extend(more),
            (Some(KeyPart::Contains(_)), _) => return refuse_other_than_contains(name),
        }
        Ok(())
    }

    fn add_token(&mut self, operator: Operator, term: Term) -> Result<(), CqlError> {
        let names: Vec<_> = self.table.partition_key.iter().map(|column| column.name.as_str()).collect();
        if self.token_is_equal {
            return refuse_second_relation(&names.join(", "), "an Equal");
        }
        if operator == Operator::Eq && self.token.is_some() {
            return invalid(format!(
                "Columns \"{}\" cannot be restricted by both an equality and an inequality relation",
                names.join(", ")
            ));
        }
        self.token_is_equal = operator == Operator::Eq;
        let range = self.token.get_or_insert(TokenRange { lower: None, upper: None, between: false });
        let TokenRange { lower, upper, .. } = range;
        let (sets_lower, sets_upper) = match operator {
            Operator::Eq => (true, true),
            Operator::Gt | Operator::Gte => (true, false),
            _ => (false, true),
        };
        if sets_lower && lower.is_some() {
            return invalid(format!("More than one restriction was found for the start bound on {}", names.join(", ")));
        }
        if sets_upper && upper.is_some() {
            return invalid(format!("More than one restriction was found for the end bound on {}", names.join(", ")));
        }
        let inclusive = matches!(operator, Operator::Eq | Operator::Gte | Operator::Lte);
        if sets_lower {
            *lower = Some((term.clone(), inclusive));
        }
        if sets_upper {
            *upper = Some((term, inclusive));
        }
        Ok(())
    }

    fn names(&self, first: usize, width: usize) -> String {
        let columns = &self.table.clustering[first..first + width];
        columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    fn add_clustering(
        &mut self,
        first: usize,
        width: usize,
        test: ClusteringTest,
        multi: bool,
    ) -> Result<(), CqlError> {
        if let Some(at) = self.contained.iter().find(|at| (first..first + width).contains(at)) {
            let name = &self.table.clustering[*at].name;
            return if self.liked.contains(at) {
                refuse_second_relation(name, "a LIKE")
            } else {
                refuse_other_than_contains(name)
            };
        }
        let overlaps = |other: &ClusteringRestriction| other.first < first + width && first < other.first + other.width;
        let mut known = self.clustering.iter().enumerate().filter(|(_, other)| overlaps(other)).map(|(at, _)| at);
        let first_known = known.next();
        // a range over several columns may overlap with several restrictions
        let second = known.next().map_or(Ok(()), |second| self.cannot_join(second));
        let Some(at) = first_known else {
            let restriction = ClusteringRestriction { first, width, test, multi };
            self.check_neighbours(&restriction)?;
            let place = self.clustering.partition_point(|other| other.first < first);
            self.clustering.insert(place, restriction);
            return Ok(());
        };
        let from = first.max(self.clustering[at].first);
        let until = (first + width).min(self.clustering[at].first + self.clustering[at].width);
        let common = self.names(from, until - from);
        let old = &mut self.clustering[at];
        let ClusteringTest::Slice { lower, upper, except, .. } = &mut old.test else {
            let which = if matches!(old.test, ClusteringTest::Eq(_)) { "an Equal" } else { "a IN" };
            return refuse_second_relation(&common, which);
        };
        let ClusteringTest::Slice { lower: new_lower, upper: new_upper, except: more, .. } = test else {
            return refuse_equality_and_inequality(&common);
        };
        if old.first != first {
            return refuse_bounds_apart(&self.table.clustering[old.first.max(first)].name);
        }
        if lower.is_some() && new_lower.is_some() {
            return invalid(format!("More than one restriction was found for the start bound on {common}"));
        }
        if upper.is_some() && new_upper.is_some() {
            return invalid(format!("More than one restriction was found for the end bound on {common}"));
        }
        second?;
        *lower = lower.take().or(new_lower);
        *upper = upper.take().or(new_upper);
        except.extend(more);
        old.width = old.width.max(width);
        old.multi |= multi;
        Ok(())
    }

    /// The error for a range over several columns that overlaps with another restriction.
    fn cannot_join(&self, at: usize) -> Result<(), CqlError> {
        let other = &self.clustering[at];
        let name = &self.table.clustering[other.first].name;
        match &other.test {
            ClusteringTest::Eq(_) => refuse_second_relation(name, "an Equal"),
            ClusteringTest::In(_) => refuse_second_relation(name, "a IN"),
            ClusteringTest::Slice { .. } => refuse_bounds_apart(name),
        }
    }

    fn add_other(&mut self, column: &'t ColumnMetadata, test: FilterTest) -> Result<(), CqlError> {
        let name = &column.name;
        let is_contains = |test: &FilterTest| {
            matches!(test, FilterTest::Contains(_) | FilterTest::ContainsKey(_) | FilterTest::Entry(..))
        };
        let first = self.first_of.get(&column.id).copied();
        let of_column = self.others.iter().skip(first.unwrap_or(self.others.len()));
        for (_, old) in of_column.filter(|(other, _)| other.id == column.id) {
            match (old, &test) {
                (FilterTest::Compare(Operator::Eq, _), _) => return refuse_second_relation(name, "an Equal"),
                (FilterTest::In(_), _) => return refuse_second_relation(name, "a IN"),
                (FilterTest::Like(_), _) => return refuse_second_relation(name, "a LIKE"),
                (FilterTest::Compare(old, _), FilterTest::Compare(new, _)) if *new != Operator::Eq => {
                    check_bounds(name, [*old].into_iter(), *new)?;
                }
                (FilterTest::NotIn(_), FilterTest::Compare(new, _)) if *new != Operator::Eq => {}
                // conditions that were taken are of one kind, so that the first speaks for all
                (FilterTest::Compare(..) | FilterTest::NotIn(_), FilterTest::NotIn(_)) => break,
                (FilterTest::Compare(..) | FilterTest::NotIn(_), _) => return refuse_equality_and_inequality(name),
                (_, new) if is_contains(new) => break,
                _ => return refuse_other_than_contains(name),
            }
        }
        self.first_of.entry(column.id).or_insert(self.others.len());
        self.others.push((column, test));
        Ok(())
    }

    fn finish(mut self, only_static: bool) -> Result<Restrictions, CqlError> {
        // if the whole key is given too, the token only excludes keys
        let on_token = self.token.is_some() && !self.are_keys_given();
        if self.kind == StatementKind::Select {
            self.index_use = indexes::choose_indexes(&WhereParts {
                table: self.table,
                keys: &self.keys,
                on_token,
                clustering: &self.clustering,
                clustering_contains: self.clustering_contains.iter().any(|(_, test)| !is_like(test)),
                clustering_like: &self.clustering_contains,
                others: &self.others,
            });
        }
        let mut filters = Vec::new();
        let restricts_key = self.token.is_some() || self.keys.iter().any(Option::is_some);
        let key_in = !on_token && self.keys.iter().any(|part| matches!(part, Some(KeyPart::In(_))));
        let partition = self.finish_keys(on_token, &mut filters)?;
        let restricts_clustering = !self.clustering.is_empty() || !self.clustering_contains.is_empty();
        if only_static && restricts_clustering {
            match self.kind {
                StatementKind::Update | StatementKind::Delete => {
                    return invalid(format!(
                        "Invalid restrictions on clustering columns since the {} statement modifies only static columns",
                        self.kind.name()
                    ));
                }
                StatementKind::Select => {
                    return invalid("Cannot restrict clustering columns when selecting only static columns".into());
                }
                StatementKind::Insert => {}
            }
        }
        let also_filtered = self.also_filtered()?;
        let clustering = self.finish_clustering(only_static, &mut filters)?;
        let equal_clustering = self.equal_columns(&clustering);
        let restricts_regular = self.others.iter().any(|(column, _)| column.kind == ColumnKind::Regular);
        let only_static_filters = self.others.iter().all(|(column, _)| column.kind == ColumnKind::Static);
        self.finish_others(&mut filters)?;
        let index_use = std::mem::take(&mut self.index_use);
        let IndexUse {
            uses, key_in: any_in, candidates, needs_filtering, unanswered_by_attached, filters_tuples, ..
        } = index_use;
        if uses && any_in {
            return invalid(
                "Select on indexed columns and with IN clause for the PRIMARY KEY are not supported".into(),
            );
        }
        let lacks_allow_filtering = needs_filtering && !self.filters_freely();
        let refused = self.filtered_tuples.or(filters_tuples.then_some(FILTERED_TUPLES));
        let restrictions = Restrictions {
            refused,
            unanswered_by_attached,
            partition,
            key_tokens: self.token,
            clustering,
            also_filtered,
            filters,
            key_in,
            restricts_key,
            needs_filtering,
            lacks_allow_filtering,
            restricts_clustering,
            restricts_regular,
            equal_clustering,
            only_static_filters,
            indexes: candidates,
            uses_index: uses,
        };
        restrictions.assert_sound(self.table);
        Ok(restrictions)
    }

    /// Filtering needs no ALLOW FILTERING: most virtual tables are filtered implicitly, and an
    /// index may answer the restrictions.
    fn filters_freely(&self) -> bool {
        self.allow_filtering || self.table.filters_implicitly() || self.index_use.has_index
    }

    fn equal_columns(&self, clustering: &[ClusteringRestriction]) -> Vec<bool> {
        let mut equal = vec![false; self.table.clustering.len()];
        for restriction in clustering {
            if matches!(restriction.test, ClusteringTest::Eq(_)) {
                equal[restriction.first..restriction.first + restriction.width].fill(true);
            }
        }
        equal
    }

    /// Every column of the partition key is restricted by `=` or IN. Not so if a virtual table is
    /// restricted by token(), because the token is the key itself there.
    fn are_keys_given(&self) -> bool {
        self.keys.iter().all(is_plain) && !(self.token.is_some() && self.table.is_virtual())
    }

    fn finish_keys(&mut self, on_token: bool, filters: &mut Vec<Filter>) -> Result<PartitionRestriction, CqlError> {
        let (table, index_class) = (self.table, self.index_use.index_class);
        let keys = std::mem::take(&mut self.keys);
        let missing: Vec<_> = keys
            .iter()
            .zip(&table.partition_key)
            .filter(|(key, _)| key.is_none())
            .map(|(_, c)| c.name.as_str())
            .collect();
        if self.kind != StatementKind::Select {
            if self.token.is_some() {
                return invalid(format!(
                    "The token function cannot be used in WHERE clauses for {} statements",
                    self.kind.name()
                ));
            }
            if !missing.is_empty() {
                return invalid(format!("Some partition key parts are missing: {}", missing.join(", ")));
            }
            if !keys.iter().all(is_plain) {
                return invalid(format!(
                    "Only EQ and IN relation are supported on the partition key (unless you use the token() function) for {} statements",
                    self.kind.name()
                ));
            }
        }
        if keys.iter().all(is_plain) && !on_token {
            let tests = keys.into_iter().flatten().filter_map(|key| match key {
                KeyPart::Eq(term) => Some(KeyTest::Eq(term)),
                KeyPart::In(terms) => Some(KeyTest::In(terms)),
                KeyPart::Slice { .. } | KeyPart::Contains(_) => None,
            });
            return Ok(PartitionRestriction::Keys(tests.collect()));
        }
        let restricted = keys.iter().any(Option::is_some);
        if restricted && !self.filters_freely() {
            return invalid(REQUIRES_ALLOW_FILTERING.into());
        }
        for (key, column) in keys.into_iter().zip(&table.partition_key) {
            let tests = match key {
                None => continue,
                Some(KeyPart::Eq(term)) => vec![FilterTest::Compare(Operator::Eq, term)],
                Some(KeyPart::In(terms)) => vec![FilterTest::In(terms)],
                Some(KeyPart::Slice { bounds, except }) => {
                    let bounds = bounds.into_iter().map(|(operator, term)| FilterTest::Compare(operator, term));
                    bounds.chain(except.into_iter().map(FilterTest::NotIn)).collect()
                }
                Some(KeyPart::Contains(tests)) => tests,
            };
            filters.extend(tests.into_iter().map(|test| filter_of(table, column, test, index_class)));
        }
        Ok(match self.token.take() {
            None => PartitionRestriction::All,
            Some(range) => PartitionRestriction::Token(range),
        })
    }

    /// Conditions that slices apply and Cassandra also has among those that rows are filtered by:
    /// where clustering columns are filtered, those that an index answers, and those behind them.
    fn also_filtered(&self) -> Result<Vec<Filter>, CqlError> {
        let mut found = Vec::new();
        if !self.index_use.filters_clustering {
            return Ok(found);
        }
        let mut position = 0;
        for restriction in &self.clustering {
            let is_filtered = restriction.first != position || indexes::can_answer(self.table, restriction);
            let has_terms = !matches!(restriction.test, ClusteringTest::Eq(RowTerm::Tuple(_)));
            if !is_filtered {
                let is_slice = matches!(restriction.test, ClusteringTest::Slice { .. });
                position = if is_slice { position } else { restriction.first + restriction.width };
            } else if has_terms && filter_refusal(restriction).is_none() {
                clustering_filters(self.table, restriction.clone(), self.index_use.index_class, &mut found)?;
            }
        }
        Ok(found)
    }

    fn finish_clustering(
        &mut self,
        only_static: bool,
        filters: &mut Vec<Filter>,
    ) -> Result<Vec<ClusteringRestriction>, CqlError> {
        let (table, index_class) = (self.table, self.index_use.index_class);
        let all = std::mem::take(&mut self.clustering);
        if matches!(self.kind, StatementKind::Insert | StatementKind::Update) {
            if all.iter().any(|restriction| matches!(restriction.test, ClusteringTest::Slice { .. })) {
                return invalid(format!(
                    "Slice restrictions are not supported on the clustering columns in {} statements",
                    self.kind.name()
                ));
            }
            let restricted = |position: usize| all.iter().any(|r| (r.first..r.first + r.width).contains(&position));
            let missing: Vec<_> =
                table.clustering.iter().filter(|c| !restricted(c.position)).map(|c| c.name.as_str()).collect();
            // in a compact table the last components of a clustering may be missing
            let may_miss = only_static || (table.is_compact() && !all.is_empty());
            if !may_miss && !missing.is_empty() {
                return invalid(format!("Some clustering keys are missing: {}", missing.join(", ")));
            }
        }
        if self.clustering_contains.iter().any(|(_, test)| !is_like(test)) && !self.allow_filtering {
            return invalid(
                "Clustering columns can only be restricted with CONTAINS with a secondary index or filtering".into(),
            );
        }
        let mut leading = Vec::new();
        let mut position = 0;
        let mut sliced = false;
        for restriction in all {
            if restriction.first == position && !sliced {
                sliced = matches!(restriction.test, ClusteringTest::Slice { .. });
                position += restriction.width;
                leading.push(restriction);
                continue;
            }
            if !self.allow_filtering && !self.index_use.has_index {
                return invalid(format!(
                    "PRIMARY KEY column \"{}\" cannot be restricted as preceding column \"{}\" is not restricted",
                    table.clustering[restriction.first].name, table.clustering[position].name
                ));
            }
            match filter_refusal(&restriction) {
                Some(why) => self.filtered_tuples = self.filtered_tuples.or(Some(why)),
                None => clustering_filters(table, restriction, index_class, filters)?,
            }
        }
        for (position, test) in std::mem::take(&mut self.clustering_contains) {
            filters.push(filter_of(table, &table.clustering[position], test, index_class));
        }
        Ok(leading)
    }

    /// Refuses restrictions behind a range, which only filtering or an index could apply. The
    /// message names the column of the later relation.
    fn check_neighbours(&self, added: &ClusteringRestriction) -> Result<(), CqlError> {
        let Some(last) = self.clustering.last().filter(|_| !self.allow_filtering) else { return Ok(()) };
        if self.kind == StatementKind::Select && indexes::can_answer(self.table, added) {
            return Ok(());
        }
        let (first, test) = (added.first, &added.test);
        let name = |position: usize| &self.table.clustering[position].name;
        if matches!(last.test, ClusteringTest::Slice { .. }) && first > last.first {
            return invalid(format!(
                "Clustering column \"{}\" cannot be restricted (preceding column \"{}\" is restricted by a non-EQ relation)",
                name(first),
                name(last.first)
            ));
        }
        if matches!(test, ClusteringTest::Slice { .. })
            && first < last.first
            && let Some(next) = self.clustering.iter().find(|other| other.first > first)
        {
            return invalid(format!(
                "PRIMARY KEY column \"{}\" cannot be restricted (preceding column \"{}\" is restricted by a non-EQ relation)",
                name(next.first),
                name(first)
            ));
        }
        Ok(())
    }

    fn finish_others(&mut self, filters: &mut Vec<Filter>) -> Result<(), CqlError> {
        if self.others.is_empty() {
            return Ok(());
        }
        if self.kind != StatementKind::Select {
            let mut names: Vec<_> = self.others.iter().map(|(column, _)| column.name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            return invalid(format!("Non PRIMARY KEY columns found in where clause: {} ", names.join(", ")));
        }
        if !self.filters_freely() {
            return invalid(REQUIRES_ALLOW_FILTERING.into());
        }
        for (column, test) in std::mem::take(&mut self.others) {
            filters.push(filter_of(self.table, column, test, self.index_use.index_class));
        }
        Ok(())
    }
}

fn filter_of(table: &TableMetadata, column: &ColumnMetadata, test: FilterTest, index_class: IndexClass) -> Filter {
    // a storage-attached index answers no ranges and no IN of text, which then compare the text as
    // it is stored
    let operator = match &test {
        FilterTest::Compare(Operator::Eq, _) => Some(IndexOperator::Eq),
        FilterTest::Contains(_) => Some(IndexOperator::Contains),
        FilterTest::ContainsKey(_) => Some(IndexOperator::ContainsKey),
        FilterTest::Like(_) => Some(IndexOperator::Like),
        FilterTest::Compare(..) | FilterTest::In(_) | FilterTest::NotIn(_) | FilterTest::Entry(..) => None,
    };
    let form = operator.and_then(|operator| text_form(table, column, operator, index_class)).unwrap_or(TextForm::PLAIN);
    let compared = match &test {
        FilterTest::Compare(Operator::Eq, _) => Some(IndexOperator::Eq),
        FilterTest::Compare(Operator::Lt | Operator::Lte | Operator::Gt | Operator::Gte, _) => {
            Some(IndexOperator::Range)
        }
        _ => None,
    };
    let excludes_empty = compared.is_some_and(|operator| excludes_empty(table, column, operator));
    Filter { name: column.name.clone(), column: Column::of(column), test, form, excludes_empty }
}

/// Why a restriction cannot be a filter; None: it can.
fn filter_refusal(restriction: &ClusteringRestriction) -> Option<&'static str> {
    match &restriction.test {
        // of no values at all there is nothing to filter by: no row meets it
        ClusteringTest::In(RowTerms::List(rows)) if restriction.multi && rows.is_empty() => None,
        // `(c) IN ((1), (2))` is `c IN (1, 2)`, but for bound tuples, which are no values of c
        ClusteringTest::In(RowTerms::List(rows))
            if restriction.multi && restriction.width == 1 && rows.iter().all(is_of_values) =>
        {
            None
        }
        ClusteringTest::In(_) if restriction.multi => Some(FILTERED_INS),
        ClusteringTest::Slice { .. } if restriction.multi => Some(FILTERED_TUPLES),
        _ => None,
    }
}

/// Whether a row has a term for each column.
fn is_of_values(row: &RowTerm) -> bool {
    matches!(row, RowTerm::Columns(_))
}

fn clustering_filters(
    table: &TableMetadata,
    restriction: ClusteringRestriction,
    index_class: IndexClass,
    filters: &mut Vec<Filter>,
) -> Result<(), CqlError> {
    let column = |at: usize| &table.clustering[restriction.first + at];
    match restriction.test {
        ClusteringTest::Eq(RowTerm::Columns(terms)) => {
            for (at, term) in terms.into_iter().enumerate() {
                filters.push(filter_of(table, column(at), FilterTest::Compare(Operator::Eq, term), index_class));
            }
        }
        ClusteringTest::Eq(RowTerm::Tuple(_)) => return Err(CqlError::unsupported("Filtering by a bound tuple is")),
        ClusteringTest::In(rows) => filters.push(filter_of(table, column(0), in_test(values_of(rows)), index_class)),
        ClusteringTest::Slice { lower, upper, except, .. } => {
            let ends = [(lower, Operator::Gt, Operator::Gte), (upper, Operator::Lt, Operator::Lte)];
            for (end, open, closed) in ends {
                if let Some((RowTerm::Columns(mut terms), inclusive)) = end
                    && let Some(term) = terms.pop()
                {
                    let operator = if inclusive { closed } else { open };
                    filters.push(filter_of(table, column(0), FilterTest::Compare(operator, term), index_class));
                }
            }
            for one in except {
                if let ClusteringTest::In(rows) = one.test {
                    filters.push(filter_of(table, column(0), FilterTest::NotIn(values_of(rows)), index_class));
                }
            }
        }
    }
    Ok(())
}

/// An IN that filters: of one value it is an equality.
fn in_test(terms: InTerms) -> FilterTest {
    match terms {
        InTerms::List(mut terms) if terms.len() == 1 => {
            FilterTest::Compare(Operator::Eq, terms.pop().expect("there is one"))
        }
        terms => FilterTest::In(terms),
    }
}

/// The values of one column as rows of one column.
fn rows_of(terms: InTerms) -> RowTerms {
    match terms {
        InTerms::List(terms) => RowTerms::List(terms.into_iter().map(|term| RowTerm::Columns(vec![term])).collect()),
        InTerms::Bind(term) => RowTerms::Bind(term),
    }
}

/// Rows of one column as its values.
fn values_of(rows: RowTerms) -> InTerms {
    match rows {
        RowTerms::Bind(term) => InTerms::Bind(term),
        RowTerms::List(rows) => {
            let terms = rows.into_iter().filter_map(|row| match row {
                RowTerm::Columns(mut terms) => terms.pop(),
                RowTerm::Tuple(_) => None,
            });
            InTerms::List(terms.collect())
        }
    }
}

/// NOT IN on clustering columns.
fn not_in_test(first: usize, width: usize, rows: RowTerms, multi: bool) -> ClusteringTest {
    let left_out = ClusteringRestriction { first, width, test: ClusteringTest::In(rows), multi };
    ClusteringTest::Slice { lower: None, upper: None, except: vec![left_out], between: false }
}

fn clustering_test(operator: Operator, row: RowTerm) -> ClusteringTest {
    let slice = |lower, upper| ClusteringTest::Slice { lower, upper, except: Vec::new(), between: false };
    match operator {
        Operator::Gt => slice(Some((row, false)), None),
        Operator::Gte => slice(Some((row, true)), None),
        Operator::Lt => slice(None, Some((row, false))),
        Operator::Lte => slice(None, Some((row, true))),
        _ => ClusteringTest::Eq(row),
    }
}

fn refuse_bounds_apart<T>(name: &str) -> Result<T, CqlError> {
    invalid(format!("Column \"{name}\" cannot be restricted by two inequalities not starting with the same column"))
}

fn refuse_second_relation<T>(name: &str, which: &str) -> Result<T, CqlError> {
    invalid(format!("{name} cannot be restricted by more than one relation if it includes {which}"))
}

fn refuse_equality_and_inequality<T>(name: &str) -> Result<T, CqlError> {
    invalid(format!("Column \"{name}\" cannot be restricted by both an equality and an inequality relation"))
}

fn refuse_other_than_contains<T>(name: &str) -> Result<T, CqlError> {
    invalid(format!("Collection column {name} can only be restricted by CONTAINS, CONTAINS KEY, or map-entry equality"))
}

fn check_bounds(name: &str, mut old: impl Iterator<Item = Operator>, new: Operator) -> Result<(), CqlError> {
    let is_lower = |operator: Operator| matches!(operator, Operator::Gt | Operator::Gte);
    if old.any(|old| is_lower(old) == is_lower(new)) {
        let end = if is_lower(new) { "start" } else { "end" };
        return invalid(format!("More than one restriction was found for the {end} bound on {name}"));
    }
    Ok(())
}
