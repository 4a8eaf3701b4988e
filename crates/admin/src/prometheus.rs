//! `/metrics`: the node's figures in Prometheus' text form (version 0.0.4), named after Cassandra's
//! metrics; or, for a scrape that asks for it, in its protobuf form with native histograms
//! ([`protobuf`]).
//!
//! `Table.ReadLatency` becomes `cassandra_table_read_latency_seconds` with labels `keyspace` and
//! `table`; counters end in `_total`. Bounds of histograms are Cassandra's offsets: all of them, or
//! every second one for tables. A histogram with values has all of its bounds, on every node and at
//! every time. Otherwise a sum over nodes would lack the values of those that never were slow
//! behind their last bound, and quantiles of the sum would be far too great.

mod exporters;
mod protobuf;

use std::fmt::Write;

use crate::histogram::HistogramData;
use crate::verb::{AdminApi, Result};
use crate::verbs::{
    CacheInfo, CasCounts, CasKindCounts, ForeignRequests, GetClientLatencies, GetCompactions, GetMessageCounts,
    GetMessages, GetMetrics, GetNode, GetTables, HintCounts, MessageCounts, ReadRepairCounts, RepairFigures,
    ReplayMetrics, TableStats,
};

use exporters::Figures;
pub use exporters::Names;
use protobuf::MetricFamily;

/// Offsets between two bounds of a histogram of the whole node.
const EVERY_OFFSET: usize = 1;
/// As [`EVERY_OFFSET`], of latencies of tables, of which there are many. Counts keep every offset:
/// between the small ones lies a factor of two.
const EVERY_SECOND_OFFSET: usize = 2;

/// The form in which figures are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// The text form.
    Text,
    /// Messages of protobuf.
    Protobuf,
}

impl Form {
    /// The form that a scrape asks for by its header `Accept`. Prometheus names the protobuf form
    /// first where native histograms are enabled, and not at all where they are not.
    pub fn of_accept(accept: &str) -> Self {
        let wanted = |range: &str| {
            let mut parts = range.split(';').map(str::trim);
            parts.next() == Some("application/vnd.google.protobuf")
                && parts.clone().any(|part| part == "proto=io.prometheus.client.MetricFamily")
                && parts.any(|part| part == "encoding=delimited")
        };
        let is_text = |range: &str| {
            let kind = range.split(';').next().map(str::trim);
            matches!(kind, Some("text/plain" | "application/openmetrics-text" | "*/*"))
        };
        let ranges: Vec<(&str, f64)> = accept.split(',').map(|range| (range, quality(range))).collect();
        let best = |is: &dyn Fn(&str) -> bool| {
            ranges.iter().filter(|(range, _)| is(range)).map(|(_, quality)| *quality).fold(0.0, f64::max)
        };
        let protobuf = best(&wanted);
        if protobuf > 0.0 && protobuf >= best(&is_text) { Self::Protobuf } else { Self::Text }
    }

    /// The content type of the form.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::Protobuf => protobuf::CONTENT_TYPE,
        }
    }
}

/// The weight of a range of `Accept`, 0 to 1.
fn quality(range: &str) -> f64 {
    let given = range.split(';').find_map(|part| part.trim().strip_prefix("q="));
    given.map_or(1.0, |text| text.trim().parse().unwrap_or(0.0))
}

/// Asks the node for everything and writes it down.
pub fn collect(api: &dyn AdminApi, form: Form) -> Result<Vec<u8>> {
    let mut out = Exposition::new(form);
    node(api, &mut out)?;
    clients(api, &mut out)?;
    compaction(api, &mut out)?;
    tables(&api.ask(&GetTables {})?, &mut out);
    Ok(out.into_bytes())
}

/// The figures under the names of one of Cassandra's exporters, as text; none of the exporters has
/// native histograms. `prefixes`: only these families, which the management API alone knows; empty:
/// all.
pub fn collect_as(api: &dyn AdminApi, names: Names, prefixes: &[String]) -> Result<Vec<u8>> {
    let figures = Figures::ask(api)?;
    let mut out = Exposition::new(Form::Text);
    match names {
        Names::Helenus => return collect(api, Form::Text),
        Names::JmxExporter => exporters::jmx_exporter(&figures, &mut out),
        Names::CassandraExporter => exporters::cassandra_exporter(&figures, &mut out),
        Names::Mcac => exporters::mcac(&figures, &mut out),
        Names::ManagementApi => return Ok(exporters::management_api(&figures, prefixes)),
    }
    Ok(out.into_bytes())
}

/// How far a start is with the commit log, in the same form.
pub fn replay(replay: &ReplayMetrics) -> Vec<u8> {
    let mut out = Exposition::new(Form::Text);
    let phase = [("what", if replay.is_schema { "schema" } else { "tables" })];
    for (name, help, value) in [
        ("cassandra_commitlog_replay_done_bytes", "Bytes of the commit log that are replayed.", replay.done),
        ("cassandra_commitlog_replay_total_bytes", "Bytes of the commit log to replay.", replay.total),
        ("cassandra_commitlog_replay_records", "Records of the commit log that are replayed.", replay.records),
    ] {
        out.family(name, "gauge", help).sample("", &phase, value as f64);
    }
    out.into_bytes()
}

fn node(api: &dyn AdminApi, out: &mut Exposition) -> Result<()> {
    let node = api.ask(&GetNode {})?;
    let version =
        [("release_version", node.release_version.as_str()), ("helenus_version", node.helenus_version.as_str())];
    out.family("cassandra_node_info", "gauge", "Versions of the node.").sample("", &version, 1.0);
    out.one("cassandra_node_uptime_seconds", "gauge", "Seconds since the start.", node.uptime_seconds as f64);
    out.one("cassandra_storage_load_bytes", "gauge", "Bytes of live SSTables.", node.load as f64);
    out.one(
        "cassandra_storage_exceptions_total",
        "counter",
        "Errors that no request reported.",
        node.exceptions as f64,
    );
    out.one("process_resident_memory_bytes", "gauge", "Resident memory.", node.memory_used as f64);
    caches(&[("chunk", &node.chunk_cache), ("key", &node.key_cache), ("row", &node.row_cache)], out);
    let metrics = api.ask(&GetMetrics {})?;
    let streams = metrics.streams;
    out.one(
        "cassandra_streaming_incoming_bytes_total",
        "counter",
        "Bytes of streams that came.",
        streams.received_bytes as f64,
    );
    out.one("cassandra_streaming_outgoing_bytes_total", "counter", "Bytes of streams sent.", streams.sent_bytes as f64);
    out.one("cassandra_streaming_sessions", "gauge", "Streaming sessions that run.", streams.running as f64);
    let ended = [("success".to_owned(), streams.completed), ("failure".to_owned(), streams.failed)];
    out.family("cassandra_streaming_sessions_ended_total", "counter", "Streaming sessions by their end.")
        .by("end", &ended);
    let help = "Files of streams that were sent again over another link.";
    out.one("cassandra_streaming_resent_files_total", "counter", help, streams.resent as f64);
    if !metrics.spans.is_empty() {
        let help = "Spans of requests, by what became of them.";
        out.family("cassandra_otlp_spans_total", "counter", help).by("end", &metrics.spans);
    }
    foreign(&metrics.foreign, out);
    repairs(metrics.repairs, out);
    hints(&metrics.hints, out);
    out.one("process_cpu_seconds_total", "counter", "CPU time used.", metrics.cpu_millis as f64 / 1000.0);
    out.family("cassandra_memory_bytes", "gauge", "Memory by what holds it.").by("what", &metrics.memory);
    let log = &metrics.commitlog;
    out.one("cassandra_commitlog_total_size_bytes", "gauge", "Bytes of the commit log's segments.", log.size as f64);
    out.one("cassandra_commitlog_segments", "gauge", "Segments of the commit log.", log.segments as f64);
    out.one("cassandra_commitlog_syncs_total", "counter", "Syncs of the commit log.", log.syncs as f64);
    out.one("cassandra_commitlog_pending_tasks", "gauge", "Records that wait for a sync.", log.pending as f64);
    out.family("cassandra_commitlog_waiting_on_commit_seconds", "histogram", "How long writes waited for a sync.")
        .latency(&[], &log.waiting_on_commit, EVERY_OFFSET);
    out.one("cassandra_client_connected_native_clients", "gauge", "Connected clients.", metrics.connections as f64);
    out.one(
        "cassandra_client_connections_total",
        "counter",
        "Connections since the start.",
        metrics.connections_total as f64,
    );
    out.one(
        "cassandra_client_received_bytes_total",
        "counter",
        "Bytes received from clients.",
        metrics.received_bytes as f64,
    );
    out.one("cassandra_client_sent_bytes_total", "counter", "Bytes sent to clients.", metrics.sent_bytes as f64);
    out.family("cassandra_client_messages_total", "counter", "Requests by opcode.").by("opcode", &metrics.requests);
    messages(api, out)?;
    read_repairs(api.ask(&GetMessages {})?.read_repairs, out);
    out.family("cassandra_client_errors_total", "counter", "Errors answered, by name.").by("error", &metrics.errors);
    let prepared = metrics.prepared_statements as f64;
    out.one("cassandra_cql_prepared_statements", "gauge", "Prepared statements in the cache.", prepared);
    let evicted = metrics.prepared_statements_evicted as f64;
    out.one("cassandra_cql_prepared_statements_evicted_total", "counter", "Prepared statements evicted.", evicted);
    Ok(())
}

/// Requests for tokens that this node has no copy of (`Storage.TotalOpsForInvalidToken`,
/// `Keyspace.ReadOutOfRangeToken` and its relatives).
fn foreign(foreign: &ForeignRequests, out: &mut Exposition) {
    let help = "Requests for tokens that the node has no copy of.";
    out.one("cassandra_storage_total_ops_for_invalid_token_total", "counter", help, foreign.total as f64);
    for (place, name, help) in [
        (0, "cassandra_keyspace_read_out_of_range_token_total", "Reads of tokens that the node has no copy of."),
        (1, "cassandra_keyspace_write_out_of_range_token_total", "Writes of tokens that the node has no copy of."),
        (2, "cassandra_keyspace_paxos_out_of_range_token_total", "Requests of Paxos for tokens of others."),
    ] {
        let mut family = out.family(name, "counter", help);
        for (keyspace, counts) in &foreign.by_keyspace {
            family.sample("", &[("keyspace", keyspace)], counts[place] as f64);
        }
    }
}

fn repairs(repairs: RepairFigures, out: &mut Exposition) {
    let ended = |well: u64, failed: u64| [("success".to_owned(), well), ("failure".to_owned(), failed)];
    out.one("cassandra_repair_running", "gauge", "Repairs that the node coordinates.", repairs.running as f64);
    out.family("cassandra_repair_ended_total", "counter", "Repairs that the node has coordinated, by their end.")
        .by("end", &ended(repairs.succeeded, repairs.failed));
    out.family("cassandra_repair_validations_total", "counter", "Validations of tables, by their end.")
        .by("end", &ended(repairs.validations, repairs.validations_failed));
    let (bytes, partitions) = (repairs.bytes_validated as f64, repairs.partitions_validated as f64);
    out.one("cassandra_repair_bytes_validated_total", "counter", "Bytes that validations have read.", bytes);
    out.one(
        "cassandra_repair_partitions_validated_total",
        "counter",
        "Partitions that validations have hashed.",
        partitions,
    );
    out.family("cassandra_repair_exchanges_total", "counter", "Exchanges of what differs, by their end.")
        .by("end", &ended(repairs.exchanges, repairs.exchanges_failed));
    out.family("cassandra_repair_scheduled_total", "counter", "Scheduled repairs, by their end.")
        .by("end", &ended(repairs.scheduled, repairs.scheduled_failed));
    out.one("cassandra_repair_scheduled_due", "gauge", "Scheduled repairs that are due.", repairs.due as f64);
    out.one(
        "cassandra_repair_scheduled_late_tables",
        "gauge",
        "Tables of which a range was not repaired within gc_grace.",
        repairs.late_tables as f64,
    );
    out.one(
        "cassandra_repair_scheduled_held_seconds_total",
        "counter",
        "Time for which latencies of clients have held scheduled repairs back.",
        repairs.held_millis as f64 / 1000.0,
    );
    let pending = repairs.pending_bytes as f64;
    out.one("cassandra_repair_pending_bytes", "gauge", "Bytes that sessions of incremental repairs have.", pending);
}

/// Hints (`HintsService.HintsSucceeded` and its relatives).
fn hints(counts: &HintCounts, out: &mut Exposition) {
    for (name, help, count) in [
        ("hints_not_stored", "Mutations for which no hint was kept.", counts.not_stored),
        ("hints_past_window", "Mutations of nodes that were down for too long, which got no hint.", counts.past_window),
        ("hints_succeeded", "Hints that their nodes took.", counts.succeeded),
        ("hints_failed", "Hints that their nodes refused, or that were not sent.", counts.failed),
        ("hints_timed_out", "Hints that were not answered in time.", counts.timed_out),
        ("hints_expired", "Hints that were dropped because their gc_grace had passed.", counts.expired),
        ("hints_damaged", "Entries of hint files that did not match their checksums.", counts.damaged),
        (
            "hints_for_unowned_ranges",
            "Hints that came for partitions that the node is no replica of.",
            counts.for_unowned_ranges,
        ),
    ] {
        out.one(&format!("cassandra_hints_service_{name}_total"), "counter", help, count as f64);
    }
}

/// Reads whose replicas differed (`ReadRepair.RepairedBlocking`, `ReadRepair.ReconcileRead`).
fn read_repairs(counts: ReadRepairCounts, out: &mut Exposition) {
    let help = "Reads whose replicas differed and were told what they lacked.";
    let repaired = counts.repaired_blocking as f64;
    out.one("cassandra_read_repair_repaired_blocking_total", "counter", help, repaired);
    let help = "Reads whose replicas differed, of tables without read repair.";
    out.one("cassandra_read_repair_reconcile_read_total", "counter", help, counts.reconcile_read as f64);
}

/// Messages of other nodes; none of a node alone.
fn messages(api: &dyn AdminApi, out: &mut Exposition) -> Result<()> {
    let counts = api.ask(&GetMessageCounts {})?;
    let by = |of: fn(&MessageCounts) -> u64| counts.iter().map(|one| (one.verb.clone(), of(one))).collect::<Vec<_>>();
    let received = by(|one| one.received);
    out.family("cassandra_messaging_received_total", "counter", "Messages of other nodes.").by("verb", &received);
    let dropped = by(|one| one.dropped);
    let help = "Messages of other nodes that were too old.";
    out.family("cassandra_dropped_message_total", "counter", help).by("verb", &dropped);
    Ok(())
}

fn caches(caches: &[(&str, &CacheInfo)], out: &mut Exposition) {
    type Figure = fn(&CacheInfo) -> u64;
    let figures: [(&str, &str, &str, Figure); 5] = [
        ("cassandra_cache_entries", "gauge", "Entries of a cache.", |cache| cache.entries),
        ("cassandra_cache_size_bytes", "gauge", "Bytes in a cache.", |cache| cache.size),
        ("cassandra_cache_capacity_bytes", "gauge", "Bytes that a cache may hold.", |cache| cache.capacity),
        ("cassandra_cache_hits_total", "counter", "Lookups that found.", |cache| cache.hits),
        ("cassandra_cache_requests_total", "counter", "Lookups.", |cache| cache.requests),
    ];
    for (family, kind, help, figure) in figures {
        let mut family = out.family(family, kind, help);
        for (name, cache) in caches {
            family.sample("", &[("cache", *name)], figure(cache) as f64);
        }
    }
}

fn clients(api: &dyn AdminApi, out: &mut Exposition) -> Result<()> {
    let latencies = api.ask(&GetClientLatencies {})?;
    let mut family =
        out.family("cassandra_client_request_latency_seconds", "histogram", "Latency of clients' requests by kind.");
    for (request, histogram) in [
        ("read", &latencies.read),
        ("write", &latencies.write),
        ("range_slice", &latencies.range),
        ("cas_read", &latencies.cas_read),
        ("cas_write", &latencies.cas_write),
        ("view_write", &latencies.view_write),
    ] {
        family.latency(&[("request", request)], histogram, EVERY_OFFSET);
    }
    drop(family);
    conditional(&latencies.cas, out);
    Ok(())
}

/// Figures of conditional statements.
fn conditional(counts: &CasCounts, out: &mut Exposition) {
    type Figure = fn(&CasKindCounts) -> u64;
    let figures: [(&str, &str, Figure); 4] = [
        ("cassandra_client_request_contended_total", "Statements that others have overtaken.", |kind| kind.contended),
        ("cassandra_client_request_contentions_total", "How often others have overtaken statements.", |kind| {
            kind.contentions
        }),
        ("cassandra_client_request_unfinished_commits_total", "Changes of others that were finished.", |kind| {
            kind.unfinished_commits
        }),
        ("cassandra_client_request_unknown_results_total", "Statements whose outcome is not known.", |kind| {
            kind.unknown_results
        }),
    ];
    for (name, help, figure) in figures {
        let mut family = out.family(name, "counter", help);
        for (request, kind) in [("cas_read", &counts.read), ("cas_write", &counts.write)] {
            family.sample("", &[("request", request)], figure(kind) as f64);
        }
    }
    let not_met = counts.conditions_not_met as f64;
    let name = "cassandra_client_request_conditions_not_met_total";
    out.one(name, "counter", "Conditional writes whose condition did not hold.", not_met);
}

fn compaction(api: &dyn AdminApi, out: &mut Exposition) -> Result<()> {
    let stats = api.ask(&GetCompactions {})?;
    let pending: u64 = stats.pending.iter().map(|(_, _, count)| count).sum();
    out.one("cassandra_compaction_pending_tasks", "gauge", "Compactions that should run.", pending as f64);
    out.one("cassandra_compaction_running_tasks", "gauge", "Compactions that run.", stats.running.len() as f64);
    out.one("cassandra_compaction_completed_total", "counter", "Compactions that ended.", stats.completed as f64);
    out.one(
        "cassandra_compaction_bytes_compacted_total",
        "counter",
        "Bytes read by compactions.",
        stats.bytes_compacted as f64,
    );
    out.one("cassandra_compaction_aborted_total", "counter", "Compactions that were stopped.", stats.aborted as f64);
    Ok(())
}

type Figure = (&'static str, &'static str, &'static str, fn(&TableStats) -> f64);

const TABLE_FIGURES: &[Figure] = &[
    ("live_sstable_count", "gauge", "SSTables.", |t| t.sstable_count as f64),
    ("live_disk_space_used_bytes", "gauge", "Bytes of live SSTables.", |t| t.space_used_live as f64),
    ("total_disk_space_used_bytes", "gauge", "Bytes of all SSTables.", |t| t.space_used_total as f64),
    ("snapshots_size_bytes", "gauge", "Bytes that only snapshots keep.", |t| t.space_used_by_snapshots as f64),
    ("compression_ratio", "gauge", "Compressed over uncompressed size.", |t| t.compression_ratio),
    ("estimated_partition_count", "gauge", "Estimate of the partitions.", |t| t.estimated_partitions as f64),
    ("memtable_columns_count", "gauge", "Cells in memtables.", |t| t.memtable_cells as f64),
    ("memtable_live_data_size_bytes", "gauge", "Bytes in memtables.", |t| t.memtable_data_size as f64),
    ("memtable_switch_count_total", "counter", "Flushes.", |t| t.memtable_switch_count as f64),
    ("pending_flushes", "gauge", "Memtables being flushed.", |t| t.pending_flushes as f64),
    ("pending_compactions", "gauge", "Compactions that should run.", |t| t.pending_compactions as f64),
    ("bloom_filter_false_positives_total", "counter", "Reads a bloom filter let pass in vain.", |t| {
        t.bloom_filter_false_positives as f64
    }),
    ("bloom_filter_disk_space_used_bytes", "gauge", "Bytes of bloom filters.", |t| t.bloom_filter_space_used as f64),
    ("max_partition_size_bytes", "gauge", "Greatest partition.", |t| t.max_partition_size as f64),
    ("mean_partition_size_bytes", "gauge", "Mean partition.", |t| t.mean_partition_size as f64),
    ("tombstone_warnings_total", "counter", "Reads warned of tombstones.", |t| t.tombstone_warnings as f64),
    ("tombstone_failures_total", "counter", "Reads that failed for tombstones.", |t| t.tombstone_failures as f64),
    ("digest_mismatches_total", "counter", "Reads whose replicas differed.", |t| t.digest_mismatches as f64),
    ("bytes_flushed_total", "counter", "Bytes flushed.", |t| t.bytes_flushed as f64),
    ("compaction_bytes_written_total", "counter", "Bytes that compactions wrote.", |t| t.bytes_compacted as f64),
];

type Distribution = (&'static str, &'static str, fn(&TableStats) -> &HistogramData);

const TABLE_LATENCIES: &[Distribution] = &[
    ("read_latency_seconds", "Local reads.", |t| &t.read_latency),
    ("write_latency_seconds", "Local writes.", |t| &t.write_latency),
    ("range_latency_seconds", "Local range reads.", |t| &t.range_latency),
    ("cas_prepare_latency_seconds", "Prepares of Paxos answered.", |t| &t.cas_prepare_latency),
    ("cas_propose_latency_seconds", "Proposals of Paxos answered.", |t| &t.cas_propose_latency),
    ("cas_commit_latency_seconds", "Commits of Paxos applied.", |t| &t.cas_commit_latency),
];

const TABLE_COUNTS: &[Distribution] = &[
    ("sstables_per_read", "SSTables of a read.", |t| &t.sstables_per_read),
    ("live_scanned", "Live rows of a read.", |t| &t.live_rows_per_read),
    ("tombstone_scanned", "Tombstones of a read.", |t| &t.tombstones_per_read),
];

fn tables(tables: &[TableStats], out: &mut Exposition) {
    for (name, kind, help, figure) in TABLE_FIGURES {
        let mut family = out.family(&format!("cassandra_table_{name}"), kind, help);
        for table in tables {
            family.sample("", &labels(table), figure(table));
        }
    }
    for (name, help, histogram) in TABLE_LATENCIES {
        let mut family = out.family(&format!("cassandra_table_{name}"), "histogram", help);
        tables.iter().for_each(|table| family.latency(&labels(table), histogram(table), EVERY_SECOND_OFFSET));
    }
    for (name, help, histogram) in TABLE_COUNTS {
        let mut family = out.family(&format!("cassandra_table_{name}"), "histogram", help);
        tables.iter().for_each(|table| family.histogram(&labels(table), histogram(table), 1.0, EVERY_OFFSET));
    }
}

fn labels(table: &TableStats) -> [(&str, &str); 2] {
    [("keyspace", &table.keyspace), ("table", &table.table)]
}

/// The figures that are written so far.
enum Exposition {
    Text(String),
    Protobuf(Vec<u8>),
}

/// Samples of one name, and the place where they go.
enum Family<'a> {
    Text { out: &'a mut String, name: String },
    Protobuf { out: &'a mut Vec<u8>, message: MetricFamily },
}

impl Exposition {
    fn new(form: Form) -> Self {
        match form {
            Form::Text => Self::Text(String::new()),
            Form::Protobuf => Self::Protobuf(Vec::new()),
        }
    }

    fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.into_bytes(),
            Self::Protobuf(messages) => messages,
        }
    }

    fn family(&mut self, name: &str, kind: &str, help: &str) -> Family<'_> {
        match self {
            Self::Text(out) => {
                write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n").expect("a String takes all");
                Family::Text { out, name: name.to_owned() }
            }
            Self::Protobuf(out) => Family::Protobuf { out, message: MetricFamily::new(name, kind, help) },
        }
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        self.family(name, kind, help).sample("", &[], value);
    }
}

/// A message has all samples of its name, so that it is written when no more can come.
impl Drop for Family<'_> {
    fn drop(&mut self) {
        if let Self::Protobuf { out, message } = self {
            message.write_to(out);
        }
    }
}

impl Family<'_> {
    /// A sample. A suffix is of the text form alone.
    fn sample(&mut self, suffix: &str, labels: &[(&str, &str)], value: f64) {
        let (out, name) = match self {
            Self::Text { out, name } => (out, name),
            Self::Protobuf { message, .. } => {
                assert!(suffix.is_empty(), "messages have fields for the parts of a histogram");
                return message.add(labels, value);
            }
        };
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escape(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        writeln!(out, "{name}{suffix}{labels} {value}").expect("a String takes all");
    }

    fn by(&mut self, label: &str, values: &[(String, u64)]) {
        for (name, value) in values {
            self.sample("", &[(label, name)], *value as f64);
        }
    }

    /// Microseconds as seconds.
    fn latency(&mut self, labels: &[(&str, &str)], histogram: &HistogramData, step: usize) {
        self.histogram(labels, histogram, 1e6, step);
    }

    /// A histogram whose values are `units` times the unit that is shown. One of every `step`
    /// offsets is a bound.
    fn histogram(&mut self, labels: &[(&str, &str)], histogram: &HistogramData, units: f64, step: usize) {
        if let Self::Protobuf { message, .. } = self {
            return message.add_histogram(labels, histogram, units, step);
        }
        for (offset, count) in histogram.cumulative(step) {
            self.bucket(labels, &(offset as f64 / units).to_string(), count);
        }
        self.bucket(labels, "+Inf", histogram.count());
        self.sample("_sum", labels, histogram.sum as f64 / units);
        self.sample("_count", labels, histogram.count() as f64);
    }

    fn bucket(&mut self, labels: &[(&str, &str)], bound: &str, count: u64) {
        let mut labels = labels.to_vec();
        labels.push(("le", bound));
        self.sample("_bucket", &labels, count as f64);
    }
}

fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::fake;
    use crate::histogram::tests::of;

    #[test]
    fn figures_are_written_once_a_name() {
        let node = fake();
        node.node().0.lock().expect("no panic inside").read_repairs =
            ReadRepairCounts { repaired_blocking: 7, reconcile_read: 3 };
        let text = String::from_utf8(collect(&*node, Form::Text).expect("figures")).expect("UTF-8");
        let names: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        let mut unique = names.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), names.len());
        for line in [
            "cassandra_table_live_sstable_count{keyspace=\"shop\",table=\"orders\"} 1",
            "cassandra_table_read_latency_seconds_bucket{keyspace=\"shop\",table=\"orders\",le=\"0.000149\"} 80",
            "cassandra_table_read_latency_seconds_bucket{keyspace=\"shop\",table=\"orders\",le=\"+Inf\"} 100",
            "cassandra_table_read_latency_seconds_count{keyspace=\"shop\",table=\"orders\"} 100",
            "cassandra_compaction_completed_total 4",
            "cassandra_client_connected_native_clients 3",
            "cassandra_read_repair_repaired_blocking_total 7",
            "cassandra_read_repair_reconcile_read_total 3",
            "cassandra_hints_service_hints_not_stored_total 12",
            "cassandra_hints_service_hints_past_window_total 5",
            "cassandra_hints_service_hints_succeeded_total 40",
            "cassandra_hints_service_hints_failed_total 2",
            "cassandra_hints_service_hints_timed_out_total 3",
            "cassandra_hints_service_hints_expired_total 4",
            "cassandra_hints_service_hints_damaged_total 1",
            "cassandra_hints_service_hints_for_unowned_ranges_total 6",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}");
        }
    }

    /// Sums over nodes and over kinds of requests compare the same bounds.
    #[test]
    fn the_bounds_of_a_histogram_do_not_depend_on_its_values() {
        let bounds = |data: &HistogramData, step: usize| {
            let mut out = Exposition::new(Form::Text);
            out.family("a", "histogram", "b").latency(&[], data, step);
            let text = String::from_utf8(out.into_bytes()).expect("UTF-8");
            let bound = |line: &str| Some(line.strip_prefix("a_bucket{le=\"")?.split_once('"')?.0.to_owned());
            text.lines().filter_map(bound).collect::<Vec<String>>()
        };
        let (fast, slow) = (of(&[(149, 10)]), of(&[(149, 1), (535, 1)]));
        for (step, count) in [(EVERY_OFFSET, 91), (EVERY_SECOND_OFFSET, 46)] {
            assert_eq!(bounds(&fast, step), bounds(&slow, step));
            assert_eq!(bounds(&slow, step).len(), count);
            assert_eq!(bounds(&HistogramData::default(), step), ["+Inf"]);
        }
    }

    /// Where each read has one SSTable, no quantile says that it had two.
    #[test]
    fn small_counts_have_bounds_of_their_own() {
        let table = TableStats { sstables_per_read: of(&[(1, 10)]), ..TableStats::default() };
        let mut out = Exposition::new(Form::Text);
        tables(&[table], &mut out);
        let text = String::from_utf8(out.into_bytes()).expect("UTF-8");
        for line in ["le=\"1\"} 10", "le=\"2\"} 10", "le=\"3\"} 10"] {
            let line = format!("cassandra_table_sstables_per_read_bucket{{keyspace=\"\",table=\"\",{line}");
            assert!(text.lines().any(|other| other == line), "{line}");
        }
    }

    #[test]
    fn labels_are_escaped() {
        let mut text = Exposition::new(Form::Text);
        text.family("a", "gauge", "b").sample("", &[("l", "x\"\\\n")], 1.0);
        assert_eq!(
            String::from_utf8(text.into_bytes()).expect("UTF-8"),
            "# HELP a b\n# TYPE a gauge\na{l=\"x\\\"\\\\\\n\"} 1\n"
        );
    }

    /// Headers of Prometheus 2 and 3, with native histograms and without them.
    #[test]
    fn the_protobuf_form_is_for_those_who_ask() {
        let protobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
        let open = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        let asked = |accept: &str| Form::of_accept(accept);
        assert_eq!(asked(&format!("{protobuf};q=0.6,{open}")), Form::Protobuf);
        assert_eq!(asked(&format!("{};q=0.6, {open}", protobuf.replace(';', "; "))), Form::Protobuf);
        assert_eq!(asked(protobuf), Form::Protobuf);
        for text in [
            "",
            "*/*",
            open,
            &format!("{protobuf};q=0.2,text/plain;q=0.3"),
            &format!("{protobuf};q=0"),
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text",
        ] {
            assert_eq!(asked(text), Form::Text, "{text}");
        }
    }
}
