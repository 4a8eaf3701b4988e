//! The manifest of a backup of one node: the identity of the node, the schema, and every file with
//! its size and digest.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::store::{Store, check_key, fetch_bytes, upload_bytes};

/// The form of manifests that is written. A reader refuses greater numbers.
pub const FORMAT: u32 = 1;
/// Most bytes of a manifest.
const SIZE_MAX: usize = 512 << 20;
/// The directory of manifests.
const MANIFESTS: &str = "manifests";

/// The node of a backup.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NodeIdentity {
    /// The cluster's name.
    pub cluster: String,
    /// The host id, in the usual text form.
    pub host_id: String,
    /// The broadcast address.
    pub address: String,
    /// The data center.
    pub data_center: String,
    /// The rack.
    pub rack: String,
    /// The tokens, ascending.
    pub tokens: Vec<i64>,
    /// The node's version of Helenus.
    pub version: String,
}

/// A file of a backup.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The file's name in the table's directory; a file of an index has the index's directory in
    /// front.
    pub name: String,
    /// The key of the object.
    pub key: String,
    /// Size of the file, bytes.
    pub size: u64,
    /// The SHA-256 of the file, hexadecimal.
    pub sha256: String,
}

/// A table of a backup.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Table {
    /// The keyspace.
    pub keyspace: String,
    /// The table.
    pub name: String,
    /// The id: 32 hexadecimal digits, as in the directory's name.
    pub id: String,
    /// The statements that make the table, from the snapshot's schema.cql; empty: a built-in
    /// table.
    pub schema: String,
    /// The files of its SSTables.
    pub files: Vec<Entry>,
}

/// A keyspace of a backup.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Keyspace {
    /// The name.
    pub name: String,
    /// The replication: `class` and its options.
    pub replication: Vec<(String, String)>,
}

/// The content of a backup of a node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format: u32,
    /// The backup's name.
    pub tag: String,
    /// The node.
    pub node: NodeIdentity,
    /// When the manifest was written, milliseconds since 1970.
    pub created_at: i64,
    /// When the snapshot of the last table was taken, milliseconds since 1970: no write of the
    /// backup is later. None: not known.
    #[serde(default)]
    pub taken_at: Option<i64>,
    /// The first segment of the commit log with writes that are not in the snapshots: all of them
    /// are in it and behind it. None: not known.
    #[serde(default)]
    pub log_segment: Option<u64>,
    /// The first segment of the commit log that a restore to a later time replays: those before
    /// have no writes that are not in the snapshots, the node's own tables included. None: not
    /// known.
    #[serde(default)]
    pub log_from: Option<u64>,
    /// The host ids of the ring's members when the backup was made; empty: not known.
    #[serde(default)]
    pub ring: Vec<String>,
    /// The keyspaces.
    pub keyspaces: Vec<Keyspace>,
    /// The tables.
    pub tables: Vec<Table>,
}

impl Table {
    /// The name of the table's directory.
    pub fn directory(&self) -> String {
        format!("{}-{}", self.name, self.id)
    }
}

impl Manifest {
    /// All files.
    pub fn files(&self) -> impl Iterator<Item = &Entry> {
        self.tables.iter().flat_map(|table| &table.files)
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files().fold(0, |sum, entry| sum.saturating_add(entry.size))
    }

    /// The key under which the manifest of a node's backup lies.
    pub fn key(tag: &str, host_id: &str) -> String {
        format!("{MANIFESTS}/{tag}/{host_id}.json")
    }

    /// Writes the manifest, which makes the backup of the node complete. Err: the manifest is one
    /// that could not be read afterwards, for instance too large.
    pub fn write(&self, store: &dyn Store) -> Result<()> {
        let key = Self::key(&self.tag, &self.node.host_id);
        let bytes = serde_json::to_vec_pretty(self).map_err(|error| error.to_string())?;
        Self::decode(&bytes).map_err(|why| format!("{key} is not written: {why}"))?;
        upload_bytes(store, &key, &bytes)
    }

    /// Reads the manifest at a key.
    pub fn read(store: &dyn Store, key: &str) -> Result<Self> {
        Self::decode(&fetch_bytes(store, key, SIZE_MAX)?).map_err(|why| format!("{key}: {why}"))
    }

    /// A manifest from its bytes. Every name in it is a plain one afterwards.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let manifest: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if manifest.format != FORMAT {
            return Err(format!("it has the form {}, and this program reads {FORMAT}", manifest.format));
        }
        let Self { tag, node, tables, keyspaces, .. } = &manifest;
        check_name(tag)?;
        check_name(&node.host_id)?;
        keyspaces.iter().try_for_each(|keyspace| check_name(&keyspace.name))?;
        manifest.ring.iter().try_for_each(|host_id| check_name(host_id))?;
        let mut directories = BTreeSet::new();
        for table in tables {
            if !directories.insert((&table.keyspace, table.directory())) {
                return Err(format!("the table {}.{} stands in it twice", table.keyspace, table.name));
            }
            let mut names = BTreeSet::new();
            check_name(&table.keyspace)?;
            check_name(&table.directory())?;
            for entry in &table.files {
                check_key(&entry.key)?;
                check_file_name(&entry.name)?;
                if !names.insert(&entry.name) {
                    return Err(format!("{} of {}.{} stands in it twice", entry.name, table.keyspace, table.name));
                }
            }
        }
        Ok(manifest)
    }
}

/// Refuses a text that is no name of a directory or of a file.
pub fn check_name(name: &str) -> Result<()> {
    match name.contains('/') {
        true => Err(format!("{name:?} is no plain name")),
        false => check_key(name).map_err(|_| format!("{name:?} is no plain name")),
    }
}

/// Does the work of [`check_name`] for a file, whose name may have the directory of an index in
/// front; that begins with a dot.
fn check_file_name(name: &str) -> Result<()> {
    match name.split_once('/') {
        Some((index, file)) => {
            let index = index.strip_prefix('.').ok_or_else(|| format!("{name:?} is no name of a file"))?;
            check_name(index)?;
            check_name(file)
        }
        None => check_name(name),
    }
}

/// The keys of all manifests of a backup; without `tag`, those of all backups.
pub fn keys(store: &dyn Store, tag: Option<&str>) -> Result<Vec<String>> {
    let prefix = match tag {
        Some(tag) => format!("{MANIFESTS}/{tag}"),
        None => MANIFESTS.to_owned(),
    };
    let found = store.list(&prefix)?.into_iter().map(|object| object.key);
    Ok(found.filter(|key| key.ends_with(".json") && key.split('/').count() == 3).collect())
}

/// The keys of the manifests of a backup, one for each node. Err: there are none.
pub fn keys_of_backup(store: &dyn Store, tag: &str) -> Result<Vec<String>> {
    check_name(tag)?;
    let keys = keys(store, Some(tag))?;
    if keys.is_empty() { Err(format!("there is no backup {tag} here")) } else { Ok(keys) }
}

/// The manifests of a backup, one for each node. Err: there are none, or one cannot be read.
pub fn of_backup(store: &dyn Store, tag: &str) -> Result<Vec<Manifest>> {
    keys_of_backup(store, tag)?.iter().map(|key| Manifest::read(store, key)).collect()
}
