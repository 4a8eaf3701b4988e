//! Figures of tables, from their counters, memtables and the statistics of their SSTables.

use std::sync::Arc;

use admin::histogram::HistogramData;
use admin::verbs::TableStats;
use cluster::Node;
use cluster::operations::{snapshots, sstables, tables};
use sstable::{Cardinality, Histogram, SSTable, Version};
use storage::TableStore;
use storage::compaction::choice;
use storage::inherited::RepairState;
use storage::view::View;

use super::snapshot_sizes::SnapshotSizes;

/// The figures of all stored tables, in the order of their names.
pub(super) fn all(node: &Node, snapshot_sizes: &SnapshotSizes) -> Vec<TableStats> {
    let stores = tables::all(node);
    let of_snapshots = snapshot_sizes.get(node.env.now(), || {
        let of_store = |store: &Arc<TableStore>| {
            let snapshots = snapshots::of_table(node, store).unwrap_or_default();
            (store.id, snapshots.iter().map(|snapshot| snapshot.true_size).sum::<u64>())
        };
        stores.iter().map(of_store).collect()
    });
    let of_store = |store: &Arc<TableStore>| TableStats {
        space_used_by_snapshots: of_snapshots.get(&store.id).copied().unwrap_or(0),
        ..stats(node, store)
    };
    let mut all: Vec<TableStats> = stores.iter().map(of_store).collect();
    all.sort_by(|a, b| (&a.keyspace, &a.table).cmp(&(&b.keyspace, &b.table)));
    all
}

/// Bytes of SSTables on disk, and of their rows without compression.
pub(super) fn load(store: &TableStore) -> (u64, u64) {
    let view = store.view();
    let sum = |size: fn(&SSTable) -> u64| view.sstables.iter().map(|sstable| size(sstable)).sum();
    (sum(SSTable::disk_size), sum(SSTable::data_length))
}

/// Share of the data in SSTables that is repaired, per cent. Without data everything is repaired.
pub(super) fn percent_repaired(sstables: impl Iterator<Item = Arc<SSTable>>) -> f64 {
    let (repaired, all) = sstables.fold((0, 0), |(repaired, all), sstable| {
        let length = sstable.data_length();
        (repaired + if is_repaired(&sstable) { length } else { 0 }, all + length)
    });
    if all == 0 { 100.0 } else { repaired as f64 / all as f64 * 100.0 }
}

fn is_repaired(sstable: &SSTable) -> bool {
    sstable.statistics().stats.repaired_at > 0
}

/// The figures of a table, but for its snapshots.
fn stats(node: &Node, store: &Arc<TableStore>) -> TableStats {
    let (view, metrics, now) = (store.view(), &store.metrics, node.env.clock.now_seconds());
    let (partitions_in_memtables, rows_in_memtables) = memtable_counts(&view);
    let (false_positives, true_positives) = (metrics.bloom_false_positives.get(), metrics.bloom_true_positives.get());
    let passed = false_positives + true_positives;
    let disk_size = load(store).0;
    TableStats {
        keyspace: view.table.keyspace.clone(),
        table: view.table.name.clone(),
        space_used_live: disk_size,
        space_used_total: disk_size + store.obsolete_bytes(),
        estimated_partitions: estimated_partitions(&view) + partitions_in_memtables,
        memtable_cells: rows_in_memtables,
        memtable_data_size: view.memtable_size() as u64,
        memtable_switch_count: metrics.flushes.get(),
        pending_flushes: view.flushing.len() as u64,
        levels: choice::levels(store).into_iter().map(|(count, bytes, most)| (count as u64, bytes, most)).collect(),
        time_window: time_window(&view),
        pending_compactions: choice::pending(store) as u64,
        read_latency: metrics.read_latency.snapshot().into(),
        write_latency: metrics.write_latency.snapshot().into(),
        range_latency: metrics.range_latency.snapshot().into(),
        cas_prepare_latency: metrics.cas_prepare_latency.snapshot().into(),
        cas_propose_latency: metrics.cas_propose_latency.snapshot().into(),
        cas_commit_latency: metrics.cas_commit_latency.snapshot().into(),
        sstables_per_read: metrics.sstables_per_read.snapshot().into(),
        live_rows_per_read: metrics.live_rows_per_read.snapshot().into(),
        tombstone_warnings: metrics.tombstone_warnings.get(),
        tombstone_failures: metrics.tombstone_failures.get(),
        digest_mismatches: metrics.digest_mismatches.get(),
        speculative_retries: metrics.speculative_retries.get(),
        tombstones_per_read: metrics.tombstones_per_read.snapshot().into(),
        bloom_filter_false_positives: false_positives,
        bloom_filter_false_ratio: if passed == 0 { 0.0 } else { false_positives as f64 / passed as f64 },
        droppable_tombstone_ratio: choice::droppable_share(store, now),
        bytes_flushed: metrics.bytes_flushed.get(),
        bytes_compacted: metrics.bytes_compacted.get(),
        ..of_sstables(&view.sstables, sstables::version(node))
    }
}

/// For a table with TimeWindowCompactionStrategy: size and unit of a window as the schema has
/// them, and the longest span of write timestamps in one SSTable, milliseconds. None: the table
/// has another strategy.
fn time_window(view: &View) -> Option<(Option<String>, Option<String>, u64)> {
    let options = &view.table.params.compaction;
    if schema::params::compaction::short_class(options) != "TimeWindowCompactionStrategy" {
        return None;
    }
    let micros = |sstable: &Arc<SSTable>| {
        let stats = &sstable.statistics().stats;
        u64::try_from(stats.max_timestamp.saturating_sub(stats.min_timestamp)).unwrap_or(0)
    };
    let longest = view.sstables.iter().map(micros).max().unwrap_or(0);
    let option = |name: &str| options.get(name).cloned();
    Some((option("compaction_window_size"), option("compaction_window_unit"), longest / 1000))
}

/// Bytes of memory that the SSTables of all tables hold while they are open: Bloom filters, and
/// the places of compressed chunks.
pub(super) fn memory_of_sstables(node: &Node) -> [u64; 2] {
    let of_store = |store: &Arc<TableStore>| {
        let view = store.view();
        [bloom_filters(&view.sstables), compression_metadata(&view.sstables)]
    };
    let all = tables::all(node);
    all.iter().map(of_store).fold([0, 0], |sum, one| [sum[0] + one[0], sum[1] + one[1]])
}

fn bloom_filters(sstables: &[Arc<SSTable>]) -> u64 {
    sstables.iter().map(|sstable| sstable.filter_size() as u64).sum()
}

fn compression_metadata(sstables: &[Arc<SSTable>]) -> u64 {
    sstables.iter().map(|sstable| sstable.compression_metadata_size() as u64).sum()
}

/// The figures that come from the statistics of SSTables. `version`: the format version in which
/// new SSTables are written. SSTables of other versions are counted as old.
fn of_sstables(sstables: &[Arc<SSTable>], version: Version) -> TableStats {
    let filters = bloom_filters(sstables);
    let sizes = merged(sstables, |sstable| &sstable.statistics().stats.partition_sizes);
    let (mut repaired, mut pending, mut unrepaired) = (0, 0, 0);
    for sstable in sstables {
        let bytes = match RepairState::of(&sstable.statistics().stats) {
            RepairState::Repaired => &mut repaired,
            RepairState::Pending { .. } => &mut pending,
            RepairState::Unrepaired => &mut unrepaired,
        };
        *bytes += sstable.data_length();
    }
    TableStats {
        sstable_count: sstables.len() as u64,
        old_sstable_count: sstables.iter().filter(|sstable| sstable.descriptor().version != version).count() as u64,
        max_sstable_size: sstables.iter().map(|sstable| sstable.disk_size()).max().unwrap_or(0),
        compression_ratio: compression_ratio(sstables),
        bloom_filter_space_used: filters,
        bloom_filter_memory: filters,
        compression_metadata_memory: compression_metadata(sstables),
        percent_repaired: percent_repaired(sstables.iter().cloned()),
        bytes_repaired: repaired,
        bytes_pending_repair: pending,
        bytes_unrepaired: unrepaired,
        min_partition_size: sizes.min(),
        max_partition_size: sizes.max(),
        mean_partition_size: sizes.mean().unwrap_or(0.0) as u64,
        partition_size: sizes,
        cell_count: merged(sstables, |sstable| &sstable.statistics().stats.cells_per_partition),
        ..TableStats::default()
    }
}

/// Partitions and rows in memtables, those included that are being flushed.
fn memtable_counts(view: &View) -> (u64, u64) {
    let flushing = view.flushing.iter().flat_map(|set| &set.memtables);
    let counts =
        view.active.iter().chain(flushing).filter(|memtable| memtable.size() > 0).map(|memtable| memtable.counts());
    counts.fold((0, 0), |sum, (partitions, rows)| (sum.0 + partitions as u64, sum.1 + rows as u64))
}

/// Estimate of the partitions in SSTables. A key in several SSTables counts once, by the sketches
/// of its SSTables.
fn estimated_partitions(view: &View) -> u64 {
    match view.sstables.as_slice() {
        [] => 0,
        [single] => single.partition_count(),
        several => {
            let mut all = Cardinality::default();
            let sketches = several.iter().filter_map(|sstable| sstable.statistics().cardinality.as_ref());
            sketches.for_each(|sketch| all.merge(sketch));
            all.estimate()
        }
    }
}

/// Compressed size divided by uncompressed size, over the compressed SSTables; -1: no SSTable is
/// compressed.
fn compression_ratio(sstables: &[Arc<SSTable>]) -> f64 {
    let compressed = sstables.iter().filter(|sstable| sstable.statistics().stats.compression_ratio >= 0.0);
    let (stored, length) =
        compressed.fold((0, 0), |sum, sstable| (sum.0 + sstable.stored_length(), sum.1 + sstable.data_length()));
    if length == 0 { -1.0 } else { stored as f64 / length as f64 }
}

/// The sum of the histograms of all SSTables, with as many buckets as the longest has.
fn merged(sstables: &[Arc<SSTable>], histogram: impl Fn(&SSTable) -> &Histogram) -> HistogramData {
    let mut all = HistogramData::default();
    for sstable in sstables {
        for (index, (limit, count)) in histogram(sstable).buckets().enumerate() {
            if index == all.buckets.len() {
                all.buckets.push(0);
            }
            all.buckets[index] += count;
            let limit = u64::try_from(limit).unwrap_or(0);
            all.sum = all.sum.saturating_add(limit.saturating_mul(count));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use env::sim::{DATA, Sim};
    use schema::KeyspaceMetadata;
    use storage::EngineOptions;
    use storage::repair_sessions::anticompact;
    use storage::requests::operations::AnticompactedRanges;
    use storage::token_ranges::TokenRanges;
    use types::Token;

    use super::*;

    /// SSTables of another version than that of new ones are counted, and data that a repair
    /// session has is neither repaired nor unrepaired.
    #[test]
    fn old_versions_and_pending_repairs_are_told() {
        let sim = Sim::new(3);
        let engine = storage::open(&sim.env(), EngineOptions::with_small_budgets(Path::new(DATA))).expect("a disk").0;
        // a row for system_schema.keyspaces
        let mut made = KeyspaceMetadata::clone(&schema::system::schema().keyspaces["system_traces"]);
        made.name = "made".to_owned();
        made.tables.clear();
        let add = |present: &schema::Schema| -> Result<schema::Schema, ()> { Ok(present.with_keyspace(made.clone())) };
        storage::schema_change::change(&engine, add).expect("stored").expect("not refused");
        let store = engine.table_by_name("system_schema", "keyspaces").expect("every node has it");
        sim.block_on(engine.flush(&store)).expect("a sound disk flushes");
        let told = |version: Version| of_sstables(&store.view().sstables, version);
        let before = told(Version::DA);
        assert!(before.bytes_unrepaired > 0 && before.sstable_count > 0);
        assert_eq!((before.bytes_pending_repair, before.bytes_repaired, before.old_sstable_count), (0, 0, 0));
        assert_eq!(before.compression_metadata_memory, 8 * before.sstable_count, "each has one compressed chunk");
        assert_eq!(told(Version::OA).old_sstable_count, before.sstable_count);
        let ranges = TokenRanges::new(&[(Token::MIN, Token::MIN)]);
        let apart = Arc::new(AnticompactedRanges { session: [7; 16], ranges });
        sim.block_on(anticompact(&engine, &store, &apart, |_| false)).expect("nothing else has the data");
        let after = told(Version::DA);
        assert_eq!((after.bytes_unrepaired, after.bytes_repaired), (0, 0));
        assert!(after.bytes_pending_repair > 0);
    }
}
