//! Where things lie on disk: `<data>/<keyspace>/<table>-<id>/`, as in Cassandra.

use std::path::{Path, PathBuf};

use schema::TableMetadata;

/// Snapshots of a table.
pub const SNAPSHOTS: &str = "snapshots";
/// Incremental backups of a table.
pub const BACKUPS: &str = "backups";

/// The directory of a table.
pub fn table_directory(data: &Path, table: &TableMetadata) -> PathBuf {
    data.join(&table.keyspace).join(format!("{}-{}", table.name, table.id.to_hex()))
}

/// The directory of a snapshot of a table.
pub fn snapshot_directory(table_directory: &Path, tag: &str) -> PathBuf {
    table_directory.join(SNAPSHOTS).join(tag)
}
