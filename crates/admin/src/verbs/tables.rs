//! Tables: flushes and their switches.

use serde::{Deserialize, Serialize};

/// Which tables a verb is for.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TableSelection {
    /// Keyspaces; empty: all.
    pub keyspaces: Vec<String>,
    /// Tables of the keyspaces; empty: all.
    pub tables: Vec<String>,
}

/// Writes memtables to SSTables.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Flush {
    /// The tables.
    pub tables: TableSelection,
}

/// Asks for the options of compaction of each table of a keyspace, as its schema has them: the
/// table's name, then names and values, the class with its package.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetTableCompaction {
    /// Keyspace.
    pub keyspace: String,
}

/// The name of a table, and the names and values of its options.
pub type TableOptions = (String, Vec<(String, String)>);

/// Asks which tables are compacted by themselves.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetAutoCompaction {
    /// The tables.
    pub tables: TableSelection,
}

/// Has tables compacted by themselves or not, until the node restarts.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SetAutoCompaction {
    /// The tables.
    pub tables: TableSelection,
    /// Whether they are compacted by themselves.
    pub on: bool,
}

/// Asks with how many SSTables at least and at most the strategy of a table compacts.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetCompactionThresholds {
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
}

/// Sets with how many SSTables the strategy of a table compacts, until the node restarts.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SetCompactionThresholds {
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// SSTables at least; 2 or more.
    pub min: u32,
    /// SSTables at most; `min` or more.
    pub max: u32,
}
