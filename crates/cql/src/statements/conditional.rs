//! Conditional statements, single or in a batch: what is read, which conditions must hold, what is
//! written if they do, and what is answered.
//!
//! All statements are of one partition. The coordinator reads it, calls [`Request::decide`] and
//! writes, as one step. The columns that are read are those that Cassandra reads, because a
//! statement that was not applied answers with them.
//! Agrees with
//! `org.apache.cassandra.cql3.statements.{CQL3CasRequest,ModificationStatement,BatchStatement}`,
//! messages included.

mod answer;
mod request;

use crate::context::{Bindings, MadeValues};
use crate::coordinator::CasPartition;
use crate::coordinator::{CasRequest, Coordinator};
use crate::error::CqlError;
use crate::options::QueryOptions;
use crate::result::Answer;
use crate::statements::modification::{ModificationPlan, guard, guard_levels, guard_update, request_seconds};
use crate::values::BoundValue;

use request::Request;
use types::Consistency;

/// A statement with its values.
pub(crate) type BoundStatement<'a> = (&'a ModificationPlan, &'a [BoundValue]);

/// Executes conditional statements: all of them are applied, or none. `is_batch`: the answer names
/// rows whose conditions failed by their keys.
pub(crate) async fn execute<C: Coordinator>(
    statements: &[BoundStatement<'_>],
    is_batch: bool,
    options: &QueryOptions,
    coordinator: &C,
) -> Result<Answer, CqlError> {
    let now = request_seconds(options, coordinator);
    let request = Request::of(statements, is_batch, coordinator)?;
    let serial = options.serial_consistency.unwrap_or(Consistency::Serial);
    check_levels(&request, serial, options.consistency, coordinator)?;
    let cas = CasRequest {
        command: request.command(now),
        first_row_only: request.looks_at_static_only(),
        tombstone_failure: options.limits.tombstone_failure,
        serial,
        commit: options.consistency,
    };
    let mut warnings = Vec::new();
    guard_levels(options, &mut warnings)?;
    for (plan, values) in statements {
        guard(
            plan,
            &Bindings { values, sources: coordinator, made: &MadeValues::default() },
            options,
            coordinator,
            &mut warnings,
        )?;
    }
    let mut seen: Option<CasPartition> = None;
    let decide = |partition: CasPartition, timestamp: i64| {
        if !request.holds(&partition)? {
            seen = Some(partition);
            return Ok(None);
        }
        seen = None;
        let update = request.update(partition, timestamp, now, coordinator)?;
        guard_update(&update, options, &mut warnings)?;
        Ok(Some(update))
    };
    coordinator.compare_and_set(cas, decide).await?;
    Ok(Answer { result: answer::of(&request, seen.as_ref(), now)?, warnings })
}

fn check_levels<C: Coordinator>(
    request: &Request<'_>,
    serial: Consistency,
    commit: Consistency,
    coordinator: &C,
) -> Result<(), CqlError> {
    if !serial.is_serial() {
        return Err(CqlError::invalid(
            "Invalid consistency for conditional update. Must be one of SERIAL or LOCAL_SERIAL",
        ));
    }
    if commit.is_serial() {
        return Err(CqlError::invalid(format!(
            "{} is not supported as conditional update commit consistency. Use ANY if you mean \"make sure it is accepted \
             but I don't care how many replicas commit it for non-SERIAL reads\"",
            commit.name()
        )));
    }
    if commit == Consistency::EachQuorum
        && let Some(keyspace) = coordinator.schema().keyspace(&request.table.keyspace)
        && keyspace.replication.short_class() != "NetworkTopologyStrategy"
    {
        return Err(CqlError::invalid(format!(
            "consistency level EACH_QUORUM not compatible with replication strategy ({})",
            keyspace.replication.class
        )));
    }
    Ok(())
}
