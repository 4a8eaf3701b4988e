//! `thread_pools`: what there is instead of Cassandra's stages, under the names of these stages.
//! Agrees with `ThreadPoolsTable`.
//!
//! Requests run on the worker that reads them, whose thread is the stage for reads, writes and the
//! native transport. Of all requests only the one that reads this table is shown as active.

use cluster::operations::{compaction, state, tables};

use super::row::VirtualRow;
use super::{VirtualTable, int};
use crate::services::Services;

pub(super) const TABLES: &[VirtualTable] = &[VirtualTable::of_views("thread_pools", rows)];

fn rows(services: &Services) -> Vec<VirtualRow> {
    let node = &services.node;
    let requests = &services.requests;
    let count = |histogram: &metrics::Histogram| histogram.snapshot().count();
    let (reads, writes) = (requests.reads(), requests.writes());
    let all = reads + writes + count(&requests.prepare) + count(&requests.other);
    let compactions = compaction::running(node).len();
    let cores = node.env.tasks.cores();
    let compacted = compaction::figures(node, 0).completed;
    let flushes = tables::all(node).iter().map(|store| store.metrics.flushes.get()).sum();
    [
        ("CompactionExecutor", compactions, compaction::concurrency(node), 0, compacted),
        ("MemtableFlushWriter", 0, 1, state::pending_flushes(node), flushes),
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
