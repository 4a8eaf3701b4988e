//! SSTables of Cassandra, read and written again: data, index components and filter are equal byte
//! for byte, and so are the statistics, but for what says where they come from.

use std::sync::Arc;

use rows::codec::Header;
use rows::{MaybeEncoded, PartitionStream, ReadContext, ReadMode};
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

/// With the `min_index_interval` that Summary.db begins with: the schema is made from the
/// statistics, which do not have it.
fn table(fixture: &Fixture) -> Arc<TableMetadata> {
    let mut table = (*fixture.table()).clone();
    if fixture.descriptor.format == Format::Big {
        let summary = fixture.bytes(Component::Summary);
        table.params.min_index_interval = i32::from_be_bytes(*summary.first_chunk().unwrap());
    }
    Arc::new(table)
}

/// How rows come to the writer.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Way {
    Decoded,
    /// As they are encoded, where that is possible.
    Encoded,
}

fn rewrite(
    fixture: &Fixture,
    original: &SSTable,
    header: &Header,
    way: Way,
    directory: &std::path::Path,
) -> (FinishedSSTable, u64) {
    let stats = &original.statistics().stats;
    let options = WriterOptions {
        row_index_block: row_index_block(fixture),
        is_quick: false,
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
    let mut writer = SSTableWriter::new(&env, descriptor, table, options, header.clone()).unwrap();
    let context = ReadContext::new(ReadMode::Background);
    let mut stream = match way {
        Way::Decoded => original.scan_all(&context).unwrap(),
        Way::Encoded => original.scan_encoded(&context, header).unwrap(),
    };
    let mut copied = 0;
    while let Some(head) = stream.next_partition().unwrap() {
        writer.start_partition(&head.key, head.deletion);
        if let Some(row) = &head.static_row {
            writer.static_row(row);
        }
        while let Some(next) = stream.next_maybe_encoded().unwrap() {
            match next {
                MaybeEncoded::Decoded(unfiltered) => writer.append(&unfiltered).unwrap(),
                MaybeEncoded::Encoded(row) => {
                    copied += 1;
                    writer.append_encoded(row).unwrap();
                }
            }
        }
        writer.end_partition().unwrap();
    }
    (writer.finish().unwrap(), copied)
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
    is_equal(Way::Decoded);
}

#[test]
fn what_is_copied_is_equal() {
    is_equal(Way::Encoded);
}

/// Rows written against other bases are the same, whether rows are copied or taken apart.
#[test]
fn what_is_copied_against_other_bases_is_what_is_written_again() {
    let mut copied = 0;
    for fixture in fixtures::all(&fixtures::VERSIONS) {
        let original = fixture.open();
        let mut header = original.header().clone();
        header.stats.min_timestamp = header.stats.min_timestamp.wrapping_sub(1_000_003);
        let name = format!("{}-{}", fixture.table_name, fixture.descriptor.id);
        let written = [Way::Decoded, Way::Encoded].map(|way| {
            let directory = fixtures::output(&format!("{name}-{way:?}-other"));
            let (finished, rows) = rewrite(&fixture, &original, &header, way, directory.path());
            copied += rows;
            let all = Component::ALL
                .map(|component| (component, std::fs::read(finished.descriptor.path(component)).unwrap_or_default()));
            (all, finished.statistics.write(fixture.descriptor.version))
        });
        for (plain, fast) in written[0].0.iter().zip(&written[1].0) {
            assert_eq!(first_difference(&plain.1, &fast.1), None, "{name} {}", plain.0.name());
        }
        assert_eq!(written[0].1, written[1].1, "{name}");
    }
    assert!(copied > 1000, "{copied} rows were copied");
}

fn is_equal(way: Way) {
    let mut failures = Vec::new();
    for fixture in fixtures::all(&fixtures::VERSIONS) {
        let original = fixture.open();
        let directory = fixtures::output(&format!("{}-{}-{way:?}", fixture.table_name, fixture.descriptor.id));
        let (finished, _) = rewrite(&fixture, &original, original.header(), way, directory.path());
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
