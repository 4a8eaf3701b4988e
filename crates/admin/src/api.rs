//! What nodetool, `/metrics` and the console may ask of a node.
//!
//! [`AdminApi`] stands on both ends: the node implements it, [`crate::http::Client`] is it over HTTP, and each nodetool verb is written
//! against it. Calls block: the HTTP server runs them on the blocking pool.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::{
    CacheChange, ClientLatencies, CompactRequest, CompactionHistoryEntry, CompactionStats, ImportRequest, KeyspaceInfo,
    NodeInfo, NodeMetrics, PoolStats, SSTableOutcome, SSTableRequest, SSTablesOfKey, SampleRequest, Samples,
    SnapshotInfo, SnapshotRequest, StopRequest, TableSelection, TableStats, TransportChange,
};

/// Why a call failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum AdminError {
    /// The caller asked wrongly; nodetool shows it as a usage error.
    Invalid(String),
    /// The node failed to do it.
    Failed(String),
    /// No answer: not started, another address.
    Unreachable(String),
}

impl AdminError {
    /// The text.
    pub fn message(&self) -> &str {
        match self {
            Self::Invalid(message) | Self::Failed(message) | Self::Unreachable(message) => message,
        }
    }
}

impl fmt::Display for AdminError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for AdminError {}

/// The result of a call.
pub type Result<T> = std::result::Result<T, AdminError>;

/// A node, seen by its operator.
pub trait AdminApi: Send + Sync {
    /// The node itself.
    fn node(&self) -> Result<NodeInfo>;

    /// All stored keyspaces.
    fn keyspaces(&self) -> Result<Vec<KeyspaceInfo>>;

    /// Figures of all stored tables.
    fn tables(&self) -> Result<Vec<TableStats>>;

    /// Latencies of clients' requests since the start.
    fn client_latencies(&self) -> Result<ClientLatencies>;

    /// Compaction.
    fn compactions(&self) -> Result<CompactionStats>;

    /// Rows of `system.compaction_history`, in any order.
    fn compaction_history(&self) -> Result<Vec<CompactionHistoryEntry>>;

    /// Pools of work.
    fn pools(&self) -> Result<Vec<PoolStats>>;

    /// Figures for monitoring.
    fn metrics(&self) -> Result<NodeMetrics>;

    /// Addresses of the replicas of a partition; the key as CQL writes it, components separated by colons.
    fn endpoints(&self, keyspace: &str, table: &str, key: &str) -> Result<Vec<String>>;

    /// Data files that hold a partition; the key in hexadecimal digits, or as CQL writes it.
    fn sstables(&self, keyspace: &str, table: &str, key: &str, hex: bool) -> Result<SSTablesOfKey>;

    /// Of each SSTable of a table where its tombstones are, when they may go, and why not yet, as text; with the partitions that have most.
    fn tombstones(&self, keyspace: &str, table: &str, top: u32) -> Result<Vec<String>>;

    /// Brings SSTables in; returns the directories that could not be imported.
    fn import(&self, request: &ImportRequest) -> Result<Vec<String>>;

    /// Loads SSTables that were put into a table's directory.
    fn refresh(&self, keyspace: &str, table: &str) -> Result<()>;

    /// Makes indexes of a table again.
    fn rebuild_indexes(&self, keyspace: &str, table: &str, indexes: &[String]) -> Result<()>;

    /// Works on the SSTables of some tables; returns when done.
    fn work_on_sstables(&self, request: &SSTableRequest) -> Result<SSTableOutcome>;

    /// Asks compactions to end.
    fn stop(&self, request: &StopRequest) -> Result<()>;

    /// Writes memtables to SSTables; returns when they are on disk.
    fn flush(&self, tables: &TableSelection) -> Result<()>;

    /// Compacts SSTables; returns when done.
    fn compact(&self, request: &CompactRequest) -> Result<()>;

    /// Tables and whether they are compacted by themselves.
    fn auto_compaction(&self, tables: &TableSelection) -> Result<Vec<(String, String, bool)>>;

    /// Has tables compacted by themselves, or not.
    fn set_auto_compaction(&self, tables: &TableSelection, on: bool) -> Result<()>;

    /// With how many SSTables at least and at most a table's strategy compacts.
    fn compaction_thresholds(&self, keyspace: &str, table: &str) -> Result<(u32, u32)>;

    /// Sets that, until the node restarts.
    fn set_compaction_thresholds(&self, keyspace: &str, table: &str, thresholds: (u32, u32)) -> Result<()>;

    /// Sets how many compactions may run at a time.
    fn set_concurrent_compactors(&self, count: u32) -> Result<()>;

    /// Changes caches.
    fn change_caches(&self, change: &CacheChange) -> Result<()>;

    /// Refuses writes from now on and flushes all.
    fn drain(&self) -> Result<()>;

    /// Closes the port of the native protocol, or opens it again. Returns when that is done.
    fn change_transport(&self, change: TransportChange) -> Result<()>;

    /// All snapshots.
    fn snapshots(&self) -> Result<Vec<SnapshotInfo>>;

    /// Takes a snapshot. A name that exists is refused.
    fn take_snapshot(&self, request: &SnapshotRequest) -> Result<()>;

    /// Removes snapshots: of a name, or all; of some keyspaces, or all.
    fn clear_snapshots(&self, name: Option<&str>, keyspaces: &[String]) -> Result<()>;

    /// Share of requests that are traced, 0 to 1.
    fn trace_probability(&self) -> Result<f64>;

    /// Sets it.
    fn set_trace_probability(&self, probability: f64) -> Result<()>;

    /// A timeout in milliseconds.
    fn timeout(&self, kind: TimeoutKind) -> Result<u64>;

    /// Sets it.
    fn set_timeout(&self, kind: TimeoutKind, millis: u64) -> Result<()>;

    /// Bytes a second that compaction may write; 0: not throttled.
    fn compaction_throughput(&self) -> Result<u64>;

    /// Sets it.
    fn set_compaction_throughput(&self, bytes_a_second: u64) -> Result<()>;

    /// Samples what the node does for a while; returns when it is over.
    fn sample(&self, request: &SampleRequest) -> Result<Samples>;

    /// Samples again and again, each time after an interval, into the log. False: it does already.
    fn schedule_sampling(&self, request: &SampleRequest, interval_millis: u64) -> Result<bool>;

    /// Ends that; without a keyspace all of it. False: there is none.
    fn stop_sampling(&self, keyspace: Option<&str>, table: Option<&str>) -> Result<bool>;

    /// Keyspaces and tables that are sampled again and again.
    fn sampling_jobs(&self) -> Result<Vec<(String, String)>>;

    /// Loggers with their levels, the root first.
    fn logging_levels(&self) -> Result<Vec<(String, String)>>;

    /// Sets a logger's level; without a level, back to the start.
    fn set_logging_level(&self, logger: &str, level: &str) -> Result<()>;
}

impl<T: AdminApi + ?Sized> AdminApi for std::sync::Arc<T> {
    fn node(&self) -> Result<NodeInfo> {
        (**self).node()
    }

    fn keyspaces(&self) -> Result<Vec<KeyspaceInfo>> {
        (**self).keyspaces()
    }

    fn tables(&self) -> Result<Vec<TableStats>> {
        (**self).tables()
    }

    fn client_latencies(&self) -> Result<ClientLatencies> {
        (**self).client_latencies()
    }

    fn compactions(&self) -> Result<CompactionStats> {
        (**self).compactions()
    }

    fn compaction_history(&self) -> Result<Vec<CompactionHistoryEntry>> {
        (**self).compaction_history()
    }

    fn pools(&self) -> Result<Vec<PoolStats>> {
        (**self).pools()
    }

    fn metrics(&self) -> Result<NodeMetrics> {
        (**self).metrics()
    }

    fn endpoints(&self, keyspace: &str, table: &str, key: &str) -> Result<Vec<String>> {
        (**self).endpoints(keyspace, table, key)
    }

    fn sstables(&self, keyspace: &str, table: &str, key: &str, hex: bool) -> Result<SSTablesOfKey> {
        (**self).sstables(keyspace, table, key, hex)
    }

    fn tombstones(&self, keyspace: &str, table: &str, top: u32) -> Result<Vec<String>> {
        (**self).tombstones(keyspace, table, top)
    }

    fn import(&self, request: &ImportRequest) -> Result<Vec<String>> {
        (**self).import(request)
    }

    fn refresh(&self, keyspace: &str, table: &str) -> Result<()> {
        (**self).refresh(keyspace, table)
    }

    fn rebuild_indexes(&self, keyspace: &str, table: &str, indexes: &[String]) -> Result<()> {
        (**self).rebuild_indexes(keyspace, table, indexes)
    }

    fn work_on_sstables(&self, request: &SSTableRequest) -> Result<SSTableOutcome> {
        (**self).work_on_sstables(request)
    }

    fn stop(&self, request: &StopRequest) -> Result<()> {
        (**self).stop(request)
    }

    fn flush(&self, tables: &TableSelection) -> Result<()> {
        (**self).flush(tables)
    }

    fn compact(&self, request: &CompactRequest) -> Result<()> {
        (**self).compact(request)
    }

    fn auto_compaction(&self, tables: &TableSelection) -> Result<Vec<(String, String, bool)>> {
        (**self).auto_compaction(tables)
    }

    fn set_auto_compaction(&self, tables: &TableSelection, on: bool) -> Result<()> {
        (**self).set_auto_compaction(tables, on)
    }

    fn compaction_thresholds(&self, keyspace: &str, table: &str) -> Result<(u32, u32)> {
        (**self).compaction_thresholds(keyspace, table)
    }

    fn set_compaction_thresholds(&self, keyspace: &str, table: &str, thresholds: (u32, u32)) -> Result<()> {
        (**self).set_compaction_thresholds(keyspace, table, thresholds)
    }

    fn set_concurrent_compactors(&self, count: u32) -> Result<()> {
        (**self).set_concurrent_compactors(count)
    }

    fn change_caches(&self, change: &CacheChange) -> Result<()> {
        (**self).change_caches(change)
    }

    fn drain(&self) -> Result<()> {
        (**self).drain()
    }

    fn change_transport(&self, change: TransportChange) -> Result<()> {
        (**self).change_transport(change)
    }

    fn snapshots(&self) -> Result<Vec<SnapshotInfo>> {
        (**self).snapshots()
    }

    fn take_snapshot(&self, request: &SnapshotRequest) -> Result<()> {
        (**self).take_snapshot(request)
    }

    fn clear_snapshots(&self, name: Option<&str>, keyspaces: &[String]) -> Result<()> {
        (**self).clear_snapshots(name, keyspaces)
    }

    fn trace_probability(&self) -> Result<f64> {
        (**self).trace_probability()
    }

    fn set_trace_probability(&self, probability: f64) -> Result<()> {
        (**self).set_trace_probability(probability)
    }

    fn timeout(&self, kind: TimeoutKind) -> Result<u64> {
        (**self).timeout(kind)
    }

    fn set_timeout(&self, kind: TimeoutKind, millis: u64) -> Result<()> {
        (**self).set_timeout(kind, millis)
    }

    fn compaction_throughput(&self) -> Result<u64> {
        (**self).compaction_throughput()
    }

    fn set_compaction_throughput(&self, bytes_a_second: u64) -> Result<()> {
        (**self).set_compaction_throughput(bytes_a_second)
    }

    fn sample(&self, request: &SampleRequest) -> Result<Samples> {
        (**self).sample(request)
    }

    fn schedule_sampling(&self, request: &SampleRequest, interval_millis: u64) -> Result<bool> {
        (**self).schedule_sampling(request, interval_millis)
    }

    fn stop_sampling(&self, keyspace: Option<&str>, table: Option<&str>) -> Result<bool> {
        (**self).stop_sampling(keyspace, table)
    }

    fn sampling_jobs(&self) -> Result<Vec<(String, String)>> {
        (**self).sampling_jobs()
    }

    fn logging_levels(&self) -> Result<Vec<(String, String)>> {
        (**self).logging_levels()
    }

    fn set_logging_level(&self, logger: &str, level: &str) -> Result<()> {
        (**self).set_logging_level(logger, level)
    }
}

/// The timeouts that can be read and set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeoutKind {
    /// read_request_timeout
    Read,
    /// range_request_timeout
    Range,
    /// write_request_timeout
    Write,
    /// counter_write_request_timeout
    CounterWrite,
    /// cas_contention_timeout
    CasContention,
    /// truncate_request_timeout
    Truncate,
    /// request_timeout
    Misc,
}

impl TimeoutKind {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Read, Self::Range, Self::Write, Self::CounterWrite, Self::CasContention, Self::Truncate, Self::Misc];

    /// The word that nodetool uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Range => "range",
            Self::Write => "write",
            Self::CounterWrite => "counterwrite",
            Self::CasContention => "cascontention",
            Self::Truncate => "truncate",
            Self::Misc => "misc",
        }
    }

    /// By word.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}
