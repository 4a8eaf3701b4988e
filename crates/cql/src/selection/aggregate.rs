//! Aggregate functions: count, min, max, sum, avg.
//!
//! Agrees with `org.apache.cassandra.cql3.functions.AggregateFcts`.

use std::sync::Arc;

use bytes::Bytes;
use types::CqlType;
use types::number::Total;

use super::{RowView, Selector};
use crate::error::CqlError;
use crate::functions::{self, AggregateKind, UserAggregate, Values};

/// An aggregate of a select clause.
#[derive(Clone, Debug)]
pub(crate) struct Aggregate {
    /// The function.
    pub kind: AggregateKind,
    /// The argument; None: rows are counted.
    pub argument: Option<Selector>,
    /// The type of the argument. It is the type of the value too, except for counts.
    pub ty: CqlType,
    /// A user-defined aggregate with its arguments; None: a native one.
    pub user: Option<(Arc<UserAggregate>, Vec<Selector>)>,
}

/// The state of an aggregate over the rows of a group so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct AggregateState {
    count: i64,
    extreme: Option<Bytes>,
    total: Option<Total>,
    /// The state of a user-defined aggregate; None before the first row.
    user: Option<Option<Bytes>>,
}

impl Aggregate {
    /// Adds a row to the state.
    pub fn add(&self, state: &mut AggregateState, row: &RowView<'_>) -> Result<(), CqlError> {
        if let Some((user, arguments)) = &self.user {
            let mut values = Values::new();
            for argument in arguments {
                values.push(argument.value(row)?);
            }
            let before = state.user.take().unwrap_or_else(|| user.initial());
            state.user = Some(user.add(before.as_ref(), &values)?);
            return Ok(());
        }
        let Some(argument) = &self.argument else {
            state.count += 1;
            return Ok(());
        };
        let Some(value) = argument.value(row)? else { return Ok(()) };
        match self.kind {
            AggregateKind::User => {}
            AggregateKind::CountRows | AggregateKind::Count => state.count += 1,
            AggregateKind::Min | AggregateKind::Max => {
                let wins = state.extreme.as_ref().is_none_or(|old| functions::wins(self.kind, &self.ty, &value, old));
                if wins {
                    state.extreme = Some(value);
                }
            }
            AggregateKind::Sum | AggregateKind::Avg => {
                let total = match &mut state.total {
                    Some(total) => total,
                    none => none.insert(self.total()?),
                };
                total.add(&value)?;
            }
        }
        Ok(())
    }

    /// The value for the group.
    pub fn finish(&self, state: &AggregateState) -> Result<Option<Bytes>, CqlError> {
        match self.kind {
            AggregateKind::User => match (&self.user, &state.user) {
                (Some((user, _)), Some(state)) => user.finish(state.as_ref()),
                (Some((user, _)), None) => user.finish(user.initial().as_ref()),
                (None, _) => Ok(None),
            },
            AggregateKind::CountRows | AggregateKind::Count => {
                Ok(Some(Bytes::copy_from_slice(&state.count.to_be_bytes())))
            }
            AggregateKind::Min | AggregateKind::Max => Ok(state.extreme.clone()),
            AggregateKind::Sum | AggregateKind::Avg => {
                let value = match &state.total {
                    Some(total) => total.finish()?,
                    None => self.total()?.finish()?,
                };
                Ok(Some(value.into()))
            }
        }
    }

    /// The sum or average of no values.
    fn total(&self) -> Result<Total, CqlError> {
        let total = match self.kind {
            AggregateKind::Avg => Total::average(&self.ty),
            _ => Total::sum(&self.ty),
        };
        total.ok_or_else(|| CqlError::invalid(format!("{} has no sum", self.ty.cql_name())))
    }
}
