//! DROP and TRUNCATE where the disk refuses: memory and commit log are given back, each table for
//! itself, a full device can be freed, and what is refused is tried again.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use env::sim::{DATA, EIO, ENOSPC, Fault, Op, Sim};
use rows::{Cell, Mutation, PartitionUpdate, Row};
use schema::table::ColumnSpec;
use schema::{ColumnKind, KeyspaceMetadata, Schema, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use types::{CqlType, DecoratedKey, UserType};

use super::common::{give_host_id, int, keyspace};
use super::restart::{NAMES, check_table, make_unreadable, mutation, open, options, table, write as write_rows};
use super::truncating::keys;
use crate::files::FileRetention;
use crate::schema_change::Changed;
use crate::{Engine, EngineOptions, StorageError, TableStore, drops, schema_change, snapshot, truncate, write};

pub(super) struct Node {
    pub sim: Sim,
    pub engine: Arc<Engine>,
}

impl Node {
    pub fn open(seed: u64, auto_snapshot: bool) -> Self {
        let sim = Sim::new(seed);
        let options = EngineOptions { auto_snapshot, ..options(Path::new(DATA), 16 << 20) };
        let (engine, _) = open(&sim.env(), options);
        let node = Self { sim, engine };
        node.flush_all();
        node
    }

    pub fn flush_all(&self) {
        for store in self.engine.tables() {
            self.sim.block_on(self.engine.flush(&store)).expect("a sound disk flushes");
        }
    }

    pub fn store(&self, name: &str) -> Arc<TableStore> {
        self.engine.table_by_name("restart", name).expect("open")
    }

    /// Rows of both tables.
    fn write(&self, partitions: i32) {
        let now = self.engine.env.clock.now_micros();
        for k in 0..partitions {
            self.engine.apply(&[mutation(&self.engine, k, 1, now)]).expect("room");
        }
        self.sim.block_on(self.engine.log.sync()).expect("a sound disk syncs");
    }

    /// A row of one table.
    pub fn row(&self, name: &str, k: i32) -> Mutation {
        let table = self.store(name).table();
        let mut row = Row::new([Some(int(k))].into_iter().collect());
        row.add_cell(Cell::live(table.regulars[0].id, 1, Bytes::from(vec![7; 4])));
        let mut update = PartitionUpdate::new(table, DecoratedKey::new(int(k)));
        update.add_row(row);
        Mutation::of(update)
    }

    /// Drops the keyspace; as a node does, the files go once the log has it.
    fn drop_keyspace(&self) -> Changed {
        let changed = self.drop_from_schema();
        changed.dropped.iter().for_each(|store| self.engine.dropper.request(store, None));
        self.pass(Duration::ZERO);
        changed
    }

    /// Drops the keyspace; nobody has asked for the removal of the files yet.
    fn drop_from_schema(&self) -> Changed {
        let drops = |schema: &schema::Schema| {
            let nothing = KeyspaceMetadata { tables: Default::default(), ..keyspace("restart", None) };
            Ok::<_, ()>(schema.with_keyspace(nothing))
        };
        let changed = schema_change::change(&self.engine, drops).expect("taken").expect("not refused");
        let position = changed.position.expect("rows were written");
        self.sim.block_on(self.engine.log.wait_durable(position)).expect("a sound log syncs");
        changed
    }

    fn pass(&self, time: Duration) {
        self.sim.run_until_idle();
        self.sim.advance(time);
        self.sim.run_until_idle();
    }

    /// Data files in a table's directory.
    fn data_files(&self, directory: &Path) -> usize {
        let entries = self.engine.env.disk.list_dir(directory).unwrap_or_default();
        entries.iter().filter(|entry| entry.name.ends_with("-Data.db")).count()
    }

    fn snapshots(&self, directory: &Path) -> Vec<PathBuf> {
        let above = directory.join("snapshots");
        let entries = self.engine.env.disk.list_dir(&above).unwrap_or_default();
        entries.into_iter().map(|entry| above.join(entry.name)).collect()
    }

    fn is_dirty(&self, id: TableId) -> bool {
        self.engine.log.is_needed_by(id)
    }

    /// Fills the device with rows of a table that cannot be flushed, until nothing more is taken.
    fn fill(&self, name: &str) {
        let refused = Fault { times: u64::MAX, errno: ENOSPC, ..Fault::next(Op::Write, "-Data.db") };
        self.sim.disk().inject(refused);
        self.sim.disk().set_capacity(Some(1 << 20));
        for k in 0..100_000 {
            self.pass(Duration::from_millis(u64::from(k % 64 == 0)));
            match self.engine.apply(&[self.row(name, k)]) {
                Ok(_) => {}
                Err(StorageError::WritesStopped { .. }) => return assert!(k > 1000, "the log has some segments"),
                Err(other) => panic!("{other}"),
            }
        }
        panic!("the device does not fill");
    }

    /// Whether writes are taken, some time later.
    fn takes_writes(&self, name: &str) -> bool {
        (0..20).for_each(|_| self.pass(Duration::from_millis(500)));
        (0..2000).all(|k| self.engine.apply(&[self.row(name, k)]).is_ok())
    }
}

/// DROP KEYSPACE where the flush of the first table fails: its memory and its part of the log are
/// given back all the same, and the table behind it goes too.
#[test]
fn a_flush_that_fails_holds_up_no_drop() {
    for errno in [EIO, ENOSPC] {
        let node = Node::open(1, true);
        node.write(50);
        node.flush_all();
        node.write(100);
        let (used, _) = node.engine.memory.usage();
        let fails = Fault { times: u64::MAX, errno, ..Fault::next(Op::Create, "/t-") };
        node.sim.disk().inject(Fault { op: Op::Write, path: "-Data.db".into(), ..fails });
        let dropped = node.drop_keyspace().dropped;
        assert_eq!((dropped.len(), node.engine.dropper.pending()), (2, 0));
        assert!(node.engine.memory.usage().0 < used / 4, "memtables are given back");
        for store in &dropped {
            assert!(!node.is_dirty(store.id));
            assert_eq!(store.view().memtable_size(), 0);
            assert_eq!(node.data_files(&store.directory), 0);
            let snapshots = node.snapshots(&store.directory);
            assert_eq!(snapshots.iter().map(|snapshot| node.data_files(snapshot)).sum::<usize>(), 1);
        }
        // and nothing tries the flush again
        node.sim.disk().heal();
        node.pass(Duration::from_secs(10));
        assert_eq!(node.engine.flusher.pending(), 0);
    }
}

/// A snapshot that is refused keeps the files, and is tried again; memory and log are given back at
/// once, and the other table goes.
#[test]
fn a_snapshot_that_is_refused_is_tried_again() {
    let node = Node::open(2, true);
    node.write(50);
    let (t, u) = (node.store("t"), node.store("u"));
    node.sim.disk().inject(Fault { times: u64::MAX, errno: ENOSPC, ..Fault::next(Op::Link, "/t-") });
    node.drop_keyspace();
    node.pass(Duration::from_secs(30));
    assert_eq!(node.engine.dropper.pending(), 1);
    assert_eq!((node.data_files(&t.directory), node.data_files(&u.directory)), (1, 0));
    assert!(!node.is_dirty(t.id) && t.view().memtable_size() == 0);
    assert!(node.snapshots(&t.directory).is_empty(), "what is not complete is no snapshot");
    node.sim.disk().heal();
    node.pass(Duration::from_secs(10));
    assert_eq!((node.engine.dropper.pending(), node.data_files(&t.directory)), (0, 0));
    let [snapshot] = node.snapshots(&t.directory).try_into().expect("one");
    assert_eq!(node.data_files(&snapshot), 1);
}

/// The snapshot of a table that goes with its keyspace has the types of its columns, which the
/// schema does not have any more: the table could not be made again without them.
#[test]
fn the_snapshot_of_a_dropped_keyspace_has_its_types() {
    let node = Node::open(17, true);
    let udt = |name: &str, ty: CqlType| {
        let (keyspace, name, fields) = ("typed".to_owned(), name.to_owned(), vec![("f".to_owned(), ty)]);
        Arc::new(UserType { keyspace, name, fields })
    };
    let inner = udt("inner", CqlType::Int);
    let outer = udt("an_outer", CqlType::Udt(Arc::clone(&inner), true));
    let spec = |name: &str, kind, ty| ColumnSpec { name: name.into(), kind, position: 0, ty, reversed: false };
    let of_outer = CqlType::Udt(Arc::clone(&outer), true);
    let specs = vec![spec("k", ColumnKind::PartitionKey, CqlType::Int), spec("v", ColumnKind::Regular, of_outer)];
    let (id, kind, flags, params) =
        (TableId([20; 16]), TableKind::Regular, TableFlags::COMPOUND, TableParams::default());
    let table = TableMetadata::new(id, "typed", "t", kind, flags, params, specs, Default::default(), None);
    let user_types = [inner, outer].into_iter().map(|udt| (udt.name.clone(), udt)).collect();
    let typed = KeyspaceMetadata { user_types, ..keyspace("typed", Some(Arc::new(table))) };
    let made = schema_change::change(&node.engine, |schema| Ok::<_, ()>(schema.with_keyspace(typed)));
    assert!(made.is_ok_and(|made| made.is_ok()));
    let directory = node.engine.table(id).expect("it was made").directory.clone();
    let drops = |schema: &Schema| Ok::<_, ()>(schema.without_keyspace("typed"));
    let changed = schema_change::change(&node.engine, drops).expect("taken").expect("not refused");
    changed.dropped.iter().for_each(|store| node.engine.dropper.request(store, None));
    node.pass(Duration::ZERO);
    let [snapshot] = node.snapshots(&directory).try_into().expect("one");
    let text = node.engine.env.disk.read_all(&snapshot.join("schema.cql"), 1 << 20).expect("written");
    let text = String::from_utf8(text).expect("text");
    let places = ["CREATE TYPE typed.inner", "CREATE TYPE typed.an_outer", "CREATE TABLE"].map(|part| text.find(part));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{text}");
}

/// Snapshots of a dropped table are found by their directories and cleared; with the last of them
/// the directory goes, and nothing else does.
#[test]
fn snapshots_of_a_dropped_table_are_listed_and_cleared() {
    let node = Node::open(7, true);
    node.write(3);
    node.flush_all();
    let t = node.store("t");
    snapshot::take(&node.engine, &t, "monday").expect("taken");
    node.drop_keyspace();
    let disk = &node.engine.env.disk;
    let place = |id: &str| {
        let places = snapshot::places(&node.engine).expect("read");
        places.into_iter().find(|place| place.table_id == id)
    };
    let id = t.id.to_hex();
    let of_t = place(&id).expect("its directory is there");
    let listed = snapshot::list_at(&node.engine, &of_t).expect("listed");
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert!(listed.iter().any(|one| one.tag.starts_with("dropped-") && one.true_size > 0 && one.table == "t"));
    assert_eq!(snapshot::clear_at(&node.engine, &of_t, Some("monday")), Ok(1));
    assert!(disk.exists(&t.directory));
    assert_eq!(snapshot::clear_at(&node.engine, &of_t, None), Ok(1));
    assert!(!disk.exists(&t.directory) && place(&id).is_none());
}

/// A snapshot that is cleared while its table is on its way off the disk takes no directory away
/// that the automatic snapshot is about to need.
#[test]
fn a_snapshot_is_cleared_while_its_table_is_dropped() {
    let node = Node::open(8, true);
    let t = node.store("t");
    snapshot::take(&node.engine, &t, "monday").expect("taken");
    node.sim.disk().inject(Fault { times: u64::MAX, errno: ENOSPC, ..Fault::next(Op::Write, "/dropped-") });
    node.drop_keyspace();
    node.pass(Duration::from_secs(10));
    let id = t.id.to_hex();
    let places = snapshot::places(&node.engine).expect("read");
    let of_t = places.into_iter().find(|place| place.table_id == id).expect("its directory is there");
    assert_eq!(snapshot::clear_at(&node.engine, &of_t, Some("monday")), Ok(1));
    assert!(node.engine.dropper.pending() > 0 && node.engine.env.disk.exists(&t.directory));
    node.sim.disk().heal();
    node.pass(Duration::from_secs(10));
    assert_eq!(node.engine.dropper.pending(), 0);
    assert_eq!(node.snapshots(&t.directory).len(), 1);
    // the last one takes the directory with it
    assert_eq!(snapshot::clear_at(&node.engine, &of_t, None), Ok(1));
    assert!(!node.engine.env.disk.exists(&t.directory));
}

/// A table that is left out, because its stored rows cannot be read, is dropped alone or with its
/// keyspace: its SSTables go into the snapshot, as those of any dropped table.
#[test]
fn a_table_that_is_left_out_can_be_dropped() {
    for (seed, with_keyspace) in [(13, false), (14, true)] {
        let sim = Sim::new(seed);
        let options = || EngineOptions { auto_snapshot: true, ..options(Path::new(DATA), 16 << 20) };
        let (engine, _) = open(&sim.env(), options());
        give_host_id(&sim, &engine, 1);
        write_rows(&engine, 0);
        let store = engine.table_by_name("restart", "t").expect("open");
        sim.block_on(engine.flush(&store)).expect("a sound disk flushes");
        let directory = store.directory.clone();
        make_unreadable(&sim, &engine);
        drop((store, engine));
        sim.kill();
        let (engine, _) = open(&sim.env(), options());
        assert_eq!(schema_change::left_out(&engine).expect("a sound disk reads").len(), 1);
        // somebody has put a file into a directory without the id, which is not the table's
        let without_id = directory.with_file_name("t");
        let other = without_id.join("nb-1-big-Data.db");
        if with_keyspace {
            sim.env().disk.create_dir_durable(&without_id).expect("a sound disk");
            sim.env().disk.replace_file(&other, b"").expect("a sound disk");
        }
        let drops = |schema: &Schema| {
            Ok::<_, ()>(match with_keyspace {
                true => schema.without_keyspace("restart"),
                false => schema.without_left_out("restart", "t"),
            })
        };
        let changed = schema_change::change(&engine, drops).expect("taken").expect("not refused");
        assert_eq!((changed.dropped_left_out.len(), changed.dropped.len()), (1, usize::from(with_keyspace)));
        let position = changed.position.expect("rows were written");
        sim.block_on(engine.log.wait_durable(position)).expect("a sound disk syncs");
        changed.dropped_left_out.into_iter().for_each(|files| engine.dropper.request_left_out(files));
        sim.run_until_idle();
        assert_eq!(engine.dropper.pending(), 0);
        let names = |directory: &Path| -> Vec<String> {
            let entries = sim.env().disk.list_dir(directory).expect("a sound disk");
            entries.into_iter().map(|entry| entry.name).collect()
        };
        assert_eq!(names(&directory), ["snapshots"]);
        let [tag] = names(&directory.join("snapshots")).try_into().expect("one snapshot");
        let linked = names(&directory.join("snapshots").join(&tag));
        assert!(tag.starts_with("dropped-") && tag.ends_with("-t"), "{tag}");
        assert!(linked.iter().any(|name| name.ends_with("-Data.db")), "{linked:?}");
        assert!(linked.iter().any(|name| name == "manifest.json"), "{linked:?}");
        assert_eq!(sim.env().disk.exists(&other), with_keyspace);
        assert!(schema_change::left_out(&engine).expect("a sound disk reads").is_empty());
        if with_keyspace {
            continue;
        }
        // the name is free
        let makes = |schema: &Schema| {
            let mut keyspace = schema.keyspaces["restart"].as_ref().clone();
            keyspace.tables.insert("t".to_owned(), table(9, "t"));
            Ok::<_, ()>(schema.with_keyspace(keyspace))
        };
        assert!(schema_change::change(&engine, makes).is_ok_and(|changed| changed.is_ok()));
        sim.block_on(engine.log.sync()).expect("a sound disk syncs");
        drop(engine);
        sim.kill();
        let (engine, _) = open(&sim.env(), options());
        assert!(engine.schema().left_out.is_empty());
        assert_eq!(engine.table_by_name("restart", "t").expect("open").id, TableId([9; 16]));
        check_table(&engine, "u", 3);
    }
}

/// Directories that are no keyspaces' may not be readable, as `lost+found` at the root of a disk.
#[test]
fn directories_of_others_are_passed_over() {
    let node = Node::open(9, false);
    let disk = &node.engine.env.disk;
    snapshot::take(&node.engine, &node.store("t"), "monday").expect("taken");
    let other = node.engine.options.data_directories[0].join("lost+found");
    disk.create_dir_all(&other).expect("made");
    node.sim.disk().inject(Fault { times: u64::MAX, errno: EIO, ..Fault::next(Op::List, "lost+found") });
    assert!(disk.list_dir(&other).is_err(), "nobody may read it");
    let places = snapshot::places(&node.engine).expect("it is nobody's");
    assert!(places.iter().any(|place| place.table == "t"));
}

/// A table is made again with the id of a dropped one (`WITH ID`): not before the old files are
/// gone, and the rows that the log still has of the old table are not replayed into the new one.
#[test]
fn a_table_that_is_made_again_with_its_id_is_empty() {
    let node = Node::open(10, false);
    node.write(20);
    node.flush_all();
    node.write(40);
    let keyspace = node.engine.schema().keyspace("restart").cloned().expect("it was made");
    let make = |node: &Node| {
        let keyspace = KeyspaceMetadata::clone(&keyspace);
        schema_change::change(&node.engine, |schema| Ok::<_, ()>(schema.with_keyspace(keyspace)))
    };
    let dropped = node.drop_from_schema().dropped;
    assert!(matches!(make(&node), Err(StorageError::FilesOfDropped { .. })), "the files are there");
    dropped.iter().for_each(|store| node.engine.dropper.request(store, None));
    drop(dropped);
    node.pass(Duration::ZERO);
    assert!(make(&node).expect("a sound disk").is_ok());
    assert_eq!(keys(&node, &node.store("t")), [0; 0]);
    node.engine.apply(&[node.row("t", 7)]).expect("room");
    node.sim.block_on(node.engine.log.sync()).expect("a sound disk syncs");
    assert_eq!(keys_after_power_cut(node), [7]);
}

/// The new table is empty, too, where the node was started again between the drop and the
/// creation, and the log had rows of the old one then.
#[test]
fn a_table_that_is_made_again_after_a_restart_has_no_rows_of_the_log() {
    let node = Node::open(12, false);
    node.write(40);
    let keyspace = KeyspaceMetadata::clone(node.engine.schema().keyspace("restart").expect("it was made"));
    node.drop_keyspace();
    let Node { sim, engine } = node;
    drop(engine);
    sim.kill();
    let options = EngineOptions { auto_snapshot: false, ..options(Path::new(DATA), 16 << 20) };
    let node = Node { engine: open(&sim.env(), options).0, sim };
    let made = schema_change::change(&node.engine, |schema| Ok::<_, ()>(schema.with_keyspace(keyspace)));
    assert!(made.is_ok_and(|made| made.is_ok()));
    node.engine.apply(&[node.row("t", 7)]).expect("room");
    node.sim.block_on(node.engine.log.sync()).expect("a sound disk syncs");
    assert_eq!(keys_after_power_cut(node), [7]);
}

/// A table in a directory without its id is dropped, and the process ends before the files are
/// removed: a new table of the name does not begin with them.
#[test]
fn a_new_table_has_no_files_of_a_dropped_one_after_a_restart() {
    let node = Node::open(16, false);
    node.write(3);
    node.flush_all();
    let with_id = node.store("t").directory.clone();
    let without_id = with_id.with_file_name("t");
    let again = |Node { sim, engine }: Node, between: &dyn Fn(&Sim)| {
        drop(engine);
        sim.kill();
        between(&sim);
        let options = EngineOptions { auto_snapshot: false, ..options(Path::new(DATA), 16 << 20) };
        Node { engine: open(&sim.env(), options).0, sim }
    };
    let rename = |sim: &Sim| sim.env().disk.rename(&with_id, &without_id).expect("a sound disk renames");
    let node = again(node, &rename);
    assert_eq!(node.store("t").directory, without_id);
    // nobody asks for the removal of the files
    drop(node.drop_from_schema());
    let node = again(node, &|_| ());
    let make = |node: &Node| {
        let made = keyspace("restart", Some(table(9, "t")));
        schema_change::change(&node.engine, |schema| Ok::<_, ()>(schema.with_keyspace(made)))
    };
    let refused = make(&node).err().expect("the files are there");
    assert!(matches!(&refused, StorageError::Refused { why } if why.contains("has SSTables")), "{refused}");
    let aside = without_id.with_file_name("aside");
    node.engine.env.disk.rename(&without_id, &aside).expect("a sound disk renames");
    let node = again(node, &|_| ());
    // files that somebody has put into the place since the start are the new table's
    node.engine.env.disk.rename(&aside, &without_id).expect("a sound disk renames");
    assert!(make(&node).is_ok_and(|changed| changed.is_ok()));
    let t = node.store("t");
    assert!(t.directory == without_id && !t.view().sstables.is_empty(), "{}", t.directory.display());
}

/// The process ends before the files of dropped tables are removed: the next start finds them.
#[test]
fn files_that_a_drop_has_left_behind_are_found() {
    let node = Node::open(19, false);
    node.write(3);
    node.flush_all();
    let [t, u] = NAMES.map(|name| node.store(name).directory.clone());
    assert!(drops::left_behind(&node.engine).expect("a sound disk").is_empty());
    drop(node.drop_from_schema());
    let Node { sim, engine } = node;
    drop(engine);
    sim.kill();
    // one of them has no id in its name
    let without_id = u.with_file_name("u");
    sim.env().disk.rename(&u, &without_id).expect("a sound disk renames");
    let options = EngineOptions { auto_snapshot: false, ..options(Path::new(DATA), 16 << 20) };
    let (engine, _) = open(&sim.env(), options);
    let found = drops::left_behind(&engine).expect("a sound disk");
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [t, without_id]);
}

/// A snapshot of a dropped table may end when a table was made again with its id, whose SSTables
/// have the names of those that were kept for the snapshot.
#[test]
fn the_end_of_a_snapshot_takes_nothing_from_a_table_that_was_made_again() {
    let node = Node::open(11, false);
    let flush = |k: i32| {
        node.engine.apply(&[node.row("t", k)]).expect("room");
        node.sim.block_on(node.engine.flush(&node.store("t"))).expect("a sound disk flushes");
    };
    let t = node.store("t");
    flush(1);
    let kept = FileRetention::of(&t);
    node.sim.block_on(truncate::truncate(&node.engine, &t)).expect("a sound disk truncates");
    assert_eq!(node.data_files(&t.directory), 1, "the snapshot may be about to link them");
    let keyspace = node.engine.schema().keyspace("restart").cloned().expect("it was made");
    node.drop_keyspace();
    let keyspace = KeyspaceMetadata::clone(&keyspace);
    let made = schema_change::change(&node.engine, |schema| Ok::<_, ()>(schema.with_keyspace(keyspace)));
    assert!(made.is_ok_and(|made| made.is_ok()));
    flush(2);
    drop(kept);
    assert_eq!(node.data_files(&t.directory), 1);
    assert_eq!(keys_after_power_cut(node), [2]);
}

/// A request that has looked a table up before it is dropped writes nothing behind the drop: it is
/// told that the table is gone.
#[test]
fn a_writer_that_knew_the_table_comes_too_late() {
    let node = Node::open(3, false);
    let (t, row) = (node.store("t"), node.row("t", 1));
    node.drop_keyspace();
    let position = node.engine.log.position();
    let logged = Some(write::LogAtomicity::EachRecord);
    let applied = write::apply(&[row], &[], &node.engine.log, logged, |_| Ok(Arc::clone(&t)), || true);
    assert!(matches!(applied, Err(StorageError::UnknownTable { .. })), "{applied:?}");
    assert_eq!(node.engine.log.position(), position);
    assert!(!node.is_dirty(t.id));
}

#[test]
fn truncate_frees_a_full_device() {
    for auto_snapshot in [false, true] {
        let node = Node::open(4, auto_snapshot);
        node.fill("t");
        let store = node.store("t");
        assert!(!node.takes_writes("u"));
        node.sim.block_on(truncate::truncate(&node.engine, &store)).expect("it makes room");
        assert_eq!(store.view().memtable_size(), 0);
        assert!(node.takes_writes("u"));
        assert_eq!(snapshot::list(&node.engine, &store).expect("listed").len(), usize::from(auto_snapshot));
        // and nothing of it comes back
        let Node { sim, engine } = node;
        sim.block_on(engine.log.sync()).expect("a sound disk syncs");
        drop((engine, store));
        sim.power_cut();
        sim.disk().set_capacity(None);
        let (engine, _) = open(&sim.env(), options(Path::new(DATA), 16 << 20));
        assert!(engine.table_by_name("restart", "t").is_some_and(|store| store.view().memtable_size() == 0));
        assert!(engine.table_by_name("restart", "u").is_some_and(|store| store.view().memtable_size() > 0));
    }
}

/// A device without room for SSTables. It has a row in an SSTable whose deletion is in memory and
/// in the log alone, and some rows beside it.
fn full_with_a_deletion(seed: u64) -> Node {
    let node = Node::open(seed, false);
    for k in [DELETED, 1] {
        node.engine.apply(&[node.row("t", k)]).expect("room");
    }
    node.flush_all();
    let mut deletion = PartitionUpdate::new(node.store("t").table(), DecoratedKey::new(int(DELETED)));
    deletion.deletion = rows::DeletionTime::new(2, node.engine.env.clock.now_seconds());
    node.engine.apply(&[Mutation::of(deletion), node.row("t", 2)]).expect("room");
    let refused = Fault { times: u64::MAX, errno: ENOSPC, ..Fault::next(Op::Write, "-Data.db") };
    node.sim.disk().inject(refused);
    node.sim.block_on(node.engine.log.sync()).expect("a sound disk syncs");
    node
}

/// The key of the row that [`full_with_a_deletion`] deletes.
const DELETED: i32 = -1;

/// The keys of `t` after a power cut and a start with room on the device.
fn keys_after_power_cut(node: Node) -> Vec<i32> {
    let Node { sim, engine } = node;
    drop(engine);
    sim.power_cut();
    sim.disk().heal();
    sim.disk().set_capacity(None);
    let (engine, _) = open(&sim.env(), options(Path::new(DATA), 16 << 20));
    let node = Node { sim, engine };
    keys(&node, &node.store("t"))
}

/// A removal that the disk refuses for another reason than its lack of room: the table has all of
/// its rows, also after a start, and none that was deleted.
#[test]
fn a_removal_that_fails_on_a_full_device_leaves_the_table() {
    let node = full_with_a_deletion(6);
    let store = node.store("t");
    node.sim.disk().inject(Fault { times: u64::MAX, ..Fault::next(Op::Create, "_txn_") });
    let truncated = node.sim.block_on(truncate::truncate(&node.engine, &store));
    assert!(matches!(truncated, Err(StorageError::Io { .. })), "{truncated:?}");
    let before = keys(&node, &store);
    drop(store);
    assert_eq!((before, keys_after_power_cut(node)), (vec![1, 2], vec![1, 2]));
}

/// The power goes at each step of a truncation on a full device: no row comes back that was
/// deleted.
#[test]
fn a_truncation_cut_off_on_a_full_device_brings_no_row_back() {
    let (mut kept, mut cleared) = (0, 0);
    for operations in 0.. {
        let node = full_with_a_deletion(7);
        let store = node.store("t");
        node.sim.disk().power_cut_after(operations);
        let done = node.sim.block_on(truncate::truncate(&node.engine, &store)).is_ok();
        drop(store);
        let keys = keys_after_power_cut(node);
        // all rows, those that were never flushed, or none
        assert!([&[1, 2][..], &[2], &[]].contains(&keys.as_slice()), "{operations} operations leave {keys:?}");
        *if keys.is_empty() { &mut cleared } else { &mut kept } += 1;
        if done {
            assert!(keys.is_empty(), "an acknowledged truncation holds");
            break;
        }
    }
    assert!(kept > 3 && cleared > 0, "{kept} tables kept their rows, {cleared} did not");
}

#[test]
fn drop_frees_a_full_device() {
    for auto_snapshot in [false, true] {
        let node = Node::open(5, auto_snapshot);
        node.fill("t");
        assert!(NAMES.iter().all(|name| !node.takes_writes(name)));
        let before = node.engine.log.stats().size;
        node.drop_keyspace();
        node.pass(Duration::from_secs(10));
        assert_eq!(node.engine.dropper.pending(), 0);
        assert!(node.engine.log.stats().size < before / 2, "{} of {before}", node.engine.log.stats().size);
        node.engine.apply(&[local_row(&node)]).expect("there is room");
    }
}

/// A small record of the node itself.
fn local_row(node: &Node) -> Mutation {
    let table = node.engine.schema().table("system", "peers_v2").cloned().expect("every node has it");
    let key = DecoratedKey::new(Bytes::from_static(&[127, 0, 0, 2]));
    let mut update = PartitionUpdate::new(table, key);
    update.deletion = rows::DeletionTime::new(1, 1);
    Mutation::of(update)
}
