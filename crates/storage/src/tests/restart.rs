//! The work of a start: nothing after a drain; after a death what was not flushed, on one thread or
//! several, in memory or beyond it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use env::Env;
use env::sim::{DATA, Fault, Op, Sim};
use rows::codec::encode_mutation;
use rows::live::{LiveRows, TombstoneLimits};
use rows::{Cell, Liveness, Mutation, PartitionUpdate, Row};
use schema::system_schema::{SchemaRow, SchemaTable, SchemaWrite};
use schema::table::ColumnSpec;
use schema::{ColumnKind, KeyspaceMetadata, Schema, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use sstable::{Component, KEY_LENGTH_MAX, Version};
use types::{CqlType, DecoratedKey};

use super::common::{give_host_id, int, keyspace, number};
use crate::recovery::Recovered;
use crate::{DiskFailurePolicy, Engine, EngineOptions, commitlog, schema_change, schema_tables};

pub(super) const PARTITIONS: i32 = 500;
pub(super) const NAMES: [&str; 2] = ["t", "u"];

pub(super) fn table(id: u8, name: &str) -> Arc<TableMetadata> {
    let spec =
        |name: &str, kind| ColumnSpec { name: name.into(), kind, position: 0, ty: CqlType::Int, reversed: false };
    let specs =
        vec![spec("k", ColumnKind::PartitionKey), spec("c", ColumnKind::Clustering), spec("v", ColumnKind::Regular)];
    let (kind, flags, params) = (TableKind::Regular, TableFlags::COMPOUND, TableParams::default());
    Arc::new(TableMetadata::new(TableId([id; 16]), "restart", name, kind, flags, params, specs, BTreeMap::new(), None))
}

pub(super) fn options(directory: &Path, memtable_bytes: usize) -> EngineOptions {
    let commitlog = commitlog::Options { segment_size: 64 << 10, ..commitlog::Options::default() };
    EngineOptions { commitlog, shards: 8, memtable_bytes, ..EngineOptions::with_small_budgets(directory) }
}

pub(super) fn open(env: &Env, options: EngineOptions) -> (Arc<Engine>, Recovered) {
    let (engine, recovered) = loop {
        match crate::open(env, options.clone()) {
            // a background task may still hold the engine that was dropped
            Err(crate::StorageError::Locked { .. }) => std::thread::yield_now(),
            opened => break opened.expect("a sound disk opens"),
        }
    };
    if engine.schema().keyspace("restart").is_none() {
        let tables = NAMES.into_iter().zip(1..).map(|(name, id)| (name.to_owned(), table(id, name))).collect();
        let keyspace = KeyspaceMetadata { tables, ..keyspace("restart", None) };
        let changed = schema_change::change(&engine, |schema| Ok::<_, ()>(schema.with_keyspace(keyspace)));
        assert!(changed.is_ok_and(|changed| changed.is_ok()));
    }
    (engine, recovered)
}

/// A row of a partition, in both tables by one mutation.
pub(super) fn mutation(engine: &Engine, k: i32, v: i32, now: i64) -> Mutation {
    let updates = NAMES.into_iter().map(|name| {
        let table = engine.schema().table("restart", name).cloned().expect("it was made");
        let mut row = Row::new([Some(int(v))].into_iter().collect());
        row.liveness = Liveness::new(now);
        row.add_cell(Cell::live(table.regulars[0].id, now, int(v * k)));
        let mut update = PartitionUpdate::new(table, DecoratedKey::new(int(k)));
        update.add_row(row);
        update
    });
    Mutation { key: DecoratedKey::new(int(k)), updates: updates.collect() }
}

/// Each partition a few times over; equal timestamps, of which the greater value wins.
pub(super) fn write(engine: &Engine, from: i32) {
    let now = engine.env.clock.now_micros();
    for v in from..from + 3 {
        for k in 0..PARTITIONS {
            engine.apply(&[mutation(engine, k, v, now)]).expect("room");
        }
    }
}

/// Every row has its value, and is there.
pub(super) fn check(engine: &Engine, rows: i32) {
    NAMES.into_iter().for_each(|name| check_table(engine, name, rows));
}

pub(super) fn check_table(engine: &Engine, name: &str, rows: i32) {
    let store = engine.table_by_name("restart", name).expect("open");
    let mut stream = crate::read::read_all(&store, engine.env.clock.now_seconds()).expect("read");
    let mut live = LiveRows::new(stream.as_mut(), store.table(), 1, TombstoneLimits::NONE);
    let mut found = 0;
    while let Some(partition) = live.next_partition().expect("read") {
        let k = number(&partition.key.key);
        let mut next = 0;
        while let Some(row) = live.next_row().expect("read") {
            let cell = row.columns.iter().find_map(|data| match data {
                rows::ColumnData::Simple(cell) => Some(number(&cell.value)),
                rows::ColumnData::Complex(_) => None,
            });
            assert_eq!(cell, Some(k * next), "{name} {k} {next}");
            next += 1;
        }
        found += next;
    }
    assert_eq!(found, PARTITIONS * rows, "{name}");
}

fn segments(env: &Env, directory: &Path) -> usize {
    let entries = env.disk.list_dir(&directory.join("commitlog")).expect("listed");
    entries.iter().filter(|entry| entry.name.ends_with(".log")).count()
}

#[test]
fn a_drain_leaves_nothing_to_replay() {
    let sim = Sim::new(3);
    let env = sim.env();
    let (engine, _) = open(&env, options(Path::new(DATA), 16 << 20));
    write(&engine, 0);
    sim.block_on(engine.drain()).expect("drained");
    assert_eq!(segments(&env, Path::new(DATA)), 0);
    drop(engine);
    sim.kill();
    let (engine, recovered) = open(&sim.env(), options(Path::new(DATA), 16 << 20));
    assert_eq!((recovered.records, recovered.skipped), (0, 0));
    check(&engine, 3);
}

/// Options for several data directories, and one for the system tables.
fn spread(data: &[&str], system: Option<&str>) -> EngineOptions {
    let beneath = |name: &&str| Path::new(DATA).join(name);
    EngineOptions {
        data_directories: data.iter().map(beneath).collect(),
        system_directory: system.as_ref().map(beneath),
        ..options(Path::new(DATA), 16 << 20)
    }
}

#[test]
fn system_tables_that_lie_elsewhere_are_not_overlooked() {
    let sim = Sim::new(11);
    let (engine, _) = open(&sim.env(), spread(&["a"], None));
    write(&engine, 0);
    sim.block_on(engine.drain()).expect("drained");
    drop(engine);
    for moved in [spread(&["b", "a"], None), spread(&["a"], Some("c"))] {
        sim.kill();
        let refused = crate::open(&sim.env(), moved.clone()).err().expect("the node would be a new one");
        assert!(matches!(&refused, crate::StorageError::Refused { why } if why.contains("SSTables of system")));
        let (engine, _) = open(&sim.env(), EngineOptions { read_only: true, ..moved });
        check(&engine, 3);
    }
    for same in [spread(&["a", "b"], None), spread(&["b", "a"], Some("a"))] {
        sim.kill();
        check(&open(&sim.env(), same).0, 3);
    }
}

/// Cassandra before 2.1 has put tables in directories without their ids, and goes on writing there
/// in later versions.
#[test]
fn a_directory_without_an_id_stays_that_of_its_table() {
    let sim = Sim::new(13);
    let options = || spread(&["a", "b"], None);
    let (engine, _) = open(&sim.env(), options());
    write(&engine, 0);
    sim.block_on(engine.drain()).expect("drained");
    let directories_of =
        |engine: &Engine, name: &str| engine.table_by_name("restart", name).expect("open").directories.clone();
    let [with_id, of_other] = NAMES.map(|name| directories_of(&engine, name));
    drop(engine);
    sim.kill();
    let without_id: Vec<PathBuf> = with_id.iter().map(|directory| directory.with_file_name("t")).collect();
    for (from, to) in with_id.iter().zip(&without_id) {
        sim.env().disk.rename(from, to).expect("a sound disk renames");
    }
    let (engine, _) = open(&sim.env(), options());
    check(&engine, 3);
    assert_eq!(NAMES.map(|name| directories_of(&engine, name)), [without_id, of_other]);
    write(&engine, 3);
    sim.block_on(engine.drain()).expect("drained");
    drop(engine);
    assert!(with_id.iter().all(|directory| !sim.env().disk.exists(directory)), "nothing is written there");
    sim.kill();
    check(&open(&sim.env(), options()).0, 6);
}

/// A table whose stored schema cannot be read is left out, but not where the log has writes to it:
/// they would count as those of a table that was dropped, and be gone with their segments.
#[test]
fn writes_to_a_table_that_cannot_be_read_are_not_thrown_away() {
    let sim = Sim::new(16);
    let (engine, _) = open(&sim.env(), options(Path::new(DATA), 16 << 20));
    write(&engine, 0);
    make_unreadable(&sim, &engine);
    drop(engine);
    sim.kill();
    for _ in 0..2 {
        let refused = crate::open(&sim.env(), options(Path::new(DATA), 16 << 20)).err().expect("writes would be lost");
        assert!(matches!(&refused, crate::StorageError::Refused { why } if why.contains("type of restart.t.v")));
        sim.kill();
    }
    let disk_failure_policy = DiskFailurePolicy::Ignore;
    let told_to = EngineOptions { disk_failure_policy, ..options(Path::new(DATA), 16 << 20) };
    let (engine, _) = open(&sim.env(), told_to);
    assert!(engine.table_by_name("restart", "t").is_none() && engine.table_by_name("restart", "u").is_some());
    let left_out = schema_change::left_out(&engine).expect("a sound disk reads");
    assert_eq!(left_out, [("restart".to_owned(), "t".to_owned())]);
    // a new table of the name would be one with the old one's columns after the next start
    let made = |name: &str| {
        let decide = |schema: &Schema| {
            let mut keyspace = schema.keyspaces["restart"].as_ref().clone();
            keyspace.tables.insert(name.to_owned(), table(9, name));
            Ok::<_, ()>(schema.with_keyspace(keyspace))
        };
        schema_change::change(&engine, decide)
    };
    let refused = made("t").err().expect("the name is taken");
    assert!(matches!(&refused, crate::StorageError::Refused { why } if why.contains("left out")));
    assert!(made("v").is_ok_and(|changed| changed.is_ok()));
}

/// Rows of such a table that are in its SSTables are not lost with the log.
#[test]
fn flushed_writes_to_a_table_that_cannot_be_read_do_not_stop_the_start() {
    let sim = Sim::new(20);
    let (engine, _) = open(&sim.env(), options(Path::new(DATA), 16 << 20));
    give_host_id(&sim, &engine, 1);
    write(&engine, 0);
    let store = engine.table_by_name("restart", "t").expect("open");
    sim.block_on(engine.flush(&store)).expect("a sound disk flushes");
    make_unreadable(&sim, &engine);
    drop((store, engine));
    sim.kill();
    let (engine, _) = open(&sim.env(), options(Path::new(DATA), 16 << 20));
    assert!(engine.table_by_name("restart", "t").is_none());
    check_table(&engine, "u", 3);
}

/// Has the stored schema say of the table `t` what cannot be read.
pub(super) fn make_unreadable(sim: &Sim, engine: &Engine) {
    let of_column = SchemaRow {
        table: SchemaTable::Columns,
        keyspace: "restart".to_owned(),
        clustering: vec![Bytes::from_static(b"t"), Bytes::from_static(b"v")],
        cells: vec![("type".to_owned(), Bytes::from_static(b"nothing that is known"))],
    };
    let (micros, now) = (engine.env.clock.now_micros() + 60_000_000, engine.env.clock.now_seconds());
    let puts = [SchemaWrite::Put { row: of_column, replaces: false }];
    let rows = schema_tables::mutations(&engine.schema(), &puts, micros, now).expect("built-in tables");
    engine.apply(&rows).expect("room");
    sim.block_on(engine.log.sync()).expect("a sound disk syncs");
}

/// A table was dropped whose rows stand before those of another table in the same mutations.
#[test]
fn a_dropped_table_takes_no_rows_of_another_one_along() {
    let sim = Sim::new(19);
    let (engine, _) = open(&sim.env(), options(Path::new(DATA), 16 << 20));
    write(&engine, 0);
    let tables = BTreeMap::from([("u".to_owned(), table(2, "u"))]);
    let fewer = KeyspaceMetadata { tables, ..keyspace("restart", None) };
    let changed = schema_change::change(&engine, |schema| Ok::<_, ()>(schema.with_keyspace(fewer)));
    assert!(changed.is_ok_and(|changed| changed.is_ok()));
    sim.block_on(engine.log.sync()).expect("a sound disk syncs");
    drop(engine);
    sim.kill();
    let (engine, _) = open(&sim.env(), options(Path::new(DATA), 16 << 20));
    assert!(engine.table_by_name("restart", "t").is_none());
    check_table(&engine, "u", 3);
}

/// A table whose compressor is a class that is not here is flushed all the same: otherwise its
/// memtables and the log would only grow.
#[test]
fn a_compressor_that_is_not_known_does_not_hold_up_flushes() {
    let sim = Sim::new(15);
    let (engine, _) = open(&sim.env(), options(Path::new(DATA), 16 << 20));
    let decide = |schema: &Schema| {
        let mut keyspace = schema.keyspaces["restart"].as_ref().clone();
        let mut table = TableMetadata::clone(&keyspace.tables["t"]);
        table.params.compression = BTreeMap::from([("class".to_owned(), "com.example.OwnCompressor".to_owned())]);
        keyspace.tables.insert("t".to_owned(), Arc::new(table));
        Ok::<_, ()>(schema.with_keyspace(keyspace))
    };
    schema_change::change(&engine, decide).expect("stored").expect("not refused");
    write(&engine, 0);
    sim.block_on(engine.drain()).expect("drained");
    drop(engine);
    sim.kill();
    let (engine, recovered) = open(&sim.env(), options(Path::new(DATA), 16 << 20));
    assert_eq!(recovered.records, 0, "everything is in SSTables");
    check(&engine, 3);
}

/// A directory without an id that somebody has made beside the one with the SSTables: the table
/// would be opened empty.
#[test]
fn a_directory_without_an_id_beside_that_of_a_table_stops_the_start() {
    let sim = Sim::new(18);
    let (engine, _) = open(&sim.env(), options(Path::new(DATA), 16 << 20));
    write(&engine, 0);
    sim.block_on(engine.drain()).expect("drained");
    let with_id = engine.table_by_name("restart", "t").expect("open").directory.clone();
    drop(engine);
    sim.kill();
    let without_id = with_id.with_file_name("t");
    sim.env().disk.create_dir_durable(&without_id).expect("a sound disk");
    let refused = crate::open(&sim.env(), options(Path::new(DATA), 16 << 20)).err().expect("rows would be missing");
    let named = with_id.display().to_string();
    assert!(matches!(&refused, crate::StorageError::Refused { why } if why.starts_with(&named)));
    sim.kill();
    sim.env().disk.remove_dir_all(&without_id).expect("a sound disk");
    check(&open(&sim.env(), options(Path::new(DATA), 16 << 20)).0, 3);
}

/// An SSTable of Cassandra 2.1, which has another kind of name, is not passed over. One that was
/// never completed is.
#[test]
fn an_sstable_under_an_old_name_stops_the_start() {
    let sim = Sim::new(14);
    let (engine, _) = open(&sim.env(), options(Path::new(DATA), 16 << 20));
    sim.block_on(engine.log.sync()).expect("a sound disk syncs");
    let directory = engine.table_by_name("restart", "t").expect("open").directory.clone();
    drop(engine);
    sim.kill();
    let put = |name: &str| sim.env().disk.replace_file(&directory.join(name), b"").expect("a sound disk");
    put("restart-t-tmp-ka-1-Data.db");
    put("tmplink-la-1-big-Data.db");
    drop(open(&sim.env(), options(Path::new(DATA), 16 << 20)));
    sim.kill();
    put("restart-t-ka-2-Data.db");
    let refused = crate::open(&sim.env(), options(Path::new(DATA), 16 << 20)).err().expect("rows would be missing");
    assert!(matches!(&refused, crate::StorageError::Refused { why } if why.contains("restart-t-ka-2-Data.db")));
}

#[test]
fn each_directory_of_sstables_is_locked() {
    let sim = Sim::new(12);
    let env = sim.env();
    let (engine, _) = open(&env, spread(&["a", "b"], Some("s")));
    for name in ["a", "b", "s"] {
        let lock = Path::new(DATA).join(name).join("helenus.lock");
        assert!(env.disk.lock_file(&lock).is_err(), "{name}");
    }
    let shares = crate::open(&env, spread(&["other", "b"], None)).err().expect("b is in use");
    assert_eq!(shares, crate::StorageError::Locked { path: Path::new(DATA).join("b") });
    drop(engine);
}

#[test]
fn a_log_of_more_than_memtables_may_hold_is_replayed() {
    let sim = Sim::new(4);
    let (engine, _) = open(&sim.env(), options(Path::new(DATA), 16 << 20));
    write(&engine, 0);
    write(&engine, 3);
    sim.block_on(engine.log.sync()).expect("synced");
    drop(engine);
    sim.kill();
    for _ in 0..3 {
        // killed before anything is flushed but what had to be
        let (engine, recovered) = open(&sim.env(), options(Path::new(DATA), 128 << 10));
        assert!(recovered.records > 0 && engine.memory.usage().0 < 256 << 10);
        assert!(engine.table_by_name("restart", "t").is_some_and(|store| store.view().sstables.len() > 2));
        check(&engine, 6);
        drop(engine);
        sim.kill();
    }
}

/// The log of a Cassandra may have updates of views with keys that are too long for SSTables, which
/// its flushes leave out.
#[test]
fn a_record_that_no_sstable_can_hold_does_not_stop_the_start() {
    let sim = Sim::new(17);
    let commitlog = commitlog::Options { segment_size: 1 << 20, ..commitlog::Options::default() };
    let options = || EngineOptions { commitlog: commitlog.clone(), ..options(Path::new(DATA), 16 << 20) };
    let (engine, _) = open(&sim.env(), options());
    write(&engine, 0);
    let mut long = mutation(&engine, 1, 1, 1);
    long.key = DecoratedKey::new(Bytes::from(vec![1; KEY_LENGTH_MAX + 1]));
    long.updates.iter_mut().for_each(|update| update.key = long.key.clone());
    let mut record = Vec::new();
    encode_mutation(&mut record, &long);
    engine.log.append(&record, &[]).expect("room");
    sim.block_on(engine.log.sync()).expect("synced");
    drop(engine);
    sim.kill();
    let (engine, _) = open(&sim.env(), options());
    check(&engine, 3);
    sim.block_on(engine.drain()).expect("drained");
}

#[test]
fn a_summary_that_is_missing_or_damaged_is_made_once() {
    let sim = Sim::new(5);
    let options = || EngineOptions { sstable_version: Version::NB, ..options(Path::new(DATA), 16 << 20) };
    let (engine, _) = open(&sim.env(), options());
    write(&engine, 0);
    sim.block_on(engine.drain()).expect("drained");
    let store = engine.table_by_name("restart", "t").expect("open");
    let path = store.view().sstables[0].descriptor().path(Component::Summary);
    let read = || sim.env().disk.read_all(&path, 1 << 20);
    let whole = read().expect("it was written");
    drop((store, engine));
    let damages: [&dyn Fn(); 2] = [&|| sim.env().disk.remove_file(&path).expect("removed"), &|| {
        assert!(sim.disk().flip_bit(&path, 8 * (whole.len() - 1)))
    }];
    for damage in damages {
        sim.kill();
        damage();
        assert!(read().is_err() || read().expect("there") != whole);
        let (engine, _) = open(&sim.env(), options());
        assert!(read().expect("written again") == whole);
        check(&engine, 3);
    }
}

/// The simulator has one thread; here there are as many as cores.
#[test]
fn threads_replay_what_one_would() {
    let env = env::real::env();
    // a task in the background may still write there when it is removed
    let scratch = tempfile::tempdir().expect("a directory");
    let directory: PathBuf = scratch.path().join("node");
    let (engine, _) = open(&env, options(&directory, 16 << 20));
    write(&engine, 0);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(engine.log.sync()).expect("synced");
    drop(engine);
    for round in 1..4 {
        let (engine, recovered) = open(&env, options(&directory, 2 << 20));
        assert!(recovered.records >= u64::from((PARTITIONS * 6) as u32));
        check(&engine, round * 3);
        write(&engine, round * 3);
        runtime.block_on(engine.log.sync()).expect("synced");
    }
}

/// A change of two tables survives in both or in none, though one of them is flushed before the log
/// has it: a table without columns would be the end of every further start.
#[test]
fn a_flush_is_not_ahead_of_the_log() {
    let mut dropped = 0;
    for seed in 0..40 {
        let sim = Sim::new(seed);
        let (engine, _) = open(&sim.env(), options(Path::new(DATA), 4 << 20));
        sim.block_on(engine.log.sync()).expect("a sound disk syncs");
        let fewer =
            KeyspaceMetadata { tables: BTreeMap::from([("u".to_owned(), table(2, "u"))]), ..keyspace("restart", None) };
        let changed = schema_change::change(&engine, |schema| Ok::<_, ()>(schema.with_keyspace(fewer)));
        assert!(changed.is_ok_and(|changed| changed.is_ok()));
        let columns = engine.table_by_name("system_schema", "columns").expect("every node has it");
        sim.block_on(engine.flush(&columns)).expect("a sound disk flushes");
        drop((engine, columns));
        if seed % 2 == 0 {
            sim.kill();
        } else {
            sim.power_cut();
        }
        let (engine, _) = open(&sim.env(), options(Path::new(DATA), 4 << 20));
        assert!(engine.schema().table("restart", "u").is_some());
        dropped += u32::from(engine.schema().table("restart", "t").is_none());
    }
    assert_eq!(dropped, 40, "what was flushed is in the log");
}

/// The rows of a schema change that a failed log took stay in memory, in all of the tables that it
/// is in.
#[test]
fn schema_tables_are_not_flushed_once_the_log_has_failed() {
    let sim = Sim::new(1);
    let (engine, _) = open(&sim.env(), options(Path::new(DATA), 4 << 20));
    sim.block_on(engine.log.sync()).expect("a sound disk syncs");
    sim.disk().inject(Fault::next(Op::Sync, "CommitLog"));
    let fewer = KeyspaceMetadata { tables: BTreeMap::new(), ..keyspace("restart", None) };
    let changed = schema_change::change(&engine, |schema| Ok::<_, ()>(schema.with_keyspace(fewer)));
    assert!(changed.is_ok_and(|changed| changed.is_ok()));
    assert!(sim.block_on(engine.log.sync()).is_err());
    for name in ["columns", "tables"] {
        let store = engine.table_by_name("system_schema", name).expect("every node has it");
        assert!(sim.block_on(engine.flush(&store)).is_err());
    }
    let users = engine.table_by_name("system", "local").expect("every node has it");
    sim.block_on(engine.flush(&users)).expect("others are");
    drop((engine, users));
    sim.power_cut();
    let (engine, _) = open(&sim.env(), options(Path::new(DATA), 4 << 20));
    assert!(NAMES.into_iter().all(|name| engine.schema().table("restart", name).is_some()));
}

/// Memtables of all shards are frozen at one place of the log, whatever writers do meanwhile: a
/// flush waits until the log is durable up to there, and what it writes must not lie behind.
/// Threads write while memtables are switched.
#[test]
fn memtables_end_where_the_log_stood_when_they_were_frozen() {
    let env = env::real::env();
    let scratch = tempfile::tempdir().expect("a directory");
    let (engine, _) = open(&env, options(&scratch.path().join("node"), 1 << 30));
    let store = engine.table_by_name("restart", "t").expect("open");
    let ends = Arc::new(AtomicBool::new(false));
    let writer = |number: i32| {
        let (engine, ends) = (Arc::clone(&engine), Arc::clone(&ends));
        let job = move || {
            for v in (0..).take_while(|_| !ends.load(Ordering::Relaxed)) {
                match engine.apply(&[mutation(&engine, v % PARTITIONS, number, 1)]) {
                    // the disk is slower than the writers
                    Err(crate::StorageError::Busy) => std::thread::yield_now(),
                    applied => drop(applied.expect("the node takes writes")),
                }
            }
        };
        env.tasks.spawn_worker("writer", Box::new(job))
    };
    let writers: Vec<_> = (0..2).map(writer).collect();
    let mut before = None;
    for _ in 0..2000 {
        let Some(set) = store.switch_memtables(store.table(), None, || engine.log.position()) else { continue };
        let ranges: Vec<_> = set.memtables.iter().filter_map(|memtable| memtable.log_range()).collect();
        assert!(ranges.iter().all(|range| range.last <= set.up_to), "a record lies behind the freeze");
        assert!(ranges.iter().all(|range| before.is_none_or(|before| range.first > before)), "a record lies before it");
        before = Some(set.up_to);
        store.finish_flush(&set, Vec::new());
    }
    ends.store(true, Ordering::Relaxed);
    writers.into_iter().for_each(|writer| writer.join().expect("no writer panics"));
}

/// A change whose table cannot be opened is refused, and is not in force after a restart either:
/// nothing of it is in the log. So it is with the log that takes nothing: nothing of the change is
/// in force before.
#[test]
fn a_change_that_fails_does_not_come_back() {
    let sim = Sim::new(7);
    let (engine, _) = open(&sim.env(), options(Path::new(DATA), 4 << 20));
    let add = |engine: &Engine, id: u8, name: &str| {
        let mut changed = KeyspaceMetadata::clone(engine.schema().keyspace("restart").expect("it was made"));
        changed.tables.insert(name.to_owned(), table(id, name));
        schema_change::change(engine, |schema| Ok::<_, ()>(schema.with_keyspace(changed)))
    };
    sim.disk().inject(Fault::next(Op::CreateDir, "/v-"));
    assert!(add(&engine, 3, "v").is_err());
    assert!(engine.schema().table("restart", "v").is_none() && engine.table(TableId([3; 16])).is_none());
    sim.block_on(engine.log.sync()).expect("a sound disk syncs");
    drop(engine);
    sim.kill();
    let (engine, _) = open(&sim.env(), options(Path::new(DATA), 4 << 20));
    assert!(engine.schema().table("restart", "v").is_none());
    // the second try is as good as the first
    assert!(add(&engine, 3, "v").is_ok_and(|changed| changed.is_ok()));
    sim.block_on(engine.log.sync()).expect("a sound disk syncs");
    sim.disk().inject(Fault::next(Op::Sync, "CommitLog"));
    engine.apply(&[mutation(&engine, 1, 1, 1)]).expect("the log has not failed yet");
    assert!(sim.block_on(engine.log.sync()).is_err());
    assert!(add(&engine, 4, "w").is_err());
    assert!(engine.schema().table("restart", "w").is_none() && engine.table(TableId([4; 16])).is_none());
    assert!(engine.schema().table("restart", "v").is_some());
}
