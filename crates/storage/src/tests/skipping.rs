//! A read of one partition leaves out the SSTables that are older than a deletion of it, and those
//! alone; what it gives is right.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use env::sim::{DATA, Sim};
use rows::command::ReadStats;
use rows::live::{LiveRows, TombstoneLimits};
use rows::{Cell, DeletionTime, Mutation, PartitionRange, PartitionUpdate, ReadCommand, ReadContext, ReadMode, Row};
use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use types::{CqlType, DecoratedKey};

use super::common::{int, keyspace, number};
use crate::{Engine, EngineOptions, schema_change};

fn table() -> Arc<TableMetadata> {
    let spec =
        |name: &str, kind| ColumnSpec { name: name.into(), kind, position: 0, ty: CqlType::Int, reversed: false };
    let specs =
        vec![spec("k", ColumnKind::PartitionKey), spec("c", ColumnKind::Clustering), spec("v", ColumnKind::Regular)];
    let (kind, flags) = (TableKind::Regular, TableFlags::COMPOUND);
    let params = TableParams::default();
    Arc::new(TableMetadata::new(TableId([9; 16]), "skipping", "t", kind, flags, params, specs, BTreeMap::new(), None))
}

struct Table {
    sim: Sim,
    engine: Arc<Engine>,
    table: Arc<TableMetadata>,
}

impl Table {
    fn open() -> Self {
        let sim = Sim::new(1);
        let (engine, _) =
            crate::open(&sim.env(), EngineOptions::with_small_budgets(Path::new(DATA))).expect("a sound disk");
        let keyspace = keyspace("skipping", Some(table()));
        let changed = schema_change::change(&engine, |schema| Ok::<_, ()>(schema.with_keyspace(keyspace)));
        assert!(changed.is_ok_and(|changed| changed.is_ok()));
        let table = engine.schema().table("skipping", "t").cloned().expect("it was made");
        Self { sim, engine, table }
    }

    /// Rows of a partition, all of one time, in an SSTable of their own; or the deletion of it.
    fn write(&self, k: i32, cs: std::ops::Range<i32>, timestamp: i64, deletes: bool) {
        let mut update = PartitionUpdate::new(Arc::clone(&self.table), DecoratedKey::new(int(k)));
        if deletes {
            update.deletion = DeletionTime::new(timestamp, 1_700_000_000);
        }
        for c in cs {
            let mut row = Row::new([Some(int(c))].into_iter().collect());
            row.add_cell(Cell::live(self.table.regulars[0].id, timestamp, int(c)));
            update.add_row(row);
        }
        self.engine.apply(&[Mutation::of(update)]).expect("a sound disk takes a write");
    }

    fn flush(&self) {
        let store = self.engine.table(self.table.id).expect("open");
        self.sim.block_on(self.engine.flush(&store)).expect("a sound disk flushes");
    }

    /// The rows of a partition, and how many SSTables were read for them.
    fn read(&self, k: i32, reversed: bool) -> (Vec<i32>, u64) {
        let range = PartitionRange::Key(DecoratedKey::new(int(k)));
        let command = ReadCommand { reversed, now: 1_700_000_001, ..ReadCommand::whole(&self.table, range) };
        let context = ReadContext::new(ReadMode::Background);
        let mut stream = self.engine.read(&command, &context).expect("sound");
        let mut live = LiveRows::new(stream.as_mut(), Arc::clone(&self.table), command.now, TombstoneLimits::NONE);
        let mut found = Vec::new();
        while live.next_partition().expect("sound").is_some() {
            while let Some(row) = live.next_row().expect("sound") {
                found.extend(row.clustering[0].as_deref().map(number));
            }
        }
        (found, ReadStats::get(&context.stats.sstables_read))
    }
}

#[test]
fn what_a_partition_deletion_covers_is_not_read() {
    let table = Table::open();
    for k in [1, 2] {
        table.write(k, 0..10, 100, false);
    }
    table.flush();
    table.write(1, 5..15, 200, false);
    table.write(2, 5..15, 200, false);
    table.flush();
    assert_eq!(table.read(1, false), ((0..15).collect(), 2));
    // in the memtable: both SSTables are older
    table.write(1, 0..0, 250, true);
    table.write(1, 20..22, 300, false);
    assert_eq!(table.read(1, false), (vec![20, 21], 0));
    assert_eq!(table.read(1, true), (vec![21, 20], 0));
    // in an SSTable: it is read first
    table.flush();
    assert_eq!(table.read(1, false), (vec![20, 21], 1));
    assert_eq!(table.read(2, true), ((0..15).rev().collect(), 2));
    // a deletion that does not cover the newer of them
    table.write(2, 0..0, 150, true);
    assert_eq!(table.read(2, false), ((5..15).collect(), 1));
}
