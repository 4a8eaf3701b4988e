//! Directories as people have them, on a real disk: empty files with the right names are enough to
//! be told apart.

#![allow(clippy::disallowed_methods)]

use std::path::Path;

use super::*;

const ID: &str = "54b6634c2fb55635b88086461e077c63";

fn make(root: &Path, files: &[&str]) {
    for file in files {
        let path = root.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = "CREATE TABLE ks.t (k int PRIMARY KEY, v text);";
        std::fs::write(&path, if file.ends_with(".cql") { text } else { "" }).unwrap();
    }
}

fn recognised(dir: &Path, sets: &[&str], read_only: bool) -> Result<Directories, String> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let config = Config::load(None, &sets, false).unwrap();
    locate(&env::real::env(), &DirectoryOptions { data_dir: dir, schema_file: None, read_only }, &config)
}

#[test]
fn directories_of_nodes() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let new = recognised(&root.join("new"), &[], false).unwrap();
    assert_eq!((new.data, new.commitlog), (vec![root.join("new/data")], root.join("new/commitlog")));
    let system = format!("data/system_schema/tables-{ID}/nb-1-big-Data.db");
    make(root, &[&system, "commitlog/CommitLog-7-1.log", "hints/x"]);
    let parent = recognised(root, &[], false).unwrap();
    assert_eq!((parent.data, parent.commitlog), (vec![root.join("data")], root.join("commitlog")));
    let data = recognised(&root.join("data"), &[], false).unwrap();
    assert_eq!((data.data, data.commitlog), (vec![root.join("data")], root.join("commitlog")));
    let named = recognised(root, &["data_file_directories=[data, more]", "commitlog_directory=/log"], false).unwrap();
    assert_eq!(named.data, [root.join("data"), root.join("more")]);
    assert_eq!(named.commitlog, Path::new("/log"));
    let missing = recognised(&root.join("new"), &[], true).unwrap_err();
    assert!(missing.contains("no such directory"), "{missing}");
}

#[test]
fn folders_of_tables() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let table = format!("a/ks/t-{ID}");
    let data = format!("{table}/snapshots/s1/nb-1-big-Data.db");
    let schema = format!("{table}/snapshots/s1/schema.cql");
    make(root, &[&data, &schema]);
    let refused = recognised(&root.join("a"), &[], false).unwrap_err();
    assert!(refused.contains("--read-only"), "{refused}");
    let place = |found: &Directories| {
        let (id, places) = found.places.iter().next().unwrap();
        (id.to_hex(), places.clone())
    };
    let expected = (ID.to_owned(), vec![root.join(&table).join("snapshots/s1")]);
    for dir in ["a".to_owned(), format!("{table}/snapshots/s1"), table.clone()] {
        let found = recognised(&root.join(dir), &[], true).unwrap();
        assert_eq!(place(&found), expected);
    }
    make(root, &[&data.replace("s1", "s2")]);
    let several = recognised(&root.join("a"), &[], true).unwrap_err();
    assert!(several.contains("s1, s2"), "{several}");
    // the same snapshot of two nodes, and a copy without ids
    make(root, &[&data.replace("a/ks", "both/n1/ks"), &data.replace("a/ks", "both/n2/ks"), "both/schema.cql"]);
    assert_eq!(place(&recognised(&root.join("both"), &[], true).unwrap()).1.len(), 2);
    make(root, &["copy/ks/t/da-1-bti-Data.db", "copy/ks/t/schema.cql"]);
    assert_eq!(place(&recognised(&root.join("copy"), &[], true).unwrap()).1, [root.join("copy/ks/t")]);
    // without a schema nothing can be read
    make(root, &["bare/ks/t/da-1-bti-Data.db"]);
    assert!(recognised(&root.join("bare"), &[], true).unwrap_err().contains("--schema"));
}

#[test]
fn folders_that_became_a_node_keep_their_log_within() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let commitlog = |dir: &str| recognised(&root.join(dir), &[], false).unwrap().commitlog;
    let table = format!("d/ks/t-{ID}/da-1-bti-Data.db");
    make(root, &[&table, "d/schema.cql"]);
    assert_eq!(commitlog("d"), root.join("d/commitlog"));
    // of the first start, and of its first flush
    make(root, &["d/helenus.lock", "d/commitlog/CommitLog-8-1.log", "d/saved_caches/x"]);
    make(root, &[&format!("d/system_schema/tables-{ID}/da-1-bti-Data.db"), "commitlog/CommitLog-8-7.log"]);
    assert_eq!(commitlog("d"), root.join("d/commitlog"));
    std::fs::remove_file(root.join("d/commitlog/CommitLog-8-1.log")).unwrap();
    assert_eq!(commitlog("d"), root.join("d/commitlog"));
    // a keyspace of that name
    let table = format!("data/commitlog/t-{ID}/da-1-bti-Data.db");
    make(root, &[&table, "data/helenus.lock", &format!("data/system_schema/tables-{ID}/da-1-bti-Data.db")]);
    assert_eq!(commitlog("data"), root.join("commitlog"));
}

#[test]
fn a_node_whose_log_lies_elsewhere_is_one_again() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    make(root, &["data/helenus.lock", &format!("data/ks/t-{ID}/da-1-bti-Data.db")]);
    let again = recognised(root, &["commitlog_directory=/log"], false).unwrap();
    assert_eq!((again.data, again.commitlog), (vec![root.join("data")], PathBuf::from("/log")));
}

#[test]
fn paths_are_absolute() {
    let none: &[&str] = &[];
    for sets in [none, &["data_file_directories=[a, b]", "commitlog_directory=c"]] {
        let found = recognised(Path::new("no-such-node"), sets, false).unwrap();
        assert!(found.commitlog.is_absolute() && found.data.iter().all(|data| data.is_absolute()), "{found:?}");
    }
}

#[test]
fn directories_beside_the_log_are_relative_to_that_of_the_node() {
    let places = |sets: &[&str]| {
        let AuxiliaryDirectories { hints, saved_caches, cdc_raw } =
            recognised(Path::new("/node"), sets, false).unwrap().auxiliary;
        [hints, saved_caches, cdc_raw].map(|place| place.display().to_string())
    };
    assert_eq!(places(&["commitlog_directory=/log/c"]), ["/log/hints", "/log/saved_caches", "/log/cdc_raw"]);
    let named =
        ["cdc_enabled=true", "hints_directory=h", "saved_caches_directory=caches/s", "cdc_raw_directory=changes"];
    assert_eq!(places(&named), ["/node/h", "/node/caches/s", "/node/changes"]);
}

#[test]
fn one_directory_for_two_purposes_is_refused() {
    for (sets, refused) in [
        ("commitlog_directory=data", "commitlog_directory must not be the same as any data_file_directories"),
        ("hints_directory=data", "hints_directory must not be the same as any data_file_directories"),
        ("saved_caches_directory=./data/", "saved_caches_directory must not be the same as any data_file_directories"),
        ("saved_caches_directory=commitlog", "saved_caches_directory must not be the same as the commitlog_directory"),
        ("hints_directory=/node/commitlog", "hints_directory must not be the same as the commitlog_directory"),
        ("hints_directory=saved_caches", "saved_caches_directory must not be the same as the hints_directory"),
        (
            "local_system_data_file_directory=hints",
            "local_system_data_file_directory must not be the same as the hints_directory",
        ),
        // a restore makes these one
        ("local_system_data_file_directory=data", ""),
        ("hints_directory=commitlog/hints", ""),
    ] {
        let why = recognised(Path::new("/node"), &[sets], false).err().unwrap_or_default();
        assert_eq!(why.split(": both are").next(), Some(refused), "{sets}");
    }
}
