//! Every SSTable of Cassandra is read to the last cell, and each of its keys is found.

use std::collections::BTreeMap;
use std::sync::Arc;

use rows::{ColumnData, PartitionRange, PartitionStream, ReadCommand, ReadContext, ReadMode, Unfiltered};
use schema::{DroppedColumn, TableMetadata};
use sstable::{KeyHash, SSTable};

use crate::{dump, fixtures};

#[test]
fn content_is_what_cassandra_says() {
    let mut lines = 0;
    for fixture in fixtures::all(&fixtures::VERSIONS) {
        let sstable = fixture.open();
        let mut stream = sstable.scan_all(&ReadContext::new(ReadMode::Background)).unwrap();
        let found = dump::lines(sstable.table(), &mut stream);
        let golden = fixture.golden_lines();
        for (number, (found, golden)) in found.iter().zip(&golden).enumerate() {
            assert_eq!(found, golden, "{:?} line {}", fixture.descriptor, number + 1);
        }
        assert_eq!(found.len(), golden.len(), "{:?}", fixture.descriptor);
        lines += found.len();
    }
    println!("{lines} lines equal");
}

/// Legacy indexes: keys in the order of the type of what is indexed, no tokens. Some were too much
/// for Cassandra's offline reader.
#[test]
fn index_tables_are_scanned() {
    let (mut tables, mut compared) = (0, 0);
    for fixture in fixtures::indexes(&fixtures::VERSIONS) {
        let sstable = fixture.open();
        assert!(!sstable.has_tokens());
        let mut stream = sstable.scan_all(&ReadContext::new(ReadMode::Background)).unwrap();
        let mut found = dump::lines(sstable.table(), &mut stream);
        found.iter_mut().filter_map(|line| line.get_mut("tok")).for_each(|token| *token = serde_json::Value::Null);
        let partitions = found.iter().filter(|line| line.get("pk").is_some()).count();
        assert_eq!(partitions as u64, sstable.partition_count());
        if fixture.descriptor.format == sstable::Format::Big {
            find_each_key(&sstable);
        }
        tables += 1;
        if fixture.has_golden_lines() {
            assert_eq!(found, fixture.golden_lines(), "{:?}", fixture.descriptor);
            compared += 1;
        }
    }
    assert!(tables > 20 && compared > 15, "{tables} tables, {compared} compared");
}

/// The tries of BTI are of tokens, which there are none of.
fn find_each_key(sstable: &SSTable) {
    let mut stream = sstable.scan_all(&ReadContext::new(ReadMode::Background)).unwrap();
    while let Some(head) = stream.next_partition().unwrap() {
        assert!(sstable.may_contain(&head.key, KeyHash::of(&head.key.key)));
        let command = ReadCommand::whole(sstable.table(), PartitionRange::Key(head.key.clone()));
        let mut found = sstable.read(&command, &ReadContext::new(ReadMode::Background)).unwrap();
        assert_eq!(found.next_partition().unwrap(), Some(head));
    }
}

/// Cells by column name.
fn cell_counts(sstable: &SSTable) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    let mut stream = sstable.scan_all(&ReadContext::new(ReadMode::Background)).unwrap();
    while let Some(_head) = stream.next_partition().unwrap() {
        while let Some(unfiltered) = stream.next_unfiltered().unwrap() {
            let Unfiltered::Row(row) = unfiltered else { continue };
            assert!(!row.is_empty());
            for data in &row.columns {
                let name = sstable.table().column(data.column()).unwrap().name.clone();
                let cells = match data {
                    ColumnData::Simple(_) => 1,
                    ColumnData::Complex(complex) => complex.cells.len(),
                };
                *counts.entry(name).or_default() += cells;
            }
        }
    }
    counts
}

#[test]
fn dropped_columns_are_passed_over() {
    for fixture in fixtures::all(&fixtures::VERSIONS) {
        let sstable = fixture.open();
        let before = sstable.table();
        let Some(column) = before.regulars.first().cloned() else { continue };
        let all = cell_counts(&sstable);
        let dropped = DroppedColumn {
            name: column.name.clone(),
            ty: column.ty.clone(),
            kind: column.kind,
            dropped_time: i64::MAX,
        };
        // dropped; then added again
        for again in [false, true] {
            let mut specs = before.specs();
            specs.retain(|spec| again || spec.name != column.name);
            let after = Arc::new(TableMetadata::new(
                before.id,
                &before.keyspace,
                &before.name,
                before.kind,
                before.flags,
                before.params.clone(),
                specs,
                BTreeMap::from([(column.name.clone(), dropped.clone())]),
                Some(before),
            ));
            let mut expected = all.clone();
            expected.remove(&column.name);
            let mut found = cell_counts(&sstable.with_schema(&after).unwrap());
            found.retain(|name, count| *count > 0 || expected.contains_key(name));
            assert_eq!(found, expected, "{:?} {}", fixture.descriptor, column.name);
        }
    }
}
