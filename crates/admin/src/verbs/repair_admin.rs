//! Sessions of incremental repairs: which there are, what data they have, and their end by an
//! operator.

use serde::{Deserialize, Serialize};

/// Tables of a keyspace, or all tables of keyspaces that have other replicas.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RepairedTables {
    /// Keyspace; None: all.
    pub keyspace: Option<String>,
    /// Tables; empty: all of the keyspace.
    pub tables: Vec<String>,
    /// A range of tokens, (start, end]; None: all that the node holds.
    pub range: Option<(i64, i64)>,
}

/// Asks for the sessions that the node knows.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetRepairSessions {
    /// Also those that have ended.
    pub all: bool,
    /// Only those of this range of tokens, (start, end].
    pub range: Option<(i64, i64)>,
}

/// A session of an incremental repair.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RepairSessionInfo {
    /// Its id, which is that of the repair.
    pub id: String,
    /// How far it is, in Cassandra's words.
    pub state: String,
    /// Seconds since anything was heard of it.
    pub idle_seconds: i64,
    /// Address and port of the node that coordinates it.
    pub coordinator: String,
    /// Addresses and ports of the nodes that take part.
    pub participants: Vec<String>,
}

/// Asks how much data sessions have.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetPendingRepairs {
    /// The tables that are asked about.
    pub of: RepairedTables,
}

/// Data of sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PendingRepairData {
    /// Bytes of data files.
    pub bytes: u64,
    /// SSTables.
    pub sstables: u64,
    /// Sessions.
    pub sessions: u64,
}

/// Data of sessions in a table.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PendingRepairInfo {
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// Of sessions under way.
    pub pending: PendingRepairData,
    /// Of sessions that have ended well, and that counts as repaired soon.
    pub finalized: PendingRepairData,
    /// Of sessions that have failed, and that counts as unrepaired soon.
    pub failed: PendingRepairData,
}

/// Asks since when ranges are repaired.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetRepaired {
    /// The tables that are asked about.
    pub of: RepairedTables,
}

/// Since when a table is repaired.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RepairedInfo {
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// Of each range, (start, end], when it was repaired; milliseconds since 1970, 0: never.
    pub sections: Vec<(i64, i64, i64)>,
}

/// Has data of sessions that have ended count as repaired or unrepaired now.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CleanUpRepairs {
    /// The tables that are asked about.
    pub of: RepairedTables,
    /// Compactions that have some of the data end.
    pub force: bool,
}

/// The outcome of a cleanup of a table.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CleanedUpRepairs {
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// Sessions that have no data of it any more.
    pub successful: u64,
    /// Sessions of which a compaction has data.
    pub unsuccessful: u64,
}

/// Ends a session: it has failed.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CancelRepair {
    /// Its id.
    pub session: String,
    /// Also if another node coordinates it.
    pub force: bool,
}
