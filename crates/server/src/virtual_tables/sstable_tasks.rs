//! `sstable_tasks`: compactions and other work on SSTables that run now. Agrees with
//! `SSTableTasksTable`.

use cluster::operations::{compaction, state};

use super::row::VirtualRow;
use super::{VirtualTable, int};
use crate::services::Services;

pub(super) const TABLES: &[VirtualTable] = &[VirtualTable::of_views("sstable_tasks", rows)];

fn rows(services: &Services) -> Vec<VirtualRow> {
    let target = state::options(&services.node).data_directory().display().to_string();
    compaction::running(&services.node)
        .iter()
        .map(|task| {
            let ratio = if task.total == 0 { 1.0 } else { task.done as f64 / task.total as f64 };
            VirtualRow::default()
                .text("keyspace_name", &task.keyspace)
                .text("table_name", &task.table)
                .bytes("task_id", task.id.to_vec())
                .double("completion_ratio", ratio)
                .text("kind", &task.kind.to_lowercase())
                .count("progress", task.done)
                .int("sstables", int(task.sstables))
                .text("target_directory", &target)
                .count("total", task.total)
                .text("unit", "bytes")
        })
        .collect()
}
