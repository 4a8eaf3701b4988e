//! IF: the conditions of a statement, prepared, and with the values of a request.
//!
//! Agrees with `org.apache.cassandra.cql3.conditions`, messages included.

mod holds;
mod prepare;

use bytes::Bytes;
use schema::ColumnMetadata;

pub(crate) use prepare::prepare;

use crate::ast::Operator;
use crate::context::Bindings;
use crate::error::CqlError;
use crate::restrictions::InTerms;
use crate::terms::Term;
use crate::values;
use crate::values::BoundValue;

/// When a statement is carried out.
#[derive(Clone, Debug)]
pub(crate) enum Conditions {
    /// Always: it is no conditional statement.
    None,
    /// IF NOT EXISTS
    NotExists,
    /// IF EXISTS
    Exists,
    /// IF column …, in the order of the statement.
    Columns(Vec<ColumnCondition>),
}

/// A condition on a column or a part of it.
#[derive(Clone, Debug)]
pub(crate) struct ColumnCondition {
    /// The column.
    pub column: ColumnMetadata,
    /// What of it.
    pub part: Part,
    /// What must hold.
    pub test: Test,
}

/// What of a column is compared.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// All.
    Whole,
    /// `m[k]`, `l[i]`
    Element(Term),
    /// `u.f`, by position.
    Field(usize),
}

/// What must hold.
#[derive(Clone, Debug)]
pub(crate) enum Test {
    /// `= t`, `CONTAINS t` …
    Compare(Operator, Term),
    /// IN
    In(InTerms),
}

/// A condition with its values.
#[derive(Clone, Debug)]
pub(crate) struct BoundCondition {
    column: ColumnMetadata,
    part: BoundPart,
    operator: Operator,
    /// One of them must answer the operator.
    values: Vec<Option<Bytes>>,
}

#[derive(Clone, Debug)]
enum BoundPart {
    Whole,
    /// None: null.
    Element(Option<Bytes>),
    Field(usize),
}

impl Conditions {
    /// There are none.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    fn columns(&self) -> &[ColumnCondition] {
        match self {
            Self::Columns(conditions) => conditions,
            _ => &[],
        }
    }

    /// Conditions on static columns, or on the others.
    pub fn of(&self, is_static: bool) -> impl Iterator<Item = &ColumnCondition> {
        self.columns().iter().filter(move |condition| condition.column.is_static() == is_static)
    }

    /// Some column that is not static is looked at.
    pub fn applies_to_regular(&self) -> bool {
        self.of(false).next().is_some()
    }
}

impl ColumnCondition {
    /// With the values of a request.
    pub fn bind(&self, bindings: &Bindings<'_>) -> Result<BoundCondition, CqlError> {
        let unset = || CqlError::invalid("Invalid 'unset' value in condition");
        let part = match &self.part {
            Part::Whole => BoundPart::Whole,
            Part::Element(key) => BoundPart::Element(key.eval_option(bindings)?),
            Part::Field(field) => BoundPart::Field(*field),
        };
        let (operator, values) = match &self.test {
            Test::Compare(operator, term) => match term.eval(bindings)? {
                BoundValue::Bytes(value) => (*operator, vec![Some(value)]),
                BoundValue::Null => (*operator, vec![None]),
                BoundValue::Unset => return Err(unset()),
            },
            Test::In(InTerms::List(terms)) => {
                let mut values = Vec::with_capacity(terms.len());
                for term in terms {
                    match term.eval(bindings)? {
                        BoundValue::Bytes(value) => values.push(Some(value)),
                        BoundValue::Null => values.push(None),
                        BoundValue::Unset => {}
                    }
                }
                (Operator::Eq, values)
            }
            Test::In(InTerms::Bind(term)) => match term.eval(bindings)? {
                BoundValue::Bytes(list) => (Operator::Eq, values::split_list(&list)?.into_iter().map(Some).collect()),
                BoundValue::Null => return Err(CqlError::invalid("Invalid null list in IN condition")),
                BoundValue::Unset => return Err(unset()),
            },
        };
        Ok(BoundCondition { column: self.column.clone(), part, operator, values })
    }
}
