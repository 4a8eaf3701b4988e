//! Writes an SSTable to measure with: `make_sstable DIR PARTITIONS ROWS`, rows of a text of 60 letters, numbers, a UUID and a time.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use rows::codec::{EncodingStats, Header};
use rows::{Cell, ColumnData, DeletionTime, Liveness, Row, Unfiltered};
use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use sstable::{Descriptor, SSTableId, SSTableWriter, Version, WriterOptions};
use types::{CqlType, DecoratedKey};

const BASE: i64 = 1_700_000_000_000_000;

fn table() -> TableMetadata {
    let spec = |name: &str, kind, ty| ColumnSpec { name: name.to_owned(), kind, position: 0, ty, reversed: false };
    let specs = vec![
        spec("k", ColumnKind::PartitionKey, CqlType::Text),
        spec("c", ColumnKind::Clustering, CqlType::Int),
        spec("d", ColumnKind::Regular, CqlType::Double),
        spec("n", ColumnKind::Regular, CqlType::BigInt),
        spec("t", ColumnKind::Regular, CqlType::Timestamp),
        spec("u", ColumnKind::Regular, CqlType::Uuid),
        spec("v", ColumnKind::Regular, CqlType::Text),
    ];
    let id = TableId::of_system_table("bench", "rows");
    let (kind, flags, params) = (TableKind::Regular, TableFlags::COMPOUND, TableParams::default());
    TableMetadata::new(id, "bench", "rows", kind, flags, params, specs, BTreeMap::new(), None)
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |index: usize| arguments[index].parse::<u32>().expect("a number");
    let (partitions, rows) = (number(2), number(3));
    let env = env::real::env();
    let table = Arc::new(table());
    let stats = EncodingStats { min_timestamp: BASE, ..EncodingStats::default() };
    let header = Header::for_table(&table, stats);
    let options = WriterOptions::for_table(&table, u64::from(partitions)).expect("the default compression");
    let descriptor = Descriptor::new(Path::new(&arguments[1]), Version::DA, SSTableId::Sequence(1));
    env.disk.create_dir_all(&descriptor.directory).expect("a directory");
    let mut writer = SSTableWriter::new(&env, descriptor, Arc::clone(&table), options, header).expect("a writer");
    let mut keys: Vec<_> =
        (0..partitions).map(|id| DecoratedKey::new(format!("partition-{id:08}").into_bytes().into())).collect();
    keys.sort();
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 16
    };
    for key in &keys {
        writer.start_partition(key, DeletionTime::LIVE);
        for c in 0..rows {
            let timestamp = BASE + next() as i64 % 1_000_000_000;
            let mut row = Row::new([Some((c as i32).to_be_bytes().to_vec().into())].into_iter().collect());
            row.liveness = Liveness::new(timestamp);
            let text: String = (0..60).map(|_| char::from(b'a' + (next() % 16) as u8)).collect();
            let mut uuid = [0; 16];
            uuid[..8].copy_from_slice(&next().to_be_bytes());
            let values: [Vec<u8>; 5] = [
                (next() as f64 / 1000.0).to_be_bytes().to_vec(),
                (next() as i64).to_be_bytes().to_vec(),
                (timestamp / 1000).to_be_bytes().to_vec(),
                uuid.to_vec(),
                text.into_bytes(),
            ];
            for (column, value) in table.regulars.iter().zip(values) {
                row.columns.push(ColumnData::Simple(Cell::live(column.id, timestamp, value.into())));
            }
            writer.append(&Unfiltered::Row(row)).expect("a row is written");
        }
        writer.end_partition().expect("a partition is written");
    }
    let finished = writer.finish().expect("an SSTable");
    println!("{} partitions, {} bytes of data", finished.partitions, finished.data.length);
}
