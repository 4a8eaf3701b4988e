//! Writes one SSTable of `bench.events`, for comparisons: the same files go to Helenus and to
//! Cassandra.
//!
//! `write_table <directory> <version> <id> <rows> [part] [rows a partition]`
//!
//! Partitions of 50 rows, or as many as said. Each part has the same partitions; of its rows every
//! fourth overwrites one of the part before. Prints the CREATE TABLE that fits.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use rows::codec::{EncodingStatsCollector, Header};
use rows::{Cell, ClusteringValues, ColumnData, DeletionTime, Liveness, Row, Unfiltered};
use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use sstable::{Descriptor, SSTableId, SSTableWriter, Version, WriterOptions};
use types::{CqlType, DecoratedKey};

const PARTITION_ROWS_DEFAULT: u64 = 50;
const NOTE_LEN: usize = 160;
const EPOCH_MILLIS: i64 = 1_700_000_000_000;
const CREATE: &str = "CREATE TABLE bench.events (device bigint, at timestamp, kind text, note text, reading double, PRIMARY KEY (device, at))";

fn table() -> Arc<TableMetadata> {
    let column = |name: &str, kind, ty| ColumnSpec { name: name.to_owned(), kind, position: 0, ty, reversed: false };
    let specs = vec![
        column("device", ColumnKind::PartitionKey, CqlType::BigInt),
        column("at", ColumnKind::Clustering, CqlType::Timestamp),
        column("kind", ColumnKind::Regular, CqlType::Text),
        column("note", ColumnKind::Regular, CqlType::Text),
        column("reading", ColumnKind::Regular, CqlType::Double),
    ];
    let params = TableParams::default();
    let id = TableId([0xbe; 16]);
    let (kind, flags) = (TableKind::Regular, TableFlags::COMPOUND);
    Arc::new(TableMetadata::new(id, "bench", "events", kind, flags, params, specs, BTreeMap::new(), None))
}

/// Numbers from a number, without state to carry.
fn mixed(mut seed: u64) -> u64 {
    seed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    seed = (seed ^ (seed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    seed ^ (seed >> 31)
}

/// Text of which a third is repetition.
fn note(seed: u64) -> Bytes {
    let mut text = Vec::with_capacity(NOTE_LEN);
    let mut state = seed;
    while text.len() < NOTE_LEN {
        state = mixed(state.wrapping_add(0x9e37_79b9_7f4a_7c15));
        text.extend(state.to_le_bytes().map(|byte| b"abcdefghijklmnopqrstuvwxyz012345"[usize::from(byte & 31)]));
        text.extend_from_slice(b" and");
    }
    text.truncate(NOTE_LEN);
    text.into()
}

fn row(table: &TableMetadata, device: u64, number: u64, part: u64) -> Row {
    let at = EPOCH_MILLIS + number as i64 * 60_000;
    let mut clustering = ClusteringValues::new();
    clustering.push(Some(Bytes::copy_from_slice(&at.to_be_bytes())));
    let timestamp = (EPOCH_MILLIS + part as i64) * 1000;
    let mut row = Row::new(clustering);
    row.liveness = Liveness::new(timestamp);
    let seed = mixed(device ^ (number << 40) ^ (part << 60));
    for column in &table.regulars {
        let value = match column.name.as_str() {
            "kind" => Bytes::from_static([&b"temperature"[..], b"humidity", b"pressure"][(seed % 3) as usize]),
            "note" => note(seed),
            _ => Bytes::copy_from_slice(&((seed % 100_000) as f64 / 100.0).to_be_bytes()),
        };
        row.columns.push(ColumnData::Simple(Cell::live(column.id, timestamp, value)));
    }
    row
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, version, id, count, rest @ ..] = &arguments[..] else {
        panic!("write_table <directory> <version> <id> <rows> [part] [rows a partition]")
    };
    let directory = PathBuf::from(directory);
    let version = Version::from_name(version).expect("a version, like da");
    let id = SSTableId::Sequence(id.parse().expect("a number"));
    let count: u64 = count.parse().expect("a number of rows");
    let part: u64 = rest.first().map_or(0, |text| text.parse().expect("the number of a part"));
    let rows_per_partition: u64 =
        rest.get(1).map_or(PARTITION_ROWS_DEFAULT, |text| text.parse().expect("a number of rows"));
    let table = table();
    let mut keys: Vec<(DecoratedKey, u64)> = (0..count / rows_per_partition)
        .map(|device| (DecoratedKey::new(Bytes::copy_from_slice(&device.to_be_bytes())), device))
        .collect();
    keys.sort();
    let mut stats = EncodingStatsCollector::default();
    stats.row(&row(&table, 0, 0, part));
    let header = Header::for_table(&table, stats.finish());
    let options = WriterOptions::for_table(&table, keys.len() as u64).expect("default options");
    let env = env::real::env();
    env.disk.create_dir_all(&directory).expect("a directory");
    let descriptor = Descriptor::new(&directory, version, id);
    let mut writer = SSTableWriter::new(&env, descriptor, Arc::clone(&table), options, header).expect("files");
    let first = part * rows_per_partition * 3 / 4;
    for (key, device) in &keys {
        writer.start_partition(key, DeletionTime::LIVE);
        for number in first..first + rows_per_partition {
            writer.append(&Unfiltered::Row(row(&table, *device, number, part))).expect("written");
        }
        writer.end_partition().expect("written");
    }
    let finished = writer.finish().expect("written");
    eprintln!("{} rows, {:?}", count, finished.data);
    println!("{CREATE}");
}
