//! Backups of a directory that looks as a node's does, in a store that is a directory.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // tests read and write files as any program does

use std::fs;
use std::path::{Path, PathBuf};

use env::Env;

use crate::create::{self, Summary};
use crate::manifest::{Keyspace, Manifest, NodeIdentity};
use crate::restore::PointInTime;
use crate::{NodeTable, listing, log, open, restore, verify};

const HOST: &str = "5f1c6a9e-0000-4000-8000-000000000001";
const OTHER_HOST: &str = "5f1c6a9e-0000-4000-8000-000000000002";
const TABLE: &str = "ks/t-00000000000000000000000000000001";
/// When the snapshots are taken, milliseconds since 1970: [`TAKEN_AT_TEXT`].
const TAKEN_AT: i64 = 1_795_248_662_123;
const TAKEN_AT_TEXT: &str = "2026-11-21T08:11:02.123Z";

struct Bench {
    env: Env,
    directory: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        Self { env: env::real::env(), directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn store(&self) -> Box<dyn crate::Store> {
        open(&self.env, self.path("store").to_str().unwrap()).unwrap()
    }

    /// Puts an SSTable into the snapshot.
    fn put(&self, tag: &str, id: u32, content: &[u8]) {
        let directory = self.snapshot(tag);
        fs::create_dir_all(&directory).unwrap();
        let write = |component: &str, bytes: &[u8]| {
            fs::write(directory.join(format!("da-{id}-bti-{component}")), bytes).unwrap()
        };
        write("Data.db", content);
        write("Digest.crc32", crc32fast::hash(content).to_string().as_bytes());
        write("Statistics.db", b"statistics");
        write("TOC.txt", b"Data.db\n");
        fs::write(directory.join("schema.cql"), "CREATE TABLE ks.t (k int PRIMARY KEY);\n").unwrap();
        self.put_manifest(tag);
    }

    /// Writes the manifest of the snapshot, with the SSTables that are in it.
    fn put_manifest(&self, tag: &str) {
        let directory = self.snapshot(tag);
        let named: Vec<_> = files(&directory).into_iter().map(|(name, _)| name).collect();
        let named: Vec<_> = named.iter().filter(|name| name.ends_with("-Data.db")).collect();
        let text = serde_json::json!({"files": named, "created_at": TAKEN_AT_TEXT}).to_string();
        fs::write(directory.join("manifest.json"), text).unwrap();
    }

    /// Puts members, each with a comma behind it, in front of those of the snapshot's manifest.
    fn add_to_manifest(&self, tag: &str, members: &str) {
        let manifest = self.snapshot(tag).join("manifest.json");
        let text = fs::read_to_string(&manifest).unwrap();
        fs::write(&manifest, text.replacen('{', &format!("{{{members}"), 1)).unwrap();
    }

    fn snapshot(&self, tag: &str) -> PathBuf {
        self.path(&format!("node/data/{TABLE}/snapshots/{tag}"))
    }

    fn create(&self, tag: &str) -> crate::Result<Summary> {
        self.create_of(tag, &[self.path("node")])
    }

    fn create_of(&self, tag: &str, data_directories: &[PathBuf]) -> crate::Result<Summary> {
        let node = NodeIdentity {
            cluster: "test".to_owned(),
            host_id: HOST.to_owned(),
            address: "127.0.0.1".to_owned(),
            data_center: "dc1".to_owned(),
            rack: "rack1".to_owned(),
            tokens: vec![-5, 7],
            version: "0.1.0".to_owned(),
        };
        let keyspaces = vec![Keyspace { name: "ks".to_owned(), replication: vec![] }];
        let table = NodeTable { keyspace: "ks".to_owned(), name: "t".to_owned(), id: format!("{:032}", 1) };
        let request = create::Request {
            tag: tag.to_owned(),
            node,
            ring: vec![HOST.to_owned(), OTHER_HOST.to_owned()],
            keyspaces,
            tables: vec![table],
            data_directories: data_directories.to_vec(),
        };
        create::create(&self.env, &*self.store(), &request, &|_| ())
    }

    /// Restores the backup `two`; up to a time as many milliseconds after its snapshot.
    fn restore(&self, to: &str, after: Option<i64>) -> crate::Result<restore::Summary> {
        self.restore_with(to, after, false)
    }

    fn restore_with(&self, to: &str, after: Option<i64>, accepts_gap: bool) -> crate::Result<restore::Summary> {
        let micros = |after: i64| (TAKEN_AT + after) * 1000;
        let request = restore::Request {
            tag: "two".to_owned(),
            host_id: HOST.to_owned(),
            directory: self.path(to),
            point_in_time: after.map(|after| PointInTime { text: "TIME".to_owned(), micros: micros(after) }),
            accepts_gap,
        };
        restore::restore(&self.env, &*self.store(), &request, &|_| ())
    }

    fn verify(&self, tag: &str) -> verify::VerifyReport {
        verify::verify(&self.env, &*self.store(), tag, &|_| ()).unwrap()
    }
}

fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    found.sort();
    found
}

#[test]
fn a_second_backup_brings_only_what_is_new_and_is_restored_byte_for_byte() {
    let bench = Bench::new();
    let long = vec![7u8; 3 << 20];
    bench.put("one", 1, &long);
    let first = bench.create("one").unwrap();
    assert_eq!((first.files.0, first.uploaded), (4, first.files));
    bench.put("two", 1, &long);
    bench.put("two", 2, b"more");
    let second = bench.create("two").unwrap();
    assert_eq!((second.files.0, second.uploaded.0), (8, 4));
    // an SSTable of the same name with another content is another one
    bench.put("three", 2, b"less");
    assert_eq!(bench.create("three").unwrap().uploaded.0, 2, "Statistics.db and TOC.txt have not changed");

    assert_eq!(listing::list(&*bench.store()).unwrap().backups.len(), 3);
    let absent = vec![OTHER_HOST.to_owned()];
    let wanted =
        verify::VerifyReport { nodes: 1, files: (8, second.files.1), absent, ..verify::VerifyReport::default() };
    assert_eq!(bench.verify("two"), wanted, "the other node of the ring has no part yet");
    assert_eq!(bench.restore("again", None).unwrap().files.0, 8);
    let snapshot = files(&bench.snapshot("two"));
    let wanted: Vec<_> = snapshot.into_iter().filter(|(name, _)| name.starts_with("da-")).collect();
    assert_eq!(files(&bench.path(&format!("again/data/{TABLE}"))), wanted);
    assert!(bench.restore("again", None).unwrap_err().contains("is not empty"));
}

#[test]
fn a_backup_without_its_last_step_is_none_and_is_repeated() {
    let bench = Bench::new();
    bench.put("two", 1, b"rows");
    bench.create("two").unwrap();
    let manifest = bench.path(&format!("store/{}", Manifest::key("two", HOST)));
    fs::remove_file(&manifest).unwrap();
    assert!(bench.restore("again", None).is_err());
    assert!(!bench.path("again/data").exists());
    assert_eq!(bench.create("two").unwrap().uploaded, (0, 0));
    // what an interrupted restore has left is used, unless it is damaged
    let left = bench.path(&format!("again/restoring/{TABLE}"));
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("da-1-bti-Data.db"), b"rowz").unwrap();
    bench.restore("again", None).unwrap();
    assert_eq!(fs::read(bench.path(&format!("again/data/{TABLE}/da-1-bti-Data.db"))).unwrap(), b"rows");
}

#[test]
fn files_that_a_restore_of_another_backup_has_left_do_not_become_live() {
    let bench = Bench::new();
    bench.put("two", 1, b"rows");
    bench.create("two").unwrap();
    let left = bench.path("again/restoring");
    let others = ["ks/u-00000000000000000000000000000002", "ks/t-00000000000000000000000000000001/.i", TABLE];
    for directory in others.map(|directory| left.join(directory)) {
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("da-7-bti-Data.db"), b"of monday").unwrap();
    }
    bench.restore("again", None).unwrap();
    let snapshot: Vec<_> =
        files(&bench.snapshot("two")).into_iter().filter(|(name, _)| name.starts_with("da-")).collect();
    assert_eq!(files(&bench.path(&format!("again/data/{TABLE}"))), snapshot);
    assert_eq!(fs::read_dir(bench.path("again/data/ks")).unwrap().count(), 1);
}

#[test]
fn a_data_directory_is_not_the_directory_of_a_new_node() {
    let bench = Bench::new();
    bench.put("two", 1, b"rows");
    bench.create("two").unwrap();
    let refused = bench.restore("node/data", None).unwrap_err();
    assert!(refused.contains("it holds the keyspace ks"), "{refused}");
}

/// The data would take the place of the link, and lie on the disk that has too little room.
#[test]
fn data_that_lies_elsewhere_is_no_data_of_a_new_node() {
    let bench = Bench::new();
    bench.put("two", 1, b"rows");
    bench.create("two").unwrap();
    let (link, large) = (bench.path("again/data"), bench.path("large"));
    fs::create_dir_all(bench.path("again")).unwrap();
    std::os::unix::fs::symlink(&large, &link).unwrap();
    // the disk may not be mounted yet
    for is_there in [false, true] {
        let refused = bench.restore("again", None).unwrap_err();
        assert!(refused.contains("again/data is a link or a mounted file system"), "{is_there}: {refused}");
        assert!(link.is_symlink() && !bench.path("again/restoring").exists(), "nothing was fetched");
        fs::create_dir_all(&large).unwrap();
    }
    bench.restore("large", None).unwrap();
    // a directory that is there and empty is what the first start of a service leaves
    fs::create_dir_all(bench.path("third/data")).unwrap();
    bench.restore("third", None).unwrap();
}

/// The hints of a node in its old place hold writes that the restore undoes.
#[test]
fn a_directory_with_hints_is_not_the_directory_of_a_new_node() {
    let bench = Bench::new();
    bench.put("two", 1, b"rows");
    bench.create("two").unwrap();
    for name in ["hints", "commitlog", "cdc_raw", "saved_caches"] {
        let directory = bench.path("again").join(name);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("of-tuesday"), b"writes").unwrap();
        let refused = bench.restore("again", None).unwrap_err();
        assert!(refused.contains(&format!("again/{name} is not empty")), "{refused}");
        fs::remove_file(directory.join("of-tuesday")).unwrap();
    }
    // the log of a node that archives and was stopped, on a disk of its own
    fs::create_dir(bench.path("again/commitlog/lost+found")).unwrap();
    fs::write(bench.path("again/commitlog/archived_segments"), b"run 1\n").unwrap();
    bench.restore("again", None).unwrap();
}

#[test]
fn a_snapshot_that_is_not_whole_is_refused() {
    type Change = fn(&Path);
    let changes: [(&str, Change, &str); 4] = [
        ("no manifest", |snapshot| fs::remove_file(snapshot.join("manifest.json")).unwrap(), "has no manifest.json"),
        ("no schema", |snapshot| fs::remove_file(snapshot.join("schema.cql")).unwrap(), "has no schema.cql"),
        ("no SSTable", |snapshot| fs::remove_file(snapshot.join("da-1-bti-Data.db")).unwrap(), "da-1-bti-Data.db"),
        ("nothing", |snapshot| fs::remove_dir_all(snapshot).unwrap(), "ks.t has no snapshot two"),
    ];
    for (name, change, word) in changes {
        let bench = Bench::new();
        bench.put("two", 1, b"rows");
        change(&bench.snapshot("two"));
        let refused = bench.create("two").unwrap_err();
        assert!(refused.contains(word), "{name}: {refused}");
    }
}

#[test]
fn a_table_in_two_data_directories_is_backed_up_from_both_or_not_at_all() {
    let bench = Bench::new();
    bench.put("two", 1, b"rows");
    bench.put("two", 2, b"more rows");
    let (first, second) = (bench.path("node"), bench.path("second"));
    let there = second.join(TABLE).join("snapshots/two");
    fs::create_dir_all(&there).unwrap();
    for (name, content) in files(&bench.snapshot("two")).iter().filter(|(name, _)| name.starts_with("da-2-")) {
        fs::write(there.join(name), content).unwrap();
        fs::remove_file(bench.snapshot("two").join(name)).unwrap();
    }
    assert!(bench.create_of("two", std::slice::from_ref(&first)).unwrap_err().contains("da-2-bti-Data.db"));
    assert!(bench.create_of("two", std::slice::from_ref(&second)).unwrap_err().contains("manifest.json"));
    assert_eq!(bench.create_of("two", &[first, second]).unwrap().files.0, 8);
}

/// A keyspace may be called as the directory of all data is.
#[test]
fn a_data_directory_with_a_keyspace_called_data_is_known() {
    let bench = Bench::new();
    bench.put("two", 1, b"rows");
    let (node, data) = (bench.path("node"), bench.path("node/data"));
    fs::create_dir_all(data.join("data/u-00000000000000000000000000000002")).unwrap();
    for named in [vec![node.clone()], vec![data.clone()], vec![node, data]] {
        assert_eq!(bench.create_of("two", &named).unwrap().files.0, 4, "{named:?}");
    }
}

#[test]
fn two_files_of_one_name_are_refused_before_anything_is_brought() {
    let bench = Bench::new();
    bench.put("two", 2, b"rows");
    let (first, second) = (bench.path("node"), bench.path("second"));
    let there = second.join(TABLE).join("snapshots/two");
    fs::create_dir_all(&there).unwrap();
    for (name, content) in files(&bench.snapshot("two")).iter().filter(|(name, _)| name.starts_with("da-2-")) {
        // another SSTable: none of its files has a key of the first one in the store
        fs::write(there.join(name), [&content[..], b" more"].concat()).unwrap();
    }
    let refused = bench.create_of("two", &[first, second]).unwrap_err();
    assert!(refused.contains("two files of one name") && refused.contains("da-2-bti-"), "{refused}");
    assert!(bench.store().list("nodes").unwrap().is_empty());
    assert!(bench.store().list("manifests").unwrap().is_empty());
}

#[test]
fn a_manifest_that_cannot_be_read_is_not_written_and_does_not_stop_later_backups() {
    let bench = Bench::new();
    bench.put("one", 1, b"rows");
    bench.create("one").unwrap();
    let key = Manifest::key("one", HOST);
    let mut manifest = Manifest::read(&*bench.store(), &key).unwrap();
    let twice = manifest.tables[0].files[0].clone();
    manifest.tables[0].files.push(twice);
    manifest.tag = "bad".to_owned();
    assert!(manifest.write(&*bench.store()).unwrap_err().contains("stands in it twice"));
    assert_eq!(bench.store().list("manifests").unwrap().len(), 1);
    // an earlier version has written one
    fs::write(bench.path("store").join(&key), serde_json::to_vec(&manifest).unwrap()).unwrap();
    bench.put("two", 1, b"rows");
    assert_eq!(bench.create("two").unwrap().uploaded, (0, 0));
    bench.restore("again", None).unwrap();
}

/// A link to itself cannot be read, and is there.
#[test]
fn a_store_that_cannot_be_read_is_not_an_empty_one() {
    let bench = Bench::new();
    assert!(bench.store().list("manifests").unwrap().is_empty(), "there is no store yet");
    let directory = bench.path("store/manifests");
    fs::create_dir(bench.path("store")).unwrap();
    std::os::unix::fs::symlink(&directory, &directory).unwrap();
    let failed = listing::list(&*bench.store()).unwrap_err();
    assert!(failed.contains("store/manifests"), "{failed}");
}

/// A manifest of a later version, or a damaged one, hides no other backup.
#[test]
fn what_can_be_read_is_listed() {
    let bench = Bench::new();
    for tag in ["one", "two"] {
        bench.put(tag, 1, b"rows");
        bench.create(tag).unwrap();
    }
    let path = bench.path(&format!("store/{}", Manifest::key("one", HOST)));
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"format\": 1", "\"format\": 2")).unwrap();
    let listing = listing::list(&*bench.store()).unwrap();
    assert_eq!(listing.backups.iter().map(|backup| backup.tag.as_str()).collect::<Vec<_>>(), ["two"]);
    assert!(listing.unread.len() == 1 && listing.unread[0].contains("it has the form 2"), "{:?}", listing.unread);
}

#[test]
fn a_later_backup_changes_no_file_of_an_earlier_one() {
    let bench = Bench::new();
    let attached = |tag: &str| bench.snapshot(tag).join("da-1-bti-Attached+i+Terms.db");
    bench.put("two", 1, b"rows");
    fs::write(attached("two"), b"terms").unwrap();
    assert_eq!(bench.create("two").unwrap().files.0, 4, "an attached index is built by the node");
    // the index was defined anew, and the table of contents changed
    bench.put("three", 1, b"rows");
    fs::write(attached("three"), b"other terms").unwrap();
    fs::write(bench.snapshot("three").join("da-1-bti-TOC.txt"), b"Data.db\nAttached+i+Terms.db\n").unwrap();
    assert_eq!(bench.create("three").unwrap().uploaded.0, 1);
    assert_eq!((bench.verify("two").wrong, bench.verify("three").wrong), (0, 0));
    // an object of another size is not replaced
    let data = bench.store().list("nodes").unwrap().into_iter().find(|object| object.key.contains("Data.db")).unwrap();
    fs::write(bench.path("store").join(&data.key), b"longer rows").unwrap();
    bench.put("four", 1, b"rows");
    assert!(bench.create("four").unwrap_err().contains("earlier backups may need it"));
}

#[test]
fn one_backup_of_a_node_is_made_at_a_time() {
    let bench = Bench::new();
    bench.put("two", 1, b"rows");
    let store = bench.store();
    let first = store.hold(&format!("nodes/{HOST}")).unwrap();
    assert!(first.is_some());
    assert!(bench.create("two").unwrap_err().contains("is under way already"));
    assert!(store.list("nodes").unwrap().is_empty(), "nothing was uploaded, and a lock is no object");
    drop(first);
    assert_eq!(bench.create("two").unwrap().files.0, 4);
}

#[test]
fn damage_is_found_and_never_restored() {
    let bench = Bench::new();
    bench.put("two", 1, b"rows of a table");
    bench.create("two").unwrap();
    let objects = bench.store().list("nodes").unwrap();
    let data = objects.iter().find(|object| object.key.contains("Data.db")).unwrap();
    let path = bench.path("store").join(&data.key);
    for (changed, word) in [(b"rows of 2 table".to_vec(), "damaged"), (b"rows".to_vec(), "instead of")] {
        fs::write(&path, changed).unwrap();
        let found = bench.verify("two");
        assert!(found.wrong == 1 && found.told[0].contains(word), "{found:?}");
        assert!(bench.restore("again", None).unwrap_err().contains(word));
        assert!(!bench.path("again/data").exists());
    }
    fs::remove_file(&path).unwrap();
    let found = bench.verify("two");
    assert!((found.wrong, found.unread) == (1, 0) && found.told[0].ends_with("is missing"), "{found:?}");
    // a link to itself can be neither opened nor measured
    std::os::unix::fs::symlink(&path, &path).unwrap();
    let found = bench.verify("two");
    assert_eq!((found.wrong, found.unread), (0, 1), "{found:?}");
}

/// The manifest of one node cannot be read: the files of the others are verified.
#[test]
fn a_manifest_that_cannot_be_read_is_told_of_by_verify() {
    let bench = Bench::new();
    bench.put("two", 1, b"rows");
    bench.create("two").unwrap();
    fs::write(bench.path(&format!("store/{}", Manifest::key("two", OTHER_HOST))), b"{").unwrap();
    let data = bench.store().list("nodes").unwrap().into_iter().find(|object| object.key.contains("Data.db")).unwrap();
    fs::write(bench.path("store").join(&data.key), b"rowz").unwrap();
    let found = bench.verify("two");
    assert_eq!((found.nodes, found.files.0, found.wrong, found.unread), (1, 4, 1, 1), "{found:?}");
    assert!(found.told.iter().any(|told| told.contains(OTHER_HOST)) && found.absent.is_empty(), "{found:?}");
}

#[test]
fn segments_are_brought_once_and_restored_up_to_a_time() {
    let bench = Bench::new();
    bench.put("two", 1, b"rows");
    bench.create("two").unwrap();
    assert!(bench.restore("early", Some(0)).unwrap_err().contains("no segment"));
    assert!(!bench.path("early").exists(), "nothing was fetched");
    let refused = bench.restore("early", Some(-1)).unwrap_err();
    assert!(refused.contains(TAKEN_AT_TEXT) && refused.contains("use an earlier one"), "{refused}");
    // a segment of another node that an interrupted restore has left
    fs::create_dir_all(bench.path("again/commitlog-restored")).unwrap();
    fs::write(bench.path("again/commitlog-restored/CommitLog-8-1600000000000.log"), b"others").unwrap();
    let segment = bench.path("CommitLog-8-1700000000000.log");
    fs::write(&segment, b"records").unwrap();
    for _ in 0..2 {
        log::upload(&bench.env, &*bench.store(), HOST, &segment).unwrap();
    }
    let (count, properties) = bench.restore("again", Some(0)).unwrap().log.unwrap();
    assert_eq!(count, 1);
    let text = fs::read_to_string(properties).unwrap();
    assert!(text.ends_with("restore_point_in_time=TIME\n"), "{text}");
    assert_eq!(
        files(&bench.path("again/commitlog-restored")),
        [("CommitLog-8-1700000000000.log".to_owned(), b"records".to_vec())]
    );
}

/// Ids of segments are told as milliseconds after the backup.
#[test]
fn an_archive_that_began_after_the_backup_is_refused() {
    let cases: [(Option<i64>, &[i64], bool); 8] = [
        // the segment that was written while the backup was taken is there
        (Some(-50), &[-50, -49], false),
        // nothing later is there, so that nothing is lacking before it
        (Some(-50), &[-900], false),
        // archiving began while this process of the node ran on, or with the next one
        (Some(-50), &[-40], true),
        (Some(-50), &[-900, -40], true),
        (Some(-50), &[30], true),
        // an earlier version has not noted the segment
        (None, &[-900, 30], false),
        (None, &[-40], false),
        (None, &[30], true),
    ];
    for (noted, archived, has_gap) in cases {
        let bench = Bench::new();
        bench.put("two", 1, b"rows");
        if let Some(noted) = noted {
            bench.add_to_manifest("two", &format!("\"commitlog_segment\":{},", TAKEN_AT + noted));
        }
        bench.create("two").unwrap();
        for id in archived {
            let path = bench.path(&format!("CommitLog-8-{}.log", TAKEN_AT + id));
            fs::write(&path, b"records").unwrap();
            log::upload(&bench.env, &*bench.store(), HOST, &path).unwrap();
        }
        let restored = bench.restore("again", Some(2000));
        assert_eq!(restored.is_err(), has_gap, "{noted:?} {archived:?}");
        let refused = match restored {
            Ok(done) => {
                // an archive of nothing that the backup lacks is told of
                let nothing_from = noted.filter(|noted| archived.iter().all(|id| id < noted));
                assert_eq!(done.nothing_from, nothing_from.map(|noted| (TAKEN_AT + noted).cast_unsigned()));
                continue;
            }
            Err(refused) => refused,
        };
        assert!(refused.contains("does not reach back to backup two"), "{refused}");
        assert!(!bench.path("again").exists(), "nothing was fetched");
        bench.restore("at-the-backup", Some(877)).unwrap();
        assert!(bench.restore_with("again", Some(2000), true).unwrap().log.is_some());
    }
}

#[test]
fn an_archive_that_lacks_a_segment_in_the_middle_is_refused() {
    let bench = Bench::new();
    bench.put("two", 1, b"rows");
    bench.add_to_manifest("two", &format!("\"commitlog_segment\":{TAKEN_AT},"));
    bench.create("two").unwrap();
    fs::create_dir(bench.path("log")).unwrap();
    let noted = format!("run {TAKEN_AT}\nof a later version\narchived CommitLog-8-{TAKEN_AT}.log\n");
    fs::write(bench.path("log/archived_segments"), noted).unwrap();
    let upload = |id: i64| {
        let path = bench.path(&format!("log/CommitLog-8-{id}.log"));
        fs::write(&path, b"records").unwrap();
        log::upload(&bench.env, &*bench.store(), HOST, &path).unwrap();
    };
    upload(TAKEN_AT);
    upload(TAKEN_AT + 2);
    let refused = bench.restore("again", Some(2000)).unwrap_err();
    assert!(refused.contains(&format!("lacks segments between {TAKEN_AT} and {}", TAKEN_AT + 2)), "{refused}");
    assert!(!bench.path("again").exists(), "nothing was fetched");
    assert!(bench.restore_with("without", Some(2000), true).unwrap().log.is_some());
    upload(TAKEN_AT + 1);
    assert_eq!(bench.restore("again", Some(2000)).unwrap().log.unwrap().0, 3);
}

/// An archive may have the segments of years. Those that the backup has as a whole are neither
/// fetched nor replayed.
#[test]
fn segments_from_before_the_backup_are_not_fetched() {
    for (noted, fetched) in [("", 3), ("\"commitlog_from\":1700000000002,", 2)] {
        let bench = Bench::new();
        bench.put("two", 1, b"rows");
        bench.add_to_manifest("two", noted);
        bench.create("two").unwrap();
        for id in 1..4 {
            let path = bench.path(&format!("CommitLog-8-170000000000{id}.log"));
            fs::write(&path, b"records").unwrap();
            log::upload(&bench.env, &*bench.store(), HOST, &path).unwrap();
        }
        assert_eq!(bench.restore("again", Some(0)).unwrap().log.unwrap().0, fetched, "{noted}");
        assert_eq!(files(&bench.path("again/commitlog-restored")).len(), fetched, "{noted}");
    }
}

/// The directory of the node may be that of cassandra.yaml, too.
#[test]
fn the_archiving_file_of_the_operator_stays_and_that_of_an_earlier_restore_goes() {
    let bench = Bench::new();
    bench.put("two", 1, b"rows");
    bench.create("two").unwrap();
    let segment = bench.path("CommitLog-8-1700000000000.log");
    fs::write(&segment, b"records").unwrap();
    log::upload(&bench.env, &*bench.store(), HOST, &segment).unwrap();
    let (to, file) = ("again", bench.path("again/commitlog_archiving.properties"));
    fs::create_dir(bench.path(to)).unwrap();
    fs::write(&file, "archive_command=/usr/bin/mine\n").unwrap();
    let refused = bench.restore(to, Some(0)).unwrap_err();
    assert!(refused.contains("commitlog_archiving.properties is there"), "{refused}");
    bench.restore(to, None).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "archive_command=/usr/bin/mine\n");
    fs::remove_file(&file).unwrap();
    let mut ours = String::new();
    for (after, is_there) in [(Some(0), true), (None, false)] {
        fs::remove_dir_all(bench.path("again/data")).unwrap();
        bench.restore(to, after).unwrap();
        assert_eq!(file.exists(), is_there);
        ours.push_str(&fs::read_to_string(&file).unwrap_or_default());
    }
    // files that the operator has made from ours
    for edited in [
        format!("{ours}archive_command=/usr/bin/mine\n"),
        format!("# mine\n{ours}"),
        ours.replace("/commitlog-restored\n", "/archive\n"),
        ours.replace("/bin/cp", "/usr/bin/cp"),
    ] {
        fs::remove_dir_all(bench.path("again/data")).unwrap();
        fs::write(&file, &edited).unwrap();
        assert!(bench.restore(to, Some(0)).is_err(), "{edited}");
        bench.restore(to, None).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), edited);
    }
}

/// `restore_directories` is a list: a start would look into two other directories, and replay
/// nothing.
#[test]
fn a_directory_that_the_archiving_file_cannot_name_is_refused() {
    let bench = Bench::new();
    bench.put("two", 1, b"rows");
    bench.create("two").unwrap();
    let segment = bench.path("CommitLog-8-1700000000000.log");
    fs::write(&segment, b"records").unwrap();
    log::upload(&bench.env, &*bench.store(), HOST, &segment).unwrap();
    for to in ["a,b", "a\\b", "a\nb"] {
        let refused = bench.restore(to, Some(0)).unwrap_err();
        assert!(refused.contains("without comma"), "{refused}");
        assert!(!bench.path(to).exists(), "nothing was fetched");
        bench.restore(to, None).unwrap();
    }
}

/// The restored node runs on with its host id. A later restore, to a time after the first one, is
/// told what the first one undid; a restore to a time before it knows nothing of it.
#[test]
fn the_writes_that_a_restore_undid_are_told_to_the_next_restore() {
    let bench = Bench::new();
    bench.put("two", 1, b"rows");
    bench.create("two").unwrap();
    let upload = |directory: &str, segment: i64| {
        let path = bench.path(directory).join(format!("CommitLog-8-{segment}.log"));
        fs::create_dir_all(bench.path(directory)).unwrap();
        fs::write(&path, b"records").unwrap();
        log::upload(&bench.env, &*bench.store(), HOST, &path).unwrap();
    };
    upload("log", TAKEN_AT);
    let (point, started) = ((TAKEN_AT + 10) * 1000, TAKEN_AT + 30);
    fs::create_dir_all(bench.path("log-restored")).unwrap();
    fs::write(bench.path("log-restored/restored_to_point_in_time"), format!("{point} {started}\n")).unwrap();
    upload("log-restored", started);
    upload("log-restored", started + 1);
    for (after, told) in [(20, String::new()), (40, format!("restore_undone={point},{started}\n"))] {
        let (count, properties) = bench.restore(&format!("again-{after}"), Some(after)).unwrap().log.unwrap();
        assert_eq!(count, 3);
        let text = fs::read_to_string(properties).unwrap();
        let rest = text.split_once("restore_directories=").and_then(|(_, rest)| rest.split_once('\n'));
        assert_eq!(rest.unwrap().1, format!("{told}restore_point_in_time=TIME\n"));
    }
    fs::write(bench.path("log-restored/restored_to_point_in_time"), "yesterday").unwrap();
    let segment = bench.path("log-restored").join(format!("CommitLog-8-{started}.log"));
    assert!(log::upload(&bench.env, &*bench.store(), HOST, &segment).unwrap_err().contains("no point in time"));
}

#[test]
fn a_manifest_is_not_trusted() {
    let bench = Bench::new();
    bench.put("two", 1, b"rows");
    bench.create("two").unwrap();
    let path = bench.path(&format!("store/{}", Manifest::key("two", HOST)));
    let good = fs::read_to_string(&path).unwrap();
    for (from, to) in [
        ("\"da-1-bti-Data.db\"", "\"../../da-1-bti-Data.db\""),
        ("\"keyspace\": \"ks\"", "\"keyspace\": \"../ks\""),
        ("nodes/", "../nodes/"),
        ("\"format\": 1", "\"format\": 2"),
        ("\"da-1-bti-Digest.crc32\"", "\"da-1-bti-Data.db\""),
    ] {
        assert!(good.contains(from), "{from}");
        fs::write(&path, good.replace(from, to)).unwrap();
        assert!(bench.restore("again", None).is_err(), "{to}");
    }
    for end in (0..good.len()).step_by(97) {
        assert!(Manifest::decode(&good.as_bytes()[..end]).is_err());
    }
}
