//! SSTables of Cassandra, read and written again: data, index components and filter are equal byte for byte, and so are the
//! statistics, but for what says where they come from.

use std::sync::Arc;

use rows::{PartitionStream, ReadContext, ReadMode};
use sstable::{
    Component, Descriptor, FinishedSSTable, NoCache, SSTable, SSTableId, SSTableWriter, Version, WriterOptions,
};

use crate::fixtures::{self, Fixture};

/// Of the fixtures with a `column_index_size` of their own.
fn row_index_block(table: &str) -> usize {
    if table == "wide_ci" { 4 * 1024 } else { sstable::ROW_INDEX_BLOCK_DEFAULT }
}

fn rewrite(fixture: &Fixture, original: &SSTable, directory: &std::path::Path) -> FinishedSSTable {
    let stats = &original.statistics().stats;
    let options = WriterOptions {
        row_index_block: row_index_block(&fixture.table_name),
        compression: original.data().compression().map(|info| info.params.clone()),
        filter_chance: original.statistics().filter_chance,
        estimated_keys: original.partition_count(),
        level: stats.level,
        repaired_at: stats.repaired_at,
        pending_repair: stats.pending_repair,
        is_transient: stats.is_transient,
        originating_host: stats.originating_host,
        commit_log_intervals: stats.commit_log_intervals.clone(),
    };
    let descriptor = Descriptor::new(directory, Version::DA, SSTableId::Sequence(1));
    let env = env::real::env();
    let table = Arc::clone(original.table());
    let mut writer = SSTableWriter::new(&env, descriptor, table, options, original.header().clone()).unwrap();
    let mut stream = original.scan_all(&ReadContext::new(ReadMode::Background)).unwrap();
    while let Some(head) = stream.next_partition().unwrap() {
        writer.start_partition(&head.key, head.deletion);
        if let Some(row) = &head.static_row {
            writer.static_row(row);
        }
        while let Some(unfiltered) = stream.next_unfiltered().unwrap() {
            writer.append(&unfiltered).unwrap();
        }
        writer.end_partition().unwrap();
    }
    writer.finish().unwrap()
}

/// All uncompressed bytes.
fn logical_data(sstable: &SSTable) -> Vec<u8> {
    let data = sstable.data();
    let chunks = data.length().div_ceil(data.chunk_length() as u64);
    (0..chunks).flat_map(|index| data.read_chunk(index, ReadMode::Background).unwrap().to_vec()).collect()
}

fn first_difference(a: &[u8], b: &[u8]) -> Option<String> {
    let at = a.iter().zip(b).position(|(a, b)| a != b);
    let at = at.or((a.len() != b.len()).then(|| a.len().min(b.len())))?;
    let around =
        |bytes: &[u8]| crate::dump::hex(&bytes[at.saturating_sub(8).min(bytes.len())..(at + 24).min(bytes.len())]);
    Some(format!("at {at} of {} and {}: {} and {}", a.len(), b.len(), around(a), around(b)))
}

#[test]
fn what_is_written_again_is_equal() {
    let mut failures = Vec::new();
    for fixture in fixtures::all(&fixtures::VERSIONS) {
        let original = fixture.open();
        let directory = fixtures::output(&format!("{}-{}", fixture.table_name, fixture.descriptor.id));
        let finished = rewrite(&fixture, &original, directory.path());
        let env = env::real::env();
        let copy = SSTable::open(&env, finished.descriptor.clone(), original.table(), Arc::new(NoCache)).unwrap();
        let name = format!("{} {}", fixture.table_name, fixture.descriptor.id);
        let mut compare = |what: &str, original: &[u8], copy: &[u8]| {
            if let Some(difference) = first_difference(original, copy) {
                failures.push(format!("{name} {what} {difference}"));
            }
        };
        compare("data", &logical_data(&original), &logical_data(&copy));
        for component in [Component::Partitions, Component::Rows, Component::Filter, Component::Toc] {
            let read = |descriptor: &Descriptor| std::fs::read(descriptor.path(component)).unwrap_or_default();
            compare(component.name(), &read(&fixture.descriptor), &read(&finished.descriptor));
        }
        // another LZ4 gives other lengths
        let mut statistics = finished.statistics.clone();
        statistics.stats.compression_ratio = original.statistics().stats.compression_ratio;
        compare("Statistics.db", &fixture.bytes(Component::Statistics), &statistics.write());
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
