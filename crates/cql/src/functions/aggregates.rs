//! The signatures of the aggregates count, min, max, sum and avg; [`crate::selection`] computes
//! them.
//!
//! Agrees with `org.apache.cassandra.cql3.functions.AggregateFcts`.

use types::CqlType;

use super::factory::{Factory, Parameter};
use super::operations::NUMBERS;
use super::registry::FunctionRegistry;
use super::{Body, Function, NameStyle};

/// The kind of an aggregate.
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
    /// A user-defined aggregate.
    User,
}

/// Declares them.
pub(super) fn declare(registry: &mut FunctionRegistry) {
    let rows = Function::new("count_rows", &[], CqlType::BigInt, Body::Aggregate(AggregateKind::CountRows));
    registry.add_with_old_name(rows.name_style(NameStyle::Count), "countRows");
    for (name, kind) in [("sum", AggregateKind::Sum), ("avg", AggregateKind::Avg)] {
        for ty in &NUMBERS {
            registry.add(Function::new(name, std::slice::from_ref(ty), ty.clone(), Body::Aggregate(kind)));
        }
    }
    let count = Body::Aggregate(AggregateKind::Count);
    registry.add(Function::new("count", &[CqlType::Blob], CqlType::BigInt, count));
    for name in ["max", "min"] {
        let parameters = &[Parameter::Any { from_receiver: true }];
        registry.add_factory(Factory::new(name, parameters, |factory, types, _| {
            let kind = if factory.name == "max" { AggregateKind::Max } else { AggregateKind::Min };
            let Some(ty) = types.first() else { return Err(factory.wrong_number_of_arguments()) };
            Ok(Function::new(factory.name, types, ty.clone(), Body::Aggregate(kind)))
        }));
    }
}

/// Whether a value replaces the minimum or maximum so far. Counters are compared as values of 8
/// bytes.
pub(crate) fn wins(kind: AggregateKind, ty: &CqlType, value: &[u8], old: &[u8]) -> bool {
    let ty = if *ty == CqlType::Counter { &CqlType::BigInt } else { ty };
    let order = types::compare(ty, value, old);
    if kind == AggregateKind::Min { order.is_lt() } else { order.is_gt() }
}
