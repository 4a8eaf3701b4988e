//! Figures of requests, pools, connections, memory and the commit log.

use std::sync::atomic::Ordering;

use admin::model::{ClientLatencies, CommitLogMetrics, HistogramData, NodeMetrics, PoolStats};
use metrics::Histogram;

use super::{NodeAdmin, process};
use native::{Counter, WorkerStats};

fn data(histogram: &Histogram) -> HistogramData {
    histogram.snapshot().into()
}

fn sum(mut one: HistogramData, other: &HistogramData) -> HistogramData {
    one.buckets.iter_mut().zip(&other.buckets).for_each(|(count, more)| *count += more);
    one.sum += other.sum;
    one
}

pub(super) fn client_latencies(admin: &NodeAdmin) -> ClientLatencies {
    let requests = &admin.services.requests;
    ClientLatencies {
        read: data(&requests.read),
        range: data(&requests.range),
        write: sum(data(&requests.write), &data(&requests.batch)),
        ..ClientLatencies::default()
    }
}

/// What there is instead of Cassandra's stages, under their names.
pub(super) fn pools(admin: &NodeAdmin) -> Vec<PoolStats> {
    let (engine, requests) = (admin.engine(), &admin.services.requests);
    let count = |histogram: &Histogram| histogram.snapshot().count();
    let reads = count(&requests.read) + count(&requests.range);
    let writes = count(&requests.write) + count(&requests.batch);
    let pending_compactions: u64 = super::compaction::stats(admin).pending.iter().map(|(_, _, count)| count).sum();
    let flushes = engine.tables().iter().map(|store| store.metrics.flushes.get()).sum();
    let flushing = engine.tables().iter().map(|store| store.view().flushing.len() as u64).sum();
    let pool = |name: &str, active: u64, pending: u64, completed: u64| PoolStats {
        name: name.to_owned(),
        active,
        pending,
        completed,
        blocked: 0,
        all_time_blocked: 0,
    };
    let worked = |counter: fn(&WorkerStats) -> &Counter| total(admin, counter);
    vec![
        pool("MutationStage", 0, engine.log.stats().waiting, writes),
        pool("ReadStage", 0, 0, reads),
        pool(
            "CompactionExecutor",
            engine.compactions.running().len() as u64,
            pending_compactions,
            engine.compactions.completed.load(Ordering::Relaxed),
        ),
        pool("MemtableFlushWriter", flushing, engine.flusher.pending() as u64, flushes),
        PoolStats {
            all_time_blocked: worked(|worker| &worker.overloaded),
            ..pool("Native-Transport-Requests", 0, 0, worked(|worker| &worker.requests))
        },
    ]
}

fn total(admin: &NodeAdmin, counter: fn(&WorkerStats) -> &Counter) -> u64 {
    admin.transport.worker_stats().iter().map(|worker| counter(worker).get()).sum()
}

pub(super) fn metrics(admin: &NodeAdmin) -> NodeMetrics {
    let services = &admin.services;
    let (prepared, evicted) = services.prepared.count_and_evicted();
    NodeMetrics {
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
    }
}

fn requests(admin: &NodeAdmin) -> Vec<(String, u64)> {
    let requests = &admin.services.requests;
    [
        ("QUERY", requests.regular_statements.get()),
        ("PREPARE", requests.prepare.snapshot().count()),
        ("EXECUTE", requests.prepared_statements.get()),
        ("BATCH", requests.batch.snapshot().count()),
    ]
    .map(|(name, count)| (name.to_owned(), count))
    .to_vec()
}

fn errors(admin: &NodeAdmin) -> Vec<(String, u64)> {
    let requests = &admin.services.requests;
    let (unavailable, timeouts) = (requests.unavailable.get(), requests.timeouts.get());
    let failures = requests.failures.get();
    let others = requests.errors.get().saturating_sub(unavailable + timeouts + failures);
    [
        ("unavailable", unavailable),
        ("timeout", timeouts),
        ("failure", failures),
        ("overloaded", total(admin, |worker| &worker.overloaded)),
        ("protocol", total(admin, |worker| &worker.protocol_errors)),
        ("other", others),
    ]
    .map(|(name, count)| (name.to_owned(), count))
    .to_vec()
}

fn commitlog(admin: &NodeAdmin) -> CommitLogMetrics {
    let stats = admin.engine().log.stats();
    CommitLogMetrics {
        size: stats.size,
        segments: stats.segments,
        syncs: stats.syncs,
        pending: stats.waiting,
        waiting_on_commit: data(&admin.engine().waiting_on_commit),
    }
}

fn memory(admin: &NodeAdmin) -> Vec<(String, u64)> {
    let (services, engine) = (&admin.services, admin.engine());
    let (memtables, memtables_max) = engine.memory.usage();
    let caches = [&engine.caches.chunks.usage(), &engine.caches.keys.usage(), &engine.caches.rows.usage()];
    let [chunks, keys, rows] = caches;
    let (prepared, prepared_max) = services.prepared.usage();
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
        ("prepared_statements", prepared),
        ("prepared_statements_max", prepared_max),
        ("requests_in_flight", admin.transport.bytes_in_flight() as u64),
        ("requests_in_flight_max", admin.memory.in_flight),
        ("results", admin.services.results.share.used() as u64),
        ("results_max", admin.memory.results),
        ("commitlog_pending", engine.log.stats().pending_bytes),
    ]
    .map(|(name, bytes)| (name.to_owned(), bytes))
    .to_vec()
}
