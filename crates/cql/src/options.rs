//! The options of a request, the state of a connection, and the limits of the configuration that
//! statements need.
//!
//! Agrees with `org.apache.cassandra.cql3.QueryOptions` and the part of `service.ClientState` that
//! statements need.

use std::sync::Arc;

use bytes::Bytes;
use schema::TableMetadata;
use types::Consistency;

use crate::ast::Permission;
use crate::auth::Access;
use crate::ddl::Switches;
use crate::guardrails::Guardrails;

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
    /// coordinator_read_size_warn_threshold, bytes of the values of a result; None: never.
    pub result_size_warn: Option<u64>,
    /// coordinator_read_size_fail_threshold; None: never.
    pub result_size_fail: Option<u64>,
    /// Switches for statements on the schema.
    pub switches: Switches,
}

impl Default for Limits {
    /// The defaults of Cassandra 5.0.
    fn default() -> Self {
        Self {
            batch_size_warn: 5 << 10,
            batch_size_fail: 50 << 10,
            unlogged_batch_partitions_warn: 10,
            tombstone_warn: 1_000,
            tombstone_failure: 100_000,
            result_size_warn: None,
            result_size_fail: None,
            switches: Switches::default(),
        }
    }
}

/// The options of a request: everything besides statement and values.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct QueryOptions {
    /// Consistency level of the read or write.
    pub consistency: Consistency,
    /// Consistency level of conditional statements; None: SERIAL.
    pub serial_consistency: Option<Consistency>,
    /// Most rows of a page; None or 0: the answer is not paged.
    pub page_size: Option<u32>,
    /// The paging state that the previous page ended with.
    pub paging_state: Option<Bytes>,
    /// The client's write timestamp, in microseconds.
    pub timestamp: Option<i64>,
    /// The client's present time, in seconds, for expiry.
    pub now_in_seconds: Option<u32>,
    /// Version of the native protocol: 3, 4 or 5.
    pub protocol_version: u8,
    /// The limits of the node's configuration.
    pub limits: Limits,
    /// The guardrails that apply to this client; None: none apply.
    pub guardrails: Option<Arc<Guardrails>>,
}

/// The state of a connection between its requests.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ClientState {
    /// The current keyspace, set by USE.
    pub keyspace: Option<String>,
    /// The user and his present permissions; None: nobody has to log in.
    pub access: Option<Arc<Access>>,
}

impl ClientState {
    /// The client has the permission on the table, its keyspace or all keyspaces. Checking
    /// allocates nothing.
    pub fn has_table_permission(&self, permission: Permission, table: &TableMetadata) -> bool {
        self.access.as_ref().is_none_or(|access| access.has_on_table(permission, table))
    }
}
