//! The client side: [`AdminApi`] of a node somewhere else. Used by nodetool only.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::Agent;

use super::server::{ClearSnapshots, LoggingLevel};
use crate::api::{AdminApi, AdminError, Result, TimeoutKind};
use crate::model::{
    CacheChange, ClientLatencies, CompactRequest, CompactionHistoryEntry, CompactionStats, ImportRequest, KeyspaceInfo,
    NodeInfo, NodeMetrics, PoolStats, SSTableOutcome, SSTableRequest, SSTablesOfKey, SampleRequest, Samples,
    SnapshotInfo, SnapshotRequest, StopRequest, TableSelection, TableStats, TransportChange,
};

/// How long to wait for a connection. Answers may take as long as a compaction.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest answer that is read.
const ANSWER_SIZE_MAX: u64 = 256 << 20;

/// A node at an address.
pub struct Client {
    agent: Agent,
    base: String,
}

impl Client {
    /// For the admin port of a node. Nothing is sent yet.
    pub fn new(host: &str, port: u16) -> Self {
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let config = Agent::config_builder().timeout_connect(Some(CONNECT_TIMEOUT)).http_status_as_error(false).build();
        Self { agent: config.into(), base: format!("http://{host}:{port}") }
    }

    fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.answer(self.agent.get(format!("{}{path}", self.base)).call())
    }

    fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T> {
        let body = serde_json::to_string(body).map_err(|error| AdminError::Failed(error.to_string()))?;
        let request = self.agent.post(format!("{}{path}", self.base)).header("Content-Type", "application/json");
        self.answer(request.send(body))
    }

    /// The text of `/metrics`.
    #[cfg(test)]
    pub fn metrics_text(&self) -> Option<String> {
        self.agent.get(format!("{}/metrics", self.base)).call().ok()?.body_mut().read_to_string().ok()
    }

    fn answer<T: DeserializeOwned>(
        &self,
        sent: std::result::Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<T> {
        let unreachable =
            |error: ureq::Error| AdminError::Unreachable(format!("Failed to connect to '{}' - {error}", self.base));
        let mut response = sent.map_err(unreachable)?;
        let ok = response.status().is_success();
        let text = response.body_mut().with_config().limit(ANSWER_SIZE_MAX).read_to_string().map_err(unreachable)?;
        let unreadable =
            |error: serde_json::Error| AdminError::Failed(format!("the answer of the node is not readable: {error}"));
        if ok {
            return serde_json::from_str(&text).map_err(unreadable);
        }
        Err(serde_json::from_str(&text)
            .unwrap_or_else(|_| AdminError::Failed(format!("{}: {text}", response.status()))))
    }
}

/// Percent-encodes all but letters and digits.
fn encode(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() {
            out.push(char::from(byte));
        } else {
            out += &format!("%{byte:02X}");
        }
    }
    out
}

fn partition(keyspace: &str, table: &str, key: &str) -> String {
    format!("keyspace={}&table={}&key={}", encode(keyspace), encode(table), encode(key))
}

impl AdminApi for Client {
    fn node(&self) -> Result<NodeInfo> {
        self.get("/api/node")
    }

    fn keyspaces(&self) -> Result<Vec<KeyspaceInfo>> {
        self.get("/api/keyspaces")
    }

    fn tables(&self) -> Result<Vec<TableStats>> {
        self.get("/api/tables")
    }

    fn client_latencies(&self) -> Result<ClientLatencies> {
        self.get("/api/latencies")
    }

    fn compactions(&self) -> Result<CompactionStats> {
        self.get("/api/compactions")
    }

    fn compaction_history(&self) -> Result<Vec<CompactionHistoryEntry>> {
        self.get("/api/compactions/history")
    }

    fn pools(&self) -> Result<Vec<PoolStats>> {
        self.get("/api/pools")
    }

    fn metrics(&self) -> Result<NodeMetrics> {
        self.get("/api/metrics")
    }

    fn endpoints(&self, keyspace: &str, table: &str, key: &str) -> Result<Vec<String>> {
        self.get(&format!("/api/endpoints?{}", partition(keyspace, table, key)))
    }

    fn sstables(&self, keyspace: &str, table: &str, key: &str, hex: bool) -> Result<SSTablesOfKey> {
        self.get(&format!("/api/sstables?{}&hex={hex}", partition(keyspace, table, key)))
    }

    fn tombstones(&self, keyspace: &str, table: &str, top: u32) -> Result<Vec<String>> {
        self.post("/api/tombstones", &(keyspace, table, top))
    }

    fn import(&self, request: &ImportRequest) -> Result<Vec<String>> {
        self.post("/api/sstables/import", request)
    }

    fn refresh(&self, keyspace: &str, table: &str) -> Result<()> {
        self.post("/api/sstables/refresh", &(keyspace, table))
    }

    fn rebuild_indexes(&self, keyspace: &str, table: &str, indexes: &[String]) -> Result<()> {
        self.post("/api/indexes/rebuild", &(keyspace, table, indexes))
    }

    fn work_on_sstables(&self, request: &SSTableRequest) -> Result<SSTableOutcome> {
        self.post("/api/sstables/work", request)
    }

    fn stop(&self, request: &StopRequest) -> Result<()> {
        self.post("/api/compactions/stop", request)
    }

    fn flush(&self, tables: &TableSelection) -> Result<()> {
        self.post("/api/flush", tables)
    }

    fn compact(&self, request: &CompactRequest) -> Result<()> {
        self.post("/api/compact", request)
    }

    fn auto_compaction(&self, tables: &TableSelection) -> Result<Vec<(String, String, bool)>> {
        self.post("/api/auto_compaction/status", tables)
    }

    fn set_auto_compaction(&self, tables: &TableSelection, on: bool) -> Result<()> {
        self.post("/api/auto_compaction", &(tables, on))
    }

    fn compaction_thresholds(&self, keyspace: &str, table: &str) -> Result<(u32, u32)> {
        self.post("/api/compaction_thresholds", &(keyspace, table))
    }

    fn set_compaction_thresholds(&self, keyspace: &str, table: &str, thresholds: (u32, u32)) -> Result<()> {
        self.post("/api/compaction_thresholds/set", &(keyspace, table, thresholds))
    }

    fn set_concurrent_compactors(&self, count: u32) -> Result<()> {
        self.post("/api/compactions/concurrency", &count)
    }

    fn change_caches(&self, change: &CacheChange) -> Result<()> {
        self.post("/api/caches", change)
    }

    fn drain(&self) -> Result<()> {
        self.post("/api/drain", &())
    }

    fn change_transport(&self, change: TransportChange) -> Result<()> {
        self.post("/api/native_transport", &change)
    }

    fn snapshots(&self) -> Result<Vec<SnapshotInfo>> {
        self.get("/api/snapshots")
    }

    fn take_snapshot(&self, request: &SnapshotRequest) -> Result<()> {
        self.post("/api/snapshots", request)
    }

    fn clear_snapshots(&self, name: Option<&str>, keyspaces: &[String]) -> Result<()> {
        let what = ClearSnapshots { name: name.map(str::to_owned), keyspaces: keyspaces.to_vec() };
        self.post("/api/snapshots/clear", &what)
    }

    fn trace_probability(&self) -> Result<f64> {
        self.get("/api/trace_probability")
    }

    fn set_trace_probability(&self, probability: f64) -> Result<()> {
        self.post("/api/trace_probability", &probability)
    }

    fn timeout(&self, kind: TimeoutKind) -> Result<u64> {
        self.get(&format!("/api/timeout/{}", kind.name()))
    }

    fn set_timeout(&self, kind: TimeoutKind, millis: u64) -> Result<()> {
        self.post(&format!("/api/timeout/{}", kind.name()), &millis)
    }

    fn compaction_throughput(&self) -> Result<u64> {
        self.get("/api/compaction_throughput")
    }

    fn set_compaction_throughput(&self, bytes_a_second: u64) -> Result<()> {
        self.post("/api/compaction_throughput", &bytes_a_second)
    }

    fn sample(&self, request: &SampleRequest) -> Result<Samples> {
        self.post("/api/samples", request)
    }

    fn schedule_sampling(&self, request: &SampleRequest, interval_millis: u64) -> Result<bool> {
        self.post("/api/samples/jobs", &(request, interval_millis))
    }

    fn stop_sampling(&self, keyspace: Option<&str>, table: Option<&str>) -> Result<bool> {
        self.post("/api/samples/jobs/stop", &(keyspace, table))
    }

    fn sampling_jobs(&self) -> Result<Vec<(String, String)>> {
        self.get("/api/samples/jobs")
    }

    fn logging_levels(&self) -> Result<Vec<(String, String)>> {
        self.get("/api/logging_levels")
    }

    fn set_logging_level(&self, logger: &str, level: &str) -> Result<()> {
        self.post("/api/logging_levels", &LoggingLevel { logger: logger.to_owned(), level: level.to_owned() })
    }
}
