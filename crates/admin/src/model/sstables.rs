//! What may be asked about and done to SSTables: imports, and work on each SSTable of some tables.

use serde::{Deserialize, Serialize};

use super::TableSelection;

/// SSTables to be brought in from other directories.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ImportRequest {
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// Where they lie, on the node's machine.
    pub directories: Vec<String>,
    /// Levels become 0.
    pub reset_level: bool,
    /// Nothing counts as repaired.
    pub clear_repaired: bool,
    /// Compare digests first.
    pub verify: bool,
    /// Read every row first.
    pub extended_verify: bool,
    /// Leave the files where they are, too.
    pub copy: bool,
}

/// SSTables to be compacted.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CompactRequest {
    /// Of which tables.
    pub tables: TableSelection,
    /// Which of them.
    pub what: Compact,
}

/// Which SSTables are compacted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Compact {
    /// All, as the strategy does it.
    All {
        /// Not into one great SSTable.
        split: bool,
    },
    /// Those with tokens between two, both included.
    Tokens {
        /// The first.
        first: String,
        /// The last; before the first: around the ring.
        last: String,
    },
    /// Those that hold a partition; the key as CQL writes it.
    Partition(String),
    /// Those that hold one of these partitions, whose tombstones may go before gc_grace has ended.
    Keys(Vec<String>),
    /// Those of these data files, together.
    Files(Vec<String>),
}

impl Default for Compact {
    fn default() -> Self {
        Self::All { split: false }
    }
}

/// Work on the SSTables of some tables.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SSTableRequest {
    /// Keyspace.
    pub keyspace: String,
    /// Tables of it; none: all.
    pub tables: Vec<String>,
    /// SSTables at a time; 0: as many as there are compactors.
    pub jobs: u32,
    /// What is done.
    pub work: SSTableWork,
}

/// What is done to SSTables.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum SSTableWork {
    /// Each is written again.
    Upgrade {
        /// Also those of the present version.
        include_all: bool,
        /// Only those written before this time.
        max_timestamp: i64,
    },
    /// Those are written again whose compression is not that of the table.
    Recompress,
    /// Each is read and compared with its checksums.
    Verify {
        /// Every row.
        extended: bool,
        /// Another version is an error.
        check_version: bool,
        /// A corrupt SSTable is a failure of the disk.
        disk_failure_policy: bool,
        /// A corrupt SSTable does not count as repaired any more.
        mutate_repair_status: bool,
        /// Not even the digest.
        quick: bool,
    },
    /// Each is written again as far as it can be read.
    Scrub {
        /// No snapshot first.
        no_snapshot: bool,
        /// Also where counters get lost.
        skip_corrupted: bool,
        /// Values are not looked at.
        no_validate: bool,
        /// Rows whose expiration had overflowed come back.
        reinsert_overflowed_ttl: bool,
    },
    /// Each is written again without what others delete.
    GarbageCollect {
        /// Cells too, not only rows.
        cells: bool,
    },
    /// Each goes to the directory that its tokens belong to.
    Relocate,
}

/// How work on SSTables ended.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SSTableOutcome {
    /// 0: done; 1: given up; 2: another operation has the SSTables.
    pub status: u8,
    /// What is worth telling.
    pub lines: Vec<String>,
}

/// Compactions to be stopped.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum StopRequest {
    /// Those of a kind, by Cassandra's word.
    Kind(String),
    /// One, by its id.
    Id(String),
}

/// The SSTables that hold a partition.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SSTablesOfKey {
    /// The table's strategy is the leveled one.
    pub is_leveled: bool,
    /// Level and path of each.
    pub files: Vec<(u32, String)>,
}
