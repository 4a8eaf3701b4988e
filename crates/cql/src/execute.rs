//! Executing a prepared statement: what a request gives besides the statement.
//!
//! Agrees with `org.apache.cassandra.cql3.QueryOptions`.

use bytes::Bytes;

use crate::ast::BatchKind;
use crate::coordinator::{Consistency, Coordinator};
use crate::error::CqlError;
use crate::prepare::Prepared;
use crate::result::Answer;

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
}

/// What a connection remembers between requests.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ClientState {
    /// Set by USE.
    pub keyspace: Option<String>,
}

/// Executes a prepared statement.
pub async fn execute<C: Coordinator>(
    prepared: &Prepared,
    values: &[BoundValue],
    options: &QueryOptions,
    client: &ClientState,
    coordinator: &C,
) -> Result<Answer, CqlError> {
    let _ = (prepared, values, options, client, coordinator);
    Err(CqlError::unsupported("statements are"))
}

/// Executes the statements of a BATCH message.
pub async fn execute_batch<C: Coordinator>(
    kind: BatchKind,
    statements: &[(&Prepared, &[BoundValue])],
    options: &QueryOptions,
    coordinator: &C,
) -> Result<Answer, CqlError> {
    let _ = (kind, statements, options, coordinator);
    Err(CqlError::unsupported("statements are"))
}

/// Puts values given by name in the order of the bind variables. A name that the statement does not have is ignored, as is
/// the case of unquoted names.
pub fn bind_by_name(prepared: &Prepared, values: &[(&str, BoundValue)]) -> Result<Vec<BoundValue>, CqlError> {
    let value_of = |name: &str| values.iter().find(|(given, _)| *given == name).map(|(_, value)| value.clone());
    prepared
        .bind_variables
        .iter()
        .map(|variable| {
            value_of(&variable.name).ok_or_else(|| {
                CqlError::invalid(format!("Invalid value for bind variable {}: no value was given", variable.name))
            })
        })
        .collect()
}
