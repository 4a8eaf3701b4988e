//! What is compacted, waits for it, and was.

use std::sync::atomic::Ordering;

use admin::api::Result;
use admin::model::{CompactionHistoryEntry, CompactionStats, RunningCompaction};
use cluster::clock::uuid_text;
use storage::compaction::choice;

use super::{NodeAdmin, failed};

/// The span of the shorter rate.
const RATE_MILLIS: i64 = 15 * 60 * 1000;

pub(super) fn stats(admin: &NodeAdmin) -> CompactionStats {
    let (engine, now) = (admin.engine(), admin.now_seconds());
    let compactions = &engine.compactions;
    let completed = compactions.completed.load(Ordering::Relaxed);
    let since = admin.services.node.env.clock.now_micros() / 1000 - RATE_MILLIS;
    let recent = compactions.history().iter().filter(|finished| finished.at_millis >= since).count();
    let mut pending: Vec<(String, String, u64)> = engine
        .tables()
        .iter()
        .map(|store| {
            let table = store.table();
            (table.keyspace.clone(), table.name.clone(), choice::pending(store, now) as u64)
        })
        .filter(|(_, _, count)| *count > 0)
        .collect();
    pending.sort();
    CompactionStats {
        concurrent_compactors: u32::try_from(engine.options.concurrent_compactors).unwrap_or(u32::MAX),
        pending,
        completed,
        bytes_compacted: compactions.bytes_compacted.load(Ordering::Relaxed),
        aborted: compactions.aborted.load(Ordering::Relaxed),
        reduced: 0,
        dropped_sstables: 0,
        fifteen_minute_rate: recent as f64 / (RATE_MILLIS / 1000) as f64,
        mean_rate: completed as f64 / admin.services.uptime_seconds().max(1) as f64,
        throughput: engine.compaction_rate(),
        running: running(admin),
    }
}

fn running(admin: &NodeAdmin) -> Vec<RunningCompaction> {
    let running = admin.engine().compactions.running();
    running
        .iter()
        .map(|task| RunningCompaction {
            id: uuid_text(&task.id),
            kind: task.kind.name().to_owned(),
            keyspace: task.keyspace.clone(),
            table: task.table.clone(),
            completed: task.done.load(Ordering::Relaxed),
            total: task.total,
            sstables: task.sstables as u64,
        })
        .collect()
}

pub(super) fn history(admin: &NodeAdmin) -> Result<Vec<CompactionHistoryEntry>> {
    let entries = cluster::compaction_history::read(admin.engine()).map_err(failed)?;
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
