//! The files of a node's snapshot, found in its data directories.
//!
//! Only a complete snapshot is taken. For each table that the node has there must be a
//! manifest.json, which is written last and names the SSTables, all of these SSTables, and a
//! schema.cql, which Cassandra writes for tables of users alone. Otherwise a snapshot that was
//! interrupted, or a data directory that was not named, would give a backup without some of the
//! rows. Refused, too, are two files of one name in two data directories: a table has one
//! directory in a backup.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use env::Env;
use serde::Deserialize;
use sstable::attached::is_component as is_attached_component;
use sstable::{Component, Descriptor, STATISTICS_SIZE_MAX};

use crate::Result;
use schema::system::is_system_keyspace;

use crate::manifest::check_name;

/// Name of the directory of snapshots in that of a table.
const SNAPSHOTS: &str = "snapshots";
/// Name of the file with the statements of a snapshot's table.
const SCHEMA: &str = "schema.cql";
/// Name of the file with the SSTables of a snapshot and the time when it was taken.
const MANIFEST: &str = "manifest.json";
/// The keyspace of tables that describe the node. They hold no rows of users and no schema.
const NODE_KEYSPACE: &str = "system";
/// Most bytes of a schema.cql, a manifest.json, or another small file.
const SMALL_MAX: u64 = 16 << 20;

/// A table that the node has.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NodeTable {
    /// The keyspace.
    pub keyspace: String,
    /// The table.
    pub name: String,
    /// The id: 32 hexadecimal digits, as in the directory's name.
    pub id: String,
}

/// A file of a snapshot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File {
    /// The name as in [`crate::manifest::Entry::name`].
    pub name: String,
    /// The path of the file.
    pub path: PathBuf,
    /// Size of the file, bytes.
    pub size: u64,
    /// Eight hexadecimal digits that tell apart SSTables that had the same name one after the
    /// other, and the states of a component that was changed in place.
    pub stamp: String,
}

/// A table of a snapshot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableFiles {
    /// The table.
    pub table: NodeTable,
    /// The text of schema.cql; empty: the table is built in.
    pub schema: String,
    /// When the snapshot was taken, milliseconds since 1970; None: its manifest does not say.
    pub taken_at: Option<i64>,
    /// The first segment of the commit log with writes that are not in the snapshot; None: its
    /// manifest does not say.
    pub log_segment: Option<u64>,
    /// No segment before this one has writes, of any table, that are not in the snapshots of the
    /// time when this one was taken; None: its manifest does not say.
    pub log_from: Option<u64>,
    /// The files of its SSTables.
    pub files: Vec<File>,
}

/// Refuses data directories that are not there, as a slip names them.
pub fn check_directories(env: &Env, data_directories: &[PathBuf]) -> Result<()> {
    match data_directories.iter().find(|directory| !env.disk.exists(directory)) {
        Some(missing) => Err(format!("there is no directory {}", missing.display())),
        None => Ok(()),
    }
}

/// The snapshots of this name of all tables of a node. Err: one is missing or not whole.
pub fn tables(env: &Env, data_directories: &[PathBuf], tag: &str, of_node: &[NodeTable]) -> Result<Vec<TableFiles>> {
    check_directories(env, data_directories)?;
    let roots = roots_of(env, data_directories);
    let mut of_node = of_node.to_vec();
    of_node.sort();
    of_node.into_iter().map(|table| of_table(env, &roots, tag, table)).collect()
}

/// When the last of the snapshots was taken; those of tables that describe the node do not count.
/// The backup holds no later write.
pub fn taken_at(tables: &[TableFiles]) -> Option<i64> {
    counted(tables).filter_map(|files| files.taken_at).max()
}

/// The first segment of the commit log with writes that are not in one of the snapshots, as for
/// [`taken_at`].
pub fn log_segment(tables: &[TableFiles]) -> Option<u64> {
    counted(tables).filter_map(|files| files.log_segment).min()
}

/// The first segment of the commit log that a restore replays: those before have no writes that
/// are not in the snapshots, tables that describe the node among them. None: the manifest of a
/// snapshot does not say.
pub fn log_from(tables: &[TableFiles]) -> Option<u64> {
    let all: Option<Vec<u64>> = tables.iter().map(|files| files.log_from).collect();
    all?.into_iter().min()
}

fn counted(tables: &[TableFiles]) -> impl Iterator<Item = &TableFiles> {
    tables.iter().filter(|files| files.table.keyspace != NODE_KEYSPACE)
}

/// The manifest.json of a snapshot, of Helenus or of Cassandra.
#[derive(Deserialize)]
struct SnapshotManifest {
    /// Names of the Data.db files; those of indexes with the index's directory in front.
    files: Vec<String>,
    /// When the snapshot was taken, as ISO 8601; None: Cassandra before 4.1 wrote the manifest.
    created_at: Option<String>,
    /// The first segment of the commit log with writes that are not in the snapshot (an earlier
    /// version: that which was written then); None: Cassandra, or a version before, wrote the
    /// manifest.
    commitlog_segment: Option<u64>,
    /// No segment before this one has writes, of any table, that are not in the snapshots of that
    /// time; None: as for `commitlog_segment`.
    commitlog_from: Option<u64>,
}

/// The snapshot of a table, of all data directories together.
fn of_table(env: &Env, roots: &[PathBuf], tag: &str, table: NodeTable) -> Result<TableFiles> {
    let directory = format!("{}-{}", table.name, table.id);
    check_name(&table.keyspace)?;
    check_name(&directory)?;
    let shown = format!("{}.{}", table.keyspace, table.name);
    let (mut files, mut manifests, mut schema) = (Vec::new(), Vec::new(), None);
    let mut is_there = false;
    for root in roots {
        let snapshot = root.join(&table.keyspace).join(&directory).join(SNAPSHOTS).join(tag);
        if !env.disk.exists(&snapshot) {
            continue;
        }
        is_there = true;
        files.extend(files_of(env, &snapshot)?);
        manifests.extend(small_file(env, &snapshot.join(MANIFEST))?);
        schema = schema.or(small_file(env, &snapshot.join(SCHEMA))?);
    }
    if !is_there {
        return Err(format!(
            "{shown} has no snapshot {tag} in {}: name every data directory of the node",
            roots.iter().map(|root| root.display().to_string()).collect::<Vec<_>>().join(", ")
        ));
    }
    let lacking = |what: &str| {
        format!(
            "the snapshot {tag} of {shown} has no {what}: name every data directory of the node, or, if all were \
             named, clear the snapshot (nodetool clearsnapshot -t {tag}) and take it again"
        )
    };
    if let Some((one, other)) = first_twice(&files) {
        let (one, other) = (one.path.display(), other.path.display());
        return Err(format!(
            "{shown} has two files of one name, {one} and {other}, of which a backup can hold one: have all SSTables of \
             the table written anew (nodetool upgradesstables -a {} {}), clear the snapshot (nodetool clearsnapshot -t \
             {tag}) and take it again",
            table.keyspace, table.name
        ));
    }
    if manifests.is_empty() {
        return Err(lacking(MANIFEST));
    }
    if schema.is_none() && !is_system_keyspace(&table.keyspace) {
        return Err(lacking(SCHEMA));
    }
    let (mut taken_at, mut log_segment) = (None, None::<u64>);
    let mut log_from = Some(u64::MAX);
    for text in &manifests {
        let manifest: SnapshotManifest = serde_json::from_str(text)
            .map_err(|error| format!("the {MANIFEST} of the snapshot {tag} of {shown} cannot be read: {error}"))?;
        if let Some(missing) = first_missing(&manifest.files, &files) {
            return Err(lacking(missing));
        }
        let time = manifest.created_at.and_then(|text| text.parse::<jiff::Timestamp>().ok());
        taken_at = taken_at.max(time.map(jiff::Timestamp::as_millisecond));
        log_segment = log_segment.into_iter().chain(manifest.commitlog_segment).min();
        // None is less than any segment: one manifest that does not say is enough
        log_from = log_from.min(manifest.commitlog_from);
    }
    Ok(TableFiles { table, schema: schema.unwrap_or_default(), taken_at, log_segment, log_from, files })
}

/// Two files of one name; None: there are no such files.
fn first_twice(files: &[File]) -> Option<(&File, &File)> {
    let mut seen = BTreeMap::new();
    files.iter().find_map(|file| seen.insert(file.name.as_str(), file).map(|earlier| (earlier, file)))
}

/// The first of the named files that was not found. A name without directory may be that of a file
/// of an index.
fn first_missing<'a>(named: &'a [String], found: &[File]) -> Option<&'a str> {
    let whole: BTreeSet<&str> = found.iter().map(|file| file.name.as_str()).collect();
    let last = |file: &File| file.name.rsplit('/').next().unwrap_or_default().to_owned();
    let plain: BTreeSet<String> = found.iter().map(last).collect();
    named.iter().map(String::as_str).find(|name| !whole.contains(name) && !plain.contains(*name))
}

/// The text of a small file; None: there is none.
fn small_file(env: &Env, path: &Path) -> Result<Option<String>> {
    if !env.disk.exists(path) {
        return Ok(None);
    }
    let bytes = env.disk.read_all(path, SMALL_MAX).map_err(|error| format!("{}: {error}", path.display()))?;
    String::from_utf8(bytes).map(Some).map_err(|_| format!("{}: it is not text", path.display()))
}

/// The directories in which keyspaces may lie, each once: a given directory, and `data` in it. If
/// both exist both count, because a keyspace may have the name `data`.
fn roots_of(env: &Env, data_directories: &[PathBuf]) -> Vec<PathBuf> {
    let mut roots = Vec::new();
    for root in data_directories.iter().flat_map(|directory| [directory.join("data"), directory.clone()]) {
        if env.disk.exists(&root) && !roots.contains(&root) {
            roots.push(root);
        }
    }
    roots
}

fn entries(env: &Env, directory: &Path, are_dirs: bool) -> Result<Vec<String>> {
    let entries = env.disk.list_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let mut names: Vec<String> =
        entries.into_iter().filter(|entry| entry.is_dir == are_dirs).map(|entry| entry.name).collect();
    names.sort();
    Ok(names)
}

fn directories(env: &Env, directory: &Path) -> Result<Vec<String>> {
    entries(env, directory, true)
}

/// The files of the SSTables of a snapshot's directory, those of indexes too.
fn files_of(env: &Env, snapshot: &Path) -> Result<Vec<File>> {
    let mut files = sstable_files(env, snapshot, "")?;
    // built-in indexes of 2i have directories of their own
    for index in directories(env, snapshot)?.into_iter().filter(|name| name.starts_with('.')) {
        files.extend(sstable_files(env, &snapshot.join(&index), &format!("{index}/"))?);
    }
    Ok(files)
}

/// The files of the SSTables of a directory; `before` stands in front of their names. Components of
/// attached indexes are left out: they depend on the definition of their index too, and a node
/// makes those that are missing when it starts.
fn sstable_files(env: &Env, directory: &Path, before: &str) -> Result<Vec<File>> {
    let mut files = Vec::new();
    for name in entries(env, directory, false)? {
        let Some((descriptor, component)) = Descriptor::parse(directory, &name) else { continue };
        if is_attached_component(&name) {
            continue;
        }
        let path = directory.join(&name);
        let size = env.disk.file_len(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let stamp = match component {
            Some(Component::Statistics | Component::Toc) => stamp_of(env, &path)?,
            Some(Component::Data) => stamp_of_data(env, &descriptor, None)?,
            _ => stamp_of_data(env, &descriptor, Some(size))?,
        };
        files.push(File { name: format!("{before}{name}"), path, size, stamp });
    }
    Ok(files)
}

/// A stamp made of the checksum of the data that the writer of an SSTable has left, of the length
/// of the data, and for another component also of that component's length: Cassandra writes some
/// of them anew in another size (Filter.db, Summary.db).
fn stamp_of_data(env: &Env, descriptor: &Descriptor, own_length: Option<u64>) -> Result<String> {
    let path = descriptor.path(Component::Digest);
    let path = if env.disk.exists(&path) { path } else { descriptor.path(Component::Statistics) };
    let data = descriptor.path(Component::Data);
    let length = env.disk.file_len(&data).map_err(|error| format!("{}: {error}", data.display()))?;
    let bytes =
        env.disk.read_all(&path, STATISTICS_SIZE_MAX).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes);
    hasher.update(&length.to_be_bytes());
    if let Some(own_length) = own_length {
        hasher.update(&own_length.to_be_bytes());
    }
    Ok(format!("{:08x}", hasher.finalize()))
}

/// A stamp made of the content of a small component that is changed in place.
fn stamp_of(env: &Env, path: &Path) -> Result<String> {
    let bytes = env.disk.read_all(path, STATISTICS_SIZE_MAX).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(format!("{:08x}", crc32fast::hash(&bytes)))
}
