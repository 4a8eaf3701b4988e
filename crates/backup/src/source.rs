//! The files of a node's snapshot, found in its data directories.

use std::path::{Path, PathBuf};

use env::Env;
use sstable::{Component, Descriptor};

use crate::Result;
use crate::manifest::check_name;

/// The directory of snapshots in that of a table.
const SNAPSHOTS: &str = "snapshots";
/// The statements of a snapshot's table.
const SCHEMA: &str = "schema.cql";
/// Bytes of a schema.cql, or of another small file, at most.
const SMALL_MAX: u64 = 16 << 20;
/// Bytes of a Statistics.db at most.
const STATISTICS_MAX: u64 = 256 << 20;

/// A file of a snapshot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File {
    /// As in [`crate::manifest::Entry::name`].
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Bytes.
    pub size: u64,
    /// Tells apart SSTables that had the same name one after the other, and the states of a
    /// Statistics.db that was changed in place: eight hexadecimal digits.
    pub stamp: String,
}

/// A table of a snapshot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableFiles {
    /// The keyspace.
    pub keyspace: String,
    /// The table.
    pub name: String,
    /// The id, as in the directory's name.
    pub id: String,
    /// The text of schema.cql.
    pub schema: String,
    /// The files of its SSTables.
    pub files: Vec<File>,
}

/// The tables that have a snapshot of this name, in all data directories.
pub fn tables(env: &Env, data_directories: &[PathBuf], tag: &str) -> Result<Vec<TableFiles>> {
    let mut found: Vec<TableFiles> = Vec::new();
    for root in data_directories.iter().map(|directory| root_of(env, directory)) {
        for keyspace in directories(env, &root)? {
            for directory in directories(env, &root.join(&keyspace))? {
                let snapshot = root.join(&keyspace).join(&directory).join(SNAPSHOTS).join(tag);
                let Some((name, id)) = directory.rsplit_once('-').filter(|_| env.disk.exists(&snapshot)) else {
                    continue;
                };
                check_name(&keyspace)?;
                check_name(&directory)?;
                let table = of_directory(env, &snapshot, (&keyspace, name, id))?;
                match found.iter_mut().find(|known| known.keyspace == keyspace && known.id == id) {
                    Some(known) => {
                        known.files.extend(table.files);
                        known.schema =
                            if known.schema.is_empty() { table.schema } else { std::mem::take(&mut known.schema) };
                    }
                    None => found.push(table),
                }
            }
        }
    }
    found.sort_by(|one, other| (&one.keyspace, &one.name, &one.id).cmp(&(&other.keyspace, &other.name, &other.id)));
    Ok(found)
}

/// The directory in which keyspaces lie: the given one, or `data` in it.
fn root_of(env: &Env, directory: &Path) -> PathBuf {
    let below = directory.join("data");
    if env.disk.exists(&below) { below } else { directory.to_owned() }
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

fn of_directory(env: &Env, snapshot: &Path, (keyspace, name, id): (&str, &str, &str)) -> Result<TableFiles> {
    let mut files = sstable_files(env, snapshot, "")?;
    // built-in indexes of 2i have directories of their own
    for index in directories(env, snapshot)?.into_iter().filter(|name| name.starts_with('.')) {
        files.extend(sstable_files(env, &snapshot.join(&index), &format!("{index}/"))?);
    }
    let path = snapshot.join(SCHEMA);
    let schema = match env.disk.exists(&path) {
        true => env.disk.read_all(&path, SMALL_MAX).map_err(|error| format!("{}: {error}", path.display()))?,
        false => Vec::new(),
    };
    let schema = String::from_utf8(schema).map_err(|_| format!("{}: it is not text", path.display()))?;
    Ok(TableFiles { keyspace: keyspace.to_owned(), name: name.to_owned(), id: id.to_owned(), schema, files })
}

/// The files of the SSTables of a directory; `before` stands in front of their names.
fn sstable_files(env: &Env, directory: &Path, before: &str) -> Result<Vec<File>> {
    let mut files = Vec::new();
    for name in entries(env, directory, false)? {
        let Some((descriptor, component)) = Descriptor::parse(directory, &name) else { continue };
        let path = directory.join(&name);
        let size = env.disk.file_len(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let stamp = match component {
            Some(Component::Statistics) => stamp_of(env, &path)?,
            _ => stamp_of_data(env, &descriptor)?,
        };
        files.push(File { name: format!("{before}{name}"), path, size, stamp });
    }
    Ok(files)
}

/// The checksum that the writer of an SSTable has left of its data, and the length of the data.
fn stamp_of_data(env: &Env, descriptor: &Descriptor) -> Result<String> {
    let path = descriptor.path(Component::Digest);
    let path = if env.disk.exists(&path) { path } else { descriptor.path(Component::Statistics) };
    let data = descriptor.path(Component::Data);
    let length = env.disk.file_len(&data).map_err(|error| format!("{}: {error}", data.display()))?;
    let bytes = env.disk.read_all(&path, STATISTICS_MAX).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes);
    hasher.update(&length.to_be_bytes());
    Ok(format!("{:08x}", hasher.finalize()))
}

fn stamp_of(env: &Env, path: &Path) -> Result<String> {
    let bytes = env.disk.read_all(path, STATISTICS_MAX).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(format!("{:08x}", crc32fast::hash(&bytes)))
}
