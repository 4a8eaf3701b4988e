//! Verbs that write: what they write reads as what they read, the directory changes as one step,
//! and a running node is left alone.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rows::{Cell, ColumnData, DeletionTime, Row, Unfiltered};
use serde_json::Value;
use sstable::txn_log::{Operation, Transaction};
use sstable::{Component, Descriptor, SSTableId, SSTableWriter, Statistics, Version, WriterOptions};
use types::DecoratedKey;

use crate::fixtures::{self, Fixture, run};

/// A copy of a fixture's files in a directory of its own.
pub fn copy(fixture: &Fixture) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    for component in Component::ALL {
        let path = fixture.descriptor.path(component);
        if path.exists() {
            std::fs::copy(&path, directory.path().join(fixture.descriptor.file_name(component))).unwrap();
        }
    }
    let data = directory.path().join(fixture.descriptor.file_name(Component::Data));
    (directory, data)
}

pub fn fixture(table: &str) -> Fixture {
    let mut found = fixtures::all("da");
    found.retain(|fixture| fixture.descriptor.directory.ends_with(format!("{table}/da")));
    found.remove(0)
}

/// Partitions as JSON, without what depends on where they lie.
fn content(path: &Path) -> Vec<Value> {
    let ran = run(&["dump", "-l", "-t", path.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.out.lines().map(|line| without_positions(serde_json::from_str(line).unwrap())).collect()
}

fn without_positions(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .filter(|(name, _)| name != "position")
            .map(|(name, value)| (name, without_positions(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_positions).collect(),
        other => other,
    }
}

fn sstables(directory: &Path) -> Vec<Descriptor> {
    let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let mut found: Vec<_> = names
        .filter_map(|name| match Descriptor::parse(directory, &name.to_string_lossy()) {
            Some((descriptor, Some(Component::Data))) => Some(descriptor),
            _ => None,
        })
        .collect();
    found.sort_by_key(|descriptor| descriptor.id);
    found
}

fn logs(directory: &Path) -> usize {
    let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().ends_with(".log")).count()
}

#[test]
fn an_upgrade_keeps_content_and_statistics() {
    for fixture in fixtures::all("da").iter().filter(|one| !one.descriptor.directory.to_string_lossy().contains("idx"))
    {
        let (directory, data) = copy(fixture);
        let before = content(&data);
        let output = directory.path().join("new");
        let ran = run(&["upgrade", "-a", "--output", output.to_str().unwrap(), data.to_str().unwrap()]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(data.exists());
        let [new] = &sstables(&output)[..] else { panic!("one SSTable") };
        assert!(content(&new.path(Component::Data)) == before, "{:?}", fixture.descriptor);
        let metadata = |path: &Path| {
            let text = run(&["metadata", path.to_str().unwrap()]).out;
            let stable = |line: &&str| {
                ["SSTable: ", "Estimated droppable", "Compression ratio: ", "Bloom Filter FP"]
                    .iter()
                    .all(|name| !line.starts_with(name))
            };
            text.lines().filter(stable).map(str::to_owned).collect::<Vec<_>>()
        };
        let (old, new) = (metadata(&data), metadata(&new.path(Component::Data)));
        // Cassandra's own files say what its sketch and histograms saw before compaction; what is
        // counted anew may differ there
        let same = old.iter().zip(&new).filter(|(old, new)| old == new).count();
        assert!(same + 8 >= old.len(), "{:?}: {old:#?} {new:#?}", fixture.descriptor);
        for name in ["SSTable Level", "Repaired at", "Minimum timestamp", "Maximum timestamp", "totalRows"] {
            let line = |lines: &[String]| lines.iter().find(|line| line.starts_with(name)).cloned();
            assert_eq!(line(&old), line(&new), "{:?}", fixture.descriptor);
        }
    }
}

/// Up and down through every version that is written: the content stays, but for times that nb has
/// no form for.
#[test]
fn versions_go_up_and_down() {
    let mut capped = 0;
    for fixture in fixtures::all("da") {
        let is_index = fixture.descriptor.directory.to_string_lossy().contains("idx");
        if is_index || std::fs::metadata(fixture.data()).unwrap().len() > 60_000 {
            continue;
        }
        let (directory, data) = copy(&fixture);
        let before = content(&data);
        let mut was_capped = false;
        for version in ["nb", "oa", "da"] {
            let ran = run(&["upgrade", "--to", version, directory.path().to_str().unwrap()]);
            assert_eq!(ran.code, 0, "{}", ran.err);
            was_capped |= ran.out.contains("after 2038-01-19 have no form");
            let [new] = &sstables(directory.path())[..] else { panic!("one SSTable") };
            assert_eq!(new.version.name(), version);
            let path = new.path(Component::Data);
            let ran = run(&["verify", "-e", path.to_str().unwrap()]);
            assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
            assert!(was_capped || content(&path) == before, "{:?} {version}", fixture.descriptor);
        }
        capped += usize::from(was_capped);
    }
    assert!((1..6).contains(&capped), "{capped}");
}

#[test]
fn an_upgrade_in_place_replaces_the_source() {
    let (directory, data) = copy(&fixture("dels"));
    let before = content(&data);
    assert_eq!(run(&["upgrade", data.to_str().unwrap()]).out, "da-1-bti: has version da already\n");
    let ran = run(&["upgrade", "-a", directory.path().to_str().unwrap()]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let [new] = &sstables(directory.path())[..] else { panic!("one SSTable") };
    assert_ne!(new.path(Component::Data), data);
    assert_eq!(content(&new.path(Component::Data)), before);
    assert_eq!(logs(directory.path()), 0);
}

/// Writes an SSTable like that of `kv_text` with so many partitions of a kilobyte that does not
/// compress.
fn large(directory: &Path, partitions: u32) -> PathBuf {
    let env = env::real::env();
    let like = fixture("kv_text");
    let statistics = std::fs::read(like.descriptor.path(Component::Statistics)).unwrap();
    let statistics = Statistics::read(&statistics.into(), like.descriptor.version).unwrap();
    let table = Arc::new(statistics.header.table("fx", "kv_text").unwrap());
    let header = statistics.header.resolve(&table).unwrap();
    let options = WriterOptions::for_table(&table, u64::from(partitions)).unwrap();
    let column = table.regulars[0].id;
    let mut keys: Vec<_> =
        (0..partitions).map(|id| DecoratedKey::new(format!("key{id}").into_bytes().into())).collect();
    keys.sort();
    let descriptor = Descriptor::new(directory, Version::DA, SSTableId::Sequence(7));
    let mut writer = SSTableWriter::new(&env, descriptor.clone(), table, options, header).unwrap();
    let mut state = 1u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(33 + (state >> 24) as u8 % 90)
    };
    for key in &keys {
        let value: String = (0..1024).map(|_| noise()).collect();
        let mut row = Row::new(Default::default());
        row.columns.push(ColumnData::Simple(Cell::live(column, 1_700_000_000_000_000, value.into_bytes().into())));
        writer.start_partition(key, DeletionTime::LIVE);
        writer.append(&Unfiltered::Row(row)).unwrap();
        writer.end_partition().unwrap();
    }
    writer.finish().unwrap();
    descriptor.path(Component::Data)
}

#[test]
fn a_split_gives_pieces_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let data = large(directory.path(), 3000);
    let before = content(&data);
    let size = std::fs::metadata(&data).unwrap().len();
    let ran = run(&["split", "-s", "1", data.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let pieces = sstables(directory.path());
    assert_eq!(pieces.len() as u64, size.div_ceil(1 << 20), "{}", ran.out);
    let after: Vec<Value> = pieces.iter().flat_map(|piece| content(&piece.path(Component::Data))).collect();
    assert!(after == before);
    assert_eq!(std::fs::read_dir(directory.path().join("snapshots")).unwrap().count(), 1);
    assert_eq!(logs(directory.path()), 0);
}

/// A table in two data directories, whose SSTables are all named: no two get one name.
#[test]
fn new_names_are_unique_over_the_directories_that_are_named() {
    let root = tempfile::tempdir().unwrap();
    let (_keep, data) = copy(&fixture("dels"));
    let table = "ks/t-00000000000000000000000000000001";
    let places = ["d1", "d2"].map(|name| root.path().join(name).join(table));
    for (place, number) in places.iter().zip(1..) {
        std::fs::create_dir_all(place).unwrap();
        for component in Component::ALL {
            let path = data.parent().unwrap().join(format!("da-1-bti-{}", component.name()));
            if path.exists() {
                std::fs::copy(path, place.join(format!("da-{number}-bti-{}", component.name()))).unwrap();
            }
        }
    }
    let ran = run(&["upgrade", "-a", places[0].to_str().unwrap(), places[1].to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let mut ids: Vec<_> = places.iter().flat_map(|place| sstables(place)).map(|descriptor| descriptor.id).collect();
    ids.sort();
    assert_eq!(ids, [SSTableId::Sequence(3), SSTableId::Sequence(4)]);
}

#[test]
fn a_salvage_says_what_is_lost() {
    let (directory, data) = copy(&fixture("cmp_lz4_4k"));
    let before = content(&data);
    let path = data.to_str().unwrap();
    let ran = run(&["salvage", "--dry-run", path]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(!ran.out.contains("lost:"), "{}", ran.out);
    let mut bytes = std::fs::read(&data).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&data, bytes).unwrap();
    let output = directory.path().join("new");
    let ran = run(&["salvage", "--output", output.to_str().unwrap(), path]);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("checksum"), "{}", ran.out);
    let [new] = &sstables(&output)[..] else { panic!("one SSTable") };
    let after = content(&new.path(Component::Data));
    assert!(after.len() < before.len() && after.len() > before.len() * 9 / 10, "{} of {}", after.len(), before.len());
    // at most those at both ends of the damage are kept in part
    assert!(after.iter().filter(|partition| !before.contains(partition)).count() <= 2);
    let ran = run(&["salvage", "--replace", path]);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(!data.exists());
    assert_eq!(sstables(directory.path()).len(), 1);
    assert_eq!(std::fs::read_dir(directory.path().join("snapshots")).unwrap().count(), 1);
}

/// A repair passes over what counts as repaired: rows that are lost would never come back.
#[test]
fn a_salvage_that_loses_rows_counts_as_not_repaired() {
    for is_damaged in [true, false] {
        let fixture = fixture("cmp_lz4_4k");
        let (directory, data) = copy(&fixture);
        let statistics = directory.path().join(fixture.descriptor.file_name(Component::Statistics));
        let bytes = std::fs::read(&statistics).unwrap();
        let mut read = Statistics::read(&bytes.into(), fixture.descriptor.version).unwrap();
        read.stats.repaired_at = 1_700_000_000_000;
        std::fs::write(&statistics, read.write(fixture.descriptor.version)).unwrap();
        if is_damaged {
            let mut bytes = std::fs::read(&data).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(&data, bytes).unwrap();
        }
        let ran = run(&["salvage", "--replace", data.to_str().unwrap()]);
        assert_eq!(ran.code, u8::from(is_damaged), "{}{}", ran.out, ran.err);
        let [new] = &sstables(directory.path())[..] else { panic!("one SSTable") };
        let bytes = std::fs::read(new.path(Component::Statistics)).unwrap();
        let repaired_at = Statistics::read(&bytes.into(), new.version).unwrap().stats.repaired_at;
        assert_eq!(repaired_at, if is_damaged { 0 } else { 1_700_000_000_000 });
        assert_eq!(run(&["verify", "-e", new.path(Component::Data).to_str().unwrap()]).code, 0);
    }
}

/// Without Statistics.db the schema gives the columns; without that it is refused.
#[test]
fn a_salvage_without_statistics_needs_the_schema() {
    let fixture = fixture("kv_text");
    let (directory, data) = copy(&fixture);
    let before = content(&data);
    std::fs::remove_file(directory.path().join(fixture.descriptor.file_name(Component::Statistics))).unwrap();
    let output = directory.path().join("new");
    let (path, out) = (data.to_str().unwrap(), output.to_str().unwrap());
    let ran = run(&["salvage", "--output", out, path]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("Statistics.db"), "{}", ran.err);
    let schema = fixtures::root().join("kv_text/schema.cql");
    let ran = run(&["salvage", "--output", out, "--schema", schema.to_str().unwrap(), path]);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("2015-09-22"), "{}", ran.out);
    let after = content(&sstables(&output)[0].path(Component::Data));
    let keys = |content: &[Value]| content.iter().map(|one| one["partition"]["key"].clone()).collect::<Vec<_>>();
    assert_eq!(keys(&after), keys(&before));
    assert_eq!(after[0]["rows"][0]["cells"][0]["value"], before[0]["rows"][0]["cells"][0]["value"]);
}

/// The schema lacks a column that the SSTable has: the cells of the column would go with the
/// source.
#[test]
fn a_schema_without_a_column_of_the_sstable_is_refused() {
    let (directory, data) = copy(&fixture("kv_text"));
    let before = content(&data);
    let text = std::fs::read_to_string(fixtures::root().join("kv_text/schema.cql")).unwrap();
    let other = directory.path().join("other.cql");
    std::fs::write(&other, text.replace("    v text", "    w text")).unwrap();
    let (path, schema) = (data.to_str().unwrap(), other.to_str().unwrap());
    for verb in [["upgrade", "-a"], ["salvage", "--replace"]] {
        let ran = run(&[verb[0], verb[1], "--schema", schema, path]);
        assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
        assert!(ran.err.contains("has the column v, which the schema has not"), "{}", ran.err);
    }
    assert_eq!(content(&data), before);
}

#[test]
fn a_running_node_is_left_alone() {
    let (directory, data) = copy(&fixture("dels"));
    let disk = env::real::env().disk;
    let lock = disk.lock_file(&directory.path().join("helenus.lock")).unwrap();
    let path = data.to_str().unwrap();
    for arguments in [vec!["upgrade", "-a", path], vec!["split", path], vec!["salvage", "--replace", path]] {
        let ran = run(&arguments);
        assert_eq!(ran.code, 1, "{arguments:?}");
        assert!(ran.err.contains("a running node holds this data directory"), "{}", ran.err);
    }
    assert_eq!(run(&["dump", "-e", path]).code, 0);
    drop(lock);
    assert_eq!(run(&["upgrade", "-a", path]).code, 0);
}

/// A short way to a table of the running node, and a table of the node that lies on another disk.
#[test]
fn a_running_node_is_seen_behind_a_symbolic_link() {
    let disk = env::real::env().disk;
    let (table, data) = copy(&fixture("dels"));
    let node = tempfile::tempdir().unwrap();
    let link = node.path().join("table");
    std::os::unix::fs::symlink(table.path(), &link).unwrap();
    let through_link = link.join(data.file_name().unwrap());
    let arguments = ["upgrade", "-a", through_link.to_str().unwrap()];
    for locked in [table.path(), node.path()] {
        let path = locked.join("helenus.lock");
        let lock = disk.lock_file(&path).unwrap();
        let ran = run(&arguments);
        assert_eq!(ran.code, 1, "{}", locked.display());
        assert!(ran.err.contains("a running node holds this data directory"), "{}", ran.err);
        drop(lock);
        disk.remove_file(&path).unwrap();
    }
    drop(disk.lock_file(&table.path().join("helenus.lock")).unwrap());
    let ran = run(&arguments);
    assert_eq!(ran.code, 0, "{}", ran.err);
}

/// A node was killed between the commit of a compaction and the removal of its inputs, and
/// `*-Data.db` of a shell names them.
#[test]
fn files_that_do_not_count_are_not_written_anew() {
    let (directory, data) = copy(&fixture("dels"));
    let [old] = &sstables(directory.path())[..] else { panic!("one SSTable") };
    let env = env::real::env();
    let mut compaction =
        Transaction::begin(&env, directory.path(), Operation::Compaction, [7; 16], Version::DA).unwrap();
    compaction.remove_all([old]).unwrap();
    compaction.commit().unwrap();
    drop(compaction);
    let path = data.to_str().unwrap();
    for arguments in [vec!["upgrade", "-a", path], vec!["split", path], vec!["salvage", "--replace", path]] {
        let ran = run(&arguments);
        assert_eq!(ran.code, 1, "{arguments:?}");
        assert!(ran.err.contains("marks it as temporary or obsolete"), "{}", ran.err);
    }
    assert_eq!(sstables(directory.path()).len(), 1);
    assert_eq!(run(&["dump", "-e", path]).code, 0);
}

#[test]
fn metadata_of_a_damaged_sstable_hides_no_other() {
    let (directory, data) = copy(&fixture("dels"));
    for component in ["Data.db", "Statistics.db"] {
        std::fs::write(directory.path().join(format!("da-0-bti-{component}")), b"damaged").unwrap();
    }
    let whole = run(&["metadata", data.to_str().unwrap()]);
    let ran = run(&["metadata", directory.path().to_str().unwrap()]);
    assert_eq!((whole.code, ran.code), (0, 1));
    assert!(ran.err.contains("da-0-bti-Statistics.db"), "{}", ran.err);
    assert_eq!(ran.out, whole.out);
}

#[test]
fn a_list_shows_what_counts() {
    let (directory, _) = copy(&fixture("dels"));
    let path = directory.path().to_str().unwrap();
    let ran = run(&["list", path]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(lines[1].starts_with("id  version  level  bytes") && lines[2].starts_with("1   da       0"), "{}", ran.out);
    assert!(lines[2].ends_with("live"), "{}", ran.out);
    let files = run(&["list", "--txn", "final", path]).out;
    assert!(files.lines().any(|line| line.ends_with("da-1-bti-Data.db")), "{files}");
    assert_eq!(run(&["list", "--txn", "tmp", path]).out, "");
}

#[test]
fn tombstones_are_counted_as_the_dump_shows_them() {
    let found = fixture("dels");
    let ran = run(&["tombstones", "-g", "0", "-n", "3", found.data().to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let dump = run(&["dump", found.data().to_str().unwrap()]).out;
    let dump: serde_json::Value = serde_json::from_str(&dump).unwrap();
    let partitions = dump.as_array().unwrap();
    let deleted = partitions.iter().filter(|one| one["partition"].get("deletion_info").is_some()).count();
    let rows = partitions.iter().flat_map(|one| one["rows"].as_array().unwrap());
    let rows = rows.filter(|row| row["type"] == "row" && row.get("deletion_info").is_some()).count();
    let kinds = ran.out.lines().find(|line| line.starts_with("  kinds")).unwrap();
    for (kind, count) in [("partition", deleted), ("row", rows)] {
        assert!(count == 0 || kinds.contains(&format!("{kind} {count}")), "{kind} {count}: {}", ran.out);
    }
    assert!(deleted + rows > 0 && ran.out.contains("may go") && ran.out.contains("tokens"), "{}", ran.out);
    assert_eq!(
        ran.out.lines().filter(|line| line.starts_with("  partition  ")).count().max(1),
        3.min(partitions.len())
    );
}

#[test]
fn mistakes_are_told_apart() {
    assert_eq!(run(&["dump"]).code, 2);
    assert_eq!(run(&["nonsense"]).code, 2);
    assert_eq!(run(&["upgrade", "--to", "zz", "x"]).code, 2);
    let ran = run(&["dump", "/nonexistent/da-1-bti-Data.db"]);
    assert_eq!((ran.code, ran.err.contains("/nonexistent/da-1-bti-Data.db")), (1, true));
    assert_eq!(run(&["--help"]).code, 0);
}
