//! The work of the storage, under the names of the stages of Cassandra that it stands for: what
//! `nodetool tpstats` and `system_views.thread_pools` both show.

use cluster::operations::{commit_log, compaction, state};

use crate::services::Services;

/// The tasks of a pool.
pub(crate) struct Pool {
    /// The name of Cassandra's stage.
    pub name: &'static str,
    /// Tasks at work.
    pub active: u64,
    /// Tasks that wait.
    pub pending: u64,
    /// Tasks done since the start.
    pub completed: u64,
}

/// The pools. Requests run on the worker that has read them, so that none is active or waits here,
/// but for writes that wait until the commit log is durable.
pub(crate) fn of_storage(services: &Services) -> [Pool; 4] {
    let (node, requests) = (&services.node, &services.requests);
    let pool =
        |name: &'static str, active: u64, pending: u64, completed: u64| Pool { name, active, pending, completed };
    let compactions = compaction::figures(node, 0);
    let running = compaction::running(node).len() as u64;
    let pending_compactions: u64 = compactions.pending.iter().map(|(_, _, count)| count).sum();
    let flushes = state::flushes(node);
    [
        pool("MutationStage", 0, commit_log::stats(node).waiting, requests.writes()),
        pool("ReadStage", 0, 0, requests.reads()),
        pool("CompactionExecutor", running, pending_compactions, compactions.completed),
        pool("MemtableFlushWriter", flushes.active, flushes.pending, flushes.completed),
    ]
}
