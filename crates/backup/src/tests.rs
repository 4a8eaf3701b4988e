//! Backups of a directory that looks as a node's does, in a store that is a directory.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // tests read and write files as any program does

use std::fs;
use std::path::{Path, PathBuf};

use env::Env;

use crate::create::{self, Done};
use crate::manifest::{Keyspace, Manifest, NodeIdentity};
use crate::{listing, log, open, restore, verify};

const HOST: &str = "5f1c6a9e-0000-4000-8000-000000000001";
const TABLE: &str = "ks/t-00000000000000000000000000000001";

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
        let directory = self.path(&format!("node/data/{TABLE}/snapshots/{tag}"));
        fs::create_dir_all(&directory).unwrap();
        let write = |component: &str, bytes: &[u8]| {
            fs::write(directory.join(format!("da-{id}-bti-{component}")), bytes).unwrap()
        };
        write("Data.db", content);
        write("Digest.crc32", crc32fast::hash(content).to_string().as_bytes());
        write("Statistics.db", b"statistics");
        write("TOC.txt", b"Data.db\n");
        fs::write(directory.join("schema.cql"), "CREATE TABLE ks.t (k int PRIMARY KEY);\n").unwrap();
    }

    fn create(&self, tag: &str) -> crate::Result<Done> {
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
        let data_directories = vec![self.path("node")];
        let request = create::Request { tag: tag.to_owned(), node, keyspaces, data_directories };
        create::create(&self.env, &*self.store(), &request, &|_| ())
    }

    fn restore(&self, to: &str, point_in_time: Option<&str>) -> crate::Result<restore::Done> {
        let request = restore::Request {
            tag: "two".to_owned(),
            host_id: HOST.to_owned(),
            directory: self.path(to),
            point_in_time: point_in_time.map(str::to_owned),
        };
        restore::restore(&self.env, &*self.store(), &request, &|_| ())
    }

    fn verify(&self, tag: &str) -> verify::Found {
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
    assert_eq!((first.files.0, first.brought), (4, first.files));
    bench.put("two", 1, &long);
    bench.put("two", 2, b"more");
    let second = bench.create("two").unwrap();
    assert_eq!((second.files.0, second.brought.0), (8, 4));
    // an SSTable of the same name with another content is another one
    bench.put("three", 2, b"less");
    assert_eq!(bench.create("three").unwrap().brought.0, 3, "Statistics.db has not changed");

    let (listed, _) = listing::list(&*bench.store()).unwrap();
    assert_eq!(listed.len(), 3);
    assert_eq!(bench.verify("two"), verify::Found { nodes: 1, files: (8, second.files.1), ..verify::Found::default() });
    assert_eq!(bench.restore("again", None).unwrap().files.0, 8);
    let snapshot = files(&bench.path(&format!("node/data/{TABLE}/snapshots/two")));
    let wanted: Vec<_> = snapshot.into_iter().filter(|(name, _)| name != "schema.cql").collect();
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
    assert_eq!(bench.create("two").unwrap().brought, (0, 0));
    // what an interrupted restore has left is used, unless it is damaged
    let left = bench.path(&format!("again/restoring/{TABLE}"));
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("da-1-bti-Data.db"), b"rowz").unwrap();
    bench.restore("again", None).unwrap();
    assert_eq!(fs::read(bench.path(&format!("again/data/{TABLE}/da-1-bti-Data.db"))).unwrap(), b"rows");
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
    // a directory is opened, and no byte is read of it
    fs::create_dir(&path).unwrap();
    let found = bench.verify("two");
    assert_eq!((found.wrong, found.unread), (0, 1), "{found:?}");
}

#[test]
fn segments_are_brought_once_and_restored_up_to_a_time() {
    let bench = Bench::new();
    bench.put("two", 1, b"rows");
    bench.create("two").unwrap();
    assert!(bench.restore("early", Some("2026:11:23 20:00:00")).unwrap_err().contains("no segment"));
    let segment = bench.path("CommitLog-8-1700000000000.log");
    fs::write(&segment, b"records").unwrap();
    for _ in 0..2 {
        log::bring(&bench.env, &*bench.store(), HOST, &segment).unwrap();
    }
    let (count, properties) = bench.restore("again", Some("2026:11:23 20:00:00")).unwrap().log.unwrap();
    assert_eq!(count, 1);
    let text = fs::read_to_string(properties).unwrap();
    assert!(text.ends_with("restore_point_in_time=2026:11:23 20:00:00\n"), "{text}");
    assert_eq!(
        files(&bench.path("again/commitlog-restored")),
        [("CommitLog-8-1700000000000.log".to_owned(), b"records".to_vec())]
    );
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
    ] {
        assert!(good.contains(from), "{from}");
        fs::write(&path, good.replace(from, to)).unwrap();
        assert!(bench.restore("again", None).is_err(), "{to}");
    }
    for end in (0..good.len()).step_by(97) {
        assert!(Manifest::decode(&good.as_bytes()[..end]).is_err());
    }
}
