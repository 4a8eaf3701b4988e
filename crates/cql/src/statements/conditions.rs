//! IF: the prepared conditions of a statement, and binding them to the values of a request.
//!
//! Agrees with `org.apache.cassandra.cql3.conditions`, messages included.

mod holds;
mod prepare;

use bytes::Bytes;
use schema::ColumnMetadata;
use types::CqlType;

pub(crate) use prepare::prepare;

use crate::ast::Operator;
use crate::context::Bindings;
use crate::error::CqlError;
use crate::restrictions::InTerms;
use crate::terms::Term;
use crate::values;
use crate::values::BoundValue;

/// The condition under which a statement is applied.
#[derive(Clone, Debug)]
pub(crate) enum Conditions {
    /// No IF.
    None,
    /// IF NOT EXISTS
    NotExists,
    /// IF EXISTS
    Exists,
    /// IF with conditions on columns, in the order of the statement.
    Columns(Vec<ColumnCondition>),
}

/// A condition on a column or a part of it.
#[derive(Clone, Debug)]
pub(crate) struct ColumnCondition {
    /// The column.
    pub column: ColumnMetadata,
    /// The part of the column that is compared.
    pub part: Part,
    /// The comparison.
    pub test: Test,
}

/// The part of a column that is compared.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// The whole column.
    Whole,
    /// `m[k]`, `l[i]`
    Element(Term),
    /// `u.f`, by the position of the field.
    Field(usize),
}

/// A comparison.
#[derive(Clone, Debug)]
pub(crate) enum Test {
    /// `= t`, `CONTAINS t` …
    Compare(Operator, Term),
    /// IN
    In(InTerms),
    /// NOT IN
    NotIn(InTerms),
    /// BETWEEN
    Between(Term, Term),
}

/// A condition with its values.
#[derive(Clone, Debug)]
pub(crate) struct BoundCondition {
    column: ColumnMetadata,
    part: BoundPart,
    test: BoundTest,
}

/// A comparison with its values. None: null.
#[derive(Clone, Debug)]
enum BoundTest {
    /// The operator is true for one of the values.
    Any(Operator, Vec<Option<Bytes>>),
    /// The column equals none of the values.
    NoneOf(Vec<Option<Bytes>>),
    /// The column is at least the one and at most the other.
    Between(Option<Bytes>, Option<Bytes>),
}

#[derive(Clone, Debug)]
enum BoundPart {
    Whole,
    /// The value; None: null.
    Element(Option<Bytes>),
    Field(usize),
}

impl Conditions {
    /// The statement has no conditions.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    fn columns(&self) -> &[ColumnCondition] {
        match self {
            Self::Columns(conditions) => conditions,
            _ => &[],
        }
    }

    /// The conditions on static columns, or those on all others.
    pub fn of(&self, is_static: bool) -> impl Iterator<Item = &ColumnCondition> {
        self.columns().iter().filter(move |condition| condition.column.is_static() == is_static)
    }

    /// Some condition is on a column that is not static.
    pub fn applies_to_regular(&self) -> bool {
        self.of(false).next().is_some()
    }
}

impl ColumnCondition {
    /// A copy with its terms evaluated.
    pub fn bind(&self, bindings: &Bindings<'_>) -> Result<BoundCondition, CqlError> {
        let unset = || CqlError::invalid("Invalid 'unset' value in condition");
        let part = match &self.part {
            Part::Whole => BoundPart::Whole,
            Part::Element(key) => BoundPart::Element(match key.eval(bindings)? {
                BoundValue::Bytes(key) => Some(key),
                // as in Cassandra: a key that is not set is a key of no bytes
                BoundValue::Unset if matches!(self.column.ty, CqlType::Map { .. }) => Some(Bytes::new()),
                BoundValue::Null | BoundValue::Unset => None,
            }),
            Part::Field(field) => BoundPart::Field(*field),
        };
        let value = |term: &Term| match term.eval(bindings)? {
            BoundValue::Bytes(value) => Ok(Some(value)),
            BoundValue::Null => Ok(None),
            BoundValue::Unset => Err(unset()),
        };
        let values = |terms: &InTerms| match terms {
            InTerms::List(terms) => {
                let mut values = Vec::with_capacity(terms.len());
                for term in terms {
                    match term.eval(bindings)? {
                        BoundValue::Bytes(value) => values.push(Some(value)),
                        BoundValue::Null => values.push(None),
                        BoundValue::Unset => {}
                    }
                }
                Ok(values)
            }
            InTerms::Bind(term) => match term.eval(bindings)? {
                BoundValue::Bytes(list) => Ok(values::split_list(&list)?.into_iter().map(Some).collect()),
                BoundValue::Null => Err(CqlError::invalid("Invalid null list in IN condition")),
                BoundValue::Unset => Err(unset()),
            },
        };
        let test = match &self.test {
            Test::Compare(operator, term) => BoundTest::Any(*operator, vec![value(term)?]),
            Test::In(terms) => BoundTest::Any(Operator::Eq, values(terms)?),
            Test::NotIn(terms) => BoundTest::NoneOf(values(terms)?),
            Test::Between(low, high) => BoundTest::Between(value(low)?, value(high)?),
        };
        Ok(BoundCondition { column: self.column.clone(), part, test })
    }
}
