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
    /// Table. It may have been dropped since.
    pub table: String,
    /// The table's id: 32 hexadecimal digits, as in the directory's name.
    #[serde(default)]
    pub table_id: String,
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

/// Takes a snapshot on all nodes of the ring at one time.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RingSnapshotRequest {
    /// Its name.
    pub name: String,
    /// Keyspaces; empty: all that nodes share.
    pub keyspaces: Vec<String>,
}

/// The share that a node has in a snapshot of the ring.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RingSnapshotInfo {
    /// The node's address.
    pub address: String,
    /// Tables of which the node has the snapshot.
    pub tables: usize,
    /// Why the node has not taken all of them; None: it has.
    pub failure: Option<String>,
}

/// Removes snapshots.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ClearSnapshots {
    /// The snapshot's name; None: all snapshots.
    pub name: Option<String>,
    /// Keyspaces; empty: all.
    pub keyspaces: Vec<String>,
}

/// Removes the snapshots that are older than something. It is a verb of its own, so that a node
/// that does not know it refuses it, and does not take it for a call to remove all snapshots.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ClearOldSnapshots {
    /// Snapshots that are older than this are removed.
    pub older_than: SnapshotAge,
    /// Keyspaces; empty: all.
    pub keyspaces: Vec<String>,
}

/// The age of a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum SnapshotAge {
    /// The snapshot was taken more than this number of seconds ago, by the clock of the node.
    Seconds(u64),
    /// The snapshot was taken at this time, in milliseconds since 1970.
    TakenAt(i64),
}
