//! Rows that were flushed, deleted and purged are not replayed: not where the log still has the
//! writes and not their deletions, because other tables keep some segments and nobody the others.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use env::sim::{DATA, Fault, Op, Sim};
use rows::live::{LiveRows, TombstoneLimits};
use rows::{Cell, DeletionTime, Mutation, PartitionRange, PartitionUpdate, ReadCommand, ReadContext, ReadMode, Row};
use schema::table::ColumnSpec;
use schema::{ColumnKind, KeyspaceMetadata, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use sstable::Component;
use types::{CqlType, DecoratedKey};

use super::common::{give_host_id, int, keyspace, number};
use crate::commitlog::{RestorePoint, Undone};
use crate::compaction::operation::{Operation, Work};
use crate::compaction::task::Task;
use crate::requests::operations::Item;
use crate::scrub::{Options, Scrub};
use crate::strategy::kind::Kind;
use crate::{DiskFailurePolicy, Engine, EngineOptions, commitlog, schema_change, truncate};

const SEGMENT_SIZE: u32 = 128 << 10;
/// A little less than half a segment.
const FILLER: usize = 60 << 10;

fn table(number: u8, name: &str) -> Arc<TableMetadata> {
    let spec = |name: &str, kind, ty| ColumnSpec { name: name.into(), kind, position: 0, ty, reversed: false };
    let specs = vec![
        spec("k", ColumnKind::PartitionKey, CqlType::Int),
        spec("c", ColumnKind::Clustering, CqlType::Int),
        spec("v", ColumnKind::Regular, CqlType::Blob),
    ];
    let gc_grace_seconds = if name == "t" { 0 } else { 864_000 };
    let params = TableParams { gc_grace_seconds, ..TableParams::default() };
    let (kind, flags) = (TableKind::Regular, TableFlags::COMPOUND);
    Arc::new(TableMetadata::new(
        TableId([number; 16]),
        "purged",
        name,
        kind,
        flags,
        params,
        specs,
        BTreeMap::new(),
        None,
    ))
}

fn keyspace_of_three() -> KeyspaceMetadata {
    let tables = ["t", "u", "filler"].into_iter().zip(1..);
    let tables = tables.map(|(name, id)| (name.to_owned(), table(id, name))).collect();
    KeyspaceMetadata { tables, ..keyspace("purged", None) }
}

struct Node {
    sim: Sim,
    engine: Arc<Engine>,
}

impl Node {
    fn open(sim: Sim) -> Self {
        Self::restoring(sim, RestorePoint::default())
    }

    fn restoring(sim: Sim, restore_point: RestorePoint) -> Self {
        let commitlog =
            commitlog::Options { segment_size: SEGMENT_SIZE, restore_point, ..commitlog::Options::default() };
        let disk_failure_policy = DiskFailurePolicy::Ignore;
        let options =
            EngineOptions { commitlog, disk_failure_policy, ..EngineOptions::with_small_budgets(Path::new(DATA)) };
        let (engine, _) = crate::open(&sim.env(), options).expect("a sound disk opens");
        let node = Self { sim, engine };
        if node.engine.schema().keyspace("purged").is_none() {
            let keyspace = keyspace_of_three();
            let changed = schema_change::change(&node.engine, |schema| Ok::<_, ()>(schema.with_keyspace(keyspace)));
            assert!(changed.is_ok_and(|changed| changed.is_ok()));
            give_host_id(&node.sim, &node.engine, node.sim.env().clock.now_micros());
        }
        node
    }

    fn apply(&self, update: PartitionUpdate) {
        self.apply_all([update]);
    }

    /// As one step, as a batch is.
    fn apply_all(&self, updates: impl IntoIterator<Item = PartitionUpdate>) {
        let mutations: Vec<Mutation> = updates.into_iter().map(Mutation::of).collect();
        let applied = self.engine.apply(&mutations).expect("a sound disk takes writes");
        let position = applied.position.expect("the keyspace is durable");
        self.sim.block_on(self.engine.log.wait_durable(position)).expect("a sound disk syncs");
    }

    fn update(&self, table: &str, k: i32) -> PartitionUpdate {
        let table = self.engine.schema().table("purged", table).cloned().expect("it was made");
        PartitionUpdate::new(table, DecoratedKey::new(int(k)))
    }

    fn insert(&self, table: &str, k: i32, length: usize) {
        self.apply(self.inserted(table, k, length));
    }

    fn inserted(&self, table: &str, k: i32, length: usize) -> PartitionUpdate {
        let mut update = self.update(table, k);
        let mut row = Row::new([Some(int(0))].into_iter().collect());
        let column = update.table.regulars[0].id;
        row.add_cell(Cell::live(column, self.sim.env().clock.now_micros(), vec![7; length].into()));
        update.add_row(row);
        update
    }

    fn delete(&self, table: &str, k: i32) {
        let mut update = self.update(table, k);
        let clock = self.sim.env().clock;
        update.deletion = DeletionTime::new(clock.now_micros(), clock.now_seconds());
        self.apply(update);
    }

    /// Segments come and go: what is written last fills those that are new.
    fn pass_segments(&self) {
        for k in 0..6 {
            self.insert("filler", k, FILLER);
        }
        self.flush("filler");
        self.sim.run_until_idle();
    }

    fn store(&self, table: &str) -> Arc<crate::TableStore> {
        self.engine.table_by_name("purged", table).expect("it is open")
    }

    fn flush(&self, table: &str) {
        self.sim.block_on(self.engine.flush(&self.store(table))).expect("a sound disk flushes");
    }

    fn compact(&self, table: &str) {
        self.sim.block_on(self.engine.compact(&self.store(table))).expect("a sound disk compacts");
    }

    fn keys(&self, table: &str) -> Vec<i32> {
        let table = self.engine.schema().table("purged", table).cloned().expect("it was made");
        let now = self.sim.env().clock.now_seconds();
        let command = ReadCommand { now, ..ReadCommand::whole(&table, PartitionRange::all()) };
        let mut stream = self.engine.read(&command, &ReadContext::new(ReadMode::Background)).expect("sound");
        let mut live = LiveRows::new(stream.as_mut(), table, now, TombstoneLimits::NONE);
        let mut keys = Vec::new();
        while let Some(partition) = live.next_partition().expect("sound") {
            let k = number(&partition.key.key);
            while live.next_row().expect("sound").is_some() {
                keys.push(k);
            }
        }
        keys.sort_unstable();
        keys
    }

    /// The process dies and starts again.
    fn restart(self, power_cut: bool) -> Self {
        let Self { sim, engine } = self;
        drop(engine);
        if power_cut {
            sim.power_cut()
        } else {
            sim.kill()
        }
        Self::open(sim)
    }
}

/// The log has the writes of `t` (for the sake of `u`), and its deletions no more; the SSTables of
/// `t` are gone.
fn purged(sim: Sim, all: bool, work: Work) -> Node {
    let node = Node::open(sim);
    node.insert("u", 1, 10);
    node.insert("t", 1, 10);
    node.insert("t", 2, 10);
    node.flush("t");
    node.pass_segments();
    node.delete("t", 1);
    if all {
        node.delete("t", 2);
    }
    node.flush("t");
    node.pass_segments();
    node.sim.advance(Duration::from_secs(10));
    let operation = Operation::new(Kind::MajorCompaction, work, 0);
    node.sim.block_on(node.engine.operate(&node.store("t"), operation)).expect("a sound disk compacts");
    assert_eq!(node.store("t").view().sstables.len(), usize::from(!all));
    node
}

#[test]
fn what_was_purged_with_its_deletion_is_not_replayed() {
    for (power_cut, work) in [(false, Work::Major { split: false }), (true, Work::Named)] {
        let node = purged(Sim::new(1), true, work).restart(power_cut);
        assert_eq!((node.keys("t"), node.keys("u")), (vec![], vec![1]));
        // and what is written then is there after the next
        node.insert("t", 3, 10);
        let node = node.restart(power_cut);
        assert_eq!((node.keys("t"), node.keys("u")), (vec![3], vec![1]));
    }
}

/// The first that a process writes to a table is a batch: all of its records are known to be in the
/// SSTable, not the last alone.
#[test]
fn of_a_batch_that_was_purged_nothing_is_replayed() {
    for power_cut in [false, true] {
        let node = Node::open(Sim::new(6));
        node.apply_all([1, 2, 3, 4].map(|k| node.inserted("t", k, 10)));
        node.flush("t");
        [1, 2, 3].into_iter().for_each(|k| node.delete("t", k));
        node.flush("t");
        node.sim.advance(Duration::from_secs(10));
        node.compact("t");
        assert_eq!((node.store("t").view().sstables.len(), node.keys("t")), (1, vec![4]));
        // the deletions are known to be in SSTables, so they do not come again: what they deleted
        // must not either
        let node = node.restart(power_cut);
        assert_eq!(node.keys("t"), [4]);
    }
}

/// A drain leaves no segment behind. Where the clock is set back to when the process before began,
/// the next one must not write where SSTables say that they have everything.
#[test]
fn a_clock_that_was_set_back_hides_no_record() {
    let node = Node::open(Sim::new(8));
    node.insert("t", 1, FILLER);
    node.flush("t");
    let first = node.engine.log.first_new_segment();
    node.sim.block_on(node.engine.drain()).expect("drained");
    node.sim.advance(Duration::from_secs(100));
    let back = i64::try_from(first).expect("milliseconds") * 1000 - node.sim.env().clock.now_micros();
    node.sim.shift_wall_clock(back);
    let node = node.restart(false);
    assert!(node.engine.log.first_new_segment() > first);
    node.insert("t", 2, 10);
    let node = node.restart(true);
    assert_eq!(node.keys("t"), [1, 2]);
}

/// Records that a start applies again must find their deletions, also where the log has lost these.
#[test]
fn nothing_is_purged_once_the_log_has_failed() {
    let node = Node::open(Sim::new(7));
    node.insert("t", 1, 10);
    node.delete("t", 1);
    node.flush("t");
    node.sim.advance(Duration::from_secs(10));
    node.sim.disk().inject(Fault::next(Op::Sync, "CommitLog"));
    let refused = node.engine.apply(&[Mutation::of(node.inserted("u", 1, 10))]).expect("the log has not failed yet");
    let position = refused.position.expect("the keyspace is durable");
    assert!(node.sim.block_on(node.engine.log.wait_durable(position)).is_err());
    node.compact("t");
    assert_eq!(node.store("t").view().sstables.len(), 1, "a deletion is there");
    let node = node.restart(true);
    node.compact("t");
    assert_eq!((node.store("t").view().sstables.len(), node.keys("t")), (0, vec![]));
}

#[test]
fn what_an_sstable_is_left_of_needs_no_record() {
    let node = purged(Sim::new(2), false, Work::Major { split: false }).restart(false);
    assert_eq!((node.keys("t"), node.keys("u")), (vec![2], vec![1]));
    assert_eq!(*node.store("t").truncation.lock().expect("no panic"), None);
}

#[test]
fn what_is_written_while_all_else_is_purged_stays() {
    let node = purged(Sim::new(3), true, Work::Major { split: false });
    node.insert("t", 4, 10);
    node.flush("t");
    node.delete("t", 4);
    node.flush("t");
    node.insert("t", 5, 10);
    node.sim.advance(Duration::from_secs(10));
    // of the SSTables nothing is left, and the memtable has what was written since
    node.compact("t");
    assert_eq!(node.store("t").view().sstables.len(), 0);
    let node = node.restart(true);
    assert_eq!((node.keys("t"), node.keys("u")), (vec![5], vec![1]));
}

#[test]
fn a_truncation_is_not_taken_back() {
    let node = purged(Sim::new(4), true, Work::Major { split: false });
    node.insert("t", 6, 10);
    let (position, store) = (node.engine.log.position(), node.store("t"));
    node.sim.block_on(truncate::truncate(&node.engine, &store)).expect("a sound disk truncates");
    let before = store.truncation.lock().expect("no panic").expect("it is recorded");
    // what lies before says nothing new; the time stays
    truncate::record_purged(&node.engine, &store, commitlog::LogPosition { offset: 1, ..position }).expect("sound");
    assert_eq!(*store.truncation.lock().expect("no panic"), Some(before));
    node.insert("t", 7, 10);
    let node = node.restart(true);
    assert_eq!((node.keys("t"), node.keys("u")), (vec![7], vec![1]));
    let again = *node.store("t").truncation.lock().expect("no panic");
    assert_eq!(again, Some(before));
}

/// Rows that a failed flush left in memory count for the next, though nothing was written since: it
/// is not in SSTables, and a truncation that cannot be carried out must not be recorded.
#[test]
fn a_truncation_that_cannot_flush_takes_nothing() {
    let node = Node::open(Sim::new(8));
    node.insert("t", 1, 10);
    node.flush("t");
    node.insert("t", 2, 10);
    node.sim.disk().inject(Fault { times: u64::MAX, ..Fault::next(Op::Create, "/t-") });
    let store = node.store("t");
    for _ in 0..2 {
        assert!(node.sim.block_on(node.engine.flush(&store)).is_err());
    }
    // it is tried again once a second, and once only, and others need not wait for it
    assert_eq!(node.engine.flusher.pending(), 1);
    let before = node.sim.env().now();
    node.insert("u", 1, 10);
    node.flush("u");
    assert!(node.sim.env().elapsed(before) < Duration::from_secs(1));
    let node = node.restart(false);
    assert_eq!(node.keys("t"), [1, 2]);
    node.sim.disk().heal();
    node.flush("t");
    assert_eq!((node.engine.flusher.pending(), node.keys("t")), (0, vec![1, 2]));
}

#[test]
fn tombstones_of_named_partitions_need_not_wait() {
    let node = Node::open(Sim::new(5));
    for k in 0..4 {
        node.insert("u", k, 10);
        node.delete("u", k);
    }
    node.flush("u");
    let partitions = |node: &Node| {
        let sstables = node.store("u").view().sstables.clone();
        sstables.iter().map(|sstable| sstable.partition_count()).sum::<u64>()
    };
    let compact = |node: &Node, ks: &[i32]| {
        let graceless = ks.iter().map(|k| DecoratedKey::new(int(*k))).collect::<std::collections::BTreeSet<_>>();
        let named = Operation::new(Kind::MajorCompaction, Work::Named, 0);
        let operation = Operation { graceless: Arc::new(graceless), ..named };
        node.sim.block_on(node.engine.operate(&node.store("u"), operation)).expect("a sound disk compacts");
    };
    compact(&node, &[]);
    assert_eq!(partitions(&node), 4);
    compact(&node, &[1, 3]);
    assert_eq!(partitions(&node), 2);
    // what a memtable has of a partition is older than its tombstone
    let mut late = node.update("u", 0);
    let mut row = Row::new([Some(int(0))].into_iter().collect());
    row.add_cell(Cell::live(late.table.regulars[0].id, 1, int(0)));
    late.add_row(row);
    node.apply(late);
    compact(&node, &[0, 2]);
    assert_eq!((partitions(&node), node.keys("u")), (1, vec![]));
}

/// While an SSTable is left out that has the row, its tombstone stays: the SSTable may be mended,
/// by scrub or by an operator.
#[test]
fn nothing_is_purged_while_an_sstable_is_left_out() {
    for work in [Work::Major { split: false }, Work::Named, Work::GarbageCollect { cells: true }] {
        let node = Node::open(Sim::new(9));
        node.insert("t", 1, 10);
        node.flush("t");
        let damaged = node.store("t").view().sstables[0].descriptor().path(Component::Statistics);
        node.delete("t", 1);
        node.flush("t");
        node.sim.block_on(node.engine.drain()).expect("drained");
        assert!(node.sim.disk().flip_bit(&damaged, 100));
        let node = node.restart(false);
        assert_eq!(node.store("t").left_out().len(), 1);
        node.sim.advance(Duration::from_secs(10));
        let operation = Operation::new(Kind::MajorCompaction, work, 0);
        node.sim.block_on(node.engine.operate(&node.store("t"), operation)).expect("a sound disk compacts");
        assert_eq!(node.store("t").view().sstables.len(), 1, "the tombstone is there");
        assert!(node.sim.disk().flip_bit(&damaged, 100));
        let node = node.restart(false);
        assert_eq!((node.store("t").left_out().len(), node.keys("t")), (0, vec![]));
        // and with all of them there it goes
        node.compact("t");
        assert_eq!((node.store("t").view().sstables.len(), node.keys("t")), (0, vec![]));
    }
}

/// A scrub that began before a truncation does not bring back the truncated rows: not when it ends
/// behind the truncation, and not when it ends while the truncation goes on.
#[test]
fn a_scrub_of_what_could_not_be_opened_brings_nothing_truncated_back() {
    #[derive(Clone, Copy, PartialEq)]
    enum Truncation {
        Never,
        Ended,
        Begun,
    }
    for truncation in [Truncation::Never, Truncation::Ended, Truncation::Begun] {
        let node = Node::open(Sim::new(12));
        node.insert("t", 1, 10);
        node.flush("t");
        let damaged = node.store("t").view().sstables[0].descriptor().path(Component::Statistics);
        node.sim.block_on(node.engine.drain()).expect("drained");
        assert!(node.sim.disk().flip_bit(&damaged, 100));
        let node = node.restart(false);
        let store = node.store("t");
        let item = Item { left_out: store.left_out().pop(), ..Item::default() };
        let options = Options { skip_corrupted: false, validate: true };
        let mut scrub = Box::new(Scrub::open(&node.engine, &store, &item, options).expect("the data is sound"));
        while scrub.advance().expect("the data is sound").is_some() {}
        let number = node.engine.next_truncation_number();
        match truncation {
            Truncation::Never => {}
            Truncation::Ended => {
                node.sim.block_on(truncate::truncate(&node.engine, &store)).expect("a sound disk truncates");
            }
            Truncation::Begun => store.changes().truncations.begin(number, None),
        }
        let is_written = scrub.finish(&node.engine).is_ok();
        assert_eq!(is_written, truncation != Truncation::Ended);
        let expected = if is_written { vec![1] } else { vec![] };
        assert_eq!((store.left_out().len(), node.keys("t")), (0, expected));
        if truncation == Truncation::Begun {
            let (view, mut changes) = (store.view(), store.changes());
            assert!(view.sstables.iter().all(|sstable| changes.truncations.is_before(number, sstable)), "it goes");
            changes.truncations.end(number);
        }
    }
}

/// The log says of itself that what it has of a table was purged. Where a point in time is restored
/// the SSTables are older than that, and the rows beside the purged ones come from the log alone.
#[test]
fn a_restore_replays_what_was_not_purged_when_it_was_backed_up() {
    let node = Node::open(Sim::new(10));
    // keeps the segment
    node.insert("u", 1, 10);
    node.insert("t", 1, 10);
    node.flush("t");
    node.sim.advance(Duration::from_secs(1));
    let from = node.sim.env().clock.now_micros();
    node.insert("t", 2, 10);
    node.delete("t", 2);
    node.flush("t");
    node.sim.advance(Duration::from_secs(10));
    let select = Box::new(move |sstable: &sstable::SSTable| sstable.statistics().stats.max_timestamp >= from);
    let operation = Operation { select, ..Operation::new(Kind::MajorCompaction, Work::Named, 1) };
    node.sim.block_on(node.engine.operate(&node.store("t"), operation)).expect("a sound disk compacts");
    assert_eq!(node.store("t").view().sstables.len(), 1, "the row stays, of the other one nothing is left");
    assert!(node.store("t").truncation.lock().expect("no panic").is_some());
    // the backup is from before the table had rows
    let local = node.engine.table_by_name("system", "local").expect("every node has it");
    let directories = [local.directory.clone(), node.store("t").directory.clone()];
    let micros = Some(node.sim.env().clock.now_micros());
    let Node { sim, engine } = node;
    drop((local, engine));
    sim.kill();
    let disk = sim.env().disk;
    for directory in &directories {
        // `system.local` may have no SSTable yet
        let entries = disk.list_dir_if_exists(directory).expect("a sound disk lists").into_iter().flatten();
        for entry in entries.filter(|entry| !entry.is_dir) {
            disk.remove_file(&directory.join(entry.name)).expect("a sound disk removes");
        }
    }
    let node = Node::restoring(sim, RestorePoint { micros, ..RestorePoint::default() });
    assert_eq!(node.keys("t"), [1]);
    let node = node.restart(true);
    assert_eq!(node.keys("t"), [1]);
}

/// Archived segments hold the writes that an earlier restore undid, beside those that the node took
/// before its point and after the restore.
#[test]
fn a_restore_leaves_out_what_an_earlier_restore_has_undone() {
    for (is_told, expected) in [(false, vec![1, 2, 3]), (true, vec![1, 3])] {
        let node = Node::open(Sim::new(11));
        // the schema is older than the point
        node.sim.advance(Duration::from_secs(1));
        node.insert("u", 1, 10);
        let micros = node.sim.env().clock.now_micros();
        node.sim.advance(Duration::from_secs(1));
        node.insert("u", 2, 10);
        let node = node.restart(false);
        let before_segment = node.engine.log.first_new_segment();
        node.insert("u", 3, 10);
        node.sim.advance(Duration::from_secs(1));
        let now = node.sim.env().clock.now_micros();
        let Node { sim, engine } = node;
        drop(engine);
        sim.kill();
        let undone = if is_told { vec![Undone { micros, before_segment }] } else { Vec::new() };
        let node = Node::restoring(sim, RestorePoint { micros: Some(now), undone, ..RestorePoint::default() });
        assert_eq!(node.keys("u"), expected);
    }
}
