//! Which tombstones go, case by case, and what the map of them says; random histories are in
//! `purging`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use env::sim::{DATA, Sim};
use rows::{DeletionTime, Liveness, Mutation, PartitionUpdate, Row};
use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use sstable::{Component, Descriptor, SSTable, Statistics};
use types::{CqlType, DecoratedKey};

use super::common::{self, delete_range, delete_row, int};
use crate::compaction::operation::{Operation, Work};
use crate::compaction::purge;
use crate::strategy::kind::Kind;
use crate::{Engine, EngineOptions, TableStore, schema_change, tombstones};

const ID: TableId = TableId([8; 16]);
/// Seconds.
const GC_GRACE: u64 = 100;

pub struct Node {
    pub sim: Sim,
    pub engine: Arc<Engine>,
    pub store: Arc<TableStore>,
}

impl Node {
    /// A node with a table of these compaction options; without a class, tiered by size.
    pub fn new(options: &[(&str, &str)]) -> Self {
        let sim = Sim::new(1);
        let (engine, _) =
            crate::open(&sim.env(), EngineOptions::with_small_budgets(Path::new(DATA))).expect("a sound disk opens");
        let class = "org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy".to_owned();
        let mut compaction = BTreeMap::from([("class".to_owned(), class)]);
        compaction.extend(options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let params = TableParams { compaction, gc_grace_seconds: GC_GRACE as i32, ..TableParams::default() };
        let spec =
            |name: &str, kind| ColumnSpec { name: name.into(), kind, position: 0, ty: CqlType::Int, reversed: false };
        let value = ColumnSpec { ty: CqlType::Blob, ..spec("v", ColumnKind::Regular) };
        let specs = vec![spec("k", ColumnKind::PartitionKey), spec("c", ColumnKind::Clustering), value];
        let (kind, flags) = (TableKind::Regular, TableFlags::COMPOUND);
        let table = TableMetadata::new(ID, "tombs", "t", kind, flags, params, specs, BTreeMap::new(), None);
        let keyspace = common::keyspace("tombs", Some(Arc::new(table)));
        let changed = schema_change::change(&engine, |schema| Ok::<_, ()>(schema.with_keyspace(keyspace)));
        assert!(changed.is_ok_and(|changed| changed.is_ok()));
        let store = engine.table(ID).expect("the table is open");
        Self { sim, engine, store }
    }

    /// Writes a change of the partition `k` at the timestamp `at`, by the clock of now.
    pub fn write(&self, k: i32, at: i64, change: impl FnOnce(&mut PartitionUpdate, DeletionTime)) {
        let mut update = PartitionUpdate::new(self.store.table(), DecoratedKey::new(int(k)));
        change(&mut update, DeletionTime::new(at, self.sim.env().clock.now_seconds()));
        self.engine.apply(&[Mutation::of(update)]).expect("a sound disk takes writes");
    }

    pub fn insert(&self, k: i32, c: i32, at: i64) {
        self.write(k, at, |update, _| {
            let mut row = Row::new([Some(int(c))].into_iter().collect());
            row.liveness = Liveness::new(at);
            update.add_row(row);
        });
    }

    pub fn delete(&self, k: i32, c: i32, at: i64) {
        self.write(k, at, |update, deletion| delete_row(update, [Some(int(c))].into_iter().collect(), deletion));
    }

    pub fn flush(&self) {
        self.sim.block_on(self.engine.flush(&self.store)).expect("a sound disk flushes");
    }

    pub fn compact(&self) {
        let operation = Operation::new(Kind::MajorCompaction, Work::Major { split: false }, 1);
        self.sim.block_on(self.engine.operate(&self.store, operation)).expect("a sound disk compacts");
    }

    pub fn gc_grace_ends(&self) {
        self.sim.advance(Duration::from_secs(GC_GRACE + 2));
    }

    /// All SSTables count as repaired.
    fn repair(&self) {
        self.restate(|statistics| statistics.stats.repaired_at = 1_000);
    }

    /// Changes the statistics of all SSTables.
    pub fn restate(&self, change: impl Fn(&mut Statistics)) {
        let env = self.sim.env();
        for sstable in &self.store.view().sstables {
            let descriptor = sstable.descriptor();
            let path = descriptor.path(Component::Statistics);
            let bytes = env.disk.read_all(&path, 1 << 20).expect("it is there");
            let mut statistics = Statistics::read(&bytes.into(), descriptor.version).expect("it is sound");
            change(&mut statistics);
            env.disk.replace_file(&path, &statistics.write(descriptor.version)).expect("a sound disk");
            let cache: Arc<dyn sstable::FileCache> = Arc::clone(&self.engine.caches) as _;
            let reloaded = SSTable::open(&env, descriptor.clone(), &self.store.table(), cache).expect("it is sound");
            self.store.replace_sstables(std::slice::from_ref(sstable), vec![Arc::new(reloaded)]);
        }
    }

    /// A copy of an SSTable in a directory of its own, named as another one is.
    fn moved(&self, sstable: &SSTable, named_as: &Descriptor) -> Arc<SSTable> {
        let env = self.sim.env();
        let descriptor = Descriptor { directory: named_as.directory.join("elsewhere"), ..named_as.clone() };
        env.disk.create_dir_all(&descriptor.directory).expect("a sound disk");
        for component in Component::ALL {
            if let Ok(bytes) = env.disk.read_all(&sstable.descriptor().path(component), 1 << 20) {
                env.disk.replace_file(&descriptor.path(component), &bytes).expect("a sound disk");
            }
        }
        let cache: Arc<dyn sstable::FileCache> = Arc::clone(&self.engine.caches) as _;
        Arc::new(SSTable::open(&env, descriptor, &self.store.table(), cache).expect("it is sound"))
    }

    fn map(&self) -> String {
        tombstones::tombstones(&self.store, 2).expect("a sound disk reads").concat()
    }
}

#[track_caller]
fn assert_says(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|found| found.trim() == *line), "{line:?} is not in\n{text}");
    }
}

#[test]
fn tombstones_that_are_not_repaired_stay_where_only_repaired_ones_go() {
    for only_repaired in [false, true] {
        let node = Node::new(&[("only_purge_repaired_tombstones", if only_repaired { "true" } else { "false" })]);
        node.insert(1, 1, 10);
        node.delete(1, 2, 20);
        node.flush();
        node.gc_grace_ends();
        if only_repaired {
            let why = "stay        1: only_purge_repaired_tombstones is set and the SSTable is not repaired";
            assert_says(&node.map(), &[why, "may go      0 of 1, if this SSTable is compacted alone"]);
            node.compact();
            assert_says(&node.map(), &[why]);
            node.repair();
        }
        assert_says(&node.map(), &["may go      1 of 1, if this SSTable is compacted alone"]);
        node.compact();
        assert!(node.map().contains(": 0 tombstones in 0 of 1 partitions (1 rows)"), "{}", node.map());
    }
}

#[test]
fn the_map_says_where_and_why() {
    let node = Node::new(&[]);
    // older data of partition 1, none of partition 2
    node.insert(1, 1, 10);
    node.flush();
    for c in 0..5 {
        node.delete(1, c, 20);
        node.delete(2, c, 5);
    }
    node.write(2, 21, |update, deletion| {
        delete_range(update, [6, 9].map(|c| [Some(int(c))].into_iter().collect()), deletion);
    });
    node.write(3, 22, |update, deletion| update.deletion = deletion);
    node.flush();
    let waiting = node.map();
    assert_says(
        &waiting,
        &[
            "kinds       partition 1, range 1, row 10",
            "gc_grace    of 100 s is over: within an hour 12",
            "may go      0 of 12, if this SSTable is compacted alone",
            "stay        12: gc_grace is not over",
        ],
    );
    node.gc_grace_ends();
    let over = node.map();
    let older = node.store.view().sstables.iter().map(|sstable| sstable.descriptor().prefix()).min().expect("two");
    assert_says(
        &over,
        &[
            "gc_grace    of 100 s is over: now 12",
            "may go      7 of 12, if this SSTable is compacted alone",
            &format!("stay        5: SSTable {older} may hold older data of their partitions"),
        ],
    );
    // the two partitions that have most, and no third
    assert_eq!(over.lines().filter(|line| line.starts_with("  partition   ")).count(), 2, "{over}");
    assert!(over.contains("partition   2 (token ") && over.contains("): 6 in 5 rows (range 1, row 5)"), "{over}");
    // what is written late is as old as what was deleted
    node.insert(3, 1, 22);
    let late = node.map();
    assert_says(&late, &["stay        1: a memtable may hold older data of their partitions"]);
    // together they can all go but the one that the memtable needs
    node.compact();
    assert_says(&node.map(), &["kinds       partition 1", "may go      0 of 1, if this SSTable is compacted alone"]);
}

/// Two data directories have SSTables of one id, as after files of two nodes were copied together:
/// the older rows in one of them keep the deletion in the other, and removing one leaves the other.
#[test]
fn sstables_of_one_id_in_two_directories_are_two() {
    let node = Node::new(&[]);
    node.insert(1, 1, 10);
    node.flush();
    node.delete(1, 1, 20);
    node.flush();
    let view = node.store.view();
    let [deletion, rows] = &view.sstables[..] else { panic!("two flushes") };
    let moved = node.moved(rows, deletion.descriptor());
    node.store.replace_sstables(std::slice::from_ref(rows), vec![Arc::clone(&moved)]);
    node.gc_grace_ends();
    let kept =
        format!("stay        1: SSTable {} may hold older data of their partitions", moved.descriptor().prefix());
    assert_says(&node.map(), &[&kept]);
    let (view, inputs) = (node.store.view(), std::slice::from_ref(deletion));
    let span = Some((deletion.first_key().token, deletion.last_key().token));
    assert_eq!(purge::overlapping(&view, inputs, span).len(), 1, "no compaction of one leaves the other out");
    node.store.replace_sstables(inputs, Vec::new());
    assert_eq!(node.store.view().sstables.len(), 1);
}
