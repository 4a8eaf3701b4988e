//! What the node answers its operator: [`AdminApi`] over the running node.
//!
//! Calls block and run on the blocking pool. Figures of tables are in [`tables`], verbs that do something in [`verbs`].

mod tables;
mod verbs;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use admin::api::Result;
use admin::model::{
    CacheInfo, ClientLatencies, CommitLogMetrics, CompactionHistoryEntry, CompactionStats, HistogramData, KeyspaceInfo,
    NodeInfo, NodeMetrics, PoolStats, RunningCompaction, SnapshotInfo, SnapshotRequest, TableSelection, TableStats,
};
use admin::{AdminApi, AdminError, TimeoutKind};
use cluster::clock::uuid_text;
use cluster::identity::{PARTITIONER, RELEASE_VERSION};

use crate::services::Services;
use crate::stats::WorkerStats;

/// Sets a logger's level; without a level, back to the start. Belongs to the program, which owns the log.
pub type SetLevel = dyn Fn(&str, &str) -> std::result::Result<(), String> + Send + Sync;

/// The node, as its operator sees it.
pub struct Operator {
    services: Arc<Services>,
    workers: Vec<Arc<WorkerStats>>,
    memory_max: u64,
    set_level: Option<Arc<SetLevel>>,
}

impl Operator {
    /// Of a running node.
    pub fn new(
        services: Arc<Services>,
        workers: Vec<Arc<WorkerStats>>,
        memory_max: u64,
        set_level: Option<Arc<SetLevel>>,
    ) -> Self {
        Self { services, workers, memory_max, set_level }
    }

    fn engine(&self) -> &Arc<storage::Engine> {
        &self.services.node.engine
    }

    fn cache(&self) -> CacheInfo {
        let cache = &self.engine().chunk_cache;
        let ((capacity, size, entries), (hits, misses)) = (cache.usage(), cache.hits_and_misses());
        CacheInfo { entries: entries as u64, size, capacity: capacity as u64, hits, requests: hits + misses }
    }

    fn sum(&self, of: impl Fn(&WorkerStats) -> u64) -> u64 {
        self.workers.iter().map(|stats| of(stats)).sum()
    }

    /// A word of `/proc/self/status`, in bytes.
    fn resident(&self) -> u64 {
        let path = std::path::Path::new("/proc/self/status");
        let text = self.services.node.env.disk.read_all(path, 1 << 16).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()).unwrap_or(0) << 10
    }

    /// User and system time of the process, of ticks of 10 ms.
    fn cpu_millis(&self) -> u64 {
        let path = std::path::Path::new("/proc/self/stat");
        let text = self.services.node.env.disk.read_all(path, 1 << 16).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        // behind the name, which may hold anything
        let fields = text.rsplit(") ").next().unwrap_or_default().split(' ');
        let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        ticks * 10
    }
}

/// Waits for a future on a thread of the blocking pool.
pub(crate) fn wait<F: Future>(future: F) -> Result<F::Output> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.map_err(|error| AdminError::Failed(error.to_string()))?.block_on(future))
}

pub(crate) fn failed(error: impl std::fmt::Display) -> AdminError {
    AdminError::Failed(error.to_string())
}

impl AdminApi for Operator {
    fn node(&self) -> Result<NodeInfo> {
        let node = &self.services.node;
        let identity = &node.identity;
        let stores = self.engine().tables();
        let views: Vec<_> = stores.iter().map(|store| store.view()).collect();
        let sstables = || views.iter().flat_map(|view| &view.sstables);
        let draining = self.engine().is_draining();
        Ok(NodeInfo {
            host_id: uuid_text(&identity.host_id),
            cluster_name: identity.cluster_name.clone(),
            release_version: RELEASE_VERSION.to_owned(),
            helenus_version: env!("CARGO_PKG_VERSION").to_owned(),
            snitch: "org.apache.cassandra.locator.SimpleSnitch".to_owned(),
            partitioner: PARTITIONER.to_owned(),
            data_center: identity.data_center.clone(),
            rack: identity.rack.clone(),
            address: identity.broadcast.ip().to_string(),
            storage_port: identity.broadcast.port(),
            rpc_address: identity.native.ip().to_string(),
            native_port: identity.native.port(),
            gossip_active: true,
            native_transport_active: !draining,
            mode: if draining { "DRAINED" } else { "NORMAL" }.to_owned(),
            schema_version: uuid_text(&node.schema().version),
            load: sstables().map(|sstable| sstable.stored_length()).sum(),
            uncompressed_load: sstables().map(|sstable| sstable.data_length()).sum(),
            generation: i64::from(identity.generation),
            uptime_seconds: self.services.uptime_seconds(),
            memory_used: self.resident(),
            memory_max: self.memory_max,
            exceptions: self.sum(|stats| stats.panics.get()),
            chunk_cache: self.cache(),
            percent_repaired: 100.0,
            tokens: identity.tokens.iter().map(|token| token.0).collect(),
            bootstrap_state: "COMPLETED".to_owned(),
        })
    }

    fn keyspaces(&self) -> Result<Vec<KeyspaceInfo>> {
        let schema = self.services.node.schema();
        let stored = schema.keyspaces.values().filter(|keyspace| !keyspace.is_virtual);
        Ok(stored
            .map(|keyspace| KeyspaceInfo {
                name: keyspace.name.clone(),
                replication_class: keyspace.replication.short_class().to_owned(),
                replication_options: keyspace.replication.options.clone().into_iter().collect(),
                tables: keyspace.tables.keys().cloned().collect(),
            })
            .collect())
    }

    fn tables(&self) -> Result<Vec<TableStats>> {
        Ok(self.engine().tables().iter().map(|store| tables::stats(self.engine(), store)).collect())
    }

    fn client_latencies(&self) -> Result<ClientLatencies> {
        let requests = &self.services.requests;
        let mut write: HistogramData = requests.write.snapshot().into();
        let batch = requests.batch.snapshot();
        write.sum += batch.sum;
        write.buckets.iter_mut().zip(&batch.buckets).for_each(|(count, more)| *count += more);
        // range reads are counted among the reads; there are no lightweight transactions and no views yet
        let none = || HistogramData::from(metrics::Histogram::default().snapshot());
        Ok(ClientLatencies {
            read: requests.read.snapshot().into(),
            write,
            range: none(),
            cas_read: none(),
            cas_write: none(),
            view_write: none(),
        })
    }

    fn compactions(&self) -> Result<CompactionStats> {
        let engine = self.engine();
        let completed = engine.compactions.completed.load(Ordering::Relaxed);
        let running = engine.compactions.running();
        Ok(CompactionStats {
            concurrent_compactors: u32::try_from(engine.options.concurrent_compactors).unwrap_or(u32::MAX),
            completed,
            bytes_compacted: engine.compactions.bytes_compacted.load(Ordering::Relaxed),
            mean_rate: completed as f64 / self.services.uptime_seconds().max(1) as f64,
            throughput: engine.compaction_rate(),
            running: running
                .iter()
                .map(|task| RunningCompaction {
                    id: uuid_text(&task.id),
                    kind: task.kind.to_owned(),
                    keyspace: task.keyspace.clone(),
                    table: task.table.clone(),
                    completed: task.done.load(Ordering::Relaxed),
                    total: task.total,
                    sstables: task.sstables as u64,
                })
                .collect(),
            ..CompactionStats::default()
        })
    }

    fn compaction_history(&self) -> Result<Vec<CompactionHistoryEntry>> {
        let history = self.engine().compactions.history();
        Ok(history
            .into_iter()
            .map(|ended| CompactionHistoryEntry {
                id: uuid_text(&ended.id),
                keyspace: ended.keyspace,
                table: ended.table,
                compacted_at: ended.at_millis,
                bytes_in: ended.bytes_in,
                bytes_out: ended.bytes_out,
                rows_merged: Vec::new(),
                properties: vec![("compaction_type".to_owned(), "COMPACTION".to_owned())],
            })
            .collect())
    }

    fn pools(&self) -> Result<Vec<PoolStats>> {
        let requests = &self.services.requests;
        let (reads, writes) = (requests.read.snapshot().count(), requests.write.snapshot().count());
        let all = self.sum(|stats| stats.requests.get());
        let engine = self.engine();
        let (running, compacted) =
            (engine.compactions.running().len(), engine.compactions.completed.load(Ordering::Relaxed));
        let pool = |name: &str, active: usize, pending: usize, completed: u64| PoolStats {
            name: name.to_owned(),
            active: active as u64,
            pending: pending as u64,
            completed,
            blocked: 0,
            all_time_blocked: 0,
        };
        Ok(vec![
            pool("CompactionExecutor", running, 0, compacted),
            pool("MemtableFlushWriter", 0, engine.flusher.pending(), 0),
            pool("MutationStage", 0, 0, writes),
            pool("Native-Transport-Requests", 0, 0, all),
            pool("ReadStage", 0, 0, reads),
        ])
    }

    fn metrics(&self) -> Result<NodeMetrics> {
        let (requests, engine) = (&self.services.requests, self.engine());
        let log = engine.log.stats();
        let (prepared_statements, prepared_statements_evicted) = self.services.prepared.count_and_evicted();
        let (memtables, _) = engine.memory.usage();
        let count = |histogram: &metrics::Histogram| histogram.snapshot().count();
        let named = |pairs: &[(&str, u64)]| pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        Ok(NodeMetrics {
            connections: self.sum(|stats| stats.connections.get()),
            connections_total: self.sum(|stats| stats.accepted.get()),
            requests: named(&[
                ("QUERY", requests.regular_statements.get()),
                ("PREPARE", count(&requests.prepare)),
                ("EXECUTE", requests.prepared_statements.get()),
                ("BATCH", count(&requests.batch)),
            ]),
            errors: named(&[
                ("Unavailable", requests.unavailable.get()),
                ("Timeout", requests.timeouts.get()),
                ("Failure", requests.failures.get()),
                ("Overloaded", self.sum(|stats| stats.overloaded.get())),
                ("Protocol", self.sum(|stats| stats.protocol_errors.get())),
                ("All", requests.errors.get()),
            ]),
            received_bytes: self.sum(|stats| stats.bytes_read.get()),
            sent_bytes: self.sum(|stats| stats.bytes_written.get()),
            prepared_statements,
            prepared_statements_evicted,
            commitlog: CommitLogMetrics {
                size: log.size,
                segments: log.segments,
                syncs: log.syncs,
                pending: log.waiting,
                waiting_on_commit: metrics::Histogram::default().snapshot().into(),
            },
            memory: named(&[
                ("memtables", memtables as u64),
                ("chunk_cache", engine.chunk_cache.usage().1),
                ("prepared_statements", self.services.prepared.usage().0),
                ("resident", self.resident()),
            ]),
            cpu_millis: self.cpu_millis(),
        })
    }

    fn endpoints(&self, keyspace: &str, table: &str, key: &str) -> Result<Vec<String>> {
        self.partition(keyspace, table, key)?;
        Ok(vec![self.services.node.identity.broadcast.ip().to_string()])
    }

    fn sstables(&self, keyspace: &str, table: &str, key: &str) -> Result<Vec<String>> {
        let (store, key) = self.partition(keyspace, table, key)?;
        Ok(tables::sstables_of(&store, &key))
    }

    fn flush(&self, selection: &TableSelection) -> Result<()> {
        self.flush_tables(selection)
    }

    fn compact(&self, selection: &TableSelection) -> Result<()> {
        self.compact_tables(selection)
    }

    fn drain(&self) -> Result<()> {
        wait(self.engine().drain())?.map_err(failed)
    }

    fn snapshots(&self) -> Result<Vec<SnapshotInfo>> {
        self.list_snapshots()
    }

    fn take_snapshot(&self, request: &SnapshotRequest) -> Result<()> {
        self.make_snapshot(request)
    }

    fn clear_snapshots(&self, name: Option<&str>, keyspaces: &[String]) -> Result<()> {
        self.remove_snapshots(name, keyspaces)
    }

    fn trace_probability(&self) -> Result<f64> {
        Ok(self.services.trace_probability())
    }

    fn set_trace_probability(&self, probability: f64) -> Result<()> {
        self.services.set_trace_probability(probability);
        Ok(())
    }

    fn timeout(&self, kind: TimeoutKind) -> Result<u64> {
        let (now, configured) = (self.services.node.timeouts(), &self.services.config.timeouts);
        let timeout = match kind {
            TimeoutKind::Read => now.read,
            TimeoutKind::Range => now.range,
            TimeoutKind::Write => now.write,
            TimeoutKind::Truncate => now.truncate,
            TimeoutKind::CounterWrite => configured.counter_write,
            TimeoutKind::CasContention => configured.cas_contention,
            TimeoutKind::Misc => configured.request,
        };
        Ok(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX))
    }

    fn set_timeout(&self, kind: TimeoutKind, millis: u64) -> Result<()> {
        let mut timeouts = self.services.node.timeouts();
        let place = match kind {
            TimeoutKind::Read => &mut timeouts.read,
            TimeoutKind::Range => &mut timeouts.range,
            TimeoutKind::Write => &mut timeouts.write,
            TimeoutKind::Truncate => &mut timeouts.truncate,
            TimeoutKind::CounterWrite | TimeoutKind::CasContention | TimeoutKind::Misc => {
                return Err(AdminError::Failed(format!("nothing takes the timeout {} yet", kind.name())));
            }
        };
        *place = Duration::from_millis(millis);
        self.services.node.set_timeouts(timeouts);
        Ok(())
    }

    fn compaction_throughput(&self) -> Result<u64> {
        Ok(self.engine().compaction_rate())
    }

    fn set_compaction_throughput(&self, bytes_a_second: u64) -> Result<()> {
        self.engine().set_compaction_rate(bytes_a_second);
        Ok(())
    }

    fn logging_levels(&self) -> Result<Vec<(String, String)>> {
        Ok(self.services.logging_levels())
    }

    fn set_logging_level(&self, logger: &str, level: &str) -> Result<()> {
        let set = self.set_level.as_ref().ok_or_else(|| AdminError::Failed("the log's levels are fixed".to_owned()))?;
        set(logger, level).map_err(AdminError::Invalid)?;
        self.services.note_logging_level(logger, level);
        Ok(())
    }
}
