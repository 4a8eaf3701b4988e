//! SSTables of Cassandra, read and written again: data, index components and filter are equal byte for byte, and so are the
//! statistics, but for what says where they come from.

use std::sync::Arc;

use rows::{PartitionStream, ReadContext, ReadMode};
use schema::TableMetadata;
use sstable::{
    Component, Descriptor, FinishedSSTable, Format, NoCache, SSTable, SSTableId, SSTableWriter, WriterOptions,
};

use crate::fixtures::{self, Fixture};

/// Cassandra's `column_index_size`: its default, but for the fixtures with one of their own.
fn row_index_block(fixture: &Fixture) -> Option<usize> {
    Some(match (fixture.descriptor.format, &*fixture.table_name) {
        (Format::Bti, "wide_ci") => 4 * 1024,
        (Format::Bti, _) => 16 * 1024,
        (Format::Big, "wide_ci") => 16 * 1024,
        (Format::Big, _) => 64 * 1024,
    })
}

/// With the `min_index_interval` that Summary.db begins with: the schema is made from the statistics, which do not have it.
fn table(fixture: &Fixture) -> Arc<TableMetadata> {
    let mut table = (*fixture.table()).clone();
    if fixture.descriptor.format == Format::Big {
        let summary = fixture.bytes(Component::Summary);
        table.params.min_index_interval = i32::from_be_bytes(*summary.first_chunk().unwrap());
    }
    Arc::new(table)
}

fn rewrite(fixture: &Fixture, original: &SSTable, directory: &std::path::Path) -> FinishedSSTable {
    let stats = &original.statistics().stats;
    let options = WriterOptions {
        row_index_block: row_index_block(fixture),
        compression: original.data().compression().map(|info| info.params.clone()),
        filter_chance: original.statistics().filter_chance,
        estimated_keys: original.partition_count(),
        level: stats.level,
        repaired_at: stats.repaired_at,
        pending_repair: stats.pending_repair,
        is_transient: stats.is_transient,
        originating_host: stats.originating_host,
        token_space_coverage: Some(stats.token_space_coverage),
        commit_log_intervals: stats.commit_log_intervals.clone(),
    };
    let descriptor = Descriptor::new(directory, fixture.descriptor.version, SSTableId::Sequence(1));
    let env = env::real::env();
    let table = table(fixture);
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

/// Compared byte for byte; where one is not there, so must it not be in the copy.
const INDEXES_AND_LISTS: [Component; 6] =
    [Component::Partitions, Component::Rows, Component::Index, Component::Summary, Component::Filter, Component::Toc];

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
        let name = format!("{} {}", fixture.table_name, fixture.descriptor.prefix());
        let mut compare = |what: &str, original: &[u8], copy: &[u8]| {
            if let Some(difference) = first_difference(original, copy) {
                failures.push(format!("{name} {what} {difference}"));
            }
        };
        compare("data", &logical_data(&original), &logical_data(&copy));
        for component in INDEXES_AND_LISTS {
            let read = |descriptor: &Descriptor| std::fs::read(descriptor.path(component)).unwrap_or_default();
            compare(component.name(), &read(&fixture.descriptor), &read(&finished.descriptor));
        }
        // another LZ4 gives other lengths
        let mut statistics = finished.statistics.clone();
        statistics.stats.compression_ratio = original.statistics().stats.compression_ratio;
        compare("Statistics.db", &fixture.bytes(Component::Statistics), &statistics.write(fixture.descriptor.version));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
