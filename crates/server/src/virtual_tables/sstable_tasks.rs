//! `sstable_tasks`: compactions and their like that run now. Agrees with `SSTableTasksTable`.

use std::sync::atomic::Ordering;

use super::row::VirtualRow;
use super::{VirtualTable, int};
use crate::services::Services;

pub(super) const TABLES: &[VirtualTable] = &[VirtualTable::of_views("sstable_tasks", rows)];

fn rows(services: &Services) -> Vec<VirtualRow> {
    let engine = &services.node.engine;
    let target = engine.options.data_directory().display().to_string();
    let running = engine.compactions.running();
    running
        .iter()
        .map(|task| {
            let done = task.done.load(Ordering::Relaxed);
            let ratio = if task.total == 0 { 1.0 } else { done as f64 / task.total as f64 };
            VirtualRow::default()
                .text("keyspace_name", &task.keyspace)
                .text("table_name", &task.table)
                .bytes("task_id", task.id.to_vec())
                .double("completion_ratio", ratio)
                .text("kind", &task.kind.name().to_lowercase())
                .count("progress", done)
                .int("sstables", int(task.sstables))
                .text("target_directory", &target)
                .count("total", task.total)
                .text("unit", "bytes")
        })
        .collect()
}
