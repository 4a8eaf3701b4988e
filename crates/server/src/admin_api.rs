//! What nodetool, `/metrics` and the console ask, answered by the running node: [`admin::AdminApi`] over storage, cluster and workers.
//!
//! Calls block: they come on threads of the blocking pool. Names and figures agree with Cassandra's MBeans (`StorageServiceMBean`,
//! `CompactionManagerMBean`, `org.apache.cassandra.metrics`).

mod compaction;
mod figures;
mod node;
mod partition;
mod process;
mod sampling;
mod sstables;
mod tables;
mod verbs;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use admin::api::{Result, TimeoutKind};
use admin::model::{
    CacheChange, ClientLatencies, CompactRequest, CompactionHistoryEntry, CompactionStats, ImportRequest, KeyspaceInfo,
    NodeInfo, NodeMetrics, PoolStats, SSTableOutcome, SSTableRequest, SSTablesOfKey, SampleRequest, Samples,
    SnapshotInfo, SnapshotRequest, StopRequest, TableSelection, TableStats, TransportChange,
};
use admin::{AdminApi, AdminError};
use storage::Engine;

use crate::memory::MemoryBudget;
use crate::services::Services;
use native::ServerHandle;

/// Sets a logger's level; without a level, back to the start. Belongs to the program, which owns the log.
pub type SetLevel = dyn Fn(&str, &str) -> std::result::Result<(), String> + Send + Sync;

/// The node as its operator asks it.
pub struct NodeAdmin {
    services: Arc<Services>,
    transport: ServerHandle,
    memory: MemoryBudget,
    set_level: Option<Arc<SetLevel>>,
    sampling: sampling::SamplingJobs,
}

impl NodeAdmin {
    /// Over the parts of a running node.
    pub fn new(
        services: Arc<Services>,
        transport: ServerHandle,
        memory: MemoryBudget,
        set_level: Option<Arc<SetLevel>>,
    ) -> Self {
        Self { services, transport, memory, set_level, sampling: sampling::SamplingJobs::default() }
    }

    fn engine(&self) -> &Arc<Engine> {
        &self.services.node.engine
    }

    fn now_seconds(&self) -> u32 {
        self.services.node.env.clock.now_seconds()
    }
}

/// Waits for a future on this thread, which may block.
fn wait<T>(future: impl Future<Output = T>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    Ok(runtime.block_on(future))
}

fn failed(error: impl std::fmt::Display) -> AdminError {
    AdminError::Failed(error.to_string())
}

fn invalid<T>(message: impl Into<String>) -> Result<T> {
    Err(AdminError::Invalid(message.into()))
}

impl AdminApi for NodeAdmin {
    fn node(&self) -> Result<NodeInfo> {
        Ok(node::info(self))
    }

    fn keyspaces(&self) -> Result<Vec<KeyspaceInfo>> {
        Ok(node::keyspaces(self))
    }

    fn tables(&self) -> Result<Vec<TableStats>> {
        Ok(tables::all(self))
    }

    fn client_latencies(&self) -> Result<ClientLatencies> {
        Ok(figures::client_latencies(self))
    }

    fn compactions(&self) -> Result<CompactionStats> {
        Ok(compaction::stats(self))
    }

    fn compaction_history(&self) -> Result<Vec<CompactionHistoryEntry>> {
        compaction::history(self)
    }

    fn pools(&self) -> Result<Vec<PoolStats>> {
        Ok(figures::pools(self))
    }

    fn metrics(&self) -> Result<NodeMetrics> {
        Ok(figures::metrics(self))
    }

    fn endpoints(&self, keyspace: &str, table: &str, key: &str) -> Result<Vec<String>> {
        partition::endpoints(self, keyspace, table, key)
    }

    fn sstables(&self, keyspace: &str, table: &str, key: &str, hex: bool) -> Result<SSTablesOfKey> {
        partition::sstables(self, keyspace, table, key, hex)
    }

    fn tombstones(&self, keyspace: &str, table: &str, top: u32) -> Result<Vec<String>> {
        partition::tombstones(self, keyspace, table, top)
    }

    fn import(&self, request: &ImportRequest) -> Result<Vec<String>> {
        sstables::import(self, request)
    }

    fn refresh(&self, keyspace: &str, table: &str) -> Result<()> {
        sstables::refresh(self, keyspace, table)
    }

    fn rebuild_indexes(&self, keyspace: &str, table: &str, indexes: &[String]) -> Result<()> {
        sstables::rebuild_indexes(self, keyspace, table, indexes)
    }

    fn work_on_sstables(&self, request: &SSTableRequest) -> Result<SSTableOutcome> {
        sstables::work(self, request)
    }

    fn stop(&self, request: &StopRequest) -> Result<()> {
        sstables::stop(self, request)
    }

    fn flush(&self, tables: &TableSelection) -> Result<()> {
        verbs::flush(self, tables)
    }

    fn compact(&self, request: &CompactRequest) -> Result<()> {
        compaction::compact(self, request)
    }

    fn auto_compaction(&self, tables: &TableSelection) -> Result<Vec<(String, String, bool)>> {
        compaction::auto_compaction(self, tables)
    }

    fn set_auto_compaction(&self, tables: &TableSelection, on: bool) -> Result<()> {
        compaction::set_auto_compaction(self, tables, on)
    }

    fn compaction_thresholds(&self, keyspace: &str, table: &str) -> Result<(u32, u32)> {
        let store = partition::store(self, keyspace, table)?;
        Ok(store.thresholds.get(&store.table().params.compaction))
    }

    fn set_compaction_thresholds(&self, keyspace: &str, table: &str, (min, max): (u32, u32)) -> Result<()> {
        if min < 2 || max < min {
            return invalid(format!("thresholds from {min} to {max}: they begin at 2, and max is not below min"));
        }
        partition::store(self, keyspace, table)?.thresholds.set(min, max);
        self.engine().compactor.wake();
        Ok(())
    }

    fn set_concurrent_compactors(&self, count: u32) -> Result<()> {
        self.engine().compactor.set_concurrency(self.engine(), count as usize);
        Ok(())
    }

    fn change_caches(&self, change: &CacheChange) -> Result<()> {
        verbs::change_caches(self, *change)
    }

    fn drain(&self) -> Result<()> {
        verbs::drain(self)
    }

    fn change_transport(&self, change: TransportChange) -> Result<()> {
        verbs::change_transport(self, change)
    }

    fn snapshots(&self) -> Result<Vec<SnapshotInfo>> {
        verbs::snapshots(self)
    }

    fn take_snapshot(&self, request: &SnapshotRequest) -> Result<()> {
        verbs::take_snapshot(self, request)
    }

    fn clear_snapshots(&self, name: Option<&str>, keyspaces: &[String]) -> Result<()> {
        verbs::clear_snapshots(self, name, keyspaces)
    }

    fn trace_probability(&self) -> Result<f64> {
        Ok(self.services.trace_probability())
    }

    fn set_trace_probability(&self, probability: f64) -> Result<()> {
        if !(0.0..=1.0).contains(&probability) {
            return invalid("Trace probability must be between 0 and 1");
        }
        self.services.set_trace_probability(probability);
        Ok(())
    }

    fn timeout(&self, kind: TimeoutKind) -> Result<u64> {
        let timeouts = self.services.node.timeouts();
        let timeout = match kind {
            TimeoutKind::Read => timeouts.read,
            TimeoutKind::Range => timeouts.range,
            TimeoutKind::Write => timeouts.write,
            TimeoutKind::CounterWrite => timeouts.counter_write,
            TimeoutKind::CasContention => timeouts.cas_contention,
            TimeoutKind::Truncate => timeouts.truncate,
            TimeoutKind::Misc => timeouts.misc,
        };
        Ok(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX))
    }

    fn set_timeout(&self, kind: TimeoutKind, millis: u64) -> Result<()> {
        let node = &self.services.node;
        let mut timeouts = node.timeouts();
        let timeout = match kind {
            TimeoutKind::Read => &mut timeouts.read,
            TimeoutKind::Range => &mut timeouts.range,
            TimeoutKind::Write => &mut timeouts.write,
            TimeoutKind::CounterWrite => &mut timeouts.counter_write,
            TimeoutKind::CasContention => &mut timeouts.cas_contention,
            TimeoutKind::Truncate => &mut timeouts.truncate,
            TimeoutKind::Misc => &mut timeouts.misc,
        };
        *timeout = Duration::from_millis(millis);
        node.set_timeouts(timeouts);
        Ok(())
    }

    fn compaction_throughput(&self) -> Result<u64> {
        Ok(self.engine().compaction_rate())
    }

    fn set_compaction_throughput(&self, bytes_a_second: u64) -> Result<()> {
        self.engine().set_compaction_rate(bytes_a_second);
        Ok(())
    }

    fn sample(&self, request: &SampleRequest) -> Result<Samples> {
        sampling::sample(self, request)
    }

    fn schedule_sampling(&self, request: &SampleRequest, interval_millis: u64) -> Result<bool> {
        sampling::schedule(self, request, interval_millis)
    }

    fn stop_sampling(&self, keyspace: Option<&str>, table: Option<&str>) -> Result<bool> {
        Ok(sampling::stop(self, keyspace, table))
    }

    fn sampling_jobs(&self) -> Result<Vec<(String, String)>> {
        Ok(sampling::jobs(self))
    }

    fn logging_levels(&self) -> Result<Vec<(String, String)>> {
        Ok(self.services.logging_levels())
    }

    fn set_logging_level(&self, logger: &str, level: &str) -> Result<()> {
        let set = self.set_level.as_ref().ok_or_else(|| failed("the log's levels are fixed"))?;
        set(logger, level).map_err(AdminError::Invalid)?;
        self.services.note_logging_level(logger, level);
        Ok(())
    }
}
