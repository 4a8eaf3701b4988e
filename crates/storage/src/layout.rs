//! The places of files on disk: `<data>/<keyspace>/<table>-<id>/` in each data directory, as in
//! Cassandra.
//!
//! Before 2.1 Cassandra has put a table in `<data>/<keyspace>/<table>/`. Every later version leaves
//! such a directory where it is and goes on writing there.
//!
//! The local system keyspaces lie in one directory, but for the few tables that grow. Agrees with
//! `org.apache.cassandra.db.Directories` and `SystemKeyspace.TABLES_SPLIT_ACROSS_MULTIPLE_DISKS`.

use std::path::{Path, PathBuf};

use env::Env;
use schema::TableMetadata;
use schema::system::is_local_keyspace;

use crate::options::EngineOptions;

/// Name of the directory with the snapshots of a table.
pub const SNAPSHOTS: &str = "snapshots";
/// Name of the directory with the incremental backups of a table.
pub const BACKUPS: &str = "backups";

/// Tables of `system` that lie in all data directories, as those of users.
pub const SPLIT_SYSTEM_TABLES: [&str; 5] = ["batches", "paxos", "compaction_history", "prepared_statements", "repairs"];

/// The directory of a table beneath a data directory.
fn table_directory(data: &Path, table: &TableMetadata) -> PathBuf {
    data.join(&table.keyspace).join(format!("{}-{}", table.name, table.id.to_hex()))
}

/// The directory in which Cassandra has put a table before 2.1.
fn directory_without_id(data: &Path, table: &TableMetadata) -> PathBuf {
    data.join(&table.keyspace).join(&table.name)
}

/// The directories of a table, at least one; they need not exist. Where one without an id is there,
/// all are without: Cassandra looks in no other then, and would not find what was written there.
pub fn table_directories(env: &Env, options: &EngineOptions, table: &TableMetadata) -> Vec<PathBuf> {
    if let Some(places) = options.places.get(&table.id).filter(|places| !places.is_empty()) {
        return places.clone();
    }
    let beneath = data_directories(options, table);
    let without_id: Vec<PathBuf> = beneath.iter().map(|data| directory_without_id(data, table)).collect();
    let mut directories = match without_id.iter().any(|directory| env.disk.exists(directory)) {
        true => without_id,
        false => beneath.iter().map(|data| table_directory(data, table)).collect(),
    };
    if options.read_only {
        // nothing can be moved: what lies elsewhere is read there
        directories.extend(former_directories(options, table));
    }
    directories
}

/// The directories with the id of a table that lies in `directories`, which are without it: nothing
/// is read there. Empty for a table that lies in directories with its id.
pub fn ignored_directories(options: &EngineOptions, table: &TableMetadata, directories: &[PathBuf]) -> Vec<PathBuf> {
    if options.places.contains_key(&table.id) {
        return Vec::new();
    }
    let with_id = data_directories(options, table).into_iter().map(|data| table_directory(data, table));
    with_id.filter(|directory| !directories.contains(directory)).collect()
}

/// The data directories that a table lies in.
fn data_directories<'o>(options: &'o EngineOptions, table: &TableMetadata) -> Vec<&'o Path> {
    match lies_in_one_directory(table) {
        true => vec![system_directory(options)],
        false => options.data_directories.iter().map(PathBuf::as_path).collect(),
    }
}

/// Other directories that may have files of a table of the local system keyspaces: data
/// directories that were the first one under an earlier configuration, or any one if Cassandra 3
/// wrote them. Empty for tables that lie in all data directories.
pub fn former_directories(options: &EngineOptions, table: &TableMetadata) -> Vec<PathBuf> {
    if !lies_in_one_directory(table) || options.places.contains_key(&table.id) {
        return Vec::new();
    }
    let own = system_directory(options);
    let others = options.data_directories.iter().filter(|data| data.as_path() != own);
    others.flat_map(|data| [table_directory(data, table), directory_without_id(data, table)]).collect()
}

/// The directory of the local system keyspaces.
pub fn system_directory(options: &EngineOptions) -> &Path {
    options.system_directory.as_deref().unwrap_or_else(|| options.data_directory())
}

fn lies_in_one_directory(table: &TableMetadata) -> bool {
    let is_split = table.keyspace == "system" && SPLIT_SYSTEM_TABLES.contains(&table.name.as_str());
    is_local_keyspace(&table.keyspace) && !is_split
}

/// The directory of a snapshot of a table. The snapshot of an index lies in that of its base.
pub fn snapshot_directory(table_directory: &Path, tag: &str) -> PathBuf {
    let name = table_directory.file_name().and_then(|name| name.to_str()).filter(|name| name.starts_with('.'));
    match (name, table_directory.parent()) {
        (Some(index), Some(base)) => base.join(SNAPSHOTS).join(tag).join(index),
        _ => table_directory.join(SNAPSHOTS).join(tag),
    }
}
