//! Figures of tables and of CQL. Agrees with `TableMetricTables`, `CQLMetricsTable` and `BatchMetricsTable`.

use metrics::{Histogram, Snapshot};
use storage::TableStore;

use super::row::VirtualRow;
use crate::services::Services;

/// A table of `system_views` with a row for each stored table; others are empty.
pub(super) fn of_tables(services: &Services, view: &str) -> Vec<VirtualRow> {
    let made: fn(&Services, &TableStore, VirtualRow) -> VirtualRow = match view {
        "local_read_latency" | "coordinator_read_latency" => {
            |services, store, row| latency(services, &store.metrics.read_latency, row)
        }
        "local_scan_latency" | "coordinator_scan_latency" => {
            |services, store, row| latency(services, &store.metrics.range_latency, row)
        }
        "local_write_latency" | "coordinator_write_latency" => {
            |services, store, row| latency(services, &store.metrics.write_latency, row)
        }
        "tombstones_per_read" => |_, store, row| distribution(&store.metrics.tombstones_per_read, row),
        "rows_per_read" => |_, store, row| distribution(&store.metrics.live_rows_per_read, row),
        "disk_usage" => |_, store, row| row.count("mebibytes", mebibytes(disk_size(store))),
        "max_sstable_size" => |_, store, row| row.count("mebibytes", mebibytes(greatest_sstable(store))),
        "max_partition_size" => |_, store, row| row.count("mebibytes", mebibytes(greatest_partition(store))),
        "max_sstable_duration" => |_, store, row| row.count("max_sstable_duration", longest_sstable(store)),
        _ => return Vec::new(),
    };
    let stores = services.node.engine.tables();
    let of_store = |store: &TableStore| {
        let table = store.table();
        made(
            services,
            store,
            VirtualRow::default().text("keyspace_name", &table.keyspace).text("table_name", &table.name),
        )
    };
    stores.iter().map(|store| of_store(store)).collect()
}

fn disk_size(store: &TableStore) -> u64 {
    store.view().sstables.iter().map(|sstable| sstable.disk_size()).sum()
}

fn greatest_partition(store: &TableStore) -> u64 {
    let view = store.view();
    let greatest = view.sstables.iter().map(|sstable| sstable.statistics().stats.partition_sizes.max()).max();
    greatest.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0)
}

/// Milliseconds between the first and the last timestamp in one SSTable.
fn longest_sstable(store: &TableStore) -> u64 {
    let view = store.view();
    let micros = view.sstables.iter().map(|sstable| {
        let stats = &sstable.statistics().stats;
        stats.max_timestamp.saturating_sub(stats.min_timestamp)
    });
    micros.max().and_then(|micros| u64::try_from(micros / 1000).ok()).unwrap_or(0)
}

fn greatest_sstable(store: &TableStore) -> u64 {
    store.view().sstables.iter().map(|sstable| sstable.disk_size()).max().unwrap_or(0)
}

/// Rounded up, as Cassandra does.
fn mebibytes(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

fn milliseconds(micros: u64) -> f64 {
    micros as f64 / 1000.0
}

fn latency(services: &Services, histogram: &Histogram, row: VirtualRow) -> VirtualRow {
    let snapshot: Snapshot = histogram.snapshot();
    row.double("p50th_ms", milliseconds(snapshot.percentile(0.5)))
        .double("p99th_ms", milliseconds(snapshot.percentile(0.99)))
        .double("max_ms", milliseconds(snapshot.max))
        .count("count", snapshot.count())
        .double("per_second", snapshot.count() as f64 / services.uptime_seconds().max(1) as f64)
}

fn distribution(histogram: &Histogram, row: VirtualRow) -> VirtualRow {
    let snapshot = histogram.snapshot();
    row.double("p50th", snapshot.percentile(0.5) as f64)
        .double("p99th", snapshot.percentile(0.99) as f64)
        .double("max", snapshot.max as f64)
        .count("count", snapshot.count())
}

/// `cql_metrics`
pub(super) fn cql_metrics(services: &Services) -> Vec<VirtualRow> {
    let (count, evicted) = services.prepared.count_and_evicted();
    let requests = &services.requests;
    let (prepared, regular) = (requests.prepared_statements.get(), requests.regular_statements.get());
    let ratio = if prepared + regular == 0 { 0.0 } else { prepared as f64 / (prepared + regular) as f64 };
    [
        ("prepared_statements_count", count as f64),
        ("prepared_statements_evicted", evicted as f64),
        ("prepared_statements_executed", prepared as f64),
        ("prepared_statements_ratio", ratio),
        ("regular_statements_executed", regular as f64),
    ]
    .into_iter()
    .map(|(name, value)| VirtualRow::default().text("name", name).double("value", value))
    .collect()
}

/// `batch_metrics`: partitions of batches are not counted yet.
pub(super) fn batch_metrics() -> Vec<VirtualRow> {
    ["partitions_per_logged_batch", "partitions_per_unlogged_batch", "partitions_per_counter_batch"]
        .into_iter()
        .map(|name| {
            let row = VirtualRow::default().text("name", name).bigint("max", 0);
            row.double("p50th", 0.0).double("p99th", 0.0).double("p999th", 0.0)
        })
        .collect()
}
