//! Figures of tables, from their SSTables, memtables and counters.

use admin::model::{HistogramData, TableStats};
use sstable::Component;
use storage::{Engine, TableStore};
use types::DecoratedKey;

/// A table's figures.
pub(super) fn stats(engine: &Engine, store: &TableStore) -> TableStats {
    let (view, metrics) = (store.view(), &store.metrics);
    let sstables = &view.sstables;
    let stored: u64 = sstables.iter().map(|sstable| sstable.stored_length()).sum();
    let plain: u64 = sstables.iter().map(|sstable| sstable.data_length()).sum();
    let mut partition_size = sstable::Histogram::of_partition_sizes();
    let mut cell_count = sstable::Histogram::of_cell_counts();
    for sstable in sstables {
        partition_size.merge(&sstable.statistics().stats.partition_sizes);
        cell_count.merge(&sstable.statistics().stats.cells_per_partition);
    }
    let memtable_counts = view.active.iter().map(|memtable| memtable.counts());
    let (partitions, rows) = memtable_counts.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
    let in_sstables: u64 = sstables.iter().map(|sstable| sstable.partition_count()).sum();
    let filters: u64 = sstables.iter().map(|sstable| sstable.filter_size() as u64).sum();
    let partition_size = data(&partition_size);
    let false_positives = metrics.bloom_false_positives.get();
    let snapshots = storage::snapshot::list(engine, store).unwrap_or_default();
    TableStats {
        keyspace: view.table.keyspace.clone(),
        table: view.table.name.clone(),
        sstable_count: sstables.len() as u64,
        max_sstable_size: sstables.iter().map(|sstable| sstable.stored_length()).max().unwrap_or(0),
        space_used_live: stored,
        space_used_total: stored,
        space_used_by_snapshots: snapshots.iter().map(|snapshot| snapshot.true_size).sum(),
        compression_ratio: if plain == 0 || stored >= plain { -1.0 } else { stored as f64 / plain as f64 },
        estimated_partitions: in_sstables + partitions as u64,
        memtable_cells: rows as u64,
        memtable_data_size: view.memtable_size() as u64,
        memtable_switch_count: metrics.flushes.get(),
        pending_flushes: view.flushing.len() as u64,
        read_latency: metrics.read_latency.snapshot().into(),
        write_latency: metrics.write_latency.snapshot().into(),
        range_latency: metrics::Histogram::default().snapshot().into(),
        sstables_per_read: metrics.sstables_per_read.snapshot().into(),
        live_rows_per_read: metrics.live_rows_per_read.snapshot().into(),
        tombstones_per_read: metrics.tombstones_per_read.snapshot().into(),
        min_partition_size: partition_size.min(),
        max_partition_size: partition_size.max(),
        mean_partition_size: partition_size.mean().unwrap_or(0.0) as u64,
        partition_size,
        cell_count: data(&cell_count),
        bytes_unrepaired: plain,
        bloom_filter_false_positives: false_positives,
        bloom_filter_space_used: filters,
        bloom_filter_memory: filters,
        bytes_flushed: metrics.bytes_flushed.get(),
        bytes_compacted: metrics.bytes_compacted.get(),
        ..TableStats::default()
    }
}

fn data(histogram: &sstable::Histogram) -> HistogramData {
    let buckets: Vec<u64> = histogram.buckets().map(|(_, count)| count).collect();
    // as Cassandra has it: each value is taken for its bucket's limit
    let sum = (histogram.mean() * histogram.count() as f64) as u64;
    HistogramData { buckets, sum }
}

/// Data files that may hold a partition.
pub(super) fn sstables_of(store: &TableStore, key: &DecoratedKey) -> Vec<String> {
    let hash = sstable::KeyHash::of(&key.key);
    let view = store.view();
    let holding = view.sstables.iter().filter(|sstable| sstable.may_contain(key, hash));
    holding.map(|sstable| sstable.descriptor().path(Component::Data).display().to_string()).collect()
}
