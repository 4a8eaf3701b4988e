//! Snapshots of tables: list, take, clear. The bytes that only a snapshot holds are told apart from
//! the bytes of its files.

use serde::{Deserialize, Serialize};

/// Asks for all snapshots.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetSnapshots {}

/// A snapshot of a table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SnapshotInfo {
    /// Its name.
    pub name: String,
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// Bytes of files that only the snapshot holds.
    pub true_size: u64,
    /// Bytes of all its files.
    pub size_on_disk: u64,
    /// When it was taken; None: its manifest does not say.
    pub created_at: Option<i64>,
}

/// Takes a snapshot. A name that exists is refused.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SnapshotRequest {
    /// Its name.
    pub name: String,
    /// Keyspaces; empty: all.
    pub keyspaces: Vec<String>,
    /// Tables as (keyspace, table); empty: all tables of the keyspaces.
    pub tables: Vec<(String, String)>,
    /// Memtables are not flushed before, so that their rows are not part of the snapshot.
    pub skip_flush: bool,
}

/// Removes snapshots.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ClearSnapshots {
    /// The snapshot's name; None: all snapshots.
    pub name: Option<String>,
    /// Keyspaces; empty: all.
    pub keyspaces: Vec<String>,
}
