//! Executing a prepared statement: what a request gives besides the statement.
//!
//! Agrees with `org.apache.cassandra.cql3.QueryOptions`.

use std::sync::Arc;

use bytes::Bytes;
use schema::{TableKind, TableMetadata};
use types::{BatchKind, Consistency};

use crate::ast::Permission;
use crate::auth::{self, Access};
use crate::coordinator::Coordinator;
use crate::ddl::Switches;
use crate::error::CqlError;
use crate::guardrails::Guardrails;
use crate::prepare::{Plan, Prepared};
use crate::result::{Answer, CqlResult};
use crate::statements::{batch, explain, modification, other, select};

/// A bound value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BoundValue {
    /// Serialized.
    Bytes(Bytes),
    /// null
    Null,
    /// Not set: the column is left as it is.
    Unset,
}

/// Thresholds and switches from the node's configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// batch_size_warn_threshold, bytes.
    pub batch_size_warn: usize,
    /// batch_size_fail_threshold, bytes.
    pub batch_size_fail: usize,
    /// unlogged_batch_across_partitions_warn_threshold.
    pub unlogged_batch_partitions_warn: usize,
    /// tombstone_warn_threshold.
    pub tombstone_warn: u64,
    /// tombstone_failure_threshold.
    pub tombstone_failure: u64,
    /// What changes of the schema go by.
    pub switches: Switches,
}

impl Default for Limits {
    /// What cassandra.yaml of 5.0 says.
    fn default() -> Self {
        Self {
            batch_size_warn: 5 << 10,
            batch_size_fail: 50 << 10,
            unlogged_batch_partitions_warn: 10,
            tombstone_warn: 1_000,
            tombstone_failure: 100_000,
            switches: Switches::default(),
        }
    }
}

/// What a request gives besides statement and values.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct QueryOptions {
    /// Consistency of the data.
    pub consistency: Consistency,
    /// Consistency of lightweight transactions; None: SERIAL.
    pub serial_consistency: Option<Consistency>,
    /// Rows a page; None or 0: all at once.
    pub page_size: Option<u32>,
    /// Where the page starts.
    pub paging_state: Option<Bytes>,
    /// Write timestamp, microseconds, of the client.
    pub timestamp: Option<i64>,
    /// Clock of the client, seconds, for expiry.
    pub now_in_seconds: Option<u32>,
    /// 3, 4 or 5.
    pub protocol_version: u8,
    /// From the node's configuration.
    pub limits: Limits,
    /// The guardrails that bind this client; None: none do.
    pub guardrails: Option<Arc<Guardrails>>,
}

/// What a connection remembers between requests.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ClientState {
    /// Set by USE.
    pub keyspace: Option<String>,
    /// Who has logged in, and what he may do now; None: nobody has to.
    pub access: Option<Arc<Access>>,
}

impl ClientState {
    /// The permission is held on the table or what is above it. Allocates nothing.
    pub fn has_table_permission(&self, permission: Permission, table: &TableMetadata) -> bool {
        self.access.as_ref().is_none_or(|access| access.has_on_table(permission, table))
    }
}

/// Executes a prepared statement.
pub async fn execute<C: Coordinator>(
    prepared: &Prepared,
    values: &[BoundValue],
    options: &QueryOptions,
    client: &ClientState,
    coordinator: &C,
) -> Result<Answer, CqlError> {
    check_count(prepared, values)?;
    auth::authorize(prepared, client, coordinator)?;
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
        Plan::Explain(plan) => explain::execute(plan, values, options, coordinator).await,
        Plan::Other => other::execute(prepared, options, client, coordinator).await,
    }
}

fn check_count(prepared: &Prepared, values: &[BoundValue]) -> Result<(), CqlError> {
    if prepared.bind_variables.len() == values.len() {
        return Ok(());
    }
    Err(CqlError::invalid(format!(
        "there were {} markers(?) in CQL but {} bound variables",
        prepared.bind_variables.len(),
        values.len()
    )))
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
pub async fn execute_batch<C: Coordinator>(
    kind: BatchKind,
    statements: &[(&Prepared, &[BoundValue])],
    options: &QueryOptions,
    client: &ClientState,
    coordinator: &C,
) -> Result<Answer, CqlError> {
    let plans = plans_of(statements)?;
    if let Some(access) = &client.access {
        plans.iter().try_for_each(|(plan, _)| auth::authorize_modification(plan, access))?;
    }
    let timestamp = modification::default_timestamp(options, coordinator);
    batch::execute_all(kind, &plans, timestamp, options, coordinator).await
}

/// Executes statements of the node's own, for which nobody is asked.
pub(crate) async fn execute_internally<C: Coordinator>(
    kind: BatchKind,
    statements: &[(&Prepared, &[BoundValue])],
    options: &QueryOptions,
    coordinator: &C,
) -> Result<Answer, CqlError> {
    let timestamp = modification::default_timestamp(options, coordinator);
    batch::execute_all(kind, &plans_of(statements)?, timestamp, options, coordinator).await
}

fn plans_of<'s>(
    statements: &'s [(&Prepared, &'s [BoundValue])],
) -> Result<Vec<(&'s modification::ModificationPlan, &'s [BoundValue])>, CqlError> {
    let plan = |(prepared, values): &'s (&Prepared, &'s [BoundValue])| {
        check_count(prepared, values)?;
        match &prepared.plan {
            Plan::Modification(plan) => Ok((plan, *values)),
            _ => Err(CqlError::invalid(
                "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed.",
            )),
        }
    };
    statements.iter().map(plan).collect()
}

/// Puts values given by name in the order of the bind variables.
pub fn bind_by_name(prepared: &Prepared, values: &[(&str, BoundValue)]) -> Result<Vec<BoundValue>, CqlError> {
    let value_of = |name: &str| values.iter().find(|(given, _)| *given == name).map(|(_, value)| value.clone());
    prepared
        .bind_variables
        .iter()
        .map(|variable| value_of(&variable.name).ok_or_else(|| CqlError::invalid("Invalid amount of bind variables")))
        .collect()
}
