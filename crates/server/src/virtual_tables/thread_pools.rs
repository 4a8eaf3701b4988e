//! `thread_pools`: what there is instead of Cassandra's stages, under the names of these stages.
//! Agrees with `ThreadPoolsTable`.
//!
//! Requests run on the worker that reads them, whose thread is the stage for reads, writes and the
//! native transport. Of all requests only the one that reads this table is shown as active.

use cluster::operations::compaction;

use super::row::VirtualRow;
use super::{VirtualTable, int};
use crate::pools::{self, Pool};
use crate::services::Services;

pub(super) const TABLES: &[VirtualTable] = &[VirtualTable::of_views("thread_pools", rows)];

fn rows(services: &Services) -> Vec<VirtualRow> {
    let node = &services.node;
    let requests = &services.requests;
    let count = |histogram: &metrics::Histogram| histogram.snapshot().count();
    let completed = requests.reads() + requests.writes() + count(&requests.prepare) + count(&requests.other);
    let requests = Pool { name: "Native-Transport-Requests", active: 1, pending: 0, completed };
    let limit = |name: &str| match name {
        "CompactionExecutor" => compaction::concurrency(node),
        "MemtableFlushWriter" => 1,
        "ReadStage" => env::BLOCKING_THREADS_MAX,
        _ => node.env.tasks.cores(),
    };
    let size = |count: u64| int(usize::try_from(count).unwrap_or(usize::MAX));
    let row = |pool: Pool| {
        VirtualRow::default()
            .text("name", pool.name)
            .int("active_tasks", size(pool.active))
            .int("active_tasks_limit", int(limit(pool.name)))
            .int("pending_tasks", size(pool.pending))
            .count("completed_tasks", pool.completed)
            .bigint("blocked_tasks", 0)
            .bigint("blocked_tasks_all_time", 0)
    };
    pools::of_storage(services).into_iter().chain([requests]).map(row).collect()
}
