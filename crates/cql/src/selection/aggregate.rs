//! Aggregate functions: count, min, max, sum, avg.
//!
//! Agrees with `org.apache.cassandra.cql3.functions.AggregateFcts`.

use bigdecimal::{BigDecimal, Zero};
use bytes::Bytes;
use num_bigint::BigInt;
use types::CqlType;

use super::{RowView, Selector};
use crate::error::CqlError;
use crate::scalar::{self, Number};

/// Which aggregate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AggregateKind {
    /// `count(*)`
    CountRows,
    /// `count(x)`
    Count,
    /// `min(x)`
    Min,
    /// `max(x)`
    Max,
    /// `sum(x)`
    Sum,
    /// `avg(x)`
    Avg,
}

/// An aggregate of a select clause.
#[derive(Clone, Debug)]
pub(crate) struct Aggregate {
    /// Which.
    pub kind: AggregateKind,
    /// Of what; None: of rows.
    pub argument: Option<Selector>,
    /// Type of the argument, which is that of the value but for counts.
    pub ty: CqlType,
}

/// What an aggregate has seen of a group.
#[derive(Clone, Debug, Default)]
pub(crate) struct AggregateState {
    count: i64,
    extreme: Option<Bytes>,
    sum: Option<Number>,
}

impl Aggregate {
    /// Takes a row in.
    pub fn add(&self, state: &mut AggregateState, row: &RowView<'_>) -> Result<(), CqlError> {
        let Some(argument) = &self.argument else {
            state.count += 1;
            return Ok(());
        };
        let Some(value) = argument.value(row)? else { return Ok(()) };
        match self.kind {
            AggregateKind::CountRows | AggregateKind::Count => state.count += 1,
            AggregateKind::Min | AggregateKind::Max => {
                let wins = state.extreme.as_ref().is_none_or(|old| {
                    let order = types::compare(&self.ty, &value, old);
                    if self.kind == AggregateKind::Min { order.is_lt() } else { order.is_gt() }
                });
                if wins {
                    state.extreme = Some(value);
                }
            }
            AggregateKind::Sum | AggregateKind::Avg => {
                if value.is_empty() {
                    return Ok(());
                }
                let number = Number::decode(&self.ty, &value)?;
                state.sum = Some(match state.sum.take() {
                    None => number,
                    Some(sum) => add(sum, number),
                });
                state.count += 1;
            }
        }
        Ok(())
    }

    /// The value of a group.
    pub fn finish(&self, state: &AggregateState) -> Result<Option<Bytes>, CqlError> {
        match self.kind {
            AggregateKind::CountRows | AggregateKind::Count => {
                Ok(Some(Bytes::copy_from_slice(&state.count.to_be_bytes())))
            }
            AggregateKind::Min | AggregateKind::Max => Ok(state.extreme.clone()),
            AggregateKind::Sum => Ok(Some(scalar::encode_number(&self.ty, self.sum_or_zero(state)))),
            AggregateKind::Avg if state.count == 0 => {
                Ok(Some(scalar::encode_number(&self.ty, self.sum_or_zero(state))))
            }
            AggregateKind::Avg => {
                let average = divide(self.sum_or_zero(state), state.count);
                Ok(Some(scalar::encode_number(&self.ty, average)))
            }
        }
    }

    fn sum_or_zero(&self, state: &AggregateState) -> Number {
        state.sum.clone().unwrap_or_else(|| match self.ty {
            CqlType::Float | CqlType::Double => Number::Float(0.0),
            CqlType::Decimal => Number::Decimal(BigDecimal::zero()),
            _ => Number::Int(BigInt::zero()),
        })
    }
}

fn add(a: Number, b: Number) -> Number {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => Number::Int(a + b),
        (Number::Decimal(a), Number::Decimal(b)) => Number::Decimal(a + b),
        (Number::Float(a), Number::Float(b)) => Number::Float(a + b),
        (a, _) => a,
    }
}

fn divide(sum: Number, count: i64) -> Number {
    match sum {
        Number::Int(sum) => Number::Int(sum / count),
        Number::Float(sum) => {
            #[allow(clippy::cast_precision_loss)] // as Java does
            let count = count as f64;
            Number::Float(sum / count)
        }
        Number::Decimal(sum) => {
            // as Java's divide with HALF_EVEN: at the scale of the sum
            let (_, scale) = sum.as_bigint_and_exponent();
            let quotient = sum / BigDecimal::from(count);
            Number::Decimal(quotient.with_scale_round(scale, bigdecimal::RoundingMode::HalfEven))
        }
    }
}
