//! Clusterings whose values are equal or ordered in other ways than their bytes: memtables,
//! SSTables and their row indexes agree about the rows and their order.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use env::sim::{DATA, Sim};
use rows::live::{LiveRows, TombstoneLimits};
use rows::{
    Cell, IndexSearch, Mutation, PartitionRange, PartitionUpdate, ReadCommand, ReadContext, ReadMode, Row,
    SearchOperator, Slice, Slices,
};
use schema::table::ColumnSpec;
use schema::{ColumnKind, IndexMetadata, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use sstable::Version;
use types::collection::build_tuple;
use types::{CqlType, DecoratedKey};

use super::common::{index, int, keyspace, number};
use crate::{Engine, EngineOptions, schema_change};

/// Bytes of a row's value: a few dozen rows take several blocks of an SSTable.
const VALUE_LEN: usize = 2 << 10;

struct Table {
    sim: Sim,
    engine: Arc<Engine>,
    table: Arc<TableMetadata>,
}

impl Table {
    /// `t (k int, c <ty>, d int, v blob, PRIMARY KEY (k, c, d))`.
    fn open(ty: CqlType) -> Self {
        Self::with(ty, false, Version::DA, &[])
    }

    /// As [`Self::open`], with `c` in descending order if it is `reversed`.
    fn with(ty: CqlType, reversed: bool, version: Version, indexes: &[IndexMetadata]) -> Self {
        let spec =
            |name: &str, kind, position, ty, reversed| ColumnSpec { name: name.into(), kind, position, ty, reversed };
        let specs = vec![
            spec("k", ColumnKind::PartitionKey, 0, CqlType::Int, false),
            spec("c", ColumnKind::Clustering, 0, ty, reversed),
            spec("d", ColumnKind::Clustering, 1, CqlType::Int, false),
            spec("v", ColumnKind::Regular, 0, CqlType::Blob, false),
        ];
        let (kind, flags, params) = (TableKind::Regular, TableFlags::COMPOUND, TableParams::default());
        let none = BTreeMap::new();
        let mut table = TableMetadata::new(TableId([6; 16]), "orders", "t", kind, flags, params, specs, none, None);
        table.indexes.extend(indexes.iter().map(|index| (index.name.clone(), index.clone())));
        let sim = Sim::new(1);
        let options = EngineOptions { sstable_version: version, ..EngineOptions::with_small_budgets(Path::new(DATA)) };
        let (engine, _) = crate::open(&sim.env(), options).expect("a sound disk");
        let orders = keyspace("orders", Some(Arc::new(table)));
        let changed = schema_change::change(&engine, |schema| Ok::<_, ()>(schema.with_keyspace(orders)));
        assert!(changed.is_ok_and(|changed| changed.is_ok()));
        // indexes are complete then
        let _ = sim.run_until_idle();
        let table = engine.schema().table("orders", "t").cloned().expect("it was made");
        Self { sim, engine, table }
    }

    fn write(&self, c: &Bytes, d: i32) {
        let mut update = PartitionUpdate::new(Arc::clone(&self.table), DecoratedKey::new(int(1)));
        let mut row = Row::new([Some(c.clone()), Some(int(d))].into_iter().collect());
        row.add_cell(Cell::live(self.table.regulars[0].id, 100, Bytes::from(vec![7; VALUE_LEN])));
        update.add_row(row);
        self.engine.apply(&[Mutation::of(update)]).expect("a sound disk takes a write");
    }

    fn flush(&self) {
        let store = self.engine.table(self.table.id).expect("open");
        self.sim.block_on(self.engine.flush(&store)).expect("a sound disk flushes");
    }

    /// The clusterings of rows: of all of them, or of one.
    fn read(&self, row: Option<(&Bytes, i32)>, reversed: bool) -> Vec<(Bytes, i32)> {
        let slices = row.map_or_else(Slices::all, |(c, d)| {
            let slice = Slice::of_prefix([Some(c.clone()), Some(int(d))].into_iter().collect());
            Slices::normalized(vec![slice], &self.table.comparator)
        });
        let range = PartitionRange::Key(DecoratedKey::new(int(1)));
        self.run(ReadCommand { slices, reversed, ..ReadCommand::whole(&self.table, range) })
    }

    /// The clusterings of the rows that an index finds.
    fn find(&self, index: &str, value: Bytes) -> Vec<(Bytes, i32)> {
        let search = IndexSearch { name: index.into(), operator: SearchOperator::Eq, value };
        self.run(ReadCommand { indexes: vec![search], ..ReadCommand::whole(&self.table, PartitionRange::all()) })
    }

    fn run(&self, command: ReadCommand) -> Vec<(Bytes, i32)> {
        let command = ReadCommand { now: 1_700_000_001, ..command };
        let mut stream = self.engine.read(&command, &ReadContext::new(ReadMode::Background)).expect("sound");
        let mut live = LiveRows::new(stream.as_mut(), Arc::clone(&self.table), command.now, TombstoneLimits::NONE);
        let mut found = Vec::new();
        while live.next_partition().expect("sound").is_some() {
            while let Some(row) = live.next_row().expect("sound") {
                let value = |index: usize| row.clustering[index].clone().expect("rows have all their values");
                found.push((value(0), number(&value(1))));
            }
        }
        found
    }
}

/// NaNs of all bits are one value, which is greater than every number. CPUs calculate NaNs with the
/// sign bit, and clients send them.
#[test]
fn nans_are_one_value_behind_all_numbers() {
    const ROWS: i32 = 60;
    let float = |bits: u32| Bytes::copy_from_slice(&bits.to_be_bytes());
    let double = |bits: u64| Bytes::copy_from_slice(&bits.to_be_bytes());
    let floats = [0x3f80_0000, 0xffc0_0000, 0x7fc0_0001].map(float);
    let doubles = [0x3ff0_0000_0000_0000, 0xfff8_0000_0000_0000, 0x7ff8_0000_0000_0001].map(double);
    for (ty, [one, nan, other]) in [(CqlType::Float, floats), (CqlType::Double, doubles)] {
        let table = Table::open(ty);
        for d in 0..ROWS {
            table.write(&nan, d);
            table.write(&other, d);
        }
        table.write(&one, 0);
        for is_flushed in [false, true] {
            if is_flushed {
                table.flush();
            }
            let found = |row, reversed| -> Vec<(bool, i32)> {
                table.read(row, reversed).into_iter().map(|(c, d)| (c == one, d)).collect()
            };
            let mut expected: Vec<_> = std::iter::once((true, 0)).chain((0..ROWS).map(|d| (false, d))).collect();
            assert_eq!(found(None, false), expected, "flushed {is_flushed}");
            expected.reverse();
            assert_eq!(found(None, true), expected, "flushed {is_flushed}");
            for (c, d) in [(&nan, 0), (&other, 30), (&nan, ROWS - 1)] {
                for reversed in [false, true] {
                    assert_eq!(found(Some((c, d)), reversed), [(false, d)], "flushed {is_flushed}");
                }
            }
        }
    }
}

/// A field that is null and one that is empty are two values, and the null is the lesser one.
#[test]
fn null_and_empty_fields_are_two_values() {
    let tuple =
        |first: Option<&[u8]>, second: i32| Bytes::from(build_tuple(&[first, Some(second.to_be_bytes().as_slice())]));
    let ascending = [tuple(None, 1), tuple(None, 5), tuple(Some(&[]), 1), tuple(Some(&[]), 5)];
    let table = Table::open(CqlType::Tuple(vec![CqlType::Int, CqlType::Int].into()));
    ascending.iter().rev().for_each(|c| table.write(c, 0));
    for is_flushed in [false, true] {
        if is_flushed {
            table.flush();
        }
        let found: Vec<_> = table.read(None, false).into_iter().map(|(c, _)| c).collect();
        assert_eq!(found, ascending, "flushed {is_flushed}");
        for c in &ascending {
            assert_eq!(table.read(Some((c, 0)), false), [(c.clone(), 0)], "flushed {is_flushed}");
        }
    }
}

/// An empty text is the last in descending order, also among the keys of an index.
#[test]
fn an_empty_text_is_found_by_a_descending_index() {
    for version in [Version::DA, Version::NB] {
        let table = Table::with(CqlType::Text, true, version, &[index("by_c", "c")]);
        let texts = ["b", "a", ""].map(Bytes::from);
        texts.iter().for_each(|text| table.write(text, 0));
        for is_flushed in [false, true] {
            if is_flushed {
                table.flush();
            }
            let found: Vec<_> = table.read(None, false).into_iter().map(|(c, _)| c).collect();
            assert_eq!(found, texts, "{version:?}, flushed {is_flushed}");
            for text in &texts {
                assert_eq!(table.find("by_c", text.clone()), [(text.clone(), 0)], "{version:?}, flushed {is_flushed}");
            }
        }
    }
}
