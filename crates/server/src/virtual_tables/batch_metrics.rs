//! `batch_metrics`: distribution of the number of partitions of batches, by kind. Agrees with
//! `BatchMetricsTable` and `BatchMetrics`.

use super::VirtualTable;
use super::row::VirtualRow;
use crate::services::Services;

pub(super) const TABLES: &[VirtualTable] = &[VirtualTable::of_views("batch_metrics", rows)];

fn rows(services: &Services) -> Vec<VirtualRow> {
    let requests = &services.requests;
    [
        ("partitions_per_logged_batch", &requests.logged_batch_partitions),
        ("partitions_per_unlogged_batch", &requests.unlogged_batch_partitions),
        ("partitions_per_counter_batch", &requests.counter_batch_partitions),
    ]
    .into_iter()
    .map(|(name, histogram)| {
        let snapshot = histogram.snapshot();
        VirtualRow::default()
            .text("name", name)
            .double("p50th", snapshot.percentile(0.5) as f64)
            .double("p99th", snapshot.percentile(0.99) as f64)
            .double("p999th", snapshot.percentile(0.999) as f64)
            .count("max", snapshot.max)
    })
    .collect()
}
