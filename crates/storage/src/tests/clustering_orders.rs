//! Clusterings whose values are equal or ordered in other ways than their bytes: memtables, SSTables
//! and their row indexes agree about the rows and their order.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use env::sim::{DATA, Sim};
use rows::live::{LiveRows, TombstoneLimits};
use rows::{Cell, Mutation, PartitionRange, PartitionUpdate, ReadCommand, ReadContext, ReadMode, Row, Slice, Slices};
use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use types::{CqlType, DecoratedKey};

use super::common::{int, keyspace, number};
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
        let spec =
            |name: &str, kind, position, ty| ColumnSpec { name: name.into(), kind, position, ty, reversed: false };
        let specs = vec![
            spec("k", ColumnKind::PartitionKey, 0, CqlType::Int),
            spec("c", ColumnKind::Clustering, 0, ty),
            spec("d", ColumnKind::Clustering, 1, CqlType::Int),
            spec("v", ColumnKind::Regular, 0, CqlType::Blob),
        ];
        let (kind, flags, params) = (TableKind::Regular, TableFlags::COMPOUND, TableParams::default());
        let none = BTreeMap::new();
        let table = TableMetadata::new(TableId([6; 16]), "orders", "t", kind, flags, params, specs, none, None);
        let sim = Sim::new(1);
        let (engine, _) = crate::open(&sim.env(), EngineOptions::beneath(Path::new(DATA))).expect("a sound disk");
        let orders = keyspace("orders", Some(Arc::new(table)));
        let changed = schema_change::change(&engine, |schema| Ok::<_, ()>(schema.with_keyspace(orders)));
        assert!(changed.is_ok_and(|changed| changed.is_ok()));
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
        let command = ReadCommand { slices, reversed, now: 1_700_000_001, ..ReadCommand::whole(&self.table, range) };
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
