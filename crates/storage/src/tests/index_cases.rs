//! Indexes, case by case: what a repair, a scrub, a TTL, a compaction, a disk that fails and a
//! change of the schema by another node do to them. Random histories are in `indexes`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use env::sim::{DATA, Fault, Op, Sim};
use rows::live::{LiveRows, TombstoneLimits};
use rows::{
    Cell, IndexSearch, Liveness, Mutation, PartitionRange, PartitionUpdate, ReadCommand, ReadContext, ReadError,
    ReadMode, Row, SearchOperator,
};
use schema::table::ColumnSpec;
use schema::{ColumnKind, DroppedColumn, IndexMetadata, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use sstable::Component;
use types::collection::build_tuple;
use types::{CqlType, DecoratedKey, UserType};

use super::common::{self, attached_index, delete_row, index, int, number};
use crate::compaction::choice::{take_free, unmark};
use crate::compaction::rewrite_statistics::{StatisticsChange, rewrite_statistics};
use crate::index::{build, built};
use crate::requests::operations::{Operation, ScrubOptions, VerifyOptions, Work};
use crate::schema_change::Changed;
use crate::strategy::kind::Kind;
use crate::{Engine, EngineOptions, StorageError, TableStore, files, import, schema_change, snapshot, truncate};

const ID: TableId = TableId([9; 16]);
/// Seconds.
const TTL: u32 = 10;

fn folding(name: &str, target: &str) -> IndexMetadata {
    let mut index = attached_index(name, target);
    index.options.insert("case_sensitive".to_owned(), "false".to_owned());
    index
}

fn table(indexes: &[IndexMetadata]) -> TableMetadata {
    let spec = |name: &str, kind, ty| ColumnSpec { name: name.into(), kind, position: 0, ty, reversed: false };
    let texts = CqlType::Set { element: Arc::new(CqlType::Text), frozen: false };
    let specs = vec![
        spec("k", ColumnKind::PartitionKey, CqlType::Int),
        spec("c", ColumnKind::Clustering, CqlType::Int),
        spec("v", ColumnKind::Regular, CqlType::Int),
        spec("w", ColumnKind::Regular, texts),
    ];
    let (kind, flags, params) = (TableKind::Regular, TableFlags::COMPOUND, TableParams::default());
    let mut table = TableMetadata::new(ID, "ix", "t", kind, flags, params, specs, BTreeMap::new(), None);
    table.indexes.extend(indexes.iter().map(|index| (index.name.clone(), index.clone())));
    table
}

struct Node {
    sim: Sim,
    engine: Arc<Engine>,
}

impl Node {
    fn empty() -> Self {
        let sim = Sim::new(1);
        let engine = open(&sim);
        Self { sim, engine }
    }

    fn with(indexes: &[IndexMetadata]) -> Self {
        let node = Self::empty();
        node.alter(indexes);
        node
    }

    /// The table is made, or has these indexes and no others from now on.
    fn alter(&self, indexes: &[IndexMetadata]) {
        self.put(table(indexes));
    }

    fn put(&self, table: TableMetadata) {
        let changed = self.change(table).expect("a sound disk");
        common::remove(&self.sim, &self.engine, &changed.dropped);
    }

    /// Changes the table; the files of indexes that are dropped by it stay.
    fn change(&self, table: TableMetadata) -> Result<Changed, StorageError> {
        let keyspace = common::keyspace("ix", Some(Arc::new(table)));
        let changed = schema_change::change(&self.engine, |schema| Ok::<_, ()>(schema.with_keyspace(keyspace)));
        let changed = changed?.expect("not refused");
        let durable = self.engine.log.wait_durable(changed.position.expect("rows were written"));
        self.sim.block_on(durable).expect("a sound disk syncs");
        Ok(changed)
    }

    fn store(&self) -> Arc<TableStore> {
        self.engine.table(ID).expect("the table is open")
    }

    fn apply(&self, change: impl FnOnce(&mut PartitionUpdate, u32)) {
        let mut update = PartitionUpdate::new(self.store().table(), DecoratedKey::new(int(1)));
        change(&mut update, self.engine.env.clock.now_seconds());
        self.sim.block_on(self.engine.admit());
        self.engine.apply(&[Mutation::of(update)]).expect("a sound disk takes writes");
    }

    /// INSERT of a row without other columns.
    fn insert(&self, c: i32, at: i64) {
        self.apply(|update, _| {
            let mut row = row(c);
            row.liveness = Liveness::new(at);
            update.add_row(row);
        });
    }

    /// UPDATE of v; None: to null.
    fn set(&self, c: i32, at: i64, v: Option<i32>, ttl: Option<u32>) {
        self.apply(|update, now| {
            let column = update.table.column_by_name("v").expect("there").id;
            let cell = match v {
                Some(v) => Cell::live(column, at, int(v)),
                None => Cell::tombstone(column, at, now),
            };
            let mut row = row(c);
            row.add_cell(with_ttl(cell, ttl, now));
            update.add_row(row);
        });
    }

    /// Adds a text to w, or removes it.
    fn set_text(&self, at: i64, text: &str, is_there: bool, ttl: Option<u32>) {
        self.apply(|update, now| {
            let table = Arc::clone(&update.table);
            let column = table.column_by_name("w").expect("there").id;
            let cell = match is_there {
                true => with_ttl(Cell::live(column, at, Bytes::new()), ttl, now),
                false => Cell::tombstone(column, at, now),
            };
            let mut row = row(1);
            row.add_complex_cell(&table, cell.at(Bytes::copy_from_slice(text.as_bytes())));
            update.add_row(row);
        });
    }

    fn flush(&self) {
        self.sim.block_on(self.engine.flush(&self.store())).expect("a sound disk flushes");
    }

    /// Compacts the SSTables with rows of this timestamp or later.
    fn compact_from(&self, at: i64) {
        let select = Box::new(move |sstable: &sstable::SSTable| sstable.statistics().stats.max_timestamp >= at);
        let operation = Operation { select, ..Operation::new(Kind::MajorCompaction, Work::Named, 1) };
        self.sim.block_on(self.engine.operate(&self.store(), operation)).expect("a sound disk compacts");
    }

    /// The clusterings of the rows that an index finds.
    fn find(&self, index: &str, value: Bytes) -> Result<Vec<i32>, ReadError> {
        self.find_at(self.engine.env.clock.now_seconds(), index, value)
    }

    /// The clusterings of the rows that an index finds for a read of the time `now`, in seconds.
    fn find_at(&self, now: u32, index: &str, value: Bytes) -> Result<Vec<i32>, ReadError> {
        let table = self.store().table();
        let search = IndexSearch { name: index.into(), operator: SearchOperator::Eq, value };
        let command = ReadCommand { indexes: vec![search], now, ..ReadCommand::whole(&table, PartitionRange::all()) };
        let mut stream = self.engine.read(&command, &ReadContext::new(ReadMode::Background))?;
        let mut live = LiveRows::new(stream.as_mut(), table, now, TombstoneLimits::NONE);
        let mut found = Vec::new();
        while live.next_partition()?.is_some() {
            while let Some(row) = live.next_row()? {
                found.push(number(row.clustering[0].as_ref().expect("not null")));
            }
        }
        Ok(found)
    }

    #[track_caller]
    fn assert_finds(&self, index: &str, value: Bytes, clusterings: &[i32]) {
        assert_eq!(self.find(index, value).expect("the index is complete"), clusterings);
    }

    /// Bytes that are counted more than memtables hold.
    fn miscounted(&self) -> isize {
        let held: usize = self.engine.tables().iter().map(|store| store.view().memtable_size()).sum();
        self.engine.memory.usage().0.cast_signed() - held.cast_signed()
    }

    fn unfinished(&self) -> Vec<String> {
        let entries = self.sim.env().disk.list_dir(&self.store().directory).expect("there");
        entries.into_iter().map(|entry| entry.name).filter(|name| name.starts_with("unfinished.")).collect()
    }
}

fn open(sim: &Sim) -> Arc<Engine> {
    let options = EngineOptions::with_small_budgets(Path::new(DATA));
    crate::open(&sim.env(), options).expect("a sound disk opens").0
}

fn row(c: i32) -> Row {
    Row::new([Some(int(c))].into_iter().collect())
}

fn with_ttl(cell: Cell, ttl: Option<u32>, now: u32) -> Cell {
    match ttl {
        Some(ttl) => Cell { ttl, local_deletion_time: now + ttl, ..cell },
        None => cell,
    }
}

/// Repairs, levels, scrubs and verifications open an SSTable anew; its components of attached
/// indexes are open then, too.
#[test]
fn an_sstable_that_is_opened_anew_has_its_components() {
    let node = Node::with(&[attached_index("by_v", "v")]);
    node.set(1, 5, Some(3), None);
    node.flush();
    for change in [StatisticsChange::Level(1), StatisticsChange::Pending([4; 16]), StatisticsChange::Repaired(1_000)] {
        let (store, sstable) = (node.store(), Arc::clone(&node.store().view().sstables[0]));
        rewrite_statistics(&node.engine, &store, &sstable, change).expect("a sound disk");
        node.assert_finds("by_v", int(3), &[1]);
    }
    let scrub = Work::Scrub(ScrubOptions { skip_corrupted: false, validate: true });
    let scrub = Operation::new(Kind::Scrub, scrub, 1);
    node.sim.block_on(node.engine.operate(&node.store(), scrub)).expect("a sound SSTable");
    node.assert_finds("by_v", int(3), &[1]);
    let digest = node.store().view().sstables[0].descriptor().path(Component::Digest);
    assert!(node.sim.disk().flip_bit(&digest, 1));
    let verify = Work::Verify(VerifyOptions { mutate_repair_status: true, ..VerifyOptions::default() });
    let verify = Operation::new(Kind::Verify, verify, 1);
    node.sim.block_on(node.engine.operate(&node.store(), verify)).expect_err("the digest is damaged");
    assert_eq!(node.store().view().sstables[0].statistics().stats.repaired_at, 0);
    node.assert_finds("by_v", int(3), &[1]);
}

/// A user type gets another field: an index on a column of the type goes on answering, also when an
/// SSTable is opened anew or written later.
#[test]
fn an_index_outlives_a_change_of_its_user_type() {
    let node = Node::empty();
    let alter_type = |fields: &[&str]| {
        let fields = fields.iter().map(|name| ((*name).to_owned(), CqlType::Int)).collect();
        let pair = Arc::new(UserType { keyspace: "ix".to_owned(), name: "pair".to_owned(), fields });
        let before = table(&[]);
        let ty = CqlType::Udt(Arc::clone(&pair), true);
        let mut specs = before.specs();
        specs.push(ColumnSpec { name: "u".into(), kind: ColumnKind::Regular, position: 0, ty, reversed: false });
        let (kind, flags, params) = (before.kind, before.flags, before.params.clone());
        let mut table = TableMetadata::new(ID, "ix", "t", kind, flags, params, specs, BTreeMap::new(), None);
        table.indexes.insert("by_u".to_owned(), attached_index("by_u", "u"));
        let mut keyspace = common::keyspace("ix", Some(Arc::new(table)));
        keyspace.user_types.insert(pair.name.clone(), pair);
        let changed = schema_change::change(&node.engine, |schema| Ok::<_, ()>(schema.with_keyspace(keyspace)));
        assert!(changed.is_ok_and(|changed| changed.is_ok()));
    };
    let value = Bytes::from(build_tuple(&[Some(int(3))]));
    let set = |c: i32| {
        node.apply(|update, _| {
            let column = update.table.column_by_name("u").expect("there").id;
            let mut row = row(c);
            row.add_cell(Cell::live(column, 5, value.clone()));
            update.add_row(row);
        });
        node.flush();
    };
    alter_type(&["a"]);
    set(1);
    alter_type(&["a", "b"]);
    node.assert_finds("by_u", value.clone(), &[1]);
    let (store, sstable) = (node.store(), Arc::clone(&node.store().view().sstables[0]));
    rewrite_statistics(&node.engine, &store, &sstable, StatisticsChange::Level(1)).expect("a sound disk");
    node.assert_finds("by_u", value.clone(), &[1]);
    set(2);
    node.assert_finds("by_u", value.clone(), &[1, 2]);
}

/// An index on a clustering column compares text without case, as one of SASI may: rows in memory
/// are found by their own names, also several of one term in a partition.
#[test]
fn rows_in_memory_are_found_by_another_form_of_their_names() {
    let node = Node::empty();
    let before = table(&[]);
    let mut specs = before.specs();
    specs.iter_mut().filter(|spec| spec.name == "c").for_each(|spec| spec.ty = CqlType::Text);
    let (kind, flags, params) = (before.kind, before.flags, before.params.clone());
    let mut table = TableMetadata::new(ID, "ix", "t", kind, flags, params, specs, BTreeMap::new(), None);
    table.indexes.insert("by_c".to_owned(), folding("by_c", "c"));
    node.put(table);
    // the integers of the other tests, here as texts of four letters
    let [upper, lower] = [*b"ABCD", *b"abcd"].map(i32::from_be_bytes);
    node.insert(upper, 5);
    node.insert(lower, 6);
    for _ in 0..2 {
        node.assert_finds("by_c", Bytes::from_static(b"AbcD"), &[upper, lower]);
        node.flush();
    }
}

/// UPDATE USING TTL on a row that lasts: the row stays in an index on a key column.
#[test]
fn a_ttl_ends_no_entry_of_a_row_that_lasts() {
    for index in [index("by_c", "c"), attached_index("by_c", "c")] {
        let node = Node::with(&[index]);
        node.insert(1, 5);
        node.flush();
        node.set(1, 6, Some(3), Some(TTL));
        node.assert_finds("by_c", int(1), &[1]);
        node.sim.advance(Duration::from_secs(2 * u64::from(TTL)));
        node.assert_finds("by_c", int(1), &[1]);
        node.flush();
        node.assert_finds("by_c", int(1), &[1]);
    }
}

/// A client may give the time of its read, and that may be one to come. The rows that have expired
/// by then are there until then, and their entries stay.
#[test]
fn a_read_of_a_time_to_come_takes_no_entry_away() {
    let node = Node::with(&[index("by_c", "c")]);
    node.set(1, 5, Some(3), Some(TTL));
    let behind_its_end = node.engine.env.clock.now_seconds() + 2 * TTL;
    for _ in 0..2 {
        assert_eq!(node.find_at(behind_its_end, "by_c", int(1)).expect("the index is complete"), Vec::<i32>::new());
        node.assert_finds("by_c", int(1), &[1]);
        node.flush();
    }
    node.sim.advance(Duration::from_secs(2 * u64::from(TTL)));
    node.assert_finds("by_c", int(1), &[]);
    let removed = &node.store().view().indexes[0].state.stale_removed;
    assert_eq!(removed.load(std::sync::atomic::Ordering::Relaxed), 1, "the entry is taken away in its time");
}

/// Two values are written under one key of a map at the same time: the key has its entry,
/// whichever of them is left.
#[test]
fn a_key_of_a_map_keeps_its_entry_when_values_of_one_time_meet() {
    for is_flushed in [false, true] {
        let node = Node::empty();
        let before = table(&[]);
        let mut specs = before.specs();
        let ty = CqlType::Map { key: Arc::new(CqlType::Int), value: Arc::new(CqlType::Int), frozen: false };
        specs.push(ColumnSpec { name: "m".into(), kind: ColumnKind::Regular, position: 0, ty, reversed: false });
        let (kind, flags, params) = (before.kind, before.flags, before.params.clone());
        let mut table = TableMetadata::new(ID, "ix", "t", kind, flags, params, specs, BTreeMap::new(), None);
        table.indexes.insert("by_key".to_owned(), index("by_key", "keys(m)"));
        node.put(table);
        for value in [3, 4] {
            node.apply(|update, _| {
                let table = Arc::clone(&update.table);
                let column = table.column_by_name("m").expect("there").id;
                let mut row = row(1);
                row.add_complex_cell(&table, Cell::live(column, 5, int(value)).at(int(7)));
                update.add_row(row);
            });
            if is_flushed {
                node.flush();
            }
        }
        if is_flushed {
            node.compact_from(0);
        }
        node.assert_finds("by_key", int(7), &[1]);
    }
}

/// A compaction that does not have all of a row takes its entry in an index on a key column away
/// only where the row is deleted.
#[test]
fn a_compaction_beside_a_live_row_leaves_its_entry() {
    let node = Node::with(&[index("by_c", "c")]);
    node.insert(1, 5);
    node.flush();
    for (at, v) in [(20, Some(3)), (21, None)] {
        node.set(1, at, v, None);
        node.flush();
    }
    node.compact_from(20);
    assert_eq!(node.store().view().sstables.len(), 2);
    node.assert_finds("by_c", int(1), &[1]);
    node.set(1, 30, Some(4), Some(TTL));
    node.flush();
    node.sim.advance(Duration::from_secs(2 * u64::from(TTL)));
    node.apply(|update, now| {
        delete_row(update, row(1).clustering, rows::DeletionTime::new(40, now));
    });
    node.flush();
    node.compact_from(0);
    node.assert_finds("by_c", int(1), &[]);
    let stale = &node.store().view().indexes[0].state.stale_removed;
    assert_eq!(stale.load(std::sync::atomic::Ordering::Relaxed), 0, "the entry was taken away before");
}

/// Entries that a compaction or a search takes away count as what memtables hold.
#[test]
fn entries_that_are_taken_away_are_counted() {
    let node = Node::with(&[index("by_v", "v")]);
    for (at, v) in [(5, 1), (6, 2)] {
        node.set(1, at, Some(v), None);
        node.flush();
    }
    let before = node.miscounted();
    node.compact_from(0);
    assert!(node.store().view().memtable_size() > 0, "an entry is taken away");
    assert_eq!(node.miscounted(), before, "by a compaction");
    node.flush();
    node.set(1, 7, Some(3), None);
    node.assert_finds("by_v", int(2), &[]);
    assert_eq!(node.miscounted(), before, "by a search");
    node.flush();
    assert_eq!(node.miscounted(), before, "after a flush");
}

/// Texts that differ in case alone share an entry of an attached index that folds case: the entry
/// stays while one of them does.
#[test]
fn texts_that_share_an_entry_do_not_lose_it() {
    let node = Node::with(&[folding("by_w", "values(w)")]);
    node.set_text(5, "Rust", true, None);
    node.set_text(5, "rust", true, None);
    node.set_text(6, "rust", false, None);
    node.assert_finds("by_w", Bytes::from_static(b"Rust"), &[1]);
    node.set_text(7, "RUST", true, Some(TTL));
    node.sim.advance(Duration::from_secs(2 * u64::from(TTL)));
    node.assert_finds("by_w", Bytes::from_static(b"Rust"), &[1]);
    node.flush();
    node.assert_finds("by_w", Bytes::from_static(b"Rust"), &[1]);
}

/// A column was dropped, and an SSTable has a row of which nothing is left: the indexes of before
/// and of after it number the same rows.
#[test]
fn an_index_is_made_after_a_column_was_dropped() {
    let node = Node::with(&[attached_index("by_v", "v")]);
    node.set_text(5, "rust", true, None);
    node.set(2, 6, Some(3), None);
    node.flush();
    let before = node.store().table();
    let column = before.column_by_name("w").expect("there");
    let (name, ty, kind) = (column.name.clone(), column.ty.clone(), column.kind);
    let dropped = BTreeMap::from([(name.clone(), DroppedColumn { name, ty, kind, dropped_time: 1000 })]);
    let mut specs = before.specs();
    specs.retain(|spec| spec.name != "w");
    let (kind, flags, params) = (before.kind, before.flags, before.params.clone());
    let mut after = TableMetadata::new(ID, "ix", "t", kind, flags, params, specs, dropped, Some(&before));
    let indexes = [attached_index("by_v", "v"), attached_index("by_c", "c")];
    after.indexes.extend(indexes.map(|index| (index.name.clone(), index)));
    node.put(after);
    let _ = node.sim.run_until_idle();
    let check = |node: &Node| {
        node.assert_finds("by_v", int(3), &[2]);
        node.assert_finds("by_c", int(2), &[2]);
    };
    check(&node);
    let rebuilt = node.engine.index_builder.rebuild(&node.engine, &node.store(), "by_v").expect("a sound disk");
    node.sim.block_on(rebuilt).expect("nothing is wrong with the SSTable");
    check(&node);
    node.sim.block_on(node.engine.drain()).expect("drained");
    let Node { sim, engine } = node;
    drop(engine);
    sim.kill();
    check(&Node { engine: open(&sim), sim });
}

/// Components that cannot be made leave no file behind.
#[test]
fn components_that_fail_leave_no_files() {
    let node = Node::with(&[attached_index("by_v", "v")]);
    for at in [5, 6] {
        node.set(1, at, Some(3), None);
        node.flush();
    }
    for path in ["+Keys.db", "+Terms.db"] {
        for op in [Op::Create, Op::Sync, Op::Rename] {
            node.sim.disk().inject(Fault::next(op, path));
            let compacted = node.sim.block_on(node.engine.compact(&node.store()));
            assert!(compacted.is_err(), "{path} {op:?}");
            assert_eq!(node.unfinished(), [""; 0], "{path} {op:?}");
            node.sim.disk().heal();
        }
    }
    node.assert_finds("by_v", int(3), &[1]);
}

/// While an index is made again its former components answer, until the new ones are open.
#[test]
fn an_index_that_is_made_again_answers_all_the_time() {
    let node = Node::with(&[attached_index("by_v", "v")]);
    node.set(1, 5, Some(3), None);
    node.flush();
    let rebuild = || node.engine.index_builder.rebuild(&node.engine, &node.store(), "by_v").expect("a sound disk");
    node.sim.disk().inject(Fault::next(Op::Open, "+Terms.db"));
    assert!(node.sim.block_on(rebuild()).is_err(), "the new component cannot be opened");
    node.assert_finds("by_v", int(3), &[1]);
    node.sim.block_on(rebuild()).expect("a sound disk");
    node.assert_finds("by_v", int(3), &[1]);
}

/// A worker has other requests to serve: a search that passes many entries in memory goes on in
/// the background, also where none of them is in the partition that it wants.
#[test]
fn a_search_among_many_entries_in_memory_leaves_its_worker() {
    const ROWS: i32 = 1_200;
    let node = Node::with(&[attached_index("by_v", "v")]);
    node.apply(|update, _| {
        let column = update.table.column_by_name("v").expect("there").id;
        for c in 0..ROWS {
            let mut row = row(c);
            row.add_cell(Cell::live(column, 5, int(c)));
            update.add_row(row);
        }
    });
    let read = |mode: ReadMode, operator: SearchOperator, value: i32| {
        let table = node.store().table();
        let search = IndexSearch { name: "by_v".into(), operator, value: int(value) };
        let range = PartitionRange::Key(DecoratedKey::new(int(2)));
        let now = node.engine.env.clock.now_seconds();
        let command = ReadCommand { indexes: vec![search], now, ..ReadCommand::whole(&table, range) };
        node.engine.read(&command, &ReadContext::new(mode)).map(drop)
    };
    assert!(matches!(read(ReadMode::Inline, SearchOperator::Eq, 3), Ok(())));
    assert!(matches!(read(ReadMode::Inline, SearchOperator::Lt, ROWS), Err(ReadError::WouldBlock)));
    assert!(matches!(read(ReadMode::Background, SearchOperator::Lt, ROWS), Ok(())));
}

/// A directory of which the disk cannot say whether it is there is not taken for an empty table.
#[test]
fn a_table_that_cannot_be_looked_at_is_not_empty() {
    let node = Node::with(&[index("by_v", "v")]);
    node.set(1, 5, Some(3), None);
    node.sim.block_on(node.engine.drain()).expect("drained");
    let Node { sim, engine } = node;
    drop(engine);
    sim.kill();
    sim.disk().inject(Fault { times: u64::MAX, ..Fault::next(Op::Exists, "/ix/") });
    let node = Node { engine: open(&sim), sim };
    node.sim.disk().heal();
    node.assert_finds("by_v", int(3), &[1]);
    let Node { sim, engine } = node;
    drop(engine);
    sim.kill();
    sim.disk().inject(Fault { times: u64::MAX, ..Fault::next(Op::List, "/ix/") });
    let refused =
        crate::open(&sim.env(), EngineOptions::with_small_budgets(Path::new(DATA))).err().expect("the disk fails");
    assert!(refused.to_string().contains("/ix/t-"), "{refused}");
}

/// Another node has dropped an index and made another one of its name, and this node hears of both
/// at once: the old one goes, and the new one is made.
#[test]
fn an_index_that_is_made_anew_under_its_name_is_another_one() {
    for (old, new) in [
        (index("by", "v"), index("by", "c")),
        (index("by", "c"), attached_index("by", "v")),
        (attached_index("by", "v"), index("by", "values(w)")),
        (attached_index("by", "values(w)"), folding("by", "values(w)")),
    ] {
        let other = Node::with(std::slice::from_ref(&old));
        let node = Node::empty();
        let merge = || {
            let received = schema_change::all_rows(&other.engine).expect("a sound disk");
            let changed = schema_change::merge(&node.engine, received).expect("a sound disk").expect("news");
            let durable = node.engine.log.wait_durable(changed.position.expect("rows were written"));
            node.sim.block_on(durable).expect("a sound disk syncs");
            common::remove(&node.sim, &node.engine, &changed.dropped);
            changed.continues
        };
        assert!(!merge());
        node.set(1, 5, Some(1), None);
        node.set_text(6, "rust", true, None);
        node.flush();
        other.alter(&[]);
        other.alter(std::slice::from_ref(&new));
        assert!(merge(), "{old:?}, {new:?}: the old index goes first");
        assert!(!merge(), "{old:?}, {new:?}");
        let _ = node.sim.run_until_idle();
        let value = if new.options["target"].contains('w') { Bytes::from_static(b"rust") } else { int(1) };
        node.assert_finds("by", value.clone(), &[1]);
        assert_eq!(node.engine.schema().version, other.engine.schema().version);
        node.sim.block_on(node.engine.drain()).expect("drained");
        let Node { sim, engine } = node;
        drop(engine);
        sim.kill();
        Node { engine: open(&sim), sim }.assert_finds("by", value, &[1]);
    }
}

/// The process ends while the files of the old of two such indexes are removed. The next start
/// still has the index in its schema, opens it all the same, and makes it again.
#[test]
fn an_index_of_which_a_part_of_the_files_is_gone_is_made_again() {
    let other = Node::with(&[index("by", "v")]);
    let node = Node::empty();
    let merge = || {
        let received = schema_change::all_rows(&other.engine).expect("a sound disk");
        let changed = schema_change::merge(&node.engine, received).expect("a sound disk").expect("news");
        let durable = node.engine.log.wait_durable(changed.position.expect("rows were written"));
        node.sim.block_on(durable).expect("a sound disk syncs");
        changed
    };
    assert!(!merge().continues);
    node.set(1, 5, Some(3), None);
    node.flush();
    other.alter(&[]);
    other.alter(&[index("by", "c")]);
    // the files are removed in the order of their names, in which CompressionInfo.db comes first
    node.sim.disk().inject(Fault { times: u64::MAX, ..Fault::next(Op::Remove, "-Data.db") });
    let changed = merge();
    assert!(changed.continues);
    changed.dropped.iter().for_each(|store| node.engine.dropper.request(store, None));
    node.sim.run_until_idle();
    assert_eq!(node.engine.dropper.pending(), 1);
    drop(changed);
    let Node { sim, engine } = node;
    drop(engine);
    sim.kill();
    sim.disk().heal();
    let node = Node { engine: open(&sim), sim };
    let _ = node.sim.run_until_idle();
    node.assert_finds("by", int(3), &[1]);
}

/// An index is made again under the name of a dropped one: not while a compaction has SSTables of
/// the old one, because it would remove files that have the names of its own.
#[test]
fn an_index_waits_for_compactions_of_a_dropped_one() {
    let node = Node::with(&[index("by", "v")]);
    node.set(1, 5, Some(3), None);
    node.flush();
    let hidden = Arc::clone(&node.store().view().indexes[0].store);
    let (taken, _) = take_free(&hidden, |_| true);
    assert_eq!(taken.len(), 1);
    let dropped = node.change(table(&[])).expect("a sound disk").dropped;
    dropped.iter().for_each(|store| node.engine.dropper.request(store, None));
    node.sim.run_until_idle();
    assert_eq!(node.engine.dropper.pending(), 1);
    let again = node.change(table(&[index("by", "c")]));
    assert!(matches!(again, Err(StorageError::FilesOfDropped { .. })), "the compaction has not ended");
    assert_eq!(take_free(&hidden, |_| true).0.len(), 0, "no other one begins");
    unmark(&hidden, &taken);
    node.sim.advance(Duration::from_secs(1));
    node.sim.run_until_idle();
    assert_eq!(node.engine.dropper.pending(), 0);
    node.alter(&[index("by", "c")]);
    node.sim.run_until_idle();
    node.assert_finds("by", int(1), &[1]);
}

/// A truncation that has begun before its table's index is dropped and made again takes nothing
/// from the new index, whose SSTables have the names of the old one's.
#[test]
fn a_truncation_takes_nothing_from_an_index_that_was_made_again() {
    let node = Node::with(&[index("by", "v")]);
    node.set(1, 5, Some(3), None);
    node.flush();
    let hidden = Arc::clone(&node.store().view().indexes[0].store);
    node.alter(&[]);
    node.alter(&[index("by", "v")]);
    let _ = node.sim.run_until_idle();
    let names = |store: &TableStore| store.view().sstables[0].descriptor().prefix();
    assert_eq!(names(&node.store().view().indexes[0].store), names(&hidden));
    files::remove(&node.engine, &hidden, |_, _| true).expect("nothing is to be done");
    drop(hidden);
    node.sim.block_on(node.engine.drain()).expect("drained");
    let Node { sim, engine } = node;
    drop(engine);
    sim.kill();
    Node { engine: open(&sim), sim }.assert_finds("by", int(3), &[1]);
}

/// Components are made for an index that is dropped before their SSTable comes into the view: an
/// index of the same name does not take them for its own.
#[test]
fn components_of_a_dropped_index_are_not_those_of_the_next() {
    let node = Node::with(&[attached_index("by", "v")]);
    node.set(1, 5, Some(3), None);
    node.set_text(6, "rust", true, None);
    node.flush();
    let sstables = node.store().view().sstables.clone();
    node.store().replace_sstables(&sstables, Vec::new());
    node.alter(&[]);
    node.store().replace_sstables(&[], sstables);
    node.alter(&[attached_index("by", "values(w)")]);
    let _ = node.sim.run_until_idle();
    node.assert_finds("by", Bytes::from_static(b"rust"), &[1]);
}

/// SSTables came that an index knows nothing of, and a build ended meanwhile: the index is not
/// noted to be complete until it is made again, which is asked for once.
#[test]
fn an_index_that_is_to_be_made_again_is_not_complete() {
    let node = Node::with(&[index("by", "v")]);
    node.set(1, 5, Some(3), None);
    let is_noted = || built::stored(&node.engine).expect("a sound disk").contains(&("ix".to_owned(), "by".to_owned()));
    assert!(is_noted());
    for _ in 0..2 {
        build::request_rebuild(&node.engine, &node.store(), &node.store().view().indexes, None);
    }
    assert!(!is_noted());
    assert_eq!(node.engine.index_builder.pending(), 1);
    let _ = node.sim.run_until_idle();
    assert!(is_noted());
    node.assert_finds("by", int(3), &[1]);
    // a build ends while SSTables of an import come: it has none of their rows
    let (store, indexes) = (node.store(), Arc::clone(&node.store().view().indexes));
    let held = import::doubt_durably(&node.engine, &store, &indexes).expect("a sound disk");
    node.engine.index_builder.request(&store, "by");
    let _ = node.sim.run_until_idle();
    assert_eq!((node.engine.index_builder.pending(), is_noted()), (0, false));
    build::request_rebuild(&node.engine, &store, &indexes, Some(held));
    let _ = node.sim.run_until_idle();
    assert!(is_noted());
}

/// An index is created while SSTables of an import come, into an empty table and into one with
/// rows: it is not noted to be complete. Where the import is given up, the index is made again all
/// the same, and is complete.
#[test]
fn an_index_that_is_created_during_an_import_is_not_complete() {
    for is_empty in [true, false] {
        let node = Node::with(&[]);
        if !is_empty {
            node.set(1, 5, Some(3), None);
        }
        let store = node.store();
        let held = import::doubt_durably(&node.engine, &store, &[]).expect("a sound disk");
        node.alter(&[index("by", "v")]);
        let _ = node.sim.run_until_idle();
        let noted = || built::stored(&node.engine).expect("a sound disk").len();
        assert_eq!((node.engine.index_builder.pending(), noted()), (0, 0));
        drop(held);
        let _ = node.sim.run_until_idle();
        assert_eq!(noted(), 1);
    }
}

/// The power goes out right behind an import, whose SSTables are durable: that the index lacks
/// their rows is durable too, and the next start makes it again.
#[test]
fn an_index_is_made_again_where_the_power_goes_out_behind_an_import() {
    let node = Node::with(&[]);
    node.set(1, 5, Some(3), None);
    node.flush();
    let directory = snapshot::take(&node.engine, &node.store(), "source").expect("a sound disk links");
    node.sim.block_on(truncate::truncate(&node.engine, &node.store())).expect("a sound disk truncates");
    node.alter(&[index("by", "v")]);
    node.sim.block_on(node.engine.log.sync()).expect("a sound disk syncs");
    let options = import::Options { directories: vec![directory], ..import::Options::default() };
    assert_eq!(import::import(&node.engine, &node.store(), &options, None), Ok(Vec::new()));
    let Node { sim, engine } = node;
    sim.power_cut();
    drop(engine);
    let node = Node { engine: open(&sim), sim };
    let _ = node.sim.run_until_idle();
    node.assert_finds("by", int(3), &[1]);
}

/// A power cut has taken the making of an index, and left that it is complete.
#[test]
fn a_note_about_no_index_is_taken_away_at_a_start() {
    let node = Node::with(&[index("by", "v")]);
    built::store(&node.engine, "ix", "gone", true).expect("room");
    node.sim.block_on(node.engine.log.sync()).expect("a sound disk syncs");
    let Node { sim, engine } = node;
    drop(engine);
    sim.kill();
    // the note has a timestamp of the time before
    sim.advance(Duration::from_secs(1));
    let noted = built::stored(&open(&sim)).expect("a sound disk");
    assert_eq!(noted.into_iter().map(|(_, name)| name).collect::<Vec<_>>(), ["by"]);
}

/// An import finds no SSTable: the table's indexes have nothing to be made again for.
#[test]
fn an_import_of_nothing_leaves_an_index_complete() {
    let node = Node::with(&[index("by", "v")]);
    node.set(1, 5, Some(3), None);
    let directory = Path::new(DATA).join("nothing");
    node.sim.env().disk.create_dir_all(&directory).expect("a sound disk");
    let options = import::Options { directories: vec![directory], ..import::Options::default() };
    assert_eq!(import::import(&node.engine, &node.store(), &options, None), Ok(Vec::new()));
    assert_eq!(node.engine.index_builder.pending(), 0);
    assert!(built::stored(&node.engine).expect("a sound disk").contains(&("ix".to_owned(), "by".to_owned())));
}

/// An operator who waits for an index to be made again is told that it was dropped.
#[test]
fn a_build_of_a_dropped_index_ends() {
    for index in [index("by", "v"), attached_index("by", "v")] {
        let node = Node::with(&[index]);
        node.set(1, 5, Some(3), None);
        node.flush();
        let rebuilt = node.engine.index_builder.rebuild(&node.engine, &node.store(), "by").expect("a sound disk");
        let without = common::keyspace("ix", Some(Arc::new(table(&[]))));
        let changed = schema_change::change(&node.engine, |schema| Ok::<_, ()>(schema.with_keyspace(without)));
        assert!(changed.is_ok_and(|changed| changed.is_ok()));
        let error = node.sim.block_on(rebuilt).expect_err("there is no index");
        assert!(error.to_string().contains("by of ix.t was dropped"), "{error}");
        assert_eq!(node.engine.compactions.running().len(), 0);
    }
}

/// The process ended while the files of a dropped index were being removed: an index of its name
/// can be made all the same.
#[test]
fn an_index_is_made_where_a_part_of_a_dropped_one_lies() {
    let node = Node::with(&[]);
    node.set(1, 5, Some(3), None);
    node.flush();
    let data = node.store().view().sstables[0].descriptor().path(Component::Data);
    let name = data.file_name().expect("a file");
    let directory = node.store().directory.join(".by");
    let env = node.sim.env();
    env.disk.create_dir_all(&directory).expect("a sound disk");
    env.disk.replace_file(&directory.join(name), b"half").expect("a sound disk");
    node.alter(&[index("by", "v")]);
    let _ = node.sim.run_until_idle();
    node.assert_finds("by", int(3), &[1]);
}

/// Deleted rows in memory count where it is decided whether a partition is read as a whole: a read
/// by the index does not pass them.
#[test]
fn deleted_rows_in_memory_are_not_passed() {
    let node = Node::with(&[attached_index("by_v", "v")]);
    (0..20).for_each(|c| node.set(c, 5, Some(1), None));
    node.apply(|update, now| {
        (20..200).for_each(|c| delete_row(update, row(c).clustering, rows::DeletionTime::new(6, now)));
    });
    let table = node.store().table();
    let search = IndexSearch { name: "by_v".into(), operator: SearchOperator::Eq, value: int(1) };
    let range = PartitionRange::Key(DecoratedKey::new(int(1)));
    let now = node.engine.env.clock.now_seconds();
    let command = ReadCommand { indexes: vec![search], now, ..ReadCommand::whole(&table, range) };
    for is_flushed in [false, true] {
        if is_flushed {
            node.flush();
        }
        let mut stream = node.engine.read(&command, &ReadContext::new(ReadMode::Background)).expect("sound");
        let mut live = LiveRows::new(stream.as_mut(), Arc::clone(&table), now, TombstoneLimits::NONE);
        while live.next_partition().expect("sound").is_some() {
            while live.next_row().expect("sound").is_some() {}
        }
        assert_eq!((live.rows(), live.tombstones()), (20, 0), "{is_flushed}");
    }
}
