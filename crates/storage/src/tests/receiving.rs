//! SSTables of one machine received by another: partition by partition and whole.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use env::sim::{DATA, Sim};
use rows::live::{LiveRows, TombstoneLimits};
use rows::{
    Cell, IndexSearch, Liveness, Mutation, PartitionRange, PartitionUpdate, ReadCommand, ReadContext, ReadMode, Row,
};
use schema::table::ColumnSpec;
use schema::{
    ColumnKind, IndexKind, IndexMetadata, KeyspaceMetadata, TableFlags, TableId, TableKind, TableMetadata, TableParams,
};
use sstable::{Component, SSTable, Version};
use types::{CqlType, DecoratedKey};

use super::common::{self, int, number};
use crate::received::{IfTruncated, Origin, ReceivedSSTables, TruncationEpoch};
use crate::{Engine, EngineOptions, StorageError, commitlog, import, index, schema_change, truncate};

pub(super) const ID: TableId = TableId([8; 16]);
const ORIGIN: Origin = Origin { level: 3, repaired_at: 1_700_000_000_000, pending_repair: None };

fn table() -> TableMetadata {
    let spec =
        |name: &str, kind| ColumnSpec { name: name.into(), kind, position: 0, ty: CqlType::Int, reversed: false };
    let specs =
        vec![spec("k", ColumnKind::PartitionKey), spec("c", ColumnKind::Clustering), spec("v", ColumnKind::Regular)];
    let (kind, flags, params) = (TableKind::Regular, TableFlags::COMPOUND, TableParams::default());
    let mut table = TableMetadata::new(ID, "ks", "t", kind, flags, params, specs, BTreeMap::new(), None);
    let options = BTreeMap::from([("target".to_owned(), "v".to_owned())]);
    let index = IndexMetadata { name: "by_v".to_owned(), kind: IndexKind::Composites, options };
    table.indexes.insert("by_v".to_owned(), index);
    table
}

pub(super) fn open(sim: &Sim, version: Version) -> Arc<Engine> {
    let options = EngineOptions {
        commitlog: commitlog::Options { segment_size: 64 << 10, total_space: 1 << 20, ..commitlog::Options::default() },
        memtable_bytes: 1 << 20,
        sstable_version: version,
        ..EngineOptions::with_small_budgets(Path::new(DATA))
    };
    let (engine, _) = crate::open(&sim.env(), options).expect("a sound disk opens");
    if engine.schema().table("ks", "t").is_none() {
        let keyspace = || common::keyspace("ks", Some(Arc::new(table())));
        let changed = schema_change::change(&engine, |schema| Ok::<_, ()>(schema.with_keyspace(keyspace())));
        let position = changed.expect("a sound disk").expect("not refused").position.expect("rows were written");
        sim.block_on(engine.log.wait_durable(position)).expect("a sound disk syncs");
    }
    let _ = sim.run_until_idle();
    engine
}

/// A machine with two SSTables that overlap.
pub(super) fn source(version: Version) -> (Sim, Arc<Engine>) {
    let sim = Sim::new(5);
    let engine = open(&sim, version);
    fill(&sim, &engine);
    (sim, engine)
}

fn fill(sim: &Sim, engine: &Arc<Engine>) {
    let table = engine.schema().table("ks", "t").cloned().expect("it was made");
    let column = table.column_by_name("v").expect("the table's column").id;
    for half in 0..2 {
        for key in 0..40 {
            let mut update = PartitionUpdate::new(Arc::clone(&table), DecoratedKey::new(int(key)));
            for clustering in 0..3 {
                let mut row = Row::new([Some(int(clustering * 2 + half))].into_iter().collect());
                row.liveness = Liveness::new(10);
                row.add_cell(Cell::live(column, 10, int((key + clustering) % 7)));
                update.add_row(row);
            }
            engine.apply(&[Mutation::of(update)]).expect("a sound disk takes writes");
        }
        sim.block_on(engine.flush(&engine.table(ID).expect("open"))).expect("a sound disk flushes");
    }
}

pub(super) fn sstables(engine: &Engine) -> Vec<Arc<SSTable>> {
    engine.table(ID).expect("open").view().sstables.to_vec()
}

/// Key, clustering and value of the rows that a scan gives, or that the index gives for a value.
pub(super) fn read(engine: &Engine, value: Option<i32>) -> Vec<[i32; 3]> {
    let table = engine.schema().table("ks", "t").cloned().expect("it was made");
    let column = table.column_by_name("v").expect("the table's column").id;
    let indexes = value
        .map(|value| IndexSearch { name: "by_v".into(), operator: rows::SearchOperator::Eq, value: int(value) })
        .into_iter()
        .collect();
    let command = ReadCommand { indexes, ..ReadCommand::whole(&table, PartitionRange::all()) };
    let mut stream = engine.read(&command, &ReadContext::new(ReadMode::Background)).expect("sound");
    let mut live = LiveRows::new(stream.as_mut(), table, 1, TombstoneLimits::NONE);
    let mut found = Vec::new();
    while let Some(partition) = live.next_partition().expect("sound") {
        while let Some(row) = live.next_row().expect("sound") {
            let Some(rows::ColumnData::Simple(cell)) = row.column(column) else { continue };
            let clustering = row.clustering[0].as_ref().expect("no null");
            found.push([number(&partition.key.key), number(clustering), number(&cell.value)]);
        }
    }
    found
}

/// Receives all SSTables of an engine, which are told of now; they are not added.
fn receive(from: &Engine, to: &Arc<Engine>, entire: bool) -> Result<ReceivedSSTables, StorageError> {
    receive_announced(from, to, entire, to.truncation_epoch())
}

/// As [`receive`], of SSTables that were told of at a moment.
fn receive_announced(
    from: &Engine,
    to: &Arc<Engine>,
    entire: bool,
    announced: TruncationEpoch,
) -> Result<ReceivedSSTables, StorageError> {
    let receiving = ReceivedSSTables::begin(to, &to.table(ID).expect("open"), announced, IfTruncated::Drop)?;
    for sstable in sstables(from) {
        if entire {
            let mut whole = receiving.whole(to, sstable.descriptor().version)?;
            for component in Component::ALL.into_iter().filter(|component| *component != Component::Toc) {
                let path = sstable.descriptor().path(component);
                let Ok(bytes) = from.env.disk.read_all(&path, 1 << 20) else { continue };
                whole.component(component.name(), bytes.len() as u64)?;
                bytes.chunks(100).try_for_each(|piece| whole.write(piece))?;
            }
            let others = b"of an index that this node makes itself";
            whole.component("SAI+aa+Meta.db", others.len() as u64)?;
            whole.write(others)?;
            receiving.take(to, whole, ORIGIN)?;
        } else {
            let mut stream = sstable.scan_all(&ReadContext::new(ReadMode::Background))?;
            receiving.write_rows(to, &mut stream, sstable.header(), 40, ORIGIN)?;
        }
    }
    Ok(receiving)
}

/// Names of the files in the table's directory.
pub(super) fn files(engine: &Engine) -> Vec<String> {
    let store = engine.table(ID).expect("open");
    let entries = engine.env.disk.list_dir(&store.directory).unwrap_or_default();
    entries.into_iter().filter(|entry| !entry.is_dir).map(|entry| entry.name).collect()
}

#[test]
fn what_was_received_is_there_all_at_once_and_stays() {
    for (entire, version) in [(false, Version::DA), (true, Version::DA), (true, Version::NB)] {
        let (_from_sim, from) = source(version);
        let sim = Sim::new(6);
        let to = open(&sim, Version::OA);
        let receiving = receive(&from, &to, entire).expect("a sound disk");
        assert_eq!(read(&to, None), Vec::<[i32; 3]>::new());
        assert_eq!(sim.block_on(receiving.finish(&to)).expect("a sound disk"), 2);
        let expected = read(&from, None);
        assert_index_has(&to, &expected);
        assert_eq!((expected.len(), read(&to, None)), (240, expected.clone()));
        for sstable in sstables(&to) {
            let stats = &sstable.statistics().stats;
            assert_eq!((stats.level, stats.repaired_at), (ORIGIN.level, ORIGIN.repaired_at));
            let expected = if entire { version } else { Version::OA };
            assert_eq!(sstable.descriptor().version, expected);
        }
        drop(to);
        sim.power_cut();
        let to = open(&sim, Version::OA);
        assert_eq!(read(&to, None), expected);
        assert_index_has(&to, &expected);
    }
}

fn assert_index_has(engine: &Engine, expected: &[[i32; 3]]) {
    for value in 0..7 {
        let of_value: Vec<_> = expected.iter().copied().filter(|row| row[2] == value).collect();
        assert_eq!(read(engine, Some(value)), of_value, "the index has what came");
    }
}

/// Between the entries and the rows: queries find nothing and take no entry away, and a power cut
/// leaves nothing that shows.
#[test]
fn entries_wait_for_their_rows() {
    for crash in [false, true] {
        let (_from_sim, from) = source(Version::DA);
        let sim = Sim::new(10);
        let mut to = open(&sim, Version::DA);
        let mut receiving = receive(&from, &to, true).expect("a sound disk");
        let store = to.table(ID).expect("open");
        let readers = receiving.readers(&to).expect("sound");
        let filled = sim.block_on(index::prefill::fill(&to, &store, &readers)).expect("a sound disk");
        assert_eq!(read(&to, Some(3)), Vec::<[i32; 3]>::new());
        let removed = store.view().indexes[0].state.stale_removed.load(std::sync::atomic::Ordering::Relaxed);
        assert_eq!(removed, 0, "an entry is taken away whose row is about to come");
        drop((readers, filled, store));
        if crash {
            drop((receiving, to));
            sim.power_cut();
            to = open(&sim, Version::DA);
            assert_eq!((read(&to, None), read(&to, Some(3))), (Vec::new(), Vec::new()));
            receiving = receive(&from, &to, true).expect("a sound disk");
        }
        assert_eq!(sim.block_on(receiving.finish(&to)).expect("a sound disk"), 2);
        assert_eq!(read(&to, None), read(&from, None));
    }
}

#[test]
fn what_was_not_added_leaves_no_trace() {
    for entire in [false, true] {
        let (_from_sim, from) = source(Version::DA);
        let sim = Sim::new(7);
        let to = open(&sim, Version::DA);
        let before = files(&to);
        let receiving = receive(&from, &to, entire).expect("a sound disk");
        assert!(files(&to).len() > before.len());
        receiving.abandon();
        assert_eq!(files(&to), before);
        let receiving = receive(&from, &to, entire).expect("a sound disk");
        drop((receiving, to));
        sim.power_cut();
        let to = open(&sim, Version::DA);
        assert_eq!(files(&to), before, "a crash before the end");
    }
}

/// A component that was cut on its way is found when the SSTable is opened, and nothing counts.
#[test]
fn a_damaged_sstable_is_not_added() {
    let (_from_sim, from) = source(Version::DA);
    let sim = Sim::new(8);
    let to = open(&sim, Version::DA);
    let before = files(&to);
    let receiving = receive(&from, &to, false).expect("a sound disk");
    let mut whole = receiving.whole(&to, Version::DA).expect("a sound disk");
    for component in [Component::Data, Component::Statistics] {
        let path = sstables(&from)[0].descriptor().path(component);
        let bytes = from.env.disk.read_all(&path, 1 << 20).expect("readable");
        whole.component(component.name(), bytes.len() as u64).expect("a sound disk");
        whole.write(&bytes).expect("a sound disk");
    }
    receiving.take(&to, whole, ORIGIN).expect("statistics are sound");
    assert!(sim.block_on(receiving.finish(&to)).is_err(), "there is no index");
    assert_eq!((files(&to), sstables(&to).len()), (before, 0));
}

/// An SSTable that comes without statistics is a mistake of its sender. It is not told as a failure
/// of this node's disk, which would end the node's traffic (`disk_failure_policy: stop`).
#[test]
fn an_sstable_without_statistics_is_no_failure_of_the_disk() {
    let sim = Sim::new(8);
    let to = open(&sim, Version::DA);
    let store = to.table(ID).expect("open");
    let receiving =
        ReceivedSSTables::begin(&to, &store, to.truncation_epoch(), IfTruncated::Drop).expect("a sound disk");
    let mut whole = receiving.whole(&to, Version::DA).expect("a sound disk");
    whole.component(Component::Data.name(), 1).expect("a sound disk");
    whole.write(b"x").expect("a sound disk");
    let refused = receiving.take(&to, whole, ORIGIN);
    assert!(matches!(refused, Err(StorageError::Refused { .. })), "{refused:?}");
}

/// The sender's schema is ahead of the receiver's.
#[test]
fn rows_with_an_unknown_column_are_refused() {
    let (_from_sim, from) = source(Version::DA);
    let sim = Sim::new(9);
    let to = open(&sim, Version::DA);
    let store = to.table(ID).expect("open");
    let receiving =
        ReceivedSSTables::begin(&to, &store, to.truncation_epoch(), IfTruncated::Drop).expect("a sound disk");
    let sstable = &sstables(&from)[0];
    let mut header = sstable.header().clone();
    header.regulars[0].id = None;
    let mut stream = sstable.scan_all(&ReadContext::new(ReadMode::Background)).expect("sound");
    let refused = receiving.write_rows(&to, &mut stream, &header, 40, ORIGIN);
    assert!(matches!(refused, Err(StorageError::Refused { why }) if why.contains("Unknown column v")));
    assert_eq!(sim.block_on(receiving.finish(&to)).expect("nothing is added"), 0);
}

/// A table is dropped while SSTables of it come, and is made again with its id: not before the
/// stream has ended, because its files go by names that those of the new table may have.
#[test]
fn a_table_is_not_made_again_while_sstables_of_the_dropped_one_come() {
    let (_from_sim, from) = source(Version::DA);
    let sim = Sim::new(13);
    let to = open(&sim, Version::DA);
    let (store, keyspace) = (to.table(ID).expect("open"), to.schema().keyspace("ks").cloned().expect("it was made"));
    let put =
        |keyspace: KeyspaceMetadata| schema_change::change(&to, |schema| Ok::<_, ()>(schema.with_keyspace(keyspace)));
    let make = || put(KeyspaceMetadata::clone(&keyspace));
    let pass = || {
        sim.run_until_idle();
        sim.advance(Duration::from_millis(200));
        sim.run_until_idle();
    };
    let coming = receive(&from, &to, true).expect("a sound disk");
    let changed = put(common::keyspace("ks", None)).expect("a sound disk").expect("not refused");
    sim.block_on(to.log.wait_durable(changed.position.expect("rows were written"))).expect("a sound disk syncs");
    changed.dropped.iter().for_each(|store| to.dropper.request(store, None));
    pass();
    assert!(matches!(make(), Err(StorageError::FilesOfDropped { .. })), "SSTables come");
    assert!(
        ReceivedSSTables::begin(&to, &store, to.truncation_epoch(), IfTruncated::Drop).is_err(),
        "the table is gone"
    );
    coming.abandon();
    pass();
    assert!(make().expect("a sound disk").is_ok());
    assert_eq!(files(&to), Vec::<String>::new());
}

/// `nodetool refresh` has found its table, and begins when that is dropped and another one was made
/// in its place with its id: the SSTables there are not its own.
#[test]
fn a_refresh_of_a_dropped_table_takes_nothing_of_the_one_in_its_place() {
    let (sim, engine) = source(Version::DA);
    let store = engine.table(ID).expect("open");
    let keyspace = engine.schema().keyspace("ks").cloned().expect("it was made");
    let put = |keyspace: KeyspaceMetadata| {
        let changed = schema_change::change(&engine, |schema| Ok::<_, ()>(schema.with_keyspace(keyspace)));
        changed.expect("a sound disk").expect("not refused").dropped
    };
    let dropped = put(common::keyspace("ks", None));
    sim.block_on(engine.log.sync()).expect("a sound disk syncs");
    common::remove(&sim, &engine, &dropped);
    put(KeyspaceMetadata::clone(&keyspace));
    sim.run_until_idle();
    fill(&sim, &engine);
    let before = files(&engine);
    assert!(import::refresh(&engine, &store).is_err(), "the table is gone");
    assert_eq!(files(&engine), before);
}

/// TRUNCATE between the news of a stream and its first file, and between its last file and its end:
/// no row comes behind it. Rows that are told of behind the TRUNCATE stay.
#[test]
fn rows_from_before_a_truncation_do_not_come_behind_it() {
    for entire in [false, true] {
        let (_from_sim, from) = source(Version::DA);
        let sim = Sim::new(11);
        let to = open(&sim, Version::DA);
        let store = to.table(ID).expect("open");
        let before = files(&to);
        let empty = || sim.block_on(truncate::truncate(&to, &store)).expect("a sound disk truncates");
        let announced = to.truncation_epoch();
        empty();
        let begun_behind = receive_announced(&from, &to, entire, announced).expect("a sound disk");
        let begun_before = receive(&from, &to, entire).expect("a sound disk");
        assert_eq!(sim.block_on(begun_behind.finish(&to)).expect("no failure"), 0);
        empty();
        assert_eq!(sim.block_on(begun_before.finish(&to)).expect("no failure"), 0);
        assert_eq!((read(&to, None), read(&to, Some(3))), (Vec::new(), Vec::new()));
        assert_eq!(files(&to), before);
        let later = receive(&from, &to, entire).expect("a sound disk");
        assert_eq!(sim.block_on(later.finish(&to)).expect("a sound disk"), 2);
        assert_eq!(read(&to, None), read(&from, None));
    }
}

/// The SSTables are added between the cut and the end of a truncation: those that were told of
/// before the cut go with it, unless it comes to nothing.
#[test]
fn rows_that_come_during_a_truncation_go_with_it() {
    for (told_behind, ends_well, stays) in [(false, true, false), (false, false, true), (true, true, true)] {
        let (_from_sim, from) = source(Version::DA);
        let sim = Sim::new(12);
        let to = open(&sim, Version::DA);
        let store = to.table(ID).expect("open");
        let announced = to.truncation_epoch();
        let mut truncation = Box::pin(truncate::truncate(&to, &store));
        while store.view_beside_no_truncation().is_some() {
            let polled = truncation.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending(), "the cut is made first");
            sim.step();
        }
        let announced = if told_behind { to.truncation_epoch() } else { announced };
        let receiving = receive_announced(&from, &to, true, announced).expect("a sound disk");
        assert_eq!(sim.block_on(receiving.finish(&to)).expect("a sound disk"), 2);
        assert_eq!(read(&to, None), read(&from, None));
        match ends_well {
            true => sim.block_on(&mut truncation).expect("a sound disk truncates"),
            false => drop(truncation),
        }
        let expected = if stays { read(&from, None) } else { Vec::new() };
        assert_eq!(read(&to, None), expected, "told of behind the cut: {told_behind}, truncated: {ends_well}");
    }
}
