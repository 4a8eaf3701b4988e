//! Executing a prepared statement: the check of permissions, then what the kind of its plan asks
//! for.
//!
//! Agrees with `org.apache.cassandra.cql3.QueryProcessor.processStatement`.

mod authorize;
mod schema_and_roles;

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use schema::{TableKind, TableMetadata};
use types::BatchKind;

use crate::ast::Permission;
use crate::coordinator::Coordinator;
use crate::error::CqlError;
use crate::explain::{self, ExplainCoordinator};
use crate::functions::slow_calls;
use crate::options::{ClientState, QueryOptions};
use crate::prepare::{Plan, PreparedStatement};
use crate::result::{Answer, CqlResult};
use crate::statements::{batch, modification, select};
use crate::values::BoundValue;

/// Executes a prepared statement.
pub async fn execute<C: ExplainCoordinator>(
    prepared: &PreparedStatement,
    values: &[BoundValue],
    options: &QueryOptions,
    client: &ClientState,
    coordinator: &C,
) -> Result<Answer, CqlError> {
    prepared.check_count(values)?;
    authorize::check_statement(prepared, client, coordinator)?;
    if !prepared.functions.is_empty() {
        // boxed: by value the future of a statement that calls no function would be larger, too
        return Box::pin(with_slow_call_warnings(
            execute_plan(prepared, values, options, client, coordinator),
            coordinator,
        ))
        .await;
    }
    execute_plan(prepared, values, options, client, coordinator).await
}

/// Executes a request that calls user-defined functions; the warnings of calls that took long stand
/// beside the answer, or beside its error.
async fn with_slow_call_warnings<C: Coordinator>(
    request: impl Future<Output = Result<Answer, CqlError>>,
    coordinator: &C,
) -> Result<Answer, CqlError> {
    let (answer, calls) = slow_calls::collect_async(request).await;
    match answer {
        Ok(mut answer) => {
            answer.warnings.extend(calls);
            Ok(answer)
        }
        Err(error) => {
            coordinator.add_error_warnings(calls);
            Err(error)
        }
    }
}

async fn execute_plan<C: ExplainCoordinator>(
    prepared: &PreparedStatement,
    values: &[BoundValue],
    options: &QueryOptions,
    client: &ClientState,
    coordinator: &C,
) -> Result<Answer, CqlError> {
    match &prepared.plan {
        Plan::Modification(plan) => modification::execute(plan, values, options, coordinator).await,
        Plan::Select(plan) => {
            let unmasks = plan.masked.is_none() || client.has_table_permission(Permission::Unmask, &plan.table);
            select::execute(plan, values, options, unmasks, coordinator).await
        }
        Plan::Batch(plan) => batch::execute(plan, values, options, coordinator).await,
        Plan::Use(keyspace) => match coordinator.schema().keyspace(keyspace) {
            Some(_) => Ok(CqlResult::SetKeyspace(keyspace.clone()).into()),
            None => Err(CqlError::invalid(format!("Keyspace '{keyspace}' does not exist"))),
        },
        Plan::Truncate(table) => {
            if let Some(guardrails) = &options.guardrails {
                guardrails.schema.check_truncate()?;
            }
            truncate(table, coordinator).await?;
            Ok(CqlResult::Void.into())
        }
        // boxed: these are larger than reads and writes, whose future is copied for each request
        Plan::Explain(plan) => Box::pin(explain::execute(plan, values, options, coordinator)).await,
        Plan::Other => Box::pin(schema_and_roles::execute(prepared, options, client, coordinator)).await,
    }
}

async fn truncate<C: Coordinator>(table: &Arc<TableMetadata>, coordinator: &C) -> Result<(), CqlError> {
    match table.kind {
        TableKind::View => {
            Err(CqlError::invalid("Cannot TRUNCATE materialized view directly; must truncate base table instead"))
        }
        TableKind::Regular | TableKind::Index | TableKind::Virtual => coordinator.truncate(table).await,
    }
}

/// Executes the statements of a BATCH message.
pub async fn execute_batch<'s, C: Coordinator>(
    kind: BatchKind,
    statements: &[(&'s PreparedStatement, &'s [BoundValue])],
    options: &QueryOptions,
    client: &ClientState,
    coordinator: &C,
) -> Result<Answer, CqlError> {
    let plan =
        |(prepared, values): &(&'s PreparedStatement, &'s [BoundValue])| Ok((prepared.modification(values)?, *values));
    let plans = statements.iter().map(plan).collect::<Result<Vec<_>, CqlError>>()?;
    if let Some(access) = &client.access {
        for ((prepared, _), (plan, _)) in statements.iter().zip(&plans) {
            authorize::check_batch_statement(prepared, plan, access)?;
        }
    }
    let timestamp = modification::default_timestamp(options, coordinator);
    if statements.iter().any(|(prepared, _)| !prepared.functions.is_empty()) {
        let executed = batch::execute_all(kind, &plans, timestamp, options, coordinator);
        return Box::pin(with_slow_call_warnings(executed, coordinator)).await;
    }
    batch::execute_all(kind, &plans, timestamp, options, coordinator).await
}

/// Names that are looked through for each bind variable; more go into a map. A message may have
/// 65,535 of them, and as many bind variables.
const COMPARED_MAX: usize = 16;

/// Brings values that were given by name into the order of the bind variables. Of values with one
/// name the first counts.
pub fn bind_by_name(prepared: &PreparedStatement, values: &[(&str, BoundValue)]) -> Result<Vec<BoundValue>, CqlError> {
    let names = prepared.bind_variables.iter().map(|variable| &*variable.name);
    values_of(names, values).ok_or_else(|| CqlError::invalid("Invalid amount of bind variables"))
}

/// The values of these names, in the order of the names. `None`: one of the names has no value.
fn values_of<N: Copy + Eq + Hash>(
    names: impl Iterator<Item = N>,
    values: &[(N, BoundValue)],
) -> Option<Vec<BoundValue>> {
    if values.len() <= COMPARED_MAX {
        let value_of = |name: N| values.iter().find(|(given, _)| *given == name).map(|(_, value)| value.clone());
        return names.map(value_of).collect();
    }
    let mut by_name: HashMap<N, &BoundValue> = HashMap::with_capacity(values.len());
    for (name, value) in values {
        by_name.entry(*name).or_insert(value);
    }
    names.map(|name| by_name.get(&name).copied().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::hash::Hasher;

    use super::*;

    /// A name that counts how often any name is compared or hashed.
    #[derive(Clone, Copy)]
    struct Counted<'c> {
        name: u32,
        looks: &'c Cell<u64>,
    }

    impl Counted<'_> {
        fn look(&self) -> u32 {
            self.looks.set(self.looks.get() + 1);
            self.name
        }
    }

    impl PartialEq for Counted<'_> {
        fn eq(&self, other: &Self) -> bool {
            self.look() == other.name
        }
    }

    impl Eq for Counted<'_> {}

    impl Hash for Counted<'_> {
        fn hash<H: Hasher>(&self, state: &mut H) {
            state.write_u32(self.look());
        }
    }

    /// Where a message has as many values by name as it may have, each bind variable is not
    /// compared with each of them: that would hold a worker for seconds.
    #[test]
    fn the_cost_of_values_by_name_grows_with_their_number_alone() {
        const COUNT: u32 = 65_535;
        /// A name is hashed for its value and for its bind variable, and found once. A few names
        /// are compared besides, because a map compares names whose hashes have some bits in
        /// common.
        const LOOKS_MAX: u64 = 4;
        let looks = Cell::new(0);
        let named = |name: u32| Counted { name, looks: &looks };
        let values: Vec<_> = (0..COUNT).rev().map(|name| (named(name), BoundValue::Unset)).collect();
        let bound = values_of((0..COUNT).map(named), &values).expect("all are there");
        assert_eq!(bound.len(), values.len());
        assert!(looks.get() <= LOOKS_MAX * u64::from(COUNT), "{} looks at names", looks.get());
    }
}
