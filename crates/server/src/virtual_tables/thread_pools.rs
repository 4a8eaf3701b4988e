//! `thread_pools`: what there is instead of Cassandra's stages, under their names. Agrees with `ThreadPoolsTable`.
//!
//! Requests run where they are read: a worker's thread is stage for reads, writes and the native transport. Only the request that asks
//! is seen at work.

use std::sync::atomic::Ordering;

use super::row::VirtualRow;
use super::{VirtualTable, int};
use crate::services::Services;

pub(super) const TABLES: &[VirtualTable] = &[VirtualTable::of_views("thread_pools", rows)];

fn rows(services: &Services) -> Vec<VirtualRow> {
    let node = &services.node;
    let engine = &node.engine;
    let requests = &services.requests;
    let count = |histogram: &metrics::Histogram| histogram.snapshot().count();
    let (reads, writes) =
        (count(&requests.read) + count(&requests.range), count(&requests.write) + count(&requests.batch));
    let all = reads + writes + count(&requests.prepare) + count(&requests.other);
    let compactions = engine.compactions.running().len();
    let cores = node.env.tasks.cores();
    let compacted = engine.compactions.completed.load(Ordering::Relaxed);
    let flushes = engine.tables().iter().map(|store| store.metrics.flushes.get()).sum();
    [
        ("CompactionExecutor", compactions, engine.compactor.concurrency(), 0, compacted),
        ("MemtableFlushWriter", 0, 1, engine.flusher.pending(), flushes),
        ("MutationStage", 0, cores, 0, writes),
        ("Native-Transport-Requests", 1, cores, 0, all),
        ("ReadStage", 0, env::BLOCKING_THREADS_MAX, 0, reads),
    ]
    .into_iter()
    .map(|(name, active, limit, pending, completed)| {
        VirtualRow::default()
            .text("name", name)
            .int("active_tasks", int(active))
            .int("active_tasks_limit", int(limit))
            .int("pending_tasks", int(pending))
            .count("completed_tasks", completed)
            .bigint("blocked_tasks", 0)
            .bigint("blocked_tasks_all_time", 0)
    })
    .collect()
}
