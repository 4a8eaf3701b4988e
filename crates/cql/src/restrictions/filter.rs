//! Filters: conditions that are checked on each row after it was read (ALLOW FILTERING).
//!
//! Agrees with `org.apache.cassandra.db.filter.RowFilter` and `cql3.Operator.isSatisfiedBy`.

use std::cmp::Ordering;

use bytes::Bytes;
use rows::Expression;
use rows::filter::Operator as Number;
use schema::TableMetadata;
use schema::index::attached::TextForm;
use schema::index::sasi::LikeKind;
use types::CqlType;

use super::{InTerms, in_values};
use crate::ast::Operator;
use crate::context::Bindings;
use crate::error::CqlError;
use crate::selection::{Column, RowView};
use crate::terms::Term;
use crate::values;
use crate::values::BoundValue;

/// The longest value that a message between nodes has room for in a condition, in bytes.
const VALUE_SIZE_MAX: usize = u16::MAX as usize;

/// A condition on one column.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    /// The column's name.
    pub name: String,
    /// The place of its value in a row.
    pub column: Column,
    /// The comparison.
    pub test: FilterTest,
    /// The form in which text is compared: that of a storage-attached index on the column.
    pub form: TextForm,
    /// No row meets the filter by an empty value: a storage-attached index answers it, which has no
    /// entries of such values.
    pub excludes_empty: bool,
}

/// The comparison of a filter.
#[derive(Clone, Debug)]
pub(crate) enum FilterTest {
    /// `=`, `<`, …
    Compare(Operator, Term),
    /// IN
    In(InTerms),
    /// NOT IN
    NotIn(InTerms),
    /// CONTAINS
    Contains(Term),
    /// CONTAINS KEY
    ContainsKey(Term),
    /// `m[k] = v`
    Entry(Term, Term),
    /// LIKE
    Like(Term),
}

/// A filter with its terms evaluated.
#[derive(Clone, Debug)]
pub(crate) struct BoundFilter {
    column: Column,
    test: BoundTest,
    form: TextForm,
    excludes_empty: bool,
}

#[derive(Clone, Debug)]
enum BoundTest {
    Compare(Operator, Bytes),
    /// The values in the order of the column's type: a row is not compared with each of many.
    In(Vec<Bytes>),
    /// The values in the order of the column's type, as for IN.
    NotIn(Vec<Bytes>),
    Contains(Bytes),
    ContainsKey(Bytes),
    Entry(Bytes, Bytes),
    Like(LikeKind, Bytes),
}

impl Filter {
    /// The condition is a NOT IN.
    pub fn is_not_in(&self) -> bool {
        matches!(self.test, FilterTest::NotIn(_))
    }

    /// The condition is `=`.
    pub fn is_equality(&self) -> bool {
        matches!(self.test, FilterTest::Compare(Operator::Eq, _))
    }

    /// The column is in the key of the table.
    pub fn is_of_key(&self) -> bool {
        matches!(self.column, Column::PartitionKey { .. } | Column::Clustering { .. })
    }

    /// A copy with its terms evaluated.
    pub fn bind(&self, bindings: &Bindings<'_>) -> Result<BoundFilter, CqlError> {
        let value = |term: &Term| match term.eval(bindings)? {
            BoundValue::Bytes(bytes) => Ok(bytes),
            BoundValue::Null => Err(CqlError::invalid(format!("Unsupported null value for column {}", self.name))),
            BoundValue::Unset => Err(CqlError::invalid(format!("Unsupported unset value for column {}", self.name))),
        };
        let entry = |term: &Term, part: &str| match term.eval(bindings)? {
            BoundValue::Bytes(bytes) => Ok(bytes),
            BoundValue::Null => Err(CqlError::invalid(format!("Unsupported null map {part} for column {}", self.name))),
            BoundValue::Unset => {
                Err(CqlError::invalid(format!("Unsupported unset map {part} for column {}", self.name)))
            }
        };
        let sorted = |mut values: Vec<Bytes>| {
            values.sort_by(|a, b| types::compare(self.column.ty(), a, b));
            values
        };
        let test = match &self.test {
            FilterTest::Compare(operator, term) => BoundTest::Compare(*operator, value(term)?),
            FilterTest::In(terms) => BoundTest::In(sorted(filter_values(terms, &self.name, bindings)?)),
            // a row could not be told to differ from null
            FilterTest::NotIn(terms) => BoundTest::NotIn(sorted(in_values(terms, &self.name, bindings)?)),
            FilterTest::Contains(term) => BoundTest::Contains(value(term)?),
            FilterTest::ContainsKey(term) => BoundTest::ContainsKey(value(term)?),
            FilterTest::Like(term) => {
                let (kind, text) = like_pattern(term, &self.name, bindings)?;
                BoundTest::Like(kind, text)
            }
            FilterTest::Entry(key, term) => BoundTest::Entry(entry(key, "key")?, entry(term, "value")?),
        };
        Ok(BoundFilter { column: self.column.clone(), test, form: self.form, excludes_empty: self.excludes_empty })
    }
}

/// Evaluates the values of an IN. Null and unset terms are left out, because they equal nothing; a
/// null in a bound list is refused.
fn filter_values(terms: &InTerms, name: &str, bindings: &Bindings<'_>) -> Result<Vec<Bytes>, CqlError> {
    let InTerms::List(terms) = terms else { return in_values(terms, name, bindings) };
    let mut values = Vec::with_capacity(terms.len());
    for term in terms {
        match term.eval(bindings)? {
            BoundValue::Bytes(value) => values.push(value),
            BoundValue::Null | BoundValue::Unset => {}
        }
    }
    Ok(values)
}

impl BoundFilter {
    /// The column has the same value for all rows of a partition.
    pub fn is_of_partition(&self) -> bool {
        matches!(self.column, Column::PartitionKey { .. } | Column::Static { .. })
    }

    /// The filter with text compared as it is, whatever an index on the column says: in the WHERE
    /// of a view.
    pub fn plain(self) -> Self {
        Self { form: TextForm::PLAIN, ..self }
    }

    /// The column is in the key of the table.
    pub fn is_of_key(&self) -> bool {
        matches!(self.column, Column::PartitionKey { .. } | Column::Clustering { .. })
    }

    /// Whether an empty value compares as the filter says, and no row is to meet the filter by it.
    pub fn excludes_empty(&self) -> bool {
        match &self.test {
            BoundTest::Compare(operator, value) => {
                self.excludes_empty && is_met(*operator, types::compare(self.column.ty(), &[], value))
            }
            _ => false,
        }
    }

    /// The filter as other nodes are told of it. None: a message has no form for it.
    pub fn expression(&self, table: &TableMetadata) -> Option<Expression> {
        let column = match &self.column {
            Column::PartitionKey { position, .. } => table.partition_key.get(*position)?.id,
            Column::Clustering { position, .. } => table.clustering.get(*position)?.id,
            Column::Static { id, .. } | Column::Regular { id, .. } => *id,
        };
        let simple = |operator, value: &Bytes| Expression::Simple { column, operator, value: value.clone() };
        let expression = match &self.test {
            BoundTest::Compare(operator, value) => simple(comparison_number(*operator)?, value),
            BoundTest::In(values) => simple(Number::In, &types::collection::build_list(values).into()),
            // no operator of Cassandra 5.0 says it: the coordinator checks the rows
            BoundTest::NotIn(_) => return None,
            BoundTest::Contains(value) => simple(Number::Contains, value),
            BoundTest::ContainsKey(key) => simple(Number::ContainsKey, key),
            BoundTest::Like(kind, text) => simple(like_number(*kind), text),
            BoundTest::Entry(key, value) => Expression::MapEquality { column, key: key.clone(), value: value.clone() },
        };
        let is_short = |value: &Bytes| value.len() <= VALUE_SIZE_MAX;
        let fits = match &expression {
            Expression::Simple { value, .. } | Expression::Custom { value, .. } => is_short(value),
            Expression::MapEquality { key, value, .. } => is_short(key) && is_short(value),
        };
        fits.then_some(expression)
    }

    /// Whether the filter holds for a row. It does not for a row without a value in the column.
    pub fn holds(&self, row: &RowView<'_>) -> bool {
        let Some(found) = row.value(&self.column) else { return false };
        if self.excludes_empty && found.is_empty() {
            return false;
        }
        let ty = self.column.ty();
        if !self.form.is_plain() {
            return self.holds_folded(&found);
        }
        let is_in = |values: &[Bytes]| values.binary_search_by(|value| types::compare(ty, value, &found)).is_ok();
        match &self.test {
            BoundTest::Compare(operator, value) => is_met(*operator, types::compare(ty, &found, value)),
            BoundTest::In(values) => is_in(values),
            BoundTest::NotIn(values) => !is_in(values),
            BoundTest::Contains(value) => contains(ty, &found, value),
            BoundTest::ContainsKey(key) => contains_key(ty, &found, key),
            BoundTest::Like(kind, text) => kind.holds(&found, text),
            BoundTest::Entry(key, value) => match ty {
                CqlType::Map { key: key_type, value: value_type, .. } => {
                    values::split_map(&found).is_ok_and(|entries| {
                        entries.iter().any(|(k, v)| {
                            types::compare(key_type, k, key).is_eq() && types::compare(value_type, v, value).is_eq()
                        })
                    })
                }
                _ => false,
            },
        }
    }
}

impl BoundFilter {
    /// As `holds`, for text that is compared in the form of an index. All of a value is put into
    /// that form: a collection of text by its elements, whose lengths may change.
    fn holds_folded(&self, found: &Bytes) -> bool {
        let fold = |value: &Bytes| Bytes::from(self.form.apply(value).into_owned());
        let equals = |ty: &CqlType, found: &Bytes, value: &Bytes| match ty {
            CqlType::Text | CqlType::Ascii => fold(found) == fold(value),
            ty => types::compare(ty, found, value).is_eq(),
        };
        let entries = || values::split_map(found).unwrap_or_default();
        match (&self.test, self.column.ty()) {
            (BoundTest::Compare(operator, value), CqlType::Text | CqlType::Ascii) => {
                is_met(*operator, fold(found).cmp(&fold(value)))
            }
            (BoundTest::In(values), ty) => values.iter().any(|value| equals(ty, found, value)),
            (BoundTest::Like(kind, text), _) => kind.holds(&fold(found), &fold(text)),
            (BoundTest::NotIn(values), ty) => !values.iter().any(|value| equals(ty, found, value)),
            (BoundTest::Contains(value), CqlType::List { element, .. } | CqlType::Set { element, .. }) => {
                let elements = values::split_list(found).unwrap_or_default();
                elements.iter().any(|found| equals(element, found, value))
            }
            (BoundTest::Contains(value), CqlType::Map { value: ty, .. }) => {
                entries().iter().any(|(_, found)| equals(ty, found, value))
            }
            (BoundTest::ContainsKey(key), CqlType::Map { key: ty, .. }) => {
                entries().iter().any(|(found, _)| equals(ty, found, key))
            }
            (BoundTest::Entry(key, value), CqlType::Map { key: key_type, value: value_type, .. }) => {
                entries().iter().any(|(k, v)| equals(key_type, k, key) && equals(value_type, v, value))
            }
            (BoundTest::Compare(Operator::Eq, value), ty) => equals(ty, found, value),
            _ => false,
        }
    }
}

/// Whether a value that compares so with a given one meets a comparison.
fn is_met(operator: Operator, order: Ordering) -> bool {
    match operator {
        Operator::Eq => order.is_eq(),
        Operator::Lt => order.is_lt(),
        Operator::Lte => order.is_le(),
        Operator::Gt => order.is_gt(),
        Operator::Gte => order.is_ge(),
        Operator::Neq => order.is_ne(),
        Operator::Like | Operator::Contains | Operator::ContainsKey => false,
    }
}

/// The kind of a LIKE and the text without its wildcards, which stand at the ends alone.
pub(super) fn like_pattern(term: &Term, name: &str, bindings: &Bindings<'_>) -> Result<(LikeKind, Bytes), CqlError> {
    let text = match term.eval(bindings)? {
        BoundValue::Bytes(bytes) => bytes,
        BoundValue::Null => return Err(CqlError::invalid(format!("Unsupported null value for column {name}"))),
        BoundValue::Unset => Bytes::new(),
    };
    let (starts, ends) = (text.first() == Some(&b'%'), text.last() == Some(&b'%'));
    let from = usize::from(starts);
    let to = text.len().saturating_sub(usize::from(ends)).max(from);
    let kind = match (starts, ends) {
        (true, true) => LikeKind::Contains,
        (false, true) => LikeKind::Prefix,
        (true, false) => LikeKind::Suffix,
        (false, false) => LikeKind::Matches,
    };
    if from == to {
        return Err(CqlError::invalid("LIKE value can't be empty."));
    }
    Ok((kind, text.slice(from..to)))
}

/// A LIKE in messages between nodes.
fn like_number(kind: LikeKind) -> Number {
    match kind {
        LikeKind::Prefix => Number::LikePrefix,
        LikeKind::Suffix => Number::LikeSuffix,
        LikeKind::Contains => Number::LikeContains,
        LikeKind::Matches => Number::LikeMatches,
    }
}

/// A comparison in messages between nodes.
fn comparison_number(operator: Operator) -> Option<Number> {
    Some(match operator {
        Operator::Eq => Number::Eq,
        Operator::Lt => Number::Lt,
        Operator::Lte => Number::Lte,
        Operator::Gt => Number::Gt,
        Operator::Gte => Number::Gte,
        Operator::Neq => Number::Neq,
        Operator::Like | Operator::Contains | Operator::ContainsKey => return None,
    })
}

/// Whether a map has the key.
pub(crate) fn contains_key(ty: &CqlType, found: &Bytes, key: &Bytes) -> bool {
    match ty {
        CqlType::Map { key: key_type, .. } => values::split_map(found)
            .is_ok_and(|entries| entries.iter().any(|(k, _)| types::compare(key_type, k, key).is_eq())),
        _ => false,
    }
}

/// Whether a collection has the value, as an element or as the value of an entry.
pub(crate) fn contains(ty: &CqlType, found: &Bytes, value: &Bytes) -> bool {
    match ty {
        CqlType::List { element, .. } | CqlType::Set { element, .. } => values::split_list(found)
            .is_ok_and(|elements| elements.iter().any(|found| types::compare(element, found, value).is_eq())),
        CqlType::Map { value: value_type, .. } => values::split_map(found)
            .is_ok_and(|entries| entries.iter().any(|(_, found)| types::compare(value_type, found, value).is_eq())),
        _ => false,
    }
}
