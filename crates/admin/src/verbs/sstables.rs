//! SSTables: where a partition and tombstones lie, imports, and work on each SSTable of some
//! tables.

use serde::{Deserialize, Serialize};

/// Asks for the addresses of the replicas of a partition.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GetEndpoints {
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// The partition key as CQL writes it without quotes, components separated by colons.
    pub key: String,
    /// Whether addresses are followed by their storage ports.
    #[serde(default)]
    pub with_port: bool,
}

/// Asks for the data files that hold a partition.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GetSSTables {
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// The partition key as CQL writes it without quotes, components separated by colons; with
    /// `hex` in hexadecimal digits.
    pub key: String,
    /// Whether the key is written in hexadecimal digits.
    #[serde(default)]
    pub hex: bool,
}

/// Asks where the tombstones of a table are, when they may go, and why not yet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GetTombstones {
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// How many partitions with most tombstones are shown.
    pub top: u32,
}

/// Loads SSTables that were put into a table's own directory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Refresh {
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
}

/// Makes indexes of a table again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RebuildIndexes {
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// Names of the indexes; one that the table does not have is passed over.
    pub indexes: Vec<String>,
}

/// Brings SSTables of other directories into a table.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ImportRequest {
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// The directories, on the node's machine.
    pub directories: Vec<String>,
    /// The levels of the SSTables become 0.
    pub reset_level: bool,
    /// The SSTables count as unrepaired.
    pub clear_repaired: bool,
    /// Digests are compared first.
    pub verify: bool,
    /// Every row is read first.
    pub extended_verify: bool,
    /// The files are copied, not moved.
    pub copy: bool,
    /// Directories with partitions that belong to other nodes are refused.
    #[serde(default)]
    pub verify_tokens: bool,
    /// Directories without the components of the table's storage-attached indexes are refused.
    #[serde(default)]
    pub require_indexes: bool,
}

/// Works on the SSTables of some tables; the answer comes when all is done.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SSTableRequest {
    /// Keyspace.
    pub keyspace: String,
    /// Tables of the keyspace; empty: all.
    pub tables: Vec<String>,
    /// SSTables at a time; 0: as many as there are compactors.
    pub jobs: u32,
    /// The work on each SSTable.
    pub work: SSTableWork,
}

/// A kind of work on SSTables.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum SSTableWork {
    /// Each SSTable is written again in the present version.
    Upgrade {
        /// SSTables of the present version are written again too.
        include_all: bool,
        /// Only SSTables written until this time.
        max_timestamp: i64,
    },
    /// SSTables are written again whose compression is not that of the table.
    Recompress,
    /// Each SSTable is read and compared with its checksums.
    Verify {
        /// Every row is read.
        extended: bool,
        /// An SSTable of another version than the present is an error.
        check_version: bool,
        /// A corrupt SSTable is a failure of the disk.
        disk_failure_policy: bool,
        /// A corrupt SSTable does not count as repaired any more.
        mutate_repair_status: bool,
        /// Not even digests are compared.
        quick: bool,
        /// A partition that belongs to other nodes is an error.
        #[serde(default)]
        check_tokens: bool,
    },
    /// Each SSTable is written again as far as it can be read.
    Scrub {
        /// No snapshot is taken first.
        no_snapshot: bool,
        /// Corrupt partitions are left out of tables of counters too.
        skip_corrupted: bool,
        /// Values are not checked against their types.
        no_validate: bool,
        /// Rows whose expiration had overflowed come back.
        reinsert_overflowed_ttl: bool,
    },
    /// Each SSTable is written again without what other SSTables delete.
    GarbageCollect {
        /// Deleted cells are left out too, not only rows.
        cells: bool,
    },
    /// Each SSTable goes to the directory that its tokens belong to.
    Relocate,
}

/// How work on SSTables ended.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SSTableOutcome {
    /// 0: done; 1: stopped before its end; 2: another operation had the SSTables.
    pub status: u8,
    /// Lines that are worth telling the operator.
    pub lines: Vec<String>,
}

/// The SSTables that hold a partition.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SSTablesOfKey {
    /// Whether the table is compacted by LeveledCompactionStrategy.
    pub is_leveled: bool,
    /// Level and path of the data file of each SSTable.
    pub files: Vec<(u32, String)>,
}
