//! State that all requests share, on all workers: the node, prepared statements, events, limits,
//! figures.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use cluster::{Node, ResultRoom};
use config::Config;
use metrics::{Counter, Histogram, Snapshot};

use crate::auth::Auth;
use crate::certificates::Certificates;
use crate::log_lines::LogLines;
use crate::otlp::Otlp;
use crate::prepared::PreparedStatements;
use crate::slow_log::SlowLog;
use native::{ConnectionRegistry, EventHub};

/// State that all requests share.
pub struct Services {
    /// The node.
    pub node: Arc<Node>,
    /// The configuration that the node was started with.
    pub config: Config,
    /// Roles and permissions; `None`: clients need not log in and may do everything.
    pub auth: Option<Arc<Auth>>,
    /// The compaction parameters, as they are stored, of a table that is created without
    /// `compaction`.
    pub default_compaction: Arc<BTreeMap<String, String>>,
    /// Keys and certificates that are read again while the node runs.
    pub certificates: Arc<Certificates>,
    /// The schedule of repairs as it is set now; `config` has that of the start.
    pub auto_repair: Mutex<config::AutoRepair>,
    /// The way of spans to a collector. Set at the start; None: spans are not exported.
    pub otlp: Option<Arc<Otlp>>,
    /// Sends events to the clients that have registered for them.
    pub events: Arc<EventHub>,
    /// Statements that EXECUTE finds by id.
    pub prepared: PreparedStatements,
    /// The memory that large results may take until they are sent.
    pub results: Arc<ResultRoom>,
    /// Thresholds for statements.
    pub limits: cql::Limits,
    /// The guardrails as they are now; `config` has those of the start.
    pub guardrails: crate::guardrails::ActiveGuardrails,
    /// Figures of requests.
    pub requests: RequestMetrics,
    /// Statements that took long.
    pub(crate) slow: SlowLog,
    /// The last lines of the log.
    pub log: Arc<LogLines>,
    /// `nodetool settraceprobability`, as the bits of an f64.
    trace_probability: AtomicU64,
    begun: env::Instant,
    /// The loggers whose level was changed since the start, each with its level.
    logging_levels: Mutex<BTreeMap<String, String>>,
    /// Open connections; set once the native transport runs.
    connections: OnceLock<Arc<ConnectionRegistry>>,
}

/// Figures of requests. Latencies in microseconds, from the arrival of the frame to the answer.
#[derive(Default)]
pub struct RequestMetrics {
    /// SELECT of partitions by their keys.
    pub read: Histogram,
    /// SELECT of ranges.
    pub range: Histogram,
    /// INSERT, UPDATE, DELETE.
    pub write: Histogram,
    /// Conditional statements and batches.
    pub cas_write: Histogram,
    /// SELECT at SERIAL and LOCAL_SERIAL. They count as reads, too.
    pub cas_read: Histogram,
    /// BATCH messages.
    pub batch: Histogram,
    /// PREPARE.
    pub prepare: Histogram,
    /// Schema changes, USE and the like.
    pub other: Histogram,
    /// Partitions of logged batches.
    pub logged_batch_partitions: Histogram,
    /// Partitions of unlogged batches.
    pub unlogged_batch_partitions: Histogram,
    /// Partitions of counter batches.
    pub counter_batch_partitions: Histogram,
    /// QUERY messages.
    pub regular_statements: Counter,
    /// EXECUTE messages.
    pub prepared_statements: Counter,
    /// BATCH messages.
    pub batch_messages: Counter,
    /// Requests refused as UNAVAILABLE (error code 0x1000).
    pub unavailable: Counter,
    /// Requests answered with WRITE_TIMEOUT or READ_TIMEOUT (error codes 0x1100 and 0x1200).
    pub timeouts: Counter,
    /// Requests answered with READ_FAILURE or WRITE_FAILURE (error codes 0x1300 and 0x1500).
    pub failures: Counter,
    /// Requests answered with OVERLOADED (error code 0x1001) after their execution had begun, for
    /// instance because too many reads wait for the disk. Requests that were refused before are
    /// counted by the workers.
    pub overloaded: Counter,
    /// Requests answered with SERVER_ERROR (error code 0x0000): the fault is not the client's.
    pub server_errors: Counter,
    /// Requests answered with any other error.
    pub other_errors: Counter,
}

impl RequestMetrics {
    /// Requests answered by an error.
    pub fn errors(&self) -> u64 {
        let of_replicas = [&self.unavailable, &self.timeouts, &self.failures];
        let others = [&self.overloaded, &self.server_errors, &self.other_errors];
        of_replicas.into_iter().chain(others).map(Counter::get).sum()
    }

    /// Requests that read data.
    pub(crate) fn reads(&self) -> u64 {
        [&self.read, &self.range].into_iter().map(|kind| kind.snapshot().count()).sum()
    }

    /// Requests that write data, with conditions or without.
    pub(crate) fn writes(&self) -> u64 {
        [&self.write, &self.batch, &self.cas_write].into_iter().map(|kind| kind.snapshot().count()).sum()
    }

    /// The latencies of reads and writes of data together, in microseconds.
    pub(crate) fn all(&self) -> Snapshot {
        let others = [&self.range, &self.write, &self.cas_write, &self.batch];
        others.into_iter().fold(self.read.snapshot(), |sum, one| sum.with(&one.snapshot()))
    }
}

impl Services {
    /// Microseconds since `then`.
    pub(crate) fn micros_since(&self, then: env::Instant) -> u64 {
        u64::try_from(self.node.env.elapsed(then).as_micros()).unwrap_or(u64::MAX)
    }

    /// The shared state of a node.
    pub fn new(
        node: Arc<Node>,
        config: Config,
        events: Arc<EventHub>,
        prepared_bytes: u64,
        result_bytes: u64,
        log: Arc<LogLines>,
    ) -> Self {
        let thresholds = &config.thresholds;
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let limits = cql::Limits {
            batch_size_warn: size(thresholds.batch_size_warn),
            batch_size_fail: size(thresholds.batch_size_fail),
            unlogged_batch_partitions_warn: size(thresholds.unlogged_batch_across_partitions_warn),
            tombstone_warn: thresholds.tombstone_warn.unwrap_or(u64::MAX),
            tombstone_failure: thresholds.tombstone_failure.unwrap_or(u64::MAX),
            result_size_warn: thresholds.read_sizes.coordinator_warn.filter(|_| config.read_thresholds),
            result_size_fail: thresholds.read_sizes.coordinator_fail.filter(|_| config.read_thresholds),
            switches: cql::ddl::Switches {
                default_keyspace_rf: config.schema.default_keyspace_rf,
                drop_compact_storage: config.schema.drop_compact_storage,
                masking: config.schema.masking,
                views: config.schema.views,
                cdc: config.commitlog.cdc.is_some(),
                user_functions: config.schema.user_functions,
                sasi: config.schema.sasi,
            },
        };
        let function_limits = cql::UserFunctionLimits {
            enabled: config.schema.user_functions,
            fail_timeout_ms: millis(config.schema.user_functions_fail_timeout),
            warn_timeout_ms: millis(config.schema.user_functions_warn_timeout),
        };
        function_limits.put_in_force();
        let guardrails = crate::guardrails::ActiveGuardrails::new(&config);
        Self {
            begun: node.env.now(),
            node,
            slow: SlowLog::new(config.timeouts.slow_query_log),
            auto_repair: Mutex::new(config.auto_repair.clone()),
            config,
            auth: None,
            default_compaction: Arc::new(schema::TableParams::default().compaction),
            certificates: Arc::default(),
            otlp: None,
            events,
            prepared: PreparedStatements::new(prepared_bytes),
            results: Arc::new(ResultRoom::new(size(result_bytes))),
            limits,
            guardrails,
            requests: RequestMetrics::default(),
            log,
            trace_probability: AtomicU64::new(0f64.to_bits()),
            logging_levels: Mutex::default(),
            connections: OnceLock::new(),
        }
    }

    /// Sets the connections; called once the native transport runs.
    pub fn set_connections(&self, connections: Arc<ConnectionRegistry>) {
        let _ = self.connections.set(connections);
    }

    /// Open connections; None: the native transport does not run yet.
    pub fn connections(&self) -> Option<&Arc<ConnectionRegistry>> {
        self.connections.get()
    }

    /// Seconds since the start.
    pub fn uptime_seconds(&self) -> u64 {
        self.node.env.elapsed(self.begun).as_secs()
    }

    /// Loggers and their levels, the root first.
    pub fn logging_levels(&self) -> Vec<(String, String)> {
        let changed = self.logging_levels.lock().unwrap_or_else(PoisonError::into_inner);
        let root = ("ROOT".to_owned(), changed.get("ROOT").cloned().unwrap_or_else(|| "INFO".to_owned()));
        let others = changed.iter().filter(|(logger, _)| *logger != "ROOT");
        std::iter::once(root).chain(others.map(|(logger, level)| (logger.clone(), level.clone()))).collect()
    }

    /// Notes that the level of a logger was changed. An empty level: the logger has that of the
    /// start again.
    pub fn note_logging_level(&self, logger: &str, level: &str) {
        let mut changed = self.logging_levels.lock().unwrap_or_else(PoisonError::into_inner);
        match (logger, level) {
            ("", "") => changed.clear(),
            (_, "") => drop(changed.remove(logger)),
            _ => drop(changed.insert(logger.to_owned(), level.to_uppercase())),
        }
    }

    /// The share of requests that are traced without being asked to.
    pub fn trace_probability(&self) -> f64 {
        f64::from_bits(self.trace_probability.load(Ordering::Relaxed))
    }

    /// Changes the share of requests that are traced without being asked to: 0 to 1.
    pub fn set_trace_probability(&self, probability: f64) {
        self.trace_probability.store(probability.clamp(0.0, 1.0).to_bits(), Ordering::Relaxed);
    }
}

/// Whole milliseconds.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
