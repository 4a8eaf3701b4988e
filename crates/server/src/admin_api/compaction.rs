//! Compactions as the admin API has them: what runs, waits and was done, and what an operator has
//! compacted or stopped.

use admin::verbs::{
    Compact, CompactRequest, CompactionHistoryEntry, CompactionStats, GetCompactionHistory, GetCompactions,
    RunningCompaction, SetCompactionThroughput, SetConcurrentCompactors, StopRequest,
};
use admin::{Functions, Result};
use cluster::clock::uuid_text;
use cluster::operations::compaction::{self, Inputs};

use super::{NodeAdmin, of_operation, selection, wait};

/// Milliseconds of the shorter of the two spans over which the rate of compactions is shown.
const RATE_MILLIS: i64 = 15 * 60 * 1000;

pub(super) fn add_to(functions: &mut Functions<NodeAdmin>) {
    functions.add(stats).add(history).add(compact).add(stop);
    functions.add(set_concurrency).add(set_throughput);
}

fn stats(admin: &NodeAdmin, _: &GetCompactions) -> Result<CompactionStats> {
    let figures = compaction::figures(admin.cluster(), RATE_MILLIS);
    let uptime = admin.services.uptime_seconds().max(1) as f64;
    Ok(CompactionStats {
        concurrent_compactors: u32::try_from(figures.concurrency).unwrap_or(u32::MAX),
        pending: figures.pending,
        completed: figures.completed,
        bytes_compacted: figures.bytes_compacted,
        aborted: figures.aborted,
        reduced: figures.reduced,
        dropped_sstables: figures.left_out,
        fifteen_minute_rate: figures.recent as f64 / uptime.min((RATE_MILLIS / 1000) as f64),
        mean_rate: figures.completed as f64 / uptime,
        throughput: figures.rate,
        running: running(admin),
    })
}

fn running(admin: &NodeAdmin) -> Vec<RunningCompaction> {
    let shown = compaction::running(admin.cluster()).into_iter().map(|running| RunningCompaction {
        id: uuid_text(&running.id),
        kind: running.kind.to_owned(),
        keyspace: running.keyspace,
        table: running.table,
        completed: running.done,
        total: running.total,
        sstables: running.sstables as u64,
    });
    shown.collect()
}

fn history(admin: &NodeAdmin, _: &GetCompactionHistory) -> Result<Vec<CompactionHistoryEntry>> {
    let entries = compaction::history(admin.cluster()).map_err(of_operation)?;
    let shown = entries.into_iter().map(|entry| CompactionHistoryEntry {
        id: uuid_text(&entry.id),
        keyspace: entry.keyspace,
        table: entry.table,
        compacted_at: entry.compacted_at,
        bytes_in: entry.bytes_in,
        bytes_out: entry.bytes_out,
        rows_merged: entry.rows_merged,
        properties: entry.properties,
    });
    Ok(shown.collect())
}

fn compact(admin: &NodeAdmin, request: &CompactRequest) -> Result<()> {
    let inputs = match &request.what {
        Compact::All { split } => Inputs::All { split: *split },
        Compact::Tokens { first, last } => Inputs::Tokens { first, last },
        Compact::Partition(key) => Inputs::Partition(key),
        Compact::Keys(keys) => Inputs::Keys(keys),
        Compact::Files(files) => return wait(compaction::compact_files(admin.cluster(), files)),
    };
    wait(compaction::compact(admin.cluster(), selection(&request.tables), inputs))
}

fn stop(admin: &NodeAdmin, request: &StopRequest) -> Result<()> {
    match request {
        StopRequest::Kind(word) => compaction::stop_kind(admin.cluster(), word),
        StopRequest::Id(text) => compaction::stop_id(admin.cluster(), text).map_err(of_operation)?,
    }
    Ok(())
}

fn set_concurrency(admin: &NodeAdmin, request: &SetConcurrentCompactors) -> Result<()> {
    compaction::set_concurrency(admin.cluster(), request.count as usize).map_err(of_operation)
}

fn set_throughput(admin: &NodeAdmin, request: &SetCompactionThroughput) -> Result<()> {
    compaction::set_rate(admin.cluster(), request.bytes_per_second);
    Ok(())
}
