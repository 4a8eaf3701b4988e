//! The figures of `/metrics` under the names of Cassandra's exporters, so that dashboards which
//! were made for them go on: `/metrics?names=NAMES`.
//!
//! | names | exporter | latencies |
//! |---|---|---|
//! | `jmx_exporter` | jmx_exporter's rules for Cassandra, small letters | seconds, quantiles |
//! | `cassandra_exporter` | Instaclustr's cassandra-exporter | seconds, summaries |
//! | `mcac` | DataStax' and K8ssandra's Metric Collector (MCAC) | microseconds, histograms |
//! | `management_api` | the agent of K8ssandra's management API | microseconds, histograms |
//!
//! A name stands here if the node has the figure; nothing is made up for figures of the JVM. The
//! quantiles are those since the start, where Cassandra's decay over some minutes: a dashboard that
//! shows rates of `_count` and `_sum`, or buckets, shows what it showed.

mod management_api;

use super::{EVERY_OFFSET, EVERY_SECOND_OFFSET, Exposition, labels};
use crate::histogram::HistogramData;
use crate::verb::{AdminApi, Result};
use crate::verbs::{
    CacheInfo, ClientLatencies, CompactionStats, GetClientLatencies, GetCompactions, GetMessageCounts, GetMetrics,
    GetNode, GetPools, GetTables, MessageCounts, NodeInfo, NodeMetrics, PoolStats, TableStats,
};

pub(super) use management_api::management_api;

/// The names that figures go by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Names {
    /// Ours: docs/metrics.md.
    #[default]
    Helenus,
    /// jmx_exporter's.
    JmxExporter,
    /// Instaclustr's cassandra-exporter's.
    CassandraExporter,
    /// MCAC's.
    Mcac,
    /// The management API's.
    ManagementApi,
}

impl Names {
    /// The names of a word; None: no names are called so.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "helenus" => Some(Self::Helenus),
            "jmx_exporter" => Some(Self::JmxExporter),
            "cassandra_exporter" => Some(Self::CassandraExporter),
            "mcac" => Some(Self::Mcac),
            "management_api" => Some(Self::ManagementApi),
            _ => None,
        }
    }
}

/// All answers that the exporters' names are made of.
pub(super) struct Figures {
    node: NodeInfo,
    metrics: NodeMetrics,
    latencies: ClientLatencies,
    compactions: CompactionStats,
    messages: Vec<MessageCounts>,
    pools: Vec<PoolStats>,
    tables: Vec<TableStats>,
}

impl Figures {
    /// Asks the node.
    pub fn ask(api: &dyn AdminApi) -> Result<Self> {
        Ok(Self {
            node: api.ask(&GetNode {})?,
            metrics: api.ask(&GetMetrics {})?,
            latencies: api.ask(&GetClientLatencies {})?,
            compactions: api.ask(&GetCompactions {})?,
            messages: api.ask(&GetMessageCounts {})?,
            pools: api.ask(&GetPools {})?,
            tables: api.ask(&GetTables {})?,
        })
    }

    fn caches(&self) -> [(&'static str, &'static str, &CacheInfo); 3] {
        [
            ("KeyCache", "key_cache", &self.node.key_cache),
            ("RowCache", "row_cache", &self.node.row_cache),
            ("ChunkCache", "chunk_cache", &self.node.chunk_cache),
        ]
    }

    /// Kinds of requests: jmx_exporter's, cassandra-exporter's and MCAC's words.
    fn requests(&self) -> [([&'static str; 3], &HistogramData); 6] {
        let all = &self.latencies;
        [
            (["Read", "read", "read"], &all.read),
            (["Write", "write", "write"], &all.write),
            (["RangeSlice", "range_slice", "range_slice"], &all.range),
            (["CASRead", "cas_read", "cas_read"], &all.cas_read),
            (["CASWrite", "cas_write", "cas_write"], &all.cas_write),
            (["ViewWrite", "view_write", "view_write"], &all.view_write),
        ]
    }

    fn pending_compactions(&self) -> u64 {
        self.compactions.pending.iter().map(|(_, _, count)| count).sum()
    }
}

/// A figure of a table: its MBean, then its name for cassandra-exporter and for MCAC (empty: the
/// exporter has no such name), its kind, and the figure.
struct TableFigure {
    mbean: &'static str,
    /// The MBean is a counter, whose name ends in `_count` for jmx_exporter.
    counts: bool,
    instaclustr: &'static str,
    mcac: &'static str,
    figure: fn(&TableStats) -> f64,
}

const fn of(
    mbean: &'static str,
    counts: bool,
    instaclustr: &'static str,
    mcac: &'static str,
    figure: fn(&TableStats) -> f64,
) -> TableFigure {
    TableFigure { mbean, counts, instaclustr, mcac, figure }
}

const TABLES: &[TableFigure] = &[
    of("livesstablecount", false, "live_sstables", "live_ss_table_count", |t| t.sstable_count as f64),
    of("livediskspaceused", true, "live_disk_space_bytes", "live_disk_space_used_total", |t| t.space_used_live as f64),
    of("totaldiskspaceused", true, "disk_space_bytes", "total_disk_space_used_total", |t| t.space_used_total as f64),
    of("snapshotssize", false, "snapshots_size_bytes_total", "snapshots_size", |t| t.space_used_by_snapshots as f64),
    of("compressionratio", false, "compression_ratio", "compression_ratio", |t| t.compression_ratio),
    of("estimatedpartitioncount", false, "estimated_partitions", "estimated_partition_count", |t| {
        t.estimated_partitions as f64
    }),
    of("memtablecolumnscount", false, "memtable_columns", "memtable_columns_count", |t| t.memtable_cells as f64),
    of("memtablelivedatasize", false, "memtable_live_bytes", "memtable_live_data_size", |t| {
        t.memtable_data_size as f64
    }),
    of("memtableswitchcount", true, "memtable_switches", "memtable_switch_count_total", |t| {
        t.memtable_switch_count as f64
    }),
    of("pendingflushes", true, "pending_flushes", "pending_flushes_total", |t| t.pending_flushes as f64),
    of("pendingcompactions", false, "estimated_pending_compactions", "pending_compactions", |t| {
        t.pending_compactions as f64
    }),
    of("bytesflushed", true, "flushed_bytes_total", "bytes_flushed_total", |t| t.bytes_flushed as f64),
    of("compactionbyteswritten", true, "compaction_bytes_written_total", "compaction_bytes_written_total", |t| {
        t.bytes_compacted as f64
    }),
    of("maxpartitionsize", false, "partition_size_maximum_bytes", "max_partition_size", |t| {
        t.max_partition_size as f64
    }),
    of("meanpartitionsize", false, "partition_size_mean_bytes", "mean_partition_size", |t| {
        t.mean_partition_size as f64
    }),
    of("minpartitionsize", false, "partition_size_minimum_bytes", "min_partition_size", |t| {
        t.min_partition_size as f64
    }),
    of("bloomfilterfalsepositives", false, "bloom_filter_false_positives_total", "bloom_filter_false_positives", |t| {
        t.bloom_filter_false_positives as f64
    }),
    of("bloomfilterfalseratio", false, "bloom_filter_false_ratio", "bloom_filter_false_ratio", |t| {
        t.bloom_filter_false_ratio
    }),
    of("bloomfilterdiskspaceused", false, "bloom_filter_disk_space_used_bytes", "bloom_filter_disk_space_used", |t| {
        t.bloom_filter_space_used as f64
    }),
    of("percentrepaired", false, "", "percent_repaired", |t| t.percent_repaired),
];

type OfTable = fn(&TableStats) -> &HistogramData;

/// Latencies of a table: MBean, cassandra-exporter's operation, MCAC's name.
const LATENCIES: &[(&str, &str, &str, OfTable)] = &[
    ("readlatency", "read", "read_latency", |t| &t.read_latency),
    ("writelatency", "write", "write_latency", |t| &t.write_latency),
    ("rangelatency", "range_read", "range_latency", |t| &t.range_latency),
    ("caspreparelatency", "cas_prepare", "cas_prepare_latency", |t| &t.cas_prepare_latency),
    ("casproposelatency", "cas_propose", "cas_propose_latency", |t| &t.cas_propose_latency),
    ("cascommitlatency", "cas_commit", "cas_commit_latency", |t| &t.cas_commit_latency),
];

/// Counts a read of a table, with the names as above.
const COUNTS: &[(&str, &str, &str, OfTable)] = &[
    ("sstablesperreadhistogram", "sstables_per_read", "ss_tables_per_read_histogram", |t| &t.sstables_per_read),
    ("tombstonescannedhistogram", "tombstones_scanned", "tombstone_scanned_histogram", |t| &t.tombstones_per_read),
    ("livescannedhistogram", "live_rows_scanned", "live_scanned_histogram", |t| &t.live_rows_per_read),
];

const MICROS: f64 = 1e6;

/// Writes the figures under jmx_exporter's names.
pub(super) fn jmx_exporter(figures: &Figures, out: &mut Exposition) {
    let gauge =
        |out: &mut Exposition, name: &str, value: f64| out.one(name, "gauge", "As jmx_exporter names it.", value);
    gauge(out, "cassandra_storage_load_count", figures.node.load as f64);
    gauge(out, "cassandra_storage_exceptions_count", figures.node.exceptions as f64);
    gauge(out, "cassandra_client_connectednativeclients", figures.metrics.connections as f64);
    gauge(out, "cassandra_compaction_pendingtasks", figures.pending_compactions() as f64);
    gauge(out, "cassandra_compaction_completedtasks", figures.compactions.completed as f64);
    gauge(out, "cassandra_compaction_bytescompacted_count", figures.compactions.bytes_compacted as f64);
    gauge(out, "cassandra_compaction_totalcompactionscompleted_count", figures.compactions.completed as f64);
    gauge(out, "cassandra_compaction_compactionsaborted_count", figures.compactions.aborted as f64);
    gauge(out, "cassandra_commitlog_totalcommitlogsize", figures.metrics.commitlog.size as f64);
    gauge(out, "cassandra_commitlog_pendingtasks", figures.metrics.commitlog.pending as f64);
    gauge(out, "cassandra_cql_preparedstatementscount", figures.metrics.prepared_statements as f64);
    gauge(out, "cassandra_cql_preparedstatementsevicted_count", figures.metrics.prepared_statements_evicted as f64);
    let waiting = [(Vec::new(), &figures.metrics.commitlog.waiting_on_commit)];
    quantiles("cassandra_commitlog_waitingoncommit_seconds", MICROS, &waiting, out);
    type OfCache = fn(&CacheInfo) -> u64;
    let of_caches: [(&str, OfCache); 5] = [
        ("cassandra_cache_entries", |cache| cache.entries),
        ("cassandra_cache_size", |cache| cache.size),
        ("cassandra_cache_capacity", |cache| cache.capacity),
        ("cassandra_cache_hits_count", |cache| cache.hits),
        ("cassandra_cache_requests_count", |cache| cache.requests),
    ];
    for (name, figure) in of_caches {
        let mut family = out.family(name, "gauge", "As jmx_exporter names it.");
        for (cache, _, info) in figures.caches() {
            family.sample("", &[("cache", cache)], figure(info) as f64);
        }
    }
    let mut dropped = out.family("cassandra_droppedmessage_dropped_count", "gauge", "As jmx_exporter names it.");
    for one in &figures.messages {
        dropped.sample("", &[("droppedmessage", &one.verb)], one.dropped as f64);
    }
    drop(dropped);
    type OfPool = fn(&PoolStats) -> u64;
    let of_pools: [(&str, OfPool); 5] = [
        ("cassandra_threadpools_activetasks", |pool| pool.active),
        ("cassandra_threadpools_pendingtasks", |pool| pool.pending),
        ("cassandra_threadpools_completedtasks", |pool| pool.completed),
        ("cassandra_threadpools_currentlyblockedtasks_count", |pool| pool.blocked),
        ("cassandra_threadpools_totalblockedtasks_count", |pool| pool.all_time_blocked),
    ];
    for (name, figure) in of_pools {
        let mut family = out.family(name, "gauge", "As jmx_exporter names it.");
        for pool in &figures.pools {
            family.sample("", &[("threadpools", &pool.name)], figure(pool) as f64);
        }
    }
    let requests: Vec<_> =
        figures.requests().map(|([name, ..], data)| (vec![("clientrequest", name)], data)).into_iter().collect();
    quantiles("cassandra_clientrequest_latency_seconds", MICROS, &requests, out);
    for one in TABLES {
        let end = if one.counts { "_count" } else { "" };
        let mut family =
            out.family(&format!("cassandra_table_{}{end}", one.mbean), "gauge", "As jmx_exporter names it.");
        figures.tables.iter().for_each(|table| family.sample("", &labels(table), (one.figure)(table)));
    }
    let of_tables = |histogram: OfTable| {
        figures.tables.iter().map(|table| (labels(table).to_vec(), histogram(table))).collect::<Vec<_>>()
    };
    for (mbean, _, _, histogram) in LATENCIES {
        quantiles(&format!("cassandra_table_{mbean}_seconds"), MICROS, &of_tables(*histogram), out);
    }
    for (mbean, _, _, histogram) in COUNTS {
        quantiles(&format!("cassandra_table_{mbean}"), 1.0, &of_tables(*histogram), out);
    }
}

/// Writes the figures under the names of Instaclustr's cassandra-exporter.
pub(super) fn cassandra_exporter(figures: &Figures, out: &mut Exposition) {
    const HELP: &str = "As cassandra-exporter names it.";
    let (node, metrics) = (&figures.node, &figures.metrics);
    for (name, kind, value) in [
        ("cassandra_storage_load_bytes", "gauge", node.load),
        ("cassandra_storage_exceptions_total", "counter", node.exceptions),
        ("cassandra_client_native_connections", "gauge", metrics.connections),
        ("cassandra_cql_prepared_statements", "gauge", metrics.prepared_statements),
        ("cassandra_cql_prepared_statements_evicted_total", "counter", metrics.prepared_statements_evicted),
        ("cassandra_commit_log_size_bytes", "gauge", metrics.commitlog.size),
        ("cassandra_commit_log_pending_tasks", "gauge", metrics.commitlog.pending),
        ("cassandra_compaction_bytes_compacted_total", "counter", figures.compactions.bytes_compacted),
        ("cassandra_compaction_completed_tasks_total", "counter", figures.compactions.completed),
        ("cassandra_compaction_completed_total", "counter", figures.compactions.completed),
    ] {
        out.one(name, kind, HELP, value as f64);
    }
    summaries(
        "cassandra_commit_log_commit_latency_seconds",
        MICROS,
        &[(Vec::new(), &metrics.commitlog.waiting_on_commit)],
        out,
    );
    type OfCache = fn(&CacheInfo) -> u64;
    let of_caches: [(&str, &str, OfCache); 5] = [
        ("cassandra_cache_entries", "gauge", |cache| cache.entries),
        ("cassandra_cache_estimated_size_bytes", "gauge", |cache| cache.size),
        ("cassandra_cache_capacity_bytes", "gauge", |cache| cache.capacity),
        ("cassandra_cache_hits_total", "counter", |cache| cache.hits),
        ("cassandra_cache_requests_total", "counter", |cache| cache.requests),
    ];
    for (name, kind, figure) in of_caches {
        let mut family = out.family(name, kind, HELP);
        for (_, cache, info) in figures.caches() {
            family.sample("", &[("cache", cache)], figure(info) as f64);
        }
    }
    let mut dropped = out.family("cassandra_dropped_messages_total", "counter", HELP);
    for one in &figures.messages {
        dropped.sample("", &[("message_type", &one.verb)], one.dropped as f64);
    }
    drop(dropped);
    let requests: Vec<_> =
        figures.requests().map(|([_, name, _], data)| (vec![("operation", name)], data)).into_iter().collect();
    summaries("cassandra_client_request_latency_seconds", MICROS, &requests, out);
    for one in TABLES.iter().filter(|one| !one.instaclustr.is_empty()) {
        let kind = if one.instaclustr.ends_with("_total") { "counter" } else { "gauge" };
        let mut family = out.family(&format!("cassandra_table_{}", one.instaclustr), kind, HELP);
        figures.tables.iter().for_each(|table| family.sample("", &labels(table), (one.figure)(table)));
    }
    let mut operations = Vec::new();
    for (_, operation, _, histogram) in LATENCIES {
        for table in &figures.tables {
            let mut labels = labels(table).to_vec();
            labels.push(("operation", operation));
            operations.push((labels, histogram(table)));
        }
    }
    summaries("cassandra_table_operation_latency_seconds", MICROS, &operations, out);
    for (_, name, _, histogram) in COUNTS {
        let series: Vec<_> = figures.tables.iter().map(|table| (labels(table).to_vec(), histogram(table))).collect();
        summaries(&format!("cassandra_table_{name}"), 1.0, &series, out);
    }
}

/// Writes the figures under MCAC's names, with the labels by which its dashboards choose a node.
pub(super) fn mcac(figures: &Figures, out: &mut Exposition) {
    const HELP: &str = "As MCAC names it.";
    let (node, metrics) = (&figures.node, &figures.metrics);
    let place = [
        ("cluster", node.cluster_name.as_str()),
        ("dc", node.data_center.as_str()),
        ("rack", node.rack.as_str()),
        ("instance", node.address.as_str()),
    ];
    let with = |more: &[(&'static str, &'static str)]| place.iter().chain(more).copied().collect::<Vec<_>>();
    for (name, kind, value) in [
        ("mcac_storage_load_total", "gauge", node.load),
        ("mcac_storage_exceptions_total", "counter", node.exceptions),
        ("mcac_client_connected_native_clients", "gauge", metrics.connections),
        ("mcac_compaction_pending_tasks", "gauge", figures.pending_compactions()),
        ("mcac_compaction_completed_tasks", "counter", figures.compactions.completed),
        ("mcac_compaction_bytes_compacted_total", "counter", figures.compactions.bytes_compacted),
        ("mcac_compaction_compactions_aborted_total", "counter", figures.compactions.aborted),
        ("mcac_commit_log_total_commit_log_size", "gauge", metrics.commitlog.size),
        ("mcac_commit_log_pending_tasks", "gauge", metrics.commitlog.pending),
    ] {
        out.family(name, kind, HELP).sample("", &place, value as f64);
    }
    out.family("mcac_commit_log_waiting_on_commit", "histogram", HELP).histogram(
        &place,
        &metrics.commitlog.waiting_on_commit,
        1.0,
        EVERY_OFFSET,
    );
    let mut latencies = out.family("mcac_client_request_latency", "histogram", HELP);
    for ([_, _, name], data) in figures.requests() {
        latencies.histogram(&with(&[("request_type", name)]), data, 1.0, EVERY_OFFSET);
    }
    drop(latencies);
    let of_table = |table| {
        let labels = labels(table);
        place.into_iter().chain(labels).collect::<Vec<(&str, &str)>>()
    };
    for one in TABLES {
        let kind = if one.counts { "counter" } else { "gauge" };
        let mut family = out.family(&format!("mcac_table_{}", one.mcac), kind, HELP);
        figures.tables.iter().for_each(|table| family.sample("", &of_table(table), (one.figure)(table)));
    }
    let latencies = LATENCIES.iter().map(|one| (one, EVERY_SECOND_OFFSET));
    for ((_, _, name, histogram), step) in latencies.chain(COUNTS.iter().map(|one| (one, EVERY_OFFSET))) {
        let mut family = out.family(&format!("mcac_table_{name}"), "histogram", HELP);
        for table in &figures.tables {
            family.histogram(&of_table(table), histogram(table), 1.0, step);
        }
    }
}

/// The quantiles that Cassandra's MBeans have.
const QUANTILES: [(&str, f64); 6] =
    [("0.50", 0.5), ("0.75", 0.75), ("0.95", 0.95), ("0.98", 0.98), ("0.99", 0.99), ("0.999", 0.999)];

type Series<'a> = (Vec<(&'a str, &'a str)>, &'a HistogramData);

/// Quantiles as gauges, with families for sum and count, as jmx_exporter has them.
fn quantiles(name: &str, units: f64, series: &[Series<'_>], out: &mut Exposition) {
    const HELP: &str = "As jmx_exporter names it.";
    let mut family = out.family(name, "gauge", HELP);
    series.iter().for_each(|one| family.quantiles(one, units));
    drop(family);
    let mut family = out.family(&format!("{name}_count"), "gauge", HELP);
    series.iter().for_each(|(labels, data)| family.sample("", labels, data.count() as f64));
    drop(family);
    let mut family = out.family(&format!("{name}_sum"), "gauge", HELP);
    series.iter().for_each(|(labels, data)| family.sample("", labels, data.sum as f64 / units));
}

/// Quantiles with sum and count as a Prometheus summary.
fn summaries(name: &str, units: f64, series: &[Series<'_>], out: &mut Exposition) {
    let mut family = out.family(name, "summary", "As cassandra-exporter names it.");
    for one in series {
        family.quantiles(one, units);
        family.sample("_sum", &one.0, one.1.sum as f64 / units);
        family.sample("_count", &one.0, one.1.count() as f64);
    }
}

impl super::Family<'_> {
    fn quantiles(&mut self, (labels, data): &Series<'_>, units: f64) {
        for (name, share) in QUANTILES {
            let mut labels = labels.clone();
            labels.push(("quantile", name));
            self.sample("", &labels, data.percentile(share) as f64 / units);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::fake;

    fn text(names: Names) -> String {
        String::from_utf8(super::super::collect_as(&*fake(), names, &[]).expect("figures")).expect("UTF-8")
    }

    #[test]
    fn dashboards_find_their_names() {
        let (orders, of_orders) = ("keyspace=\"shop\",table=\"orders\"", "{keyspace=\"shop\",table=\"orders\"}");
        for (word, wanted) in [
            (
                "jmx_exporter",
                vec![
                    format!("cassandra_table_livesstablecount{of_orders} 1"),
                    format!("cassandra_table_readlatency_seconds_count{of_orders} 100"),
                    format!("cassandra_table_readlatency_seconds{{{orders},quantile=\"0.50\"}} 0.000149"),
                    "cassandra_client_connectednativeclients 3".to_owned(),
                    "cassandra_compaction_completedtasks 4".to_owned(),
                ],
            ),
            (
                "cassandra_exporter",
                vec![
                    format!("cassandra_table_live_sstables{of_orders} 1"),
                    format!("cassandra_table_operation_latency_seconds_count{{{orders},operation=\"read\"}} 100"),
                    "cassandra_client_native_connections 3".to_owned(),
                    "cassandra_dropped_messages_total{message_type=\"READ_REQ\"} 2".to_owned(),
                ],
            ),
            ("mcac", vec![]),
        ] {
            let names = Names::parse(word).expect("names");
            let text = text(names);
            for line in wanted {
                assert!(text.lines().any(|other| other == line), "{word}: {line}\n{text}");
            }
            let mut types: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
            let all = types.len();
            types.sort_unstable();
            types.dedup();
            assert_eq!(types.len(), all, "{word}: a family stands once");
            assert!(!text.contains("NaN") && text.ends_with('\n'));
        }
        let text = text(Names::Mcac);
        let buckets = text.lines().filter(|line| line.starts_with("mcac_table_read_latency_bucket{cluster="));
        assert!(buckets.clone().count() > 1 && text.contains("mcac_table_live_ss_table_count{cluster="));
        assert!(text.contains("request_type=\"read\""));
        assert_eq!(Names::parse("nosuch"), None);
    }
}
