//! Cost of reading one wide partition from cached chunks: run it under callgrind with two numbers
//! of rounds; the difference over rounds and rows is instructions a row.
//!
//! `decode_partition <rounds> [rows] [full|slice|reversed|point|key] [da|oa|nb]`

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use rows::codec::{EncodingStatsCollector, Header};
use rows::{
    Cell, ClusteringValues, ColumnData, ColumnFilter, DataLimits, DeletionTime, Liveness, PartitionRange,
    PartitionStream, ReadCommand, ReadContext, ReadMode, Row, Slice, Slices, Unfiltered,
};
use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use sstable::{Descriptor, FileCache, SSTable, SSTableId, SSTableWriter, Version, WriterOptions};
use types::{CqlType, DecoratedKey};

#[derive(Default)]
struct Chunks(Mutex<HashMap<(u64, u64), Bytes>>);

impl FileCache for Chunks {
    fn chunk(&self, file: u64, chunk: u64) -> Option<Bytes> {
        self.0.lock().expect("nobody panics").get(&(file, chunk)).cloned()
    }

    fn chunk_for_scan(&self, file: u64, chunk: u64) -> Option<Bytes> {
        self.chunk(file, chunk)
    }

    fn caches_scans_of(&self, _: u64) -> bool {
        true
    }

    fn insert_chunk(&self, file: u64, chunk: u64, bytes: &Bytes) {
        self.0.lock().expect("nobody panics").insert((file, chunk), bytes.clone());
    }
}

fn table() -> Arc<TableMetadata> {
    let column = |name: &str, kind, ty| ColumnSpec { name: name.to_owned(), kind, position: 0, ty, reversed: false };
    let specs = vec![
        column("k", ColumnKind::PartitionKey, CqlType::Int),
        column("c", ColumnKind::Clustering, CqlType::Int),
        column("a", ColumnKind::Regular, CqlType::Int),
        column("b", ColumnKind::Regular, CqlType::BigInt),
        column("t", ColumnKind::Regular, CqlType::Text),
    ];
    Arc::new(TableMetadata::new(
        TableId([1; 16]),
        "ks",
        "t",
        TableKind::Regular,
        TableFlags::COMPOUND,
        TableParams::default(),
        specs,
        BTreeMap::new(),
        None,
    ))
}

fn clustering(number: u32) -> ClusteringValues {
    let mut values = ClusteringValues::new();
    values.push(Some(Bytes::copy_from_slice(&number.to_be_bytes())));
    values
}

fn row(table: &TableMetadata, number: u32) -> Row {
    let timestamp = 1_700_000_000_000_000 + i64::from(number);
    let mut row = Row::new(clustering(number));
    row.liveness = Liveness::new(timestamp);
    for column in &table.regulars {
        let value = match column.name.as_str() {
            "a" => Bytes::copy_from_slice(&number.to_be_bytes()),
            "b" => Bytes::copy_from_slice(&timestamp.to_be_bytes()),
            _ => Bytes::from(format!("text of row number {number}, so long")),
        };
        row.columns.push(ColumnData::Simple(Cell::live(column.id, timestamp, value)));
    }
    row
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let rounds: u32 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1);
    let count: u32 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(10_000);
    let what = arguments.next().unwrap_or_else(|| "full".to_owned());
    let version = arguments.next().and_then(|name| Version::from_name(&name)).unwrap_or(Version::DA);
    let env = env::real::env();
    let table = table();
    let directory = std::env::temp_dir().join(format!("decode_partition-{}", std::process::id()));
    env.disk.create_dir_all(&directory).expect("a scratch directory");
    let key = DecoratedKey::new(Bytes::from_static(&[0, 0, 0, 1]));
    let mut stats = EncodingStatsCollector::default();
    stats.row(&row(&table, 0));
    let header = Header::for_table(&table, stats.finish());
    let descriptor = Descriptor::new(&directory, version, SSTableId::Sequence(1));
    let options = WriterOptions::for_table(&table, 1).expect("default options");
    let mut writer =
        SSTableWriter::new(&env, descriptor.clone(), Arc::clone(&table), options, header).expect("written");
    writer.start_partition(&key, DeletionTime::LIVE);
    for number in 0..count {
        writer.append(&Unfiltered::Row(row(&table, number))).expect("written");
    }
    writer.end_partition().expect("written");
    writer.finish().expect("written");
    let sstable = SSTable::open(&env, descriptor, &table, Arc::new(Chunks::default())).expect("opened");
    let context = ReadContext::new(ReadMode::Background);
    let mut command = ReadCommand {
        table: Arc::clone(&table),
        range: PartitionRange::Key(key),
        slices: Slices::all(),
        reversed: what == "reversed",
        columns: ColumnFilter::All,
        now: 0,
        limits: DataLimits::NONE,
        indexes: Vec::new(),
    };
    let mut rows = 0u64;
    for round in 0..rounds {
        command.slices = match what.as_str() {
            "point" => Slices::from(vec![Slice::of_prefix(clustering(round.wrapping_mul(7919) % count))]),
            "slice" => Slices::from(vec![Slice {
                start: rows::ClusteringPrefix::start(clustering(round.wrapping_mul(7919) % count), true),
                end: rows::ClusteringPrefix::top(),
            }]),
            "key" => Slices::none(),
            _ => Slices::all(),
        };
        let mut stream = sstable.read(&command, &context).expect("read");
        while stream.next_partition().expect("read").is_some() {
            while let Some(unfiltered) = stream.next_unfiltered().expect("read") {
                rows += u64::from(matches!(unfiltered, Unfiltered::Row(_)));
                if what == "slice" {
                    break;
                }
            }
        }
    }
    println!("{rows} rows");
    env.disk.remove_dir_all(&directory).expect("removed");
}
