//! A writer refuses rows that are out of order and a range that stays open. The opening after a
//! writing finds files that are not the ones that were written.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use env::Env;
use rows::codec::{EncodingStats, Header};
use rows::{ClusteringPrefix, ClusteringValues, DeletionTime, Liveness, RangeTombstoneMarker, Row, Unfiltered};
use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use sstable::{
    Component, Descriptor, Error, FinishedSSTable, NoCache, SSTable, SSTableId, SSTableWriter, Version, WriterOptions,
};
use types::{CqlType, DecoratedKey};

fn table() -> Arc<TableMetadata> {
    let spec =
        |name: &str, kind| ColumnSpec { name: name.to_owned(), kind, position: 0, ty: CqlType::Int, reversed: false };
    let specs = vec![spec("k", ColumnKind::PartitionKey), spec("c", ColumnKind::Clustering)];
    let (kind, flags, params) = (TableKind::Regular, TableFlags::COMPOUND, TableParams::default());
    Arc::new(TableMetadata::new(TableId([7; 16]), "ks", "t", kind, flags, params, specs, BTreeMap::new(), None))
}

fn int(value: i32) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

fn clustering(c: i32) -> ClusteringValues {
    [Some(int(c))].into_iter().collect()
}

fn row(c: i32) -> Unfiltered {
    let mut row = Row::new(clustering(c));
    row.liveness = Liveness::new(1);
    Unfiltered::Row(row)
}

fn writer(env: &Env, directory: &Path, sequence: u64) -> SSTableWriter {
    let table = table();
    let descriptor = Descriptor::new(directory, Version::DA, SSTableId::Sequence(sequence));
    let options = WriterOptions::for_table(&table, 1).unwrap();
    let header = Header::for_table(&table, EncodingStats::default());
    SSTableWriter::new(env, descriptor, table, options, header).unwrap()
}

fn key(k: i32) -> DecoratedKey {
    DecoratedKey::new(int(k))
}

fn why(error: Error) -> String {
    match error {
        Error::Corrupt(corruption) => corruption.what,
        other => panic!("{other}"),
    }
}

#[test]
fn rows_out_of_order_are_not_written() {
    let directory = crate::fixtures::output("invariants-order");
    for second in [1, 2] {
        let mut writer = writer(&env::real::env(), directory.path(), 1);
        writer.start_partition(&key(1), DeletionTime::LIVE);
        writer.append(&row(2)).unwrap();
        let why = why(writer.append(&row(second)).unwrap_err());
        assert!(why.contains("out of order"), "{why}");
        writer.abort();
    }
}

#[test]
fn a_range_is_closed_before_its_partition_ends() {
    let directory = crate::fixtures::output("invariants-ranges");
    let mut writer = writer(&env::real::env(), directory.path(), 1);
    writer.start_partition(&key(1), DeletionTime::LIVE);
    let position = ClusteringPrefix::start(clustering(1), true);
    let opens = RangeTombstoneMarker { position, close: None, open: Some(DeletionTime::new(5, 5)) };
    writer.append(&Unfiltered::Marker(opens)).unwrap();
    let why = why(writer.end_partition().unwrap_err());
    assert!(why.contains("is open"), "{why}");
    writer.abort();
}

/// An SSTable of partitions with a row each.
fn written(env: &Env, directory: &Path, sequence: u64, keys: &[i32]) -> FinishedSSTable {
    let mut writer = writer(env, directory, sequence);
    let mut keys: Vec<_> = keys.iter().map(|k| key(*k)).collect();
    keys.sort();
    for key in &keys {
        writer.start_partition(key, DeletionTime::LIVE);
        writer.append(&row(1)).unwrap();
        writer.end_partition().unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn what_is_read_is_what_was_written() {
    let env = env::real::env();
    for other in [vec![1, 2, 4], vec![1, 2], vec![0, 1, 2, 3]] {
        let directory = crate::fixtures::output("invariants-written");
        let first = written(&env, directory.path(), 1, &[1, 2, 3]);
        let open =
            || SSTable::open(&env, first.descriptor.clone(), &table(), Arc::new(NoCache)).expect("sound by itself");
        open().check_written(&first).expect("nothing has changed");
        // whole and sound, and another SSTable all the same
        let second = written(&env, directory.path(), 2, &other);
        for component in Component::ALL.into_iter().filter(|one| second.descriptor.path(*one).exists()) {
            std::fs::copy(second.descriptor.path(component), first.descriptor.path(component)).unwrap();
        }
        let why = why(open().check_written(&first).unwrap_err());
        assert!(why.contains("was written"), "{why}");
    }
}

/// The filter of another SSTable has no checksum that would tell: reads by key would find nothing.
#[test]
fn what_was_written_is_found_by_key() {
    let (env, directory) = (env::real::env(), crate::fixtures::output("invariants-found"));
    let first = written(&env, directory.path(), 1, &[1, 2, 3]);
    let second = written(&env, directory.path(), 2, &[7, 8, 9]);
    std::fs::copy(second.descriptor.path(Component::Filter), first.descriptor.path(Component::Filter)).unwrap();
    let opened = SSTable::open(&env, first.descriptor.clone(), &table(), Arc::new(NoCache)).expect("sound by itself");
    let why = why(opened.check_written(&first).unwrap_err());
    assert!(why.contains("is not found"), "{why}");
}
