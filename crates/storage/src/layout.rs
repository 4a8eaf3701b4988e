//! Where things lie on disk: `<data>/<keyspace>/<table>-<id>/` in each data directory, as in
//! Cassandra.
//!
//! The local system keyspaces lie in one directory, but for the few tables that grow. Agrees with
//! `org.apache.cassandra.db.Directories` and `SystemKeyspace.TABLES_SPLIT_ACROSS_MULTIPLE_DISKS`.

use std::path::{Path, PathBuf};

use schema::TableMetadata;
use schema::system::is_local_keyspace;

use crate::options::EngineOptions;

/// Snapshots of a table.
pub const SNAPSHOTS: &str = "snapshots";
/// Incremental backups of a table.
pub const BACKUPS: &str = "backups";

/// Tables of `system` that lie in all data directories, as those of users.
const SPLIT_SYSTEM_TABLES: [&str; 5] = ["batches", "paxos", "compaction_history", "prepared_statements", "repairs"];

/// The directory of a table beneath a data directory.
pub fn table_directory(data: &Path, table: &TableMetadata) -> PathBuf {
    data.join(&table.keyspace).join(format!("{}-{}", table.name, table.id.to_hex()))
}

/// The directories of a table, at least one; they need not exist.
pub fn table_directories(options: &EngineOptions, table: &TableMetadata) -> Vec<PathBuf> {
    if let Some(places) = options.places.get(&table.id).filter(|places| !places.is_empty()) {
        return places.clone();
    }
    let is_local = is_local_keyspace(&table.keyspace)
        && !(table.keyspace == "system" && SPLIT_SYSTEM_TABLES.contains(&table.name.as_str()));
    match &options.system_directory {
        Some(system) if is_local => vec![table_directory(system, table)],
        _ => {
            let count = if is_local { 1 } else { usize::MAX };
            options.data_directories.iter().take(count).map(|data| table_directory(data, table)).collect()
        }
    }
}

/// The directory of a snapshot of a table. That of an index lies in its base's.
pub fn snapshot_directory(table_directory: &Path, tag: &str) -> PathBuf {
    let name = table_directory.file_name().and_then(|name| name.to_str()).filter(|name| name.starts_with('.'));
    match (name, table_directory.parent()) {
        (Some(index), Some(base)) => base.join(SNAPSHOTS).join(tag).join(index),
        _ => table_directory.join(SNAPSHOTS).join(tag),
    }
}
