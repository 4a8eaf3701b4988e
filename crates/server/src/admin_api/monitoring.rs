//! Figures for monitoring: tables, requests, pools, connections, memory and the commit log.

use std::sync::atomic::{AtomicU64, Ordering};

use admin::histogram::HistogramData;
use admin::verbs::{
    CasCounts, CasKindCounts, ClientLatencies, CommitLogMetrics, ForeignRequests, GetClientLatencies, GetMetrics,
    GetPools, GetTables, HintCounts, NodeMetrics, PoolStats, RepairFigures, StreamCounts, TableStats,
};
use admin::{Functions, Result};
use cluster::cas_metrics::{CasFigures, CasMetrics};
use cluster::operations::{caches, commit_log, state};
use metrics::Histogram;

use native::{Counter, WorkerStats};

use super::{NodeAdmin, process, table_stats};
use crate::otlp::SpanCounts;
use crate::pools::{self, Pool};

pub(super) fn add_to(functions: &mut Functions<NodeAdmin>) {
    functions.add(tables_stats).add(client_latencies).add(pools).add(metrics);
}

fn tables_stats(admin: &NodeAdmin, _: &GetTables) -> Result<Vec<TableStats>> {
    Ok(table_stats::all(admin.cluster(), &admin.snapshot_sizes))
}

fn data(histogram: &Histogram) -> HistogramData {
    histogram.snapshot().into()
}

fn sum(mut one: HistogramData, other: &HistogramData) -> HistogramData {
    one.buckets.iter_mut().zip(&other.buckets).for_each(|(count, more)| *count += more);
    one.sum += other.sum;
    one.greatest = one.greatest.max(other.greatest);
    one
}

fn client_latencies(admin: &NodeAdmin, _: &GetClientLatencies) -> Result<ClientLatencies> {
    let requests = &admin.services.requests;
    Ok(ClientLatencies {
        read: data(&requests.read),
        range: data(&requests.range),
        write: sum(data(&requests.write), &data(&requests.batch)),
        cas_read: data(&requests.cas_read),
        cas_write: data(&requests.cas_write),
        cas: cas_figures(&admin.cluster().cas),
        ..ClientLatencies::default()
    })
}

fn cas_figures(figures: &CasMetrics) -> CasCounts {
    let of = |kind: &CasFigures| CasKindCounts {
        contended: kind.contention.snapshot().count(),
        contentions: kind.contention.snapshot().sum,
        unfinished_commits: kind.unfinished_commits.get(),
        unknown_results: kind.unknown_results.get(),
    };
    let conditions_not_met = figures.conditions_not_met.get();
    CasCounts { read: of(&figures.read), write: of(&figures.write), conditions_not_met }
}

/// The pools of work, under the names of the stages of Cassandra that they stand for.
fn pools(admin: &NodeAdmin, _: &GetPools) -> Result<Vec<PoolStats>> {
    let shown = |pool: Pool| PoolStats {
        name: pool.name.to_owned(),
        active: pool.active,
        pending: pool.pending,
        completed: pool.completed,
        blocked: 0,
        all_time_blocked: 0,
    };
    let completed = total(admin, |worker| &worker.requests);
    let requests = Pool { name: "Native-Transport-Requests", active: 0, pending: 0, completed };
    let refused = total(admin, |worker| &worker.overloaded);
    let requests = PoolStats { all_time_blocked: refused, ..shown(requests) };
    Ok(pools::of_storage(&admin.services).into_iter().map(shown).chain([requests]).collect())
}

fn total(admin: &NodeAdmin, counter: fn(&WorkerStats) -> &Counter) -> u64 {
    admin.transport.worker_stats().iter().map(|worker| counter(worker).get()).sum()
}

pub(super) fn metrics(admin: &NodeAdmin, _: &GetMetrics) -> Result<NodeMetrics> {
    let services = &admin.services;
    let (prepared, evicted) = services.prepared.count_and_evicted();
    Ok(NodeMetrics {
        connections: admin.transport.connections().len() as u64,
        connections_total: total(admin, |worker| &worker.accepted),
        requests: requests(admin),
        errors: errors(admin),
        received_bytes: total(admin, |worker| &worker.bytes_read),
        sent_bytes: total(admin, |worker| &worker.bytes_written),
        prepared_statements: prepared,
        prepared_statements_evicted: evicted,
        commitlog: commitlog(admin),
        memory: memory(admin),
        cpu_millis: process::usage(&services.node.env).cpu_millis,
        streams: streams(&services.node),
        foreign: foreign(&services.node),
        repairs: repairs(&services.node),
        hints: hints(&services.node),
        spans: services.otlp.as_ref().map_or_else(Vec::new, |otlp| spans(&otlp.counts)),
    })
}

fn spans(counts: &SpanCounts) -> Vec<(String, u64)> {
    let SpanCounts { sent, dropped, failed } = counts;
    [("sent", sent), ("dropped", dropped), ("failed", failed)].map(|(end, count)| (end.to_owned(), count.get())).into()
}

fn repairs(node: &cluster::Node) -> RepairFigures {
    let counts = node.repair_counts();
    let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let (scheduled, standing) = (node.repair_schedule_counts(), node.repair_schedule());
    let now = node.env.clock.now_micros() / 1_000_000;
    let running = node.repair_commands().iter().filter(|command| !command.has_ended()).count();
    RepairFigures {
        running: running as u64,
        succeeded: get(&counts.succeeded),
        failed: get(&counts.failed),
        validations: get(&counts.validations),
        validations_failed: get(&counts.validations_failed),
        bytes_validated: get(&counts.bytes_validated),
        partitions_validated: get(&counts.partitions_validated),
        exchanges: get(&counts.exchanges),
        exchanges_failed: get(&counts.exchanges_failed),
        pending_bytes: node.pending_repair_bytes(),
        scheduled: scheduled.succeeded.get(),
        scheduled_failed: scheduled.failed.get(),
        held_millis: scheduled.held_millis.get(),
        due: standing.tables.iter().map(|table| table.due as u64).sum(),
        late_tables: standing.tables.iter().filter(|table| table.is_late(now)).count() as u64,
    }
}

fn streams(node: &cluster::Node) -> StreamCounts {
    let figures = node.stream_figures();
    StreamCounts {
        received_bytes: figures.received.get(),
        sent_bytes: figures.sent.get(),
        running: node.stream_progress().len() as u64,
        completed: figures.completed.get(),
        failed: figures.failed.get(),
        resent: figures.resent.get(),
    }
}

fn hints(node: &cluster::Node) -> HintCounts {
    let figures = node.handoff_figures();
    HintCounts {
        not_stored: figures.refused.get(),
        past_window: figures.past_window.get(),
        succeeded: figures.succeeded.get(),
        failed: figures.failed.get(),
        timed_out: figures.timed_out.get(),
        expired: figures.expired.get(),
        damaged: figures.damaged.get(),
        for_unowned_ranges: figures.received_for_others.get(),
    }
}

fn foreign(node: &cluster::Node) -> ForeignRequests {
    ForeignRequests { total: node.out_of_range_total(), by_keyspace: node.out_of_range_counts().into_iter().collect() }
}

fn requests(admin: &NodeAdmin) -> Vec<(String, u64)> {
    let requests = &admin.services.requests;
    [
        ("QUERY", requests.regular_statements.get()),
        ("PREPARE", requests.prepare.snapshot().count()),
        ("EXECUTE", requests.prepared_statements.get()),
        ("BATCH", requests.batch_messages.get()),
    ]
    .map(|(name, count)| (name.to_owned(), count))
    .to_vec()
}

fn errors(admin: &NodeAdmin) -> Vec<(String, u64)> {
    let requests = &admin.services.requests;
    [
        ("unavailable", requests.unavailable.get()),
        ("timeout", requests.timeouts.get()),
        ("failure", requests.failures.get()),
        ("overloaded", total(admin, |worker| &worker.overloaded) + requests.overloaded.get()),
        ("server", requests.server_errors.get()),
        ("protocol", total(admin, |worker| &worker.protocol_errors)),
        ("other", requests.other_errors.get()),
    ]
    .map(|(name, count)| (name.to_owned(), count))
    .to_vec()
}

fn commitlog(admin: &NodeAdmin) -> CommitLogMetrics {
    let stats = commit_log::stats(admin.cluster());
    CommitLogMetrics {
        size: stats.size,
        segments: stats.segments,
        syncs: stats.syncs,
        pending: stats.waiting,
        waiting_on_commit: data(commit_log::waiting_on_commit(admin.cluster())),
    }
}

fn memory(admin: &NodeAdmin) -> Vec<(String, u64)> {
    let (services, node) = (&admin.services, admin.cluster());
    let (memtables, memtables_max) = state::memtable_bytes(node);
    let caches::CacheUsages { chunks, keys, rows } = caches::usages(node);
    let (prepared, prepared_max) = services.prepared.usage();
    let [bloom_filters, compression_metadata] = table_stats::memory_of_sstables(node);
    [
        ("resident", process::usage(&services.node.env).resident),
        ("budget", admin.memory.total),
        ("memtables", memtables as u64),
        ("memtables_max", memtables_max as u64),
        ("chunk_cache", chunks.size),
        ("chunk_cache_max", chunks.capacity),
        ("key_cache", keys.size),
        ("key_cache_max", keys.capacity),
        ("row_cache", rows.size),
        ("row_cache_max", rows.capacity),
        ("bloom_filters", bloom_filters),
        ("compression_metadata", compression_metadata),
        ("prepared_statements", prepared),
        ("prepared_statements_max", prepared_max),
        ("requests_in_flight", admin.transport.bytes_in_flight() as u64),
        ("requests_in_flight_max", admin.memory.in_flight),
        ("results", admin.services.results.budget.used() as u64),
        ("results_max", admin.memory.results),
        ("commitlog_pending", commit_log::stats(node).pending_bytes),
    ]
    .map(|(name, bytes)| (name.to_owned(), bytes))
    .to_vec()
}
