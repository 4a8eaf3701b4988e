//! The virtual tables with a row for each stored table: latencies, sizes, tombstones and rows that
//! reads pass. Agrees with `TableMetricTables`.
//!
//! Latencies and distributions are those of all requests since the start, not of the last five
//! minutes. `coordinator_read_latency` has the reads that other nodes had a share in; of a table
//! without such reads, as on a node alone, it has those of this node. `coordinator_scan_latency`
//! and `coordinator_write_latency` show what `local_*` shows.

use cluster::operations::tables;
use metrics::Histogram;
use storage::TableStore;
use storage::metrics::TableMetrics;

use super::VirtualTable;
use super::row::VirtualRow;
use crate::services::Services;

pub(super) const TABLES: &[VirtualTable] = &[
    VirtualTable::of_views("coordinator_read_latency", coordinator_read_latency),
    VirtualTable::of_views("coordinator_scan_latency", scan_latency),
    VirtualTable::of_views("coordinator_write_latency", write_latency),
    VirtualTable::of_views("local_read_latency", read_latency),
    VirtualTable::of_views("local_scan_latency", scan_latency),
    VirtualTable::of_views("local_write_latency", write_latency),
    VirtualTable::of_views("tombstones_per_read", |services| {
        of_tables(services, |store, row| distribution(&store.metrics.tombstones_per_read, row))
    }),
    VirtualTable::of_views("rows_per_read", |services| {
        of_tables(services, |store, row| distribution(&store.metrics.live_rows_per_read, row))
    }),
    VirtualTable::of_views("disk_usage", |services| {
        of_tables(services, |store, row| row.count("mebibytes", mebibytes(disk_size(store) + store.obsolete_bytes())))
    }),
    VirtualTable::of_views("max_sstable_size", |services| {
        of_tables(services, |store, row| row.count("mebibytes", mebibytes(greatest_sstable(store))))
    }),
    VirtualTable::of_views("max_partition_size", |services| {
        of_tables(services, |store, row| row.count("mebibytes", mebibytes(greatest_partition(store))))
    }),
    VirtualTable::of_views("max_sstable_duration", |services| {
        of_tables(services, |store, row| row.count("max_sstable_duration", longest_sstable(store)))
    }),
];

fn read_latency(services: &Services) -> Vec<VirtualRow> {
    of_tables(services, |store, row| latency(services, &store.metrics.read_latency, row))
}

fn coordinator_read_latency(services: &Services) -> Vec<VirtualRow> {
    of_tables(services, |store, row| latency(services, of_coordinator(&store.metrics), row))
}

/// The latencies of reads as this node has coordinated them. A read that no other node had a share
/// in took as long as this node.
fn of_coordinator(metrics: &TableMetrics) -> &Histogram {
    let of_several = &metrics.coordinator_read_latency;
    if of_several.snapshot().count() > 0 { of_several } else { &metrics.read_latency }
}

fn scan_latency(services: &Services) -> Vec<VirtualRow> {
    of_tables(services, |store, row| latency(services, &store.metrics.range_latency, row))
}

fn write_latency(services: &Services) -> Vec<VirtualRow> {
    of_tables(services, |store, row| latency(services, &store.metrics.write_latency, row))
}

fn of_tables(services: &Services, made: impl Fn(&TableStore, VirtualRow) -> VirtualRow) -> Vec<VirtualRow> {
    let stores = tables::all(&services.node);
    let of_store = |store: &TableStore| {
        let table = store.table();
        made(store, VirtualRow::default().text("keyspace_name", &table.keyspace).text("table_name", &table.name))
    };
    stores.iter().map(|store| of_store(store)).collect()
}

/// Bytes of all SSTables of a table.
pub(super) fn disk_size(store: &TableStore) -> u64 {
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

/// Bytes in mebibytes, rounded up as in Cassandra.
fn mebibytes(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

fn milliseconds(micros: u64) -> f64 {
    micros as f64 / 1000.0
}

/// A value rounded to three decimal places, because cqlsh would show more of them with an
/// exponent.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

fn latency(services: &Services, histogram: &Histogram, row: VirtualRow) -> VirtualRow {
    let snapshot = histogram.snapshot();
    row.double("p50th_ms", milliseconds(snapshot.percentile(0.5)))
        .double("p99th_ms", milliseconds(snapshot.percentile(0.99)))
        .double("max_ms", milliseconds(snapshot.max))
        .count("count", snapshot.count())
        .double("per_second", rounded(snapshot.count() as f64 / services.uptime_seconds().max(1) as f64))
}

fn distribution(histogram: &Histogram, row: VirtualRow) -> VirtualRow {
    let snapshot = histogram.snapshot();
    row.double("p50th", snapshot.percentile(0.5) as f64)
        .double("p99th", snapshot.percentile(0.99) as f64)
        .double("max", snapshot.max as f64)
        .count("count", snapshot.count())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a ring a slow replica is seen in the latencies of the coordinator, although this node is
    /// fast.
    #[test]
    fn the_coordinator_waits_for_other_replicas() {
        let metrics = TableMetrics::default();
        metrics.read_latency.record(100);
        assert_eq!(of_coordinator(&metrics).snapshot().max, 100, "no other node had a share");
        metrics.coordinator_read_latency.record(50_000);
        assert_eq!(of_coordinator(&metrics).snapshot().max, 50_000);
    }
}
