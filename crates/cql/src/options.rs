//! What a request gives besides statement and values, what a connection remembers, and limits of the configuration.
//!
//! Agrees with `org.apache.cassandra.cql3.QueryOptions` and the part of `service.ClientState` that statements need.

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
